"""Pipelines as users of delta-spark write them: the answers of delta-spark 4.4.0, recorded.

`pipelines_program.py` has them, and records delta-spark's answers with the argument ``peer``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT
from tests.spark.pipelines_program import CASES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDED: Mapping[str, Any] = json.loads(Path(__file__).with_name("pipelines_recorded.json").read_text())


@pytest.fixture(scope="module")
def answers(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    del java
    folder = tmp_path_factory.mktemp("pipelines")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("pipelines_program.py")), str(folder)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))),
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return dict(map(json.loads, lines))


@pytest.mark.parametrize("name", CASES)
def test_pipeline_answers_as_with_delta_spark(name: str, answers: dict[str, Any]) -> None:
    assert answers[name] == RECORDED[name]
