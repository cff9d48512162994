"""A stream of rows takes little memory, whatever the files: the peak of a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_core import WriterProperties, write_deltalake
from tests.architecture.source import ROOT

#: One row group, as large as the file.
ONE_GROUP = WriterProperties(max_row_group_size=1 << 30)
MOST_MB = 300
STREAM = """
import sys
from pathlib import Path
from delta_core import DeltaTable
rows = sum(batch.num_rows for batch in DeltaTable(sys.argv[1]).scan(predicate=sys.argv[2] or None).batches())
peak = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(rows, int(peak) // 1000)
"""


def texts(count: int, width: int) -> pa.Array:
    letters = np.random.default_rng(0).integers(97, 123, count * width, np.uint8)
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, pa.py_buffer(letters)])
    return fixed.cast(pa.binary()).cast(pa.string())


def long_texts(count: int) -> pa.Table:
    return pa.table({"id": np.arange(count), "text": texts(count, 200)})


def lists_and_structs(count: int) -> pa.Table:
    offsets = pa.array(np.arange(0, 4 * count + 1, 4, dtype=np.int32))
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.random.default_rng(0).integers(0, 1 << 40, 4 * count)))
    structs = pa.StructArray.from_arrays([pa.array(np.arange(count)), texts(count, 40)], ["x", "y"])
    return pa.table({"id": np.arange(count), "l": lists, "s": structs})


def many_columns(count: int) -> pa.Table:
    random = np.random.default_rng(0)
    return pa.table({"id": np.arange(count), **{f"c{i}": random.random(count) for i in range(300)}})


@pytest.fixture(scope="module", params=["long texts", "lists and structs", "300 columns", "small files"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """Return a table that is larger than the memory that its stream may take, and the number of its rows."""
    folder = tmp_path_factory.mktemp("table")
    make = {"long texts": long_texts, "lists and structs": lists_and_structs, "300 columns": many_columns}
    if request.param in make:
        count = {"long texts": 1_200_000, "lists and structs": 2_000_000, "300 columns": 50_000}[request.param]
        write_deltalake(folder, make[request.param](count), writer_properties=ONE_GROUP, target_file_size=1 << 33)
        return str(folder), count
    rows = pa.table({"id": np.arange(400_000), "p": np.arange(400_000) % 500})
    write_deltalake(folder, rows, partition_by=["p"])
    return str(folder), 400_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("where", ["", "id % 100 = 7"], ids=["all rows", "filtered"])
def test_stream_takes_little_memory(table: tuple[str, int], where: str) -> None:
    uri, count = table
    command = [sys.executable, "-c", STREAM, uri, where]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows, peak_mb = map(int, done.stdout.split())
    assert rows == (count // 100 if where else count)
    assert peak_mb <= MOST_MB
