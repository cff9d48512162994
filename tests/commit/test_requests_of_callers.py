"""What callers pass beside rows is stored as it is, or rejected by name, through every operation that takes it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import CommitProperties, DeltaTable, WriterProperties, convert_to_deltalake, write_deltalake
from delta_core.errors import InvalidArgumentError
from delta_core.kernel.commit.options import OWN_COMMIT_FIELDS
from delta_core.table.transaction import AppTransaction
from tests.bundled import needs

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})

# --- table properties ----------------------------------------------------------------------


def _write(path: Path, properties: dict[str, str]) -> None:
    write_deltalake(path, ROWS, configuration=properties)


def _create(path: Path, properties: dict[str, str]) -> None:
    DeltaTable.create(path, ROWS.schema, configuration=properties)


def _replace(path: Path, properties: dict[str, str]) -> None:
    write_deltalake(path, ROWS)
    DeltaTable.create(path, ROWS.schema, mode="overwrite", configuration=properties)


def _overwrite(path: Path, properties: dict[str, str]) -> None:
    write_deltalake(path, ROWS)
    write_deltalake(path, ROWS, mode="overwrite", schema_mode="overwrite", configuration=properties)


def _alter(path: Path, properties: dict[str, str]) -> None:
    write_deltalake(path, ROWS)
    DeltaTable(path).alter.set_table_properties(properties)


def _convert(path: Path, properties: dict[str, str]) -> None:
    path.mkdir()
    pq.write_table(ROWS, path / "a.parquet")
    convert_to_deltalake(path, configuration=properties)


def _clone(path: Path, properties: dict[str, str]) -> None:
    write_deltalake(path.with_name("source"), ROWS)
    DeltaTable(path.with_name("source")).clone(path, properties=properties)


OPERATIONS: list[Callable[[Path, dict[str, str]], None]] = [
    _write, _create, _replace, _overwrite, _alter, _convert, _clone,
]  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("delta.enableChangeDataFeeds", "Did you mean 'delta.enableChangeDataFeed'"),
        ("delta.deletedFilesRetentionDuration", "Did you mean 'delta.deletedFileRetentionDuration'"),
        ("DELTA.apendOnly", "Did you mean 'delta.appendOnly'"),
        (" delta.appendOnly", "Did you mean 'delta.appendOnly'"),
        ("delta.universalFormat.enabledFormats", ""),
    ],
)
def test_unknown_property_of_the_protocol_is_rejected(
    tmp_path: Path, operation: Callable[[Path, dict[str, str]], None], name: str, meant: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name}' is not known.*{meant}"):
        operation(tmp_path / "t", {name: "true"})
    if DeltaTable.is_deltatable(str(tmp_path / "t")):
        assert name not in DeltaTable(tmp_path / "t").metadata().configuration


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
def test_property_of_the_users_own_is_stored(tmp_path: Path, operation: Callable[[Path, dict[str, str]], None]) -> None:
    operation(tmp_path / "t", {"acme.owner": "me", "delta.AppendOnly": "false"})
    found = DeltaTable(tmp_path / "t").metadata().configuration
    assert (found["acme.owner"], found["delta.appendOnly"]) == ("me", "false")


def test_unknown_property_is_stored_if_that_is_requested_and_survives_other_operations(tmp_path: Path) -> None:
    unknown = {"delta.acmeLimit": "7"}
    DeltaTable.create(tmp_path / "t", ROWS.schema, configuration=unknown, raise_if_key_not_exists=False)
    table = DeltaTable(tmp_path / "t")
    write_deltalake(table, ROWS, mode="append")
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    table.alter.unset_table_properties(["delta.acmeLimit"])
    table.restore(1)
    copy = table.clone(tmp_path / "copy")
    assert table.metadata().configuration["delta.acmeLimit"] == copy.metadata().configuration["delta.acmeLimit"] == "7"


# --- a definition passed with a write to a table that exists --------------------------------

DEFINITION = {
    "name": "sales", "description": "all of them", "cluster_by": ["id"],
    "configuration": {"delta.appendOnly": "false", "acme.owner": "me", "delta.feature.domainMetadata": "supported"},
}  # fmt: skip


@needs("clustering")
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_definition_that_is_the_tables_own_is_accepted_again(tmp_path: Path, mode: Any) -> None:
    for _ in range(2):
        write_deltalake(tmp_path / "t", ROWS, mode=mode, **DEFINITION)
    assert DeltaTable(tmp_path / "t").version() == 1


@needs("clustering")
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("name", "other", "name: it stays 'sales', 'other' was passed"),
        ("description", "", "description: it stays 'all of them', '' was passed"),
        ("configuration", {"delta.AppendOnly": True}, "property delta.appendOnly: it stays 'false', 'true' was passed"),
        ("configuration", {"acme.shift": "1"}, "property acme.shift: it stays 'unset', '1' was passed"),
        (
            "configuration",
            {"delta.enableDeletionVectors": "true"},
            "property delta.enableDeletionVectors: it stays 'unset'",
        ),
        ("configuration", {"delta.feature.v2Checkpoint": "supported"}, "feature v2Checkpoint: it stays 'unsupported'"),
    ],
)
def test_definition_that_a_write_does_not_change_is_named_in_a_warning(
    tmp_path: Path, mode: Any, argument: str, value: Any, message: str
) -> None:
    rows = ROWS.append_column("kind", pa.array(["a", "b"]))
    write_deltalake(tmp_path / "t", rows, **DEFINITION)
    before = DeltaTable(tmp_path / "t").metadata(), DeltaTable(tmp_path / "t").protocol()
    with pytest.warns(UserWarning, match=message):
        write_deltalake(tmp_path / "t", rows, mode=mode, **{argument: value})
    assert (DeltaTable(tmp_path / "t").metadata(), DeltaTable(tmp_path / "t").protocol()) == before


@needs("clustering")
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_clustering_that_a_write_would_not_change_is_rejected(tmp_path: Path, mode: Any) -> None:
    rows = ROWS.append_column("kind", pa.array(["a", "b"]))
    write_deltalake(tmp_path / "t", rows, **DEFINITION)
    with pytest.raises(InvalidArgumentError, match="cluster_by is 'id', the write requests 'kind'"):
        write_deltalake(tmp_path / "t", rows, mode=mode, cluster_by=["kind"])
    assert DeltaTable(tmp_path / "t").version() == 0


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize(
    ("name", "stored", "again", "other"),
    [
        ("delta.enableDeletionVectors", "true", "TRUE", "False"),
        ("delta.logRetentionDuration", "interval 7 days", "1 week", "8 days"),
        ("delta.checkpointInterval", "10", "010", "20"),
        ("delta.targetFileSize", "1mb", "1048576", "2mb"),
    ],
)
def test_property_in_another_spelling_of_its_value_is_the_tables_own(
    tmp_path: Path, mode: Any, name: str, stored: str, again: str, other: str
) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration={name: stored})
    write_deltalake(tmp_path / "t", ROWS, mode=mode, configuration={name.upper(): again})
    with pytest.warns(UserWarning, match=f"property {name}: it stays '{stored}', '{other}' was passed"):
        write_deltalake(tmp_path / "t", ROWS, mode=mode, configuration={name: other})
    assert DeltaTable(tmp_path / "t").metadata().configuration[name] == stored


# --- fields of commitInfo ------------------------------------------------------------------


def _info(path: Path) -> dict[str, Any]:
    last = max((path / "_delta_log").glob("*.json"))
    lines = map(json.loads, last.read_text().splitlines())
    found: dict[str, Any] = next(line["commitInfo"] for line in lines if "commitInfo" in line)
    return found


def test_own_fields_are_those_that_a_commit_writes(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    write_deltalake(tmp_path / "t", ROWS, mode="append")
    assert _info(tmp_path / "t").keys() == OWN_COMMIT_FIELDS


@pytest.mark.parametrize("name", sorted(OWN_COMMIT_FIELDS))
def test_field_that_a_commit_sets_itself_is_rejected(name: str, tmp_path: Path) -> None:
    for written in (name, name.upper()):
        properties = CommitProperties(custom_metadata={written: "1"})
        with pytest.raises(InvalidArgumentError, match=f"key '{written}', which the commit sets itself"):
            write_deltalake(tmp_path / "t", ROWS, commit_properties=properties)
    assert not (tmp_path / "t").exists()
    write_deltalake(tmp_path / "t", ROWS)
    transaction = DeltaTable(tmp_path / "t").snapshot().begin("WRITE")
    with pytest.raises(InvalidArgumentError, match="which the commit sets itself"):
        transaction.commit(custom_metadata={name: "1"})


def test_field_that_a_feature_sets_is_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration={"delta.enableInCommitTimestamps": "true"})
    with pytest.raises(InvalidArgumentError, match="'inCommitTimestamp', which the table's feature"):
        write_deltalake(
            tmp_path / "t",
            ROWS,
            mode="append",
            commit_properties=CommitProperties(custom_metadata={"inCommitTimestamp": 1}),
        )
    assert DeltaTable(tmp_path / "t").version() == 0


@pytest.mark.parametrize("value", [datetime.date(2024, 5, 6), float("nan"), {"a": b"1"}, {1, 2}])
def test_value_without_a_form_in_json_is_rejected(value: object, tmp_path: Path) -> None:
    properties = CommitProperties(custom_metadata={"job": value})
    with pytest.raises(InvalidArgumentError, match=r"custom_metadata\['job'\].*JSON can't hold"):
        write_deltalake(tmp_path / "t", ROWS, commit_properties=properties)
    with pytest.raises(InvalidArgumentError, match=r"custom_metadata\['job'\].*JSON can't hold"):
        DeltaTable.create(tmp_path / "t", ROWS.schema, commit_properties=properties)
    assert not (tmp_path / "t").exists()


def test_fields_are_stored_as_they_were_passed(tmp_path: Path) -> None:
    given = {"job": None, "run": 7, "tags": {"a": [1, None]}, "userMetadata": "nightly"}
    write_deltalake(tmp_path / "t", ROWS, commit_properties=CommitProperties(custom_metadata=given))
    assert {name: _info(tmp_path / "t")[name] for name in given} == given
    assert DeltaTable(tmp_path / "t").history(1)[0]["job"] is None


def test_application_versions_of_a_creation_are_recorded(tmp_path: Path) -> None:
    properties = CommitProperties(app_transactions=[AppTransaction("acme", 4)])
    table = DeltaTable.create(tmp_path / "t", ROWS.schema, commit_properties=properties)
    assert table.transaction_version("acme") == 4


# --- compression levels --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "levels"), [("GZIP", (1, 9)), ("BROTLI", (0, 11)), ("ZSTD", (1, 22)), ("LZ4_RAW", (1, 12))]
)
def test_level_outside_of_the_range_of_its_codec_is_rejected(
    codec: str, levels: tuple[int, int], tmp_path: Path
) -> None:
    least, most = levels
    for level in (least - 1, most + 1, 99, -3, True, 1.5, "3"):
        with pytest.raises(InvalidArgumentError, match=f"from {least} to {most} for {codec}"):
            WriterProperties(compression=codec, compression_level=level)  # type: ignore[arg-type]
    for level in levels:
        path = tmp_path / f"t{level}"
        write_deltalake(path, ROWS, writer_properties=WriterProperties(compression=codec, compression_level=level))
        assert DeltaTable(path).to_pyarrow_table() == ROWS


def test_level_is_checked_with_the_codec_of_the_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration={"delta.parquet.compression.codec": "gzip"})
    with pytest.raises(InvalidArgumentError, match="from 1 to 9 for GZIP"):
        write_deltalake(tmp_path / "t", ROWS, mode="append", writer_properties=WriterProperties(compression_level=15))
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1


@pytest.mark.parametrize("codec", ["SNAPPY", "UNCOMPRESSED"])
def test_level_of_a_codec_without_levels_is_rejected(codec: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"with {codec}, which has no levels"):
        WriterProperties(compression=codec, compression_level=3)
