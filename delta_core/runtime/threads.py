"""Pools of threads, whose module is imported when the first is made: a small read needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["thread_pool"]


def thread_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool of at most so many threads, whose names begin with ``name``."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix=name)
