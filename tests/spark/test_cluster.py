"""Executors in JVMs of their own: what they run, and what is left when one of them, a task or the driver is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from delta_core import DeltaTable, write_deltalake
from tests.example_counts import IS_LONG
from tests.operations.row_tables import table_of
from tests.spark.cluster_program import CHANGES
from tests.spark.test_interrupted import OPERATIONS, content

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: Any) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    env.pop("SPARK_REMOTE", None)
    command = [sys.executable, "-m", "tests.spark.cluster_program", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def reported(program: subprocess.Popen[str], last: str) -> dict[str, dict[str, Any]]:
    """Return what a program reports up to a step, by step."""
    found: dict[str, dict[str, Any]] = {}
    assert program.stdout is not None
    assert program.stderr is not None
    for line in program.stdout:
        if line.startswith("{"):
            facts = json.loads(line)
            found[facts["step"]] = facts
            if facts["step"] == last:
                return found
    errors = program.stderr.read()
    at = errors.find("Traceback")
    pytest.fail(f"ended before {last!r}: {errors[at : at + 4000] if at >= 0 else errors[-4000:]}")


def rows(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    table = DeltaTable(str(path)).snapshot().scan(list(columns) or None).to_table()
    return sorted(tuple(r.values()) for r in table.to_pylist())


def ids(path: Path) -> list[int]:
    return [r[0] for r in rows(path, "id")]


def live(path: Path) -> set[str]:
    return {unquote(p) for p in DeltaTable(str(path)).snapshot().files.columns(["path"]).column("path").to_pylist()}


def on_disk(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*.parquet") if "_delta_log" not in f.parts}


@pytest.fixture(scope="module")
def cluster(java: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Run every step on two executors; the driver is killed in the last one, in several operations at once."""
    root = tmp_path_factory.mktemp("cluster")
    program = start("steps", "local-cluster[2,1,1024]", root)
    try:
        found = reported(program, "stalls")
    finally:
        program.send_signal(signal.SIGKILL)
        program.communicate()
    return root, found


Cluster = tuple[Path, dict[str, dict[str, Any]]]


def test_executors_read_what_the_drivers_index_plans(cluster: Cluster) -> None:
    facts = cluster[1]["reads"]
    assert facts["jvms"] == 2
    left = [[i, f"p {i % 2}"] for i in range(1000) if i % 3]
    for route in ("index", "join", "executors"):
        assert [r[:2] for r in facts[route]] == left
        assert facts[route] == facts["index"]
    assert facts["skipped"] == [[i] for i in range(901, 1000, 2) if i % 3]
    assert facts["fields"] == [[i, [i]] for i in (97, 98, 99)]


def test_executors_write_check_and_replace(cluster: Cluster) -> None:
    root, found = cluster
    assert len(found["writes"]["errors"]) == 1
    assert found["writes"]["errors"][0].startswith("ConstraintViolationError")
    assert rows(root / "written") == [(i, f"p {i % 2}") for i in range(38)] + [(38, "y")]
    assert live(root / "written") <= on_disk(root / "written")


def test_executors_list_delete_and_read_footers(cluster: Cluster) -> None:
    root, found = cluster
    facts = found["upkeep"]
    assert facts["ran"]
    assert not facts["here"]
    assert facts["paths"] == list(range(1000))
    # folders, files to delete, footers
    assert facts["calls"] == [80, 80, 80]
    assert facts["same"]
    assert facts["deleted"] == 80
    assert facts["described"] == 80
    assert json.loads(facts["text"]) == {
        "numRecords": 2,
        "minValues": {"id": 7, "s": "7 é"},
        "maxValues": {"id": 87, "s": "87 é"},
        "nullCount": {"id": 0, "s": 0},
        "tightBounds": True,
    }
    assert len(on_disk(root / "upkeep") - live(root / "upkeep")) == 80, "hidden files stay"
    assert ids(root / "upkeep") == list(range(160))


@pytest.mark.parametrize("kind", ["copy", "vectors"])
def test_change_that_loses_an_executor_changes_every_row_once(cluster: Cluster, kind: str) -> None:
    root, found = cluster
    facts = {n: f for n, f in found["changes_lose_executors"].items() if n.startswith(kind)}
    changes = CHANGES[kind]
    assert facts == {f"{kind} {name}": {"errors": [], "killed": True} for name in changes}
    expected = {i: i % 7 for i in range(40_000)}
    if "delete" in changes:
        expected = {i: n for i, n in expected.items() if i % 10 != 3}
    if "update" in changes:
        expected.update({i: n + 100 for i, n in expected.items() if i % 10 == 4})
    if "merge" in changes:
        expected.update(dict.fromkeys(range(39_000, 41_000), 1000))
    path = root / f"changed {kind}"
    assert rows(path, "id", "n") == sorted(expected.items())
    assert live(path) <= on_disk(path)
    table = DeltaTable(str(path))
    made = [h["operation"] for h in table.history()][-2::-1]
    assert made == [name.upper() for name in changes]
    assert table.verify(deep="rows").ok


def test_write_survives_an_executor_and_no_row_is_doubled(cluster: Cluster) -> None:
    root, found = cluster
    facts = found["loses_an_executor"]
    assert facts["errors"] == []
    assert facts["killed"] not in facts["left"]
    assert ids(root / "lost") == [0, 1, 2, *range(100, 116)]
    # what the killed executor had begun lies there, and nothing names it
    assert on_disk(root / "lost") > live(root / "lost")


def test_cancelled_job_leaves_the_table_as_it_was(cluster: Cluster) -> None:
    root, found = cluster
    assert [e.partition(":")[0] for e in found["is_cancelled"]["errors"]] == ["EngineError"]
    assert ids(root / "cancelled") == [0, 1, 2]
    assert DeltaTable(str(root / "cancelled")).version() == 0


def test_killed_driver_leaves_each_table_as_before_or_after(cluster: Cluster, spark: Any) -> None:
    stalled = cluster[1]["stalls"]["tables"]
    assert {s["name"] for s in stalled} >= {"delete", "update", "merge", "optimize", "append"}
    seen = set()
    for facts in stalled:
        path, (run, apply) = Path(facts["path"]), OPERATIONS[facts["name"]]
        before = content(path.parents[1] / f"original {facts['kind']}")
        after = sorted(apply(before), key=repr)
        is_done = DeltaTable(str(path)).version() > 2
        seen.add((facts["name"], is_done))
        if facts["at"] is None:
            assert is_done == facts["is_after"], facts
        assert content(path) == (after if is_done else before), facts
        if not is_done:
            assert on_disk(path) - live(path), "what it wrote lies there"
            run(spark, path)
            assert content(path) == after, facts
        write_deltalake(str(path), table_of([(50, "c", None)]), mode="append")
        assert content(path) == sorted([*after, (50, "c", None)], key=repr)
    # before the commit, and after it
    assert seen == {(name, is_done) for name, _ in seen for is_done in (False, True)}


# --- attempts side by side -----------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def two_hosts(java: Path, tmp_path: Path) -> Iterator[str]:
    """A cluster whose workers have addresses of their own: Spark starts no second attempt on the host of the first."""
    import pyspark

    hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    for host in hosts:
        try:
            with socket.socket() as s:
                s.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no address {host}")
    home = Path(pyspark.__file__).parent
    port = _free_port()
    master = f"spark://{hosts[0]}:{port}"
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1", "SPARK_WORKER_DIR": str(tmp_path / "work")}
    deploy = [home / "bin" / "spark-class", "org.apache.spark.deploy.master.Master", "--host", hosts[0]]
    commands = [[*deploy, "--port", str(port), "--webui-port", str(_free_port())]]
    for host in hosts[1:]:
        worker = [home / "bin" / "spark-class", "org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "2"]
        commands.append([*worker, "--memory", "1g", "--webui-port", str(_free_port()), master])
    logs, running = [], []
    for i, command in enumerate(commands):
        log = (tmp_path / f"{i}.log").open("w")
        running.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=tmp_path))
        logs.append(log)
    try:
        _wait_for(tmp_path / "0.log", "Registering worker", 2)
        yield master
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)
        for log in logs:
            log.close()


def _wait_for(log: Path, text: str, times: int) -> None:
    end = time.monotonic() + 60
    while len(re.findall(text, log.read_text())) < times:
        if time.monotonic() > end:
            pytest.fail(f"no cluster: {log.read_text()[-2000:]}")
        time.sleep(0.1)


@pytest.mark.skipif(not IS_LONG, reason="takes a minute: run it with DELTA_CORE_LONG=1")
def test_speculative_attempts_write_every_row_once(two_hosts: str, tmp_path: Path) -> None:
    program = start("speculation", two_hosts, tmp_path)
    try:
        found = reported(program, "speculates")
    finally:
        program.communicate(timeout=60)
    # the first task ran twice, side by side
    assert {"0-0", "0-1"} <= set(found["speculates"]["attempts"])
    assert ids(tmp_path / "speculated") == list(range(16))
