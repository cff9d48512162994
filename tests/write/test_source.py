"""Sources of rows: what can be read once is never taken for no rows when it is passed again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CommitConflictError, InvalidArgumentError, SchemaMismatchError, TableExistsError
from delta_core.kernel.write import source as sources
from delta_core.kernel.write.source import open_source

ROWS = pa.table({"id": [1, 2, 3]})
AGAIN = "was read before"


class Exported:
    """A foreign object with an Arrow stream: one of a stream can be read once, one of a table again and again."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rows.__arrow_c_stream__(requested_schema)


class Iterated(Exported):
    """A foreign iterator with an Arrow stream."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        raise StopIteration


def duckdb_reader() -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql("SELECT range AS id FROM range(3)").to_arrow_reader()


def duckdb_relation() -> Any:
    return pytest.importorskip("duckdb").sql("SELECT range AS id FROM range(3)")


def polars_batches() -> Any:
    frame = pytest.importorskip("polars").LazyFrame({"id": [1, 2, 3]})
    return frame.collect_batches() if hasattr(frame, "collect_batches") else ROWS.to_reader()


def query_result() -> Any:
    return pytest.importorskip("deltalake").QueryBuilder().execute("SELECT 1 AS id")


ONCE: dict[str, Callable[[], Any]] = {
    "reader": ROWS.to_reader,
    "reader-of-generator": lambda: pa.RecordBatchReader.from_batches(ROWS.schema, (b for b in ROWS.to_batches())),
    "export": lambda: Exported(ROWS.to_reader()),
    "export-of-export": lambda: pa.RecordBatchReader.from_stream(Exported(ROWS.to_reader())),
    "iterator": lambda: Iterated(ROWS.to_reader()),
    "scanner-of-batches": lambda: pads.Scanner.from_batches(ROWS.to_reader()),
    "duckdb-reader": duckdb_reader,
    "polars-batches": polars_batches,
    "query-result": query_result,
}
AGAIN_AND_AGAIN: dict[str, Callable[[], Any]] = {
    "table": lambda: ROWS,
    "batch": lambda: ROWS.to_batches()[0],
    "list": ROWS.to_batches,
    "export": lambda: Exported(ROWS),
    "dataset": lambda: pads.dataset(ROWS),
    "scanner": lambda: pads.dataset(ROWS).scanner(),
    "duckdb-relation": duckdb_relation,
    "polars": lambda: pytest.importorskip("polars").DataFrame({"id": [1, 2, 3]}),
    "pandas": lambda: ROWS.to_pandas(),
    "no-rows": lambda: Exported(ROWS.slice(0, 0)),
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [7, 8]}))
    return path


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table().column("id").to_pylist())


def merge(path: str, source: Any, dry_run: bool = False) -> Any:
    merger = DeltaTable(path).merge(source, "target.id = source.id", dry_run=dry_run)
    return merger.when_not_matched_by_source_delete().when_not_matched_insert_all()


CALLS: dict[str, Callable[[str, Any], Any]] = {
    "append": lambda path, rows: write_deltalake(path, rows, mode="append"),
    "overwrite": lambda path, rows: write_deltalake(path, rows, mode="overwrite"),
    "with-progress": lambda path, rows: write_deltalake(path, rows, mode="overwrite", progress=lambda _: None),
    "replace-where": lambda path, rows: write_deltalake(path, rows, mode="overwrite", predicate="id < 10"),
    "replace-using": lambda path, rows: write_deltalake(path, rows, mode="overwrite", replace_using=["id"]),
    "create": lambda path, rows: write_deltalake(path + "-new", rows),
    "merge": lambda path, rows: merge(path, rows).execute(),
    "dry-merge": lambda path, rows: merge(path, rows, dry_run=True).execute(),
}


@pytest.mark.parametrize("kind", ONCE)
@pytest.mark.parametrize(("first", "second"), [("append", "overwrite"), ("overwrite", "merge"), ("merge", "append")])
def test_stream_that_a_call_read_is_rejected_by_the_next(kind: str, first: str, second: str, table: str) -> None:
    source = ONCE[kind]()
    CALLS[first](table, source)
    before = ids(table)
    with pytest.raises(InvalidArgumentError, match=AGAIN):
        CALLS[second](table, source)
    assert ids(table) == before


@pytest.mark.parametrize("first", CALLS)
@pytest.mark.parametrize("second", CALLS)
def test_every_call_notes_and_rejects_a_read_stream(first: str, second: str, table: str) -> None:
    source = ROWS.to_reader()
    CALLS[first](table, source)
    before = ids(table)
    with pytest.raises(InvalidArgumentError, match=AGAIN):
        CALLS[second](table + "-other" if second == "create" else table, source)
    assert ids(table) == before


@pytest.mark.parametrize("kind", AGAIN_AND_AGAIN)
def test_source_that_returns_its_rows_each_time_is_taken_again(kind: str, table: str) -> None:
    source = AGAIN_AND_AGAIN[kind]()
    CALLS["overwrite"](table, source)
    before = ids(table)
    CALLS["merge"](table, source)
    CALLS["overwrite"](table, source)
    assert ids(table) == before


def test_call_that_fails_before_it_reads_leaves_the_stream_usable(table: str) -> None:
    source = ROWS.to_reader()
    with pytest.raises(TableExistsError):
        write_deltalake(table, source)
    write_deltalake(table, source, mode="append")
    assert ids(table) == [1, 2, 3, 7, 8]


@pytest.mark.parametrize("of", [lambda r: r, Exported, Iterated], ids=["reader", "export", "iterator"])
def test_rest_of_a_stream_whose_write_failed_is_rejected(of: Callable[[Any], Any], table: str) -> None:
    batches = [pa.record_batch({"id": pa.array([v], pa.float64())}) for v in (1.0, 2.5, 3.0, 4.0)]
    source = of(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    with pytest.raises(SchemaMismatchError):
        write_deltalake(table, source, mode="append")
    with pytest.raises(InvalidArgumentError, match=AGAIN):
        write_deltalake(table, source, mode="overwrite")
    assert ids(table) == [7, 8]


def test_query_whose_write_failed_is_taken_again(table: str) -> None:
    relation = duckdb_relation()
    DeltaTable(table).alter.add_constraint({"above": "id > 1"})
    with pytest.raises(Exception, match="above"):
        write_deltalake(table, relation, mode="append")
    DeltaTable(table).alter.drop_constraint("above")
    write_deltalake(table, relation, mode="append")
    assert ids(table) == [0, 1, 2, 7, 8]


def test_merge_of_a_stream_that_lost_a_race_is_not_repeated_with_no_rows(table: str) -> None:
    rows = iter(ROWS.to_batches())

    def batches() -> Iterator[pa.RecordBatch]:
        DeltaTable(table).delete("id = 7")  # the winner
        yield from rows

    merger = merge(table, pa.RecordBatchReader.from_batches(ROWS.schema, batches()))
    with pytest.raises(CommitConflictError):
        merger.execute()
    with pytest.raises(InvalidArgumentError, match="has to be built again"):
        merger.execute()
    assert ids(table) == [8]


def test_merge_of_a_table_that_lost_a_race_can_be_repeated(table: str) -> None:
    merger = merge(table, ROWS)
    merger.execute()
    merger.execute()
    assert ids(table) == [1, 2, 3]


def test_sources_are_remembered_no_longer_than_they_exist(table: str) -> None:
    source = Exported(ROWS.to_reader())
    write_deltalake(table, source, mode="append")
    kept, number = weakref.ref(source), len(sources._readings)
    del source
    gc.collect()
    assert kept() is None
    assert len(sources._readings) < number


def test_two_openings_of_one_stream_share_no_rows() -> None:
    source = ROWS.to_reader()
    first, second = open_source(source), open_source(source)
    assert first.read_all() == ROWS
    with pytest.raises(InvalidArgumentError, match=AGAIN):
        second.read_all()
