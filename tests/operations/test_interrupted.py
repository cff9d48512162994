"""Operations that are killed before or after any of their writes: the table is as before or after, a rerun finishes."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from delta_core import DeltaTable, write_deltalake
from tests.example_counts import IS_LONG
from tests.operations import row_operations as steps
from tests.operations.killing import KilledError, Killer, killing
from tests.operations.row_tables import FEED, ROW_IDS, VECTORS, Row, rows_of, table_of

FIRST: list[Row] = [(i, "ab"[i % 2] if i % 5 else None, i / 8 if i % 3 else None) for i in range(6)]
SECOND: list[Row] = [(i, "a", 0.75) for i in range(6, 12)]
#: A few operations and tables; in the long form, every operation on every table.
STEPS = steps.STEPS if IS_LONG else (steps.delete, steps.update, steps.upsert, steps.replace_using, steps.compact)
TABLES = {"copy": {}, "vectors": VECTORS, "vectors, feed, row ids": {**VECTORS, **FEED, **ROW_IDS}, "feed": FEED}


@pytest.fixture(scope="module", params=TABLES if IS_LONG else ["copy", "vectors, feed, row ids"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of two files; one may have a vector."""
    folder = tmp_path_factory.mktemp("original") / "t"
    properties = TABLES[request.param]
    write_deltalake(str(folder), table_of(FIRST), configuration=properties)
    write_deltalake(str(folder), table_of(SECOND), mode="append")
    DeltaTable(str(folder)).delete("id = 1")
    return folder


def content(folder: Path) -> list[Row]:
    table = DeltaTable(str(folder))
    for uri in table.file_uris():
        assert Path(uri).exists(), "a live file is missing"
    return rows_of(table.to_pyarrow_table())


@pytest.mark.parametrize("make", STEPS, ids=lambda make: make.__name__)
def test_killed_at_every_write_the_table_is_as_before_or_after(original: Path, tmp_path: Path, make: Any) -> None:
    step: steps.Step = make(Random(5))
    before = content(original)
    after = sorted(step.apply(before), key=repr)
    version = DeltaTable(str(original)).version()
    at, is_whole = 0, False
    while not is_whole:
        for is_after in (False, True):
            folder = tmp_path / f"{at}-{is_after}"
            shutil.copytree(original, folder)
            killer = Killer(at, is_after)
            try:
                with killing(killer):
                    step.run(DeltaTable(str(folder)))
            except KilledError:
                pass
            is_whole = not killer.is_dead
            latest = DeltaTable(str(folder))
            assert content(folder) == (before if latest.version() == version else after), (at, is_after)
            assert latest.version() <= version + 1
            if latest.version() == version:
                # the rerun finishes beside what was left behind
                step.run(latest)
                assert content(folder) == after, (at, is_after)
            write_deltalake(latest, table_of([(50, "c", None)]), mode="append")
            assert (50, "c", None) in content(folder)
            shutil.rmtree(folder)
        at += 1
    assert at > 1 or make is steps.purge
