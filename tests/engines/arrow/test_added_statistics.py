"""Statistics that are added to footers, beside those that PyArrow writes itself."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import InternalError
from delta_core.parquet.added_statistics import ChunkStatistics, text_statistics, with_statistics
from delta_core.parquet.footer import footer_bytes, parse_footer


def footer(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=4, **options)
    found = footer_bytes(pa.BufferReader(sink.getvalue()))
    assert found is not None
    return found


def own_statistics(table: pa.Table, columns: list[int]) -> dict[tuple[int, int], ChunkStatistics]:
    groups = range(-(-table.num_rows // 4))
    parts = {(g, c): table.column(c).slice(4 * g, 4) for g in groups for c in columns}
    return {place: text_statistics(part.null_count, part) for place, part in parts.items()}


WIDE = pa.table({f"c{i}": [f"{i} {j}" for j in range(11)] for i in range(40)})
TABLES = {
    "one": pa.table({"a": ["b", None, "a", "é", "", "x"]}),
    "nulls": pa.table({"a": pa.array([None] * 5, pa.string()), "b": ["x"] * 5}),
    "long": pa.table({"a": ["a" * 200, "b" * 4096] * 3, "b": ["a", "b" * 4097] * 3}),
    "empty": pa.table({"a": [""] * 3}),
    "wide": WIDE,
    "kinds": pa.table(
        {
            "a": ["x", "y"],
            "b": [True, None],
            "c": [[{"d": 1, "e": "f"}], []],
            "f": [Decimal("1.25"), None],
            "g": pa.array([[("k", 1.5)], None], pa.map_(pa.string(), pa.float64())),
            "h": ["z", None],
        }
    ),
}


@pytest.mark.parametrize("options", [{}, {"write_page_index": True}, {"compression": "none"}], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_footer_equals_one_that_was_written_with_statistics(name: str, options: dict[str, Any]) -> None:
    table = TABLES[name]
    # strings come first, or have only leaves of their own before them
    leaves = paths(table)
    texts = [f.name for f in table.schema if pa.types.is_string(f.type)]
    columns = [table.schema.get_field_index(n) for n in texts if leaves.index(n) == table.schema.get_field_index(n)]
    others = [p for p in paths(table) if p not in {table.schema.names[c] for c in columns}]
    without = footer(table, write_statistics=others or False, **options)
    expected = footer(table, write_statistics=True, **options)
    added = with_statistics(without, own_statistics(table, columns))
    assert shape(added) == shape(expected)


def written(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue()


def paths(table: pa.Table) -> list[str]:
    schema = pq.read_metadata(pa.BufferReader(written(table))).schema
    return [schema.column(i).path for i in range(len(schema.names))]


def shape(data: bytes) -> dict[str, Any]:
    """What a footer holds, but for the places of what lies behind pages with statistics of their own."""
    found = parse_footer(data).to_dict()
    del found["serialized_size"]
    for group in found["row_groups"]:
        for column in group["columns"]:
            for name in ("file_offset", "dictionary_page_offset", "data_page_offset", "total_compressed_size"):
                del column[name]
            del column["total_uncompressed_size"]
        del group["total_byte_size"]
    return found


@pytest.mark.parametrize("options", [{}, {"write_page_index": True}], ids=str)
@pytest.mark.parametrize("name", ["one", "nulls", "long", "wide"])
def test_statistics_that_a_chunk_has_already_are_replaced(name: str, options: dict[str, Any]) -> None:
    table = TABLES[name]
    columns = list(range(0, table.num_columns, 2))
    with_some = footer(table, **options)
    assert shape(with_statistics(with_some, own_statistics(table, columns))) == shape(with_some)
    others = dict.fromkeys(own_statistics(table, columns), ChunkStatistics(3, b"m", b"n"))
    replaced = shape(with_statistics(with_some, others))
    for group, found in enumerate(replaced["row_groups"]):
        for column, chunk in enumerate(found["columns"]):
            known = chunk["statistics"]
            if (group, column) in others:
                assert (known["min"], known["max"], known["null_count"]) == ("m", "n", 3)
            else:
                assert chunk == shape(with_some)["row_groups"][group]["columns"][column]


def test_chunk_that_the_footer_lacks_is_an_error() -> None:
    with pytest.raises(InternalError, match="Found 0 of 1"):
        with_statistics(footer(TABLES["one"]), {(7, 0): ChunkStatistics(0, b"a", b"b")})


def test_bytes_that_are_no_text_have_bounds() -> None:
    texts = pa.chunked_array([pa.array([b"\xff", b"a", None], pa.binary()).view(pa.string())])
    assert text_statistics(1, texts) == ChunkStatistics(1, b"a", b"\xff")
