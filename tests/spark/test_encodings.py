"""Encoded columns on Spark: both engines read what the other wrote, and no bound of a stored form hides rows."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from delta_core import DeltaTable, write_deltalake
from delta_core.api import (
    Call,
    Column,
    ColumnEncoding,
    Expression,
    Field,
    Function,
    Literal,
    PrimitiveType,
    TableFeature,
    TableState,
    create_table,
    hookimpl,
    open_context,
)
from delta_core.errors import ConstraintViolationError, DeltaError, UnsupportedOperationError
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.schema.fields import Schema
from delta_core.spark import (
    DeltaTable as SparkTable,
    read,
    read_changes,
    read_changes_stream,
    read_stream,
    write,
    write_stream,
)
from delta_core.testing.comparison import assert_same_rows
from tests.hooks.encoded_tables import COLUMNS as COLUMNS_PROPERTY, PLUGINS, append, encoded, opened
from tests.spark.conftest import plain

pytestmark = pytest.mark.spark

ROUTES = ("index", "join")
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "n": pa.array([10, None, 30, 40, 50, 60], pa.int64()),
        "text": ["az", "by", None, "cx", "dw", "ev"],
        "day": pa.array([1, 20, 300, None, 5000, 60000], pa.date32()),
    }
)
COLUMNS = "n,text,day"
FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true", **FEED}


def stored(uri: str) -> list[Any]:
    found: list[Any] = []
    for path in Path(uri).rglob("*.parquet"):
        if "_delta_log" not in str(path):
            table = pq.read_table(path, partitioning=None)
            found += table[opened(uri).state.column_map.physical.names[1]].to_pylist()
    return found


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
def test_both_engines_read_what_the_other_wrote(
    spark: Any, tmp_path: Path, route: Any, properties: dict[str, str]
) -> None:
    uri = encoded(tmp_path / "t", ROWS, COLUMNS, properties)
    write(spark.createDataFrame(ROWS), uri, "append", plugins=PLUGINS)
    assert sorted(v for v in stored(uri) if v is not None) == [-60, -60, -50, -50, -40, -40, -30, -30, -10, -10]
    expected = pa.concat_tables([ROWS, ROWS])
    assert_same_rows(opened(uri).scan().to_table(), expected)
    assert_same_rows(plain(read(spark, uri, route=route, plugins=PLUGINS).toArrow()), plain(expected))
    (text,) = set(opened(uri).files.columns(["stats"]).column(0).to_pylist()[:1])
    assert '"minValues":{' in text
    names = opened(uri).state.column_map.physical.names
    for kind in ("min", "max"):
        part = text.partition(f'"{kind}Values":')[2].partition("}")[0]
        assert names[0] in part
        assert not [n for n in names[1:] if n in part]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "predicate", ["n = 40", "n > 20", "n < 20", "n is null", "text = 'az'", "text < 'c'", "day > date'1970-06-01'"]
)
def test_predicate_selects_rows_by_their_values(spark: Any, tmp_path: Path, route: Any, predicate: str) -> None:
    uri = encoded(tmp_path / "t", ROWS, COLUMNS)
    append(uri, ROWS.slice(0, 2))
    expected = opened(encoded(tmp_path / "plain", pa.concat_tables([ROWS, ROWS.slice(0, 2)]), ""))
    wanted = expected.scan(predicate=predicate).to_table()
    for frame in (
        read(spark, uri, route=route, plugins=PLUGINS, predicate=predicate),
        read(spark, uri, route=route, plugins=PLUGINS).where(predicate),
    ):
        assert_same_rows(plain(frame.toArrow()), plain(wanted))


@pytest.mark.parametrize("properties", [FEED, MAPPED], ids=["feed", "mapped"])
def test_changes_of_rows_encode_once(spark: Any, tmp_path: Path, properties: dict[str, str]) -> None:
    uris = [encoded(tmp_path / c, ROWS, c, properties) for c in (COLUMNS, "")]
    for uri in uris:
        table = SparkTable.forPath(spark, uri, plugins=PLUGINS)
        table.update("n > 40", {"text": "upper(text)", "n": "n + 1"})
        table.delete("text = 'az'")
        source = spark.createDataFrame(pa.table({"n": [30, 99], "text": ["new", "row"]}))
        matched = table.alias("t").merge(source.alias("s"), "t.n = s.n")
        matched.whenMatchedUpdate(set={"text": "s.text"}).whenNotMatchedInsert(
            values={"n": "s.n", "text": "s.text"}
        ).execute()
        table.optimize().executeCompaction()
    coded, expected = uris
    assert_same_rows(opened(coded).scan().to_table(), opened(expected).scan().to_table())
    assert all(v is None or v < 0 for v in stored(coded))
    feeds = [read_changes(spark, uri, 0, plugins=PLUGINS).drop("_commit_timestamp").toArrow() for uri in uris]
    assert_same_rows(plain(feeds[0]), plain(feeds[1]))


def test_streams_read_and_write_values(spark: Any, tmp_path: Path) -> None:
    uris = [encoded(tmp_path / c, ROWS, c, FEED) for c in (COLUMNS, "")]
    for uri in uris:
        table = SparkTable.forPath(spark, uri, plugins=PLUGINS)
        table.update("n = 30", {"text": F.lit("new")})
    found = []
    for i, uri in enumerate(uris):
        for kind, rows in (
            ("rows", read_stream(spark, uri, ignore_changes=True, plugins=PLUGINS)),
            (
                "changes",
                read_changes_stream(spark, uri, start=0, plugins=PLUGINS).drop(
                    "_change_type", "_commit_version", "_commit_timestamp"
                ),
            ),
        ):
            target = tmp_path / f"{kind}-{i}"
            if i == 0 and kind == "rows":
                create_table(
                    open_context(str(target), plugins=PLUGINS),
                    Schema.from_arrow(ROWS.schema),
                    properties={COLUMNS_PROPERTY: COLUMNS},
                )
            write_stream(
                rows,
                str(target),
                checkpoint=tmp_path / f"checkpoint-{kind}-{i}",
                trigger={"availableNow": True},
                plugins=PLUGINS,
            ).awaitTermination()
            found.append(opened(str(target)).scan().to_table())
    assert found[0].num_rows >= ROWS.num_rows
    for coded, expected in zip(found[:2], found[2:], strict=True):
        assert_same_rows(plain(coded), plain(expected))
    assert all(v is None or v < 0 for v in stored(str(tmp_path / "rows-0")))


def test_value_that_is_encoded_as_null_is_rejected(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"day": pa.array([1], pa.date32()), "text": ["a"]})

    class Losing:
        FEATURE = TableFeature("probe.losing", "reader+writer", "Loses values.")

        @staticmethod
        @hookimpl
        def column_encodings() -> Iterable[ColumnEncoding]:
            text, string = Column(("text",)), PrimitiveType("string")
            return [
                ColumnEncoding("probe.losing", ("text",), string, Call("nullif", (text, Literal("a", string))), text)
            ]

    registry = PluginRegistry([Losing])
    create_table(
        open_context(str(tmp_path), plugins=registry), Schema.from_arrow(rows.schema), features=["probe.losing"]
    )
    with pytest.raises(DeltaError, match=r"probe\.losing encodes a value of column 'text' as null"):
        write(spark.createDataFrame(rows), str(tmp_path), "append", plugins=registry)
    assert not list(tmp_path.rglob("*.parquet"))


def _decoded_by(decode: Expression) -> PluginRegistry:
    """Return a plugin that stores texts as they are, and decodes them by an expression."""

    class Decoder:
        FEATURE = TableFeature("probe.decoder", "reader+writer", "Decodes texts.")

        @staticmethod
        @hookimpl
        def column_encodings() -> Iterable[ColumnEncoding]:
            text = Column(("it's",))
            return [ColumnEncoding("probe.decoder", text.path, PrimitiveType("string"), text, decode)]

    return PluginRegistry([Decoder])


def test_value_that_is_decoded_as_null_is_not_lost(spark: Any, tmp_path: Path) -> None:
    text, string = Column(("it's",)), PrimitiveType("string")
    good = _decoded_by(text)
    rows = pa.table({"it's": ["a", "b", None], "n": pa.array([1, 2, 3], pa.int64())})
    context = open_context(str(tmp_path), plugins=good)
    create_table(context, Schema.from_arrow(rows.schema), features=["probe.decoder"])
    append(str(tmp_path), rows, good)
    for decode, words in (
        (Call("nullif", (text, Literal("a", string))), 'decodes a value of column "it\'s" as null'),
        (Call("coalesce", (text, Literal("x", string))), 'decodes null of column "it\'s" as a value'),
    ):
        bad = _decoded_by(decode)
        table = SparkTable.forPath(spark, str(tmp_path), plugins=bad)
        source = spark.createDataFrame(pa.table({"n": [1, 3]}))
        merge = table.alias("t").merge(source.alias("s"), "t.n = s.n").whenMatchedUpdate(set={"n": F.lit(9)})
        changes: list[Callable[[], Any]] = [
            read(spark, str(tmp_path), plugins=bad).toArrow,
            read(spark, str(tmp_path), plugins=bad, predicate="`it's` <> 'b'").select("n").toArrow,
            partial(table.update, set={"n": F.lit(9)}),
            merge.execute,
            partial(table.delete, "`it's` <> 'b'"),
        ]
        for change in changes:
            with pytest.raises(Exception, match=rf"probe\.decoder {words}; expected null for null"):
                change()
        assert opened(str(tmp_path), bad).version == 1
    assert_same_rows(opened(str(tmp_path), good).scan().to_table(), rows)
    found = read(spark, str(tmp_path), plugins=good)
    assert [found.where(f"`it's` IS {word}NULL").count() for word in ("", "NOT ")] == [1, 2]


def test_generated_values_that_spark_can_not_report_are_rejected(spark: Any, tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = Schema([Field("n", "long", metadata=identity), Field("text", "string")])
    context = open_context(str(tmp_path), plugins=PLUGINS)
    create_table(context, schema, properties={COLUMNS_PROPERTY: "n"})
    rows = pa.table({"text": ["a", "b"]})
    append(str(tmp_path), rows)
    with pytest.raises(UnsupportedOperationError, match="Column 'n' is filled by identityColumns and encoded"):
        write(spark.createDataFrame(rows), str(tmp_path), "append", plugins=PLUGINS)
    append(str(tmp_path), rows)
    assert sorted(opened(str(tmp_path)).scan(["n"]).to_table()["n"].to_pylist()) == [1, 2, 3, 4]


def test_example_of_an_external_package_is_read_by_both_engines(spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("delta_packed_uuids")
    ids = [str(uuid.UUID(int=(1 << 127) + n)) for n in range(5)]
    rows = pa.table({"id": [*ids, None], "n": pa.array(range(6), pa.int64())})
    write_deltalake(str(tmp_path), rows, configuration={"example.packedUuids.columns": "id"})
    write(spark.createDataFrame(rows), str(tmp_path), "append")
    SparkTable.forPath(spark, str(tmp_path)).update("n = 2", {"n": F.lit(20)})
    found = read(spark, str(tmp_path))
    assert_same_rows(plain(found.toArrow()), plain(DeltaTable(str(tmp_path)).to_pyarrow_table()))
    assert found.where(f"id = '{ids[2]}' AND n = 20").count() == 2
    with pytest.raises(ConstraintViolationError, match="id is a UUID"):
        write(spark.createDataFrame(pa.table({"id": ["x"], "n": [1]})), str(tmp_path), "append")


# --- a secret that executors look up ---

SECRET = "0123456789abcdef-of-a-test"
PROPERTY = "delta.test.key"


def unencrypted(types: list[pa.DataType]) -> pa.DataType:
    return pa.string()


def encrypted(types: list[pa.DataType]) -> pa.DataType:
    return pa.binary()


def encrypt(values: pa.Array, key: pa.Array) -> pa.Array:
    assert not len(values), "encrypts on Spark alone"
    return pa.nulls(0, pa.binary())


def decrypt(values: pa.Array, key: pa.Array) -> pa.Array:
    assert not len(values), "decrypts on Spark alone"
    return pa.nulls(0, pa.string())


_KEY = "unhex(substr(sha2(reflect('java.lang.System', 'getProperty', {1}), 256), 1, 32))"


class Encrypted:
    """A column that Spark encrypts with a key whose name, and nothing else, is in the expression."""

    FEATURE = TableFeature("probe.encrypted", "reader+writer", "Encrypts.")

    @staticmethod
    @hookimpl
    def functions() -> Iterable[Function]:
        return [
            Function("probe.encrypted", "probe_encrypt", encrypted, encrypt, f"aes_encrypt({{0}}, {_KEY})"),
            Function(
                "probe.encrypted", "probe_decrypt", unencrypted, decrypt, f"CAST(aes_decrypt({{0}}, {_KEY}) AS STRING)"
            ),
        ]

    @staticmethod
    @hookimpl
    def column_encodings(table: TableState) -> Iterable[ColumnEncoding]:
        text, name = Column(("text",)), Literal(PROPERTY, PrimitiveType("string"))
        encode, decode = (Call(f"probe_{f}", (text, name)) for f in ("encrypt", "decrypt"))
        return [ColumnEncoding("probe.encrypted", ("text",), PrimitiveType("binary"), encode, decode)]


def test_key_that_executors_look_up_is_in_no_plan_and_no_history(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system = spark._jvm.java.lang.System
    system.setProperty(PROPERTY, SECRET)
    registry = PluginRegistry([Encrypted])
    uri, rows = str(tmp_path / "t"), ROWS.select(["id", "text"])
    try:
        schema = Schema.from_arrow(rows.schema)
        create_table(open_context(uri, plugins=registry), schema, features=["probe.encrypted"])
        write(spark.createDataFrame(rows), uri, "append", plugins=registry)
        frame = read(spark, uri, plugins=registry)
        assert_same_rows(plain(frame.toArrow()), plain(rows))
        assert frame.where("text = 'cx'").count() == 1
        frame.where("text = 'cx'").explain("extended")
    finally:
        system.clearProperty(PROPERTY)
    derived = hashlib.sha256(SECRET.encode()).hexdigest()[:32]
    shown = capsys.readouterr().out + "".join(p.read_text() for p in (tmp_path / "t" / "_delta_log").glob("*.json"))
    assert "aes_decrypt" in shown.lower() or "AES" in shown
    for secret in (SECRET, derived, derived.upper()):
        assert secret not in shown
    for path in (tmp_path / "t").rglob("*.parquet"):
        if "_delta_log" not in str(path):
            assert b"cx" not in b"".join(v or b"" for v in pq.read_table(path)["text"].to_pylist())
    with pytest.raises(Exception, match=r"(?i)key|null|input"):
        read(spark, uri, plugins=registry).toArrow()
