"""Tables that Delta's own Spark library wrote are read as it reads them itself.

They run if pyspark and delta-spark are installed, a Java runtime is there, and the library's jars can be had::

    pip install pyspark==4.2.0 delta-spark==4.4.0 && pytest -m spark
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable
from delta_core.kernel.snapshot import open_snapshot
from tests.interop.conftest import Made, plain

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

DV = "'delta.enableDeletionVectors' = 'true'"
CDF = "'delta.enableChangeDataFeed' = 'true'"
WIDENED = ("'delta.enableTypeWidening' = 'true'", "'delta.feature.timestampNtz' = 'supported'")
MAPPED = "'delta.columnMapping.mode' = 'name'"


@pytest.fixture
def configured(spark: Any) -> Iterator[Callable[..., None]]:
    """Set options of the session for one test."""
    before: dict[str, Any] = {}

    def change(**options: str) -> None:
        for name, value in options.items():
            key = name.replace("__", ".")
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def assert_every_version_equal(made: Made, first: int = 0) -> None:
    latest = made.latest()
    last = int(made.spark.sql(f"DESCRIBE HISTORY {made.name}").agg({"version": "max"}).collect()[0][0])
    assert latest.version == last
    for version in range(first, last + 1):
        ours = plain(open_snapshot(str(made.path), version).scan().to_table())
        assert ours == made.rows(versionAsOf=version), f"version {version}"


def assert_predicates_equal(made: Made, *predicates: str) -> None:
    snapshot = made.latest()
    for predicate in predicates:
        found = plain(snapshot.scan(predicate=predicate).to_table())
        assert found == made.rows(f"SELECT * FROM {{t}} WHERE {predicate}"), predicate
        assert snapshot.scan(predicate=predicate).count() == len(found), predicate


def assert_changes_equal(made: Made, start: int = 0, end: int | None = None) -> None:
    end = made.latest().version if end is None else end
    theirs = made.rows(readChangeFeed="true", startingVersion=start, endingVersion=end)
    assert plain(DeltaTable(str(made.path)).operation("changes")(start, end).to_table()) == theirs


def assert_row_ids_equal(made: Made) -> None:
    theirs = made.rows(
        "SELECT *, _metadata.row_id AS _row_id, _metadata.row_commit_version AS _row_commit_version FROM {t}"
    )
    assert plain(made.latest().scan(metadata=["_row_id", "_row_commit_version"]).to_table()) == theirs


# --- vectors, row ids, change feed ---


def test_vectors_row_ids_and_changes_of_every_operation(table: Made) -> None:
    tracked = "'delta.enableRowTracking' = 'true'"
    table.create("id BIGINT, p STRING, v DOUBLE", DV, CDF, tracked, tail="PARTITIONED BY (p)").run(
        "INSERT INTO {t} SELECT id, CAST(id % 3 AS STRING), id * 0.5 FROM range(0, 300, 1, 2)",
        "DELETE FROM {t} WHERE id % 7 = 0",
        "UPDATE {t} SET v = -1 WHERE id % 11 = 0",
        "MERGE INTO {t} USING (SELECT id, '9' AS p, 7.5 AS v FROM range(290, 310)) s ON s.id = {t}.id "
        "WHEN MATCHED AND s.id % 2 = 0 THEN UPDATE SET v = s.v WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        "DELETE FROM {t} WHERE p = '1'",
        "OPTIMIZE {t}",
        "DELETE FROM {t} WHERE id IN (2, 5, 8)",
        "RESTORE TABLE {t} TO VERSION AS OF 3",
        "REORG TABLE {t} APPLY (PURGE)",
        "INSERT OVERWRITE {t} SELECT id, 'x', 0D FROM range(5)",
    )
    assert_every_version_equal(table)
    assert_row_ids_equal(table)
    for version in range(1, table.latest().version + 1):
        assert_changes_equal(table, version, version)
    assert_changes_equal(table)


def test_row_ids_survive_updates_and_rewrites(table: Made) -> None:
    table.create(
        "id INT, v STRING", "'delta.enableRowTracking' = 'true'", "'delta.enableDeletionVectors' = 'false'"
    ).run(
        "INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 50, 1, 2)",
        "UPDATE {t} SET v = 'b' WHERE id % 5 = 0",
        "INSERT INTO {t} VALUES (100, 'c')",
        "OPTIMIZE {t}",
        "DELETE FROM {t} WHERE id < 3",
        "MERGE INTO {t} USING (SELECT * FROM range(45, 55)) s ON s.id = {t}.id WHEN MATCHED THEN UPDATE SET v = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')",
    )
    assert_row_ids_equal(table)
    assert_every_version_equal(table)


def test_row_ids_of_a_table_that_began_without_them(table: Made) -> None:
    table.create("id INT").run("INSERT INTO {t} VALUES (1), (2)", "INSERT INTO {t} VALUES (3)")
    table.run("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "INSERT INTO {t} VALUES (4)")
    assert_row_ids_equal(table)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_changes_under_column_mapping(table: Made, vectors: str) -> None:
    table.create(
        "id INT, s STRUCT<a: INT, b: STRING>", CDF, MAPPED, f"'delta.enableDeletionVectors' = '{vectors}'"
    ).run(
        "INSERT INTO {t} SELECT CAST(id AS INT), struct(CAST(id AS INT), 'x') FROM range(20)",
        "ALTER TABLE {t} RENAME COLUMN s.a TO z",
        "ALTER TABLE {t} RENAME COLUMN id TO `the id, renamed`",
        "UPDATE {t} SET s.z = 0 WHERE `the id, renamed` < 3",
        "DELETE FROM {t} WHERE `the id, renamed` > 15",
    )
    assert_every_version_equal(table)
    assert_changes_equal(table, 4)


# --- schema ---


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_renamed_dropped_and_added_again(table: Made, mode: str) -> None:
    table.create(
        "id INT, p STRING, gone INT, n STRUCT<a: INT, l: ARRAY<STRUCT<x: INT, y: STRING>>, m: MAP<STRING, STRUCT<k: "
        "INT>>>",
        f"'delta.columnMapping.mode' = '{mode}'",
        tail="PARTITIONED BY (p)",
    ).run(
        "INSERT INTO {t} SELECT 1, 'a b', 2, struct(3, array(struct(4, 'v')), map('k', struct(5)))",
        "ALTER TABLE {t} RENAME COLUMN n.l.element.x TO `x.y z`",
        "ALTER TABLE {t} RENAME COLUMN n.m.value.k TO kk",
        "ALTER TABLE {t} RENAME COLUMN p TO `part,;{}`",
        "ALTER TABLE {t} DROP COLUMN gone",
        "ALTER TABLE {t} ADD COLUMN gone STRING",
        "INSERT INTO {t} SELECT 9, '%/ü', struct(8, array(struct(7, 'w')), map('q', struct(6))), 'new'",
        "ALTER TABLE {t} ADD COLUMN n.extra DATE",
        "ALTER TABLE {t} ALTER COLUMN id AFTER gone",
    )
    assert_every_version_equal(table)
    assert_predicates_equal(table, "gone IS NULL", "`part,;{}` = 'a b'", "n.a > 5", "id = 9")


def test_mapping_switched_on_over_old_files(table: Made) -> None:
    table.create("id INT, name STRING").run(
        "INSERT INTO {t} VALUES (1, 'a')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN name TO id2",
        "ALTER TABLE {t} RENAME COLUMN id TO name",
        "INSERT INTO {t} VALUES (2, 'b')",
    )
    assert_every_version_equal(table)


def test_every_widened_type_with_statistics_of_the_old_one(table: Made, configured: Any) -> None:
    table.create(
        "k INT, b BYTE, s SHORT, i INT, f FLOAT, bd BYTE, d DATE, c DECIMAL(5, 2), ic INT, lc BIGINT, "
        "n STRUCT<x: SHORT>, a ARRAY<BYTE>, m MAP<BYTE, FLOAT>",
        *WIDENED,
    )
    values = (
        "({k}, {k}, {k}, {k}, float({k} + 0.1), {k}, DATE '2020-01-0{k}', {k}.25, {k}, {k}, "
        "struct({k}), array({k}), map({k}, float(0.1)))"
    )
    for k in (1, 2, 3):
        table.run(f"INSERT INTO {table.name} VALUES {values.format(k=k)}")
    changes = {
        "b": "INT",
        "s": "BIGINT",
        "i": "DOUBLE",
        "f": "DOUBLE",
        "bd": "DOUBLE",
        "d": "TIMESTAMP_NTZ",
        "c": "DECIMAL(9, 4)",
        "ic": "DECIMAL(12, 2)",
        "lc": "DECIMAL(22, 1)",
        "n.x": "BIGINT",
        "a.element": "INT",
        "m.key": "BIGINT",
        "m.value": "DOUBLE",
    }
    for column, new in changes.items():
        table.run(f"ALTER TABLE {{t}} ALTER COLUMN {column} TYPE {new}")
    table.run(f"INSERT INTO {table.name} VALUES {values.format(k=4)}")
    values_of = {
        **dict.fromkeys(("b", "s", "i", "bd", "ic", "lc", "n.x"), ("2", "2.5")),
        "c": ("2.25", "2.2501", "3"),
        "f": ("1.1D", "float(1.1)", "2.100000001D", "2.0D"),
        "d": ("TIMESTAMP_NTZ '2020-01-02 00:00:00'", "TIMESTAMP_NTZ '2020-01-02 12:00:00'"),
    }
    predicates = [f"{c} {op} {v}" for c, vs in values_of.items() for op in ("=", ">", "<=") for v in vs]
    assert_every_version_equal(table)
    # Spark's own skipping loses the rows of f = float(1.1): the bound in the log, 1.1, is below the widened value
    configured(spark__databricks__delta__stats__skipping="false", spark__sql__parquet__filterPushdown="false")
    assert_predicates_equal(table, *predicates)
    configured(spark__databricks__delta__checkpoint__partSize="1000")
    table.run("INSERT INTO {t} SELECT * FROM {t} WHERE k = 1")
    checkpoint(table)
    assert_predicates_equal(table, *predicates)


def test_partition_column_widened_and_renamed(table: Made) -> None:
    table.create("id INT, p BYTE, d DATE", *WIDENED, MAPPED, tail="PARTITIONED BY (p, d)").run(
        "INSERT INTO {t} VALUES (1, 1, DATE '2020-01-01'), (2, NULL, NULL), (3, -7, DATE '1900-01-01')",
        "ALTER TABLE {t} ALTER COLUMN p TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN d TYPE TIMESTAMP_NTZ",
        "ALTER TABLE {t} RENAME COLUMN p TO q",
        "INSERT INTO {t} VALUES (4, 70000, TIMESTAMP_NTZ '2020-01-01 10:00:00')",
    )
    assert_every_version_equal(table)
    assert_predicates_equal(
        table, "q > 0", "q IS NULL", "d < '2020-01-01 05:00:00'", "d = DATE '2020-01-01'", "q = -7L"
    )


def test_variants_are_the_bytes_that_spark_wrote(table: Made) -> None:
    table.create("id INT, v VARIANT, s STRUCT<w: VARIANT>").run(
        """INSERT INTO {t} SELECT id, parse_json(j), named_struct('w', parse_json(j)) FROM VALUES
           (1, '{"a": [1, 2.5, "x"], "b": null}'), (2, '17'), (3, 'null'), (4, NULL) AS x(id, j)"""
    )
    found = {r["id"]: r["v"] for r in table.latest().scan().to_table().to_pylist()}
    theirs = {r.id: r.v for r in table.spark.table(table.name).collect()}
    assert found[4] is None
    assert theirs[4] is None
    for key in (1, 2, 3):
        assert (found[key]["value"], found[key]["metadata"]) == (theirs[key].value, theirs[key].metadata)


# --- writers' features ---


def test_identity_generated_defaults_and_checks_are_read(spark: Any, table: Made) -> None:
    import delta

    builder = delta.DeltaTable.create(spark).location(str(table.path)).addColumn("id", "INT")
    builder = builder.addColumn("n", "BIGINT", generatedAlwaysAs=delta.tables.IdentityGenerator(start=10, step=-3))
    builder.addColumn("g", "INT", generatedAlwaysAs="id + 1").execute()
    table.run(
        f"INSERT INTO {table.name} (id) VALUES (1), (2)",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {t} ADD COLUMN d STRING",
        "ALTER TABLE {t} ALTER COLUMN d SET DEFAULT 'none'",
        f"INSERT INTO {table.name} (id) VALUES (3)",
    )
    assert_every_version_equal(table)


def test_clustered_table(table: Made) -> None:
    table.create("a INT, b STRING", DV, tail="CLUSTER BY (a, b)").run(
        "INSERT INTO {t} SELECT CAST(id AS INT), CAST(id % 5 AS STRING) FROM range(0, 200, 1, 4)",
        "OPTIMIZE {t}",
        "ALTER TABLE {t} CLUSTER BY (b)",
        "DELETE FROM {t} WHERE a = 3",
    )
    assert_every_version_equal(table)
    assert "delta.clustering" in table.latest().domains()


# --- the log ---


def checkpoint(table: Made) -> None:
    jvm = table.spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(table.spark._jsparkSession, str(table.path))
    log.checkpoint()


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_v2_checkpoints_with_sidecars(table: Made, configured: Any, form: str) -> None:
    configured(
        spark__databricks__delta__checkpointV2__topLevelFileFormat=form,
        spark__databricks__delta__checkpoint__partSize="3",
    )
    policy = ("'delta.checkpointPolicy' = 'v2'", "'delta.checkpointInterval' = '4'", DV)
    table.create("id INT, p INT", *policy, tail="PARTITIONED BY (p)")
    for n in range(9):
        table.run(f"INSERT INTO {table.name} SELECT id, id % 2 FROM range({n * 10}, {n * 10 + 10})")
    table.run("DELETE FROM {t} WHERE id % 3 = 0")
    kinds = {c.name.split(".")[-1] for c in (table.path / "_delta_log").iterdir() if c.name.count(".") == 3}
    assert form in kinds
    assert table.latest().segment.checkpoint is not None
    assert_every_version_equal(table)
    assert_predicates_equal(table, "p = 1", "id > 70", "id < 5 AND p = 0")


@pytest.mark.parametrize("structs", ["true", "false"])
def test_classic_and_multi_part_checkpoints(table: Made, configured: Any, structs: str) -> None:
    table.create(
        "id INT, t TIMESTAMP, s STRING, p DATE",
        f"'delta.checkpoint.writeStatsAsStruct' = '{structs}'",
        f"'delta.checkpoint.writeStatsAsJson' = '{'false' if structs == 'true' else 'true'}'",
        tail="PARTITIONED BY (p)",
    )
    insert = (
        "INSERT INTO {{t}} SELECT id, timestamp_micros({n} * 1000000 + id * 1234567), repeat('ü', id * 10), "
        "date_add(DATE '2020-01-01', {n}) FROM range({n}, {n} + 5)"
    )
    for n in range(6):
        table.run(insert.format(n=n))
    checkpoint(table)
    table.run(insert.format(n=6))
    configured(spark__databricks__delta__checkpoint__partSize="3")
    table.run("DELETE FROM {t} WHERE id = 4", "INSERT INTO {t} VALUES (-1, NULL, NULL, NULL)")
    checkpoint(table)
    assert_every_version_equal(table)
    assert_predicates_equal(
        table,
        "p = '2020-01-03'",
        "p IS NULL",
        "id > 8",
        "s = repeat('ü', 70)",
        "t > '1970-01-01 00:00:12.345'",
        "t = timestamp_micros(6 * 1000000 + 10 * 1234567)",
        "s > repeat('ü', 40)",
        "id IS NULL OR p > '2020-01-06'",
    )


def test_time_travel_over_the_switch_to_in_commit_timestamps(table: Made) -> None:
    table.create("id INT").run(
        "INSERT INTO {t} VALUES (1)",
        "INSERT INTO {t} VALUES (2)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO {t} VALUES (3)",
        "INSERT INTO {t} VALUES (4)",
    )
    for path in sorted((table.path / "_delta_log").glob("*.json"))[4:]:
        os.utime(path, (0, 0))  # the file's time is no longer the commit's
    table.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    history = {r.version: r.timestamp for r in table.spark.sql(f"DESCRIBE HISTORY {table.name}").collect()}
    ours = {h["version"]: h["timestamp"] for h in DeltaTable(str(table.path)).history()}
    snapshot = table.latest()
    for version, when in history.items():
        ms = round(when.timestamp() * 1000)
        assert ours[version] // 1000 == ms // 1000
        assert snapshot.version_at(ms) == version
    for version, step in itertools.product(range(1, 6), (-1, 1)):
        ms = round(history[version].timestamp() * 1000) + step
        text = datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        if ms > round(history[5].timestamp() * 1000):
            continue
        theirs = table.rows(timestampAsOf=text)
        assert plain(open_snapshot(str(table.path), timestamp=text).scan().to_table()) == theirs, (version, step)


def test_cleaned_up_log(table: Made, configured: Any) -> None:
    configured(spark__databricks__delta__properties__defaults__checkpointInterval="3")
    table.create("id INT", "'delta.checkpointInterval' = '3'", DV)
    for n in range(8):
        table.run(f"INSERT INTO {table.name} SELECT id FROM range({n * 10}, {n * 10 + 10})")
    table.run("DELETE FROM {t} WHERE id % 4 = 0")
    for name in (table.path / "_delta_log").glob("0*[0-5].json"):
        name.unlink()
    assert_every_version_equal(table, first=6)


# --- where files lie ---


def test_shallow_clone_and_its_own_changes(table: Made, tmp_path: Path) -> None:
    source = Made(table.spark, tmp_path / "source äöü %20 #1+2")
    source.create("id INT, p STRING", DV, tail="PARTITIONED BY (p)").run(
        "INSERT INTO {t} SELECT id, CAST(id % 2 AS STRING) || ' %/#?' FROM range(20)", "DELETE FROM {t} WHERE id = 4"
    )
    table.run(
        f"CREATE TABLE {{t}} SHALLOW CLONE {source.name}",
        "DELETE FROM {t} WHERE id = 5",
        "INSERT INTO {t} VALUES (100, 'new')",
        "UPDATE {t} SET id = -id WHERE id = 6",
    )
    assert_every_version_equal(table)
    assert_every_version_equal(source)


PARTITIONS = {
    "b": ("BOOLEAN", ["true", "false"]),
    "y": ("BYTE", ["-128", "127"]),
    "l": ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    "f": ("FLOAT", ["float('NaN')", "float('-Infinity')", "0.1", "-0.0", "1e30"]),
    "d": ("DOUBLE", ["double('Infinity')", "1e-7", "12345678.9", "double('NaN')"]),
    "c": ("DECIMAL(38, 18)", ["-0.000000000000000001", "12345678901234567890.5"]),
    "s": ("STRING", ["'a b'", "''", "'%41+#?&='", "'ü/\\\\:*\"'", "'__HIVE_DEFAULT_PARTITION__x'", "' b'"]),
    "x": ("BINARY", ["X'616263'", "X'C3BC25'"]),
    "a": ("DATE", ["DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1582-10-04'"]),
    "t": (
        "TIMESTAMP",
        [
            "TIMESTAMP '2024-03-10 02:30:00.123456'",
            "TIMESTAMP '1500-01-01 00:00:00'",
            "TIMESTAMP '1969-12-31 23:59:59.999999'",
        ],
    ),
    "n": ("TIMESTAMP_NTZ", ["TIMESTAMP_NTZ '2024-03-10 02:30:00.123'", "TIMESTAMP_NTZ '0001-01-01 00:00:00'"]),
}


@pytest.mark.parametrize("column", PARTITIONS)
def test_partition_values_of_every_type(table: Made, column: str) -> None:
    kind, values = PARTITIONS[column]
    table.create(f"id INT, p {kind}", tail="PARTITIONED BY (p)")
    listed = ", ".join(f"({i}, {v})" for i, v in enumerate([*values, "NULL"]))
    table.run("INSERT INTO {t} VALUES " + listed)
    checkpoint(table)
    assert_every_version_equal(table)
    assert_predicates_equal(table, "p IS NULL", *(f"p {op} {v}" for v in values for op in ("=", "<", ">=")))


@pytest.mark.parametrize("utc", ["true", "false"])
def test_partition_timestamps_written_in_another_zone(table: Made, configured: Any, utc: str) -> None:
    configured(
        spark__sql__session__timeZone="America/Los_Angeles",
        spark__databricks__delta__write__utcTimestampPartitionValues=utc,
    )
    table.create("id INT, p TIMESTAMP", tail="PARTITIONED BY (p)")
    table.run("INSERT INTO {t} VALUES (1, TIMESTAMP '2024-07-01 10:00:00'), (2, TIMESTAMP '2024-11-03 01:30:00.5')")
    zone = "UTC" if utc == "true" else "America/Los_Angeles"
    ours = open_snapshot(str(table.path), timezone=zone)
    assert plain(ours.scan().to_table()) == table.rows()
    found = ours.scan(predicate="p = TIMESTAMP '2024-07-01T10:00:00-07:00'").to_table()
    assert found.column("id").to_pylist() == [1]


# --- data files ---


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_times_of_both_calendars_and_every_physical_type(table: Made, configured: Any, kind: str, mode: str) -> None:
    configured(
        spark__sql__parquet__outputTimestampType=kind,
        spark__sql__parquet__int96RebaseModeInWrite=mode,
        spark__sql__parquet__datetimeRebaseModeInWrite=mode,
    )
    table.create("id INT, t TIMESTAMP, d DATE").run(
        "INSERT INTO {t} VALUES (1, TIMESTAMP '1000-01-01 00:00:00', DATE '1000-01-01'), "
        "(2, TIMESTAMP '2024-01-01 12:34:56.789', DATE '1582-10-04'), "
        "(3, TIMESTAMP '1900-01-01 00:00:00', DATE '0001-01-01')",
        "INSERT INTO {t} VALUES (4, TIMESTAMP '9999-12-31 23:59:59.999', DATE '9999-12-31')",
    )
    assert_every_version_equal(table)
    assert_predicates_equal(
        table,
        "t < '1500-01-01'",
        "t > '9000-01-01'",
        "d = '1000-01-01'",
        "d < '0500-01-01'",
        "t = '2024-01-01 12:34:56.789'",
    )


def test_skipping_keeps_every_row(table: Made) -> None:
    table.create("i INT, f FLOAT, d DOUBLE, s STRING, t TIMESTAMP, c DECIMAL(10, 3), b BOOLEAN, n STRUCT<x: INT>")
    for n in range(6):
        table.run(
            f"INSERT INTO {table.name} SELECT id, CASE WHEN id % 7 = 0 THEN NULL ELSE float(id / 10) END, "
            f"CASE WHEN id % 9 = 0 THEN double('NaN') ELSE id / 3 END, "
            f"repeat(char(97 + id % 5), 30 + id % 5) || char(8364 + id), timestamp_micros(id * 1234567891L), "
            f"CAST(id / 7 AS DECIMAL(10, 3)), id % 2 = 0, CASE WHEN id % 3 = 0 THEN NULL ELSE struct(id) END "
            f"FROM range({n * 8}, {n * 8 + 8})"
        )
    columns = {
        "i": ["7", "8", "100", "NULL"],
        "f": ["0.1", "0.7D", "2.3", "double('NaN')"],
        "d": ["double('NaN')", "5.0", "1/3"],
        "s": ["repeat('c', 32)", "repeat('a', 30) || char(8364)", "''"],
        "t": ["timestamp_micros(8 * 1234567891L)", "TIMESTAMP '1970-01-01 03:05:11.111'"],
        "c": ["1.143", "1.1429", "2"],
        "b": ["true"],
        "n.x": ["4", "NULL"],
    }
    for column, values in columns.items():
        tests = [f"{column} {op} {v}" for op in ("=", "<", ">=", "!=", "<=>") for v in values]
        tests += [f"NOT ({t})" for t in tests[::2]]
        assert_predicates_equal(table, *tests, f"{column} IS NULL", f"{column} IN ({', '.join(values)})")
