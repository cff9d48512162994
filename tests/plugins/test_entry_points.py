"""Entry points are found as importlib.metadata finds them."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from pathlib import Path

import pytest

from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.runtime.entry_points import entry_groups, entry_points, installed_version

GROUP = "delta_core.features"


def _install(folder: Path, package: str, text: str, version: str = "1.0") -> None:
    metadata = folder / f"{package}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (metadata / "entry_points.txt").write_text(text)


def test_what_is_installed_is_what_importlib_finds() -> None:
    points = importlib.metadata.entry_points()
    standard = {
        g: {(p.name, p.value) for p in points.select(group=g)} for g in points.groups if g.startswith("delta_core.")
    }
    assert {g: {(p.name, p.value) for p in found} for g, found in entry_groups().items()} == standard


def test_version_is_the_installed_one_that_importlib_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_version() == importlib.metadata.version("delta-core-lake")
    _install(tmp_path, "delta_core_lake", f"[{GROUP}]\nfirst = os:path\n", "2.0+local.1")
    installed_version.cache_clear()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    try:
        assert installed_version() == "2.0+local.1"
    finally:
        installed_version.cache_clear()


def test_first_package_of_a_name_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path / "first", "Some.Plugin", f"[{GROUP}]\nfirst = os:path\n")
    _install(tmp_path / "second", "some_plugin", f"[{GROUP}]\nsecond = os:path\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second"), str(tmp_path / "missing")])
    assert [p.name for p in entry_points(GROUP)] == ["first"]
    assert entry_points("delta_core.nothing") == ()


def test_point_loads_its_object_and_has_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"# plugins\n[other]\nx = y\n\n[{GROUP}]\nmodule = os.path [extra]\nattribute = os : path.join\n"
    _install(tmp_path, "plugin", text, "2.3")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    module, attribute = entry_points(GROUP)
    assert (module.name, module.load()) == ("module", __import__("os").path)
    assert attribute.load() is __import__("os").path.join
    assert (attribute.dist.name, attribute.dist.version) == ("plugin", "2.3")


def test_package_in_an_archive_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path / "folder", "zipped", f"[{GROUP}]\nzipped = os:path\n")
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        for file in (tmp_path / "folder").rglob("*"):
            archive.write(file, file.relative_to(tmp_path / "folder"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages.zip")])
    assert [p.name for p in entry_points(GROUP)] == ["zipped"]


@pytest.mark.parametrize("archived", [False, True], ids=["folder", "archive"])
def test_former_name_of_the_distribution_is_passed_over_beside_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archived: bool
) -> None:
    _install(tmp_path / "folder", "delta_core", f"[{GROUP}]\nrowIds = delta_plugins.moved\n", "0.1.0")
    _install(tmp_path / "folder", "delta_core_lake", f"[{GROUP}]\nrowIds = delta_plugins.row_ids\n", "0.2.0")
    _install(tmp_path / "folder", "plugin", f"[{GROUP}]\nother = os:path\n")
    place = tmp_path / "folder"
    if archived:
        place = tmp_path / "packages.zip"
        with zipfile.ZipFile(place, "w") as archive:
            for file in (tmp_path / "folder").rglob("*"):
                archive.write(file, file.relative_to(tmp_path / "folder"))
    monkeypatch.setattr(sys, "path", [str(place)])
    assert {p.name: p.value for p in entry_points(GROUP)} == {"rowIds": "delta_plugins.row_ids", "other": "os:path"}
    assert PluginRegistry().source("rowIds") == "delta_core_lake 0.2.0"


def test_former_name_of_the_distribution_serves_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "delta_core", f"[{GROUP}]\nrowIds = delta_plugins.row_ids\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert [p.name for p in entry_points(GROUP)] == ["rowIds"]
