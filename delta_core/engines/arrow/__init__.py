"""The Arrow engine: PyArrow and fsspec, one machine, no server."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from delta_core.engine import Engine
from delta_core.engines.arrow.data_files import ArrowDataFiles
from delta_core.engines.arrow.evaluator import ArrowEvaluator
from delta_core.engines.arrow.log_files import ArrowLogFiles
from delta_core.engines.arrow.relations import ArrowRelations
from delta_core.engines.arrow.storage import open_storage

__all__ = ["engine", "map_threads"]

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def engine(uri: str, storage_options: Mapping[str, Any] | None = None) -> Engine:
    """Return the engine for one table; does no I/O."""
    storage = open_storage(uri, storage_options)
    remote = storage.local_path("") is None
    run = map_threads_wide if remote else map_threads
    logs = ArrowLogFiles(storage, run)
    evaluator = ArrowEvaluator()
    data, relations = ArrowDataFiles(storage, evaluator), ArrowRelations(evaluator)
    return Engine("arrow", storage, logs, data, evaluator, relations, map=run)  # type: ignore[arg-type]


def map_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Run a function over items on one thread a core, results in order."""
    given = list(items)
    if len(given) < 2:
        return [function(x) for x in given]
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="delta-arrow")
    return list(_pool.map(function, given))


_wide: ThreadPoolExecutor | None = None


def map_threads_wide(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """As `map_threads`, for work that waits for a remote store."""
    given = list(items)
    if len(given) < 2:
        return [function(x) for x in given]
    global _wide
    with _lock:
        if _wide is None:
            _wide = ThreadPoolExecutor(32, thread_name_prefix="delta-remote")
    return list(_wide.map(function, given))
