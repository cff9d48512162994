"""Row selectors of any plugin drop the same rows on each route of Spark as with Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_core.engines.spark.plan import replay_cache
from delta_core.engines.spark.plan.replay import plan_replay
from delta_core.errors import DataFileError
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.snapshot import open_snapshot
from delta_core.spark import read
from delta_core.testing.table_builder import TableBuilder
from tests.spark import skipping_plugin
from tests.spark.skipping_plugin import FIELD, NAME

pytestmark = pytest.mark.spark

ROUTES: dict[str, dict[str, Any]] = {
    "index": {"route": "index"},
    "join": {"route": "join"},
    "replayed": {"route": "index", "parallel_from": 0},
    "chosen": {"parallel_from": 0},
}


@pytest.fixture(autouse=True)
def nothing_cached() -> Iterator[None]:
    yield
    for key in list(replay_cache._cached):
        replay_cache.forget(key)


@pytest.fixture
def registry() -> PluginRegistry:
    return PluginRegistry([skipping_plugin])


def make(folder: Path, registry: PluginRegistry, features: list[str], *skips: str | None) -> TableBuilder:
    """Write a file of ten rows for each text, all but the last below a checkpoint."""
    table = TableBuilder(folder).create({"id": "long", "p": "integer"}, partition_by=["p"], features=features)
    for number, text in enumerate(skips):
        if number == len(skips) - 1:
            write_checkpoint(open_snapshot(str(folder), plugins=registry))
        fields = {} if text is None else {FIELD: text}
        table.append([{"id": 10 * number + i, "p": number % 2} for i in range(10)], **fields)
    return table


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.collect())


@pytest.mark.parametrize("route", ROUTES)
def test_rows_that_a_plugins_field_drops_are_dropped(
    spark: Any, tmp_path: Path, registry: PluginRegistry, route: str
) -> None:
    make(tmp_path, registry, [NAME], "0 3", None, "", "1 9", "5")
    snapshot = open_snapshot(str(tmp_path), plugins=registry)
    expected = sorted(snapshot.scan().to_table()["id"].to_pylist())
    assert sorted(set(range(50)) - set(expected)) == [0, 3, 31, 39, 45]
    frame = read(spark, str(tmp_path), plugins=registry, **ROUTES[route])
    assert ids(frame) == expected
    assert ids(frame.where("p = 1 and id > 12")) == [i for i in expected if i // 10 % 2 == 1 and i > 12]


def test_log_is_replayed_by_a_job_for_a_field_of_a_plugin(spark: Any, tmp_path: Path, registry: PluginRegistry) -> None:
    make(tmp_path, registry, [NAME], "0", "1")
    replay = plan_replay(spark, open_snapshot(str(tmp_path), plugins=registry).scan(), 0)
    assert replay is not None
    assert replay.facts.num_vectors == 2
    assert replay.facts.bits == 16


@pytest.mark.parametrize("route", ROUTES)
def test_fields_and_vectors_drop_rows_together(
    spark: Any, tmp_path: Path, registry: PluginRegistry, route: str
) -> None:
    table = make(tmp_path, registry, [NAME, "deletionVectors"], "0 3", None, "2")
    table.delete_rows(lambda row: row["id"] in (4, 15, 28))
    write_checkpoint(open_snapshot(str(tmp_path), plugins=registry))
    table.delete_rows(lambda row: row["id"] in (5, 16))
    frame = read(spark, str(tmp_path), plugins=registry, **ROUTES[route])
    assert ids(frame) == sorted(set(range(30)) - {0, 3, 22, 4, 15, 28, 5, 16})


@pytest.mark.parametrize("route", ["index", "replayed"])
def test_rows_beyond_the_file_are_rejected(spark: Any, tmp_path: Path, registry: PluginRegistry, route: str) -> None:
    make(tmp_path, registry, [NAME], "0", "10", "1")
    with pytest.raises(DataFileError, match="do not fit it"):
        read(spark, str(tmp_path), plugins=registry, **ROUTES[route]).collect()
