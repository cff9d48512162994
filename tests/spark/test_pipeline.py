"""The pipeline of examples/pipeline on local Spark."""

from __future__ import annotations

import importlib.util
import json
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from delta_core import DeltaTable

pytestmark = pytest.mark.spark

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "pipeline" / "pipeline.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pipeline", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(lake: Path, name: str, *metadata: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(str(lake / name)).snapshot().scan(None, metadata).to_table().to_pylist()
    return found


def versions_of(lake: Path) -> list[int]:
    return [DeltaTable(str(lake / name)).version() for name in ("bronze", "silver", "rejected", "gold")]


def test_batches_reach_gold_once_and_bad_rows_never(spark: Any, tmp_path: Path) -> None:
    pipeline = load()
    pipeline.make_raw(tmp_path, 1)
    pipeline.run_batch(spark, tmp_path, 1)
    first_ids = {r["order_id"]: r["_row_id"] for r in table(tmp_path, "silver", "_row_id")}
    pipeline.make_raw(tmp_path, 2)
    pipeline.run_batch(spark, tmp_path, 2)
    versions = versions_of(tmp_path)
    pipeline.run_batch(spark, tmp_path, 2)
    assert versions_of(tmp_path) == versions, "the repeated run commits nothing"

    assert len(table(tmp_path, "bronze")) == 24
    silver = table(tmp_path, "silver", "_row_id", "_row_commit_version")
    assert len(silver) == 20
    ids = {r["order_id"]: r["_row_id"] for r in silver}
    assert first_ids.items() < ids.items(), "corrected orders keep their row ids"
    assert len({r["row"] for r in silver}) == len({r["_row_id"] for r in silver}) == 20
    assert {str(r["day"]) for r in silver} == {"2024-01-01", "2024-01-02", "2024-01-03"}
    assert [r["order_id"] for r in table(tmp_path, "rejected")] == ["1-0-bad", "2-0-bad"]
    gold = {str(r["day"]): (r["orders"], r["revenue"], r["customers"]) for r in table(tmp_path, "gold")}
    # numbers 0, 2, 4 of both parts on a batch's first day, 1 and 3 on its second; the second batch corrects an amount
    # of the first day, and moves an order of it to the third
    assert gold == {
        "2024-01-01": (5, Decimal("114.50"), 3),
        "2024-01-02": (10, Decimal("25.00"), 3),
        "2024-01-03": (5, Decimal("10.50"), 3),
    }
    assert json.loads((tmp_path / "bronze" / "_delta_log" / f"{1:020}.json").read_text().splitlines()[0])["commitInfo"]
