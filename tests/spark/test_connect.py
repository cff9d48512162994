"""Spark Connect: the route of plain DataFrames against a real server, and servers that have the format delta."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_core.testing.table_builder import TableBuilder

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


def build(path: Path) -> list[str]:
    schema = {"id": "long", "p": "string", "t": "timestamp"}
    properties = {"delta.enableChangeDataFeed": "true"}
    features = ["deletionVectors", "changeDataFeed"]
    odd = TableBuilder(path / "a b%20[x]").create(
        schema, partition_by=["p"], features=features, properties=properties, column_mapping="name"
    )
    odd.append([{"id": i, "p": "x=1/%" if i % 2 else None, "t": None} for i in range(50)])
    odd.delete_rows(lambda r: r["id"] % 5 == 0)
    empty = TableBuilder(path / "e").create({"a": "long"})
    ids = TableBuilder(path / "ids").create({"a": "long", "b": "string"}, column_mapping="id")
    return [odd.uri, ids.append([{"a": 1, "b": "x"}, {"a": None, "b": "y"}]).uri, empty.uri]


@pytest.fixture(scope="module")
def program(java: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """Return what the program that talks to the server printed, and its errors."""
    del java
    pytest.importorskip("grpc", reason="Spark Connect needs the packages of pyspark[connect]")
    root = tmp_path_factory.mktemp("connect")
    return run("connect_program", root, *build(root))


@pytest.fixture(scope="module")
def served(java: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """Return the same of a program that talks to a server with the format delta."""
    del java
    pytest.importorskip("grpc", reason="Spark Connect needs the packages of pyspark[connect]")
    return run("server_program", tmp_path_factory.mktemp("server"))


def run(program: str, root: Path, *arguments: str) -> tuple[list[str], str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    env.pop("SPARK_REMOTE", None)
    command = [sys.executable, "-m", f"tests.spark.{program}", str(root), *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if "NO SERVER" in done.stdout:
        pytest.skip(done.stdout.strip())
    return done.stdout.splitlines(), done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.parametrize(
    "step", ["reads_and_writes", "runs_statements", "raises_errors_of_pyspark", "uses_functions", "changes_rows"]
)
def test_server_with_the_format_delta_serves_programs_that_use_its_name(
    served: tuple[list[str], str], step: str
) -> None:
    lines, errors = served
    assert step in lines, errors


def test_connect_returns_the_rows_of_the_arrow_engine(program: tuple[list[str], str]) -> None:
    lines, errors = program
    assert "READ" in lines, errors


def test_connect_reads_lance_datasets(program: tuple[list[str], str]) -> None:
    lines, errors = program
    assert "LANCE" in lines, errors


def test_connect_writes_what_classic_writes(program: tuple[list[str], str]) -> None:
    lines, errors = program
    assert "WRITTEN" in lines, errors


def test_connect_keeps_rows_that_other_writers_committed_meanwhile(program: tuple[list[str], str]) -> None:
    lines, errors = program
    assert "KEPT" in lines, errors


def test_connect_runs_statements_that_change_no_rows(program: tuple[list[str], str]) -> None:
    lines, errors = program
    assert "RUN" in lines, errors


def test_connect_rejects_changes_of_rows_and_names_of_the_catalog(program: tuple[list[str], str]) -> None:
    lines, errors = program
    assert "REJECTED" in lines, errors
