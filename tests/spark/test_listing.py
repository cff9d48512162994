"""Files reach the driver when a query is planned: which ones, in what form, and the classes that take them."""

from __future__ import annotations

import re
import tempfile
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from delta_core.engines.spark.java import driver_classes
from delta_core.engines.spark.plan import handover, listing
from delta_core.errors import CheckpointError
from delta_core.spark import read, read_changes
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.spark.conftest import plain
from tests.spark.test_planning import plan

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> TableBuilder:
    """Vectors and partitions on either side of a checkpoint, some values null."""
    schema = {"id": "long", "p": "string", "d": "decimal(10,2)", "f": "double", "day": "date"}
    made = TableBuilder(tmp_path_factory.mktemp("listing") / "t").create(
        schema,
        partition_by=["p", "d", "f", "day"],
        features=["deletionVectors", "changeDataFeed"],
        properties={"delta.enableChangeDataFeed": "true"},
    )
    for i in range(8):
        p = {"p": None if i == 3 else f"ä {i % 3}", "d": Decimal(i) / 4, "f": -0.0 if i % 2 else 0.0, "day": None}
        made.append([{"id": n, **p} for n in range(i * 10, i * 10 + 10)])
    made.delete_rows(lambda r: r["id"] in (5, 25, 64))
    made.checkpoint()
    made.append([{"id": n, "p": "b", "d": None, "f": 1.5, "day": date(1969, 5, 1)} for n in range(80, 90)])
    return made.delete_rows(lambda r: r["id"] in (33, 81))


@pytest.fixture(params=[listing._AT_ONCE, 0], ids=["at-once", "later"])
def at_once(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_AT_ONCE", request.param)


@pytest.mark.parametrize(("block", "run"), [(handover._BLOCK, listing._RUN), (2, 3), (1, 1)])
def test_values_of_all_files_come_whole_whatever_the_block(
    spark: Any, table: TableBuilder, at_once: None, block: int, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_BLOCK", block)
    monkeypatch.setattr(listing, "_RUN", run)
    assert_same_rows(plain(read(spark, table.uri).toArrow()), plain(table.expected()))


@pytest.mark.parametrize(
    "where", ["id > 62", "p = 'ä 2'", "p is null", "d < 1.5 and id > 20", "f = 1.5", "day is not null"]
)
def test_vectors_are_those_of_the_files_that_a_filter_leaves(
    spark: Any, table: TableBuilder, at_once: None, where: str
) -> None:
    frame = read(spark, table.uri).where(where)
    every = read(spark, table.uri, route="join").where(where)
    wanted = plain(every.toArrow())
    assert 0 < wanted.num_rows < 85
    assert_same_rows(plain(frame.toArrow()), wanted)
    assert len(frame.inputFiles()) < 9


def test_table_without_filter_is_as_large_as_its_files(spark: Any, table: TableBuilder, at_once: None) -> None:
    frame = read(spark, table.uri)
    total = sum((Path(table.uri) / p).stat().st_size for p in _paths(frame))
    # hidden columns count in the relation's own size, and the projection above takes them away again
    assert int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) == total


def _paths(frame: Any) -> list[str]:
    from urllib.parse import unquote, urlsplit

    return [unquote(urlsplit(f).path) for f in frame.inputFiles()]


def test_files_are_named_in_one_call_of_any_filter_and_none(spark: Any, table: TableBuilder) -> None:
    frame = read(spark, table.uri)
    for found in (frame, frame.where("id > 62"), frame.where("id > 62").filter("p = 'b'"), frame.where("id < 0")):
        assert found.inputFiles() == list(found._jdf.inputFiles())
    assert frame.where("id < 0").inputFiles() == []
    assert frame.select("id").inputFiles() == frame.inputFiles()


def test_table_of_plain_columns_is_read_by_the_plan_of_its_plain_files(spark: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "s": "string"}).append([{"id": 1, "s": "a"}])

    def shown(frame: Any) -> str:
        # Spark cuts a long location off, with its bracket
        return re.sub(r"#\d+L?|plan_id=\d+|Location: .*?(?=, PartitionFilters)", "", plan(frame.groupBy("s").sum("id")))

    assert shown(read(spark, made.uri)) == shown(spark.read.parquet(made.uri))


def test_changes_choose_rows_of_files_by_number(spark: Any, table: TableBuilder, at_once: None) -> None:
    found = read_changes(spark, table.uri, 10).where("_change_type = 'delete'").select("id").collect()
    assert {r["id"] for r in found} == {33, 81}


def test_broken_checkpoint_of_a_large_table_is_named_when_a_query_is_planned(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.spark.test_parallel_planning import spoil

    made = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}]).checkpoint().cleanup_before(1)
    spoil(made)
    with pytest.raises(CheckpointError):
        read(spark, made.uri)
    monkeypatch.setattr(listing, "_AT_ONCE", 0)
    frame = read(spark, made.uri)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Exception, match=r"checkpoint\.parquet can't be read"):
        frame.count()
    assert [p.name for p in tmp_path.iterdir()] == ["t"], "nothing is left of what the driver was to read"


def test_broken_vector_leaves_no_file_for_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": i} for i in range(10)]).delete_rows(lambda r: r["id"] == 3)
    (broken,) = Path(made.uri).glob("deletion_vector_*.bin")
    broken.write_bytes(b"\0" * broken.stat().st_size)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Exception, match=re.escape(broken.name)):
        read(spark, made.uri).count()
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


# --- classes -------------------------------------------------------------------------------


def test_classes_are_compiled_once_and_again_where_what_was_kept_is_broken(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def load() -> None:
        loader = driver_classes.class_loader(spark)
        assert loader.loadClass("delta_core_driver.TableFiles").getName() == "delta_core_driver.TableFiles"

    load()
    [kept] = (tmp_path / "delta_core").iterdir()
    classes, when = kept.read_bytes(), kept.stat().st_mtime_ns
    load()
    assert kept.stat().st_mtime_ns == when
    kept.write_bytes(b"no jar")
    load()
    assert len(kept.read_bytes()) == len(classes)
    kept.unlink()
    (tmp_path / "delta_core").chmod(0o777)  # others may write there: classes of this process alone
    load()
    assert list((tmp_path / "delta_core").iterdir()) == []


def test_classes_are_not_taken_from_where_others_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = driver_classes._place("4.2.0", "17")
    assert first is not None
    assert first != driver_classes._place("4.3.0", "17")
    (tmp_path / "delta_core").chmod(0o777)
    assert driver_classes._place("4.2.0", "17") is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert driver_classes._place("4.2.0", "17") is None


def test_files_with_the_same_constants_are_one_partition_of_files_made_when_looked_at(
    spark: Any, tmp_path: Path
) -> None:
    """What Spark keeps of very many files has to fit a small driver: see docs/spark.md."""
    made = TableBuilder(tmp_path / "t").create({"id": "long", "p": "string"}, partition_by=["p"])
    for i in range(12):
        made.append([{"id": i, "p": "äbc"[i % 3]}])
    none = spark._jvm.PythonUtils.toSeq([])
    index = read(spark, made.uri)._jdf.queryExecution().optimizedPlan().collectLeaves().head().relation().location()
    found = index.listFiles(none, none)
    places, lengths = [], []
    for i in range(found.size()):
        files = found.apply(i).files()
        assert files.size() == 4
        for _ in range(2):  # again and again
            listed = [files.apply(n) for n in range(4)]
        places += [f.getPath().toString() for f in listed]
        lengths += [f.getLen() for f in listed]
    assert found.size() == 3
    assert sorted(p.rpartition("/")[2] for p in places) == sorted(p.rpartition("/")[2] for p in made.paths())
    assert sum(lengths) == sum(a["size"] for a in made.state.files.values())
    assert read(spark, made.uri, metadata=["_file_path"]).select("_file_path").distinct().count() == 12


@pytest.mark.parametrize("names", [["é1", "é2", "è3"], ["a", "ab", "abc"], ["same", "x" * 300], ["日本", "日木"]])
def test_places_that_begin_alike_come_whole(spark: Any, tmp_path: Path, names: list[str]) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"})
    facts = {"partitionValues": {}, "size": 5, "modificationTime": 1, "dataChange": True}
    made.commit(*({"add": {"path": quote(n), **facts}} for n in names))
    found = read(spark, made.uri).inputFiles()
    assert sorted(unquote(f).rpartition("/")[2] for f in found) == sorted(names)
