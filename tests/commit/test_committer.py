"""Put-if-absent as a committer: the contract, and stores whose answers get lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, strategies as st

from delta_core.engines.interface import Storage
from delta_core.engines.records import PutResult, RangeRequest
from delta_core.errors import CommitError, CommitStateUnknownError, EngineError
from delta_core.kernel.commit import publishing as module
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.commit.publishing import PUTS
from delta_core.kernel.log.names import commit_name
from delta_core.kernel.plugins.committer import Committed, Committer, Conflict, Proposal
from delta_core.storage.stores import open_storage
from delta_core.testing.committer_contract import CommitterContract, proposal


def read(storage: Storage, version: int) -> bytes | None:
    try:
        return bytes(storage.read([RangeRequest(f"_delta_log/{commit_name(version)}")])[0])
    except FileNotFoundError:
        return None


class TestStoreCommitterOnDisk(CommitterContract):
    @pytest.fixture
    def uri(self, tmp_path: Path) -> str:
        return str(tmp_path / "t")

    @pytest.fixture
    def make_committer(self, uri: str) -> Callable[[], Committer]:
        return lambda: StoreCommitter(open_storage(uri))

    @pytest.fixture
    def read_commit(self, uri: str) -> Callable[[int], bytes | None]:
        return lambda version: read(open_storage(uri), version)


class TestStoreCommitterInMemory(TestStoreCommitterOnDisk):
    @pytest.fixture
    def uri(self) -> str:
        return f"memory://{uuid4().hex}/t"


# --- answers that get lost -----------------------------------------------------------------


class Unreliable:
    """A storage whose puts of commits go wrong as a list specifies, one entry a put; afterwards all goes well.

    ``before`` fails and puts nothing, ``after`` puts and fails, ``later`` fails and puts when `land` is called,
    ``blind`` fails at the reads too until the next put.
    """

    def __init__(self, storage: Storage, plan: Sequence[str]) -> None:
        self._storage = storage
        self._plan = list(plan)
        self._late: list[tuple[str, bytes]] = []
        self._blind = False
        self.deleted: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> PutResult:
        step = self._plan.pop(0) if self._plan else "well"
        self._blind = step == "blind"
        if step == "later":
            self._late.append((path, data))
        elif step in ("well", "after"):
            result = self._storage.put_if_absent(path, data)
            if step == "well":
                return result
        raise EngineError("the line was cut") from TimeoutError()

    def read(self, requests: Sequence[RangeRequest]) -> Any:
        if self._blind:
            raise EngineError("the line is cut") from TimeoutError()
        return self._storage.read(requests)

    def delete(self, paths: Sequence[str]) -> None:
        self.deleted += paths
        self._storage.delete(paths)

    def land(self) -> None:
        for path, data in self._late:
            self._storage.put_if_absent(path, data)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)


@pytest.fixture
def storage() -> Storage:
    return open_storage(f"memory://{uuid4().hex}/t")


@pytest.mark.parametrize("fault", ["before", "after", "later", "blind"])
def test_lost_answer_is_settled(storage: Storage, fault: str) -> None:
    unreliable = Unreliable(storage, ["well"] * 0 + [fault])
    module.prove_exclusive(storage, "_delta_log")
    ours = proposal(0)
    assert StoreCommitter(unreliable).commit(ours) == Committed(0, commit_name(0))
    unreliable.land()
    assert read(storage, 0) == ours.data
    assert unreliable.deleted == []


@pytest.mark.parametrize("fault", ["before", "after", "later", "blind"])
def test_lost_answer_beside_a_winner_is_a_conflict(storage: Storage, fault: str) -> None:
    module.prove_exclusive(storage, "_delta_log")
    winner = proposal(0)
    StoreCommitter(storage).commit(winner)
    unreliable = Unreliable(storage, [fault])
    assert StoreCommitter(unreliable).commit(proposal(0)) == Conflict(0)
    unreliable.land()
    assert read(storage, 0) == winner.data


def test_put_that_lands_between_the_tries_is_known(storage: Storage) -> None:
    module.prove_exclusive(storage, "_delta_log")

    class Landing(Unreliable):
        def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> PutResult:
            self.land()
            return super().put_if_absent(path, data)

    ours = proposal(0)
    assert StoreCommitter(Landing(storage, ["later"])).commit(ours) == Committed(0, commit_name(0))
    assert read(storage, 0) == ours.data


def test_state_that_stays_unknown_is_reported_and_nothing_deleted(storage: Storage) -> None:
    module.prove_exclusive(storage, "_delta_log")
    unreliable = Unreliable(storage, ["later"] * PUTS)
    ours = proposal(0)
    with pytest.raises(CommitStateUnknownError) as caught:
        StoreCommitter(unreliable).commit(ours)
    assert ours.txn_id in str(caught.value)
    assert (caught.value.version, caught.value.txn_id) == (0, ours.txn_id)
    assert unreliable.deleted == []
    unreliable.land()
    assert read(storage, 0) == ours.data, "it lands after all: rightly nobody specified that it did not"


@pytest.mark.parametrize("cause", [PermissionError("no"), NotImplementedError("no"), OSError(28, "disk is full")])
def test_rejection_is_certain(storage: Storage, cause: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    module.prove_exclusive(storage, "_delta_log")

    def reject(*_: object, **__: object) -> PutResult:
        raise EngineError("rejected") from cause

    monkeypatch.setattr(storage, "put_if_absent", reject)
    with pytest.raises(CommitError, match="Nothing was committed") as caught:
        StoreCommitter(storage).commit(proposal(0))
    assert type(caught.value) is CommitError


Faults = st.lists(st.sampled_from(["before", "after", "later", "blind", "well"]), max_size=PUTS + 1)


@given(st.lists(Faults, min_size=1, max_size=4), st.booleans())
def test_outcome_agrees_with_the_log_whatever_gets_lost(plans: list[list[str]], late: bool) -> None:
    module.PAUSE = 0.0
    storage = open_storage(f"memory://one/{uuid4().hex}")
    module.prove_exclusive(storage, "_delta_log")
    found: list[tuple[Proposal, object]] = []
    stores = []
    for plan in plans:
        unreliable = Unreliable(storage, plan)
        ours = proposal(0)
        try:
            found.append((ours, StoreCommitter(unreliable).commit(ours)))
        except CommitStateUnknownError as e:
            assert len(plan) >= PUTS
            assert "well" not in plan[:PUTS]
            found.append((ours, e))
        stores.append(unreliable)
        if late:
            unreliable.land()
    for unreliable in stores:
        unreliable.land()
    final = read(storage, 0)
    for ours, outcome in found:
        if isinstance(outcome, Committed):
            assert final == ours.data
        elif isinstance(outcome, Conflict):
            assert final not in (None, ours.data)
