"""Tables whose rows are changed by predicates, and the same predicates in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from hypothesis import strategies as st

from delta_core import DeltaTable, write_deltalake

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TABLES: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": VECTORS,
    "feed": FEED,
    "row ids": ROW_IDS,
    "vectors, feed, row ids": {**VECTORS, **FEED, **ROW_IDS},
    "feed, row ids, mapping": {**FEED, **ROW_IDS, **MAPPED},
    "vectors, mapping": {**VECTORS, **MAPPED},
}
Row = tuple[int, str | None, float | None]
#: A predicate, and the same in Python; None is SQL's unknown.
PREDICATES: dict[str, Callable[[Row], bool | None]] = {
    "id % 3 = 0": lambda r: r[0] % 3 == 0,
    "id < 7": lambda r: r[0] < 7,
    "p = 'a'": lambda r: None if r[1] is None else r[1] == "a",
    "p is null": lambda r: r[1] is None,
    "p = 'b' and id > 3": lambda r: False if r[1] != "b" or r[1] is None else r[0] > 3,
    "x > 0.5": lambda r: None if r[2] is None else r[2] > 0.5,
    "x is null or id = 4": lambda r: r[2] is None or r[0] == 4,
    "id > 1000": lambda r: False,
    "p <=> null": lambda r: r[1] is None,
}


def table_of(rows: list[Row]) -> pa.Table:
    ids, parts, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "p": pa.array(parts, pa.string()), "x": pa.array(values, pa.float64())}
    )


def rows_of(table: pa.Table) -> list[Row]:
    found = zip(*(table.column(n).to_pylist() for n in ("id", "p", "x")), strict=True)
    return sorted(found, key=repr)


ROWS = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from(["a", "b", "", None]).map(lambda p: p or None),
        st.sampled_from([0.0, 0.25, 0.75, None]),
    ),
    max_size=12,
)


def row_ids(table: DeltaTable) -> dict[int, Row]:
    found = table.snapshot().scan(metadata=["_row_id"]).to_table()
    rows = zip(*(found.column(n).to_pylist() for n in ("id", "p", "x")), strict=True)
    return dict(zip(found.column("_row_id").to_pylist(), rows, strict=True))


def made(tmp_path: Path, properties: dict[str, str] = {}, partitions: list[str] = []) -> DeltaTable:  # noqa: B006
    uri = str(tmp_path / "t")
    rows: list[Row] = [(i, "ab"[i % 2], i / 10) for i in range(10)]
    write_deltalake(uri, table_of(rows), partition_by=partitions, configuration=properties)
    return DeltaTable(uri)


def data_files(table: DeltaTable) -> set[str]:
    root = Path(table.table_uri.removeprefix("file://"))
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and "_delta_log" not in p.parts}
