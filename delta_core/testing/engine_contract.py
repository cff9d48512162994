"""EngineContract: what every engine keeps that reads data files and evaluates expressions. Subclass it in its tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.engine import Engine
from delta_core.engines.records import FileRead
from delta_core.errors import DataFileNotFoundError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Column
from delta_core.schema.fields import Schema

__all__ = ["EngineContract"]

MakeEngine = Callable[[str], Engine]

_SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
_ROWS = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "x": pa.array([None if i % 3 == 0 else i / 2 for i in range(10)], pa.float64()),
        "s": pa.array([None if i % 4 == 0 else f"s{i}" for i in range(10)], pa.string()),
    }
)


class EngineContract:
    """Tests that an engine reads data files and evaluates expressions as the core expects.

    A subclass has a fixture ``make_engine``: from the URI of a folder, an engine whose root it is. These tests need
    `DataFiles.read`, `DataFiles.row_counts` and an evaluator of comparisons, ``and``, ``or``, ``not`` and null tests:
    the minimum of an engine that reads tables.
    """

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Return a folder with two files of ten rows; the second one lacks the column ``s``."""
        pq.write_table(_ROWS, tmp_path / "a.parquet", row_group_size=4)
        pq.write_table(_ROWS.select(["id", "x"]).slice(0, 6), tmp_path / "b.parquet")
        return tmp_path

    @pytest.fixture
    def engine(self, folder: Path, make_engine: MakeEngine) -> Engine:
        """Return the engine of the folder."""
        return make_engine(str(folder))

    def request(self, names: Sequence[str], paths: Sequence[str] = ("a.parquet", "b.parquet"), **more: Any) -> FileRead:
        """Return a read of columns."""
        schema = pa.schema([_SCHEMA.field(n) for n in names])
        columns = Schema.from_arrow(schema)
        return FileRead(list(paths), [None] * len(paths), columns, "name", schema, **more)

    def rows(self, engine: Engine, read: FileRead) -> list[tuple[int, int, dict[str, Any]]]:
        """Return the rows that reach ``apply``: file number, position, values."""
        found: list[tuple[int, int, dict[str, Any]]] = []

        def apply(file: int, first: int, batch: pa.RecordBatch, picked: Any = None, is_tested: bool = False) -> Any:
            positions = range(first, first + batch.num_rows) if picked is None else first + picked.positions()
            found.extend(
                (file, int(p), row)
                for p, row in zip(positions, batch.to_pylist() or [{}] * batch.num_rows, strict=True)
            )
            return batch

        handed_out = sum(batch.num_rows for batch in engine.data.read(read, apply))
        assert handed_out == len(found), "every batch that apply returns is handed out, once"
        return sorted(found, key=lambda row: row[:2])

    # --- DataFiles.row_counts ---

    def test_row_counts_are_those_of_the_files_in_their_order(self, engine: Engine) -> None:
        paths = ["b.parquet", "a.parquet"]
        assert list(engine.data.row_counts(paths, [None, None])) == [6, 10]

    # --- DataFiles.read ---

    def test_read_hands_each_row_to_apply_once_with_its_position(self, engine: Engine) -> None:
        expected = [(0, i, row) for i, row in enumerate(_ROWS.select(["id", "x"]).to_pylist())]
        expected += [(1, i, row) for i, row in enumerate(_ROWS.select(["id", "x"]).slice(0, 6).to_pylist())]
        assert self.rows(engine, self.request(["id", "x"])) == expected

    def test_read_returns_files_in_order_and_rows_in_file_order(self, engine: Engine) -> None:
        batches = engine.data.read(self.request(["id"], batch_rows=3), lambda f, first, batch, *_: batch)
        assert [v for b in batches for v in b.column(0).to_pylist()] == [*range(10), *range(6)]

    def test_columns_come_in_the_order_and_types_of_the_request(self, engine: Engine) -> None:
        schemas: list[pa.Schema] = []

        def apply(file: int, first: int, batch: pa.RecordBatch, *_: Any) -> pa.RecordBatch:
            schemas.append(batch.schema)
            return batch

        list(engine.data.read(self.request(["x", "id"]), apply))
        assert {tuple(s.names) for s in schemas} == {("x", "id")}
        assert all(s.types == [pa.float64(), pa.int64()] for s in schemas)

    def test_column_that_a_file_lacks_is_null(self, engine: Engine) -> None:
        found = self.rows(engine, self.request(["s", "id"], ["b.parquet"]))
        assert [row for _, _, row in found] == [{"s": None, "id": i} for i in range(6)]

    def test_read_of_no_column_has_the_number_of_rows(self, engine: Engine) -> None:
        sizes: list[int] = []

        def count(file: int, first: int, batch: pa.RecordBatch, *_: Any) -> None:
            sizes.append(batch.num_rows)

        assert list(engine.data.read(self.request([]), count)) == []
        assert sum(sizes) == 16

    def test_batches_have_at_most_the_requested_rows(self, engine: Engine) -> None:
        sizes = [b.num_rows for b in engine.data.read(self.request(["id"], batch_rows=4), lambda f, n, b, *_: b)]
        assert max(sizes) <= 4

    def test_batch_that_apply_drops_is_not_handed_out(self, engine: Engine) -> None:
        def second(file: int, first: int, batch: pa.RecordBatch, *_: Any) -> pa.RecordBatch | None:
            return batch if file == 1 else None

        found = list(engine.data.read(self.request(["id"]), second))
        assert [v for b in found for v in b.column(0).to_pylist()] == list(range(6))

    def test_physical_rows_are_reported_before_the_first_batch(self, engine: Engine) -> None:
        opened: dict[int, int] = {}

        def apply(file: int, first: int, batch: pa.RecordBatch, *_: Any) -> pa.RecordBatch:
            assert file in opened, "FileRead.opened is called before the first batch of a file"
            return batch

        list(engine.data.read(self.request(["id"], opened=opened.__setitem__), apply))
        assert opened == {0: 10, 1: 6}

    def test_error_of_apply_reaches_the_caller(self, engine: Engine) -> None:
        def fail(*_: Any) -> None:
            raise ArithmeticError("of apply")

        with pytest.raises(ArithmeticError, match="of apply"):
            list(engine.data.read(self.request(["id"]), fail))

    def test_closed_read_stops(self, engine: Engine) -> None:
        batches: Any = engine.data.read(self.request(["id"], batch_rows=1), lambda f, n, b, *_: b)
        next(batches)
        batches.close()
        assert next(batches, None) is None

    def test_missing_file_is_named(self, engine: Engine) -> None:
        with pytest.raises(DataFileNotFoundError, match="gone"):
            list(engine.data.read(self.request(["id"], ["a.parquet", "gone.parquet"]), lambda f, n, b, *_: b))

    # --- Evaluator ---

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("id >= 8", [8, 9]),
            ("x > 1 and x < 3", [4, 5]),
            ("not (x > 1)", [1, 2]),
            ("x is null and id > 0", [3, 6, 9]),
            ("s = 's7' or id = 0", [0, 7]),
            ("not (s = 's7') and id > 5", [6, 9]),
        ],
    )
    def test_predicate_is_true_for_the_rows_that_sql_specifies(
        self, engine: Engine, text: str, expected: list[int]
    ) -> None:
        predicate = to_expression(text, Schema.from_arrow(_SCHEMA))
        assert predicate is not None
        compiled = engine.evaluator.compile(predicate, {Column((f.name,)): f.type for f in _SCHEMA})
        leaves: Any = compiled.leaves
        columns = [_ROWS.column(leaf.path[0]).combine_chunks() for leaf in leaves]
        mask = compiled(columns, _ROWS.num_rows).to_pylist()
        assert [i for i, passes in enumerate(mask) if passes is True] == expected
