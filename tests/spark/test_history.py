"""The history of each way of changing a table: the answers of delta-spark 4.4.0, recorded.

`history_program.py` has the ways, and records delta-spark's answers with the argument ``peer``. CI tries some of them;
``DELTA_CORE_LONG=1`` tries all.
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
from tests.example_counts import chosen
from tests.spark.history_program import CALLS, CASES, STATEMENTS, comparable

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDED: Mapping[str, Any] = json.loads(Path(__file__).with_name("history_recorded.json").read_text())
#: Ways where this library differs, with the reason.
OWN: Mapping[str, Any] = {
    # changes nothing, and commits nothing
    "unset_properties": {},
    "drop_default": {},
    "sync_identity": {},
    "feature_call": {},
    # the call has the place of its table alone
    "clone_call": {
        "new": ["CLONE", {"isShallow": "true", "source": "<folder>/warehouse/<name>", "sourceVersion": "2"}, []]
    },
    # delta-spark has no case for the columns to cluster by that PySpark's writer passes
    "save_as_table_clustered": {
        "new": [
            "CREATE TABLE AS SELECT",
            {"clusterBy": '["p"]', "description": None, "isManaged": "true", "partitionBy": "[]", "properties": "{}"},
            ["numFiles", "numOutputBytes", "numOutputRows"],
        ]
    },
    # rejected by name; delta-spark fails with an error of Java
    "reorg_upgrade": "None",
}
#: Metrics that this library lacks: it holds no source of a merge back, and counts nothing that is not there.
NOT_MEASURED = {"materializeSourceTimeMs", "numRemovedBytes", "numRemovedFiles"}
FEW = (
    "ctas_with_clauses", "create_or_replace_new_as", "replace_as", "create_clustered", "create_or_replace_new",
    "replace", "insert_overwrite", "delete_all", "merge", "optimize_zorder", "reorg_purge", "vacuum", "restore_version",
    "rename_column", "cluster_by", "comment_table", "shallow_clone", "convert_partitioned", "truncate",
    "save_partitioned", "save_as_table_overwrites_schema", "save_as_table_replace_where", "save_as_table_dynamic",
    "append_path_merge", "write_to_replace", "write_to_overwrite", "builder_create_with_clauses",
    "builder_replace_path", "restore_time_call", "stream",
)  # fmt: skip
WAYS = chosen(CASES, FEW)


@pytest.fixture(scope="module")
def answers(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    del java
    folder = tmp_path_factory.mktemp("history")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("history_program.py")), str(folder), "", *WAYS],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))),
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return dict(map(json.loads, lines))


@pytest.mark.parametrize("way", WAYS)
def test_history_names_a_change_as_delta_spark(way: str, answers: dict[str, Any]) -> None:
    found, expected = answers[way], RECORDED[way]
    assert comparable(found) == comparable(OWN.get(way, expected))
    if way not in OWN and isinstance(expected, dict):
        for table, (_, _, metrics) in expected.items():
            assert set(metrics) - set(found[table][2]) <= NOT_MEASURED


def test_each_way_is_recorded_and_each_difference_is_one() -> None:
    assert list(RECORDED) == [*STATEMENTS, *CALLS]
    assert all(comparable(RECORDED[way]) != comparable(answer) for way, answer in OWN.items())
