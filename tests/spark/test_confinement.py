"""Tables whose logs lead out of them: Spark is not handed such paths."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from delta_core.engines.spark.plan.files import hadoop_path
from delta_core.engines.spark.plan.replay import SETTING
from delta_core.errors import EngineError, ExternalPathError
from delta_core.spark import read, read_changes, register, sql, write
from delta_core.storage.stores import open_storage
from tests.confinement.hostile import IDS, STOLEN, Reference, Spies, files_below, hostile, parquet, served, watched
from tests.example_counts import chosen

pytestmark = pytest.mark.spark

PATHS = ("http", "other file system", "memory", "cache", "archive", "s3", "data", "upper case")


@pytest.fixture(scope="module")
def server() -> Iterator[Spies]:
    with served() as found:
        yield found


@pytest.fixture
def spies(server: Spies, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spies]:
    with watched(monkeypatch, server) as found:
        yield found


def foreign(spies: Spies) -> list[Any]:
    """Return what was seen; Spark's own connections lead to this process."""
    return [x for x in [*spies.requests, *spies.seen] if not isinstance(x, tuple)]


READS: dict[str, Callable[[Any, str], Any]] = {
    "index": lambda spark, uri: read(spark, uri, route="index").collect(),
    "join": lambda spark, uri: read(spark, uri, route="join").collect(),
    "join of sums": lambda spark, uri: read(spark, uri).groupBy().sum("id").collect(),
    "sql": lambda spark, uri: sql(spark, f"SELECT * FROM delta_core.`{uri}`").collect(),
    "replace_using": lambda spark, uri: write(
        spark.createDataFrame([(STOLEN[0],)], "id long"), uri, mode="overwrite", replace_using="id"
    ),
}


REFERENCES: tuple[Reference, ...] = ("commit", "checkpoint", "vector")


#: All references by the index, and each of the other reads with one of them; in the long form with all.
@pytest.mark.parametrize(
    ("name", "reference"),
    chosen(
        product(READS, REFERENCES),
        [*product(["index"], REFERENCES), *zip(list(READS)[1:], [*REFERENCES[1:], *REFERENCES], strict=False)],
    ),
)
def test_other_kinds_of_store_are_rejected_and_not_reached(
    spark: Any, tmp_path: Path, spies: Spies, name: str, reference: Reference
) -> None:
    paths = spies.paths()
    for what in PATHS if name == "index" else PATHS[:2]:
        table = hostile(tmp_path / what.replace(" ", "-"), paths[what], reference)
        with pytest.raises(ExternalPathError, match="lies outside the table"):
            READS[name](spark, table.uri)
    assert foreign(spies) == []


@pytest.mark.parametrize("path", ["http", "dots", "encoded dots"])
def test_log_that_spark_replays_is_held_to_the_same_rule(spark: Any, tmp_path: Path, spies: Spies, path: str) -> None:
    paths = {"dots": "a/../../victim/f.parquet", "encoded dots": "a/%2e./.%2e/victim/f.parquet", **spies.paths()}
    table = hostile(tmp_path / "t", paths[path], "checkpoint")
    spark.conf.set(SETTING, "0")
    try:
        with pytest.raises(ExternalPathError, match="lies outside the table"):
            read(spark, table.uri, allow_external=False if path != "http" else None).collect()
    finally:
        spark.conf.unset(SETTING)
    assert foreign(spies) == []


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize(
    "path", ["../victim/f.parquet", "%2e%2e/victim/f.parquet", "file://{victim}/f.parquet", "{victim}/f.parquet"]
)
def test_local_path_out_of_the_root_is_followed_unless_the_caller_forbids_it(
    spark: Any, tmp_path: Path, path: str, replayed: bool
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "f.parquet").write_bytes(parquet(STOLEN))
    table = hostile(tmp_path / "t", path.format(victim=victim), "checkpoint")
    least = 0 if replayed else None
    found = read(spark, table.uri, parallel_from=least).collect()
    assert sorted(row["id"] for row in found) == [*IDS, *STOLEN]
    with pytest.raises(ExternalPathError, match="only files below the root are read"):
        read(spark, table.uri, parallel_from=least, allow_external=False).collect()
    assert list(files_below(victim)) == ["f.parquet"]


def test_changes_are_held_to_the_same_rule(spark: Any, tmp_path: Path, spies: Spies) -> None:
    table = hostile(tmp_path / "t", spies.paths()["http"], "change")
    with pytest.raises(ExternalPathError):
        read_changes(spark, table.uri, 2).collect()
    assert foreign(spies) == []


def test_format_takes_the_option(spark: Any, tmp_path: Path) -> None:
    register(spark)
    (tmp_path / "f.parquet").write_bytes(parquet(STOLEN))
    table = hostile(tmp_path / "t", "../f.parquet")
    reader = spark.read.format("delta_core")
    assert sorted(r["id"] for r in reader.load(table.uri).collect()) == [*IDS, *STOLEN]
    with pytest.raises(EngineError, match="outside the table: only files below the root are read"):
        reader.option("allowExternal", "false").load(table.uri).collect()
    table = hostile(tmp_path / "u", "memory://nothing/f.parquet")
    with pytest.raises(EngineError, match="allow_external"):
        reader.option("allowExternal", "s3://a, s3://b").load(table.uri).collect()


def test_spark_is_handed_another_bucket_only_if_it_is_named() -> None:
    """Spark would read it with its own credentials, this process reads it with none."""
    pytest.importorskip("s3fs")
    storage = open_storage("s3://own/t", {"key": "a", "secret": "b"})
    assert hadoop_path(storage.uri_for_engine("s3://own/clone/f")) == "s3a://own/clone/f"
    assert storage.uri("s3://other/f") == "s3://other/f"
    with pytest.raises(ExternalPathError, match="credentials of its own"):
        storage.uri_for_engine("s3a://other/f")
    allowed = open_storage("s3://own/t", {"key": "a", "secret": "b"}, ["s3://other"])
    assert allowed.uri_for_engine("s3a://other/f") == "s3a://other/f"


def test_earlier_read_that_was_allowed_more_does_not_serve_a_later_one(spark: Any, tmp_path: Path) -> None:
    (tmp_path / uuid.UUID(int=7).hex).write_bytes(parquet(STOLEN))
    table = hostile(tmp_path / "t", f"../{uuid.UUID(int=7).hex}")
    assert read(spark, table.uri).count() == 4
    with pytest.raises(ExternalPathError):
        read(spark, table.uri, allow_external=False).collect()
