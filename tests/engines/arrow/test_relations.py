"""Relations of the Arrow engine: the algebra that operations are written over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.engines.arrow import engine
from delta_core.engines.interface import Relations
from delta_core.errors import SchemaMismatchError
from delta_core.expressions import parse_sql
from delta_core.expressions.ast import Column, literal
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_core.testing.table_builder import TableBuilder

ROWS = pa.table({"id": [1, 2, None], "s": [{"x": 5}, None, {"x": 7}]})


@pytest.fixture
def relations(tmp_path: Path) -> Relations:
    found = engine(str(tmp_path)).relations
    assert found is not None
    return found


def test_filter_keeps_rows_for_which_it_is_true_alone(relations: Relations) -> None:
    kept = relations.filter(relations.from_arrow(ROWS), parse_sql("id < 2"))
    assert relations.stream(kept).read_all().column("id").to_pylist() == [1]


def test_select_computes_and_reaches_into_structs(relations: Relations) -> None:
    chosen = relations.select(
        relations.from_arrow(ROWS),
        [("n", parse_sql("id + 1")), ("x", Column(("s", "x"))), ("k", literal("c", PrimitiveType("string")))],
    )
    assert chosen.schema.names == ["n", "x", "k"]
    assert relations.stream(chosen).read_all().to_pydict() == {"n": [2, 3, None], "x": [5, None, 7], "k": ["c"] * 3}


def test_select_takes_the_types_of_many_columns_from_one_batch(
    relations: Relations, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({f"c{i}": [i] for i in range(300)})
    nulls = pa.nulls
    made: list[pa.DataType] = []

    def counted(count: int, t: pa.DataType) -> pa.Array:
        made.append(t)
        return nulls(count, t)

    monkeypatch.setattr(pa, "nulls", counted)
    chosen = relations.select(relations.from_arrow(rows), [(n, Column((n,))) for n in rows.schema.names])
    assert chosen.schema == rows.schema
    assert len(made) <= 300


def test_union_returns_one_relation_after_the_other(relations: Relations) -> None:
    both = relations.union([relations.from_arrow(ROWS.slice(2)), relations.from_arrow(ROWS.slice(0, 1))])
    assert relations.stream(both).read_all().column("id").to_pylist() == [None, 1]


def test_union_of_other_columns_is_rejected(relations: Relations) -> None:
    with pytest.raises(SchemaMismatchError, match="can't be united"):
        relations.union([relations.from_arrow(ROWS), relations.from_arrow(ROWS.select(["id"]))])


def test_scan_streams_a_snapshots_rows(tmp_path: Path) -> None:
    TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}]).append([{"id": 2}])
    snapshot = open_snapshot(str(tmp_path / "t"))
    relations = snapshot.engine.relations
    assert relations is not None
    found = relations.stream(relations.scan(snapshot.scan(predicate="id > 1")))
    assert found.read_all().to_pydict() == {"id": [2]}
