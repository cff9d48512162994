"""Random histories of all operations against rows in memory: every version, feed, row id and difference of versions."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.operations import row_changes
from tests.operations import row_operations as steps
from tests.operations.row_tables import TABLES, Row, row_ids, rows_of, table_of

#: How many histories each kind of table gets; more on request.
HISTORIES = int(os.environ.get("DELTA_CORE_HISTORIES", "2"))
MAKERS = (*steps.CHANGES, *steps.CHANGES, *steps.KEEPS)


@pytest.mark.parametrize("kind", [k for k in TABLES if "vectors" in k])
def test_history_with_files_rewritten_instead_of_vectors_is_that_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    # so few rows that some files are rewritten and others get vectors
    monkeypatch.setattr(row_changes, "DELETED_BYTES", 0)
    monkeypatch.setattr(row_changes, "DELETED_FOR_ONE_LEFT", 1)
    test_every_version_of_a_history_is_that_of_the_model(tmp_path, kind, False)


@pytest.mark.parametrize("is_partitioned", [False, True], ids=["whole", "partitioned"])
@pytest.mark.parametrize("kind", TABLES)
def test_every_version_of_a_history_is_that_of_the_model(tmp_path: Path, kind: str, is_partitioned: bool) -> None:
    for seed in range(HISTORIES):
        random = Random(f"{kind} {is_partitioned} {seed}")
        uri = str(tmp_path / str(seed))
        columns = ["p"] if is_partitioned else None
        first: list[Row] = [(i, "ab"[i % 2], i / 8) for i in range(6)]
        write_deltalake(uri, table_of(first), configuration=TABLES[kind], partition_by=columns)
        table = DeltaTable(uri)
        rows = first
        versions, done = {0: sorted(first, key=repr)}, list[steps.Step]()
        for _ in range(8):
            step = random.choice(MAKERS)(random)
            done.append(step)
            ids = row_ids(table) if "row ids" in kind else {}
            step.run(table)
            rows = step.apply(rows)
            versions[table.version()] = sorted(rows, key=repr)
            assert rows_of(table.to_pyarrow_table()) == versions[table.version()], (seed, done)
            if ids and step.name.split()[0] in ("compact", "sort", "purge", "property", "add"):
                assert row_ids(table) == ids, (seed, done)
        for version, expected in versions.items():
            assert rows_of(table.snapshot(version).scan().to_table()) == expected, (seed, version, done)
        if "feed" in kind:
            check_feed(table, versions)
        if "row ids" in kind:
            check_differences(table, versions)


def changed(rows: list[Row], kinds: list[str], found: list[Row]) -> list[Row]:
    left = list(rows)
    for kind, row in zip(kinds, found, strict=True):
        if kind in ("delete", "update_preimage"):
            left.remove(row)
    left += [r for k, r in zip(kinds, found, strict=True) if k in ("insert", "update_postimage")]
    return sorted(left, key=repr)


def check_feed(table: DeltaTable, versions: dict[int, list[Row]]) -> None:
    """Check that the feed between two versions makes the rows of the later one from those of the earlier one."""
    for version in sorted(versions)[1:]:
        feed = table.changes(version, version).to_table()
        found = list(zip(*(feed.column(n).to_pylist() for n in ("id", "p", "x")), strict=True))
        before = versions.get(version - 1)
        if before is not None:
            assert changed(before, feed.column("_change_type").to_pylist(), found) == versions[version]


def check_differences(table: DeltaTable, versions: dict[int, list[Row]]) -> None:
    for version, rows in versions.items():
        diff = table.diff(version, table.version()).to_table()
        found = list(zip(*(diff.column(n).to_pylist() for n in ("id", "p", "x")), strict=True))
        assert changed(rows, diff.column("_change_type").to_pylist(), found) == versions[table.version()]
