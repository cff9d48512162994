"""UPDATE: values beside a plain list; checks, computed columns, the feed, row ids, other writers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.engines.arrow import relations
from delta_core.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.options import AppTransaction
from delta_core.operations import row_changes, update
from delta_core.operations.changes import ChangeOptions
from delta_core.operations.delete import _Delete
from delta_core.operations.row_changes import RowChanges
from delta_core.operations.update import UpdateOptions
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, PrimitiveType
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples
from tests.operations.row_tables import (
    FEED,
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

#: Assignments, and the same in Python.
ASSIGNMENTS: dict[str, tuple[dict[str, str], Any]] = {
    "id": ({"id": "id + 50"}, lambda r: (r[0] + 50, r[1], r[2])),
    "p": ({"p": "'c'"}, lambda r: (r[0], "c", r[2])),
    "p from others": ({"p": "if(id % 2 = 0, 'a', null)"}, lambda r: (r[0], None if r[0] % 2 else "a", r[2])),
    "x": ({"x": "x * 2"}, lambda r: (r[0], r[1], None if r[2] is None else r[2] * 2)),
    "swapped": ({"id": "cast(x * 4 as bigint)", "x": "id / 4"}, None),
    "the same": ({"x": "x"}, lambda r: r),
}
ASSIGNMENTS["swapped"] = (
    {"id": "cast(coalesce(x, 0) * 4 as bigint)", "x": "id / 4"},
    lambda r: (int((r[2] or 0) * 4), r[1], r[0] / 4),
)
STEPS = st.lists(
    st.one_of(
        ROWS,
        st.tuples(st.just("delete"), st.sampled_from([*PREDICATES])),
        st.tuples(st.sampled_from([*ASSIGNMENTS]), st.sampled_from([*PREDICATES, "all"])),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("partitions", [[], ["p"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=examples(5), deadline=None)
@given(first=ROWS, steps=STEPS)
def test_rows_of_every_version_are_those_of_a_list(
    tmp_path_factory: pytest.TempPathFactory, kind: str, partitions: list[str], first: list[Row], steps: list[Any]
) -> None:
    uri = str(tmp_path_factory.mktemp("t"))
    write_deltalake(uri, table_of(first), partition_by=partitions, configuration=TABLES[kind])
    table = DeltaTable(uri)
    model, versions, changes = list(first), [sorted(first, key=repr)], dict[int, dict[str, list[Row]]]()
    for step in steps:
        before = row_ids(table) if "row ids" in kind else {}
        if isinstance(step, list):
            write_deltalake(table, table_of(step), mode="append")
            model += step
            changed = {"insert": step}
        else:
            verb, where = step
            chosen = [r for r in model if where == "all" or PREDICATES[where](r)]
            kept = [r for r in model if not (where == "all" or PREDICATES[where](r))]
            if verb == "delete":
                assert table.delete(where)["num_deleted_rows"] == len(chosen)
                model, changed = kept, {"delete": chosen}
            else:
                updates, change = ASSIGNMENTS[verb]
                metrics = table.update(updates, predicate=None if where == "all" else where)
                assert metrics["num_updated_rows"] == len(chosen)
                new = [change(r) for r in chosen]
                model, changed = kept + new, {"update_preimage": chosen, "update_postimage": new}
            if not chosen and table.version() == len(versions) - 1:
                continue
        versions.append(sorted(model, key=repr))
        changes[table.version()] = {k: sorted(v, key=repr) for k, v in changed.items() if v}
        assert table.version() == len(versions) - 1
        if "row ids" in kind:
            check_row_ids(table, before, changed)
    for version, expected in enumerate(versions):
        assert rows_of(DeltaTable(uri, version=version).to_pyarrow_table()) == expected
    for version, expected_changes in changes.items() if "feed" in kind else ():
        feed = table.load_cdf(version, version).read_all()
        kinds = feed.column("_change_type").to_pylist()
        found = {k: rows_of(feed.filter(pa.array([k == own for own in kinds], pa.bool_()))) for k in set(kinds)}
        assert found == expected_changes
    shutil.rmtree(uri)


def check_row_ids(table: DeltaTable, before: dict[int, Row], changed: dict[str, list[Row]]) -> None:
    """Rows keep their ids, and have this version as theirs if they changed."""
    after = row_ids(table)
    if "insert" in changed:
        assert before.items() <= after.items()
        return
    assert after.keys() <= before.keys()
    if "delete" not in changed:
        assert after.keys() == before.keys()
    found = table.snapshot().scan(metadata=["_row_id", "_row_commit_version"]).to_table()
    since = dict(zip(*(found.column(n).to_pylist() for n in ("_row_id", "_row_commit_version")), strict=True))
    fresh = [after[i] for i, version in since.items() if version == table.version()]
    assert sorted(fresh, key=repr) == sorted(changed.get("update_postimage", []), key=repr)


# --- new values ---


def test_field_of_a_struct_is_assigned_by_its_path(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int64()), ("b.c", pa.string())])
    rows = pa.table({"id": [1, 2], "s": pa.array([{"a": 1, "b.c": "x"}, None], inner)})
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    table.update({"s.a": "s.a + id", "S.`b.c`": "'y'"})
    assert table.to_pyarrow_table().column("s").to_pylist() == [{"a": 2, "b.c": "y"}, {"a": None, "b.c": "y"}]
    with pytest.raises(InvalidArgumentError, match=r"Both s and s\.a within it are assigned"):
        table.update({"s": "null", "s.a": "1"})


def test_constants_of_python_are_assigned(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "l": pa.array([[1]], pa.list_(pa.int32())), "t": pa.array(["x"])})
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    table.update(new_values={"id": 2.0, "l": [3, 4], "t": "it's"})
    assert table.to_pyarrow_table().to_pylist() == [{"id": 2, "l": [3, 4], "t": "it's"}]
    table.update(new_values={"l": None, "t": None})
    assert table.to_pyarrow_table().to_pylist() == [{"id": 2, "l": None, "t": None}]


def test_value_that_does_not_cast_is_an_error_or_null(tmp_path: Path) -> None:
    table = made(tmp_path)
    files = data_files(table)
    with pytest.raises(ExpressionError, match="can't be cast to BIGINT"):
        table.update({"id": "concat('a', p)"})
    assert (table.version(), data_files(table)) == (0, files)
    table.update({"id": "concat('a', p)"}, predicate="id = 3", error_on_type_mismatch=False)
    assert table.to_pyarrow_table(filters="id is null").num_rows == 1


@pytest.mark.parametrize(
    ("updates", "error", "message"),
    [
        ({"nothing": "1"}, ColumnNotFoundError, "nothing"),
        ({"id": "nothing"}, ColumnNotFoundError, "nothing"),
        ({"id": "1", "ID": "2"}, InvalidArgumentError, "twice"),
        ({"id": 5}, InvalidArgumentError, "new_values"),
        ({}, InvalidArgumentError, "Nothing is assigned"),
        ({"id": "id +"}, ExpressionError, "id"),
        ({"id": "map_keys(p)"}, ExpressionError, "map_keys"),
    ],
)
def test_assignments_that_do_not_fit_are_rejected(
    tmp_path: Path, updates: dict[str, Any], error: type[DeltaError], message: str
) -> None:
    table = made(tmp_path)
    with pytest.raises(error, match=message):
        table.update(updates)
    assert table.version() == 0


def test_arguments_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    table = made(tmp_path)
    for given_ in ({}, {"updates": {"id": "1"}, "new_values": {"id": 1}}):
        with pytest.raises(InvalidArgumentError, match="either updates"):
            table.update(**given_)
    with (
        pytest.warns(DeprecationWarning, match="by name"),
        pytest.raises(InvalidArgumentError, match="properties as int"),
    ):
        table.update({"id": "1"}, None, None, None, True, 5)  # type: ignore[call-arg]


# --- what the table requires of its rows ---


def typed_table(tmp_path: Path, **properties: str) -> DeltaTable:
    long = PrimitiveType("long")
    fields = [
        Field("id", long, False),
        Field("twice", long, True, {"delta.generationExpression": "id * 2"}),
        Field("own", long, True, {"delta.identity.start": 1, "delta.identity.step": 1}),
        Field("free", long, True, {"CURRENT_DEFAULT": "7"}),
    ]
    table = DeltaTable.create(tmp_path / "t", Schema(fields), configuration=properties)
    write_deltalake(table, pa.table({"id": [1, 2, 3]}), mode="append")
    table.update_incremental()
    return table


@pytest.mark.parametrize("properties", [{}, VECTORS, {**VECTORS, **FEED, **ROW_IDS}], ids=["plain", "vectors", "all"])
def test_computed_columns_are_computed_again_and_others_stay(tmp_path: Path, properties: dict[str, str]) -> None:
    table = typed_table(tmp_path, **properties)
    table.update({"id": "id + 10", "free": "null"}, predicate="id = 2")
    found = table.to_pyarrow_table().sort_by("own")
    assert found.to_pydict() == {"id": [1, 12, 3], "twice": [2, 24, 6], "own": [1, 2, 3], "free": [7, None, 7]}
    table.update({"twice": "id * 2"}, predicate="id = 3")
    with pytest.raises(ConstraintViolationError, match="generated column twice"):
        table.update({"twice": "5"}, predicate="id = 3")
    with pytest.raises(SchemaMismatchError, match="own can't be assigned"):
        table.update({"own": "5"}, predicate="id = 3")
    write_deltalake(table, pa.table({"id": [4]}), mode="append")
    assert max(DeltaTable(table.table_uri).to_pyarrow_table().column("own").to_pylist()) == 4


def test_rows_that_break_a_constraint_are_rejected_and_nothing_is_left(tmp_path: Path) -> None:
    table = typed_table(tmp_path, **{"delta.constraints.small": "id < 100"})
    files = data_files(table)
    for updates, name in (({"id": "id + 98"}, "small"), ({"id": "null"}, "NOT NULL id")):
        with pytest.raises(ConstraintViolationError, match=name):
            table.update(updates, predicate="id > 1")
    assert (table.version(), data_files(table)) == (1, files)
    table.update({"id": "id + 98"}, predicate="id = 1")


def test_rows_beside_the_selected_ones_are_not_checked_again(tmp_path: Path) -> None:
    properties = {"delta.constraints.small": "id < 100"}
    builder = TableBuilder(tmp_path / "t").create({"id": "long"}, properties=properties, features=["checkConstraints"])
    builder.append([{"id": 1}, {"id": 1000}])
    table = DeltaTable(builder.uri)
    table.update({"id": "2"}, predicate="id = 1")
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [2, 1000]


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewrite", "vectors"])
def test_append_only_tables_update_nothing(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, {**properties, "delta.appendOnly": "true"})
    files = data_files(table)
    for predicate in ("id = 3", None):
        with pytest.raises(UnsupportedOperationError, match="appendOnly"):
            table.update({"id": "1"}, predicate=predicate)
    assert (table.version(), data_files(table)) == (0, files)


# --- files and commits ---


def test_vectors_leave_the_data_files_as_they_are(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS)
    old = set(table.file_uris())
    metrics = table.update({"x": "0"}, predicate="id in (2, 3)")
    assert old < set(table.file_uris())
    assert (metrics["num_deletion_vectors_added"], metrics["num_copied_rows"], metrics["num_updated_rows"]) == (1, 0, 2)


def test_columns_that_no_new_value_needs_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path, VECTORS)
    read = []
    rows = RowChanges.rows
    monkeypatch.setattr(
        RowChanges, "rows", lambda self, f, r, columns: read.append(columns) or rows(self, f, r, columns)
    )
    table.update({"x": "id / 2"}, predicate="p = 'a'")
    assert read == [[("id",), ("p",)]]


@pytest.mark.parametrize("predicate", ["id = 77", "p = 'z'", "cast(null as boolean)"])
def test_no_selected_row_is_no_commit(tmp_path: Path, predicate: str) -> None:
    table = made(tmp_path, {}, ["p"])
    files = data_files(table)
    assert table.update({"id": "1"}, predicate=predicate)["num_updated_rows"] == 0
    assert (table.version(), data_files(table)) == (0, files)


def test_application_version_that_the_table_has_updates_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    once = CommitProperties(app_transactions=[AppTransaction("app", 1)])
    assert table.update({"x": "0"}, predicate="id = 1", commit_properties=once)["num_updated_rows"] == 1
    assert table.update({"x": "1"}, predicate="id = 1", commit_properties=once)["num_updated_rows"] == 0
    assert table.version() == 1


def test_commit_states_what_was_updated(tmp_path: Path) -> None:
    table = made(tmp_path, {**VECTORS, **FEED})
    table.update({"x": "0"}, predicate="id = 1", commit_properties=CommitProperties(custom_metadata={"why": "test"}))
    [info] = table.history(1)
    assert (info["operation"], info["operationParameters"]) == ("UPDATE", {"predicate": '["id = 1"]'})
    assert info["why"] == "test"
    found = {k: int(v) for k, v in info["operationMetrics"].items() if int(v) and k[-2:] != "Ms" and k[-5:] != "Bytes"}
    expected = {"numUpdatedRows": 1, "numAddedFiles": 1, "numDeletionVectorsAdded": 1, "numAddedChangeFiles": 1}
    assert found == expected


# --- other writers ---


def at(stale: Any, predicate: str, updates: dict[str, str] | None = None) -> Any:
    """Update (or delete) on a version that others have gone past: the operations look for the latest one first."""
    found: Any = _Delete(stale, ChangeOptions(predicate))
    if updates is not None:
        found = update._Update(stale, UpdateOptions(predicate, updates=updates))
    with found.changes:
        return found.run().snapshot


@pytest.mark.parametrize("properties", [VECTORS, {**VECTORS, **FEED, **ROW_IDS}], ids=["vectors", "all"])
def test_changes_of_other_rows_of_one_file_all_land(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, properties)
    ids = row_ids(table) if "delta.enableRowTracking" in properties else {}
    stale = table.snapshot()
    assert at(stale, "id = 1", {"x": "11"}).version == 1
    assert at(stale, "id = 8", {"x": "88"}).version == 2
    assert at(stale, "id = 5").version == 3
    write_deltalake(table.table_uri, table_of([(100, "a", None)]), mode="append")
    assert at(stale, "id = 6", {"x": "66"}).version == 5
    fresh = DeltaTable(table.table_uri)
    found = {r[0]: r[2] for r in rows_of(fresh.to_pyarrow_table())}
    assert found == {0: 0, 1: 11, 2: 0.2, 3: 0.3, 4: 0.4, 6: 66, 7: 0.7, 8: 88, 9: 0.9, 100: None}
    if ids:
        assert {i: r[0] for i, r in row_ids(fresh).items() if i in ids} == {
            i: r[0] for i, r in ids.items() if r[0] != 5
        }


@pytest.mark.parametrize("properties", [VECTORS, {}, {**VECTORS, **FEED}], ids=["vectors", "rewrite", "feed"])
@pytest.mark.parametrize("first", [{"x": "1"}, None], ids=["update", "delete"])
def test_changes_of_the_same_rows_conflict_and_leave_nothing_behind(
    tmp_path: Path, properties: dict[str, str], first: dict[str, str] | None
) -> None:
    table = made(tmp_path, properties)
    stale = table.snapshot()
    at(stale, "id < 3", first)
    files = data_files(table)
    with pytest.raises(CommitConflictError):
        at(stale, "id < 5", {"x": "2"})
    assert data_files(table) == files
    assert DeltaTable(table.table_uri).version() == 1


@pytest.mark.parametrize("properties", [{}, {**VECTORS, **FEED, **ROW_IDS}], ids=["rewrite", "all"])
def test_failure_at_any_write_leaves_the_table_and_its_folder_as_they_were(
    tmp_path: Path, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, properties, ["p"])
    before, files = rows_of(table.to_pyarrow_table()), data_files(table)
    snapshot = table.snapshot()
    calls = 0

    def failing_at(number: int, function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                raise OSError("no space left")
            return function(*args, **options)

        return call

    steps: list[tuple[Any, str]] = [(relations, "write_files"), (row_changes, "write_change_rows")]
    number = 0
    while True:
        number, calls = number + 1, 0
        with monkeypatch.context() as patch:
            for owner, name in (*steps, (type(snapshot.engine.storage), "put")):
                patch.setattr(owner, name, failing_at(number, getattr(owner, name)))
            try:
                at(snapshot, "id in (1, 2, 3)", {"p": "'c'", "x": "x + 1"})
            except (OSError, DeltaError):
                assert (data_files(table), DeltaTable(table.table_uri).version()) == (files, 0), f"failure {number}"
                assert rows_of(DeltaTable(table.table_uri).to_pyarrow_table()) == before
                continue
        break
    assert number > 2
    assert DeltaTable(table.table_uri).version() == 1


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["plain", "vectors", "vectors, mapping", "feed"])
def test_deltalake_reads_the_new_values(tmp_path: Path, kind: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = made(tmp_path, TABLES[kind], ["p"])
    table.update({"id": "id + 100", "p": "'c'"}, predicate="id % 3 = 0")
    table.delete("x > 0.75")
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.table_uri))
    found = pa.table(query.execute("select id, p from t"))
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [
        *((i, "ab"[i % 2]) for i in (1, 2, 4, 5, 7)),
        *((i + 100, "c") for i in (0, 3, 6)),
    ]


@pytest.mark.peer
@pytest.mark.parametrize(
    "arguments",
    [
        {"updates": {"x": "x + 1"}, "predicate": "id > 3"},
        {"updates": {"x": "id", "p": "'z'"}},
        {"new_values": {"x": 1.5, "p": "z"}, "predicate": "p = 'a'"},
        {"updates": {"x": "0"}, "predicate": "id > 100"},
    ],
)
def test_rows_and_metrics_equal_those_of_deltalake(tmp_path: Path, arguments: dict[str, Any]) -> None:
    deltalake = pytest.importorskip("deltalake")
    ours = made(tmp_path)
    shutil.copytree(tmp_path / "t", tmp_path / "theirs")
    theirs = deltalake.DeltaTable(tmp_path / "theirs")
    expected, found = theirs.update(**arguments), ours.update(**arguments)
    assert rows_of(ours.to_pyarrow_table()) == rows_of(theirs.to_pyarrow_table())
    assert expected.keys() <= found.keys()
    for name in ("num_updated_rows", "num_copied_rows", "num_removed_files"):
        assert found[name] == expected[name]
