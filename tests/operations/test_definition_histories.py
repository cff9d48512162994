"""Random histories of changes of rows, alters, features enabled and dropped: the rows of every version."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.operations.feature import steps as feature_steps
from tests.operations import definition_operations as definitions, row_operations as steps
from tests.operations.row_tables import Row, rows_of, table_of

#: How many histories each kind of table gets; more on request.
HISTORIES = int(os.environ.get("DELTA_CORE_HISTORIES", "3"))
MAKERS = (*steps.CHANGES, steps.compact, steps.purge, *(definitions.alter,) * 4, *(definitions.enable,) * 4,
          *(definitions.drop,) * 6)  # fmt: skip
#: Features that deltalake does not read.
UNREAD = {"columnMapping", "deletionVectors", "typeWidening", "v2Checkpoint"}
AT_ONCE = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}


@pytest.mark.parametrize("is_partitioned", [False, True], ids=["whole", "partitioned"])
def test_rows_of_each_version_are_those_of_the_model(
    tmp_path: Path, is_partitioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a backfill has several commits
    monkeypatch.setattr(feature_steps, "BATCH_FILES", 2)
    dropped = 0
    for seed in range(HISTORIES):
        random = Random(f"{is_partitioned} {seed}")
        uri = str(tmp_path / str(seed))
        rows: list[Row] = [(i, "ab"[i % 2], i / 8) for i in range(6)]
        columns = ["p"] if is_partitioned else None
        # half of the histories can be truncated at once
        write_deltalake(uri, table_of(rows), partition_by=columns, configuration=AT_ONCE if seed % 2 else {})
        versions, done = {0: sorted(rows, key=repr)}, list[steps.Step]()
        for _ in range(14):
            table = DeltaTable(uri)
            step = random.choice(MAKERS)(random)
            done.append(step)
            before = table.version()
            step.run(table)
            middle = sorted(rows, key=repr)
            rows = step.apply(rows)
            latest = DeltaTable(uri)
            # the commits before the last one change no row
            versions |= dict.fromkeys(range(before + 1, latest.version()), middle)
            versions[latest.version()] = sorted(rows, key=repr)
            assert rows_of(latest.to_pyarrow_table()) == versions[latest.version()], (seed, done)
        first = int(min((Path(uri) / "_delta_log").glob("*.json")).name[:20])
        for version, expected in versions.items():
            if version >= first:
                assert rows_of(latest.snapshot(version).scan().to_table()) == expected, (seed, version, done)
        dropped += sum(h["operation"] == "DROP FEATURE" for h in latest.history())
        report = latest.verify(deep="rows")
        assert report.ok, (seed, done, report.to_text())
        if not UNREAD & latest.snapshot().state.features:
            peer = deltalake.DeltaTable(uri).to_pyarrow_table()
            assert rows_of(pa.table(peer)) == versions[latest.version()], (seed, done)
    assert dropped >= HISTORIES
