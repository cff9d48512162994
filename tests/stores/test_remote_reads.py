"""How many calls of remote reads depend on each other: footers, columns of conditions, then other columns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, WriterProperties, write_deltalake
from delta_core.parquet import columns as own_decoder, data_files, filtered_groups
from delta_core.runtime.threads import running_threads
from delta_core.storage import prefetch
from delta_core.storage.remote import CONCURRENCY
from tests.stores import stepped

ROWS = 100_000
#: Few rows, half of them, two conditions, one on strings, one that statistics test too.
PREDICATES = {
    "value < 0.0001": pc.field("value") < 0.0001,
    "value < 0.5": pc.field("value") < 0.5,
    "value < 0.5 and more < 0.5": (pc.field("value") < 0.5) & (pc.field("more") < 0.5),
    "text < 'b'": pc.field("text") < "b",
    "id < 130000": pc.field("id") < 130_000,
}

pytestmark = pytest.mark.skipif(not stepped.IS_SUPPORTED, reason="steps are counted by what /proc reports")


def rows_of(count: int, first: int = 0) -> pa.Table:
    random = np.random.default_rng(first)
    letters = random.integers(97, 123, count * 40, np.uint8)
    text = pa.FixedSizeBinaryArray.from_buffers(pa.binary(40), count, [None, pa.py_buffer(letters)])
    columns = {"id": np.arange(first, first + count), "value": random.random(count)}
    return pa.table({**columns, "text": text.cast(pa.binary()).cast(pa.string()), "more": random.random(count)})


def write(folder: Path, files: int, groups: int, vectors: str | None = None) -> Path:
    """Write files that are too large to be fetched whole, of some row groups; every tenth row deleted, or none."""
    form = WriterProperties(max_row_group_size=ROWS // groups)
    properties = {"delta.enableDeletionVectors": "true"}
    if vectors == "inline":
        properties["delta_core.inlineVectorsBelow"] = "65536"
    for file in range(files):
        rows = rows_of(ROWS, file * ROWS)
        write_deltalake(folder, rows, mode="append", writer_properties=form, configuration=properties)
    found = list(folder.glob("*.parquet"))
    assert [f.stat().st_size > prefetch.SMALL_BYTES for f in found] == [True] * files
    assert [pq.ParquetFile(f).num_row_groups for f in found] == [groups] * files
    if vectors in ("inline", "one file"):
        DeltaTable(folder).delete("id % 10 = 3")
    elif vectors is not None:
        for file in range(files):
            DeltaTable(folder).delete(f"id % 10 = 3 and id >= {file * ROWS} and id < {(file + 1) * ROWS}")
    assert len(list(folder.glob("*.bin"))) == {"one file": 1, "many files": files}.get(vectors or "", 0)
    return folder


SHAPES: dict[str, Callable[[Path], Path]] = {
    "one file": lambda folder: write(folder, 1, 1),
    "large row group": lambda folder: write(folder, 1, 1),
    "files of row groups": lambda folder: write(folder, 3, 4),
    "inline vectors": lambda folder: write(folder, 3, 4, "inline"),
    "vectors in one file": lambda folder: write(folder, 3, 4, "one file"),
    "vectors in many files": lambda folder: write(folder, 3, 4, "many files"),
}


class Shape(NamedTuple):
    """A remote table, and its rows."""

    name: str
    remote: DeltaTable
    rows: pa.Table


@pytest.fixture(scope="module", params=SHAPES)
def shape(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shape:
    """Return a table of each shape."""
    folder = SHAPES[request.param](tmp_path_factory.mktemp("remote") / "table")
    return Shape(request.param, DeltaTable(f"stepped://{folder}"), DeltaTable(folder).to_pyarrow_table())


@pytest.fixture(autouse=True)
def small_limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a row group of the shape too large to be decoded at once."""
    if "shape" in request.fixturenames and request.getfixturevalue("shape").name == "large row group":
        for module in (own_decoder, filtered_groups):
            monkeypatch.setattr(module, "GROUP_BYTES", 1 << 19)


@pytest.mark.parametrize(
    ("columns", "predicates"),
    [(["id", "value"], ["value < 0.0001", "text < 'b'"]), (None, list(PREDICATES))],
    ids=["two columns", "all columns"],
)
def test_read_takes_a_step_each_for_footers_conditions_and_other_columns(
    shape: Shape, columns: list[str] | None, predicates: list[str]
) -> None:
    chosen = columns or shape.rows.column_names
    for where in predicates:
        with stepped.counted() as steps:
            found = shape.remote.scan(columns, predicate=where).to_table()
        assert 0 < len(steps) <= 3, (where, steps.calls)
        assert found.equals(shape.rows.filter(PREDICATES[where]).select(chosen)), where
    with stepped.counted() as steps:
        found = shape.remote.scan(columns).to_table()
    assert len(steps) == 2, steps.calls
    assert found.equals(shape.rows.select(chosen))


def test_limits_and_counts_take_no_more_steps(shape: Shape) -> None:
    with stepped.counted() as steps:
        found = shape.remote.scan(limit=10).to_table()
    assert len(steps) == 2, steps.calls
    assert found.equals(shape.rows.slice(0, 10))
    with stepped.counted() as steps:
        found = shape.remote.scan(predicate="value < 0.5", limit=10).to_table()
    assert len(steps) <= 3, steps.calls
    assert found.equals(shape.rows.filter(PREDICATES["value < 0.5"]).slice(0, 10))
    with stepped.counted() as steps:
        count = shape.remote.scan(predicate="value < 0.5").count()
    assert len(steps) == 2, steps.calls
    assert count == len(shape.rows.filter(PREDICATES["value < 0.5"]))
    with stepped.counted() as steps:
        assert shape.remote.scan().count() == len(shape.rows)
    assert len(steps) == 0


def test_vectors_are_read_beside_the_footers_those_of_one_file_by_one_call(shape: Shape) -> None:
    files = len(shape.remote.file_uris())
    with stepped.counted() as steps:
        shape.remote.scan().to_table()
    vectors = [path for _, path in steps.calls[0] if path.endswith(".bin")]
    assert len(vectors) == {"vectors in one file": 1, "vectors in many files": files}.get(shape.name, 0)
    assert len(steps.calls[0]) == files + len(vectors)
    assert not any(path.endswith(".bin") for step in steps.calls[1:] for _, path in step)


def test_row_groups_without_a_requested_row_are_not_fetched(tmp_path: Path) -> None:
    folder = write(tmp_path / "t", 1, 4)
    DeltaTable(folder).delete(f"id >= {ROWS // 4} and id < {ROWS // 2}")
    with stepped.counted() as steps:
        found = DeltaTable(f"stepped://{folder}").scan(["text"]).to_table()
    assert found.num_rows == 3 * ROWS // 4
    # those before and behind it lie too far apart to be joined
    assert [len(step) for step in steps.calls] == [2, 3]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Shape:
    """Return a table of 1,000 small files, every third one with a vector."""
    folder = tmp_path_factory.mktemp("many") / "table"
    rows = pa.table({"id": np.arange(10_000), "file": np.arange(10_000) % 1_000, "more": np.arange(10_000) * 0.5})
    write_deltalake(folder, rows, partition_by="file", configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(folder).delete("file % 3 = 0 and id < 1000")
    return Shape("many", DeltaTable(f"stepped://{folder}"), DeltaTable(folder).to_pyarrow_table())


def test_each_of_many_small_files_is_read_by_one_call(many: Shape) -> None:
    for where, expression in (("more >= 200", pc.field("more") >= 200), (None, None)):
        with stepped.counted() as steps:
            found = many.remote.scan(predicate=where).to_table()
        assert found.equals(many.rows if expression is None else many.rows.filter(expression))
        files = [path for step in steps.calls for _, path in step if path.endswith(".parquet")]
        assert len(files) == len(set(files)) == 1_000
        # no more at once
        assert len(steps) == math.ceil((1_000 + 1) / CONCURRENCY)


@pytest.mark.parametrize(("gap", "most"), [(data_files.REMOTE_GAP, 2), (-1, 3)], ids=["small groups", "large groups"])
def test_each_of_many_files_read_by_ranges_takes_few_steps(
    many: Shape, monkeypatch: pytest.MonkeyPatch, gap: int, most: int
) -> None:
    monkeypatch.setattr(prefetch, "SMALL_BYTES", 0)
    monkeypatch.setattr(data_files, "REMOTE_GAP", gap)
    with stepped.counted() as steps:
        found = many.remote.scan(predicate="more >= 200 and file < 200").to_table()
    assert found.equals(many.rows.filter((pc.field("more") >= 200) & (pc.field("file") < 200)))
    files = {path for step in steps.calls for _, path in step if path.endswith(".parquet")}
    assert len(files) == 200
    assert max(map(steps.of, files)) == most
    assert len(steps) <= most * math.ceil(200 / data_files.REMOTE_RUNS) + 1


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Return a table of three files of four row groups each."""
    return DeltaTable(f"stepped://{write(tmp_path_factory.mktemp('several') / 'table', 3, 4)}")


def test_remote_row_groups_are_read_in_bounded_memory(several: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    held, most = [0], [0]
    take, give = data_files._Room.take, data_files._Room.give

    def counted_take(self: data_files._Room, size: int) -> None:
        take(self, size)
        held[0] += size
        most[0] = max(most[0], held[0])

    def counted_give(self: data_files._Room, size: int) -> None:
        held[0] -= size
        give(self, size)

    monkeypatch.setattr(data_files._Room, "take", counted_take)
    monkeypatch.setattr(data_files._Room, "give", counted_give)
    monkeypatch.setattr(data_files, "REMOTE_BYTES", 3 << 20)
    assert several.scan(predicate="value < 2").to_table().num_rows == 3 * ROWS
    assert held == [0]
    assert 3 << 19 < most[0] <= 3 << 20


def test_abandoned_remote_read_ends_its_threads(several: DeltaTable) -> None:
    batches = several.scan(predicate="value < 2").batches()
    assert next(batches).num_rows
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    deadline = time.monotonic() + 5
    while (left := {"delta-read", "delta-footers"} & set(running_threads())) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not left
