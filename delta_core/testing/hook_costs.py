"""The cost of a plugin's hooks: processor time by number of files, and whether they read or write files."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import DeltaError
from delta_core.kernel.commit.action_columns import with_declared_fields
from delta_core.kernel.commit.intents import REMOVED_FILE
from delta_core.kernel.plugins.attempt import AttemptView
from delta_core.kernel.plugins.hookspecs import RESULTS
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import CommitSummary
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import ADDED_FILE, CHANGE_FILE

__all__ = [
    "SIZES", "HookCost", "attempt_view", "call_hook", "failed_follow_ups", "hook_arguments", "measure_hooks",
    "smallest_loop_seconds", "watched_io",
]  # fmt: skip

#: Numbers of files with which hooks are measured.
SIZES = (1_000, 5_000, 25_000)
_REPEATS = 3
#: The smallest loop is what all hooks are compared with: a busy machine must not let it look slow.
_LOOP_REPEATS = 20
#: Audit events of files, networks and other programs.
_IO_EVENTS = frozenset(
    (
        "open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.system", "os.truncate",
        "shutil.copyfile", "socket.connect", "socket.getaddrinfo", "sqlite3.connect", "subprocess.Popen",
        "urllib.Request",
    )
)  # fmt: skip
_watching = threading.local()
_is_audited = False


def attempt_view(
    table: TableState, plugins: PluginSet | None = None, num_files: int = 0, **changes: Any
) -> AttemptView:
    """Return an attempt at the version after a table's, without any small action unless ``changes`` return some.

    Parameters
    ----------
    table : TableState
        The latest version.
    plugins : PluginSet, optional
        The file tables have the fields that these plugins add to actions.
    num_files : int
        The number of files that the attempt adds, and of those that it removes.
    **changes
        Fields of the view.
    """

    def files(schema: pa.Schema, action: str, count: int) -> pa.Table:
        whole = schema if plugins is None else with_declared_fields(schema, plugins, action)
        return _files(whole, table, count)

    view = AttemptView(
        replace(table, version=table.version + 1),
        table,
        table.version + 1,
        "WRITE",
        files(ADDED_FILE, "add", num_files),
        files(REMOVED_FILE, "remove", num_files),
        files(CHANGE_FILE, "cdc", 0),
        {},
        False,
        False,
        num_files > 0,
        1_700_000_000_000,
    )
    return replace(view, **changes)


def _files(schema: pa.Schema, table: TableState, count: int) -> pa.Table:
    """Return new files, a row each, as a transaction stages them."""
    if not count:
        return schema.empty_table()
    names = list(table.partition_columns)
    texts = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(len(names)), count)))
    offsets = pa.array(np.arange(count + 1) * len(names), pa.int32())
    known = {
        "path": pa.array([f"part-{i:08}.parquet" for i in range(count)]),
        "partitionValues": pa.MapArray.from_arrays(offsets, texts, pa.nulls(len(texts), pa.string())),
        "size": pa.repeat(pa.scalar(1_000_000, pa.int64()), count),
        "modificationTime": pa.repeat(pa.scalar(1_700_000_000_000, pa.int64()), count),
        "dataChange": pa.repeat(True, count),
        "stats": pa.repeat('{"numRecords":1000}', count),
        "numRecords": pa.repeat(pa.scalar(1000, pa.int64()), count),
        "fresh": pa.repeat(True, count),
    }
    columns = [known[f.name] if f.name in known else pa.nulls(count, f.type) for f in schema]
    return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema)


def hook_arguments(table: TableState, plugins: PluginSet, num_files: int = 0) -> dict[str, dict[str, Any]]:
    """Return arguments for the hooks that do no work of their own for a table, by hook.

    Parameters
    ----------
    table : TableState
        The table.
    plugins : PluginSet
        The plugins whose hooks are called.
    num_files : int
        The number of files of hooks that get files.
    """
    attempt = attempt_view(table, plugins, num_files, metadata_changed=True)
    metadata = table.metadata
    sizes = pa.table({"size": attempt.adds["size"], "dvCardinality": pa.nulls(num_files, pa.int64())})
    info = {"timestamp": 1_700_000_000_000, "operation": "WRITE", "inCommitTimestamp": 1_700_000_000_000}
    summary = CommitSummary(table.version, info, None, sizes, sizes)
    return {
        "primitive_types": {"features": frozenset(plugins.features)},
        "functions": {"features": frozenset(plugins.features)},
        "required_features": {"metadata": metadata},
        "prepare_metadata": {"metadata": metadata, "table": table, "previous": None},
        "prepare_domains": {"table": table, "requested": metadata.configuration},
        "check_metadata": {"table": table, "metadata": metadata, "previous": None, "is_new": True},
        "check_read": {"table": table},
        "column_map": {"table": table},
        "column_encodings": {"table": table},
        "read_rules": {"table": table, "request": ReadRequest()},
        "commit_timestamps": {"table": table},
        "plan_checkpoint": {"table": table},
        "write_rules": {"table": table, "operation": "WRITE"},
        "commit_rules": {"attempt": attempt},
        "finish_metadata": {"metadata": metadata, "attempt": attempt},
        "check_commit": {"attempt": attempt},
        "rebase_files": {"table": table, "adds": attempt.adds, "removes": attempt.removes, "winner": attempt.adds},
        "checksum_fields": {"table": table, "commit": summary},
        "file_references": {"table": table},
        "check_table": {"table": table},
        "retention_limits": {"table": table, "cutoff": 0},
        "feature_steps": {"table": table, "change": "drop"},
        "requires_catalog": {"features": frozenset(plugins.features)},
    }


def call_hook(plugins: PluginSet, hook: str, arguments: dict[str, Any]) -> Any:
    """Call a hook as the core does.

    Parameters
    ----------
    plugins : PluginSet
        The plugins whose hooks are called.
    hook : str
        The hook.
    arguments : dict
        Its arguments by name.
    """
    if RESULTS[hook] == "fold":
        more = {k: v for k, v in arguments.items() if k != "metadata"}
        return plugins.fold(hook, "metadata", arguments["metadata"], **more)
    call: Callable[..., Any] = {"list": plugins.collect, "check": plugins.check, "single": plugins.single}[
        RESULTS[hook]
    ]
    return call(hook, **arguments)


class HookCost(Struct, frozen=True):
    """The time that a hook takes, by number of files.

    Parameters
    ----------
    hook : str
        The hook.
    sizes : tuple of int
        The numbers of files.
    seconds : tuple of float
        For each of them, the least processor time of several calls.
    wall_seconds : float
        The least time of a call, with waits.
    """

    hook: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    wall_seconds: float

    @property
    def seconds_per_file(self) -> float:
        """The processor time of one more file, between the smallest and the largest size."""
        more = self.seconds[-1] - self.seconds[0]
        return max(more, 0.0) / (self.sizes[-1] - self.sizes[0])

    def seconds_of(self, num_files: int) -> float:
        """Return the processor time for a number of files, extrapolated as a straight line.

        Parameters
        ----------
        num_files : int
            The number of files.
        """
        return self.seconds[-1] + self.seconds_per_file * (num_files - self.sizes[-1])


def measure_hooks(plugins: PluginSet, tables: Sequence[TableState], sizes: Sequence[int] = SIZES) -> list[HookCost]:
    """Measure the hooks of plugins: for each, the table that takes the most processor time.

    Calls that the plugin rejects are left out.

    Parameters
    ----------
    plugins : PluginSet
        The plugins.
    tables : sequence of TableState
        The tables that hooks are called for.
    sizes : sequence of int
        Numbers of files.
    """
    found: dict[str, HookCost] = {}
    for table in tables:
        by_size = [hook_arguments(table, plugins, size) for size in sizes]
        for hook in by_size[0]:
            if not plugins.implements(hook):
                continue
            with suppress(DeltaError):
                cost = _measure(plugins, hook, [a[hook] for a in by_size], sizes)
                if hook not in found or cost.seconds[-1] > found[hook].seconds[-1]:
                    found[hook] = cost
    return list(found.values())


def _measure(plugins: PluginSet, hook: str, arguments: Sequence[dict[str, Any]], sizes: Sequence[int]) -> HookCost:
    call_hook(plugins, hook, arguments[0])  # imports, and what a hook keeps
    times = [_least_times(partial(call_hook, plugins, hook, given)) for given in arguments]
    return HookCost(hook, tuple(sizes), tuple(t for t, _ in times), min(w for _, w in times))


def _least_times(call: Callable[[], Any], repeats: int = _REPEATS) -> tuple[float, float]:
    """Return the least processor time of several calls, and their least time with waits."""
    least = wall = float("inf")
    for _ in range(repeats):
        began, began_wall = time.thread_time(), time.perf_counter()
        call()
        least = min(least, time.thread_time() - began)
        wall = min(wall, time.perf_counter() - began_wall)
    return least, wall


def smallest_loop_seconds() -> float:
    """Return the processor time per file of the smallest loop over files on this machine: a row with the path for each.

    The time of a loop depends on the machine and on the version of Python; this is what to compare a hook's time with.
    """
    count = SIZES[-1]
    paths = pa.table({"path": [f"part-{i:08}.parquet" for i in range(count)]})
    return _least_times(paths.to_pylist, _LOOP_REPEATS)[0] / count


# --- input and output ----------------------------------------------------------------------


@contextmanager
def watched_io() -> Iterator[list[str]]:
    """Collect what this thread does with files, networks and other programs: ``open 'a.txt'``."""
    global _is_audited
    if not _is_audited:
        sys.addaudithook(_audit)
        _is_audited = True
    found: list[str] = []
    _watching.events = found
    try:
        yield found
    finally:
        _watching.events = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    found = getattr(_watching, "events", None)
    if found is not None and event in _IO_EVENTS:
        found.append(f"{event} {arguments[0]!r}" if arguments else event)


@contextmanager
def failed_follow_ups() -> Iterator[list[Exception]]:
    """Collect the errors after commits, which are logged and not raised."""
    found: list[Exception] = []

    class _Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            arguments = record.args if isinstance(record.args, tuple) else ()
            found.extend(a for a in arguments if isinstance(a, Exception))

    logger, handler = logging.getLogger("delta_core.kernel.commit.transaction"), _Handler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
