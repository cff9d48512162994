"""A catalog-managed table is what its catalog specifies, not what its log directory holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import CatalogRequiredError, DeltaError
from delta_core.kernel.plugins.catalog import StagedCommit
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder


@dataclass
class Catalog:
    """A catalog with a latest ratified version and the commits it hands out."""

    version: int
    commits: list[StagedCommit] = field(default_factory=list)

    def latest(self, since: int | None = None) -> tuple[int, list[StagedCommit]]:
        return self.version, [c for c in self.commits if since is None or c.version > since]

    def propose(self, version: int, commit: Any) -> Any:
        raise AssertionError("reading proposes nothing")

    def published(self, version: int) -> None:
        raise AssertionError("reading publishes nothing")


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return (
        TableBuilder(tmp_path / "t")
        .create(
            {"id": "long"},
            features=["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"],
            properties={"delta.enableInCommitTimestamps": "true"},
        )
        .append({"id": [1]})
    )


def staged_names(table: TableBuilder) -> dict[int, str]:
    return {int(p.name[:20]): p.name for p in (Path(table.uri) / "_delta_log/_staged_commits").iterdir()}


def test_table_is_rejected_without_its_catalog(table: TableBuilder) -> None:
    with pytest.raises(CatalogRequiredError):
        open_snapshot(table.uri)


def test_published_commits_up_to_the_ratified_version_are_read(table: TableBuilder) -> None:
    table.append({"id": [2]})
    snapshot = open_snapshot(table.uri, commits=Catalog(1))
    assert snapshot.version == 1
    assert_same_rows(snapshot.scan().to_table(), table.expected(1))


def test_staged_commits_by_name_are_read(table: TableBuilder) -> None:
    table.append({"id": [2]}, commit={"publish": "staged"}).append({"id": [3]}, commit={"publish": "staged"})
    catalog = Catalog(3, [StagedCommit(v, name, table.timestamp_ms(v)) for v, name in staged_names(table).items()])
    snapshot = open_snapshot(table.uri, commits=catalog)
    assert_same_rows(snapshot.scan().to_table(), table.expected())
    assert [entry["version"] for entry in snapshot.history()] == [3, 2, 1, 0]
    assert_same_rows(open_snapshot(table.uri, 2, commits=catalog).scan().to_table(), table.expected(2))


def test_inline_commits_are_read(table: TableBuilder) -> None:
    table.append({"id": [2]}, commit={"publish": "no"})
    snapshot = open_snapshot(table.uri, commits=Catalog(2, [StagedCommit(2, table.bodies[2], table.timestamp_ms(2))]))
    assert_same_rows(snapshot.scan().to_table(), table.expected())


def test_catalogs_commit_wins_over_a_published_one_of_the_same_version(table: TableBuilder) -> None:
    table.append({"id": [2]}, commit={"publish": "no"})
    body = table.bodies[2]
    (path, _) = list(table.state.files)[-1]
    table.write_log(f"{2:020d}.json", body.decode().replace(path, "nowhere.parquet"))
    snapshot = open_snapshot(table.uri, commits=Catalog(2, [StagedCommit(2, body)]))
    assert_same_rows(snapshot.scan().to_table(), table.expected())


def test_commits_above_the_ratified_version_are_ignored_whatever_the_log_holds(table: TableBuilder) -> None:
    table.append({"id": [2]}).append({"id": [3]}, commit={"publish": "staged"}).checkpoint(version=2)
    catalog = Catalog(1)
    assert open_snapshot(table.uri, commits=catalog).version == 1
    with pytest.raises(DeltaError):
        open_snapshot(table.uri, 2, commits=catalog)


def test_staged_commits_that_the_catalog_does_not_name_are_no_commits(table: TableBuilder) -> None:
    table.append({"id": [2]}, commit={"publish": "staged"})
    with pytest.raises(DeltaError):
        open_snapshot(table.uri, commits=Catalog(2))


def test_refresh_requests_the_catalog_for_what_is_new(table: TableBuilder) -> None:
    catalog = Catalog(1)
    snapshot = open_snapshot(table.uri, commits=catalog)
    table.append({"id": [2]}, commit={"publish": "no"})
    assert snapshot.update().version == 1
    catalog.version, catalog.commits = 2, [StagedCommit(2, table.bodies[2])]
    moved = snapshot.update()
    assert_same_rows(moved.scan().to_table(), table.expected())


def published(table: TableBuilder, version: int, keep: bool) -> None:
    """Publish a staged commit, and let go of its staged file or keep it."""
    staged = Path(table.uri) / "_delta_log/_staged_commits" / staged_names(table)[version]
    table.write_log(f"{version:020d}.json", staged.read_text())
    if not keep:
        staged.unlink()


@pytest.mark.parametrize("newer", [False, True], ids=["nothing new", "a newer version"])
def test_refresh_reads_again_where_a_staged_commit_of_its_own_is_gone(table: TableBuilder, newer: bool) -> None:
    table.append({"id": [2]}, commit={"publish": "staged"})
    catalog = Catalog(2, [StagedCommit(2, staged_names(table)[2], table.timestamp_ms(2))])
    snapshot = open_snapshot(table.uri, commits=catalog)
    published(table, 2, keep=False)
    catalog.commits = []
    if newer:
        table.append({"id": [3]})
        catalog.version = 3
    moved = snapshot.update()
    assert moved.version == catalog.version
    # statistics and paths are read late: from files that must be there
    assert_same_rows(moved.scan().to_table(), table.expected())
    assert all(f.kind == "commit" for f in moved.segment.deltas)


def test_refresh_builds_on_staged_commits_that_are_still_there(table: TableBuilder) -> None:
    table.append({"id": [2]}, commit={"publish": "staged"})
    catalog = Catalog(2, [StagedCommit(2, staged_names(table)[2], table.timestamp_ms(2))])
    snapshot = open_snapshot(table.uri, commits=catalog)
    assert snapshot.update() is snapshot
    published(table, 2, keep=True)
    catalog.commits = []
    assert snapshot.update() is snapshot, "the catalog names it no more, and it can still be read"


def test_refresh_keeps_commits_that_the_catalog_returned_itself(table: TableBuilder) -> None:
    table.append({"id": [2]}, commit={"publish": "no"})
    catalog = Catalog(2, [StagedCommit(2, table.bodies[2], table.timestamp_ms(2))])
    snapshot = open_snapshot(table.uri, commits=catalog)
    table.write_log(f"{2:020d}.json", table.bodies[2])
    catalog.commits = []
    assert snapshot.update() is snapshot, "its content is at hand"


def test_refresh_reads_again_where_the_log_below_was_cleaned_up(table: TableBuilder) -> None:
    table.append({"id": [2]}).append({"id": [3]})
    catalog = Catalog(3)
    snapshot = open_snapshot(table.uri, commits=catalog)
    table.checkpoint(version=3).drop(f"_delta_log/{1:020d}.json")
    moved = snapshot.update()
    assert moved.segment.checkpoint is not None
    assert_same_rows(moved.scan().to_table(), table.expected())


def test_commit_published_meanwhile_need_not_be_handed_out(table: TableBuilder) -> None:
    table.append({"id": [2]}, commit={"publish": "no"}).append({"id": [3]}, commit={"publish": "no"})
    table.write_log(f"{2:020d}.json", table.bodies[2])
    snapshot = open_snapshot(table.uri, commits=Catalog(3, [StagedCommit(3, table.bodies[3])]))
    assert_same_rows(snapshot.scan().to_table(), table.expected())


def test_plain_table_may_be_opened_with_a_catalog_at_hand(tmp_path: Path) -> None:
    plain = TableBuilder(tmp_path / "plain").create({"id": "long"}).append({"id": [1]})
    assert_same_rows(open_snapshot(plain.uri, commits=Catalog(1)).scan().to_table(), plain.expected())
