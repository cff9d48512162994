"""The work of each case through the deltalake package: its call of the same result, the fastest if there are two."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks.appends import appending, five_columns, three_columns
from benchmarks.ours import Work, _prepared
from benchmarks.questions import PARTITION, RANGE
from benchmarks.row_changes import (
    changing,
    compact,
    delete_partitions,
    delete_rows,
    merge_rows,
    reading_changes,
    update_rows,
    upsert_rows,
    z_order,
)
from benchmarks.upkeep import cleaning_log, compacting_log, converting, restoring, vacuuming
from benchmarks.writes import appending_at_once, checkpointing, writing


def open_table(table: Path, small: Path) -> Work:
    """Open: version, protocol, metadata."""
    from deltalake import DeltaTable

    def action(path: str) -> float:
        opened = DeltaTable(path)
        opened.protocol()
        opened.metadata()
        return opened.version()

    return _prepared(action, table, small)


def list_files(table: Path, small: Path) -> Work:
    """Open and list live files."""
    from deltalake import DeltaTable

    def action(path: str) -> float:
        return pa.table(DeltaTable(path).get_add_actions()).num_rows

    return _prepared(action, table, small)


list_files_of_commits = list_files
verify_log = list_files


def _plan(predicate: str, table: Path, small: Path) -> Work:
    from deltalake import DeltaTable

    def action(path: str) -> float:
        return len(DeltaTable(path).file_uris(file_pruning_predicate=predicate))

    return _prepared(action, table, small)


def plan_partition(table: Path, small: Path) -> Work:
    """Open and plan one partition."""
    return _plan(PARTITION, table, small)


def plan_range(table: Path, small: Path) -> Work:
    """Open and plan a range of ``id``."""
    return _plan(RANGE, table, small)


def list_uris(table: Path, small: Path) -> Work:
    """Open and list the URIs of live files."""
    from deltalake import DeltaTable

    def action(path: str) -> float:
        return len(DeltaTable(path).file_uris())

    return _prepared(action, table, small)


def list_partitions(table: Path, small: Path) -> Work:
    """Open and list the distinct partitions."""
    from deltalake import DeltaTable

    def action(path: str) -> float:
        return len(DeltaTable(path).partitions())

    return _prepared(action, table, small)


def nested(table: Path, small: Path) -> Work:
    """Return every add action with its statistics as structs."""
    from deltalake import DeltaTable

    def action(path: str) -> float:
        return pa.table(DeltaTable(path).get_add_actions()).num_rows

    return _prepared(action, table, small)


def flatten(table: Path, small: Path) -> Work:
    """Return every add action with its statistics as columns."""
    from deltalake import DeltaTable

    def action(path: str) -> float:
        return pa.table(DeltaTable(path).get_add_actions(flatten=True)).num_rows

    return _prepared(action, table, small)


def stream(table: Path, small: Path) -> Work:
    """Stream all rows."""
    from deltalake import DeltaTable, QueryBuilder

    def action(path: str) -> float:
        reader = QueryBuilder().register("t", DeltaTable(path)).execute("select * from t")
        return sum(batch.num_rows for batch in reader)

    return _prepared(action, table, small)


stream_with_vectors = stream


def append_rows(table: Path, small: Path) -> Work:
    """Append to an open table; it does not wait for the disk."""
    from deltalake import DeltaTable, write_deltalake

    return appending(DeltaTable, write_deltalake, three_columns(), table, small)


def append_to_many(table: Path, small: Path) -> Work:
    """Append to an open table of many files."""
    from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake

    write = partial(write_deltalake, post_commithook_properties=PostCommitHookProperties(create_checkpoint=False))
    return appending(DeltaTable, write, five_columns(), table, small, commits=10)


write_rows = partial(writing, "deltalake")
checkpoint = partial(checkpointing, "deltalake")
append_at_once = partial(appending_at_once, "deltalake")
delete_vectors = partial(changing, "deltalake", delete_rows)
delete_copies = delete_vectors
update_vectors = partial(changing, "deltalake", update_rows)
update_copies = update_vectors
merge_vectors = partial(changing, "deltalake", merge_rows)
merge_copies = merge_vectors
upsert_vectors = partial(changing, "deltalake", upsert_rows)
upsert_copies = upsert_vectors
delete_half = partial(changing, "deltalake", delete_partitions)
compact_small = partial(changing, "deltalake", compact)
cluster = partial(changing, "deltalake", z_order)
read_changes = partial(reading_changes, "deltalake")
vacuum = partial(vacuuming, "deltalake")
restore = partial(restoring, "deltalake")
convert = partial(converting, "deltalake")
compact_log = partial(compacting_log, "deltalake")
clean_log = partial(cleaning_log, "deltalake")
