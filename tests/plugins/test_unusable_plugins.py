"""Plugins that are missing, broken or provided twice: tables that need them are rejected, all others work."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from delta_core import DeltaTable, write_deltalake
from delta_core.cli.inspect import features
from delta_core.errors import (
    HookContractError,
    InvalidArgumentError,
    PluginConflictError,
    PluginError,
    UnsupportedFeatureError,
)
from delta_core.kernel.plugins import registry as registries
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.protocol.legacy_versions import IMPLIED_BY_READER, IMPLIED_BY_WRITER
from delta_core.testing.table_builder import TableBuilder

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
GROUP = "delta_core.features"


class Without(PluginRegistry):
    """An environment in which one feature's plugin is not installed."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.missing = names

    def names(self) -> list[str]:
        return [name for name in super().names() if name not in self.missing]

    def load(self, name: str) -> Any | None:
        return None if name in self.missing else super().load(name)


# --- features that a protocol version implies ----------------------------------------------


def _table_of(path: Path, reader: int, writer: int) -> Path:
    protocol = {"minReaderVersion": reader, "minWriterVersion": writer}
    TableBuilder(path).create({"id": "long"}, protocol=protocol).append([{"id": 1}])
    return path


@pytest.mark.parametrize("version", IMPLIED_BY_READER)
def test_table_of_old_reader_version_is_rejected_without_a_plugin_that_it_implies(tmp_path: Path, version: int) -> None:
    (name,) = IMPLIED_BY_READER[version]
    path = _table_of(tmp_path / "t", version, 5)
    with pytest.raises(UnsupportedFeatureError, match=f"needs the reader feature {name}"):
        DeltaTable(path, plugins=Without(name))
    assert DeltaTable(path).to_pyarrow_table()["id"].to_pylist() == [1]


@pytest.mark.parametrize(("version", "name"), [(v, n) for v, names in IMPLIED_BY_WRITER.items() for n in names])
def test_table_of_old_writer_version_is_not_written_without_a_plugin_that_it_implies(
    tmp_path: Path, version: int, name: str
) -> None:
    path = _table_of(tmp_path / "t", 1, version)
    table = DeltaTable(path, plugins=Without(name))
    for change in (
        lambda: write_deltalake(table, ROWS, mode="append"),
        lambda: table.delete("id = 1"),
        lambda: table.alter.set_table_properties({"delta.appendOnly": "false"}),
    ):
        with pytest.raises(UnsupportedFeatureError, match=f"needs the writer features? .*{name}"):
            change()
    assert (table.to_pyarrow_table()["id"].to_pylist(), table.version()) == ([1], 1)


def test_later_version_implies_features_of_earlier_ones(tmp_path: Path) -> None:
    table = DeltaTable(_table_of(tmp_path / "t", 1, 6), plugins=Without("appendOnly"))
    with pytest.raises(UnsupportedFeatureError, match="appendOnly"):
        table.delete()


def test_new_table_can_be_written_where_a_plugin_of_the_usual_version_is_missing(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", ROWS.schema, plugins=Without("invariants"))
    write_deltalake(table, ROWS, mode="append")
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 1)


# --- plugins that can't be used ------------------------------------------------------------


def _failing_import(folder: Path) -> dict[str, str]:
    (folder / "acme_broken.py").write_text("import acme_module_that_is_not_there\n")
    return {"acme.broken": "acme_broken"}


def _unknown_hook(folder: Path) -> dict[str, str]:
    (folder / "acme_hooked.py").write_text(
        "from delta_core.api import TableFeature, hookimpl\n"
        "FEATURE = TableFeature('acme.hooked', 'writer', 'Breaks.')\n"
        "@hookimpl\ndef reed_rules(table): return []\n"
    )
    return {"acme.hooked": "acme_hooked"}


def _other_api(folder: Path) -> dict[str, str]:
    (folder / "acme_future.py").write_text(
        "from delta_core.api import TableFeature\nFEATURE = TableFeature('acme.future', 'writer', 'Later.', api=99)\n"
    )
    return {"acme.future": "acme_future"}


Broken = Callable[[Path], dict[str, str]]
BROKEN: dict[Broken, type[PluginError]] = {
    _failing_import: PluginError,
    _unknown_hook: HookContractError,
    _other_api: PluginError,
}


def _install(folder: Path, package: str, points: dict[str, str]) -> None:
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, and a registry that has not looked yet."""
    folder = tmp_path / "site"
    folder.mkdir()
    loaded = set(sys.modules)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(registries, "_default", None)
    yield folder
    for name in set(sys.modules) - loaded:
        if name.startswith("acme_"):
            del sys.modules[name]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda f: f.__name__)
def test_unusable_plugin_leaves_other_tables_alone(tmp_path: Path, site: Path, broken: Broken) -> None:
    (name,) = points = broken(site)
    _install(site, "acme", points)
    with pytest.warns(RuntimeWarning, match=rf"{name}.*tables without it are unaffected") as told:
        write_deltalake(tmp_path / "t", ROWS, configuration={"acme.own": "1"})
    assert len(told) == 1
    table = DeltaTable(tmp_path / "t")
    with warnings.catch_warnings(action="error"):
        table.delete("id = 2")
        table.alter.set_table_properties({"delta.appendOnly": "false"})
        table.vacuum(dry_run=True)
        table.restore(0)
        assert not table.verify().findings
        DeltaTable.create(tmp_path / "u", ROWS.schema)
    assert table.to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("broken", BROKEN, ids=lambda f: f.__name__)
def test_table_that_lists_the_feature_of_an_unusable_plugin_is_rejected_with_its_error(
    tmp_path: Path, site: Path, broken: Broken
) -> None:
    (name,) = points = broken(site)
    _install(site, "acme", points)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [name], "writerFeatures": [name]}
    TableBuilder(tmp_path / "t").create({"id": "long"}, protocol=protocol).append([{"id": 1}])
    with pytest.raises(BROKEN[broken]):
        DeltaTable(tmp_path / "t")


def test_feature_that_two_packages_provide_leaves_other_tables_alone(tmp_path: Path, site: Path) -> None:
    text = "from delta_core.api import TableFeature\nFEATURE = TableFeature('acme.twice', 'writer', 'Twice.')\n"
    for package in ("one", "two"):
        (site / f"acme_{package}.py").write_text(text)
        _install(site, f"acme_{package}", {"acme.twice": f"acme_{package}"})
    with pytest.warns(RuntimeWarning, match=r"'acme.twice' is provided twice: by acme_\w+ and by acme_\w+"):
        write_deltalake(tmp_path / "t", ROWS)
    with pytest.raises(PluginConflictError, match="Uninstall one"):
        DeltaTable(tmp_path / "t").alter.add_feature("acme.twice", allow_protocol_versions_increase=True)


def test_unknown_property_is_rejected_with_the_plugin_that_may_know_it(tmp_path: Path, site: Path) -> None:
    _install(site, "acme", _failing_import(site))
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(InvalidArgumentError, match=r"delta.acmeLimit.* is not known.*acme_broken.*can't be imported"),
    ):
        write_deltalake(tmp_path / "t", ROWS, configuration={"delta.acmeLimit": "1"})
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_command_lists_the_unusable_plugin_with_its_error(site: Path) -> None:
    _install(site, "acme", _failing_import(site))
    result = CliRunner().invoke(features, ["--json"], catch_exceptions=False)
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert "can't be imported: ModuleNotFoundError" in rows["acme.broken"]["error"]
    assert "error" not in rows["deletionVectors"]


def test_vacuum_keeps_vectors_if_their_plugin_is_missing(tmp_path: Path) -> None:
    """The feature was dropped since, so the protocol of the table does not name it any more."""
    shutil.copytree(_table_with_old_vectors(tmp_path / "made"), tmp_path / "t")
    before = sorted(p.name for p in (tmp_path / "t").rglob("*"))
    table = DeltaTable(tmp_path / "t", plugins=Without("deletionVectors"))
    with pytest.raises(UnsupportedFeatureError, match=r"deletion vectors, and no usable plugin specifies"):
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert sorted(p.name for p in (tmp_path / "t").rglob("*")) == before


def _table_with_old_vectors(path: Path) -> Path:
    rows = pa.table({"id": pa.array(range(100), pa.int64())})
    write_deltalake(path, rows, configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(path)
    table.delete("id = 3")
    table.alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    write_deltalake(table, rows, mode="overwrite")
    # a writer that dropped the feature without waiting for its history
    log = path / "_delta_log"
    version = max(int(p.stem) for p in log.glob("*.json"))
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    (log / f"{version + 1:020}.json").write_text(json.dumps(protocol) + "\n")
    return path
