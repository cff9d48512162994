"""Feature example.packedUuids: UUIDs are stored as bytes, and read as the same texts."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_packed_uuids.logic import COLUMNS
from delta_packed_uuids.packing import pack, unpack
from hypothesis import given, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.api import ConstraintViolationError, DataFileError, InvalidArgumentError, SchemaError, TableState
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state

NAME = "example.packedUuids"
FIELDS = [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}]
IDS = [
    "8f14e45f-ceea-467f-a8f2-0e2b6c1a9d3e",
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
]
ROWS = pa.table({"id": [IDS[0], None, IDS[1], IDS[2]], "n": [1, 2, 3, 4]})
PROPERTIES = {COLUMNS: "id"}


class TestPackedUuids(FeatureContract):
    name = NAME

    def states(self) -> list[TableState]:
        return [table_state([NAME], fields=FIELDS, properties=PROPERTIES, registry=self.registry)]

    def tables(self) -> list[ExampleTable]:
        wrong = pa.table({"id": [IDS[0].upper()], "n": [1]})
        return [ExampleTable(ROWS, "n > 2", properties=PROPERTIES, breaking={"id is a UUID": wrong})]


@given(st.lists(st.one_of(st.none(), st.uuids())), st.integers(0, 3))
def test_packed_values_are_those_of_the_uuid_module(values: list[uuid.UUID | None], skipped: int) -> None:
    texts = pa.array([None if v is None else str(v) for v in values], pa.string()).slice(skipped)
    packed = pack(texts)
    packed.validate(full=True)
    assert packed.to_pylist() == [None if v is None else v.bytes for v in values[skipped:]]
    unpack(packed).validate(full=True)
    assert unpack(packed).equals(texts)


@pytest.mark.parametrize("text", ["", "x", IDS[0][:-1], IDS[0] + "\n", IDS[0].upper(), "{" + IDS[0][:-2] + "}"])
def test_text_that_is_no_uuid_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a UUID in lower case"):
        pack(pa.array([IDS[0], text]))


def test_value_of_another_length_is_rejected() -> None:
    with pytest.raises(DataFileError, match="of 3 bytes, expected 16"):
        unpack(pa.array([b"123"], pa.binary()))


def test_files_hold_bytes_and_no_bounds(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, ROWS, configuration=PROPERTIES)
    table = DeltaTable(uri)
    (file,) = (tmp_path / "t").glob("*.parquet")
    stored = pq.read_table(file)["id"]
    assert stored.type == pa.binary()
    assert stored.to_pylist() == [None if v is None else uuid.UUID(v).bytes for v in ROWS["id"].to_pylist()]
    actions = pa.table(table.get_add_actions(flatten=True))
    assert "min.id" not in actions.column_names
    assert actions["null_count.id"].to_pylist() == [1]
    assert table.to_pyarrow_table(filters=[("id", "=", IDS[1])])["n"].to_pylist() == [3]


def test_files_hold_texts_again_once_the_feature_is_dropped(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration=PROPERTIES)
    table = DeltaTable(tmp_path / "t")
    table.alter.drop_feature(NAME)
    dropped = DeltaTable(tmp_path / "t")
    assert NAME not in dropped.snapshot().state.features
    assert [pq.read_schema(uri).field("id").type for uri in dropped.file_uris()] == [pa.string()]
    assert dropped.to_pyarrow_table().sort_by("n").equals(ROWS)


def test_other_texts_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConstraintViolationError, match="id is a UUID"):
        write_deltalake(str(tmp_path), pa.table({"id": [IDS[0] + "\n"], "n": [1]}), configuration=PROPERTIES)


def test_files_that_exist_are_not_encoded_later(tmp_path: Path) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, ROWS)
    with pytest.raises(SchemaError, match="column id is stored in another form"):
        DeltaTable(uri).alter.set_table_properties(PROPERTIES)
    write_deltalake(uri, ROWS, mode="overwrite", schema_mode="overwrite", configuration=PROPERTIES)
    assert DeltaTable(uri).to_pyarrow_table().equals(ROWS)


@pytest.mark.parametrize("columns", ["n", "id,id", "gone"])
def test_property_that_does_not_fit_the_table_is_rejected(tmp_path: Path, columns: str) -> None:
    with pytest.raises((SchemaError, InvalidArgumentError, LookupError), match=columns[:2]):
        write_deltalake(str(tmp_path), ROWS, configuration={COLUMNS: columns})
