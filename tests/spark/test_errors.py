"""Errors of Spark users: of this library's types, a line or two long, with what Spark specifies as their cause."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.engines.spark import failures
from delta_core.errors import (
    AccessDeniedError,
    ConstraintViolationError,
    DataFileError,
    DataFileNotFoundError,
    DeltaError,
    EngineError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.schema.types import Field, PrimitiveType, StructType
from tests.corpus.records import path_of

pytestmark = pytest.mark.spark

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
MOST_LINES, MOST_CHARACTERS, MOST_TRACEBACK = 3, 700, 70


def failing(action: Callable[[], Any], kind: type[BaseException], match: str, cause: str | None = None) -> DeltaError:
    """Return the error of an action that is short and of a kind; ``cause`` is the type of what caused it."""
    with pytest.raises(kind, match=match) as caught:
        action()
    error = caught.value
    assert isinstance(error, DeltaError)
    assert len(str(error)) <= MOST_CHARACTERS
    assert len(str(error).splitlines()) <= MOST_LINES
    printed = "".join(traceback.format_exception(error)).splitlines()
    assert len([line for line in printed if not line.lstrip().startswith("^")]) <= MOST_TRACEBACK
    assert "\tat " not in "\n".join(printed)
    assert cause is None or type(error.__cause__).__name__ == cause
    return error


def create(path: Path, *fields: Field, **properties: str) -> str:
    names = {"delta." + k.replace("_", "."): v for k, v in properties.items()}
    DeltaTable.create(str(path), StructType(fields or (Field("id", LONG),)), configuration=names)
    return str(path)


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> str:
    """Two files of ten rows each."""
    uri = create(tmp_path / "table")
    ds.write(spark.range(0, 20, 1, 2), uri, "append")
    return uri


def first_file(uri: str) -> Path:
    return Path(DeltaTable(uri).file_uris()[0])


def break_file(path: Path, data: bytes) -> None:
    """Assign a file other bytes; Hadoop's checksum of it goes."""
    path.write_bytes(data)
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


# --- rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["auto", "plain"])
def test_broken_constraint_is_reported_in_a_line_with_its_row(spark: Any, tmp_path: Path, route: Any) -> None:
    uri = create(tmp_path / "t", Field("id", LONG), Field("s", TEXT), constraints_small="id < 100")
    rows = spark.sql("SELECT 100L AS id, CAST(NULL AS STRING) AS s")
    error = failing(
        lambda: ds.write(rows, uri, "append", route=route), ConstraintViolationError, "small", "SparkRuntimeException"
    )
    assert error.facts["row"] == {"id": 100, "s": None}
    assert "{'id': 100, 's': None}" in str(error)


def test_row_of_not_null_shows_its_nulls(spark: Any, tmp_path: Path) -> None:
    inner = StructType([Field("x", LONG, False), Field("y", TEXT)])
    uri = create(tmp_path / "t", Field("v", inner))
    rows = spark.sql("SELECT named_struct('x', CAST(NULL AS BIGINT), 'y', 'a') AS v")
    error = failing(lambda: ds.write(rows, uri, "append"), ConstraintViolationError, r"NOT NULL v\.x")
    assert error.facts["row"] == {"v": {"x": None, "y": "a"}}


@pytest.mark.parametrize("text", ['é"\n' * 9000, " :end of row\n\n SQLSTATE: P0001", "delta_core check 0: {}\n", ""])
def test_row_of_any_text_is_shown_whole_or_cut(spark: Any, tmp_path: Path, text: str) -> None:
    uri = create(tmp_path / "t", Field("id", LONG), Field("s", TEXT), constraints_small="id < 100")
    rows = spark.createDataFrame([(100, text)], "id long, s string")
    error = failing(lambda: ds.write(rows, uri, "append"), ConstraintViolationError, "small")
    row = error.facts["row"]
    assert row == {"id": 100, "s": text} if len(text) < 1000 else row.startswith('{"id":100')


def test_value_that_does_not_fit_has_sparks_error_as_cause(spark: Any, table: str) -> None:
    rows = spark.sql("SELECT 1.5D AS id")
    failing(
        lambda: ds.write(rows, table, "append"), SchemaMismatchError, "Column id holds 1.5", "SparkRuntimeException"
    )


# --- the query that is written -------------------------------------------------------------


@pytest.mark.parametrize("route", ["auto", "plain"])
@pytest.mark.parametrize(
    ("select", "match", "cause"),
    [
        ("1 div (id - 99)", "DIVIDE_BY_ZERO", "ArithmeticException"),
        ("CAST(raise_error('just so') AS BIGINT)", "just so", "SparkRuntimeException"),
        ("fails_in_python(id)", r"failed: ValueError: no \d+ here$", "PythonException"),
        ("dies(id)", "worker exited unexpectedly", "SparkError"),
    ],
)
def test_reason_of_a_failed_query_is_in_the_message(
    spark: Any, table: str, select: str, match: str, cause: str, route: Any
) -> None:
    def fails_in_python(x: int) -> int:
        if x > 3:
            raise ValueError(f"no {x} here")
        return x

    # by value: workers can't import the modules of tests
    spark.udf.register("fails_in_python", fails_in_python, "long")
    spark.udf.register("dies", lambda x: os._exit(x + 3), "long")
    rows = spark.range(100).selectExpr(f"{select} AS id")
    failing(lambda: ds.write(rows, table, "append", route=route), EngineError, match, cause)
    assert DeltaTable(table).version() == 1
    assert not [f for f in Path(table).rglob("*.parquet") if str(f) not in DeltaTable(table).file_uris()]


def test_cancelled_job_is_reported_in_a_line(spark: Any, table: str) -> None:
    spark.udf.register("sleeps", lambda x: time.sleep(20) or x, "long")
    found: list[BaseException] = []

    def write() -> None:
        spark.sparkContext.setJobGroup("to cancel", "", interruptOnCancel=True)
        try:
            ds.write(spark.range(2).selectExpr("sleeps(id) AS id"), table, "append")
        except EngineError as e:
            found.append(e)

    def again() -> None:
        raise found[0]

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        spark.sparkContext.cancelJobGroup("to cancel")
        thread.join(0.3)
    failing(again, EngineError, "cancelled", "SparkError")


@pytest.mark.parametrize(
    "options", [{"parquet.block.size": "much"}, {"compression": "none such"}, {"maxRecordsPerFile": "some"}]
)
def test_option_that_spark_rejects_is_reported_in_a_line(spark: Any, table: str, options: dict[str, str]) -> None:
    if "parquet.block.size" in options and spark.version.startswith(("4.0.", "4.1.")):
        pytest.skip("Spark before 4.2 takes any text for it")
    failing(
        lambda: ds.write(spark.range(3), table, "append", parquet_options=options), EngineError, "much|none such|some"
    )


def test_place_that_cant_be_written_is_reported_in_a_line(spark: Any) -> None:
    failing(lambda: ds.write(spark.range(3), "/proc/no/such/place"), EngineError, "/proc/no/such/place")


def test_what_is_no_data_frame_is_rejected(table: str) -> None:
    failing(lambda: ds.write([1, 2], table, "append"), InvalidArgumentError, "Found list for df")


@pytest.mark.parametrize(
    ("condition", "match"), [("t.idd = s.id", "idd"), ("t.id = = s.id", "Syntax error"), ("t.id", "BOOLEAN")]
)
def test_condition_that_spark_cant_resolve_is_rejected_before_rows_are_written(
    spark: Any, table: str, condition: str, match: str
) -> None:
    never = spark.range(3).selectExpr("CAST(raise_error('it was run') AS BIGINT) AS id")
    failing(lambda: ds.write(never, table, "overwrite", replace_on=condition), InvalidArgumentError, match)
    failing(
        lambda: ds.write(never, table, "overwrite", replace_using="idd"), SchemaMismatchError, "'idd' of replace_using"
    )


# --- data files ----------------------------------------------------------------------------


def write_of_another_table(spark: Any, uri: str, tmp_path: Path) -> int | None:
    return ds.write(ds.read(spark, uri), tmp_path / "other", "append")


USES = pytest.mark.parametrize(
    "use",
    [
        lambda spark, uri, tmp_path: ds.read(spark, uri).where("id >= 0").collect(),
        lambda spark, uri, tmp_path: ds.read(spark, uri).write.mode("overwrite").parquet(str(tmp_path / "out")),
        lambda spark, uri, tmp_path: spark.sql(f"SELECT sum(id) FROM delta_scan('{uri}')").collect(),
        lambda spark, uri, tmp_path: ds.read(spark, uri, route="join").where("id >= 0").collect(),
        lambda spark, uri, tmp_path: ds.write(
            spark.range(15, 16), uri, "overwrite", replace_where="id >= 0 and id % 5 = 0"
        ),
        lambda spark, uri, tmp_path: ds.write(spark.range(5), uri, "overwrite", replace_using="id"),
        write_of_another_table,
    ],
    ids=["rows", "save", "sql", "join", "replace_where", "replace_using", "source"],
)


def test_variants_are_named_where_spark_does_not_support_them(spark: Any) -> None:
    if not spark.version.startswith("4.0."):
        pytest.skip("only Spark 4.0 does not support columns marked as variants")
    uri = str(path_of("spark/variants"))
    failing(lambda: ds.read(spark, uri).collect(), DataFileError, "variants need PySpark 4.1")


@USES
def test_missing_data_file_is_named(spark: Any, tmp_path: Path, table: str, use: Any) -> None:
    ds.register(spark)
    first_file(table).unlink()
    error = failing(lambda: use(spark, table, tmp_path), DataFileNotFoundError, "is not there")
    assert (Path(table) / error.facts["path"]).parent.is_dir()
    assert isinstance(error, FileNotFoundError)


@USES
@pytest.mark.parametrize("damage", ["cut", "empty", "pages"])
def test_damaged_data_file_is_named(spark: Any, tmp_path: Path, table: str, use: Any, damage: str) -> None:
    ds.register(spark)
    file = first_file(table)
    data = file.read_bytes()
    pages = data[:4] + b"\xff" * 40 + data[44:]
    break_file(file, {"cut": data[:-20], "empty": b"", "pages": pages}[damage])
    error = failing(lambda: use(spark, table, tmp_path), DataFileError, "no sound Parquet file")
    assert (Path(table) / error.facts["path"]) == file


def test_column_of_another_type_is_named(spark: Any, tmp_path: Path, table: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = first_file(table)
    pq.write_table(pa.table({"id": ["x"]}), file)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    error = failing(
        lambda: ds.read(spark, table).collect(), DataFileError, "column id is stored as BINARY, expected bigint"
    )
    assert error.facts["column"] == "id"


def test_missing_file_outside_of_the_root_is_named_too(spark: Any, tmp_path: Path, table: str) -> None:
    from delta_core.testing.table_builder import TableBuilder

    file = first_file(table)
    made = TableBuilder(tmp_path / "clone").create({"id": "long"})
    add = {
        "path": f"file://{file}",
        "partitionValues": {},
        "size": file.stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
    }
    made.commit({"add": add})
    frame = ds.read(spark, made.uri)
    assert frame.count() == 10
    file.unlink()
    failures._roots.clear()
    error = failing(frame.count, DataFileNotFoundError, "is not there")
    assert error.facts["path"].endswith(file.name)


def test_missing_file_is_named_though_the_log_of_another_table_is_gone(
    spark: Any, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        def path_at(self, place: str) -> str | None:
            raise FileNotFoundError(place)

    gone = Gone()
    frame = ds.read(spark, table)
    listing = Listing(first_file(table))
    monkeypatch.setattr(failures, "_roots", {})
    monkeypatch.setattr(failures, "_files", [gone, listing])
    first_file(table).unlink()
    error = failing(frame.count, DataFileNotFoundError, "is not there")
    assert error.facts["path"] == listing.file.name


class Listing:
    """The files of a table: one."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def path_at(self, place: str) -> str | None:
        return self.file.name if place.endswith(self.file.name) else None


def test_plain_parquet_files_keep_sparks_errors(spark: Any, tmp_path: Path, table: str) -> None:
    from py4j.protocol import Py4JJavaError

    ds.read(spark, table).count()
    spark.range(5).write.parquet(str(tmp_path / "plain"))
    frame = spark.read.parquet(str(tmp_path / "plain"))
    for file in (tmp_path / "plain").glob("*.parquet"):
        file.unlink()
    with pytest.raises(Py4JJavaError):
        frame.collect()


# --- SQL -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        ("'/no/such/place'", TableNotFoundError, "No Delta table at /no/such/place"),
        ("'{uri}', 77", VersionNotFoundError, "the latest is 1"),
        ("", InvalidArgumentError, r"Found delta_scan\(\), expected delta_scan\('uri'\)"),
        ("7", InvalidArgumentError, r"Found delta_scan\(7\)"),
        ("'{uri}', 'x'", InvalidArgumentError, "'x'"),
        ("'{uri}', 1, 2", InvalidArgumentError, "1, 2"),
        ("NULL", InvalidArgumentError, "Found NULL in a call of delta_scan"),
        ("1.5D", InvalidArgumentError, "expected text or a whole number"),
    ],
)
def test_table_function_that_fails_states_why(spark: Any, table: str, call: str, kind: Any, match: str) -> None:
    ds.register(spark)
    failing(lambda: spark.sql(f"SELECT * FROM delta_scan({call.format(uri=table)})").collect(), kind, match)


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"path": "/no/such/place"}, TableNotFoundError, "No Delta table"),
        ({}, InvalidArgumentError, "Found no path"),
        ({"versionAsOf": "x"}, InvalidArgumentError, "versionAsOf='x'"),
        ({"versionAsOf": "99"}, VersionNotFoundError, "the latest is 1"),
    ],
)
def test_format_that_fails_states_why(spark: Any, table: str, options: dict[str, str], kind: Any, match: str) -> None:
    ds.register(spark)
    given = options if "path" in options or not options else {"path": table, **options}
    failing(lambda: spark.read.format("delta_core").options(**given).load().collect(), kind, match)


def test_format_is_read_only_and_names_the_missing_file(spark: Any, table: str) -> None:
    ds.register(spark)
    write = spark.range(3).write.format("delta_core").mode("append")
    failing(lambda: write.save(table), UnsupportedOperationError, r"delta_core\.spark\.write")
    first_file(table).unlink()
    failing(lambda: spark.read.format("delta_core").load(table).collect(), DataFileNotFoundError, "is not there")


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("EXPLAIN delete /* all */ from\n{}", ".delete("),
        ("EXPLAIN UPDATE {} SET id = 1", ".update("),
        ("EXPLAIN MERGE INTO {} t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", ".merge("),
        ("FROM s INSERT INTO {} SELECT 1L", "'append'"),
        ("COPY INTO {} FROM 'x'", "'append'"),
        ("CREATE OR REPLACE TABLE {} (id LONG)", "DeltaTable.create"),
        ("DROP TABLE IF EXISTS {}", "Delete its directory"),
        ("ANALYZE TABLE {} COMPUTE STATISTICS", "no such call"),
    ],
)
def test_statement_that_changes_a_table_names_what_works(spark: Any, table: str, statement: str, advice: str) -> None:
    for name in (f"delta_core.`{table}`", f"delta_scan('{table}')"):
        error = failing(
            lambda name=name: ds.sql(spark, statement.format(name)), UnsupportedOperationError, "not possible"
        )
        assert advice in str(error)
        assert error.facts["path"] == table
    assert DeltaTable(table).version() == 1


def test_what_the_advice_states_works(spark: Any, table: str) -> None:
    ds.DeltaTable.forPath(spark, table).delete("id >= 3")
    assert ds.read(spark, table).count() == 3


def test_statement_that_only_reads_our_tables_runs(spark: Any, table: str) -> None:
    name = f"delta_core.`{table}`"
    ds.sql(spark, f"CREATE TABLE copied_rows USING parquet AS SELECT * FROM {name} -- DELETE FROM")
    try:
        assert spark.table("copied_rows").count() == 20
        ds.sql(spark, f"INSERT INTO copied_rows SELECT * FROM {name} WHERE id < 5")
        assert (
            ds.sql(spark, f"SELECT 'DELETE FROM', count(*) AS n FROM copied_rows JOIN {name} USING (id)").first()["n"]
            == 25
        )
    finally:
        spark.sql("DROP TABLE copied_rows")


# --- what the driver requires of Python --------------------------------------------------------


def test_unforeseen_error_in_answer_to_the_driver_is_an_engine_error(
    spark: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_core.engines.spark.plan.listing import FileListing

    frame = ds.read(spark, table)

    def broken(self: Any, files: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FileListing, "write", broken)
    error = failing(frame.count, EngineError, "No space left on device")
    assert any("No space left" in note for note in error.__notes__)


def test_errors_without_a_stack_survive_pickling() -> None:
    import pickle

    error = EngineError("failed", path="x")
    error.__cause__ = failures.SparkError("org.apache.spark.SparkException: it was")
    assert str(pickle.loads(pickle.dumps(error.__cause__))) == str(error.__cause__)


def test_file_that_spark_may_not_read_is_reported_from_a_damaged_one(spark: Any, table: str) -> None:
    """A chain of exceptions as Spark makes it: who runs as root may read every file."""
    ds.read(spark, table).count()
    place = f"file:{first_file(table)}"
    java = spark._jvm.java
    cause = java.io.FileNotFoundException(f"{place} (Permission denied)")
    read = spark._jvm.org.apache.spark.sql.errors.QueryExecutionErrors.cannotReadFilesError(cause, place)
    found = failures.converted(java.lang.RuntimeException("job aborted", read))
    assert isinstance(found, AccessDeniedError)
    assert isinstance(found, PermissionError)
    assert (Path(table) / found.facts["path"]) == first_file(table)
