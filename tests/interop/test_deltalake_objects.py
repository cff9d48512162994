"""Objects of the real `deltalake` package in calls of this library, and this one's where only those are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, Field, QueryBuilder, Schema, convert_to_deltalake, write_deltalake
from delta_core.deltalake_names.transaction import create_table_with_add_actions
from delta_core.errors import InvalidArgumentError
from delta_core.schema.types import ArrayType, MapType, PrimitiveType, StructType

deltalake = pytest.importorskip("deltalake", reason="its objects are passed to this library")

ROWS = pa.table({"a": [1, 2, 3]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    deltalake.write_deltalake(str(tmp_path / "t"), ROWS)
    return str(tmp_path / "t")


def test_table_is_written_to_and_sees_the_new_version(uri: str) -> None:
    table = deltalake.DeltaTable(uri)
    write_deltalake(table, pa.table({"a": [4]}), mode="append")
    assert table.version() == 1
    assert table.count() == 4


def test_table_keeps_its_version(uri: str) -> None:
    write_deltalake(uri, pa.table({"a": [4]}), mode="append")
    old = deltalake.DeltaTable(uri, version=0)
    found = QueryBuilder().register("t", old).execute("SELECT count(*) AS n FROM t").read_all()
    assert found.to_pylist() == [{"n": 3}]


def test_options_of_a_commit(uri: str) -> None:
    commit = deltalake.CommitProperties(
        custom_metadata={"job": "nightly"}, max_commit_retries=2, app_transactions=[deltalake.Transaction("app", 7)]
    )
    post = deltalake.PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    table = DeltaTable(uri)
    table.alter.set_table_properties({"delta.checkpointInterval": "1"}, commit_properties=commit)
    for _ in range(2):  # the application has written that version
        write_deltalake(table, ROWS, mode="append", commit_properties=commit, post_commithook_properties=post)
    assert table.version() == 1
    later = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", 8)])
    write_deltalake(table, ROWS, mode="append", commit_properties=later, post_commithook_properties=post)
    table.delete("a = 1", commit_properties=deltalake.CommitProperties(custom_metadata={"job": "x"}))
    assert table.transaction_version("app") == 8
    assert [h.get("job") for h in table.history()] == ["x", None, "nightly", None]
    logs = {p.name for p in Path(uri, "_delta_log").iterdir()}
    assert f"{2:020}.checkpoint.parquet" not in logs
    assert f"{3:020}.checkpoint.parquet" in logs


def test_writer_properties(uri: str, tmp_path: Path) -> None:
    plain = deltalake.ColumnProperties(
        dictionary_enabled=False, bloom_filter_properties=deltalake.BloomFilterProperties(True, 0.01, 10)
    )
    given = deltalake.WriterProperties(compression="ZSTD", compression_level=3, column_properties={"a": plain})
    target = str(tmp_path / "new")
    write_deltalake(target, ROWS, writer_properties=given)
    for path in (*DeltaTable(target).file_uris(), *_compacted(uri, given)):
        chunk = pq.read_metadata(path.removeprefix("file://")).row_group(0).column(0)
        assert chunk.compression == "ZSTD"
        assert not chunk.has_dictionary_page


def _compacted(uri: str, properties: Any) -> list[str]:
    write_deltalake(uri, ROWS, mode="append")
    table = DeltaTable(uri)
    table.optimize.compact(writer_properties=properties)
    return table.file_uris()


def test_fields_and_types(uri: str, tmp_path: Path) -> None:
    types = deltalake.schema
    field = deltalake.Field("b", types.ArrayType(types.PrimitiveType("string"), True), metadata={"comment": "c"})
    expected = Field("b", ArrayType("string", True), metadata={"comment": "c"})
    assert list(Schema([field]).fields) == [expected]
    assert Field("b", types.PrimitiveType("long")).type == PrimitiveType("long")
    nested = types.StructType([deltalake.Field("x", "double", nullable=False)])
    assert MapType("string", nested, True).value_type == StructType([Field("x", "double", nullable=False)])
    table = DeltaTable(uri)
    table.alter.add_columns(field)
    table.alter.add_columns([deltalake.Field("c", "date")])
    assert table.schema().names == ["a", "b", "c"]
    assert table.schema().get("b") == expected
    made = DeltaTable.create(str(tmp_path / "made"), schema=deltalake.DeltaTable(uri).schema())
    assert made.schema() == table.schema()


def test_features(uri: str) -> None:
    table = DeltaTable(uri)
    table.alter.add_feature(deltalake.TableFeatures.AppendOnly, allow_protocol_versions_increase=True)
    table.alter.add_feature(
        [deltalake.TableFeatures.TimestampWithoutTimezone, "deletionVectors"], allow_protocol_versions_increase=True
    )
    assert set(table.protocol().writer_features or ()) >= {"appendOnly", "timestampNtz", "deletionVectors"}
    with pytest.raises(InvalidArgumentError, match="Found a feature as int, expected its name"):
        table.alter.add_feature(7)  # type: ignore[arg-type]


def test_actions(uri: str, tmp_path: Path) -> None:
    from deltalake.transaction import AddAction

    folder = tmp_path / "made"
    folder.mkdir()
    pq.write_table(ROWS, folder / "0.parquet")
    action = AddAction("0.parquet", (folder / "0.parquet").stat().st_size, {}, 1_700_000_000_000, True, "{}")
    create_table_with_add_actions(str(folder), deltalake.DeltaTable(uri).schema(), [action])
    table = DeltaTable(str(folder))
    assert table.count() == 3
    pq.write_table(ROWS, folder / "1.parquet")
    action = AddAction("1.parquet", (folder / "1.parquet").stat().st_size, {}, 1_700_000_000_000, True, "{}")
    table.create_write_transaction([action], "append", ROWS.schema, commit_properties=deltalake.CommitProperties())
    assert table.count() == 6


def test_conversion_takes_its_options(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "0.parquet")
    convert_to_deltalake(str(tmp_path), commit_properties=deltalake.CommitProperties(custom_metadata={"job": "c"}))
    assert DeltaTable(str(tmp_path)).history(1)[0]["job"] == "c"


def test_other_objects_are_rejected_by_name(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"as deltalake\.\S+\.WriterProperties; expected CommitP"):
        write_deltalake(uri, ROWS, mode="append", commit_properties=deltalake.WriterProperties())
    with pytest.raises(InvalidArgumentError, match="Found an action as str; expected AddAction"):
        DeltaTable(uri).create_write_transaction(["x"], "append", ROWS.schema)  # type: ignore[list-item]
    assert DeltaTable(uri).version() == 0


def test_libraries_that_need_the_name_reject_tables_of_this_one(uri: str) -> None:
    """Without the alias, Polars looks for the class of deltalake, and takes other objects for the text of a path."""
    polars = pytest.importorskip("polars", reason="reads a table of this library")
    with pytest.raises(Exception, match="does not exist"):
        polars.scan_delta(DeltaTable(uri)).collect()
    with pytest.raises(ValueError, match="must be a str, Path or DeltaTable"):
        polars.DataFrame({"a": [4]}).write_delta(DeltaTable(uri), mode="append")
    assert DeltaTable(uri).version() == 0
