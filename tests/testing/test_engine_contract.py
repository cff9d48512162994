"""EngineContract passes for two engines that share nothing, and catches deliberate mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core.engines.engine import Engine
from delta_core.engines.opening import make_engine as open_engine
from delta_core.testing.engine_contract import EngineContract, MakeEngine
from tests.engines import duckdb_engine


def arrow_engine(uri: str) -> Engine:
    return open_engine("arrow", uri, None)


class TestArrow(EngineContract):
    @pytest.fixture
    def make_engine(self) -> MakeEngine:
        return arrow_engine


class TestDuckDB(EngineContract):
    @pytest.fixture
    def make_engine(self) -> MakeEngine:
        return duckdb_engine.engine


class Wrong:
    """Data files with one mistake."""

    def __init__(self, data: Any, mistake: str) -> None:
        self._data, self._mistake = data, mistake

    def row_counts(self, paths: Any, sizes: Any) -> list[int]:
        found: list[int] = self._data.row_counts(paths, sizes)
        return sorted(found, reverse=True) if self._mistake == "counts" else found

    def read(self, read: Any, apply: Any) -> Any:
        mistake = self._mistake
        if mistake == "order":
            read = replace(read, paths=read.paths[::-1], sizes=read.sizes[::-1])
        if mistake == "batch_rows":
            read = replace(read, batch_rows=1 << 20)
        if mistake == "opened":
            read = replace(read, opened=None)

        def changed(file: int, first: int, batch: pa.RecordBatch, *more: Any) -> Any:
            if mistake == "positions":
                return apply(file, 0, batch, *more)
            if mistake == "twice":
                apply(file, first, batch, *more)
            if mistake == "kept":
                return apply(file, first, batch, *more) or batch
            return apply(file, first, batch, *more)

        if mistake == "missing":
            read = replace(read, paths=[p for p in read.paths if "gone" not in p], sizes=[None])
        return self._data.read(read, changed)


MISTAKES: dict[str, Callable[[EngineContract, Engine], object]] = {
    "counts": EngineContract.test_row_counts_are_those_of_the_files_in_their_order,
    "order": EngineContract.test_read_returns_files_in_order_and_rows_in_file_order,
    "positions": EngineContract.test_read_hands_each_row_to_apply_once_with_its_position,
    "twice": EngineContract.test_read_hands_each_row_to_apply_once_with_its_position,
    "kept": EngineContract.test_batch_that_apply_drops_is_not_handed_out,
    "batch_rows": EngineContract.test_batches_have_at_most_the_requested_rows,
    "opened": EngineContract.test_physical_rows_are_reported_before_the_first_batch,
    "missing": EngineContract.test_missing_file_is_named,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made: Any = EngineContract.folder
    return Path(made._get_wrapped_function()(EngineContract(), tmp_path))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_of_data_files_is_caught(folder: Path, mistake: str) -> None:
    engine = duckdb_engine.engine(str(folder))
    MISTAKES[mistake](EngineContract(), engine)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        MISTAKES[mistake](EngineContract(), replace(engine, data=Wrong(engine.data, mistake)))


def test_null_taken_for_true_is_caught(folder: Path) -> None:
    engine = duckdb_engine.engine(str(folder))

    class Loose:
        def compile(self, *arguments: Any) -> Any:
            compiled = engine.evaluator.compile(*arguments)

            class Compiled:
                leaves, type = compiled.leaves, compiled.type

                def __call__(self, columns: Any, num_rows: int) -> Any:
                    return compiled(columns, num_rows).fill_null(True)

            return Compiled()

    check = EngineContract().test_predicate_is_true_for_the_rows_that_sql_specifies
    check(engine, "not (x > 1)", [1, 2])
    with pytest.raises(AssertionError):
        check(replace(engine, evaluator=Loose()), "not (x > 1)", [1, 2])
