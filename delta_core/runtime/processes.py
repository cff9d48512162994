"""Objects of one process: a forked child can use neither the threads of its parent nor its locks and connections."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast, overload

__all__ = ["PerProcess", "cached_property", "num_forks"]

T = TypeVar("T")

_forks = 0


def num_forks() -> int:
    """Return how many forks lie between this process and the one that imported this module; a process's own number."""
    return _forks


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class PerProcess(Generic[T]):
    """A value that each process makes for itself, at its first use there; safe to use from several threads.

    A child keeps its parent's value, unused: what dropping it would do (close a connection, wait for a thread) is the
    parent's to do.

    Parameters
    ----------
    make : function()
        Makes the value; what another thread made at the same time may be used instead of its result.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}

    def get(self) -> T:
        """Return this process's value."""
        if _forks not in self._made:
            self._made.setdefault(_forks, self._make())
        return self._made[_forks]


class cached_property(Generic[T]):  # noqa: N801  (takes the place of functools')
    """As functools' own, but without the lock of Python 3.11, which is one for all objects while a value is made.

    With it threads would wait for each other's tables, and a child that was forked meanwhile for ever.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Return the value, which later look-ups find in the object's own dictionary."""
        if instance is None:
            return self
        value = self._make(instance)
        return cast("T", instance.__dict__.setdefault(self._name, value))
