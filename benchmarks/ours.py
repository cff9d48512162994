"""The work of each case through delta_core.

Each function makes its imports and does the same once on a table of the same kind, as small as it gets, outside
the clock: PyArrow and we import some modules at their first use. What it returns is run under the clock and answers
with a number that must be the same for every side.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.appends import appending, copied, five_columns, three_columns
from benchmarks.cold import head_over_import, read_over_import
from benchmarks.questions import PARTITION, RANGE, SMALLEST, masks_seen, positions_seen, vector_payloads
from benchmarks.row_changes import (
    Answer,
    changing,
    compact,
    delete_partitions,
    delete_rows,
    merge_rows,
    merging_many,
    reading_changes,
    share_of_files,
    update_rows,
    upsert_rows,
    z_order,
    z_order_spilling,
)
from benchmarks.shared_cache import cached_over_plain
from benchmarks.upkeep import cleaning_log, compacting_log, converting, restoring, vacuum_growth, vacuuming
from benchmarks.writes import appending_at_once, checkpointing, writing

Work = Callable[[], Answer]


def _prepared(action: Callable[[str], float], table: Path, small: Path) -> Work:
    action(str(small))
    return lambda: action(str(table))


def open_table(table: Path, small: Path) -> Work:
    """Open: version, protocol, metadata."""
    from delta_core import DeltaTable

    def action(path: str) -> float:
        opened = DeltaTable(path)
        opened.protocol()
        opened.metadata()
        return opened.version()

    return _prepared(action, table, small)


def list_files(table: Path, small: Path) -> Work:
    """Open and list live files as an Arrow table, with all columns but the texts of statistics and tags."""
    from delta_core import DeltaTable

    def action(path: str) -> float:
        return DeltaTable(path).scan().files().num_rows

    return _prepared(action, table, small)


list_files_of_commits = list_files


def list_files_cached(table: Path, small: Path) -> Work:
    """Answer with the time of new processes that list a table from the shared cache, over those that do not."""
    return partial(cached_over_plain, table, small)


def verify_log(table: Path, small: Path) -> Work:
    """Verify the log, without looking for data files."""
    from delta_core import DeltaTable

    def action(path: str) -> float:
        return DeltaTable(path).verify(data=False).checked["files"]

    return _prepared(action, table, small)


def _plan(predicate: str, table: Path, small: Path) -> Work:
    from delta_core import DeltaTable

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
    from delta_core import DeltaTable

    def action(path: str) -> float:
        return len(DeltaTable(path).file_uris())

    return _prepared(action, table, small)


def list_partitions(table: Path, small: Path) -> Work:
    """Open and list the distinct partitions."""
    from delta_core import DeltaTable

    def action(path: str) -> float:
        return len(DeltaTable(path).partitions())

    return _prepared(action, table, small)


def nested(table: Path, small: Path) -> Work:
    """Return every add action with its statistics as structs."""
    from delta_core import DeltaTable

    def action(path: str) -> float:
        return DeltaTable(path).get_add_actions().num_rows

    return _prepared(action, table, small)


def flatten(table: Path, small: Path) -> Work:
    """Return every add action with its statistics as columns."""
    from delta_core import DeltaTable

    def action(path: str) -> float:
        return DeltaTable(path).get_add_actions(flatten=True).num_rows

    return _prepared(action, table, small)


def stream(table: Path, small: Path) -> Work:
    """Stream all rows."""
    from delta_core import DeltaTable

    def action(path: str) -> float:
        return sum(batch.num_rows for batch in DeltaTable(path).snapshot().scan().to_reader())

    return _prepared(action, table, small)


stream_with_vectors = stream


def cost_of_vectors(table: Path, small: Path) -> Work:
    """Stream the rows with vectors and the same files without, in turn; answer with the ratio of the medians."""
    plain = table.with_name(table.name.replace("rows-with-vectors", "rows"))
    streams = [stream(plain, small), stream(table, small)]

    def timed(work: Work) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def ratio() -> float:
        for one in streams:  # memory is at hand from here on
            one()
        without, with_vectors = zip(*([timed(one) for one in streams] for _ in range(9)), strict=True)
        return statistics.median(with_vectors) / statistics.median(without)

    return ratio


def append_rows(table: Path, small: Path) -> Work:
    """Append to an open table, each commit on the disk before the next begins."""
    from delta_core import DeltaTable, write_deltalake

    return appending(DeltaTable, write_deltalake, three_columns(), table, small)


def append_to_many(table: Path, small: Path) -> Work:
    """Append to an open table of many files."""
    from delta_core import DeltaTable, PostCommitHookProperties, write_deltalake

    write = partial(write_deltalake, post_commithook_properties=PostCommitHookProperties(create_checkpoint=False))
    return appending(DeltaTable, write, five_columns(), table, small, commits=10)


def calls_of_append(table: Path, small: Path) -> Work:
    """Append over a remote store; answer with the calls beyond those of an append to a table of few files."""
    from benchmarks import latency
    from delta_core import DeltaTable, write_deltalake

    del small
    latency.register()

    def count(folder: Path) -> int:
        opened = DeltaTable(f"latency://{folder.resolve()}", storage_options={"delay_ms": "0"})
        # the first one proves the store, and looks for a checksum
        write_deltalake(opened, five_columns(), mode="append")
        with latency.recorded() as calls:
            write_deltalake(opened, five_columns(), mode="append")
        return len(calls.calls)

    def work() -> float:
        with copied(table) as many, TemporaryDirectory(dir=table.parent) as few:
            write_deltalake(few, five_columns(), partition_by="event_date")
            return count(many) - count(Path(few))

    return work


def vector_positions(table: Path, small: Path) -> Work:
    """Decode deletion vectors into arrays of positions; all are held."""
    from delta_core.kernels.roaring import decode_dv_payload

    del small
    payloads, _ = vector_payloads(table)

    def work() -> float:
        return positions_seen([decode_dv_payload(p).positions() for p in payloads])

    return work


def vector_masks(table: Path, small: Path) -> Work:
    """Decode deletion vectors into the bit masks that filter rows; all are held, as for files read at once."""
    from delta_core.kernels.roaring import decode_dv_bits

    del small
    payloads, rows = vector_payloads(table)

    def work() -> float:
        return masks_seen([decode_dv_bits(p, rows) for p in payloads])

    return work


def vector_algebra(table: Path, small: Path) -> Work:
    """Combine each vector with the next one in three ways."""
    from delta_core.kernels.roaring import decode_dv_payload

    del small
    sets = [decode_dv_payload(p) for p in vector_payloads(table)[0]]

    def work() -> float:
        found = [(a | b, a & b, a - b) for a, b in pairwise(sets)]
        return sum(len(s) for three in found for s in three)

    return work


def checksums(table: Path, small: Path) -> Work:
    """Sum rows as the example plugin does, compiled by Numba."""
    from delta_row_checksum.sums import row_checksum

    from benchmarks.sums import summing

    return summing(row_checksum, table, small)


def edit_distances(table: Path, small: Path) -> Work:
    """Add up edit distances by a function of rows."""
    from benchmarks.row_functions import by_numba, pairs

    by_numba(*pairs(small))
    found = pairs(table)
    return lambda: by_numba(*found)


def rows_for_numba(table: Path, small: Path) -> Work:
    """Answer with the number of rows from which a function of rows is worth its first call in a new process."""
    from benchmarks.row_functions import by_numba, from_how_many_rows, pairs

    by_numba(*pairs(small))
    return partial(from_how_many_rows, table)


def chain_of_open(table: Path, small: Path) -> Work:
    """Open over a slow store; answer with the longest chain of calls."""
    from benchmarks import latency
    from delta_core import DeltaTable

    del small
    latency.register()

    def work() -> float:
        with latency.recorded() as calls:
            DeltaTable(f"latency://{table.resolve()}").version()
        return calls.chain

    return work


def in_flight_of_list(table: Path, small: Path) -> Work:
    """List files over a slow store; answer with the most calls in flight."""
    from benchmarks import latency
    from delta_core import DeltaTable

    del small
    latency.register()

    def work() -> float:
        with latency.recorded() as calls:
            DeltaTable(f"latency://{table.resolve()}").snapshot().files.columns(["path"])
        return calls.in_flight

    return work


def calls_per_file(table: Path, small: Path) -> Work:
    """Read small files with vectors over a slow store; answer with the calls a file outside the log."""
    from benchmarks import latency
    from delta_core import DeltaTable

    del small
    latency.register()

    def work() -> float:
        snapshot = DeltaTable(f"latency://{table.resolve()}").snapshot()
        with latency.recorded() as calls:
            snapshot.scan().to_table()
        return len(calls.of(log=False)) / snapshot.files.count

    return work


def cold_read(table: Path, small: Path) -> Work:
    """Answer with the processor time of a process that reads, over that of one that imports PyArrow."""
    del table, small
    return read_over_import


def cold_head(table: Path, small: Path) -> Work:
    """Answer with the same of the command line's ``head``."""
    del table, small
    return head_over_import


def hook_calls(table: Path, small: Path) -> Work:
    """Answer with how many more hook calls a scan of 1,000 files takes than a scan of one."""
    from delta_core.kernel.plugins.registry import PluginRegistry
    from delta_core.kernel.snapshot import open_snapshot

    del small

    def count(path: Path) -> int:
        registry, calls = PluginRegistry(), []
        # the set of plugins is made at the first open and kept by the registry
        stop = open_snapshot(str(path), plugins=registry).plugins.monitor(calls.append)
        open_snapshot(str(path), plugins=registry).scan().to_table()
        stop()
        return len(calls)

    return lambda: count(table) - count(table.parent / f"hooks-one-{SMALLEST:g}")


def plan_partition_peak(table: Path, small: Path) -> Work:
    """Plan one partition; answer with the peak memory in MB."""
    from benchmarks.child import peak_mb

    plan = _plan(PARTITION, table, small)

    def work() -> float:
        plan()
        return peak_mb()

    return work


write_rows = partial(writing, "delta_core")
checkpoint = partial(checkpointing, "delta_core")
append_at_once = partial(appending_at_once, "delta_core")
delete_vectors = partial(changing, "delta_core", delete_rows, vectors=True)
delete_copies = partial(changing, "delta_core", delete_rows)
update_vectors = partial(changing, "delta_core", update_rows, vectors=True)
update_copies = partial(changing, "delta_core", update_rows)
merge_vectors = partial(changing, "delta_core", merge_rows, vectors=True)
merge_copies = partial(changing, "delta_core", merge_rows)
upsert_vectors = partial(changing, "delta_core", upsert_rows, vectors=True)
upsert_copies = partial(changing, "delta_core", upsert_rows)
delete_half = partial(changing, "delta_core", delete_partitions)
compact_small = partial(changing, "delta_core", compact)
cluster = partial(changing, "delta_core", z_order)
cluster_spilling = partial(changing, "delta_core", z_order_spilling)
read_changes = partial(reading_changes, "delta_core")
merge_peak = partial(merging_many, "delta_core")
files_after_z_order = partial(share_of_files, ("delta_core", "deltalake"), ("z_order", "z_order"))
files_after_hilbert = partial(share_of_files, ("delta_core", "delta_core"), ("hilbert", "z_order"))
vacuum = partial(vacuuming, "delta_core")
restore = partial(restoring, "delta_core")
convert = partial(converting, "delta_core")
compact_log = partial(compacting_log, "delta_core")
clean_log = partial(cleaning_log, "delta_core")
vacuum_peak = vacuum_live_peak = partial(vacuum_growth, "delta_core")
