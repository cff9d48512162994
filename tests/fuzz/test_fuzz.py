"""Damaged tables return a typed error or the right rows, soon and in bounded memory (see ``python -m tests.fuzz``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.run import Failure, run
from tests.fuzz.tables import TABLES

SECONDS = 5
#: So many cases are run, however slow the machine is.
LEAST = 20


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name, make in TABLES.items():
        make(folder / name)
    return folder


def test_damaged_tables_return_typed_errors_or_the_right_rows(sound: Path, tmp_path: Path) -> None:
    failures: list[str] = []
    done = 0
    for found in run(sound, "short", SECONDS, keep=tmp_path, least=LEAST):
        if isinstance(found, Failure):
            failures.append(str(found))
        else:
            done = found
    assert not failures, "\n\n".join(failures)
    assert done >= LEAST
