"""The commit loop, for any format: build, publish, read the winning commits, check for conflicts, retry."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from delta_core.errors import TooManyAttemptsError
from delta_core.kernel.plugins.committer import Committed, Conflict, Outcome

__all__ = ["commit_loop", "max_backoff_seconds"]

#: The longest pause by lost races, in multiples of an attempt's duration: on a slow store, a fixed pause would not
#: separate concurrent writers.
_ATTEMPTS_TO_WAIT = (0.0, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 2.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_LONGEST = 10.0
Base = TypeVar("Base")
Built = TypeVar("Built")


class Won(Generic[Base, Built]):
    """The attempt that landed, and what it was built on."""

    def __init__(self, base: Base, attempt: Built, committed: Committed) -> None:
        self.base = base
        self.attempt = attempt
        self.committed = committed


def max_backoff_seconds(lost: int, took: float) -> float:
    """Return the most seconds to wait after a lost race: ``lost`` races before it, an attempt of ``took`` seconds.

    The first retry follows at once, because most races are between two writers, and a lost race means that the other
    one has finished. Pauses then grow up to four times the duration of an attempt, so that fewer writers try at a
    time. From the eighth lost race on they shrink, and they are zero from the eleventh to the sixteenth: a writer that
    has lost many races waits less than newer writers. The sequence then begins again.
    """
    return min(_ATTEMPTS_TO_WAIT[lost % len(_ATTEMPTS_TO_WAIT)] * took, _LONGEST)


def commit_loop(
    base: Base,
    build: Callable[[Base, int], Built],
    publish: Callable[[Built], Outcome],
    advance: Callable[[Base, Conflict], Base],
    max_attempts: int,
    sleep: Callable[[float], None] = time.sleep,
) -> Won[Base, Built]:
    """Try until a commit lands.

    Parameters
    ----------
    base : Base
        The version to begin with; None for a table that does not exist yet.
    build : function(base, lost attempts)
        Makes an attempt on a base.
    publish : function(attempt)
        Returns `Committed` or `Conflict`; raises if its fate is unknown.
    advance : function(base, conflict)
        Returns the base with the winners on top; raises if they contradict.
    max_attempts : int
        How often to try.
    sleep : function(seconds)
        Waits between two attempts.

    Raises
    ------
    TooManyAttemptsError
        When every attempt lost.
    """
    started = time.monotonic()
    for lost in range(max_attempts):
        attempt = build(base, lost)
        outcome = publish(attempt)
        if isinstance(outcome, Committed):
            return Won(base, attempt, outcome)
        sleep(random.uniform(0.0, max_backoff_seconds(lost, time.monotonic() - started)))  # noqa: S311 (no secret)
        started = time.monotonic()
        # after the pause, because a version that is read before it is taken by then
        base = advance(base, outcome)
    raise TooManyAttemptsError(
        f"The commit lost {max_attempts} races in a row. Nothing was committed; the data is written but not part of "
        "the table. Try again later, or raise max_commit_retries.",
        attempts=max_attempts,
    )
