"""Writes of several processes: how often they look for the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.distributed.writing import WritePart, WrittenPart, write_parts
from delta_core.kernel.snapshot import Snapshot, TableContext


def test_a_new_table_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, calls, find = pa.table({"id": [1, 2]}), [], TableContext.find

    def counted(self: TableContext) -> Snapshot | None:
        calls.append(self.log.uri)
        return find(self)

    def run(part: WritePart) -> Sequence[WrittenPart]:
        return [part.write(rows.slice(n, 1), n, 2) for n in range(2)]

    monkeypatch.setattr(TableContext, "find", counted)
    assert write_parts(str(tmp_path / "t"), lambda _: rows.schema, run) == 0
    assert len(calls) == 1
    assert DeltaTable(tmp_path / "t").count() == 2
