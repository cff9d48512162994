"""What is measured: each case, the table it reads, what it is queried to reach, and who is beside us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CASES", "Target", "Case"]


@dataclass(frozen=True)
class Target:
    """What a case should reach; None if nothing is queried.

    Parameters
    ----------
    faster : float or None
        How many times faster than the peer.
    memory : float or None
        The share of the peer's peak memory that it may take.
    most_mb : float or None
        The peak memory that it may take, in MB.
    at_most, at_least : float or None
        Bounds of the case's own figure: seconds, calls or MB, as its unit specifies.
    """

    faster: float | None = None
    memory: float | None = None
    most_mb: float | None = None
    at_most: float | None = None
    at_least: float | None = None


@dataclass(frozen=True)
class Case:
    """One row of the report.

    Parameters
    ----------
    name : str
        The function in `benchmarks.ours`, and in the peer's module, that does the work.
    table : str
        Key of `benchmarks.tables.GENERATORS`.
    peer : str or None
        The module ``benchmarks.peers_<peer>`` that does the same.
    clock : str
        ``work``: the work alone. ``process``: a whole fresh process. ``count``: the work returns a figure.
    shrink : float
        The table's size relative to the run's scale.
    big : bool
        Run only when requested.
    beside : str or None
        A second table that the work reads, of the same size, made beside the first.
    """

    name: str
    title: str
    table: str
    target: Target = Target()
    peer: str | None = "deltalake"
    clock: Literal["work", "process", "count"] = "work"
    unit: str = "s"
    shrink: float = 1.0
    big: bool = False
    beside: str | None = None

    @property
    def key(self) -> str:
        """Name the case on the command line and in results."""
        name = self.name.replace("_", "-")
        name = f"{name}-struct" if self.table.endswith("-struct") else name
        return name if self.shrink == 1 else f"{name}-tenth"


_MILLION = "one checkpoint + 20 commits of 500 adds and 500 removes"
CASES = (
    Case("open_table", f"open 1,000,000 files ({_MILLION})", "million-json", Target(100, 0.2)),
    Case("list_files", "open 1,000,000 files and list them (Arrow table, all columns)",
         "million-json", Target(20, 0.4)),
    Case("list_files_cached",
         "new process: open and list 1,000,000 files with a shared snapshot cache, over the time without, medians of 9",
         "million-json", Target(at_most=0.1), peer=None, clock="count", unit="x"),
    Case("verify_log", "verify 1,000,000 files, log only; beside twice the time of deltalake's get_add_actions",
         "million-json", Target(0.5)),
    Case("list_uris", "open 1,000,000 files and list their URIs", "million-json", Target(15)),
    Case("list_partitions", "open 1,000,000 files and list their 1,000 partitions", "million-json", Target(1.0)),
    Case("nested", "all adds of 1,000,000 files with statistics as structs", "million-json", Target(1.0)),
    Case("plan_partition", "open 1,000,000 files and plan one of 1,000 partitions", "million-json", Target(18)),
    Case("plan_partition", "open and plan one of 1,000 partitions, struct checkpoint", "million-struct", Target(18)),
    Case("plan_range", "open 1,000,000 files and plan 10 by JSON statistics", "million-json", Target(12)),
    Case("plan_range", "open 1,000,000 files and plan 10 by struct statistics", "million-struct", Target(40)),
    Case("flatten", "all adds of 1,000,000 files with flattened statistics", "million-json", Target(5)),
    Case("flatten", "all adds with flattened statistics, struct checkpoint", "million-struct"),
    Case("list_files_of_commits", "10,000 JSON commits x 20 adds: open and list", "commits", Target(20)),
    Case("stream_with_vectors", "stream 20 files x 1,000,000 rows, 10 % deleted by vectors", "rows-with-vectors",
         Target(1.5)),
    Case("stream", "stream 20 files x 1,000,000 rows without vectors", "rows", Target(1.0)),
    Case("cost_of_vectors", "the time of this stream with vectors over the time without, in turn, medians of 9",
         "rows-with-vectors", Target(at_most=1.1), peer=None, clock="count", unit="x", beside="rows"),
    Case("vector_positions", "decode 20 vectors of 100,000 scattered rows into positions", "rows-with-vectors",
         Target(1.0), peer="pyroaring"),
    Case("vector_masks", "decode 20 vectors of 100,000 scattered rows into bit masks", "rows-with-vectors", Target(2),
         peer="pyroaring"),
    Case("vector_algebra", "unions, intersections and differences of 20 vectors with the next one",
         "rows-with-vectors", Target(0.7), peer="pyroaring"),
    Case("checksums", "checksums of 1,000,000 rows (int64, string) by a plugin in Numba; peer: the same in NumPy",
         "rows",
         Target(5), peer="numpy"),
    Case("edit_distances", "edit distances of 20,000 pairs of strings by a function of rows; peer: a loop of Python",
         "rows", Target(50), peer="python"),
    Case("rows_for_numba", "new process: rows from which this function beats the loop, compiled before",
         "rows", Target(at_most=20_000), peer=None, clock="count", unit="rows"),
    Case("start_up", "fresh process: import + open of 3 commits", "three-commits", Target(at_most=0.25),
         clock="process"),
    Case("cold_read", "fresh process: import, open, first filtered read; processor time over import pyarrow",
         "three-commits", Target(at_most=1.5), peer=None, clock="count", unit="x"),
    Case("cold_head", "fresh process: delta-core head into a pipe; processor time over import pyarrow",
         "three-commits", Target(at_most=1.5), peer=None, clock="count", unit="x"),
    Case("open_table", "open 100,000 files", "million-json", peer=None, shrink=0.1),
    Case("list_files", "open and list 100,000 files", "million-json", peer=None, shrink=0.1),
    Case("plan_range", "open and plan 10 of 100,000 files by JSON statistics", "million-json", peer=None, shrink=0.1),
    Case("write_rows", "write 10,000,000 rows (int64, double, string) with full statistics", "empty", Target(2)),
    Case("append_rows", "200 appends of 10 rows to an open table, one commit each, a checkpoint each 100", "empty",
         Target(4)),
    Case("append_to_many", "10 appends of 10 rows to an open table of 1,000,000 files, no checkpoints", "million-json",
         Target(4)),
    Case("checkpoint", "open 1,000,000 files and write their checkpoint", "million-json", Target(3, 0.5)),
    Case("append_at_once", "8 processes x 50 blind appends at once", "empty", Target(1.0)),
    Case("delete_vectors",
         "delete 1 % of 10,000,000 rows (int64, double, string), scattered; vectors beside the peer's copies",
         "narrow-rows", Target(4, 0.5)),
    Case("delete_copies", "delete 1 % of 10,000,000 rows, copy-on-write", "narrow-rows", Target(1.0)),
    Case("delete_half", "open 1,000,000 files and delete half of them by partition", "million-json", Target(10, 0.5)),
    Case("update_vectors", "update 1 % of 10,000,000 rows; vectors beside the peer's copies", "narrow-rows", Target(2)),
    Case("update_copies", "update 1 % of 10,000,000 rows, copy-on-write", "narrow-rows", Target(1.0)),
    Case("merge_vectors", "merge 110,000 rows into 10,000,000 (100,000 match); vectors beside the peer's copies",
         "narrow-rows",
         Target(3, 0.5)),
    Case("merge_copies", "merge 110,000 rows into 10,000,000 (100,000 match), copy-on-write",
         "narrow-rows", Target(1.5, 0.5)),
    Case("upsert_vectors",
         "merge 200 rows into 2,000,000 of an id and 100 doubles in 20 files; vectors beside the peer's copies",
         "wide-rows", Target(20)),
    Case("upsert_copies", "merge 200 rows into 2,000,000 of an id and 100 doubles in 20 files, copy-on-write",
         "wide-rows", Target(4, most_mb=500)),
    Case("compact_small", "compact 10,000 files of 200 rows", "tiny-files", Target(3)),
    Case("cluster", "Z-order of two columns of 10,000,000 rows", "narrow-rows", Target(5)),
    # deltalake's fails with so little memory; ours needs more than that for readers, a sample and writers
    Case("cluster_spilling", "Z-order of two columns of 10,000,000 rows with 64 MB for them in memory",
         "narrow-rows", Target(most_mb=600), peer=None),
    Case("files_after_z_order", "files planned for 1 % of either column after a Z-order: our share over the peer's",
         "narrow-rows",
         Target(at_most=1), peer=None, clock="count", unit="x", shrink=0.1),
    Case("files_after_hilbert", "files planned for 1 % of either column: our Hilbert curve over our Z-order",
         "narrow-rows", Target(at_most=1), peer=None, clock="count", unit="x", shrink=0.1),
    Case("read_changes", "open and read the change feed of 100 commits that append, update, delete, merge",
         "change-feed",
         Target(2)),
    Case("vacuum", "vacuum 100,000 files in 1,000 folders, half of them garbage", "half-garbage", Target(3)),
    # both are within one row group of the checkpoint, and 45,000 more names are returned
    Case("vacuum_peak", "what a vacuum of 100,000 files adds to the peak memory of one of 10,000", "half-garbage",
         Target(at_most=48), peer=None, clock="count", unit="MB", beside="little-garbage"),
    Case("vacuum_live_peak", "what 900,000 more live files add to the peak memory of a vacuum", "million-live",
         Target(at_most=32), peer=None, clock="count", unit="MB", beside="tenth-live"),
    Case("restore", "open 1,000,000 files and restore the version before 20 commits", "million-json", Target(3, 0.5)),
    Case("convert", "convert 10,000 Parquet files of 20 rows, with statistics", "parquet-files", Target(2)),
    Case("compact_log", "compact the log of 10,000 commits x 20 adds", "commits", Target(3)),
    Case("clean_log", "delete 10,000 expired commits of the log", "old-commits", Target(1.0)),
    Case("merge_peak", "merge 1,100,000 rows into 100,000,000: peak memory", "hundred-million",
         Target(at_most=1_000), peer=None, clock="count", unit="MB", big=True),
    Case("chain_of_open", "20 ms a call: longest chain of calls to open 1,000,000 files", "million-json",
         Target(at_most=5), peer=None, clock="count", unit="calls"),
    Case("in_flight_of_list", "20 ms a call: calls in flight to list 10,000 commits", "commits",
         Target(at_least=32), peer=None, clock="count", unit="calls"),
    Case("calls_per_file", "20 ms a call: calls a file to read 200 small files with vectors", "small-files",
         Target(at_most=3), peer=None, clock="count", unit="calls"),
    Case("calls_of_append", "calls of an append on 1,000,000 files less one on none", "million-json",
         Target(at_most=0), peer=None, clock="count", unit="calls"),
    Case("hook_calls", "hook calls of open + scan, 1,000 files less 1 file", "hooks-thousand",
         Target(at_most=0), peer=None, clock="count", unit="calls"),
    Case("plan_partition_peak", "plan one partition of 10,000,000 files: peak memory", "ten-million",
         Target(at_most=3_000), peer=None, clock="count", unit="MB", big=True),
)  # fmt: skip
