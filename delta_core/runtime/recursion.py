"""Recursion without the interpreter's stack: for trees as deep as users make them.

A recursive function is written as a generator that yields each call of itself and gets back its result; `run` keeps the
calls on a list. A yielded value that is no such call is returned to the generator unchanged.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import GeneratorType
from typing import Any, TypeVar

__all__ = ["MOST_NESTED", "Steps", "each", "run"]

R = TypeVar("R")
#: The type of a function that yields its own calls: it receives their results, and returns one of its own.
Steps = Generator[Any, Any, R]
#: Levels of an expression, and of a type: deeper ones are rejected.
MOST_NESTED = 2_000


def each(steps: Iterable[Any]) -> Steps[list[Any]]:
    """Run several calls; use it by ``yield from``."""
    found: list[Any] = []
    for step in steps:
        found += [(yield step)]
    return found


def run(step: Steps[R]) -> R:
    """Run a generator and all those that it yields, each instead of a call; return its result."""
    if not isinstance(step, GeneratorType):
        return step  # type: ignore[return-value]  # a function that had nothing to call
    calls = [step]
    value: Any = None
    error: BaseException | None = None
    while calls:
        try:
            found = calls[-1].send(value) if error is None else calls[-1].throw(error)
        except StopIteration as done:
            calls.pop()
            value, error = done.value, None
        except BaseException as e:  # noqa: BLE001 (handed to the caller, as a call would)
            calls.pop()
            value, error = None, e
        else:
            error = None
            if isinstance(found, GeneratorType):
                calls.append(found)
                value = None
            else:
                value = found
    if error is not None:
        raise error
    # the value of the last generator, which is the first one called
    return value  # type: ignore[no-any-return]
