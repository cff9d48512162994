"""Stores that count what reaches them, and tables that lead to these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from delta_core.testing.table_builder import TableBuilder
from tests.confinement.hostile import Reference, Spies, hostile, served, watched


@pytest.fixture(scope="session")
def server() -> Iterator[Spies]:
    with served() as found:
        yield found


@pytest.fixture
def spies(server: Spies, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spies]:
    with watched(monkeypatch, server) as found:
        yield found


@pytest.fixture(scope="session")
def tables(server: Spies, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Reference], TableBuilder]:
    """Return tables by the path that they name and what names it; tests only read them."""
    paths = server.paths()

    @cache
    def table(what: str, reference: Reference) -> TableBuilder:
        return hostile(tmp_path_factory.mktemp("hostile") / "t", paths[what], reference)

    return table
