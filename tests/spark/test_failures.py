"""What is broken in a table, and met by a later filter or action only, is an error of this library: by either replay.

A vector that does not fit its file or is torn never returns wrong rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from delta_core.engines.spark import failures
from delta_core.engines.spark.plan.replay import plan_replay
from delta_core.errors import CorruptTableError, DataFileError, DataFileNotFoundError, DeltaError, EngineError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.spark import read
from delta_core.storage.local import LocalStorage
from delta_core.testing.table_builder import TableBuilder
from tests.bundled import needs
from tests.example_counts import chosen
from tests.spark.test_parallel_planning import drop_held

DeletionVectorError = pytest.importorskip("delta_plugins.deletion_vectors.logic").DeletionVectorError

pytestmark = [pytest.mark.spark, needs("columnMapping")]

#: Who replays the log: a job of Spark from so many actions on, or this process.
REPLAYS = pytest.mark.parametrize("least", [0, None], ids=["job", "process"])
#: The last position is beyond a file of three rows: by one, beyond a bitmap of 32 bits, in another container.
BEYOND = [[1, 3], [0, 2**31 + 5], [70_000]]


@pytest.fixture(autouse=True)
def nothing_held() -> Iterator[None]:
    drop_held()
    yield
    drop_held()


def vectors(tmp_path: Path, rows: list[int], storage: Any = "u", **checkpoint: Any) -> TableBuilder:
    """Three rows in each of two files; of the second, some are dropped, as a checkpoint specifies."""
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": n} for n in (1, 2, 3)]).append([{"id": n} for n in (11, 12, 13)])
    made.delete_rows({made.paths()[1]: rows}, storage=storage)
    return made.checkpoint(**checkpoint)


def frames(spark: Any, made: TableBuilder, least: int | None) -> Any:
    assert plan_replay(spark, open_snapshot(made.uri).scan(), 0) is not None
    return read(spark, made.uri, parallel_from=least)


def rejected(frame: Any, kind: type[DeltaError], match: str) -> DeltaError:
    """Each action that needs the broken file fails alike, again and again; what does not need it has its rows."""
    for action in (frame.count, frame.where("id > 11").collect, frame.toArrow, lambda: list(frame.toLocalIterator())):
        with pytest.raises(kind, match=match) as caught:
            action()
    assert sorted(r["id"] for r in frame.where("id < 5").collect()) == [1, 2, 3]
    return caught.value


@pytest.mark.parametrize(
    ("rows", "statistics", "least"),
    chosen(
        product(BEYOND, ("json", "struct"), (0, None)),
        [(BEYOND[0], "json", 0), (BEYOND[1], "struct", 0), (BEYOND[2], "json", None), (BEYOND[0], "struct", None)],
    ),
)
def test_vector_beyond_the_files_rows_is_rejected(
    spark: Any, tmp_path: Path, least: int | None, rows: list[int], statistics: Any
) -> None:
    made = vectors(tmp_path, rows, statistics=statistics)
    error = rejected(read(spark, made.uri, parallel_from=least, route="index"), DataFileError, "do not fit it")
    assert error.facts["path"] == made.paths()[1]


@REPLAYS
def test_vector_beyond_a_file_whose_rows_are_not_known_drops_those_that_are_there(
    spark: Any, tmp_path: Path, least: int | None
) -> None:
    made = vectors(tmp_path, [1, 3, 900], statistics="none")
    assert sorted(r["id"] for r in frames(spark, made, least).collect()) == [1, 2, 3, 11, 13]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-8] ^= 0xFF
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("tear", "least"),
    chosen(product((cut, end, flip, empty), (0, None)), [(cut, 0), (end, None), (flip, 0), (flip, None), (empty, 0)]),
)
def test_torn_vector_is_rejected(spark: Any, tmp_path: Path, least: int | None, tear: Callable[[Path], None]) -> None:
    made = vectors(tmp_path, [1])
    frame = frames(spark, made, least)
    (file,) = Path(made.uri).glob("deletion_vector*")
    tear(file)
    error = rejected(frame, CorruptTableError, file.name)
    assert isinstance(error, DeletionVectorError)


@REPLAYS
def test_missing_vector_is_rejected_with_its_path(spark: Any, tmp_path: Path, least: int | None) -> None:
    made = vectors(tmp_path, [1])
    frame = frames(spark, made, least)
    (file,) = Path(made.uri).glob("deletion_vector*")
    file.unlink()
    error = rejected(frame, DataFileNotFoundError, "holds deleted rows")
    assert error.facts["path"].endswith(file.name)
    assert isinstance(error, FileNotFoundError)


@REPLAYS
def test_torn_vector_within_the_log_is_rejected(spark: Any, tmp_path: Path, least: int | None) -> None:
    made = vectors(tmp_path, [1], storage="i")
    actions = made.vector_actions({made.paths()[1]: [0, 1]}, storage="i")
    for action in actions:
        if "add" in action:
            vector = action["add"]["deletionVector"]
            vector["pathOrInlineDv"] = vector["pathOrInlineDv"][:-10]
    made.commit(*actions).checkpoint()
    # this process looks at vectors' descriptors when it opens the table
    with pytest.raises(DeletionVectorError, match="its text does not hold"):
        read(spark, made.uri, parallel_from=least).count()


@REPLAYS
def test_partition_value_of_another_type_is_rejected(spark: Any, tmp_path: Path, least: int | None) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "p": "integer"}, partition_by=["p"])
    made.append([{"id": 1, "p": 1}])
    add = {"path": "x.parquet", "partitionValues": {"p": "one"}, "size": 5, "modificationTime": 1, "dataChange": True}
    made.commit({"add": add}).checkpoint()
    with pytest.raises(DeltaError, match="Partition column 'p' has the value 'one'"):
        read(spark, made.uri, parallel_from=least).where("p = 1").count()


# --- what is whose -------------------------------------------------------------------------


def test_columns_by_id_that_the_session_does_not_find_are_rejected(spark: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, column_mapping="id").append([{"id": 1}])
    frame = read(spark, made.uri)
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
    try:
        with pytest.raises(EngineError, match="found by field id"):
            frame.count()
    finally:
        spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")
    assert read(spark, made.uri).count() == 1


def test_errors_that_are_not_ours_stay_what_they_are(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException, ArithmeticException, PySparkException

    made = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    frame = read(spark, made.uri)
    with pytest.raises(AnalysisException, match="nowhere"):
        frame.where("nowhere = 1")
    with pytest.raises(ArithmeticException):
        frame.selectExpr("id / 0").collect()
    with pytest.raises(PySparkException, match="just so"):
        frame.selectExpr("raise_error('just so')").collect()


def test_error_that_cant_be_looked_at_stays_what_it_is(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import ArithmeticException

    def broken(exception: Any) -> None:
        raise KeyError(exception)

    monkeypatch.setattr(failures, "converted", broken)
    made = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    with pytest.raises(ArithmeticException):
        read(spark, made.uri).selectExpr("id / 0").collect()


# --- several threads -----------------------------------------------------------------------


@REPLAYS
def test_threads_plan_queries_of_one_session_at_once(spark: Any, tmp_path: Path, least: int | None) -> None:
    made = TableBuilder(tmp_path / "t").create(
        {"id": "long", "p": "integer"}, partition_by=["p"], features=["deletionVectors"]
    )
    for i in range(8):
        made.append([{"id": n, "p": i % 2} for n in range(i * 10, i * 10 + 10)])
    made.delete_rows(lambda r: r["id"] % 10 == 3)
    made.checkpoint().append([{"id": 80, "p": 0}])
    wanted = [r["id"] for r in made.expected().to_pylist()]
    shared = read(spark, made.uri, parallel_from=least)
    together = threading.Barrier(6)

    def ask(worker: int) -> None:
        own = read(spark, made.uri, parallel_from=least)
        together.wait(60)
        for turn in range(4):
            low, frame = (worker * 13 + turn * 7) % 60, own if turn % 2 else shared
            rows = frame.where(f"id >= {low} and id < {low + 25} and p = {worker % 2}").collect()
            assert sorted(r["id"] for r in rows) == sorted(
                n for n in wanted if low <= n < low + 25 and ((n // 10) % 2 if n < 80 else 0) == worker % 2
            )

    with ThreadPoolExecutor(6) as threads:
        for future in [threads.submit(ask, n) for n in range(6)]:
            future.result(300)


@REPLAYS
def test_error_of_one_thread_is_not_anothers(spark: Any, tmp_path: Path, least: int | None) -> None:
    tables = [vectors(tmp_path / str(n), [1]) for n in range(3)]
    files = [next(Path(made.uri).glob("deletion_vector*")) for made in tables]
    for file in files[:2]:
        cut(file)

    def ask(number: int) -> str:
        frame = read(spark, tables[number].uri, parallel_from=least)
        try:
            return str(frame.count())
        except DeletionVectorError as e:
            return e.message

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(ask, [0, 1, 2] * 3))
    assert found[2::3] == ["5"] * 3
    for number in (0, 1):
        assert all(files[number].name in text for text in found[number::3])


# --- places --------------------------------------------------------------------------------


@REPLAYS
@pytest.mark.parametrize("root", ["s3://bucket/dir/t", "s3://bucket", "gs://bucket/t"])
def test_files_of_a_store_lie_below_its_root(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int | None, root: str
) -> None:
    names = ["x.parquet", "d=a%20b/x.parquet", "a%2Fb.parquet", "s3://other/y%20z.parquet", "/at/root.parquet"]
    made = TableBuilder(tmp_path / "t").create({"id": "long"})
    facts = {"partitionValues": {}, "size": 5, "modificationTime": 1, "dataChange": True}
    made.commit(*({"add": {"path": p, **facts}} for p in names)).checkpoint()
    made.commit({"add": {"path": "newer.parquet", **facts}})
    own = LocalStorage.uri

    def uri(self: LocalStorage, path: str) -> str:
        """Spell places as a store does, but for the log's."""
        if "://" in path or path.startswith("_delta_log"):
            return own(self, path)
        if path.startswith("/"):
            return "/".join(root.split("/")[:3]) + path
        return f"{root}/{path}" if path else root

    monkeypatch.setattr(LocalStorage, "uri", uri)
    found = read(spark, made.uri, parallel_from=least, allow_external=["s3://other"]).inputFiles()
    there = root.replace("s3://", "s3a://")
    bucket = "/".join(there.split("/")[:3])
    assert sorted(found) == sorted(
        [
            f"{there}/x.parquet",
            f"{there}/d=a%20b/x.parquet",
            f"{there}/a/b.parquet",
            "s3a://other/y%20z.parquet",
            f"{bucket}/at/root.parquet",
            f"{there}/newer.parquet",
        ]
    )


@REPLAYS
def test_local_files_are_found_however_the_log_spells_them(spark: Any, tmp_path: Path, least: int | None) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"})
    for n in range(5):
        made.append([{"id": n}])
    paths = made.paths()
    home = made.uri
    spelled = [paths[0], f"file:{home}/{paths[1]}", f"file://{home}/{paths[2]}", f"{home}/{paths[3]}", f".//{paths[4]}"]
    actions = [a for _, a in made.state.files.items()]
    made.commit(
        *made.remove_actions(*paths), *({"add": {**a, "path": p}} for a, p in zip(actions, spelled, strict=True))
    )
    made.checkpoint()
    assert sorted(r["id"] for r in read(spark, home, parallel_from=least).collect()) == [0, 1, 2, 3, 4]
