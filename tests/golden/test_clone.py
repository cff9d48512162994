"""Clone recorded tables that other writers made: the clone has the same rows, and nothing is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable
from delta_core.errors import DeltaError, InvalidArgumentError, UnsupportedExpressionError, UnsupportedFeatureError
from tests.bundled import are_provided
from tests.corpus.records import path_of, records
from tests.corpus.rows import canonical_rows
from tests.golden.conftest import is_opened

pytestmark = pytest.mark.golden

#: Tables that nobody may write: the reason is part of the message.
REJECTED = {
    "spark/vector_in_the_log": (InvalidArgumentError, "claim tight"),
    "dat/generated_columns": (UnsupportedExpressionError, "now, which is not allowed there"),
    "delta-rs/table_with_liquid_clustering": (UnsupportedFeatureError, "can be read, not written"),
    "golden-delta/collations-preview-table": (UnsupportedFeatureError, "can be read, not written"),
    "trino/deltalake__uniform_hudi": (UnsupportedFeatureError, "a preview of inCommitTimestamp"),
}
#: Larger ones take long and have nothing of their own.
MOST_FILES = 20


def rows_of(table: DeltaTable) -> list[str]:
    return canonical_rows(table.to_pyarrow_table(), json.loads(table.schema().to_json()))


def sample() -> list[Any]:
    """Return a table of every fourth family, and those that are rejected."""
    found = {r.get("family", r["id"]): r for r in records() if is_opened(r) and r["live_files"] <= MOST_FILES}
    chosen = [r for r in list(found.values())[::4] if r["id"] not in REJECTED]
    return [*chosen, *(r for r in records() if r["id"] in REJECTED)]


def test_clones_of_tables_of_other_writers_have_their_rows(tmp_path: Path) -> None:
    if not sample():
        pytest.skip("no corpus")
    different = []
    for number, record in enumerate(sample()):
        name, source = record["id"], DeltaTable(path_of(record))
        try:
            rows = rows_of(source)
        except DeltaError:
            continue  # other tests expect that
        if name not in REJECTED and not are_provided(source.protocol().writer_features or ()):
            continue
        target, deep = tmp_path / str(number), number % 2 == 1
        if name in REJECTED:
            error, reason = REJECTED[name]
            with pytest.raises(error, match=reason):
                source.clone(target, deep=deep)
            continue
        clone = source.clone(target, deep=deep)
        if rows_of(clone) != rows or not clone.verify().rules() <= source.verify().rules():
            different.append((name, deep))
    assert different == []
