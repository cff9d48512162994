"""What `test_cluster` runs in a process of its own: reads and writes with executors in JVMs of their own.

Each step prints one line of JSON: its name and what happened.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession, functions as F

import delta_core
from delta_core import write_deltalake
from delta_core.engines.spark.relations import spark_engine
from delta_core.engines.spark.spread import SparkSpread
from delta_core.operations import footers
from delta_core.operations.sweep import deletion
from delta_core.spark import DeltaTable, read, write
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import IS_LONG
from tests.operations.killing import Killer, Staller, killing
from tests.operations.test_backfill import without_statistics
from tests.spark.test_interrupted import COPIED, MARKED, OPERATIONS, TABLES, made

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
}
_PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])
NESTED = pa.schema([("id", pa.int64()), ("s", _PAIR), ("l", pa.list_(_PAIR))])
#: The changes that lose an executor, by kind of table; all of them in the long form.
CHANGES = {"copy": ["delete"], "vectors": ["merge"]}
if IS_LONG:
    CHANGES = {kind: ["delete", "update", "merge", "optimize"] for kind in CHANGES}
#: Operations, with the kind of table, whose driver is killed at their commits; in the long form, at any write of all.
STALLED = (("delete", MARKED), ("update", COPIED), ("merge", MARKED), ("optimize", MARKED), ("append", COPIED))
#: Each row takes its time, in the executor's JVM.
SLOW = "java_method('java.lang.Thread', 'sleep', {0}L) AS s"


def report(step: str, **facts: Any) -> None:
    print(json.dumps({"step": step, **facts}), flush=True)


def session(master: str, **settings: str) -> Any:
    builder = SparkSession.builder.master(master)
    for key, value in {**SETTINGS, **{k.replace("__", "."): v for k, v in settings.items()}}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def processes() -> Iterator[tuple[int, str]]:
    """Yield every process's id and command line."""
    if Path("/proc/self/cmdline").exists():
        for folder in Path("/proc").iterdir():
            # a process may end meanwhile
            with contextlib.suppress(OSError):
                if folder.name.isdigit():
                    yield (
                        int(folder.name),
                        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"),
                    )
        return
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        number, _, command = line.strip().partition(" ")
        yield int(number), command


def executors(spark: Any) -> list[int]:
    """Return the process ids of this application's executors."""
    mine = f"--app-id {spark.sparkContext.applicationId}"
    return [number for number, command in processes() if mine in command and "CoarseGrainedExecutor" in command]


def parquet_files(path: Path) -> set[str]:
    return {str(f) for f in path.rglob("*.parquet") if "_delta_log" not in f.parts}


def wait_for(what: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)
    return found


def beside(work: Callable[[], Any]) -> tuple[threading.Thread, list[str]]:
    """Start work in a thread; return it, and the list that gets the error's class and text."""
    errors: list[str] = []

    def run() -> None:
        try:
            work()
        except Exception as e:  # noqa: BLE001 - told to the test
            errors.append(f"{type(e).__name__}: {e}")

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


# --- executors in JVMs of their own --------------------------------------------------------


def reads(spark: Any, root: Path) -> None:
    """Rows by every form of deletion vectors; the compiled parts are in the driver alone."""
    table = TableBuilder(root / "read").create(
        {"id": "long", "p": "string"}, partition_by=["p"], features=["deletionVectors"]
    )
    table.append([{"id": i, "p": f"p {i % 2}"} for i in range(1000)])
    table.delete_rows(lambda r: r["id"] % 3 == 0)
    wait_for(lambda: len(executors(spark)) == 2)
    names = ["_file_path", "_file_row_index"]
    frames = {
        "index": read(spark, table.uri, metadata=names),
        "join": read(spark, table.uri, metadata=names, route="join"),
        "executors": read(spark, table.uri, metadata=names, vector_bytes=0),
    }
    found = {n: sorted(map(tuple, f.select("id", "p", "_file_row_index").collect())) for n, f in frames.items()}
    found["skipped"] = sorted(map(tuple, frames["index"].where("p = 'p 1' AND id > 900").select("id").collect()))
    mapped = TableBuilder(root / "mapped").create(schema=NESTED, column_mapping="name")
    mapped.append([{"id": i, "s": {"a": i, "b": "b"}, "l": [{"a": i, "b": "c"}]} for i in range(100)], files=4)
    fields = read(spark, mapped.uri).where("s.a >= 97").selectExpr("s.a", "l.a")
    found["fields"] = sorted(map(list, fields.collect()))
    report("reads", jvms=len(executors(spark)), **found)


def writes(spark: Any, root: Path) -> None:
    properties = {"delta.constraints.small": "id < 1000", "delta.columnMapping.mode": "name"}
    made = spark.range(0, 40, 1, 4).selectExpr("id", "concat('p ', id % 2) AS p")
    write(made, root / "written", partition_by="p", properties=properties)
    thread, errors = beside(
        lambda: write(spark.range(999, 1001).selectExpr("id", "'x' AS p"), root / "written", "append")
    )
    thread.join()
    last = spark.range(38, 39).selectExpr("id", "'y' AS p")
    write(last, root / "written", "overwrite", replace_where="id >= 38")
    report("writes", errors=errors)


def processes_of(paths: pa.Array) -> Iterator[pa.RecordBatch]:
    """Return for each part of paths the process that has it."""
    yield pa.RecordBatch.from_pydict({"path": paths, "process": pa.array([os.getpid()] * len(paths))})


def upkeep(spark: Any, root: Path) -> None:
    """Vacuum lists and deletes on executors, and footers are read there; the outcome is that of the driver alone."""
    path = root / "upkeep"
    rows = pa.table({"p": [i % 80 for i in range(160)], "id": list(range(160)), "s": [f"{i} é" for i in range(160)]})
    write_deltalake(str(path), rows, partition_by=["p"])
    for i in range(80):
        for name in (f"p={i}/old.parquet", f"p={i}/_hidden/old.parquet"):
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_text("x")
            os.utime(path / name, (1e9, 1e9))
    spread = spark_engine(spark, str(path)).spread
    assert spread is not None
    numbers = pa.array([str(i) for i in range(1000)])
    ran = spread(processes_of, numbers, pa.schema([("path", pa.string()), ("process", pa.int64())]))
    calls: list[int] = []
    original = SparkSpread.__call__

    def counted(self: Any, work: Any, paths: pa.Array, schema: pa.Schema) -> pa.Table:
        calls.append(len(paths))
        return original(self, work, paths, schema)

    without_statistics(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSpread, "__call__", counted)
        patch.setattr(deletion, "_MANY", 8)
        patch.setattr(footers, "_MANY", 8)
        table = DeltaTable.forPath(spark, str(path))
        alone = delta_core.DeltaTable(str(path)).vacuum(full=True)
        found = table.vacuum_files()
        done = table.table.compute_statistics()
    texts = {f["path"]: f["stats"] for f in table.table.snapshot().files.columns(["path", "stats"]).to_pylist()}
    report(
        "upkeep",
        ran=sorted(set(ran.column("process").to_pylist()) - {os.getpid()}),
        here=os.getpid() in ran.column("process").to_pylist(),
        paths=sorted(map(int, ran.column("path").to_pylist())),
        calls=calls,
        same=sorted(alone) == sorted(found),
        deleted=len(found),
        described=done["num_files"],
        text=next(t for p, t in texts.items() if p.startswith("p=7/")),
    )


# --- what gets lost ------------------------------------------------------------------------


def lost_in(spark: Any, work: Callable[[], Any]) -> tuple[list[str], int]:
    """Kill an executor while tasks of work run; return the errors, and which was killed."""
    wait_for(lambda: len(executors(spark)) == 2)
    first = executors(spark)[0]
    thread, errors = beside(work)
    tracker = spark.sparkContext.statusTracker()

    def runs() -> bool:
        found = (tracker.getStageInfo(s) for s in tracker.getActiveStageIds())
        return not thread.is_alive() or any(s is not None and s.numActiveTasks for s in found)

    wait_for(runs)
    os.kill(first, signal.SIGKILL)
    thread.join()
    return errors, first


def changes_lose_executors(spark: Any, root: Path) -> None:
    """Each change of rows loses an executor while it runs."""
    facts = {}
    for kind, properties in (("copy", {}), ("vectors", {"delta.enableDeletionVectors": "true"})):
        path = root / f"changed {kind}"
        rows = spark.range(0, 40_000, 1, 8).selectExpr("id", "id % 7 AS n", "repeat(md5(cast(id AS string)), 8) AS s")
        write(rows, path, properties={**properties, "delta.enableRowTracking": "true"})
        source = spark.range(39_000, 41_000, 1, 4).selectExpr("id", "1000 AS n", "'new' AS s").alias("s")

        def merge(path: Path = path, source: Any = source) -> None:
            merger = DeltaTable.forPath(spark, str(path)).alias("t").merge(source, "t.id = s.id")
            merger.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

        changes: dict[str, Callable[[], Any]] = {
            "delete": lambda path=path: DeltaTable.forPath(spark, str(path)).delete("id % 10 = 3"),
            "update": lambda path=path: DeltaTable.forPath(spark, str(path)).update("id % 10 = 4", {"n": "n + 100"}),
            "merge": merge,
            "optimize": lambda path=path: DeltaTable.forPath(spark, str(path)).optimize().executeZOrderBy("n", "id"),
        }
        for name in CHANGES[kind]:
            change = changes[name]
            errors, killed = lost_in(spark, change)
            facts[f"{kind} {name}"] = {"errors": errors, "killed": killed not in executors(spark)}
    report("changes_lose_executors", **facts)


def loses_an_executor(spark: Any, root: Path) -> None:
    """Kill an executor that has opened its file."""
    path = root / "lost"
    write(spark.range(3).selectExpr("id", "'' AS s"), path)
    before = parquet_files(path)
    slow = spark.range(100, 116, 1, 4).selectExpr("id", SLOW.format(400))
    thread, errors = beside(lambda: write(slow, path, "append"))
    wait_for(lambda: len(parquet_files(path) - before) >= 2)
    first = executors(spark)
    os.kill(first[0], signal.SIGKILL)
    thread.join()
    report("loses_an_executor", errors=errors, killed=first[0], left=executors(spark))


def is_cancelled(spark: Any, root: Path) -> None:
    """Cancel the job while its tasks write."""
    path = root / "cancelled"
    write(spark.range(3).selectExpr("id", "'' AS s"), path)
    before = parquet_files(path)
    thread, errors = beside(
        lambda: write(spark.range(100, 140, 1, 4).selectExpr("id", SLOW.format(400)), path, "append")
    )
    wait_for(lambda: parquet_files(path) - before)
    spark.sparkContext.cancelAllJobs()
    thread.join()
    report("is_cancelled", errors=errors)


def stalls(spark: Any, root: Path) -> None:
    """Stop operations at their writes, each in a thread and on a table of its own, until the test kills the process."""
    originals = {kind: made(root / f"original {kind}", properties) for kind, properties in TABLES.items()}
    found: list[dict[str, Any]] = []
    with contextlib.ExitStack() as patches:
        for name, kind in itertools.product(OPERATIONS, TABLES) if IS_LONG else STALLED:
            run = OPERATIONS[name][0]
            for at, is_after in seams_of(lambda path, run=run: run(spark, path), originals[kind]):
                path, staller = root / "stalled" / f"{len(found)}", Staller(at, is_after)
                shutil.copytree(originals[kind], path)
                patches.enter_context(killing(staller, str(path)))
                threading.Thread(target=run, args=(spark, path), daemon=True).start()
                if not staller.has_stalled.wait(300):
                    raise TimeoutError(f"{name} of {kind} does not reach write {at}")
                found.append({"name": name, "kind": kind, "at": at, "is_after": is_after, "path": str(path)})
        report("stalls", tables=found)
        time.sleep(600)


def seams_of(run: Callable[[Path], Any], table: Path) -> list[tuple[int | None, bool]]:
    """Return the writes at which an operation stops, before and after each: the commit, or all."""
    if not IS_LONG:
        return [(None, False), (None, True)]
    path = table.parent / f"counted {uuid.uuid4().hex}"
    shutil.copytree(table, path)
    counting = Killer(None, False)
    with killing(counting, str(path)):
        run(path)
    return list(itertools.product(range(counting.count), (False, True)))


def speculates(spark: Any, root: Path) -> None:
    """Have the first attempt of one task linger, so that Spark starts another beside it."""
    attempts = root / "attempts"
    attempts.mkdir(exist_ok=True)

    def lingering(i: int) -> int:
        context = TaskContext.get()
        assert context is not None
        (attempts / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            # however slow the machine is: until the other attempt runs too
            end = time.monotonic() + 60
            while not (attempts / "0-1").exists() and time.monotonic() < end:
                time.sleep(0.1)
        return i

    slow = F.udf(lingering, "long")
    rows = spark.range(0, 16, 1, 4).select(slow("id").alias("id"))
    write(rows, root / "speculated")
    report("speculates", attempts=sorted(f.name for f in attempts.iterdir()))


def main(kind: str, master: str, root: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if kind == "speculation":
        spark = session(
            master,
            spark__speculation="true",
            spark__speculation__interval="100ms",
            spark__speculation__multiplier="1.2",
            spark__speculation__quantile="0.5",
            spark__speculation__minTaskRuntime="100ms",
            spark__driver__host="127.0.0.1",
        )
        speculates(spark, root)
        spark.stop()
        return
    spark = session(master)
    lost = (loses_an_executor, changes_lose_executors, is_cancelled)
    for step in (reads, writes, upkeep, *lost, stalls):
        step(spark, root)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
