"""Committers by entry point: those of a scheme are called for its tables, on every kind of store."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import Struct

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import PluginConflictError
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.log import committers
from delta_core.kernel.plugins.committer import Outcome, Proposal

ROWS = pa.table({"id": [1, 2]})


class Recording:
    """A committer that notes the versions that it publishes, and how often the log is about to be listed."""

    def __init__(self, storage: Any) -> None:
        self._own = StoreCommitter(storage)
        self.versions: list[int] = []
        self.recovered = 0

    def commit(self, proposal: Proposal) -> Outcome:
        self.versions.append(proposal.version)
        return self._own.commit(proposal)

    def recover(self) -> None:
        self.recovered += 1


class Point(Struct, frozen=True):
    """An entry point, as installed packages have them."""

    name: str
    make: Callable[[Any, Mapping[str, Any]], Any]

    @property
    def value(self) -> str:
        return f"package.{id(self)}:make"

    def load(self) -> Any:
        return self.make


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    points: list[Point] = []
    monkeypatch.setattr(committers, "entry_points", lambda group: tuple(points))
    # nothing that a test offers stays for other tests
    monkeypatch.setattr(committers, "_points", functools.cache(committers._points.__wrapped__))
    return points


def test_committer_of_a_scheme_publishes_the_commits_of_its_tables(offered: list[Point], place: str) -> None:
    made: list[Recording] = []

    def make(storage: Any, options: Mapping[str, Any]) -> Recording:
        made.append(Recording(storage))
        return made[-1]

    scheme = place.partition("://")[0] if "://" in place else "file"
    offered += [Point(scheme.upper(), make), Point("other", lambda storage, options: pytest.fail("of another scheme"))]
    write_deltalake(place, ROWS)
    table = DeltaTable(place)
    table.delete("id = 1")
    write_deltalake(table, ROWS, mode="append")
    assert [v for m in made for v in m.versions] == [0, 1, 2]
    assert all(m.recovered for m in made)
    assert table.to_pyarrow_table().num_rows == 3


def test_committer_that_is_not_configured_leaves_the_stores_own(offered: list[Point], place: str) -> None:
    asked: list[str] = []
    scheme = place.partition("://")[0] if "://" in place else "file"
    offered.append(Point(scheme, lambda storage, options: asked.append(storage.root)))
    write_deltalake(place, ROWS)
    assert asked
    assert DeltaTable(place).version() == 0


def test_two_configured_committers_conflict(offered: list[Point], place: str) -> None:
    scheme = place.partition("://")[0] if "://" in place else "file"
    offered += [Point(scheme, lambda storage, options: Recording(storage)) for _ in range(2)]
    with pytest.raises(PluginConflictError, match="both configured"):
        write_deltalake(place, ROWS)


def test_committer_of_an_argument_precedes_that_of_the_scheme(offered: list[Point], place: str) -> None:
    write_deltalake(place, ROWS)
    scheme = place.partition("://")[0] if "://" in place else "file"
    offered.append(Point(scheme, lambda storage, options: pytest.fail("an argument precedes it")))
    committers._points.cache_clear()
    mine = Recording(DeltaTable(place, committer=object()).snapshot().engine.storage)
    write_deltalake(DeltaTable(place, committer=mine), ROWS, mode="append")
    assert mine.versions == [1]


@pytest.fixture(params=["path", "file-uri", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    places = {"path": str(tmp_path / "t"), "file-uri": (tmp_path / "t").as_uri()}
    return places.get(request.param, f"memory://{uuid.uuid4().hex}/t")
