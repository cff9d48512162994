"""CommitterContract: the promises of every committer. Subclass it in the committer's tests."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from delta_core.errors import InvalidArgumentError
from delta_core.kernel.plugins.committer import Committed, Committer, Conflict, Outcome, Proposal

__all__ = ["CommitterContract", "proposal"]

RACERS = 8

MakeCommitter = Callable[[], Committer]
ReadCommit = Callable[[int], "bytes | None"]


def proposal(version: int, txn_id: str = "", **fields: Any) -> Proposal:
    """Return a commit of one line, whose transaction is a new one unless given."""
    chosen = txn_id or str(uuid.uuid4())
    line = {"commitInfo": {"timestamp": 0, "operation": "WRITE", "txnId": chosen, **fields}}
    return Proposal(version, json.dumps(line).encode() + b"\n", chosen, 0)


class _Broken:
    """Lines whose second one can't be formatted."""

    def __iter__(self) -> Iterator[bytes]:
        yield b'{"commitInfo":{"txnId":"t"}}\n'
        raise InvalidArgumentError("no such text")


class CommitterContract:
    """Tests that a committer makes commits into versions, each version once.

    A subclass has a fixture ``make_committer``, which makes independent committers of one new table, as several
    processes would have, and a fixture ``read_commit``, which returns a version's bytes, None if there is none.
    """

    def test_commit_becomes_the_version(self, make_committer: MakeCommitter, read_commit: ReadCommit) -> None:
        committer = make_committer()
        for version in range(3):
            attempt = proposal(version)
            outcome = committer.commit(attempt)
            assert isinstance(outcome, Committed) and outcome.version == version
            assert read_commit(version) == attempt.data
        assert read_commit(3) is None

    def test_taken_version_is_a_conflict_and_stays(
        self, make_committer: MakeCommitter, read_commit: ReadCommit
    ) -> None:
        first, second = make_committer(), make_committer()
        winner = proposal(0)
        assert isinstance(first.commit(winner), Committed)
        for loser in (first, second):
            assert loser.commit(proposal(0)) == Conflict(0)
        assert read_commit(0) == winner.data
        assert isinstance(second.commit(proposal(1)), Committed)
        assert first.commit(proposal(1)) == Conflict(1)

    def test_same_commit_again_is_known_as_committed(
        self, make_committer: MakeCommitter, read_commit: ReadCommit
    ) -> None:
        attempt = proposal(0)
        for _ in range(2):
            outcome = make_committer().commit(attempt)
            assert isinstance(outcome, Committed) and outcome.version == 0
        assert read_commit(0) == attempt.data

    def test_transaction_id_outside_the_table_in_the_winner_is_no_proof(self, make_committer: MakeCommitter) -> None:
        ours = proposal(0)
        make_committer().commit(proposal(0, userMetadata=f"after {ours.txn_id}"))
        assert make_committer().commit(ours) == Conflict(0)

    def test_large_commit_lands_whole(self, make_committer: MakeCommitter, read_commit: ReadCommit) -> None:
        attempt = proposal(0, userMetadata="x" * 3_000_000)
        assert isinstance(make_committer().commit(attempt), Committed)
        assert read_commit(0) == attempt.data

    def test_lines_in_pieces_land_whole(self, make_committer: MakeCommitter, read_commit: ReadCommit) -> None:
        whole = proposal(0)
        attempt = Proposal(0, [whole.data, b"", b"{}\n" * 50_000], whole.txn_id, 0)
        assert isinstance(make_committer().commit(attempt), Committed)
        assert read_commit(0) == attempt.data == whole.data + b"{}\n" * 50_000

    def test_lines_that_can_not_be_made_commit_nothing(
        self, make_committer: MakeCommitter, read_commit: ReadCommit
    ) -> None:
        with pytest.raises(InvalidArgumentError, match="no such text"):
            make_committer().commit(Proposal(0, _Broken(), "t", 0))
        attempt = proposal(0)
        assert isinstance(make_committer().commit(attempt), Committed)
        assert read_commit(0) == attempt.data

    def test_race_for_each_version_is_won_by_exactly_one(
        self, make_committer: MakeCommitter, read_commit: ReadCommit
    ) -> None:
        committers = [make_committer() for _ in range(RACERS)]
        barrier = Barrier(RACERS)

        def run(number: int, version: int) -> tuple[Proposal, Outcome]:
            attempt = proposal(version)
            barrier.wait()
            return attempt, committers[number].commit(attempt)

        with ThreadPoolExecutor(RACERS) as pool:
            for version in range(4):
                found = list(pool.map(run, range(RACERS), [version] * RACERS))
                won = [attempt.data for attempt, outcome in found if isinstance(outcome, Committed)]
                assert len(won) == 1
                assert read_commit(version) == won[0]
                assert all(outcome == Conflict(version) for attempt, outcome in found if attempt.data != won[0])
