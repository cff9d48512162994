"""How long a commit waits after lost races."""

from __future__ import annotations

import pytest

from delta_core.errors import TooManyAttemptsError
from delta_core.kernel.commit.loop import commit_loop, max_backoff_seconds
from delta_core.kernel.plugins.committer import Committed, Conflict


def test_pauses_grow_and_who_lost_often_goes_first() -> None:
    pauses = [max_backoff_seconds(lost, 0.5) for lost in range(16)]
    assert pauses[0] == 0
    assert pauses[1:7] == sorted(pauses[1:7])
    assert pauses[6:] == sorted(pauses[6:], reverse=True)
    assert pauses[15] == 0
    assert max(pauses) == 2
    assert [max_backoff_seconds(lost, 0.5) for lost in range(16, 32)] == pauses
    assert max(max_backoff_seconds(lost, 3_600) for lost in range(16)) == 10


def test_loop_waits_once_a_lost_race_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    monkeypatch.setattr("time.monotonic", iter(range(100)).__next__)
    waited: list[float] = []
    lost: list[int] = []
    with pytest.raises(TooManyAttemptsError, match="lost 5 races"):
        commit_loop(
            0,
            lambda base, count: lost.append(count),
            lambda attempt: Conflict(7),
            lambda base, won: base + 1,
            5,
            waited.append,
        )
    assert lost == [0, 1, 2, 3, 4]
    assert waited == [max_backoff_seconds(n, 1) for n in range(5)]


def test_loop_ends_with_the_attempt_that_landed() -> None:
    outcomes = iter([Conflict(7), Committed(8, None)])
    won = commit_loop(7, lambda base, count: (base, count), lambda _: next(outcomes), lambda base, _: base + 1, 3)
    assert (won.base, won.attempt) == (8, (8, 1))
