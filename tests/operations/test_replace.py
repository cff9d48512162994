"""Writes in place of the rows that they match, or that a condition selects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    ConstraintViolationError,
    ExpressionError,
    InvalidArgumentError,
    SchemaMismatchError,
)
from tests.operations.row_tables import (
    FEED,
    MAPPED,
    PREDICATES,
    ROW_IDS,
    ROWS,
    TABLES,
    VECTORS,
    Row,
    data_files,
    made,
    row_ids,
    rows_of,
    table_of,
)

#: Options, and whether a row of the table is replaced by a new one.
REPLACES: dict[str, tuple[dict[str, Any], Callable[[Row, Row], bool]]] = {
    "id": ({"replace_using": "id"}, lambda t, s: t[0] == s[0]),
    "p": ({"replace_using": ["p"]}, lambda t, s: t[1] is not None and t[1] == s[1]),
    "p and x": ({"replace_using": ["P", "x"]}, lambda t, s: None not in (t[1], t[2]) and t[1:] == s[1:]),
    "p or null": ({"replace_on": "t.p <=> s.p"}, lambda t, s: t[1] == s[1]),
    "range": ({"replace_on": "t.id < s.id and t.p = s.p"}, lambda t, s: t[0] < s[0] and None is not t[1] == s[1]),
    "one side": (
        {"replace_on": "t.id = s.id and t.x > 0.5 and s.p = 'a'"},
        lambda t, s: t[0] == s[0] and (t[2] or 0) > 0.5 and s[1] == "a",
    ),
    "no key": ({"replace_on": "t.id > 15"}, lambda t, s: t[0] > 15),
    **{f"where {p}": ({"predicate": p}, lambda t, _, of=of: of(t) is True) for p, of in PREDICATES.items()},
}  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    old=st.lists(ROWS, min_size=1, max_size=3),
    new=ROWS,
    how=st.sampled_from(sorted(REPLACES)),
    features=st.sampled_from(sorted(TABLES)),
    partitions=st.sampled_from([[], ["p"]]),
)
def test_rows_that_a_new_row_matches_are_replaced(
    tmp_path_factory: pytest.TempPathFactory,
    old: list[list[Row]],
    new: list[Row],
    how: str,
    features: str,
    partitions: list[str],
) -> None:
    uri, properties = str(tmp_path_factory.mktemp("replace")), TABLES[features]
    for rows in old:
        write_deltalake(uri, table_of(rows), mode="append", partition_by=partitions, configuration=properties)
    table = DeltaTable(uri)
    ids_before = row_ids(table) if "row ids" in features else {}
    options, replaces = REPLACES[how]
    is_where = "predicate" in options
    new = [s for s in new if replaces(s, s)] if is_where else new
    write_deltalake(table, table_of(new), mode="overwrite", **options)
    before = [row for rows in old for row in rows]
    gone = [t for t in before if (replaces(t, t) if is_where else any(replaces(t, s) for s in new))]
    kept = [t for t in before if t not in gone]
    assert rows_of(table.to_pyarrow_table()) == sorted([*kept, *new], key=repr)
    assert rows_of(DeltaTable(uri).to_pyarrow_table()) == sorted([*kept, *new], key=repr)
    metrics = table.history(1)[0]["operationMetrics"]
    assert int(metrics["numDeletedRows"]) == len(before) - len(kept)
    assert int(metrics["numOutputRows"]) == len(new) + int(metrics["numCopiedRows"])
    if ids_before:
        after = row_ids(table)
        assert {i: row for i, row in ids_before.items() if i in after} == {
            i: r for i, r in after.items() if i in ids_before
        }
        assert len(ids_before.keys() & after.keys()) == len(kept)
    if "feed" in features:
        changes = table.changes(table.version()).to_table()
        by_kind = {
            kind: rows_of(changes.filter(pa.compute.equal(changes.column("_change_type"), kind)))
            for kind in ("delete", "insert")
        }
        assert by_kind == {"delete": sorted(gone, key=repr), "insert": sorted(new, key=repr)}


@pytest.mark.parametrize(
    ("how", "parameters"),
    [({"replace_using": "id"}, {"replaceUsingCols": "(id)"}), ({"predicate": "id = 3"}, {"predicate": "id = 3"})],
    ids=str,
)
def test_vectors_drop_the_rows_and_other_files_stay(
    tmp_path: Path, how: dict[str, str], parameters: dict[str, str]
) -> None:
    table = made(tmp_path, VECTORS)
    before = data_files(table)
    write_deltalake(table, table_of([(3, "z", 9.0)]), mode="overwrite", **how)
    after = data_files(table)
    assert before < after
    assert parameters.items() <= table.history(1)[0]["operationParameters"].items()
    assert len(rows_of(table.to_pyarrow_table())) == 10
    assert len(table.file_uris()) == 2


def test_stream_is_read_once(tmp_path: Path) -> None:
    table = made(tmp_path)
    rows = table_of([(3, "z", 9.0), (3, "y", 8.0)])
    write_deltalake(table, rows.to_reader(), mode="overwrite", replace_on="t.id = s.id")
    assert [r for r in rows_of(table.to_pyarrow_table()) if r[0] == 3] == [(3, "y", 8.0), (3, "z", 9.0)]
    assert table.history(1)[0]["operationParameters"]["replaceOnCond"] == "t.id = s.id"


def test_table_that_does_not_exist_is_created(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), table_of([(1, "a", None)]), mode="overwrite", replace_using="id")
    assert DeltaTable(str(tmp_path / "t")).version() == 0


@pytest.mark.parametrize("properties", [{}, VECTORS, MAPPED, {**FEED, **ROW_IDS}], ids=str)
def test_columns_that_the_write_adds_can_be_compared(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, properties)
    wider = table_of([(40, "c", 0.5)]).append_column("y", pa.array(["n"]))
    write_deltalake(table, wider, mode="overwrite", schema_mode="merge", replace_on="t.y is null and t.id < 5")
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [5, 6, 7, 8, 9, 40]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"replace_using": "id", "replace_on": "true"}, InvalidArgumentError),
        ({"replace_using": "id", "mode": "append"}, InvalidArgumentError),
        ({"replace_using": "id", "predicate": "id = 1"}, InvalidArgumentError),
        ({"replace_using": "id", "partition_overwrite": "dynamic"}, InvalidArgumentError),
        ({"replace_using": "id", "schema_mode": "overwrite"}, InvalidArgumentError),
        ({"replace_using": 7}, InvalidArgumentError),
        ({"replace_using": "idd"}, SchemaMismatchError),
        ({"replace_on": "t.idd = s.id"}, ColumnNotFoundError),
        ({"replace_on": "id = 1"}, ExpressionError),
        ({"replace_on": "t.id + s.id"}, ExpressionError),
        ({"replace_on": 7}, InvalidArgumentError),
    ],
)
def test_options_that_do_not_fit_write_nothing(tmp_path: Path, options: dict[str, Any], error: Any) -> None:
    table = made(tmp_path)
    before = data_files(table)
    with pytest.raises(error):
        write_deltalake(table, table_of([(1, "a", 0.0)]), **{"mode": "overwrite", **options})
    assert data_files(table) == before
    assert DeltaTable(table.table_uri).version() == 0


def test_new_rows_that_break_a_constraint_leave_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.alter.add_constraint({"small": "id < 100"})
    before = data_files(table)
    with pytest.raises(ConstraintViolationError):
        write_deltalake(table, table_of([(1, "a", 0.0), (100, "a", 0.0)]), mode="overwrite", replace_using="p")
    assert data_files(table) == before


@pytest.mark.parametrize("how", [{"replace_using": "id"}, {"predicate": "id = 3"}], ids=str)
@pytest.mark.parametrize("properties", [{}, VECTORS, FEED], ids=str)
def test_change_of_the_same_rows_meanwhile_conflicts_and_nothing_is_left(
    tmp_path: Path, properties: dict[str, str], how: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, properties)
    commit, raced = type(table.snapshot().begin("WRITE")).commit, list[int]()

    def race(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not raced:
            raced.append(1)
            DeltaTable(table.table_uri).delete("id = 3")
            raced.append(len(data_files(table)))
        return commit(self, *args, **kwargs)

    monkeypatch.setattr("delta_core.kernel.commit.transaction.Transaction.commit", race)
    with pytest.raises(CommitConflictError):
        write_deltalake(table, table_of([(3, "z", 9.0)]), mode="overwrite", **how)
    latest = DeltaTable(table.table_uri)
    assert sorted(latest.to_pyarrow_table().column("id").to_pylist()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    live = {Path(uri).name for uri in latest.file_uris()}
    left = {Path(f).name for f in data_files(table)} - live
    # the file that the delete dropped or rewrote, its vector, its change file: nothing of the failed write
    assert len(left) <= 1 + len(properties)
