"""Columns of checkpoints as the engine decodes them, against PyArrow's own reader."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.arrow import engine
from delta_core.engines.interface import CheckpointHandle
from delta_core.kernels.arrow_buffers import one_array
from delta_core.parquet.reader import ParquetFile

TEXTS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct([("storageType", pa.string()), ("offset", pa.int32()), ("cardinality", pa.int64())])
ADD = pa.struct(
    [
        pa.field("path", pa.string()),
        pa.field("partitionValues", TEXTS),
        pa.field("deletionVector", VECTOR),
        pa.field("tags", TEXTS),
        # of a type that the own decoder does not read
        pa.field("stats_parsed", pa.struct([("minValues", pa.struct([("a", pa.time32("ms"))]))])),
    ]
)
MAPS = [("add", name) for name in ("partitionValues", "deletionVector", "tags")]


def _add(rng: random.Random) -> dict[str, Any] | None:
    if rng.random() < 0.2:
        return None
    values = None if rng.random() < 0.1 else [(k, rng.choice(["", "x", "ä" * rng.randrange(9), None])) for k in "ab"]
    vector = {"storageType": "u", "offset": rng.randrange(9), "cardinality": None} if rng.random() < 0.3 else None
    tags = rng.choice([None, [], [("t", str(rng.random()))]])
    return {"path": f"p{rng.random()}", "partitionValues": values, "deletionVector": vector, "tags": tags}


def _checkpoint(folder: Path, **options: Any) -> tuple[CheckpointHandle, pa.StructArray]:
    rng = random.Random(7)
    table = pa.table({"other": pa.nulls(3000, pa.int32()), "add": pa.array([_add(rng) for _ in range(3000)], ADD)})
    (folder / "_delta_log").mkdir()
    pq.write_table(table, folder / "_delta_log/c.parquet", row_group_size=2000, data_page_size=2000, **options)
    (handle,) = engine(str(folder)).logs.open_checkpoints(["_delta_log/c.parquet"], [None])
    return handle, one_array(table.column("add"))


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "zstd"}], ids=["codes", "plain"])
def test_maps_and_structs_equal_those_of_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    handle, adds = _checkpoint(tmp_path, **options)
    with monkeypatch.context() as patch:
        patch.setattr(ParquetFile, "read_row_group", None)  # nothing is left to PyArrow
        found = [handle.read(group, MAPS) for group in range(2)]
    for number, (_, name) in enumerate(MAPS):
        expected = adds.field(name).to_pylist()
        valid = adds.is_valid().to_pylist()
        values = [value for group in found for value in group[number].to_pylist()]
        assert values == [value if there else None for value, there in zip(expected, valid, strict=True)]


def test_other_types_of_an_action_are_left_to_pyarrow(tmp_path: Path) -> None:
    handle, _ = _checkpoint(tmp_path)
    parsed, tags = handle.read(0, [("add", "stats_parsed"), ("add", "tags")])
    assert len(parsed) == len(tags) == 2000


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "snappy"}], ids=["codes", "plain"])
@pytest.mark.parametrize("places", [[], [0], [7, 1999], range(900, 1000), range(2000)], ids=len)
def test_picked_rows_are_those_of_all(tmp_path: Path, options: dict[str, Any], places: Sequence[int]) -> None:
    handle, _ = _checkpoint(tmp_path, **options)
    rows = np.zeros(2000, bool)
    rows[list(places)] = True
    picked = handle.pick(0, [("add", "path")], rows)
    assert picked is not None
    (every,) = handle.read(0, [("add", "path")])
    assert picked[0].to_pylist() == every.filter(pa.array(rows)).to_pylist()
    assert handle.pick(0, [("add", "path"), ("add", "tags")], rows) is None
