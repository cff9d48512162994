"""Datasets that pylance wrote: versions, rows, metadata columns, chosen rows, history, references."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core.api import make_engine
from delta_core.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    DataFileError,
    DataFileNotFoundError,
    ExpressionError,
    ExternalPathError,
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import FORMAT, open_dataset
from delta_plugins.lance.names import manifest_names
from delta_plugins.lance.projection import METADATA
from delta_plugins.lance.row_ids import encode_ids
from delta_plugins.lance.wire import decode
from tests.lance.manifests import container, fragment, manifest
from tests.lance.test_manifest import calls

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = ("stable", "plain")


@cache
def recorded(name: str) -> dict[str, dict[str, list[Any]]]:
    found: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return found


def opened(name: str, **arguments: Any) -> LanceDataset:
    return open_dataset(str(FIXTURES / name), **arguments)


def plain(table: pa.Table) -> dict[str, list[Any]]:
    """Return columns as they are recorded."""
    return json.loads(json.dumps(table.to_pydict(), default=str))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NAMES)
def test_each_version_has_the_rows_that_its_writer_read(name: str) -> None:
    for version, expected in recorded(name).items():
        dataset = opened(name, version=int(version))
        found = dataset.to_pyarrow_table(metadata=METADATA)
        found.validate(full=True)
        assert plain(found) == expected, version
        assert dataset.count() == dataset.stats().num_rows == found.num_rows
        small = dataset.scan(metadata=METADATA, batch_rows=7)
        assert small.to_table().equals(found)
        assert max(b.num_rows for b in small.batches()) == 7


@pytest.mark.parametrize("name", NAMES)
def test_columns_and_limit(name: str) -> None:
    dataset = opened(name)
    whole = dataset.to_pyarrow_table()
    assert dataset.schema() == whole.schema
    assert dataset.to_pyarrow_table(["text", "ID"]).equals(whole.select(["text", "id"]))
    nested = dataset.to_pyarrow_table(["s.tags"])
    assert nested["s"].to_pylist() == [{"tags": row["tags"]} for row in whole["s"].to_pylist()]
    for limit in (0, 1, 39, 40, 41, 500):
        for size in (3, 1 << 16):
            assert dataset.scan(limit=limit, batch_rows=size).to_table().equals(whole.slice(0, limit))
    assert dataset.head(3).equals(whole.slice(0, 3))
    assert dataset.scan([]).to_table().num_rows == whole.num_rows
    assert pa.table(dataset).equals(whole)
    assert pa.table(dataset.scan(["id"])).equals(whole.select(["id"]))


PREDICATES = {
    "id = 42": pc.field("id") == 42,
    "id > 90 and text = 'new'": (pc.field("id") > 90) & (pc.field("text") == "new"),
    "not (id < 90)": pc.field("id") >= 90,
    "text is null": pc.field("text").is_null(),
    "not (text = 'new')": pc.field("text") != "new",
    "s.x < 3 or id in (95, 98)": (pc.field("s", "x") < 3) | pc.field("id").isin([95, 98]),
    "id < 0": pc.field("id") < 0,
    "true": pc.scalar(True),
    "null": pc.scalar(False),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_predicate_selects_rows(name: str, predicate: str) -> None:
    dataset = opened(name, version=7)
    columns = ["id", *METADATA]
    expected = dataset.to_pyarrow_table(metadata=METADATA).filter(PREDICATES[predicate]).select(columns)
    scan = dataset.scan(["id"], predicate, metadata=METADATA, batch_rows=16)
    assert scan.to_table().equals(expected)
    assert scan.count() == dataset.count(predicate) == expected.num_rows
    assert dataset.scan(["id"], predicate, metadata=METADATA, limit=5).to_table().equals(expected.slice(0, 5))
    assert dataset.scan(["id"], predicate, limit=5).count() == min(5, expected.num_rows)


def test_condition_without_a_meaning_for_a_type_is_rejected_by_its_name() -> None:
    with pytest.raises(ExpressionError, match="uint16"):
        opened("plain").scan(predicate="U and true")
    with pytest.raises(ColumnNotFoundError, match="nothing"):
        opened("plain").scan(predicate="nothing = 3")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", [1, 4, 8, 11])
def test_chosen_rows_are_returned_in_their_order(name: str, version: int) -> None:
    dataset = opened(name, version=version)
    whole = dataset.to_pyarrow_table(metadata=METADATA)
    order = [5, 0, 99, 5, whole.num_rows - 1, 60, 59, 5]
    expected = whole.take(order)
    assert dataset.take(order, metadata=METADATA).equals(expected)
    for by, column in (("address", "_rowaddr"), ("id", "_rowid")):
        numbers = whole[column].take(order)
        for rows in (numbers, numbers.to_pylist(), numbers.to_numpy()):
            assert dataset.take(rows, by=by, metadata=METADATA).equals(expected), by  # type: ignore[arg-type]
    assert dataset.take(range(whole.num_rows)).equals(dataset.to_pyarrow_table())
    assert dataset.take([], ["id"]).equals(whole.select(["id"]).slice(0, 0))


def test_absent_rows_are_rejected_by_number() -> None:
    dataset = opened("stable", version=4)
    total = dataset.count()
    with pytest.raises(InvalidArgumentError, match=f"by position: {total}, {total + 5}"):
        dataset.take([0, total, total + 5])
    deleted = {3, 13, 23}
    with pytest.raises(InvalidArgumentError, match="by id: 3, 13, 23"):
        dataset.take([0, *sorted(deleted)], by="id")
    with pytest.raises(InvalidArgumentError, match="by address: 3, 40, 4294967336"):
        dataset.take([0, 3, 40, (1 << 32) + 40], by="address")
    with pytest.raises(InvalidArgumentError, match=f"{99 << 32}"):
        dataset.take([99 << 32], by="address")
    with pytest.raises(InvalidArgumentError, match="and 7 others"):
        dataset.take(range(1000, 1012))


@pytest.mark.parametrize("rows", [[-1], [1.5], ["a"], [[1]], [True], 3, [None]])
def test_rows_that_are_no_numbers_are_rejected(rows: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        opened("plain").take(rows)


def test_unknown_kind_of_rows_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="'rowid'"):
        opened("plain").take([1], by="rowid")  # type: ignore[arg-type]


def test_sample_is_the_same_from_the_same_seed() -> None:
    dataset = opened("plain")
    first, again, other = (dataset.sample(20, seed=s)["id"].to_pylist() for s in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 20
    assert dataset.sample(1000, seed=3).equals(dataset.to_pyarrow_table())
    with pytest.raises(InvalidArgumentError, match="-1"):
        dataset.sample(-1)


# --- versions and references -----------------------------------------------------------------


def test_versions_are_opened_by_number_tag_time_and_branch() -> None:
    latest = opened("stable")
    assert latest.version == latest.versions()[-1] == 11
    assert opened("stable", tag="deleted").version == 3
    made = latest.history()[-4]
    assert made["version"] == 4
    assert opened("stable", timestamp=datetime.fromtimestamp(made["timestamp"] / 1000, UTC)).version >= 4
    assert opened("stable", timestamp="2100-01-01").version == 11
    assert latest.checkout(2).version == 2
    assert latest.checkout(tag="deleted").version == 3
    assert latest.checkout("2100-01-01T00:00:00Z").version == 11
    branch = latest.checkout(branch="dev/one")
    assert (branch.version, branch.branch) == (9, "dev/one")
    assert branch.checkout(8).count() == latest.checkout(8).count()
    assert min(branch.to_pyarrow_table(["id"])["id"].to_pylist()) >= 50
    assert branch.checkout(branch="main").version == 11


def test_load_another_version_into_the_object() -> None:
    dataset = opened("stable")
    before, schema = dataset.scan(["id"]), dataset.schema()
    dataset.load_as_version(1)
    assert (dataset.version, dataset.count()) == (1, dataset.checkout(1).count())
    assert before.count() == dataset.checkout(11).count() != dataset.count()
    with pytest.raises(VersionNotFoundError):
        dataset.load_as_version(99)
    assert dataset.version == 1
    dataset.update_incremental()
    assert (dataset.version, dataset.schema()) == (11, schema)
    dataset.load_as_version(branch="dev/one")
    dataset.update_incremental()
    assert (dataset.version, dataset.branch) == (9, "dev/one")


def test_what_is_not_there_is_rejected() -> None:
    with pytest.raises(VersionNotFoundError, match="Version 12 is not there; there are 1 earlier ones and 2, 3"):
        opened("stable", version=12)
    with pytest.raises(VersionNotFoundError, match="no tag 'x'; there are: 'deleted'"):
        opened("stable", tag="x")
    with pytest.raises(TableNotFoundError, match="tree/x"):
        opened("stable", branch="x")
    with pytest.raises(VersionNotFoundError, match="until 1999"):
        opened("stable", timestamp="1999-01-01")
    with pytest.raises(InvalidArgumentError, match="version and tag"):
        opened("stable", version=1, tag="deleted")
    with pytest.raises(InvalidArgumentError, match="'deleted' is of branch 'main', not of 'dev/one'"):
        opened("stable", tag="deleted", branch="dev/one")
    for version in (-1, 1.5, True):
        with pytest.raises(InvalidArgumentError):
            opened("stable", version=version)
    with pytest.raises(VersionNotFoundError):
        opened("stable", version=1 << 63)


def test_history_lists_operations_from_the_latest_on() -> None:
    found = opened("stable").history()
    assert [h["operation"] for h in found] == [
        "restore", "rewrite", "reserve_fragments", "update_config", "update", "project", "merge", "update", "delete",
        "append", "overwrite",
    ]  # fmt: skip
    assert [h["version"] for h in found] == list(range(11, 0, -1))
    assert found[-3]["operationParameters"]["predicate"] == "id % 10 = 3"
    assert found[-3]["tags"] == ["deleted"]
    assert found[0]["engineInfo"] == "lance 14.0.2"
    assert opened("stable", version=5).history(2)[0]["version"] == 5
    assert len(opened("stable").history(2)) == 2
    with pytest.raises(InvalidArgumentError, match="-1"):
        opened("stable").history(-1)


def test_history_without_transaction_files_and_sections_has_versions(tmp_path: Path) -> None:
    copy = shutil.copytree(FIXTURES / "plain", tmp_path / "t")
    name = next((copy / "_transactions").glob("2-*.txn"))
    name.write_bytes(b"\xff")
    found = open_dataset(str(copy)).history()
    # the section in the manifest counts first
    assert [h["version"] for h in found] == list(range(11, 0, -1))


def test_references_are_listed() -> None:
    dataset = opened("stable")
    assert dataset.tags()["deleted"].version == 3
    assert dataset.branches()["dev/one"].parent_version == 8


def test_fragments_and_stats_describe_the_files() -> None:
    dataset = opened("plain", version=4)
    table = dataset.fragments()
    stats = dataset.stats()
    assert table["id"].to_pylist() == sorted(table["id"].to_pylist())
    assert sum(table["num_deleted_rows"].to_pylist()) == stats.num_deleted_rows > 0
    assert stats.size_bytes == sum(
        (FIXTURES / "plain" / "data" / f["path"]).stat().st_size for files in table["files"].to_pylist() for f in files
    )
    assert stats.num_fragments == table.num_rows


# --- handles ---------------------------------------------------------------------------------


def test_pickles_open_the_same_version_again() -> None:
    for dataset in (opened("stable", version=4), opened("stable", branch="dev/one"), opened("stable", tag="deleted")):
        again = pickle.loads(pickle.dumps(dataset))
        assert repr(again) == repr(dataset)
        assert again.to_pyarrow_table().equals(dataset.to_pyarrow_table())
        scan = dataset.scan(["id"], "id > 60", limit=9, metadata=["_rowid"])
        assert pickle.loads(pickle.dumps(scan)).to_table().equals(scan.to_table())


def test_pickles_have_no_secrets() -> None:
    dataset = opened("plain", storage_options={"aws_secret_access_key": "hidden"})
    assert b"hidden" not in pickle.dumps(dataset)


def test_representations_name_the_version() -> None:
    dataset = opened("stable", branch="dev/one")
    assert "version=9, branch='dev/one'" in repr(dataset)
    assert re.search(r">text</td><td[^>]*>string</td>", dataset._repr_html_())


def test_dataset_is_recognised_by_its_manifests(tmp_path: Path) -> None:
    assert FORMAT.recognise(opened("plain").files.engine)
    (tmp_path / "_versions").mkdir()
    engine = make_engine("arrow", str(tmp_path), None)
    assert not FORMAT.recognise(engine)
    (tmp_path / "_versions" / "latest_version_hint.json").write_text("{}")
    assert not FORMAT.recognise(engine)
    (tmp_path / "_versions" / "1.manifest").write_bytes(b"")
    assert FORMAT.recognise(engine)
    (tmp_path / "_versions" / "18446744073709551614.manifest").write_bytes(b"")
    assert FORMAT.recognise(engine)
    with pytest.raises(CorruptTableError, match="two naming schemes"):
        open_dataset(str(tmp_path))


def test_folder_without_manifests_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="no manifest"):
        open_dataset(str(tmp_path))


# --- damage ------------------------------------------------------------------------------------


def written(path: Path, message: dict[str, Any], version: int = 1) -> str:
    (path / "_versions").mkdir(exist_ok=True)
    (path / "_versions" / f"{version}.manifest").write_bytes(container(message))
    return str(path)


def test_manifest_of_another_version_is_rejected(tmp_path: Path) -> None:
    uri = written(tmp_path, manifest(version=2), 1)
    for arguments in ({}, {"version": 1}):
        with pytest.raises(CorruptTableError, match="of version 2, but its name of version 1"):
            open_dataset(uri, **arguments)  # type: ignore[arg-type]


def test_half_written_manifest_is_rejected_and_earlier_versions_stay_readable(tmp_path: Path) -> None:
    copy = shutil.copytree(FIXTURES / "plain", tmp_path / "t")
    latest = min((copy / "_versions").glob("*.manifest"))
    latest.write_bytes(latest.read_bytes()[:-7])
    with pytest.raises(CorruptTableError, match=latest.name):
        open_dataset(str(copy))
    assert open_dataset(str(copy), version=10).count() == 122


def test_missing_data_file_is_reported_by_its_name(tmp_path: Path) -> None:
    copy = shutil.copytree(FIXTURES / "plain", tmp_path / "t")
    dataset = open_dataset(str(copy), version=2)
    path = dataset.files.file_path(1, 0)
    (copy / path).unlink()
    with pytest.raises(DataFileNotFoundError, match=path):
        dataset.to_pyarrow_table()
    with pytest.raises(DataFileNotFoundError, match=path):
        dataset.take([45])
    assert dataset.take([1, 2]).num_rows == 2


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> LanceDataset:
    """Return version 2 of a copy of a dataset whose manifest was changed."""
    copy = shutil.copytree(FIXTURES / "plain", path / "t")
    place = copy / "_versions" / manifest_names(2)[0]
    data = place.read_bytes()
    at = int.from_bytes(data[-16:-8], "little")
    message = decode("Manifest", data[at + 4 : -16], "m")
    change(message)
    place.write_bytes(container(message))
    return open_dataset(str(copy), version=2)


@pytest.mark.parametrize("rows", [39, 41, 1 << 31])
def test_data_file_with_another_number_of_rows_is_rejected(tmp_path: Path, rows: int) -> None:
    def change(message: dict[str, Any]) -> None:
        message["fragments"][1]["physical_rows"] = rows

    dataset = changed(tmp_path, change)
    path = dataset.files.file_path(1, 0)
    with pytest.raises(DataFileError, match=rf"'{path}' has 40 rows, but fragment 1 has {rows}"):
        dataset.to_pyarrow_table()
    with pytest.raises(DataFileError, match=f"but fragment 1 has {rows}"):
        dataset.take([1 << 32], by="address")


@pytest.mark.parametrize("size", [39, 100, 1 << 40])
def test_data_file_of_another_size_is_rejected(tmp_path: Path, size: int) -> None:
    def change(message: dict[str, Any]) -> None:
        message["fragments"][0]["files"][0]["file_size_bytes"] = size

    dataset = changed(tmp_path, change)
    with pytest.raises(DataFileError, match=dataset.files.file_path(0, 0)):
        dataset.to_pyarrow_table()


def test_facts_that_early_manifests_lack_are_found_in_files(tmp_path: Path) -> None:
    def change(message: dict[str, Any]) -> None:
        message["writer_version"] = None
        for part in message["fragments"]:
            part["physical_rows"] = 0 if part["id"] else 7
            part["files"][0]["file_size_bytes"] = 0

    dataset = changed(tmp_path, change)
    expected = opened("plain", version=2)
    assert dataset.count() == expected.count()
    assert dataset.stats().size_bytes is None
    assert dataset.to_pyarrow_table().equals(expected.to_pyarrow_table())
    assert dataset.take([129, 0]).equals(expected.take([129, 0]))


def test_plan_of_a_scan_makes_as_many_calls_for_any_number_of_fragments(tmp_path: Path) -> None:
    def of(n: int) -> int:
        folder = tmp_path / str(n)
        folder.mkdir()
        written(folder, manifest(fragments=[fragment(i) for i in range(n)]))

        def act() -> None:
            dataset = open_dataset(str(folder))
            dataset.scan(["a"], "a > 3", metadata=["_rowid", "_rowaddr"])
            dataset.count()
            dataset.stats()
            dataset.fragments()

        return calls(act)

    of(1)
    assert of(10) == of(10_000)


def test_row_ids_in_a_file_of_their_own_are_read(tmp_path: Path) -> None:
    def change(message: dict[str, Any]) -> None:
        for part in message["fragments"]:
            part["inline_row_ids"] = encode_ids(np.arange(part["physical_rows"], dtype=np.uint64) + part["id"] * 1000)
        first = message["fragments"][0]
        ids = first["inline_row_ids"]
        first["inline_row_ids"] = None
        first["external_row_ids"] = {"path": "ids.bin", "offset": 3, "size": len(ids)}
        message["reader_feature_flags"] |= 2
        message["writer_feature_flags"] |= 2
        (tmp_path / "t" / "ids.bin").write_bytes(b"abc" + ids + b"rest")

    dataset = changed(tmp_path, change)
    found = dataset.to_pyarrow_table(["id"], metadata=["_rowid"])
    assert found["_rowid"].to_pylist()[38:42] == [38, 39, 1000, 1001]
    assert dataset.take([1001, 7], by="id", columns=["id"])["id"].to_pylist() == [41, 7]
    (tmp_path / "t" / "ids.bin").write_bytes(b"abc")
    with pytest.raises(CorruptTableError, match="row ids of fragment 0"):
        open_dataset(dataset.uri, version=2).to_pyarrow_table(metadata=["_rowid"])
    (tmp_path / "t" / "ids.bin").unlink()
    with pytest.raises(DataFileNotFoundError, match=r"ids\.bin"):
        open_dataset(dataset.uri, version=2).to_pyarrow_table(metadata=["_rowid"])


def test_row_ids_of_another_number_are_rejected(tmp_path: Path) -> None:
    def change(message: dict[str, Any]) -> None:
        for part in message["fragments"]:
            part["inline_row_ids"] = encode_ids(np.arange(39, dtype=np.uint64))
        message["reader_feature_flags"] |= 2
        message["writer_feature_flags"] |= 2

    dataset = changed(tmp_path, change)
    assert dataset.to_pyarrow_table().num_rows == 130
    with pytest.raises(CorruptTableError, match="they are 39, but the fragment has 40 rows"):
        dataset.to_pyarrow_table(metadata=["_rowid"])


def test_files_of_another_base_path_are_read(tmp_path: Path) -> None:
    other = shutil.copytree(FIXTURES / "plain" / "data", tmp_path / "other")

    def change(message: dict[str, Any]) -> None:
        message["base_paths"] = [
            {"id": 3, "path": str(other)},
            {"id": 4, "path": str(tmp_path / "t"), "is_dataset_root": True},
        ]
        message["fragments"][0]["files"][0]["base_id"] = 3
        message["fragments"][1]["files"][0]["base_id"] = 4
        message["reader_feature_flags"] |= 16
        message["writer_feature_flags"] |= 16
        (tmp_path / "t" / "data" / message["fragments"][0]["files"][0]["path"]).unlink()

    dataset = changed(tmp_path, change)
    assert dataset.to_pyarrow_table().equals(opened("plain", version=2).to_pyarrow_table())
    closed = open_dataset(dataset.uri, version=2, allow_external=False)
    with pytest.raises(ExternalPathError):
        closed.to_pyarrow_table()


def test_managed_blobs_are_rejected_if_they_are_requested(tmp_path: Path) -> None:
    def change(message: dict[str, Any]) -> None:
        message["reader_feature_flags"] |= 16384
        message["writer_feature_flags"] |= 16384
        message["fields"][1]["metadata"]["lance-encoding:blob"] = b"true"

    dataset = changed(tmp_path, change)
    assert dataset.to_pyarrow_table(["id"]).num_rows == 130
    with pytest.raises(UnsupportedFeatureError, match=r"'text' has blobs.*16384"):
        dataset.scan()


def test_children_of_a_struct_lie_in_different_files(tmp_path: Path) -> None:
    def change(message: dict[str, Any]) -> None:
        for part in message["fragments"]:
            [file] = part["files"]
            columns = list(zip(file["fields"], file["column_indices"], strict=True))
            ids = {f["name"]: f["id"] for f in message["fields"]}
            moved = [(f, c) for f, c in columns if f == ids["x"]]
            kept = [(f if f != ids["x"] else -2, c) for f, c in columns]
            part["files"] = [
                {**file, "fields": [f for f, _ in pairs], "column_indices": [c for _, c in pairs]}
                for pairs in (kept, moved)
            ]

    dataset = changed(tmp_path, change)
    expected = opened("plain", version=2)
    assert dataset.to_pyarrow_table().equals(expected.to_pyarrow_table())
    assert dataset.take([100, 3]).equals(expected.take([100, 3]))
    assert dataset.count("s.x < 3") == expected.count("s.x < 3")
