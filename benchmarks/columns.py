"""Columns of made-up file actions, built as whole arrays: a million files take seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.questions import ROWS_PER_FILE

PARTITIONS = 1_000
FIRST_DAY = np.datetime64("2022-01-01")
FIRST_MICROSECOND = 1_700_000_000_000_000

SCHEMA_STRING = (
    '{"type":"struct","fields":['
    '{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"ts","type":"timestamp","nullable":true,"metadata":{}},'
    '{"name":"amount","type":"double","nullable":true,"metadata":{}},'
    '{"name":"name","type":"string","nullable":true,"metadata":{}},'
    '{"name":"event_date","type":"date","nullable":true,"metadata":{}}]}'
)
STATS = pa.struct(
    [("id", pa.int64()), ("ts", pa.timestamp("us", tz="UTC")), ("amount", pa.float64()), ("name", pa.string())]
)
NULL_COUNT = pa.struct([(name, pa.int64()) for name in ("id", "ts", "amount", "name")])


@dataclass(frozen=True)
class FileNumbers:
    """What a run of made-up files is derived from.

    Parameters
    ----------
    ranks : int64[n_files]
        The file's place in the order of ``id``: it holds ids ``rank * 1000`` to ``rank * 1000 + 999``.
    """

    ranks: np.ndarray
    seed: int

    @property
    def days(self) -> np.ndarray:
        """Partition of each file, as text: every one of 1,000 days holds every 1,000th file."""
        return np.datetime_as_string(FIRST_DAY + self.ranks % PARTITIONS).astype("S10")


def _texts(letters: np.ndarray) -> pa.StringArray:
    """Make strings of one width from uint8 of shape (n, width)."""
    count, width = letters.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters)))


def paths(files: FileNumbers) -> pa.StringArray:
    """Return paths such as Spark writes, 89 characters each, in the folder of their partition."""
    count = len(files.ranks)
    template = b"event_date=2022-01-01/part-00000-00000000-0000-4000-8000-000000000000.c000.snappy.parquet"
    letters = np.tile(np.frombuffer(template, np.uint8), (count, 1))
    letters[:, 11:21] = files.days.view(np.uint8).reshape(count, 10)
    task = files.ranks % 200
    for place, power in ((29, 100), (30, 10), (31, 1)):
        letters[:, place] = 48 + task // power % 10
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    hex_places = [33 + i for i in range(36) if i not in (8, 13, 14, 18, 19, 23)]
    letters[:, hex_places] = digits[
        np.random.default_rng(files.seed).integers(0, 16, (count, len(hex_places)), np.uint8)
    ]
    return _texts(letters)


def bounds(files: FileNumbers) -> tuple[pa.StructArray, pa.StructArray, pa.StructArray]:
    """Return minValues, maxValues and nullCount as structs."""
    low = files.ranks * ROWS_PER_FILE
    noise = np.random.default_rng(files.seed + 1).random(len(low)).round(4)
    sides = []
    for offset, suffix in ((0, ""), (ROWS_PER_FILE - 1, "~")):
        ids = pa.array(low + offset)
        moment = pc.cast(pa.array(FIRST_MICROSECOND + (low + offset) * 1_000), pa.timestamp("us", tz="UTC"))
        amount = pa.array(noise + offset)
        name = pc.binary_join_element_wise("user-", pc.cast(ids, pa.string()), suffix, "")
        sides.append(pa.StructArray.from_arrays([ids, moment, amount, name], fields=list(STATS)))
    zeros = pa.array(np.zeros(len(low), np.int64))
    nulls = pa.StructArray.from_arrays([zeros, zeros, zeros, pa.array(files.ranks % 7)], fields=list(NULL_COUNT))
    return sides[0], sides[1], nulls


def stats_json(files: FileNumbers) -> pa.StringArray:
    """Return the ``stats`` text of each file, four columns, about 330 characters."""
    low, high, nulls = bounds(files)
    parts: list[object] = [f'{{"numRecords":{ROWS_PER_FILE},"minValues":']
    for values, then in ((low, ',"maxValues":'), (high, ',"nullCount":')):
        parts += [*_bounds_json(values), then]
    counts = pc.cast(nulls.field("name"), pa.string())
    parts += ['{"id":0,"ts":0,"amount":0,"name":', counts, "}}"]
    return pc.binary_join_element_wise(*parts, "")


def _bounds_json(values: pa.StructArray) -> list[object]:
    moment = pc.strftime(pc.cast(values.field("ts"), pa.timestamp("ms", tz="UTC")), "%Y-%m-%dT%H:%M:%SZ")
    return [
        '{"id":',
        pc.cast(values.field("id"), pa.string()),
        ',"ts":"',
        moment,
        '","amount":',
        pc.cast(values.field("amount"), pa.string()),
        ',"name":"',
        values.field("name"),
        '"}',
    ]


def stats_parsed(files: FileNumbers) -> pa.StructArray:
    """Return ``stats_parsed`` of each file."""
    low, high, nulls = bounds(files)
    count = pa.array(np.full(len(files.ranks), ROWS_PER_FILE, np.int64))
    return pa.StructArray.from_arrays([count, low, high, nulls], ["numRecords", "minValues", "maxValues", "nullCount"])


def partition_values(files: FileNumbers) -> pa.MapArray:
    """Return the ``partitionValues`` map of each file."""
    count = len(files.ranks)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    return pa.MapArray.from_arrays(
        offsets, pa.array(["event_date"] * count), pc.cast(pa.array(files.days), pa.string())
    )


def add_columns(files: FileNumbers, struct_stats: bool) -> pa.StructArray:
    """Return the ``add`` column of a checkpoint: JSON statistics, or parsed ones alone."""
    count = len(files.ranks)
    columns: dict[str, pa.Array] = {
        "path": paths(files),
        "partitionValues": partition_values(files),
        "size": pa.array(20_000_000 + files.ranks * 7 % 1_000_003),
        "modificationTime": pa.array(1_700_000_000_000 + files.ranks),
        "dataChange": pa.array(np.zeros(count, bool)),
        "tags": pa.nulls(count, pa.map_(pa.string(), pa.string())),
    }
    if struct_stats:
        days = pc.cast(pc.cast(pa.array(files.days), pa.string()), pa.date32())
        columns["partitionValues_parsed"] = pa.StructArray.from_arrays([days], ["event_date"])
        columns["stats_parsed"] = stats_parsed(files)
    else:
        columns["stats"] = stats_json(files)
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))
