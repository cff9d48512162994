"""The example features of external packages: installed like any distribution, and at work beside the bundled ones."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from delta_row_checksum import sums
from delta_row_checksum.sums import row_checksum

from delta_core.engines.arrow import engine
from delta_core.errors import DataFileError, MissingDependencyError, UnsupportedFeatureError
from delta_core.expressions import bind
from delta_core.expressions.ast import Call, Column
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import Schema
from delta_core.testing.table_builder import TableBuilder

CHECKSUM, TTL = "example.rowChecksum", "example.rowTtl"
DISTRIBUTIONS = {CHECKSUM: "delta-row-checksum", TTL: "delta-row-ttl", "example.packedUuids": "delta-packed-uuids"}
NOW = datetime(2024, 3, 1, tzinfo=UTC)
IDS = [1, 2, 3, 3]
#: Spark's xxhash64 of these longs.
SUMS = [-7001672635703045582, -3341702809300393011, 3188756510806108107, 3188756510806108107]


@pytest.mark.parametrize("feature", DISTRIBUTIONS)
def test_example_is_installed_as_a_distribution_of_its_own(feature: str) -> None:
    name = DISTRIBUTIONS[feature]
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        pytest.fail(f"{name} is not installed: python -m pip install ./examples/plugins/{name}")
    assert PluginRegistry().source(feature) == f"{name} {found.version}"


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Four rows; the last is too old. Both external features, mapped columns, a vector on the first row."""
    reader = [CHECKSUM, TTL, "columnMapping", "deletionVectors"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": reader,
        "writerFeatures": [*reader, "domainMetadata"],
    }
    covered = {"columns": [["id"]], "hiddenColumn": "_sum"}
    domain = {"domain": CHECKSUM, "configuration": json.dumps(covered), "removed": False}
    properties = {"example.ttl.column": "born", "example.ttl.interval": "1 week"}
    built = TableBuilder(tmp_path / "t").create(
        {"id": "long", "born": "timestamp"},
        protocol=protocol,
        properties=properties,
        column_mapping="name",
        actions=[{"domainMetadata": domain}],
    )
    return append(built).delete_rows(lambda row: row["id"] == 1)


def append(table: TableBuilder, sums: list[int] = SUMS) -> TableBuilder:
    rows = pa.table(
        {
            "id": pa.array(IDS, pa.int64()),
            "born": pa.array([NOW, NOW, None, NOW - timedelta(days=8)], pa.timestamp("us", "UTC")),
            "_sum": sums,
        }
    )
    return table.append(rows, rowChecksumFunction="xxhash64")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: int(NOW.timestamp()) * 10**9)


def ids(table: TableBuilder, **options: Any) -> list[int]:
    found: list[int] = open_snapshot(table.uri).scan(**options).to_table().column("id").to_pylist()
    return found


def test_rules_of_external_plugins_and_bundled_features_hold_together(table: TableBuilder) -> None:
    assert ids(table) == [2, 3]
    assert ids(table, predicate="id > 2") == [3]
    assert open_snapshot(table.uri).scan().count() == 2


def test_hidden_row_is_verified_and_a_dropped_one_is_not(table: TableBuilder) -> None:
    append(table, [0, *SUMS[1:]]).delete_rows(lambda row: row["id"] == 1)
    assert ids(table) == [2, 3, 2, 3]
    append(table, [*SUMS[:3], 0])
    with pytest.raises(DataFileError, match="row checksum"):
        ids(table, predicate="id = 2")


@pytest.mark.parametrize("feature", [CHECKSUM, TTL])
def test_without_its_package_the_table_is_rejected_by_the_features_name(table: TableBuilder, feature: str) -> None:
    class Without(PluginRegistry):
        def load(self, name: str) -> Any:
            return None if name == feature else super().load(name)

    with pytest.raises(UnsupportedFeatureError, match=feature):
        open_snapshot(table.uri, plugins=Without())


# --- the checksum, which Numba compiles ---


def by_engine(*columns: pa.Array) -> pa.Array:
    """Return what the Arrow engine computes by its own ``xxhash64``, in NumPy."""
    names = [f"c{i}" for i in range(len(columns))]
    leaves = {Column((name,)): c for name, c in zip(names, columns, strict=True)}
    schema = Schema.from_arrow(pa.schema([(name, c.type) for name, c in zip(names, columns, strict=True)]))
    types = {leaf: c.type for leaf, c in leaves.items()}
    compiled = engine("memory://").evaluator.compile(bind(Call("xxhash64", tuple(leaves)), schema, {}), types)
    return compiled([leaves[leaf] for leaf in compiled.leaves], len(columns[0]))


def columns_of_every_type() -> list[pa.Array]:
    """Return columns with nulls, slices, limits of their types, and texts of every length up to several stripes."""
    random = Random(1)

    def column(make: Any, type: pa.DataType) -> pa.Array:
        return pa.array([None if random.random() < 0.2 else make() for _ in range(300)], type)[3:]

    def whole() -> int:
        return random.choice([1, -1]) * (2 ** random.randrange(120) + random.choice([-1, 0, 1]))

    floats = [0.0, -0.0, float("nan"), float("-inf"), 1.5]
    return [
        column(lambda: random.getrandbits(64) - 2**63, pa.int64()),
        column(lambda: random.getrandbits(32) - 2**31, pa.int32()),
        column(lambda: random.randrange(-(2**15), 2**15), pa.int16()),
        column(lambda: random.randrange(-128, 128), pa.int8()),
        column(lambda: random.random() < 0.5, pa.bool_()),
        column(lambda: random.choice(floats), pa.float64()),
        column(lambda: random.choice(floats), pa.float32()),
        column(lambda: random.getrandbits(20), pa.timestamp("us", "UTC")),
        column(lambda: random.getrandbits(12), pa.date32()),
        column(lambda: "é€" * random.randrange(30) + "a" * random.randrange(9), pa.string()),
        column(lambda: random.randbytes(random.randrange(120)), pa.binary()),
        column(lambda: Decimal(random.randrange(-(10**17), 10**17)).scaleb(-3), pa.decimal128(18, 3)),
        column(lambda: Decimal(whole()), pa.decimal128(38, 0)),
        column(
            lambda: [random.choice([None, "a", "b" * 40]) for _ in range(random.randrange(4))], pa.list_(pa.string())
        ),
        column(lambda: {"a": random.choice([None, 1]), "b": "x"}, pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]


@pytest.mark.parametrize("column", columns_of_every_type(), ids=lambda c: str(c.type))
def test_checksum_equals_xxhash64_for_every_type(column: pa.Array) -> None:
    for part in (column, column[7:50], column[:0]):
        assert row_checksum(part).equals(by_engine(part))


def test_checksum_of_several_columns_continues_from_column_to_column() -> None:
    columns = columns_of_every_type()
    assert row_checksum(*columns).equals(by_engine(*columns))
    assert row_checksum(pa.array(IDS)).to_pylist() == SUMS


def test_strings_whose_offsets_lead_outside_their_bytes_are_rejected() -> None:
    for ends in ([0, 9, 2], [0, -1, 2], [1, 0, 2]):
        damaged = pa.Array.from_buffers(
            pa.string(), 2, [None, pa.py_buffer(np.array(ends, np.int32)), pa.py_buffer(b"ab")]
        )
        with pytest.raises(DataFileError, match="offsets"):
            row_checksum(damaged)


def test_without_numba_files_are_planned_and_rows_raise_what_to_install(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(sums._add_longs, "_dispatcher", None)
    scan = open_snapshot(table.uri).scan()
    assert scan.files().num_rows == 1
    with pytest.raises(MissingDependencyError, match=r"pip install 'delta-core-lake\[numba\]'"):
        scan.to_table()
