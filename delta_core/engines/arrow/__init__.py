"""The Arrow engine: PyArrow and fsspec, one machine, no server.

The readers of data and the evaluator are imported at their first use: opening a table and listing its files need
neither.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_core.engines.arrow import parts
from delta_core.engines.arrow.log_files import ArrowLogFiles
from delta_core.engines.engine import Engine
from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import ThreadPool
from delta_core.storage.boundary import AllowExternal
from delta_core.storage.stores import open_offered

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage

__all__ = ["engine", "map_threads"]


def engine(uri: str, storage_options: Mapping[str, Any] | None = None, allow_external: AllowExternal = None) -> Engine:
    """Return the engine for one table; does no I/O."""
    storage = open_offered(uri, storage_options, allow_external)
    run = map_threads if storage.local_path("") is not None else map_threads_wide

    evaluating: Any = _Late(_evaluator)
    data: Any = _Late(partial(_data_files, storage, evaluating))
    relations: Any = _Late(lambda: parts.ArrowRelations(evaluating))
    logs: Any = ArrowLogFiles(storage, run)
    return Engine("arrow", storage, logs, data, evaluating, relations, map=run)


# functions, since names of `parts` are loaded at their first use
def _evaluator() -> Any:
    return parts.ArrowEvaluator()


def _data_files(storage: Storage, evaluating: Any) -> Any:
    return parts.ArrowDataFiles(storage, evaluating)


class _Late:
    """Represents an object that is made when something of it is requested; a pickled one is made again."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __reduce__(self) -> tuple[Any, ...]:
        return _Late, (self._make,)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "_made":
            self._made = self._make()
            return self._made
        return getattr(self._made, name)

    def __repr__(self) -> str:
        return repr(self._made)


def map_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Run a function over items on one thread a core, results in order."""
    return _map(function, list(items), _cores)


def map_threads_wide(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """As `map_threads`, for work that waits for a remote store."""
    return _map(function, list(items), _wide)


_cores = PerProcess(partial(ThreadPool, os.cpu_count() or 1, "delta-arrow"))
_wide = PerProcess(partial(ThreadPool, 32, "delta-remote"))


def _map(function: Callable[[Any], Any], items: list[Any], pool: PerProcess[ThreadPool]) -> list[Any]:
    if len(items) < 2:
        return [function(x) for x in items]
    tasks = [pool.get().submit(function, x) for x in items]
    try:
        # what no thread has begun is done here: threads that wait for each other's tasks would wait for ever
        return [function(x) if task.cancel() else task.result() for task, x in zip(tasks, items, strict=True)]
    finally:
        for task in tasks:
            task.cancel()
