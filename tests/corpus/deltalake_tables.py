"""The tables that deltalake writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.corpus.tables import Table

__all__ = ["TABLES"]

Step = Callable[[Any, Path], None]


def write(columns: Any, mode: str = "append", **options: Any) -> Step:
    """Write columns (values by name, or a table); options are those of ``write_deltalake``."""

    def step(writer: Any, path: Path) -> None:
        from deltalake import write_deltalake

        write_deltalake(path, columns if isinstance(columns, pa.Table) else pa.table(columns), mode=mode, **options)

    return step


def on(change: Callable[[Any], Any]) -> Step:
    """Do something to the table as it is by then."""

    def step(writer: Any, path: Path) -> None:
        from deltalake import DeltaTable

        change(DeltaTable(path))

    return step


def rows(*ids: int) -> dict[str, list[Any]]:
    return {"id": list(ids), "v": [None if i % 4 == 3 else f"v{i}" for i in ids]}


def merge(table: Any) -> None:
    merger = table.merge(pa.table(rows(2, 8)), "t.id = s.id", source_alias="s", target_alias="t")
    merger = merger.when_matched_update({"v": "'merged'"}).when_not_matched_insert_all()
    merger.when_not_matched_by_source_delete("t.id = 0").execute()


def add_columns(table: Any) -> None:
    from deltalake import Field
    from deltalake.schema import PrimitiveType

    table.alter.add_columns([Field("w", PrimitiveType("date")), Field("x", PrimitiveType("double"))])


def transaction(app: str, number: int) -> dict[str, Any]:
    from deltalake import CommitProperties, Transaction

    return {"commit_properties": CommitProperties({"by": "corpus"}, app_transactions=[Transaction(app, number)])}


def with_transaction(app: str, number: int, *ids: int) -> Step:
    return lambda writer, path: write(rows(*ids), **transaction(app, number))(writer, path)


def with_codec(codec: str, *ids: int) -> Step:
    def step(writer: Any, path: Path) -> None:
        from deltalake import WriterProperties

        write(rows(*ids), writer_properties=WriterProperties(compression=codec, max_row_group_size=2))(writer, path)

    return step


def without(*patterns: str) -> Step:
    def step(writer: Any, path: Path) -> None:
        for pattern in patterns:
            found = list(path.glob(pattern))
            assert found, pattern
            for file in found:
                file.unlink()

    return step


def parquet(writer: Any, path: Path) -> None:
    path.mkdir(parents=True)
    pq.write_table(pa.table(rows(1, 2)), path / "part-0.parquet")
    from deltalake import convert_to_deltalake

    convert_to_deltalake(path)


AWARE = pa.timestamp("us", "UTC")
NAIVE = pa.timestamp("us")
PRIMITIVES = pa.table(
    {
        "b": pa.array([True, False, None, True]),
        "y": pa.array([127, -128, None, 0], pa.int8()),
        "h": pa.array([32767, -32768, None, 0], pa.int16()),
        "i": pa.array([2**31 - 1, -(2**31), None, 0], pa.int32()),
        "l": pa.array([2**63 - 1, -(2**63), None, 0], pa.int64()),
        "f": pa.array([float("inf"), float("nan"), None, -0.0], pa.float32()),
        "d": pa.array([1e300, float("-inf"), None, -0.0], pa.float64()),
        "c": pa.array([Decimal("9999999.99"), Decimal("-0.01"), None, Decimal(0)], pa.decimal128(9, 2)),
        "e": pa.array([Decimal("9" * 20 + "." + "9" * 18), Decimal("-1e-18"), None, Decimal(0)], pa.decimal128(38, 18)),
        "s": ["ü€😀" * 12, "", None, ' \t\n"\\'],
        "x": pa.array([b"\x00\xff", b"", None, b"a"]),
        "a": pa.array([date(9999, 12, 31), date(1, 1, 1), None, date(1970, 1, 1)]),
        "t": pa.array([253402300799999999, -62135596800000000, None, -1], AWARE),
    }
)
NESTED = pa.table(
    {
        "id": [1, 2, 3],
        "s": pa.array(
            [{"x": 1, "y": {"z": "a"}}, None, {"x": None, "y": None}],
            pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))]),
        ),
        "a": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "sa": pa.array([[{"k": 1}, None], None, []], pa.list_(pa.struct([("k", pa.int32())]))),
        "m": pa.array([[("k", 1), ("n", None)], None, []], pa.map_(pa.string(), pa.int32())),
        "aa": pa.array([[["x"], None, []], None, []], pa.list_(pa.list_(pa.string()))),
    }
)
PARTITIONS: dict[str, Any] = {
    "boolean": pa.array([True, False, None]),
    "byte": pa.array([-128, 127, None], pa.int8()),
    "short": pa.array([-32768, 0, None], pa.int16()),
    "integer": pa.array([-(2**31), 0, None], pa.int32()),
    "long": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
    "float": pa.array([0.5, -1e30, None], pa.float32()),
    "double": pa.array([1e-7, 12345678.9, None], pa.float64()),
    "decimal": pa.array([Decimal("1.5"), Decimal("12345678901234567890.5"), None], pa.decimal128(38, 18)),
    "string": pa.array(["a b", "%41+#?&=", 'ü/\\:*"', "a=b", "{}[]^~|`", None]),
    "date": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
    "timestamp": pa.array([1710037800123456, -1, None], AWARE),
    "timestamp_ntz": pa.array([1710037800123000, -1, None], NAIVE),
}
FEED = {"delta.enableChangeDataFeed": "true"}
CREATED = write(rows(0, 1, 2, 3))

TABLES = [
    Table("primitive_types", [write(PRIMITIVES.slice(0, 2)), write(PRIMITIVES.slice(2))]),
    Table("nested_types", [write(NESTED.take([0])), write(NESTED.take([1, 2]))]),
    # written by deltalake's query engine, whose strings are views
    Table(
        "nested_types_updated", [write(NESTED), on(lambda t: t.update(updates={"id": "id + 10"}, predicate="id > 1"))]
    ),
    Table("timestamp_ntz", [write({"id": [1, 2], "n": pa.array([1710037800123456, None], NAIVE)})]),
    Table(
        "large_and_view_types",
        [
            write(
                {
                    "id": [1, 2],
                    "s": pa.array(["a", None], pa.large_string()),
                    "w": pa.array(["b", None], pa.string_view()),
                    "d": pa.array(["x", "x"]).dictionary_encode(),
                    "l": pa.array([["y"], None], pa.large_list(pa.string())),
                }
            )
        ],
    ),
    Table(
        "compression_codecs",
        [
            with_codec(c, 5 * n, 5 * n + 1, 5 * n + 2)
            for n, c in enumerate(("SNAPPY", "GZIP", "ZSTD", "LZ4_RAW", "UNCOMPRESSED"))
        ],
    ),
    Table("compression_brotli", [with_codec("BROTLI", 0, 1, 2)]),
    *(
        Table(f"partition_{name}", [write({"id": range(len(values)), "p": values}, partition_by=["p"])])
        for name, values in PARTITIONS.items()
    ),
    *(
        Table(
            f"partition_{name}_checkpoint",
            [
                write({"id": range(len(PARTITIONS[name])), "p": PARTITIONS[name]}, partition_by=["p"]),
                on(lambda t: t.create_checkpoint()),
                without("_delta_log/*.json"),
            ],
        )
        for name in ("string", "date", "timestamp", "decimal")
    ),
    Table(
        "partitioned_by_two",
        [
            write({"id": [1, 2, 3], "p": ["a", None, "a/b"], "q": [1, 1, None]}, partition_by=["q", "p"]),
            on(lambda t: t.delete("p = 'a'")),
        ],
    ),
    Table(
        "no_rows",
        [
            lambda writer, path: __import__("deltalake").DeltaTable.create(
                path, pa.schema([("id", pa.int64()), ("v", pa.string())])
            )
        ],
    ),
    Table("appended_and_overwritten", [CREATED, write(rows(4, 5)), write(rows(6), "overwrite"), write(rows(7))]),
    Table("replaced_where", [CREATED, write(rows(2, 2), "overwrite", predicate="id = 2")]),
    Table(
        "updated_deleted_merged",
        [
            CREATED,
            on(lambda t: t.update(updates={"v": "'x'"}, predicate="id = 1")),
            on(lambda t: t.delete("id = 3")),
            on(merge),
        ],
    ),
    Table(
        "change_feed",
        [
            write(rows(0, 1, 2, 3), configuration=FEED),
            on(lambda t: t.update(updates={"v": "'x'"}, predicate="id = 1")),
            on(lambda t: t.delete("id = 3")),
            on(merge),
        ],
        changes=(0, 3),
    ),
    Table(
        "change_feed_partitioned",
        [
            write({"id": [1, 2, 3], "p": ["a", "b", None]}, partition_by=["p"], configuration=FEED),
            on(lambda t: t.update(updates={"id": "id + 10"}, predicate="p = 'a'")),
            on(lambda t: t.delete("p = 'b'")),
        ],
        changes=(0, 2),
    ),
    Table(
        "schema_merged",
        [
            CREATED,
            write({"id": [9], "w": [date(2020, 1, 1)]}, schema_mode="merge"),
            write({"x": [1.5]}, "overwrite", schema_mode="overwrite"),
        ],
    ),
    Table(
        "columns_added", [CREATED, on(add_columns), write({"id": [5], "v": ["a"], "w": [date(2020, 1, 1)], "x": [0.5]})]
    ),
    Table(
        "check_constraints", [CREATED, on(lambda t: t.alter.add_constraint({"positive": "id >= 0"})), write(rows(5))]
    ),
    Table("append_only", [write(rows(1), configuration={"delta.appendOnly": "true"}), write(rows(2))]),
    Table(
        "name_description_properties",
        [
            write(
                rows(1),
                name="a name",
                description='ü "quoted"',
                configuration={"delta.logRetentionDuration": "interval 2 days"},
            ),
            on(lambda t: t.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "1"})),
            write(rows(2)),
        ],
    ),
    Table("statistics_of_named_columns", [write(rows(1, 2), configuration={"delta.dataSkippingStatsColumns": "v"})]),
    Table("writer_version_7", [write(rows(1), configuration={"delta.minWriterVersion": "7"}), write(rows(2))]),
    Table(
        "transactions_of_applications",
        [CREATED, with_transaction("app-1", 1, 5), with_transaction("app-2", 7, 6), with_transaction("app-1", 2, 7)],
    ),
    Table(
        "checkpoints",
        [
            CREATED,
            *(write(rows(n)) for n in range(4, 6)),
            on(lambda t: t.create_checkpoint()),
            write(rows(8)),
            on(lambda t: t.delete("id = 1")),
        ],
    ),
    Table(
        "checkpoint_alone",
        [write(PRIMITIVES.slice(0, 2)), on(lambda t: t.create_checkpoint()), without("_delta_log/*.json")],
    ),
    Table(
        "logs_cleaned",
        [
            CREATED,
            *(write(rows(n)) for n in range(4, 6)),
            on(lambda t: t.create_checkpoint()),
            write(rows(8)),
            without("_delta_log/*[0-2].json"),
        ],
        gone=(0, 1),
    ),
    Table(
        "compacted_commits",
        [CREATED, write(rows(5)), on(lambda t: t.delete("id = 5")), on(lambda t: t.compact_logs(0, 2)), write(rows(6))],
    ),
    Table(
        "optimized",
        [
            CREATED,
            write(rows(5)),
            on(lambda t: t.optimize.compact()),
            write(rows(6)),
            on(lambda t: t.optimize.z_order(["id"])),
        ],
    ),
    Table("restored", [CREATED, write(rows(5)), on(lambda t: t.restore(0)), write(rows(6))]),
    Table(
        "vacuumed",
        [
            CREATED,
            on(lambda t: t.delete("id = 1")),
            on(lambda t: t.vacuum(0, dry_run=False, enforce_retention_duration=False)),
        ],
        unreadable=(0,),
    ),
    Table("converted_from_parquet", [parquet]),
]
