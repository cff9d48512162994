"""Every table of the conformance corpus through Spark: the rows of the Arrow engine, and its rejections."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core.errors import CorruptTableError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType
from delta_core.spark import read
from delta_core.testing.comparison import assert_same_rows
from delta_plugins.variant_type.logic import variant_to_json
from tests.corpus.records import path_of, records
from tests.spark.conftest import plain, skip_variants_that_this_spark_rejects

pytestmark = [pytest.mark.spark, pytest.mark.golden, pytest.mark.slow]

VARIANT = PrimitiveType("variant")
#: Tables of more rows are compared column by column, sorted: their rows as Python objects take minutes.
MANY = 100_000
#: What Spark specifies for a file that is missing or is no Parquet, and ours of a vector that is.
IN_A_JOB = r"FILE_NOT_EXIST|FileNotFoundException|is not a Parquet file|holds deleted rows"


#: Tables whose files mark their variants with Parquet's own type.
def cases(*reads: str) -> list[Any]:
    return [pytest.param(r, id=r["id"]) for r in records() if r["expect"]["read"] in reads]


def uri(record: dict[str, Any]) -> str:
    return str(path_of(record))


def latest(record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = record["versions"].get(str(record["latest_version"]), {})
    return found


def skip_what_this_spark_cannot_read(record: dict[str, Any]) -> None:
    skip_variants_that_this_spark_rejects(record["id"])
    if record["id"] == "deltalake/compression_brotli":
        pytest.skip("Spark comes without the codec")


# --- what Python and Arrow can't hold ------------------------------------------------------


def numbers(table: pa.Table) -> pa.Table:
    """Return a table with timestamps as numbers: Python's end in the year 9999."""
    return table.cast(pa.schema([pa.field(f.name, _numbers(f.type)) for f in table.schema]))


def _numbers(t: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(t):
        return pa.struct([pa.field(f.name, _numbers(f.type), f.nullable) for f in t])
    if pa.types.is_list(t):
        return pa.list_(pa.field("element", _numbers(t.value_type)))
    if pa.types.is_map(t):
        return pa.map_(pa.field("key", _numbers(t.key_type), False), pa.field("value", _numbers(t.item_type)))
    return pa.int64() if pa.types.is_timestamp(t) else t


def holds_variant(t: DataType) -> bool:
    if isinstance(t, StructType):
        return any(holds_variant(f.type) for f in t)
    if isinstance(t, ArrayType):
        return holds_variant(t.element_type)
    if isinstance(t, MapType):
        return holds_variant(t.value_type)
    return t == VARIANT


def as_json(value: Any, t: DataType) -> Any:
    """Return a value of a variant column, or of one that holds variants, as JSON has it."""
    if value is None:
        return None
    if t == VARIANT:
        made = pa.array([value], pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))
        return json.loads(variant_to_json(made)[0].as_py())
    if isinstance(t, StructType):
        return {f.name: as_json(value[f.name], f.type) for f in t}
    if isinstance(t, ArrayType):
        return [as_json(v, t.element_type) for v in value]
    if isinstance(t, MapType):
        return {k: as_json(v, t.value_type) for k, v in value}
    return value


def assert_same_with_variants(frame: Any, expected: pa.Table, schema: Any) -> None:
    """Compare as JSON what holds variants.

    Arrow rejects Spark's rows there: Spark declares a variant's bytes as never null, and sends null for a null variant.
    """
    from pyspark.sql import functions as F

    types = {f.name: f.type for f in schema if holds_variant(f.type)}
    texts = {n: F.to_json(F.struct(F.col(f"`{n}`").alias("v")), {"ignoreNullFields": "false"}) for n in types}
    found = frame.select([texts[n].alias(n) if n in texts else F.col(f"`{n}`") for n in frame.columns]).toArrow()
    others = [n for n in frame.columns if n not in types]
    found = pa.table({n: plain(found.select([n])).column(0) if n in others else found.column(n) for n in frame.columns})
    expected = pa.table(
        {n: plain(expected.select([n])).column(0) if n in others else expected.column(n) for n in frame.columns}
    )

    def told(row: dict[str, Any], read_text: bool) -> str:
        held = {n: json.loads(row[n])["v"] if read_text else as_json(row[n], t) for n, t in types.items()}
        return json.dumps(held, sort_keys=True) + repr({n: row[n] for n in others})

    theirs = Counter(told(r, True) for r in found.to_pylist())
    assert theirs == Counter(told(r, False) for r in expected.to_pylist())


# --- rows and rejections ---------------------------------------------------------------------


def padded(table: pa.Table, schema: StructType) -> pa.Table:
    """Return a table with the texts of CHAR(n) columns at their length: Spark pads them when they are read."""
    for i, field in enumerate(schema):
        declared = re.fullmatch(r"char\((\d+)\)", field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
        if declared:
            column = pc.utf8_rpad(table.column(i), int(declared[1]))
            table = table.set_column(i, table.schema.field(i), column)
    return table


def refusal(action: Callable[[], Any]) -> Exception | None:
    try:
        action()
    except Exception as e:  # noqa: BLE001 - Spark's own errors share no class with ours
        return e
    return None


def assert_same_as_arrow(spark: Any, record: dict[str, Any]) -> None:
    snapshot = open_snapshot(uri(record))
    frame, expected = read(spark, uri(record)), snapshot.scan().to_table()
    if any(holds_variant(f.type) for f in snapshot.schema):
        assert_same_with_variants(frame, expected, snapshot.schema)
        return
    found, wanted = numbers(plain(frame.toArrow())), padded(numbers(plain(expected)), snapshot.schema)
    assert found.num_rows == latest(record)["rows"]
    if found.num_rows > MANY:
        keys = [(n, "ascending") for n in found.column_names]
        assert found.sort_by(keys).equals(wanted.sort_by(keys))
    else:
        assert_same_rows(found, wanted)


def assert_same_refusal(spark: Any, record: dict[str, Any], expected: Exception) -> None:
    """Spark rejects too: with the same class before a job runs, within one by what the error specifies."""
    found = refusal(lambda: read(spark, uri(record)).collect())
    assert found is not None
    if not isinstance(found, type(expected)):
        assert isinstance(expected, CorruptTableError)
        assert re.search(IN_A_JOB, str(found)), str(found)[:1000]


@pytest.mark.parametrize("record", cases("rows", "state-only"))
def test_table_has_the_rows_of_the_arrow_engine(spark: Any, record: dict[str, Any]) -> None:
    skip_what_this_spark_cannot_read(record)
    if "rows" in latest(record):
        assert_same_as_arrow(spark, record)
        return
    # files that the log names are not in the corpus
    expected = refusal(lambda: open_snapshot(uri(record)).scan().to_table())
    assert isinstance(expected, CorruptTableError)
    assert_same_refusal(spark, record, expected)


@pytest.mark.parametrize("record", cases("error", "error-or-rows"))
def test_broken_table_is_rejected_as_by_the_arrow_engine(spark: Any, record: dict[str, Any]) -> None:
    expected = refusal(lambda: open_snapshot(uri(record)).scan().to_table())
    if expected is None:
        assert_same_as_arrow(spark, record)
    else:
        assert_same_refusal(spark, record, expected)
