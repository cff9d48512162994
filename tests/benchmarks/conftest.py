"""Benchmark tables at a hundredth of their size, made once for all tests here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.questions import SMALLEST
from benchmarks.sizes import Sizes
from benchmarks.tables import table_path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from a generator's name to its table; small ones are beside it."""
    root = tmp_path_factory.mktemp("tables")
    table_path(root, "hooks-one", Sizes(SMALLEST))
    return lambda name: table_path(root, name, Sizes(0.01))
