"""Names of manifests and the versions that they show."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from delta_core import open_table
from delta_core.errors import CorruptTableError, VersionNotFoundError
from delta_core.storage.local import LocalStorage
from delta_plugins.lance.names import list_latest, list_versions, manifest_names, parse_versions
from tests.lance.manifests import container, manifest


@pytest.mark.parametrize("scheme", [2, 1])
def test_versions_are_found_in_any_order(scheme: int) -> None:
    versions = [1, 2, 9, 10, 11, 100, 1 << 40]
    names = [manifest_names(v)[2 - scheme] for v in versions]
    random.Random(1).shuffle(names)
    found = parse_versions([*names, "latest_version_hint.json", ".tmp_7.manifest_x", "3.manifest-a1b2"], "t")
    assert found is not None
    assert (list(found.names), found.latest, found.scheme) == (versions, 1 << 40, scheme)
    assert found.name_of(10) == manifest_names(10)[2 - scheme]


def test_names_are_those_of_the_format() -> None:
    assert manifest_names(1) == ("18446744073709551614.manifest", "1.manifest")


def test_detached_versions_and_other_files_do_not_count() -> None:
    names = ["d9223372036854775809.manifest", "d1.manifest", "01.manifest", "x.manifest", ".manifest", "1.manifest.bak"]
    assert parse_versions(names, "t") is None
    found = parse_versions([*names, "2.manifest", "9223372036854775809.manifest"], "t")
    assert found is not None
    assert list(found.names) == [2]


def test_two_schemes_are_rejected() -> None:
    names = [*manifest_names(3), manifest_names(4)[0]]
    with pytest.raises(CorruptTableError, match=r"3\.manifest and 1844674407370955161[12]\.manifest"):
        parse_versions(names, "t")


def test_missing_version_is_reported_with_those_that_are_there() -> None:
    found = parse_versions([f"{v}.manifest" for v in range(20, 50)], "t")
    assert found is not None
    with pytest.raises(VersionNotFoundError, match="20 earlier ones and 40, 41") as e:
        found.name_of(7)
    assert e.value.version == 7


def write_versions(folder: Path, versions: range, scheme: int) -> None:
    """Write empty files for versions, and the manifest of the last one."""
    (folder / "_versions").mkdir(parents=True)
    for version in versions:
        (folder / "_versions" / manifest_names(version)[2 - scheme]).touch()
    last = folder / "_versions" / manifest_names(versions[-1])[2 - scheme]
    last.write_bytes(container(manifest(versions[-1])))


def test_latest_of_many_versions_is_found_by_the_first_names(tmp_path: Path) -> None:
    write_versions(tmp_path / "t", range(1, 2501), 2)
    for name in (".tmp_1", "0", "d9223372036854775809.manifest", "latest_version_hint.json"):
        (tmp_path / "t" / "_versions" / name).touch()
    storage = LocalStorage(str(tmp_path / "t"))
    found = list_latest(storage)
    assert found is not None
    assert found.latest == 2500
    assert len(found._listed) <= 1000
    assert list(list_versions(storage).names) == [*range(1, 2501)]


@pytest.mark.parametrize("most", [9, 999, 1000, 2500])
def test_latest_of_versions_of_scheme_1_is_found_among_all_names(tmp_path: Path, most: int) -> None:
    write_versions(tmp_path / "t", range(1, most + 1), 1)
    assert open_table(str(tmp_path / "t")).version == most


@pytest.mark.parametrize("scheme", [2, 1])
def test_dataset_is_opened_by_one_listing_of_its_versions(
    tmp_path: Path, scheme: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_versions(tmp_path / "t", range(1, 40), scheme)
    listed = []
    list_from = LocalStorage.list_from

    def counted(self: LocalStorage, directory: str, *arguments: Any) -> Any:
        listed.append(directory)
        return list_from(self, directory, *arguments)

    monkeypatch.setattr(LocalStorage, "list_from", counted)
    assert open_table(str(tmp_path / "t")).version == 39
    assert listed.count("_versions") == 1


def test_manifests_of_two_schemes_are_rejected_when_a_dataset_is_opened(tmp_path: Path) -> None:
    write_versions(tmp_path / "t", range(1, 40), 2)
    (tmp_path / "t" / "_versions" / "41.manifest").touch()
    with pytest.raises(CorruptTableError, match="two naming schemes"):
        open_table(str(tmp_path / "t"))


def test_place_without_manifests_is_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "t" / "_versions").mkdir(parents=True)
    (tmp_path / "t" / "_versions" / "d1.manifest").touch()
    assert list_latest(LocalStorage(str(tmp_path / "t"))) is None
