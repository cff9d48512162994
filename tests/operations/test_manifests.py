"""Symlink manifests: the files of a version by partition, kept up to date by commits if the property requires it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, Field, write_deltalake
from delta_core.errors import EngineError, InvalidArgumentError, UnsupportedOperationError
from delta_core.storage.local import LocalStorage
from tests.example_counts import examples
from tests.operations.row_tables import MAPPED, VECTORS, rows_of, table_of

KEPT = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
ROWS = [(i, ["a", "b", "x y/%=", None][i % 4], i / 2) for i in range(12)]


def manifests(folder: Path) -> dict[str, list[str]]:
    root = folder / "_symlink_format_manifest"
    found = {p.parent.relative_to(root): p.read_text() for p in root.rglob("manifest")}
    return {str(place).replace(".", ""): text.splitlines() for place, text in found.items()}


def named_rows(folder: Path) -> list[Any]:
    """Return the rows of the files that manifests name, partitioned by p."""
    found = []
    for place, paths in manifests(folder).items():
        text = place.removeprefix("p=")
        value = {"__HIVE_DEFAULT_PARTITION__": None, "x y%2F%25%3D": "x y/%="}.get(text, text)
        for path in paths:
            table = pq.ParquetFile(path.removeprefix("file:")).read()
            found += [(i, value, x) for i, x in zip(*(table.column(n).to_pylist() for n in ("id", "x")), strict=True)]
    return sorted(found, key=repr)


def test_manifests_name_the_files_of_the_latest_version(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "a b", table_of(ROWS), partition_by=["p"])
    table = DeltaTable(tmp_path / "a b")
    table.generate()
    assert set(manifests(tmp_path / "a b")) == {"p=a", "p=b", "p=x y%2F%25%3D", "p=__HIVE_DEFAULT_PARTITION__"}
    assert named_rows(tmp_path / "a b") == sorted(ROWS, key=repr)
    DeltaTable(tmp_path / "a b").delete("p = 'b'")
    table.generate("symlink_format_manifest")
    assert "p=b" not in manifests(tmp_path / "a b")
    assert named_rows(tmp_path / "a b") == [r for r in sorted(ROWS, key=repr) if r[1] != "b"]


def test_table_without_partitions_has_one_manifest_even_if_it_is_empty(tmp_path: Path) -> None:
    write_deltalake(tmp_path, table_of(ROWS))
    DeltaTable(tmp_path).generate()
    assert [Path(p).name for p in manifests(tmp_path)[""]] == [Path(p).name for p in DeltaTable(tmp_path).file_uris()]
    DeltaTable(tmp_path).delete()
    DeltaTable(tmp_path).generate()
    assert manifests(tmp_path) == {"": []}


def test_rows_that_manifests_can_not_represent_are_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "v", table_of(ROWS), configuration=VECTORS)
    table = DeltaTable(tmp_path / "v")
    table.generate()
    table.delete("id = 3")
    with pytest.raises(UnsupportedOperationError, match=r"optimize\.purge"):
        table.generate()
    table.optimize.purge()
    table.generate()
    write_deltalake(tmp_path / "m", table_of(ROWS), configuration=MAPPED)
    with pytest.raises(UnsupportedOperationError, match="other names"):
        DeltaTable(tmp_path / "m").generate()
    with pytest.raises(InvalidArgumentError, match="symlink_format_manifest"):
        table.generate("manifest")  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [VECTORS, MAPPED], ids=["vectors", "mapping"])
def test_property_beside_what_manifests_can_not_represent_is_rejected(tmp_path: Path, other: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="wrong rows"):
        write_deltalake(tmp_path / "new", table_of(ROWS), configuration={**KEPT, **other})
    write_deltalake(tmp_path / "a", table_of(ROWS), configuration=KEPT)
    alter = DeltaTable(tmp_path / "a").alter
    if other == MAPPED:  # columns that are there keep their names in files, others get new ones
        alter.set_table_properties(other)
    with pytest.raises(InvalidArgumentError, match="wrong rows"):
        alter.add_columns([Field("more", "string")]) if other == MAPPED else alter.set_table_properties(other)
    write_deltalake(tmp_path / "b", table_of(ROWS), configuration=other)
    with pytest.raises(InvalidArgumentError, match="wrong rows"):
        DeltaTable(tmp_path / "b").alter.set_table_properties(KEPT)
    DeltaTable(tmp_path / "a").alter.set_table_properties({"custom.x": "1"})


STEPS = st.lists(st.sampled_from(["append", "delete", "drop a", "overwrite", "update", "compact"]), max_size=6)


@given(steps=STEPS)
@settings(max_examples=examples(12), deadline=None)
def test_commits_keep_manifests_up_to_date(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    folder = tmp_path_factory.mktemp("manifests") / "t"
    write_deltalake(folder, table_of(ROWS), partition_by=["p"], configuration=KEPT)
    table = DeltaTable(folder)
    for number, step in enumerate([*steps, "append"]):
        if step == "append":
            write_deltalake(table, table_of([(100 + number, "ab"[number % 2], None)]), mode="append")
        elif step == "delete":
            table.delete(f"id % 3 = {number % 3}")
        elif step == "drop a":
            table.delete("p = 'a'")
        elif step == "overwrite":
            write_deltalake(table, table_of([(200 + number, "n", 1.0)]), mode="overwrite")
        elif step == "update":
            table.update({"x": "x + 1"}, predicate=f"id % 4 = {number % 4}")
        else:
            table.optimize.compact()
        assert named_rows(folder) == rows_of(DeltaTable(folder).to_pyarrow_table())


def test_only_manifests_of_touched_partitions_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(tmp_path, table_of(ROWS), partition_by=["p"], configuration=KEPT)
    table = DeltaTable(tmp_path)
    written: list[str] = []
    real = LocalStorage.put

    def put(self: Any, path: str, data: bytes) -> None:
        written.append(path)
        real(self, path, data)

    monkeypatch.setattr(LocalStorage, "put", put)
    write_deltalake(table, table_of([(70, "b", None)]), mode="append")
    assert [p for p in written if "manifest" in p] == ["_symlink_format_manifest/p=b/manifest"]


def test_manifest_that_can_not_be_written_leaves_the_commit_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_deltalake(tmp_path, table_of(ROWS), partition_by=["p"], configuration=KEPT)
    table = DeltaTable(tmp_path)

    def put(self: Any, path: str, data: bytes) -> None:
        raise EngineError("the disk is full")

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(LocalStorage, "put", put)
        write_deltalake(table, table_of([(70, "b", None)]), mode="append")
    assert "out of date: the disk is full. Call generate()" in caplog.text
    assert table.version() == 1
    table.generate()
    assert named_rows(tmp_path) == rows_of(DeltaTable(tmp_path).to_pyarrow_table())
