"""Writers in every order: whatever they see, lose or are not reported, the log reports a story that the rules allow.

Three writers take their steps one after the other, as hypothesis orders them: read, commit, look at the listing again,
lose a store's answer. Each is a host of its own whose listing lags behind. The story is then checked commit by commit
against what each writer meant.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from delta_core.engines.interface import Storage
from delta_core.engines.records import Listing, PutResult, RangeRequest
from delta_core.errors import CommitConflictError, EngineError
from delta_core.expressions.filters import to_expression
from delta_core.kernel.commit import publishing as module
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.names import commit_name, parse_name
from delta_core.kernel.log.source import TableLog
from delta_core.kernel.snapshot import Snapshot, open_context, open_snapshot
from delta_core.operations.create import create_table
from delta_core.schema.fields import Schema
from tests.commit.conftest import added, live

KINDS = ("a", "b")
WRITERS = 3
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "kind", "type": "string", "nullable": True, "metadata": {}},
    ],
}


class Host:
    """A storage whose listing shows commits only up to a version, and whose next puts go wrong as reported."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.listed = 0
        self.faults: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def list_from(self, directory: str, start: str = "", limit: int | None = None) -> Listing:
        found = self._storage.list_from(directory, start, limit)
        shown = [n for n in found.names if (f := parse_name(n)) is None or f.version <= self.listed]
        return Listing(shown)

    def look(self) -> None:
        names = self._storage.list_from("_delta_log").names
        self.listed = max(f.version for n in names if (f := parse_name(n)) is not None)

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> PutResult:
        fault = self.faults.pop() if self.faults and path.endswith(".json") else "none"
        if fault == "lost":
            raise EngineError("the line was cut") from TimeoutError()
        result = self._storage.put_if_absent(path, data, durable=durable)
        if fault == "unanswered":
            raise EngineError("the line was cut") from TimeoutError()
        return result


@dataclass(frozen=True)
class Deed:
    """What a transaction means to do.

    ``reads`` is the kind whose every file is read and removed, ``adds`` the kind of the file that is added, ``app``
    whether it is one of an application that must not run twice at once.
    """

    reads: str | None
    adds: str | None
    app: bool
    serializable: bool


@dataclass(frozen=True)
class Done:
    deed: Deed
    read_version: int
    removed: frozenset[str]
    added: frozenset[str]
    kind: str | None


class Writer:
    def __init__(self, uri: str) -> None:
        context = open_context(uri)
        self.host = Host(context.log.engine.storage)
        engine = replace(context.log.engine, storage=self.host)
        self.context = replace(context, log=TableLog(engine, uri))
        self.held: Snapshot = self.context.read(0)
        self.open: tuple[Transaction, Deed, frozenset[str], frozenset[str]] | None = None

    def begin(self, deed: Deed) -> None:
        self.held = self.held.update()
        level = IsolationLevel.SERIALIZABLE if deed.serializable else IsolationLevel.WRITE_SERIALIZABLE
        transaction = Transaction(self.context, self.held, "WRITE", isolation=level)
        removed: frozenset[str] = frozenset()
        fresh: frozenset[str] = frozenset()
        if deed.reads is not None:
            predicate = f"kind = '{deed.reads}'"
            files = live(self.held, predicate)
            transaction.read(to_expression(predicate, self.held.schema), files)
            transaction.remove_files(files)
            removed = frozenset(files.column("path").to_pylist())
        if deed.adds is not None:
            name = f"{uuid4().hex}.parquet"
            transaction.add_files(added(name, deed.adds))
            fresh = frozenset((name,))
        if deed.app:
            transaction.set_transaction("app", self.held.version)
        self.open = transaction, deed, removed, fresh


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr("delta_core.kernel.commit.loop.time.sleep", lambda _: None)


def create(uri: str) -> None:
    create_table(open_context(uri), Schema.from_json(json.dumps(SCHEMA)), partition_by=["kind"])


deeds = st.builds(
    Deed, st.sampled_from([None, None, *KINDS]), st.sampled_from([*KINDS, *KINDS, None]), st.booleans(), st.booleans()
).filter(lambda d: d.reads is not None or d.adds is not None)
writers = st.integers(0, WRITERS - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), writers, deeds),
        st.tuples(st.just("commit"), writers, st.none()),
        st.tuples(st.just("commit"), writers, st.none()),
        st.tuples(st.just("look"), writers, st.none()),
        st.tuples(st.just("lost"), writers, st.none()),
        st.tuples(st.just("unanswered"), writers, st.none()),
    ),
    min_size=8,
    max_size=40,
)


@given(steps)
def test_every_schedule_reports_a_story_that_the_rules_allow(schedule: Sequence[tuple[str, int, Any]]) -> None:
    uri = f"memory://schedules/{uuid4().hex}"
    create(uri)
    hosts = [Writer(uri) for _ in range(WRITERS)]
    story: dict[str, Done] = {}
    for step, number, deed in schedule:
        writer = hosts[number]
        if step == "begin":
            writer.begin(deed)
        elif step == "look":
            writer.host.look()
        elif step != "commit":
            writer.host.faults = [step]
        elif writer.open is not None:
            transaction, meant, removed, fresh = writer.open
            writer.open = None
            base = transaction.base
            assert base is not None
            done = Done(meant, base.version, removed, fresh, meant.adds)
            if not removed and not fresh:
                continue  # a removal of nothing
            try:
                result = transaction.commit()
            except CommitConflictError:
                assert may_conflict(done, reported(uri, story)[done.read_version + 1 :])
                continue
            writer.held = result.snapshot
            story[transaction.txn_id] = done
    check(uri, reported(uri, story))


def reported(uri: str, story: dict[str, Done]) -> list[Done | None]:
    """Return who wrote each version: each reported commit is there once, and nothing else."""
    latest = open_snapshot(uri)
    out: list[Done | None] = []
    for version in range(latest.version + 1):
        (data,) = latest.engine.storage.read([RangeRequest(f"_delta_log/{commit_name(version)}")])
        info = next(a["commitInfo"] for a in map(json.loads, bytes(data).splitlines()) if "commitInfo" in a)
        out.append(story.get(info["txnId"]))
        assert version == 0 or out[-1] is not None, "a commit that nobody was reported of"
    assert sum(d is not None for d in out) == len(story), "a commit that was reported and is not there, or twice"
    return out


def may_conflict(done: Done, winners: Sequence[Done | None]) -> bool:
    """Whether a winner touched what a writer read, or is the same application."""
    for w in winners:
        assert w is not None
        touches = done.deed.reads is not None and (w.kind == done.deed.reads or w.deed.reads == done.deed.reads)
        if touches or (done.deed.app and w.deed.app):
            return True
    return False


def check(uri: str, story: Sequence[Done | None]) -> None:
    state: dict[str, str | None] = {}
    for version, done in enumerate(story):
        if done is not None:
            assert done.removed <= state.keys(), "a file was removed twice"
            between = [w for w in story[done.read_version + 1 : version] if w is not None]
            if done.deed.reads is not None:
                missed = {p for p, kind in state.items() if kind == done.deed.reads} - done.removed
                blind = {p for w in between if w.deed.reads is None for p in w.added}
                assert missed <= (set() if done.deed.serializable else blind), "rows that were not read stayed"
            if done.deed.app:
                assert not any(w.deed.app for w in between), "an application ran twice at once"
            state = {p: k for p, k in state.items() if p not in done.removed} | dict.fromkeys(done.added, done.kind)
        files = open_snapshot(uri, version).files.columns(["path"]).column("path").to_pylist()
        assert sorted(files) == sorted(state)
