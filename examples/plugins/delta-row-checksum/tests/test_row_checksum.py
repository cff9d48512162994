"""Feature example.rowChecksum: rows that changed behind the table's back are noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from delta_row_checksum.audits import audit_checksums, checksum_audits
from delta_row_checksum.logic import AUDIT, DOMAIN, FUNCTION_FIELD, REQUEST, coverage
from msgspec.structs import replace

from delta_core.api import (
    ADD,
    Call,
    Column,
    ColumnNotFoundError,
    CorruptTableError,
    DataFileError,
    InvalidArgumentError,
    Schema,
    Snapshot,
    TableState,
    Transaction,
    WriteOptions,
    bind,
    create_table,
    leaves,
    open_context,
    open_snapshot,
    write_table,
)
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder

NAME = "example.rowChecksum"
HIDDEN = "_row_checksum"
ROWS = [(1, "a"), (2, None), (3, "c")]


def declared(*columns: list[str], hidden: Any = HIDDEN) -> str:
    return json.dumps({"columns": columns, "hiddenColumn": hidden})


def sums(snapshot: Snapshot, rows: list[tuple[int, str | None]]) -> list[int]:
    """Return what a writer would put into the hidden column, by the table's own evaluator."""
    expression = bind(Call("xxhash64", (Column(("id",)), Column(("name",)))), snapshot.schema, {})
    columns = {
        ("id",): pa.array([r[0] for r in rows], pa.int64()),
        ("name",): pa.array([r[1] for r in rows], pa.string()),
    }
    types = {leaf: columns[leaf.path].type for leaf in leaves(expression)}  # type: ignore[union-attr]
    compiled = snapshot.engine.evaluator.compile(expression, types)
    out: list[int] = compiled([columns[leaf.path] for leaf in compiled.leaves], len(rows)).to_pylist()  # type: ignore[union-attr]
    return out


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [NAME, "deletionVectors"],
        "writerFeatures": [NAME, "deletionVectors", "domainMetadata"],
    }
    domain = {"domain": DOMAIN, "configuration": declared(["id"], ["NAME"]), "removed": False}
    built = TableBuilder(tmp_path / "t")
    schema = {"id": "long", "name": "string", "note": "string"}
    return built.create(schema, protocol=protocol, actions=[{"domainMetadata": domain}])


def append(table: TableBuilder, stored: list[int | None] | None = None, **fields: Any) -> TableBuilder:
    found = sums(open_snapshot(table.uri), ROWS) if stored is None else stored
    rows = pa.table(
        {
            "id": pa.array([r[0] for r in ROWS], pa.int64()),
            "name": pa.array([r[1] for r in ROWS], pa.string()),
            "note": pa.array(["x", "y", "z"]),
            HIDDEN: pa.array(found, pa.int64()),
        }
    )
    return table.append(rows, **({"rowChecksumFunction": "xxhash64"} | fields))


class TestRowChecksum(FeatureContract):
    name = NAME

    def tables(self) -> list[ExampleTable]:
        return [ExampleTable(properties={REQUEST: "id,name"})]

    def states(self) -> list[TableState]:
        return [table_state([NAME]), table_state([NAME], domains={DOMAIN: declared(["id"])})]

    def test_domain_makes_it_active(self) -> None:
        off, on = self.states()
        assert on.is_active(NAME)
        assert not off.is_active(NAME)


def test_rows_with_their_checksums_are_read_without_the_hidden_column(table: TableBuilder) -> None:
    append(table)
    found = open_snapshot(table.uri).scan().to_table()
    assert found.schema.names == ["id", "name", "note"]
    assert found.select(["id", "name"]).to_pylist() == [{"id": i, "name": n} for i, n in ROWS]


@pytest.mark.parametrize(
    "options", [{}, {"columns": ["note"]}, {"predicate": "id > 1"}, {"columns": ["id"], "predicate": "note = 'z'"}]
)
def test_changed_row_fails_every_scan_even_of_other_columns_and_rows(
    table: TableBuilder, options: dict[str, Any]
) -> None:
    good = sums(open_snapshot(table.uri), ROWS)
    append(table, [good[0] + 1, *good[1:]])
    with pytest.raises(DataFileError, match="row checksum"):
        open_snapshot(table.uri).scan(**options).to_table()


def test_row_without_a_checksum_fails_where_its_file_has_them(table: TableBuilder) -> None:
    good = sums(open_snapshot(table.uri), ROWS)
    append(table, [None, *good[1:]])
    with pytest.raises(DataFileError):
        open_snapshot(table.uri).scan().to_table()


def test_function_that_is_not_known_fails_rather_than_passes(table: TableBuilder) -> None:
    append(table, rowChecksumFunction="sha1")
    with pytest.raises(DataFileError):
        open_snapshot(table.uri).scan().to_table()


def test_file_without_checksums_is_read(table: TableBuilder) -> None:
    append(table, [0, 0, 0], rowChecksumFunction=None)
    assert open_snapshot(table.uri).scan().to_table().num_rows == 3


def test_row_that_a_vector_drops_is_not_verified(table: TableBuilder) -> None:
    good = sums(open_snapshot(table.uri), ROWS)
    append(table, [good[0] + 1, *good[1:]]).delete_rows(lambda row: row["id"] == 1)
    assert open_snapshot(table.uri).scan(columns=["id"]).to_table().column("id").to_pylist() == [2, 3]


@pytest.mark.parametrize("checkpoint", [None, "v1", "v2-json", "v2-parquet"])
def test_field_action_and_domain_survive_every_form_of_the_log(table: TableBuilder, checkpoint: Any) -> None:
    append(table, [0, 0, 0])
    audits = [
        {"auditor": auditor, "version": version, "rows": 3} for auditor, version in (("a", 1), ("b", 1), ("a", 2))
    ]
    table.commit({AUDIT.name: audits[0]}).commit({AUDIT.name: audits[1]})
    if checkpoint is not None:
        add = pa.struct([*ADD.type, (FUNCTION_FIELD.name, FUNCTION_FIELD.type)])
        table.checkpoint(checkpoint, extra={AUDIT.name: (AUDIT.type, audits[:2]), "add": (add, [])})
        table.cleanup_before(table.version)
    table.commit({AUDIT.name: audits[2]})
    snapshot = open_snapshot(table.uri)
    assert checksum_audits(snapshot) == [audits[2], audits[1]]
    assert json.loads(snapshot.domains()[DOMAIN])["hiddenColumn"] == HIDDEN
    assert snapshot.files.columns(["rowChecksumFunction"]).to_pylist() == [{"rowChecksumFunction": "xxhash64"}]
    with pytest.raises(DataFileError):
        snapshot.scan().to_table()


@pytest.mark.parametrize("text", ["", "[]", "{}", declared(), declared([]), declared(["id"], hidden=None)])
def test_domain_that_declares_nothing_is_rejected(text: str) -> None:
    with pytest.raises(CorruptTableError, match="expected columns"):
        coverage(table_state([NAME], domains={DOMAIN: text}))


def test_column_that_is_not_there_is_rejected_by_name() -> None:
    with pytest.raises(ColumnNotFoundError, match="gone"):
        coverage(table_state([NAME], domains={DOMAIN: declared(["gone"])}))


# --- writing ---


@pytest.fixture
def written(tmp_path: Path) -> str:
    """A table that was requested by a property, with three rows in one file."""
    uri = str(tmp_path / "w")
    schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("name", pa.string()), ("note", pa.string())]))
    create_table(open_context(uri), schema, properties={REQUEST: "id, NAME", "mine": "kept"})
    write(uri, [1, 2, 3])
    return uri


def write(uri: str, ids: list[int], **options: Any) -> None:
    rows = pa.table({"id": ids, "name": [None if i == 2 else str(i) for i in ids], "note": [f"n{i}" for i in ids]})
    write_table(open_context(uri), rows, WriteOptions(**{"mode": "append", **options}))


def ids(uri: str, **options: Any) -> list[int]:
    found: list[int] = open_snapshot(uri).scan(**options).to_table().column("id").to_pylist()
    return sorted(found)


def test_request_becomes_the_domain_and_provides_what_the_feature_requires(written: str) -> None:
    snapshot = open_snapshot(written)
    assert json.loads(snapshot.domains()[DOMAIN]) == {"columns": [["id"], ["name"]], "hiddenColumn": HIDDEN}
    assert dict(snapshot.metadata.configuration) == {"mine": "kept"}
    assert {NAME, "domainMetadata"} <= snapshot.state.features
    assert snapshot.state.is_active(NAME)


def test_written_rows_carry_their_checksums_and_are_read(written: str) -> None:
    snapshot = open_snapshot(written)
    assert ids(written) == [1, 2, 3]
    assert snapshot.schema.names == ["id", "name", "note"]
    assert snapshot.files.columns(["rowChecksumFunction"]).to_pylist() == [{"rowChecksumFunction": "xxhash64"}]
    (file,) = Path(written).glob("*.parquet")
    stored = pa.parquet.read_table(file)
    assert stored.column(HIDDEN).to_pylist() == sums(snapshot, [(1, "1"), (2, None), (3, "3")])


def test_rows_that_move_are_summed_again(written: str) -> None:
    write(written, [2], mode="overwrite", replace_where="id = 2")
    assert ids(written) == [1, 2, 3]
    assert set(open_snapshot(written).files.columns(["rowChecksumFunction"]).column(0).to_pylist()) == {"xxhash64"}


def test_covered_columns_can_not_be_requested_otherwise(written: str) -> None:
    snapshot = open_snapshot(written)
    same, other = (replace(snapshot.metadata, configuration={REQUEST: text}) for text in ("id,name", "id"))
    Transaction(snapshot.context, snapshot, "ALTER").set_metadata(same)
    with pytest.raises(InvalidArgumentError, match="checksums cover"):
        Transaction(snapshot.context, snapshot, "ALTER").set_metadata(other)


def test_covered_column_can_not_go_away(written: str) -> None:
    snapshot = open_snapshot(written)
    schema = Schema(f for f in snapshot.schema if f.name != "name")
    metadata = replace(snapshot.metadata, schema_string=schema.to_json())
    with pytest.raises(ColumnNotFoundError, match="name"):
        Transaction(snapshot.context, snapshot, "ALTER").set_metadata(metadata)


def test_audit_reads_every_row_and_leaves_word(written: str) -> None:
    assert audit_checksums(open_snapshot(written), "nightly") == {"auditor": "nightly", "version": 1, "rows": 3}
    write(written, [4])
    audit_checksums(open_snapshot(written), "nightly")
    assert checksum_audits(open_snapshot(written)) == [{"auditor": "nightly", "version": 3, "rows": 4}]
    (add,) = (f for f in Path(written).glob("*.parquet") if pa.parquet.read_table(f).num_rows == 1)
    tampered = pa.parquet.read_table(add).set_column(0, "id", pa.array([5], pa.int64()))
    pa.parquet.write_table(tampered, add)
    with pytest.raises(DataFileError):
        audit_checksums(open_snapshot(written), "nightly")
    assert open_snapshot(written).version == 4
