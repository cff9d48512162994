"""Feature identityColumns: readers ignore it; writers number rows and move the mark in the schema."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from delta_core.errors import (
    ExpressionError,
    InvalidArgumentError,
    MetadataChangedError,
    SchemaError,
    SchemaMismatchError,
)
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.kernel.write.files import write_files
from delta_core.kernel.write.source import open_source
from delta_core.operations.write import TableWrite, WriteOptions, write_table
from delta_core.schema.fields import Field, Schema
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, attempt_view, table_state
from delta_plugins.identity_columns.logic import Identity
from delta_plugins.identity_columns.operations import sync_identity
from tests.plugins.written import append, begin, create, field_metadata, overwrite, peer_rows, rows

NAME = "identityColumns"
START, STEP, MARK, EXPLICIT = (f"delta.identity.{n}" for n in ("start", "step", "highWaterMark", "allowExplicitInsert"))
X = {"name": "x", "type": "string"}
LONGS = st.integers(-(2**63), 2**63 - 1)


def identity(start: Any = 1, step: Any = 1, mark: Any = None, explicit: Any = None, **field: Any) -> dict[str, Any]:
    given = {START: start, STEP: step, MARK: mark, EXPLICIT: explicit}
    return {"name": "a", "type": "long", "metadata": {k: v for k, v in given.items() if v is not None}, **field}


STRUCT = {"type": "struct", "fields": [identity()]}
NESTED = {"name": "s", "type": {"type": "array", "containsNull": True, "elementType": STRUCT}}


class TestIdentityColumns(FeatureContract):
    name = NAME

    def tables(self) -> list[ExampleTable]:
        rows = pa.table({"x": ["a", "b", "c"]})
        given = pa.table({"a": [1, 2, 3], "x": ["a", "b", "c"]})
        # rows that are replaced keep their values only if users may provide some
        explicit = table_state(fields=[identity(explicit=True), X]).schema
        fresh = table_state(fields=[identity(), X]).schema
        return [
            ExampleTable(rows, "x = 'none'", schema=fresh, expected=given),
            ExampleTable(given, "x > 'a'", schema=explicit),
        ]

    def states(self) -> list[TableState]:
        return [table_state([self.name], fields=[f]) for f in (identity(), identity(5, -2, 1, True), NESTED)]

    def writable(self) -> list[TableState]:
        return self.states()[:2]

    @pytest.mark.parametrize("field", [identity(), NESTED])
    def test_annotation_makes_it_active_and_requires_it(self, field: dict[str, Any]) -> None:
        state = table_state([self.name], fields=[field])
        assert state.is_active(self.name)
        assert self.alone().collect("required_features", metadata=state.metadata) == [NAME]

    def test_it_is_not_active_without_annotation(self) -> None:
        assert not table_state([self.name]).is_active(self.name)

    @pytest.mark.parametrize(
        "field",
        [
            NESTED,
            identity(type="integer"),
            identity(step=0),
            identity(step=None),
            identity(start=None),
            identity(start="one"),
            identity(start=1.0),
            identity(start=True),
            identity(mark=2**63),
            identity(explicit="yes"),
            {**identity(), "metadata": {**identity()["metadata"], "CURRENT_DEFAULT": "1"}},
        ],
    )
    def test_column_that_nobody_could_number_is_rejected_by_name(self, field: dict[str, Any]) -> None:
        state = table_state([NAME], fields=[field])
        with pytest.raises(SchemaError, match=r"Column (a|s\.element\.a)"):
            self.check_metadata(state)

    def test_partition_column_is_rejected(self) -> None:
        state = table_state([NAME], fields=[identity(), X], partition_by=["a"])
        with pytest.raises(SchemaError, match="partitioned by it"):
            self.check_metadata(state)

    def test_text_of_numbers_becomes_numbers(self) -> None:
        stated = {START: "7", STEP: "-2", EXPLICIT: "true"}
        schema = Schema([Field.from_arrow(pa.field("a", pa.int64(), metadata=stated))])
        state = table_state([NAME])
        prepared = self.prepare_metadata(
            replace(state, metadata=replace(state.metadata, schema_string=schema.to_json()))
        )
        assert Schema.from_json(prepared.schema_string).fields[0].metadata == {START: 7, STEP: -2, EXPLICIT: True}

    @pytest.mark.parametrize(
        ("step", "older", "wanted"), [(1, 3, 9), (1, None, 9), (1, 12, 12), (-1, 3, 3), (-1, 12, 9)]
    )
    def test_schema_that_comes_back_does_not_take_the_mark_back(self, step: int, older: Any, wanted: int) -> None:
        now, before = (table_state([NAME], fields=[identity(100, step, mark), X]) for mark in (9, older))
        found = Schema.from_json(self.prepare_metadata(before, previous=now).schema_string)
        assert found.fields[0].metadata[MARK] == wanted

    @pytest.mark.parametrize(
        ("step", "mark", "reported", "wanted"),
        [
            (2, None, (1, 9), 9),
            (2, 11, (1, 9), 11),
            (-2, None, (-9, 1), -9),
            (-2, -11, (-9, 1), -11),
            (-2, 1, (-9, -1), -9),
        ],
    )
    def test_mark_moves_in_the_direction_of_the_step_only(
        self, step: int, mark: Any, reported: Any, wanted: int
    ) -> None:
        state = table_state([NAME], fields=[identity(1, step, mark), X])
        attempt = attempt_view(state, reported={("a",): reported})
        found = self.alone().fold("finish_metadata", "metadata", state.metadata, attempt=attempt)
        assert Schema.from_json(found.schema_string).fields[0].metadata[MARK] == wanted

    def test_attempt_without_generated_values_keeps_the_metadata(self) -> None:
        state = table_state([NAME], fields=[identity(1, 1, 4), X])
        attempt = attempt_view(state, reported={("x",): ("a", "b")})
        assert self.alone().fold("finish_metadata", "metadata", state.metadata, attempt=attempt) == state.metadata


# --- values as numbers ---


@given(LONGS, LONGS.filter(bool), LONGS)
def test_next_value_is_the_first_of_the_sequence_behind_the_mark(start: int, step: int, mark: int) -> None:
    found = Identity("a", start, step, mark).next
    steps, rest = divmod(found - start, step)
    assert rest == 0
    assert steps >= 0
    direction = 1 if step > 0 else -1
    assert (found - mark) * direction > 0
    assert steps == 0 or (found - step - mark) * direction <= 0


@given(LONGS, LONGS.filter(bool), LONGS)
def test_rounding_returns_the_first_value_that_is_not_before(start: int, step: int, value: int) -> None:
    found = Identity("a", start, step).rounded(value)
    direction = 1 if step > 0 else -1
    if (value - start) * direction < 0:
        assert found is None
        return
    assert found is not None
    assert (found - start) % step == 0
    assert (found - value) * direction >= 0
    assert (found - step - value) * direction < 0


# --- tables ---


@pytest.mark.parametrize(("start", "step"), [(1, 1), (10, -3), (-5, 7), (2**53 + 1, 2)])
def test_rows_are_numbered_on_over_commits(tmp_path: Path, start: int, step: int) -> None:
    uri = create(tmp_path / "t", [identity(start, step), X])
    for texts in (["a", "b", "c"], ["d"], ["e", "f"]):
        append(uri, {"x": texts})
    wanted = [(start + i * step, x) for i, x in enumerate("abcdef")]
    assert sorted(rows(uri), key=lambda r: str(r[1])) == wanted
    assert sorted(peer_rows(uri), key=lambda r: str(r[1])) == wanted
    assert field_metadata(uri, "a")[MARK] == start + 5 * step


def test_first_rows_of_a_new_table_are_numbered(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(), X])
    assert MARK not in field_metadata(uri, "a")
    append(uri, {"x": pa.array([], pa.string())})
    assert MARK not in field_metadata(uri, "a")
    append(uri, {"x": ["a"]})
    assert rows(uri) == [(1, "a")]


def test_many_rows_in_many_batches_and_files_have_one_number_each(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(7, 7), X], partition_by=["x"])
    batches = [pa.record_batch({"x": pa.array([str(i % 3)] * 1000)}) for i in range(50)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    done = write_table(open_context(uri), reader, WriteOptions(mode="append", target_file_size=10_000))
    assert done is not None
    assert sorted(rows(uri, "a")) == [7 * i for i in range(1, 50_001)]
    assert field_metadata(uri, "a")[MARK] == 350_000


def test_two_writes_of_one_transaction_have_different_numbers(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(1, -1), X])
    transaction = begin(uri)
    for number in range(2):
        files = write_files(
            open_snapshot(uri).engine, transaction.plan, pa.table({"x": ["a", "b"]}), task_index=number, num_tasks=2
        )
        transaction.add_files(files.adds)
        transaction.intents.report(files.reported)
    transaction.commit()
    found = rows(uri, "a")
    assert sorted(found) == [-2, -1, 0, 1], "no number is left out"
    assert field_metadata(uri, "a")[MARK] == -2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rows_written_in_several_pieces_move_the_mark_over_all(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Whichever comes last: the mark would else return values again that rows have."""
    uri = create(tmp_path / "t", [identity(), X])

    class Pieces(TableWrite):
        def _write_rows(self, predicate: Any) -> None:
            for number in order:
                self.written.append(
                    write_files(
                        self.engine, self.transaction.plan, pa.table({"x": ["a"]}), task_index=number, num_tasks=2
                    )
                )
                self._stage_last()

    snapshot = open_snapshot(uri)
    Pieces(snapshot.context, snapshot, open_source(pa.table({"x": ["a"]})), WriteOptions(mode="append")).run()
    assert field_metadata(uri, "a")[MARK] == max(rows(uri, "a"))
    append(uri, {"x": ["b"]})
    assert len(set(rows(uri, "a"))) == 3


def test_values_that_rows_provide_are_rejected_unless_allowed(tmp_path: Path) -> None:
    uri = create(tmp_path / "always", [identity(), X])
    for values in ([5], [None]):
        with pytest.raises(SchemaMismatchError, match="a, whose values come from the table alone"):
            append(uri, {"A": pa.array(values, pa.int64()), "x": ["a"]})
    free = create(tmp_path / "default", [identity(explicit=True), X])
    append(free, {"a": [5, -5], "x": ["a", "b"]})
    assert MARK not in field_metadata(free, "a")
    append(free, {"x": ["c"]})
    assert sorted(rows(free, "a")) == [-5, 1, 5]


def test_rows_that_stay_keep_their_numbers(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(), X])
    append(uri, {"x": ["a", "b", "c"]})
    overwrite(uri, {"x": ["b"]}, replace_where="x = 'b'")
    assert sorted(rows(uri)) == [(1, "a"), (3, "c"), (4, "b")]
    overwrite(uri, {"x": ["z"]})
    assert rows(uri) == [(5, "z")]


def test_concurrent_numbering_conflicts(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(), X])
    slow = begin(uri)
    files = write_files(open_snapshot(uri).engine, slow.plan, pa.table({"x": ["slow"]}))
    slow.add_files(files.adds)
    slow.intents.reported.update(files.reported)
    append(uri, {"x": ["fast"]})
    with pytest.raises(MetadataChangedError):
        slow.commit()
    assert rows(uri) == [(1, "fast")]


@pytest.mark.parametrize(
    ("start", "step", "mark", "count"),
    [(2**63 - 2, 1, None, 3), (0, 1, 2**63 - 1, 1), (0, -1, -(2**63), 1), (0, 2**62, None, 3), (0, 2**62, 2**62, 1)],
)
def test_numbers_that_run_out_are_rejected(tmp_path: Path, start: int, step: int, mark: int | None, count: int) -> None:
    uri = create(tmp_path / "t", [identity(start, step, mark), X])
    with pytest.raises(ExpressionError, match=r"Column a can't be filled: .*OVERFLOW"):
        append(uri, {"x": ["x"] * count})
    assert open_snapshot(uri).version == 0


def test_last_numbers_are_given_out(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(2**63 - 2, 1), X])
    append(uri, {"x": ["a", "b"]})
    assert sorted(rows(uri, "a")) == [2**63 - 2, 2**63 - 1]


@pytest.mark.parametrize("mark", [4, 5, 6])
def test_mark_that_is_off_the_sequence_is_left_for_the_next_value_of_it(tmp_path: Path, mark: int) -> None:
    uri = create(tmp_path / "t", [identity(1, 3, mark), X])
    append(uri, {"x": ["a"]})
    assert rows(uri) == [(7, "a")]


# --- sync ---


@pytest.mark.parametrize(
    ("start", "step", "values", "mark"),
    [(1, 1, [5, 9, None], 9), (1, 5, [9], 11), (1, -5, [-5, 1], -9), (1, 1, [-3], None), (10, 10, [10], 10)],
)
def test_sync_moves_the_mark_over_values_that_rows_provided(
    tmp_path: Path, start: int, step: int, values: list[int | None], mark: int | None
) -> None:
    uri = create(tmp_path / "t", [identity(start, step, explicit=True), X])
    append(uri, {"a": pa.array(values, pa.int64()), "x": ["x"] * len(values)})
    assert sync_identity(open_snapshot(uri), "A") == mark
    assert field_metadata(uri, "a").get(MARK) == mark
    append(uri, {"x": ["new"]})
    assert len(set(rows(uri, "a"))) == len(values) + 1


def test_sync_never_moves_the_mark_back_and_commits_nothing_then(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(mark=100, explicit=True), X])
    append(uri, {"a": [7], "x": ["x"]})
    assert sync_identity(open_snapshot(uri), "a") == 100
    assert open_snapshot(uri).version == 1


def test_sync_of_what_is_no_identity_column_is_rejected(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(), X])
    with pytest.raises(InvalidArgumentError, match="no identity column 'x'"):
        sync_identity(open_snapshot(uri), "x")


def test_numbers_are_unique_whatever_was_done_before(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [identity(3, 2, explicit=True), X])
    sizes = itertools.cycle([1, 3, 2])
    for round_number in range(4):
        append(uri, {"x": ["x"] * next(sizes)})
        append(uri, {"a": [1000 * (round_number + 1)], "x": ["y"]})
        sync_identity(open_snapshot(uri), "a")
    found = rows(uri, "a")
    assert len(set(found)) == len(found)
