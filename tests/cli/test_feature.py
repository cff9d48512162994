"""The command feature: add, drop and list."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3]}), configuration=VECTORS)
    DeltaTable(str(tmp_path / "t")).delete("id = 2")
    return str(tmp_path / "t")


def features(uri: str) -> frozenset[str]:
    return DeltaTable(uri).snapshot().state.features


def test_added_feature_is_listed_with_what_it_requires(run: Any, uri: str) -> None:
    planned = run("feature", "add", uri, "rowTracking", "v2Checkpoint", "--dry-run", "--json").json
    assert planned["version"] == DeltaTable(uri).version() == 1
    assert {"domainMetadata", "rowTracking", "v2Checkpoint"} <= set(planned["writerFeatures"])
    found = run("feature", "add", uri, "rowTracking", "v2Checkpoint", "--json").json
    assert found == {**planned, "version": 2}
    listed = run("feature", "list", uri, "--json").json
    assert listed["protocol"] == {k: v for k, v in found.items() if k != "version"}
    assert {f["name"] for f in listed["features"]} == features(uri)
    assert "rowTracking" in run("feature", "list", uri).out
    assert run("feature", "list", uri).out == run("features", uri).out
    # what is there already is not added again
    assert run("feature", "add", uri, "rowTracking", "--json").json["version"] == 2


def test_dropped_feature_is_gone_after_the_steps_that_were_shown(run: Any, uri: str) -> None:
    steps = run("feature", "drop", uri, "deletionvectors", "--dry-run").lines
    assert steps[1:] == [
        "rewrite files with deletionVector",
        "write 3 checkpoints, each after an empty commit",
        "remove deletionVectors from the protocol",
        "write a checkpoint",
    ]
    assert DeltaTable(uri).version() == 1
    found = run("feature", "drop", uri, "deletionVectors", "--yes", "--json").json
    assert found == {
        "version": DeltaTable(uri).version(),
        "feature": "deletionVectors",
        "dropped": True,
        "steps": steps,
    }
    assert "deletionVectors" not in features(uri)
    assert DeltaTable(uri).to_pyarrow_table().to_pydict() == {"id": [1, 3]}


@pytest.mark.parametrize(
    ("answer", "code", "text"), [("", 2, "Pass --yes"), ("n\n", 130, "in these steps"), ("y\n", 0, "in these steps")]
)
def test_drop_requires_a_confirmation(
    run: Any, uri: str, answer: str, code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    found = run("feature", "drop", uri, "deletionVectors")
    assert found.code == code
    assert text in found.err
    assert "rewrite files with deletionVector" in found.err
    assert ("deletionVectors" in features(uri)) == (code != 0)


def test_history_that_is_too_young_is_explained(run: Any, uri: str) -> None:
    found = run("feature", "drop", uri, "deletionVectors", "--truncate-history", "--yes")
    assert found.code == 1
    assert "Drop it again after" in found.err
    assert "deletionVectors" in features(uri)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["add", "rowTraking"], 1, "Did you mean 'rowTracking'"),
        (["drop", "rowTracking"], 2, "does not support the feature 'rowTracking'"),
        (["drop", "deletionVector"], 1, "Did you mean 'deletionVectors'"),
        (["drop", "appendOnly", "--truncate-history"], 2, "Leave --truncate-history out"),
    ],
)
def test_feature_that_can_not_be_added_or_dropped_is_explained(
    run: Any, uri: str, arguments: list[str], code: int, text: str
) -> None:
    command, *rest = arguments
    found = run("feature", command, uri, *rest, "--dry-run")
    assert (found.code, DeltaTable(uri).version()) == (code, 1)
    assert text in found.err
