"""Rows in several parts: sequences and generators of batches and tables, and extension types of Arrow."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidArgumentError, SchemaError, SchemaMismatchError

BATCH = pa.record_batch({"id": [1, 2]})
TABLE = pa.table({"id": [3]})


class Parts(Sequence[Any]):
    """A sequence of another library."""

    def __getitem__(self, index: Any) -> Any:
        return [BATCH, TABLE][index]

    def __len__(self) -> int:
        return 2


SOURCES: dict[str, Callable[[], Any]] = {
    "list": lambda: [BATCH, TABLE],
    "tuple": lambda: (BATCH, TABLE),
    "deque": lambda: deque([BATCH, TABLE]),
    "sequence": Parts,
    "tables": lambda: [TABLE, TABLE.slice(0, 0), pa.table({"id": [1, 2]})],
    "generator": lambda: (part for part in (BATCH, TABLE)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_parts_are_written_in_order(tmp_path: Path, name: str) -> None:
    write_deltalake(tmp_path, SOURCES[name]())
    write_deltalake(tmp_path, SOURCES[name](), mode="append")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table().column("id").to_pylist()) == [1, 1, 2, 2, 3, 3]


def test_generator_that_was_read_never_empties_the_table(tmp_path: Path) -> None:
    rows = SOURCES["generator"]()
    write_deltalake(tmp_path, rows)
    with pytest.raises(InvalidArgumentError, match="was read before"):
        write_deltalake(tmp_path, rows, mode="overwrite")
    begun = SOURCES["generator"]()
    with pytest.raises(InvalidArgumentError, match="number 1"):
        write_deltalake(tmp_path, (part for part in (BATCH, "x")), mode="overwrite")
    list(begun)
    with pytest.raises(InvalidArgumentError, match="without batches"):
        write_deltalake(tmp_path, begun, mode="overwrite")
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize("make", [list, tuple, lambda parts: (p for p in parts)])
def test_parts_of_other_schemas_are_rejected_by_number(tmp_path: Path, make: Callable[[Any], Any]) -> None:
    for other in (pa.record_batch({"id": ["a"]}), pa.table({"x": [1]})):
        with pytest.raises(InvalidArgumentError, match=r"batch number 1.*expected that of the first, .id: int64"):
            write_deltalake(tmp_path / "t", make([BATCH, other]))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("s3://bucket/t", "a table's place"),
        (Path("t"), "a table's place"),
        ([], "is empty and has no schema"),
        ([{"id": 1}], "list of dict.*from_pylist"),
        (iter([BATCH]), "Pass a generator or a list"),
    ],
    ids=["uri", "path", "empty", "dicts", "iterator"],
)
def test_other_rows_are_rejected_with_what_is_due(tmp_path: Path, rows: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        write_deltalake(tmp_path / "t", rows)


# --- extension types ---


class Code(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A type of the caller's, which need not be registered."""

    def __init__(self, parameters: bytes = b"k=1") -> None:
        self._parameters = parameters
        super().__init__(pa.int64(), "test.code")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._parameters

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Code:
        return cls(serialized)


_of = pa.ExtensionArray.from_storage
EXTENSIONS = {
    "bool8": (_of(pa.bool8(), pa.array([0, 5], pa.int8())), "byte", ("arrow.bool8", "")),
    "uuid": (_of(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))), "binary", None),
    "one's own": (_of(Code(), pa.array([1, None])), "long", ("test.code", "k=1")),
    "opaque": (
        _of(pa.opaque(pa.int64(), "t", "v"), pa.array([1, None])),
        "long",
        ("arrow.opaque", '{"type_name":"t","vendor_name":"v"}'),
    ),
}
if hasattr(pa, "json_"):  # which PyArrow 18 has not
    large = pa.array(["1", None], pa.large_string())
    EXTENSIONS |= {
        "json": (_of(pa.json_(), pa.array(['{"a":1}', None])), "string", ("arrow.json", "")),
        "large json": (_of(pa.json_(pa.large_string()), large), "string", None),
    }


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_type_is_stored_as_its_storage_and_named_in_the_schema(tmp_path: Path, name: str) -> None:
    values, kind, named = EXTENSIONS[name]
    rows = pa.table({"id": [1, 2], "x": values, "s": pa.StructArray.from_arrays([values], ["x"])})
    write_deltalake(tmp_path, rows)
    write_deltalake(tmp_path, rows, mode="append")
    table = DeltaTable(tmp_path)
    metadata = {} if named is None else {"ARROW:extension:name": named[0], "ARROW:extension:metadata": named[1]}
    _, field, struct = json.loads(table.schema().to_json())["fields"]
    assert (field["type"], field["metadata"]) == (kind, metadata)
    assert struct["type"]["fields"][0]["metadata"] == metadata
    found = table.to_pyarrow_table().column("x").to_pylist()
    assert found == values.storage.to_pylist() * 2
    assert pa.table(table).num_rows == 4  # a consumer of the Arrow stream takes the type by its name
    merge = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    assert merge.when_matched_delete().execute()["num_target_rows_deleted"] == 4


@pytest.mark.parametrize(
    "values",
    [
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8.0).reshape(2, 2, 2)),
        _of(Code(b"\xff"), pa.array([1, 2])),
    ],
    ids=["shape", "bytes"],
)
def test_extension_type_that_a_schema_can_not_name_is_rejected(tmp_path: Path, values: pa.Array) -> None:
    with pytest.raises(SchemaError, match=r"Column x: Arrow type .* has no Delta type.*storage type"):
        write_deltalake(tmp_path / "t", pa.table({"x": values}))


# --- messages ---


def test_object_as_the_place_of_a_table_is_named_by_its_type(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(1000))})
    with pytest.raises(InvalidArgumentError, match=r"an object of type pyarrow.lib.Table as the place.*Rows are"):
        DeltaTable(rows)
    assert DeltaTable.is_deltatable(rows) is False  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgumentError, match=r"storage_options of type str.*such as"):
        DeltaTable(tmp_path, storage_options="region=x")  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_name_the_cast_that_helps(tmp_path: Path, zone: str | None) -> None:
    rows = pa.table({"t": pa.array([1], pa.timestamp("ns", zone))})
    with pytest.raises(SchemaMismatchError, match=r"dt.floor\('us'\).*floor_temporal"):
        write_deltalake(tmp_path, rows)
    nested = pa.table({"s": pa.StructArray.from_arrays([rows.column("t").combine_chunks()], ["t"])})
    with pytest.raises(SchemaMismatchError, match=r"Column s\.t .*floor_temporal"):
        write_deltalake(tmp_path, nested)
