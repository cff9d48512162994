"""Forms in which programs name and read tables of the format delta: the answers of delta-spark 4.4.0, recorded.

`forms_program.py` has them, and records delta-spark's answers with the argument ``peer``.
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
from tests.spark.forms_program import CASES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDED: Mapping[str, Any] = json.loads(Path(__file__).with_name("forms_recorded.json").read_text())
#: Where this library differs, with the reason.
OWN: Mapping[str, Any] = {
    # delta-spark appends to the latest version, which the view does not show
    "insert_into_a_view_of_a_version": ["DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", [[0, 0]]],
    # no folder is left
    "clones_of_parquet_that_are_rejected": [[True, True, True, True], False],
}


@pytest.fixture(scope="module")
def answers(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    del java
    folder = tmp_path_factory.mktemp("forms")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("forms_program.py")), str(folder)],
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
def test_form_answers_as_delta_spark(name: str, answers: dict[str, Any]) -> None:
    assert answers[name] == OWN.get(name, RECORDED[name])
