"""Python workers run under the interpreter that has this library, without PYSPARK_PYTHON."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import delta_core
from delta_core.engines.spark.plan import private
from delta_core.testing.table_builder import TableBuilder

pytestmark = pytest.mark.spark


def test_workers_find_the_package_though_python3_on_path_lacks_it(spark: Any, java: Path, tmp_path: Path) -> None:
    del java
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["deletionVectors"])
    made.append([{"id": n} for n in range(10)]).delete_rows(lambda r: r["id"] == 4)
    # a python3 that lacks the package, in front of all others
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 'the wrong python3 was run' >&2\nexit 1\n")
    other.chmod(0o755)
    place = Path(delta_core.__file__).parents[1]
    environment = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_PYTHON", "PYTHONPATH", "SPARK_ENV_LOADED")}
    environment["PATH"] = f"{other.parent}{os.pathsep}{environment['PATH']}"
    # by sys.path alone, which workers do not inherit
    code = (
        f"import sys; sys.path[:0] = [{str(place)!r}]; from tests.spark.workers_program import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, made.uri, str(tmp_path / "warehouse")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split() == ["41", "41", "python3"], done.stderr[-3000:]


def test_interpreter_that_somebody_chose_is_left_alone(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext
    before = context.pythonExec, context.environment
    with private.own_python(spark):
        assert (context.pythonExec, context.environment) == before
    monkeypatch.delenv("PYSPARK_PYTHON")
    with private.own_python(spark):
        assert context.pythonExec == sys.executable
        assert "PYTHONPATH" in context.environment
    assert (context.pythonExec, context.environment) == before
