"""The program, run in the test's own process."""

from __future__ import annotations

import datetime as dt
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from delta_core.cli import main
from delta_core.testing.table_builder import TableBuilder


@dataclass
class Result:
    """What a run printed and returned."""

    code: int
    out: str
    err: str
    data: bytes = b""

    @property
    def json(self) -> Any:
        """What was printed, as JSON."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """What was printed, line by line."""
        return self.out.splitlines()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return the program as a function of its arguments."""

    def call(*arguments: object) -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.delenv("COLUMNS", raising=False)
            code = main([str(a) for a in arguments])
        data = out.buffer.getvalue()
        return Result(code, data.decode(errors="replace"), err.buffer.getvalue().decode(), data)

    return call


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Return a table with partitions, vectors, a change feed, nested columns and a checkpoint."""
    schema = {"id": "long", "kind": "string", "day": "date", "price": "decimal(10,2)"}
    made = TableBuilder(tmp_path / "sales").create(
        schema,
        partition_by=["kind"],
        features=["deletionVectors", "changeDataFeed"],
        properties={"delta.enableChangeDataFeed": "true"},
    )
    day = dt.date(2024, 5, 1)
    made.append([{"id": i, "kind": "ab"[i % 2], "day": day, "price": None if i == 3 else i} for i in range(4)])
    made.checkpoint()
    return made.delete_rows(lambda row: row["id"] == 2)
