"""MERGE: the rows that are left beside a model in Python, the feed and row ids, errors, and other writers."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import delta_core
from delta_core import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    ConstraintViolationError,
    ExpressionError,
    InvalidArgumentError,
    MultipleMatchesError,
    SchemaMismatchError,
    SpillLimitError,
)
from delta_core.kernel.commit.options import AppTransaction
from delta_core.operations.merge import decision_store as merge_decisions
from delta_core.operations.merge.builder import MergeClause, TableMerger
from delta_core.operations.merge.decision_store import DecisionRuns, Decisions
from delta_core.operations.merge.operation import MergeOptions, run_merge
from tests.example_counts import examples
from tests.operations.row_tables import FEED, MAPPED, TABLES, VECTORS, data_files

Row = dict[str, Any]
NAN = math.nan


class Clause(NamedTuple):
    """A clause beside the same in Python, on the rows of both sides (None where there is none)."""

    kind: str
    action: str
    predicate: str | None = None
    test: Callable[[Row, Row], bool | None] = lambda t, s: True
    updates: dict[str, str] | None = None
    values: Callable[[Row, Row], Row] = lambda t, s: {}

    @property
    def given(self) -> MergeClause:
        return MergeClause(self.kind, self.action, self.predicate, self.updates)  # type: ignore[arg-type]


def over(a: Any, b: Any) -> bool | None:
    """Return SQL's ``a > b``: NaN is above every number."""
    return None if a is None or b is None else a > b or (a != a and b == b)


MATCHED = [
    Clause("matched", "delete"),
    Clause("matched", "delete", "source.x > target.x", lambda t, s: over(s["x"], t["x"])),
    Clause("matched", "delete", "target.p is null", lambda t, s: t["p"] is None),
    Clause("matched", "update", None, updates=None, values=lambda t, s: s),
    Clause("matched", "update", "source.x > 0.5", lambda t, s: over(s["x"], 0.5), None, lambda t, s: s),
    Clause(
        "matched",
        "update",
        "target.p = source.p",
        lambda t, s: None if None in (t["p"], s["p"]) else t["p"] == s["p"],
        {"x": "coalesce(source.x, 0) + coalesce(target.x, 0)"},
        lambda t, s: {"x": (s["x"] or 0.0) + (t["x"] or 0.0)},
    ),
    Clause("matched", "update", None, updates={"target.p": "source.p"}, values=lambda t, s: {"p": s["p"]}),
]
NOT_MATCHED = [
    Clause("not_matched", "insert", None, updates=None, values=lambda t, s: s),
    Clause("not_matched", "insert", "source.x > 0.5", lambda t, s: over(s["x"], 0.5), None, lambda t, s: s),
    Clause(
        "not_matched",
        "insert",
        "source.p is not null",
        lambda t, s: s["p"] is not None,
        {"id": "source.id + 100", "x": "0.25"},
        lambda t, s: {"id": None if s["id"] is None else s["id"] + 100, "p": None, "x": 0.25},
    ),
]
BY_SOURCE = [
    Clause("not_matched_by_source", "delete", "id > 3", lambda t, s: over(t["id"], 3)),
    Clause("not_matched_by_source", "delete"),
    Clause("not_matched_by_source", "update", None, updates={"x": "0.5"}, values=lambda t, s: {"x": 0.5}),
    Clause(
        "not_matched_by_source",
        "update",
        "target.p = 'a'",
        lambda t, s: None if t["p"] is None else t["p"] == "a",
        {"p": "concat(p, 'b')"},
        lambda t, s: {"p": t["p"] + "b"},
    ),
]
#: Merge conditions, and the same in Python; None is SQL's unknown.
CONDITIONS: dict[str, Callable[[Row, Row], bool | None]] = {
    "target.id = source.id": lambda t, s: same(t["id"], s["id"]),
    "target.id <=> source.id": lambda t, s: t["id"] == s["id"],
    "source.x = target.x": lambda t, s: same(t["x"], s["x"]),
    "target.id = source.id and target.p = source.p": lambda t, s: both(same(t["id"], s["id"]), same(t["p"], s["p"])),
    "target.id = source.id + 1 and target.p = 'a'": lambda t, s: both(
        same(t["id"], None if s["id"] is None else s["id"] + 1), same(t["p"], "a")
    ),
    "target.id = source.id and source.x > 0.3": lambda t, s: both(same(t["id"], s["id"]), over(s["x"], 0.3)),
    "target.id = source.id and source.x > target.x": lambda t, s: both(same(t["id"], s["id"]), over(s["x"], t["x"])),
    "target.id > source.id + 4": lambda t, s: over(t["id"], None if s["id"] is None else s["id"] + 4),
    "target.p = source.p": lambda t, s: same(t["p"], s["p"]),
    "false": lambda t, s: False,
}


def same(a: Any, b: Any) -> bool | None:
    """Return SQL's equality: NaN equals NaN."""
    return None if a is None or b is None else a == b or (a != a and b != b)


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if None in (a, b) else True


class AmbiguousError(Exception):
    """Several source rows match one row."""


class Result(NamedTuple):
    """What the model returns: the table's rows, and how many were updated, deleted and inserted."""

    rows: list[Row]
    updated: list[tuple[Row, Row]]
    deleted: list[Row]
    inserted: list[Row]


def model(target: Sequence[Row], source: Sequence[Row], on: Any, clauses: Sequence[Clause]) -> Result:
    def first(kind: str, t: Row, s: Row) -> Clause | None:
        return next((c for c in clauses if c.kind == kind and c.test(t, s)), None)

    out = Result([], [], [], [])
    matched_sources = set()
    matched = [c for c in clauses if c.kind == "matched"]
    is_plain = len(matched) == 1 and matched[0].action == "delete" and matched[0].predicate is None
    is_single = not is_plain and any(c.kind != "not_matched" for c in clauses)
    for t in target:
        partners = [i for i, s in enumerate(source) if on(t, s)]
        matched_sources.update(partners)
        chosen = [(c, source[i]) for i in partners if (c := first("matched", t, source[i]))]
        if len(partners) > 1 and is_single:
            raise AmbiguousError
        if not partners and (found := first("not_matched_by_source", t, {})):
            chosen = [(found, {})]
        if not chosen:
            out.rows.append(t)
        elif chosen[0][0].action == "delete":
            out.deleted.append(t)
        else:
            clause, s = chosen[0]
            out.updated.append((t, {**t, **clause.values(t, s)}))
    for i, s in enumerate(source):
        clause = None if i in matched_sources else first("not_matched", {}, s)
        if clause is not None:
            out.inserted.append(clause.values({}, s))
    return out._replace(rows=[*out.rows, *(new for _, new in out.updated), *out.inserted])


NAMES = ("id", "p", "x")


def table_of(rows: Sequence[Row]) -> pa.Table:
    types = {"id": pa.int64(), "p": pa.string(), "x": pa.float64()}
    return pa.table({n: pa.array([r[n] for r in rows], t) for n, t in types.items()})


def shown(rows: Sequence[Row]) -> list[str]:
    return sorted(repr([r[n] for n in NAMES]) for r in rows)


ROW = st.fixed_dictionaries(
    {
        "id": st.one_of(st.integers(0, 9), st.none()),
        "p": st.sampled_from(["a", "b", None]),
        "x": st.sampled_from([0.0, 0.25, 0.75, NAN, None]),
    }
)
ROWS = st.lists(ROW, max_size=10)
CLAUSES = st.tuples(
    st.lists(st.sampled_from(MATCHED), max_size=3),
    st.lists(st.sampled_from(NOT_MATCHED), max_size=2),
    st.lists(st.sampled_from(BY_SOURCE), max_size=2),
).map(lambda lists: [c for part in lists for c in part])
STEP = st.tuples(ROWS, st.sampled_from(list(CONDITIONS)), CLAUSES.filter(bool))


def execute(table: DeltaTable, source: Any, on: str, clauses: Sequence[Clause], **options: Any) -> dict[str, Any]:
    merger = table.merge(source, on, **options)
    for clause in clauses:
        merger._clauses.append(clause.given)
    return merger.execute()


@pytest.mark.parametrize("partitions", [[], ["p"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=examples(5), deadline=None)
@given(first=ROWS, second=ROWS, steps=st.lists(STEP, min_size=1, max_size=2), memory=st.sampled_from([None, 0, 60]))
def test_rows_of_every_version_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    partitions: list[str],
    first: list[Row],
    second: list[Row],
    steps: list[Any],
    memory: int | None,
) -> None:
    uri = str(tmp_path_factory.mktemp("t"))
    write_deltalake(uri, table_of(first), partition_by=partitions, configuration=TABLES[kind])
    write_deltalake(uri, table_of(second), mode="append")
    table = DeltaTable(uri)
    rows = [*first, *second]
    for source, on, clauses in steps:
        version, ids = table.version(), row_ids(table) if "row ids" in kind else {}
        try:
            expected = model(rows, source, CONDITIONS[on], clauses)
        except AmbiguousError:
            with pytest.raises(MultipleMatchesError):
                execute(table, table_of(source), on, clauses)
            assert table.version() == version
            continue
        with mock.patch.object(merge_decisions, "RUN_ROWS", 2):
            metrics = execute(table, table_of(source), on, clauses, max_spill_size=memory)
        is_changed = bool(expected.updated or expected.deleted or expected.inserted)
        assert table.version() == version + is_changed
        assert shown(table.to_pyarrow_table().to_pylist()) == shown(expected.rows)
        assert (
            metrics["num_source_rows"],
            metrics["num_target_rows_updated"],
            metrics["num_target_rows_deleted"],
            metrics["num_target_rows_inserted"],
        ) == (len(source), len(expected.updated), len(expected.deleted), len(expected.inserted))
        if "row ids" in kind:
            gone = {i for i in ids if i not in row_ids(table)}
            assert shown([ids[i] for i in gone]) == shown(expected.deleted)
        if "feed" in kind and is_changed:
            feed = table.load_cdf(version + 1, version + 1).read_all().to_pylist()
            for change, found in (
                ("update_preimage", [old for old, _ in expected.updated]),
                ("update_postimage", [new for _, new in expected.updated]),
                ("delete", expected.deleted),
                ("insert", expected.inserted),
            ):
                assert shown([r for r in feed if r["_change_type"] == change]) == shown(found)
        rows = expected.rows
    shutil.rmtree(uri)


def row_ids(table: DeltaTable) -> dict[int, Row]:
    found = table.snapshot().scan(metadata=["_row_id"]).to_table().to_pylist()
    return {r["_row_id"]: r for r in found}


def made(tmp_path: Path, rows: Any = None, **options: Any) -> DeltaTable:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}) if rows is None else rows, **options)
    return DeltaTable(uri)


def rows_of(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in table.to_pyarrow_table().to_pylist()), key=repr)


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
UPSERT = pa.table({"id": [2, 4], "v": ["B", "D"]})


def upsert(table: DeltaTable, source: Any = UPSERT, **options: Any) -> dict[str, Any]:
    merger = table.merge(source, "target.id = source.id", **options)
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewrite", "vectors"])
def test_upsert_updates_matches_and_inserts_the_rest(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, configuration=properties)
    metrics = upsert(table)
    assert rows_of(table) == [(1, "a"), (2, "B"), (3, "c"), (4, "D")]
    wanted = {
        "num_source_rows": 2,
        "num_target_rows_inserted": 1,
        "num_target_rows_updated": 1,
        "num_target_rows_deleted": 0,
    }
    assert {n: metrics[n] for n in wanted} == wanted
    assert metrics["num_target_rows_copied"] == (0 if properties else 2)


@pytest.mark.parametrize(
    "limit", [{"max_spill_size": "1GB"}, {"max_spill_size": -1}, {"max_temp_directory_size": -1}], ids=str
)
def test_limits_that_are_no_numbers_of_bytes_are_rejected(tmp_path: Path, limit: dict[str, Any]) -> None:
    table = made(tmp_path)
    with pytest.raises(InvalidArgumentError, match=next(iter(limit))):
        upsert(table, UPSERT.to_reader(), **limit)
    assert table.version() == 0


def test_commit_states_what_was_merged(tmp_path: Path) -> None:
    table = made(tmp_path)
    merger = table.merge(
        UPSERT, "target.id = source.id", commit_properties=CommitProperties(custom_metadata={"why": "x"})
    )
    merger.when_matched_delete("source.v = 'B'").when_not_matched_insert({"id": "source.id"}).execute()
    [info] = table.history(1)
    assert (info["operation"], info["why"], info["operationParameters"]) == (
        "MERGE",
        "x",
        {
            "predicate": '["target.id = source.id"]',
            "matchedPredicates": '[{"predicate":"source.v = \'B\'","actionType":"delete"}]',
            "notMatchedPredicates": '[{"actionType":"insert"}]',
            "notMatchedBySourcePredicates": "[]",
        },
    )
    assert int(info["operationMetrics"]["numTargetRowsMatchedDeleted"]) == 1


@pytest.mark.parametrize("source", [UPSERT.slice(0, 0), pa.table({"id": [9], "v": ["z"]})], ids=["empty", "no match"])
def test_merge_that_changes_no_row_commits_nothing(tmp_path: Path, source: pa.Table) -> None:
    table = made(tmp_path, configuration=FEED)
    files = data_files(table)
    table.merge(source, "target.id = source.id").when_matched_delete().execute()
    assert (table.version(), data_files(table)) == (0, files)


def test_inserts_alone_remove_no_file_and_write_no_change_files(tmp_path: Path) -> None:
    table = made(tmp_path, configuration=FEED)
    files = set(table.file_uris())
    metrics = table.merge(UPSERT, "target.id = source.id").when_not_matched_insert_all().execute()
    assert files < set(table.file_uris())
    assert (metrics["num_target_files_removed"], metrics["num_target_change_files_added"]) == (0, 0)
    assert rows_of(table) == [(1, "a"), (2, "b"), (3, "c"), (4, "D")]
    assert [r["_change_type"] for r in table.load_cdf(1, 1).read_all().to_pylist()] == ["insert"]


def test_only_files_that_can_match_are_read(tmp_path: Path) -> None:
    table = made(tmp_path, configuration=VECTORS)
    for start in (10, 20, 30):
        write_deltalake(table, pa.table({"id": [start, start + 9], "v": ["x", "y"]}), mode="append")
    write_deltalake(table, pa.table({"id": [2, 39], "v": ["x", "y"]}), mode="append")
    source = pa.table({"id": [19, 30], "v": ["Y", "X"]})
    metrics = upsert(table, source)
    assert metrics["num_target_files_scanned"] == 3
    assert metrics["num_target_files_skipped_during_scan"] == 2
    assert metrics["num_target_rows_updated"] == 2


@pytest.mark.parametrize(
    "rows", [{"id": [2, 2], "v": ["x", "y"]}, {"id": [1, 3, 3, 2], "v": ["a", "b", "b", "c"]}], ids=["two", "equal"]
)
def test_several_matches_of_one_row_are_an_error_that_shows_a_key(tmp_path: Path, rows: Any) -> None:
    table = made(tmp_path)
    files = data_files(table)
    with pytest.raises(MultipleMatchesError, match=r"'id': [23]"):
        upsert(table, pa.table(rows))
    assert (table.version(), data_files(table)) == (0, files)


def test_several_matches_of_a_deleted_row_are_none(tmp_path: Path) -> None:
    table = made(tmp_path, configuration=FEED)
    source = pa.table({"id": [2, 2, 5, 5]})
    metrics = (
        table.merge(source, "target.id = source.id")
        .when_matched_delete()
        .when_not_matched_insert({"id": "source.id"})
        .execute()
    )
    assert (metrics["num_target_rows_deleted"], metrics["num_target_rows_inserted"]) == (1, 2)
    changes = [(r["id"], r["_change_type"]) for r in table.load_cdf(1, 1).read_all().to_pylist()]
    assert sorted(changes) == [(2, "delete"), (5, "insert"), (5, "insert")]


@pytest.mark.parametrize(
    ("on", "aliases"),
    [
        ("target.id = source.k", {}),
        ("id = k", {}),
        ("T.ID = s.K", {"source_alias": "s", "target_alias": "t"}),
        ("`t`.`id` = `s`.`k`", {"source_alias": "s", "target_alias": "t"}),
    ],
)
def test_columns_are_found_by_alias_or_alone(tmp_path: Path, on: str, aliases: dict[str, str]) -> None:
    table = made(tmp_path)
    table.merge(pa.table({"k": [3]}), on, **aliases).when_matched_update({"v": "concat(v, k)"}).execute()
    assert rows_of(table) == [(1, "a"), (2, "b"), (3, "c3")]


def test_names_with_dots_and_spaces_are_quoted(tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"a.b": [1], "c d": [2], "1y": [3]}), configuration=MAPPED)
    source = pa.table({"a.b": [1], "c d": [20], "1y": [30]})
    merger = table.merge(source, "target.`a.b` = source.`a.b`")
    merger.when_matched_update({"`c d`": "source.`c d`", "target.`1y`": "source.`1y` + target.`1y`"}).execute()
    assert rows_of(table) == [(1, 20, 33)]


def test_fields_of_structs_are_keys_and_are_assigned(tmp_path: Path) -> None:
    rows = pa.table({"s": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, None]})
    table = made(tmp_path, rows)
    source = pa.table({"t": [{"k": 2, "v": "Y"}]})
    merger = table.merge(source, "target.s.a = source.t.k").when_matched_update({"s.b": "source.t.v"})
    merger.when_not_matched_by_source_update({"target.s.b": "'none'"}).execute()
    assert sorted((r["s"] for r in table.to_pyarrow_table().to_pylist()), key=repr) == [
        {"a": 1, "b": "none"},
        {"a": 2, "b": "Y"},
        {"a": None, "b": "none"},
    ]


def test_values_are_cast_to_the_columns_types(tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    source = pa.table({"id": pa.array([1, 3], pa.int64()), "v": [10, 30]})
    upsert(table, source)
    assert rows_of(table) == [(1, "10"), (2, "b"), (3, "30")]


def test_value_that_does_not_cast_is_an_error_or_null(tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"id": [1, 2], "n": [1, 2]}))
    source = pa.table({"id": [1, 3], "n": ["7", "x"]})
    files = data_files(table)
    with pytest.raises(ExpressionError, match="'x' can't be cast"):
        upsert(table, source)
    assert (table.version(), data_files(table)) == (0, files)
    upsert(table, source, error_on_type_mismatch=False)
    assert rows_of(table) == [(1, 7), (2, 2), (3, None)]


def test_columns_that_only_the_source_has_are_added_on_request(tmp_path: Path) -> None:
    table = made(tmp_path)
    source = pa.table({"id": [2, 4], "w": [0.5, 1.5]})
    upsert(table, source)
    assert rows_of(table) == [(1, "a"), (2, "b"), (3, "c"), (4, None)]
    table.delete("id = 4")
    upsert(table, source, merge_schema=True)
    assert rows_of(table) == [(1, "a", None), (2, "b", 0.5), (3, "c", None), (4, None, 1.5)]


def test_columns_that_a_clause_names_are_added_on_request(tmp_path: Path) -> None:
    table = made(tmp_path)
    source = pa.table({"id": [2], "w": [0.5], "unused": [1]})
    merger = table.merge(source, "target.id = source.id", merge_schema=True)
    merger.when_matched_update({"w": "source.w * 2"}).execute()
    assert rows_of(table) == [(1, "a", None), (2, "b", 1.0), (3, "c", None)]


def test_excepted_columns_keep_their_values_and_are_null_in_inserts(tmp_path: Path) -> None:
    table = made(tmp_path)
    merger = table.merge(UPSERT, "target.id = source.id")
    merger.when_matched_update_all(except_cols=["v"]).when_not_matched_insert_all(except_cols=["V"]).execute()
    assert rows_of(table) == [(1, "a"), (2, "b"), (3, "c"), (4, None)]


def test_rows_that_break_a_constraint_are_rejected_and_leave_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.operation("add_constraint")({"short": "length(v) < 3"})
    table.update_incremental()
    files, version = data_files(table), table.version()
    for source in ({"id": [1], "v": ["long"]}, {"id": [5], "v": ["long"]}):
        with pytest.raises(ConstraintViolationError, match="short"):
            upsert(table, pa.table(source))
    assert (table.version(), data_files(table)) == (version, files)


def test_columns_that_the_table_fills_are_filled_in_inserts_and_computed_in_updates(tmp_path: Path) -> None:
    features = ["generatedColumns", "identityColumns", "allowColumnDefaults"]
    schema = Schema(
        [
            Field("id", "long"),
            Field("double", "long", metadata={"delta.generationExpression": "id * 2"}),
            Field("key", "long", metadata=IDENTITY),
            Field("v", "string", metadata={"CURRENT_DEFAULT": "'new'"}),
        ]
    )
    table = DeltaTable.create(str(tmp_path / "t"), schema, features=features)
    write_deltalake(table, pa.table({"id": [1, 2], "v": ["a", "b"]}), mode="append")
    source = pa.table({"id": [2, 3], "to": [20, 30]})
    merger = table.merge(source, "target.id = source.id").when_matched_update({"id": "source.to"})
    merger.when_not_matched_insert({"id": "source.id"}, "source.id > 5").when_not_matched_insert(
        {"id": "source.id"}
    ).execute()
    assert set(rows_of(table)) == {(1, 2, 1, "a"), (3, 6, 3, "new"), (20, 40, 2, "b")}
    with pytest.raises(ConstraintViolationError):
        table.merge(source, "target.id = source.id").when_matched_update({"double": "5"}).execute()


@pytest.mark.parametrize(
    ("on", "clause", "error", "text"),
    [
        ("id = source.id", {}, ExpressionError, "target.id or source.id"),
        ("target.nothing = source.id", {}, ColumnNotFoundError, "nothing"),
        ("target.id", {}, ExpressionError, "BOOLEAN"),
        ("target.id = source.id", {"updates": {"nothing": "1"}}, SchemaMismatchError, "nothing"),
        ("target.id = source.id", {"updates": {"v": "w"}}, ColumnNotFoundError, "w, which is no column"),
        ("target.id = source.id", {"updates": {"v": "'a'", "target.v": "'b'"}}, ExpressionError, "twice"),
        ("target.id = source.id", {"updates": {"v": 5}}, InvalidArgumentError, "int"),
    ],
)
def test_expressions_that_do_not_fit_are_rejected(
    tmp_path: Path, on: str, clause: dict[str, Any], error: type[Exception], text: str
) -> None:
    table = made(tmp_path)
    with pytest.raises(error, match=text):
        table.merge(UPSERT, on).when_matched_update(clause.get("updates", {"v": "source.v"})).execute()
    assert table.version() == 0


def test_clauses_read_no_column_of_a_side_that_they_have_no_rows_of(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(ExpressionError, match="no rows of the target"):
        table.merge(UPSERT, "target.id = source.id").when_not_matched_insert({"id": "target.id"}).execute()
    with pytest.raises(ExpressionError, match="no rows of the source"):
        table.merge(UPSERT, "target.id = source.id").when_not_matched_by_source_delete("source.id = 1").execute()


def test_arguments_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert table.merge(UPSERT, "target.id = source.id").execute()["num_output_rows"] == 0
    assert table.version() == 0
    with pytest.raises(InvalidArgumentError, match="alias"):
        upsert(table, source_alias="target")
    with pytest.raises(InvalidArgumentError, match="Arrow data"):
        upsert(table, 5)
    with pytest.raises(InvalidArgumentError, match="list of names"):
        table.merge(UPSERT, "true").when_matched_update_all(except_cols="v")
    with pytest.raises(SchemaMismatchError, match="two columns"):
        upsert(table, pa.table([[1], [2]], names=["id", "ID"]))


def test_stream_of_the_table_itself_is_a_source(tmp_path: Path) -> None:
    table = made(tmp_path)
    source = table.snapshot().scan(predicate="id > 1")
    table.merge(source, "target.id = source.id").when_matched_update({"v": "upper(source.v)"}).execute()
    assert rows_of(table) == [(1, "a"), (2, "B"), (3, "C")]


@pytest.mark.parametrize("path", ["s", "target.s", "s.b", "target.s.b"])
def test_assigned_fields_that_only_the_source_has_are_added(tmp_path: Path, path: str) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2], "s": [{"a": 1}, {"a": 2}]}))
    table = DeltaTable(tmp_path / "t")
    source = pa.table({"id": [2], "b": ["not this"], "s": [{"a": 5, "b": "x", "c": "y"}]})
    value = "source." + path.removeprefix("target.")
    table.merge(source, "target.id = source.id", merge_schema=True).when_matched_update({path: value}).execute()
    updated = {"a": 2, "b": "x"} if path.endswith("b") else {"a": 5, "b": "x", "c": "y"}
    others = dict.fromkeys(updated, None) | {"a": 1}
    assert sorted(table.to_pyarrow_table().to_pylist(), key=lambda r: r["id"]) == [
        {"id": 1, "s": others},
        {"id": 2, "s": updated},
    ]


def source_stream() -> pa.RecordBatchReader:
    batches = [pa.record_batch({"id": [i], "v": [f"new {i}"]}) for i in range(2, 6)]
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


@pytest.mark.parametrize("limit", [None, 0, 30])
def test_stream_that_does_not_fit_into_memory_goes_through_a_temporary_file(tmp_path: Path, limit: int | None) -> None:
    table = made(tmp_path)
    upsert(table, source_stream(), max_spill_size=limit)
    assert rows_of(table) == [(1, "a"), *((i, f"new {i}") for i in range(2, 6))]


def test_temporary_files_take_no_more_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    files = data_files(table)
    with pytest.raises(SpillLimitError, match="max_temp_directory_size"):
        upsert(table, source_stream(), max_spill_size=0, max_temp_directory_size=10)
    assert (table.version(), data_files(table), list(place.iterdir())) == (0, files, [])
    with pytest.raises(SpillLimitError, match="rows that the merge changes take more than 10 bytes"):
        upsert(table, UPSERT, max_spill_size=0, max_temp_directory_size=10)
    assert (table.version(), data_files(table), list(place.iterdir())) == (0, files, [])
    upsert(table, UPSERT, max_spill_size=0, max_temp_directory_size=26)
    assert table.version() == 1


PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), unique=True, max_size=25)


@settings(max_examples=examples(100), deadline=None)
@given(PLACES, st.booleans(), st.lists(st.integers(0, 25), max_size=4).map(sorted), st.sampled_from([None, 0, 80]))
def test_decisions_come_back_in_order_from_memory_and_from_files(
    places: list[tuple[int, int]], is_ordered: bool, cuts: list[int], memory: int | None
) -> None:
    places = sorted(places) if is_ordered else places
    rows = [(file, position, i, i % 3) for i, (file, position) in enumerate(places)]
    with mock.patch.object(merge_decisions, "RUN_ROWS", 3), DecisionRuns(memory) as runs:
        for first, stop in pairwise([0, *cuts, len(rows)]):
            part = np.array(rows[first:stop], np.int64).reshape(-1, 4)
            runs.add(Decisions(part[:, 0], part[:, 1], part[:, 2], part[:, 3].astype(np.int16)))
        for _ in range(2):
            found = [row for run in runs for row in zip(*(a.tolist() for a in run.arrays), strict=True)]
            assert found == sorted(rows)
        assert runs.num_rows == len(rows)
        assert runs.counts(3).tolist() == [sum(r[3] == c for r in rows) for c in range(3)]
        files = pa.table({"path": list("abcd")})
        own = runs.row_sets(files, np.array([True, False, True]))
        expected = [sorted(p for f, p, _, c in rows if f == file and c != 1) for file in range(4)]
        assert [s.positions().tolist() for s in own] == expected


def test_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path, configuration=VECTORS)
    files = data_files(table)
    metrics = upsert(table, dry_run=True)
    assert (metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]) == (1, 1)
    assert (table.version(), data_files(table)) == (0, files)


def test_application_version_that_the_table_has_merges_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    once = CommitProperties(app_transactions=[AppTransaction("app", 1)])
    assert upsert(table, commit_properties=once)["num_target_rows_updated"] == 1
    assert upsert(table, commit_properties=once)["num_target_rows_updated"] == 0
    assert table.version() == 1


def at(stale: Any, source: pa.Table, *clauses: MergeClause) -> int:
    """Merge into a version that others have gone past: `merge_rows` itself looks for the latest one first."""
    options = MergeOptions("target.id = source.id", clauses=clauses)
    return run_merge(stale, source, options).snapshot.version


UPDATE, INSERT = MergeClause("matched", "update"), MergeClause("not_matched", "insert")


def test_merges_into_other_rows_of_one_file_both_land(tmp_path: Path) -> None:
    table = made(tmp_path, configuration=VECTORS)
    stale = table.snapshot()
    assert at(stale, pa.table({"id": [1], "v": ["A"]}), UPDATE) == 1
    assert at(stale, pa.table({"id": [3], "v": ["C"]}), UPDATE) == 2
    table.update_incremental()
    assert rows_of(table) == [(1, "A"), (2, "b"), (3, "C")]


@pytest.mark.parametrize("properties", [{}, VECTORS, {**VECTORS, **FEED}], ids=["rewrite", "vectors", "feed"])
def test_merges_into_the_same_row_conflict_and_leave_nothing_behind(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, configuration=properties)
    stale = table.snapshot()
    at(stale, UPSERT, UPDATE)
    files = data_files(table)
    with pytest.raises(CommitConflictError):
        at(stale, UPSERT, UPDATE)
    assert data_files(table) == files


def test_two_merges_do_not_insert_one_key_twice(tmp_path: Path) -> None:
    table = made(tmp_path)
    stale = table.snapshot()
    at(stale, UPSERT, INSERT)
    with pytest.raises(CommitConflictError):
        at(stale, UPSERT, INSERT)
    assert at(stale, pa.table({"id": [9], "v": ["z"]}), INSERT) == 2


def test_merger_is_made_by_merge_alone_and_returns_itself(tmp_path: Path) -> None:
    merger = made(tmp_path).merge(UPSERT, "target.id = source.id")
    assert isinstance(merger, TableMerger)
    assert merger.when_matched_delete() is merger


def called(merger: Any, clauses: Sequence[Clause]) -> Any:
    """Add clauses through the methods that both packages have."""
    for clause in clauses:
        method = f"when_{clause.kind}_{clause.action}"
        if clause.action == "delete":
            getattr(merger, method)(clause.predicate)
        elif clause.updates is None:
            getattr(merger, f"{method}_all")(clause.predicate)
        else:
            getattr(merger, method)(clause.updates, clause.predicate)
    return merger


@pytest.mark.peer
@pytest.mark.parametrize("matched", MATCHED)
@pytest.mark.parametrize(("inserted", "kept"), [(NOT_MATCHED[0], BY_SOURCE[0]), (NOT_MATCHED[1], BY_SOURCE[2])])
def test_deltalake_leaves_the_same_rows_for_the_same_calls(
    tmp_path: Path, matched: Clause, inserted: Clause, kept: Clause
) -> None:
    deltalake = pytest.importorskip("deltalake")
    target = [{"id": i, "p": "ab"[i % 2] if i % 3 else None, "x": i / 8} for i in range(8)]
    source = [{"id": i, "p": "ba"[i % 4 // 2], "x": 1 - i / 12} for i in range(4, 12)]
    found = []
    for package, uri in ((delta_core, tmp_path / "ours"), (deltalake, tmp_path / "theirs")):
        package.write_deltalake(str(uri), table_of(target))
        table = package.DeltaTable(str(uri))
        merger = table.merge(table_of(source), "target.id = source.id", source_alias="source", target_alias="target")
        metrics = called(merger, [matched, inserted, kept._replace(predicate="target.id > 3")]).execute()
        names = ("source_rows", "target_rows_inserted", "target_rows_updated", "target_rows_deleted")
        rows = pa.table(table.to_pyarrow_table()).to_pylist()
        found.append((shown(rows), [metrics[f"num_{name}"] for name in names]))
    assert found[0] == found[1]


def test_source_may_have_columns_of_a_type_that_the_table_has_no_feature_for(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    days = pa.array([18_262, 18_263], pa.date32())
    write_deltalake(uri, pa.table({"day": days, "x": [1.0, 2.0]}))
    times = pa.array([18_262 * 86_400_000_000], pa.timestamp("us"))  # a TIMESTAMP_NTZ
    source = pa.table({"day": times, "x": [3.0]})
    table = DeltaTable(uri)
    table.merge(source, "target.day = source.day").when_matched_update_all().execute()
    assert sorted(table.to_pyarrow_table().column("x").to_pylist()) == [2.0, 3.0]
    merge = table.merge(source.append_column("seen", times), "target.day = source.day", merge_schema=True)
    merge.when_matched_update_all().execute()
    assert table.to_pyarrow_table().column("seen").to_pylist().count(None) == 1


@pytest.mark.parametrize("partitions", [[], ["at"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (pa.date32(), -1_000_000),
        (pa.timestamp("us", "UTC"), -90_000_000_000_000_000),
        (pa.timestamp("us"), 300_000_000_000_000_000),
    ],
    ids=str,
)
def test_keys_may_be_times_that_python_cannot_hold(
    tmp_path: Path, kind: pa.DataType, first: int, partitions: list[str]
) -> None:
    def rows(numbers: range, x: int) -> pa.Table:
        times = np.array([first + 86_400_000_000 * n if kind != pa.date32() else first + n for n in numbers])
        stored = pa.array(times, pa.int32() if kind == pa.date32() else pa.int64())
        return pa.table({"at": stored.view(kind), "x": [x] * len(numbers)})

    uri = str(tmp_path / "t")
    for numbers in (range(4), range(4, 8)):
        write_deltalake(uri, rows(numbers, 1), mode="append", partition_by=partitions)
    table = DeltaTable(uri)
    merge = table.merge(rows(range(3, 10), 2), "target.at = source.at")
    metrics = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]) == (5, 2)
    assert sorted(table.to_pyarrow_table().column("x").to_pylist()) == [1] * 3 + [2] * 7
    twice = pa.concat_tables([rows(range(1), 3)] * 2)
    with pytest.raises(MultipleMatchesError, match="'at'"):
        table.merge(twice, "target.at = source.at").when_matched_update_all().execute()
    write_deltalake(table, rows(range(2), 4), mode="overwrite", replace_using=["at"])
    assert sorted(table.to_pyarrow_table().column("x").to_pylist()) == [1] + [2] * 7 + [4] * 2
