"""What `test_drop_in` runs in a process of its own: a session whose format delta is delta_core's."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import delta_core.spark as ds
from delta_core import DeltaTable, open_table
from delta_core.errors import (
    ConstraintViolationError,
    DeltaError,
    EngineError,
    InvalidArgumentError,
    SchemaMismatchError,
    StreamRestartError,
    StreamSchemaError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from tests.docs.blocks import ROOT, blocks, run_python
from tests.example_counts import chosen
from tests.spark.points import frames


def session(folder: str, **settings: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR")
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    return ds.configure(builder).config("spark.sql.session.timeZone", "UTC").getOrCreate()


def rows(frame: Any) -> list[int]:
    return sorted(r.id for r in frame.select("id").collect())


def check(spark: Any, folder: Path) -> None:
    path = str(folder / "plain")
    made = spark.range(10).selectExpr("id", "id % 2 AS p")
    made.write.format("delta").partitionBy("p").save(path)
    assert DeltaTable(path).metadata().partition_columns == ["p"]
    with pytest.raises(TableExistsError):
        made.write.format("delta").save(path)
    made.write.format("delta").mode("ignore").save(path)
    made.write.format("delta").mode("append").save(path)
    made.where("p = 1").write.format("delta").mode("overwrite").option("replaceWhere", "p = 1").save(path)
    assert rows(spark.read.format("delta").load(path)) == sorted([*range(0, 10, 2)] * 2 + [*range(1, 10, 2)])
    assert rows(spark.read.format("delta").option("versionAsOf", 0).load(path)) == [*range(10)]
    assert rows(
        spark.sql(f"SELECT a.id FROM delta.`{path}` a JOIN delta.`{path}` b ON a.id = b.id WHERE a.id = 3")
    ) == [3]
    plan = (
        spark.read.format("delta").load(path).where("id = 3 AND p = 1")._jdf.queryExecution().executedPlan().toString()
    )
    assert "Python" not in plan
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,3)]" in plan, plan

    # features: vectors, column mapping, constraints
    path = str(folder / "features")
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    ds.write(spark.range(10).selectExpr("id", "id AS v"), path, properties=properties)
    DeltaTable(path).delete("id < 3")
    assert rows(spark.read.format("delta").load(path)) == [*range(3, 10)]
    DeltaTable(path).alter.add_constraint({"small": "id < 100"})
    with pytest.raises(ConstraintViolationError):
        spark.range(200, 201).selectExpr("id", "id AS v").write.format("delta").mode("append").save(path)
    more = spark.range(10, 11).selectExpr("id", "id AS v", "id AS w")
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    assert spark.read.format("delta").load(path).where("w = 10").count() == 1

    assert rows(spark.sql(f"SELECT id FROM delta.`{path}` WITH (versionAsOf = 0)")) == [*range(10)]
    assert rows(spark.sql(f"SELECT id FROM delta.`{path}` VERSION AS OF 0")) == [*range(10)]
    with pytest.raises(DeltaError, match="is after the last commit"):
        spark.sql(f"SELECT id FROM delta.`{path}` TIMESTAMP AS OF current_timestamp()")
    spark.sql(f"CREATE TEMPORARY VIEW v USING delta OPTIONS (path '{path}')")
    assert rows(spark.table("v")) == [*range(3, 11)]
    before = DeltaTable(path).version()
    assert rows(spark.read.format("delta").option("nope", "true").load(path)) == [*range(3, 11)]
    with pytest.raises(DeltaError):
        spark.read.format("delta").load(str(folder / "none"))
    assert DeltaTable(path).version() == before


def found(spark: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.table(name).collect()))


def history(spark: Any, name: str) -> list[str]:
    return [row.operation for row in spark.sql(f"DESCRIBE HISTORY {name}").collect()]


def check_statements(spark: Any) -> None:
    spark.sql(
        "CREATE TABLE t (id BIGINT, p STRING COMMENT 'part', x DOUBLE) USING delta PARTITIONED BY (p) COMMENT 'all' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql("INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5), (3, 'b', NULL)")
    spark.sql("INSERT INTO t (x, id, p) VALUES (4.5, 4, 'c')")
    spark.sql("INSERT INTO t PARTITION (p = 'd') (id, x) VALUES (5, 5.5)")
    spark.sql("INSERT INTO t BY NAME SELECT 6L AS id, 'e' AS p")
    spark.sql("WITH w AS (SELECT 50L, 50.5D) INSERT OVERWRITE t PARTITION (p = 'd') SELECT * FROM w")
    first = [(1, "a", 1.5), (2, "b", 2.5), (3, "b", None)]
    assert found(spark, "t") == [*first, (4, "c", 4.5), (6, "e", None), (50, "d", 50.5)]
    explained = (
        "DELETE FROM t",
        "INSERT INTO t VALUES (1, 'a', 1D)",
        "UPDATE t SET x = 0",
        "CREATE TABLE n USING delta AS SELECT 1 AS a",
    )
    for statement in explained:
        assert "DeltaStatement" in spark.sql(f"EXPLAIN {statement}").first()[0]
    if spark.version < "4.2":
        deleted = spark.sql("DELETE FROM t WHERE id = 50")
    else:  # earlier versions may leave parameters in the plan, and scripts off
        deleted = spark.sql("DELETE FROM t WHERE id = :n", {"n": 50})
        spark.sql("BEGIN INSERT INTO t VALUES (60, 'y', 0); DELETE FROM t WHERE id > 50; END")
    assert deleted.collect()[0].num_affected_rows == 1
    result = spark.sql("UPDATE default.t AS u SET u.x = u.x + 1 WHERE p = 'b'")
    assert [result.count(), result.first()[0], result.first()[0]] == [1, 2, 2]
    merged = spark.sql(
        "MERGE INTO t USING (SELECT id + 1 AS id, 'z' AS p, 9D AS x FROM t WHERE id IN (1, 6)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT *"
    )
    assert tuple(merged.first()) == (2, 1, 0, 1)
    assert found(spark, "t") == [
        (1, "a", 1.5),
        (2, "b", 9.0),
        (3, "b", None),
        (4, "c", 4.5),
        (6, "e", None),
        (7, "z", 9.0),
    ]
    done = [operation for operation in history(spark, "t") if operation != "DELETE"]
    assert done == ["MERGE", "UPDATE", *["WRITE"] * (5 if spark.version < "4.2" else 6), "CREATE TABLE"]
    assert found_in(spark, "SELECT * FROM t VERSION AS OF 1") == first
    assert "Python" not in spark.table("t").where("x > 1")._jdf.queryExecution().executedPlan().toString()
    spark.sql("FROM t INSERT INTO t SELECT id + 10, p, x WHERE id = 1 INSERT INTO t SELECT id + 20, p, x WHERE id = 1")
    spark.sql("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id > 20'")
    assert [r[0] for r in found(spark, "t")] == [1, 2, 3, 4, 6, 7, 11]

    assert spark.sql("OPTIMIZE t").first().metrics.numFilesRemoved > 0
    assert spark.sql("/* files */ VACUUM t DRY RUN").columns == ["path"]
    spark.sql("RESTORE t TO VERSION AS OF 1")
    spark.sql("ALTER TABLE t ADD COLUMNS (y INT COMMENT 'why')")
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('a.b' = 'c')")
    assert ("y", "int", "why") in found_in(spark, "DESCRIBE TABLE t", key=str)
    assert ("a.b", "c") in found_in(spark, "SHOW TBLPROPERTIES t")
    assert spark.sql("SHOW CREATE TABLE t").first().createtab_stmt.startswith("CREATE TABLE spark_catalog.default.t (")
    with pytest.raises(UnsupportedOperationError, match=r"SHOW CREATE TABLE is not possible for .*AS SERDE"):
        spark.sql("SHOW CREATE TABLE t AS SERDE")
    assert [c.name for c in spark.catalog.listColumns("t") if c.isPartition] == ["p"]
    spark.sql("ALTER TABLE t RENAME TO renamed")
    spark.sql("CACHE TABLE renamed")
    spark.sql("TRUNCATE TABLE renamed")
    spark.sql("REFRESH TABLE renamed")
    spark.catalog.refreshTable("renamed")
    assert spark.table("renamed").count() == 0
    place = Path(spark.sql("DESCRIBE DETAIL renamed").first().location.removeprefix("file://"))
    assert place.is_dir()
    spark.sql("DROP TABLE renamed")
    assert not place.exists()


def found_in(spark: Any, text: str, key: Any = None) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(text).collect()), key=key)


#: Conditions in forms of their own in SQL.
SYNTAX = r"""
s LIKE ANY ('a%','b%')
s LIKE ALL ('a%','%b')
s NOT LIKE ANY ('x%','y%')
s NOT LIKE ALL ('x%','y%')
s LIKE SOME ('a%')
s ILIKE ANY ('A%','B%')
s NOT ILIKE ALL ('X%')
(s) LIKE ANY ('a%', 'b')
upper(s) LIKE ANY ('A%')
id = 1 AND s LIKE ANY ('a%','b%')
s LIKE ANY ('a%','b%') AND id = 1
NOT s LIKE ANY ('x%')
(s LIKE ANY ('a%')) = true
id BETWEEN 1 AND 2
id NOT BETWEEN 3 AND 4
s IS DISTINCT FROM 'x'
s IS NOT DISTINCT FROM 'a,b'
(id = 1) IS TRUE
(id = 2) IS NOT TRUE
(id = 2) IS FALSE
(id > 0) IS NOT UNKNOWN
TRIM(LEADING 'a' FROM s) = ',b'
TRIM(BOTH FROM s) = 'a,b'
POSITION('b' IN s) = 3
EXTRACT(YEAR FROM d) = 2024
SUBSTRING(s FROM 1 FOR 1) = 'a'
OVERLAY(s PLACING 'x' FROM 1) = 'x,b'
CASE WHEN id = 1 THEN true ELSE false END
CASE id WHEN 1 THEN 'y' END = 'y'
CAST(id AS STRING) = '1'
id::string = '1'
s || 'c' = 'a,bc'
id <=> 1
id == 1
!(id = 2)
(id | 2) = 3
(id & 1) = 1
(id ^ 2) = 3
~id = -2
id << 1 = 2
a[0] = 3
m['k'] = 1
st.x = 1
exists(a, x -> x = 3)
d = DATE'2024-01-31'
d + INTERVAL 1 DAY = DATE'2024-02-01'
d + INTERVAL '1-2' YEAR TO MONTH > d
TIMESTAMPADD(DAY, 1, ts) > ts
DATEDIFF(DAY, d, DATE'2024-02-01') = 1
id IN (1, 2)
id NOT IN (2, 3)
s RLIKE 'a'
s REGEXP 'a'
s LIKE 'a/_%' ESCAPE '/' OR id = 1
id DIV 1 = 1
id % 2 = 1
s IS NOT NULL
(id, s) = (1, 'a,b')
(id, s) IN ((1, 'a,b'))
named_struct('a', id).a = 1
struct(id, s).s = 'a,b'
`id` = 1
-id = -1
+id = 1
s COLLATE UTF8_LCASE = 'A,B'
if(id = 1, true, false)
id = 1.0
id = 1e0
id = 1BD
s = "a,b"
s = r'a,b'
CEIL(1.5, 0) = 2 AND id = 1
current_date() > d
CURRENT_DATE > d
TRY_CAST(s AS INT) IS NULL
d = '2024-01-31'
s NOT RLIKE 'zz'
CHAR_LENGTH(s) = 3
LEFT(s, 1) = 'a'
NULLIF(id, 2) = 1
id /* c */ = 1
TRIM(TRAILING 'b' FROM s) = 'a,'
TRIM('a' FROM s) = ',b'
LTRIM('a', s) = ',b'
RTRIM('b', s) = 'a,'
BTRIM(s, 'ab') = ','
SUBSTR(s, 1, 1) = 'a'
EXTRACT(DAY FROM d) = 31
EXTRACT(DAYOFWEEK FROM d) = 4
DATE_PART('year', d) = 2024
TIMESTAMPDIFF(DAY, ts, ts + INTERVAL 2 DAYS) = 2
s LIKE '%,%' AND s NOT LIKE 'z%'
LOCATE('b', s) = 3
INSTR(s, 'b') = 3
s = 'a' || ',' || 'b'
COALESCE(NULL, s) = 'a,b'
GREATEST(id, 5) = 5
DECODE(id, 1, 'x', 'y') = 'x'
NVL2(s, 1, 2) = id
"""
#: Those that each run tries; the long form tries all.
FEW = (
    "LIKE ANY",
    "LIKE ALL",
    "TRIM(",
    "POSITION",
    "OVERLAY",
    "IS TRUE",
    "EXTRACT(YEAR",
    "TIMESTAMPADD",
    "RLIKE",
    "(id, s)",
)


def check_syntax(spark: Any) -> None:
    """A change by a condition finds the rows that a query finds."""
    spark.sql(
        "CREATE TABLE forms (id INT, s STRING, a ARRAY<INT>, m MAP<STRING, INT>, st STRUCT<x: INT, y: STRING>, d DATE, "
        "ts TIMESTAMP, r BOOLEAN) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(
        "INSERT INTO forms VALUES (1, 'a,b', array(3, 1), map('k', 1), named_struct('x', 1, 'y', 'q'), "
        "DATE'2024-01-31', TIMESTAMP'2024-01-31 10:00:00', NULL), (9, 'zz', array(0, 0), map('k', 0), "
        "named_struct('x', 0, 'y', '0'), DATE'2999-01-31', TIMESTAMP'2999-01-31 10:00:00', NULL)"
    )
    every = SYNTAX.strip().splitlines()
    for condition in chosen(every, [c for c in every if any(word in c for word in FEW)]):
        wanted = {tuple(r) for r in spark.sql(f"SELECT id, {condition} FROM forms WHERE {condition}").collect()}
        changed = spark.sql(f"UPDATE forms SET r = ({condition}) WHERE {condition}").first()[0]
        made = {tuple(r) for r in spark.sql("SELECT id, r FROM forms WHERE r IS NOT NULL").collect()}
        assert (changed, made) == (len(wanted), wanted), condition
        spark.sql("UPDATE forms SET r = NULL")


DEFINITIONS = """
(id BIGINT NOT NULL COMMENT 'key', p STRING, v VARCHAR(3), c CHAR(2)) USING delta PARTITIONED BY (p) COMMENT "it's"
    TBLPROPERTIES ('a' = 'b', 'delta.appendOnly' = 'true');
(id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), k BIGINT GENERATED BY DEFAULT AS IDENTITY,
    d INT DEFAULT 3, g INT GENERATED ALWAYS AS (d + 1) COMMENT 'x')
    USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
(id BIGINT, p INT) USING delta CLUSTER BY (p, id);
(s STRUCT<a: INT NOT NULL COMMENT "it's", b: ARRAY<VARCHAR(4)>,
    m: MAP<STRING, STRUCT<x: DECIMAL(10,2), y: CHAR(3) NOT NULL>>>, t TIMESTAMP_NTZ) USING delta;
(`a b` INT, `x.y` STRUCT<`p q`: INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
(id BIGINT, v BINARY) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.checkpointPolicy' = 'v2',
    'delta.enableDeletionVectors' = 'true', 'delta.enableInCommitTimestamps' = 'true')
"""


def definition(path: Path) -> list[Any]:
    """Return all of a table's definition but names that are made at random."""
    table = DeltaTable(str(path))
    metadata, protocol = table.metadata(), table.protocol()
    texts = [table.schema().to_json(), json.dumps(metadata.configuration, sort_keys=True)]
    known = [re.sub(r"(col|_row-id-col|_row-commit-version-col)-[0-9a-f-]+", "made", text) for text in texts]
    return [*known, metadata.partition_columns, metadata.description, protocol]


def check_created_again(spark: Any, folder: Path) -> None:
    """What SHOW CREATE TABLE prints makes the same table."""
    for number, text in enumerate(DEFINITIONS.split(";")):
        name, place = f"shown{number}", folder / "warehouse" / f"shown{number}"
        spark.sql(f"CREATE TABLE {name} {text}")
        statement, expected = spark.sql(f"SHOW CREATE TABLE {name}").first().createtab_stmt, definition(place)
        spark.sql(f"DROP TABLE {name}")
        assert not place.exists()
        spark.sql(statement)
        assert definition(place) == expected, statement
    spark.sql("ALTER TABLE shown2 ADD CONSTRAINT positive CHECK (id > 0)")
    shown = spark.sql("SHOW CREATE TABLE shown2").first().createtab_stmt
    assert shown.endswith(";\nALTER TABLE spark_catalog.default.shown2 ADD CONSTRAINT `positive` CHECK (id > 0)\n")
    path = str(folder / "a b")
    spark.sql(f"CREATE TABLE shown_at (id INT) USING delta LOCATION '{path}'")
    assert f"\nLOCATION '{path}'\n" in spark.sql("SHOW CREATE TABLE shown_at").first().createtab_stmt
    statement = spark.sql("SHOW CREATE TABLE shown_at").first().createtab_stmt
    spark.sql("DROP TABLE shown_at")
    spark.sql(statement)
    text = spark.sql(f"SHOW CREATE TABLE delta.`{path}`").first().createtab_stmt
    assert text.startswith(f"CREATE TABLE delta.`{path}` (\n  `id` INT)\n")
    alter = DeltaTable(path).alter
    alter.set_column_metadata("id", {"own": "v"})
    with pytest.raises(UnsupportedOperationError, match="column id has the metadata 'own'"):
        spark.sql("SHOW CREATE TABLE shown_at")


def check_places(spark: Any, folder: Path) -> None:
    """A new table is not made among files, which DROP TABLE might delete; rows may replace what is there."""
    spark.sql("CREATE TABLE of_places (id BIGINT) USING delta")
    table, two = ds.DeltaTable, spark.range(2)
    ways: dict[str, Callable[[str, str], Any]] = {
        "create": lambda n, at: spark.sql(f"CREATE TABLE {n} (id BIGINT) USING delta {at}"),
        "if_not_exists": lambda n, at: spark.sql(f"CREATE TABLE IF NOT EXISTS {n} (id BIGINT) USING delta {at}"),
        "replace": lambda n, at: spark.sql(f"CREATE OR REPLACE TABLE {n} (id BIGINT) USING delta {at}"),
        "select": lambda n, at: spark.sql(f"CREATE TABLE {n} USING delta {at} AS SELECT 1L AS id"),
        "like": lambda n, at: spark.sql(f"CREATE TABLE {n} LIKE of_places {at}"),
        "clone": lambda n, at: spark.sql(f"CREATE TABLE {n} SHALLOW CLONE of_places {at}"),
        "clone_if": lambda n, at: spark.sql(f"CREATE TABLE IF NOT EXISTS {n} SHALLOW CLONE of_places {at}"),
    }
    named: dict[str, Callable[[str], Any]] = {
        "clone_over": lambda n: spark.sql(f"CREATE OR REPLACE TABLE {n} SHALLOW CLONE of_places"),
        "builder": lambda n: table.create(spark).tableName(n).addColumn("id", "BIGINT").execute(),
        "builder_options": lambda n: (
            table.create(spark, storage_options={}).tableName(n).addColumn("id", "BIGINT").execute()
        ),
        "builder_if": lambda n: table.createIfNotExists(spark).tableName(n).addColumn("id", "BIGINT").execute(),
        "builder_over": lambda n: table.createOrReplace(spark).tableName(n).addColumn("id", "BIGINT").execute(),
        "write_to": lambda n: two.writeTo(n).using("delta").create(),
        "save": lambda n: two.write.format("delta").saveAsTable(n),
    }
    over: dict[str, Callable[[str], Any]] = {
        "select_over": lambda n: spark.sql(f"CREATE OR REPLACE TABLE {n} USING delta AS SELECT id FROM range(2)"),
        "save_over": lambda n: two.write.format("delta").mode("overwrite").saveAsTable(n),
        "write_to_over": lambda n: two.writeTo(n).using("delta").createOrReplace(),
    }

    def taken(place: Path, kind: str) -> None:
        if kind == "table":
            spark.range(3).write.format("delta").save(str(place))
        else:
            place.mkdir(parents=True)
            (place / "own.txt").write_text("x")

    def rejects(make: Callable[[], Any], place: Path) -> None:
        with pytest.raises(TableExistsError, match="is not empty"):
            make()
        assert not spark.catalog.tableExists(place.name)
        assert place.joinpath("own.txt").exists() or DeltaTable(str(place)).version() == 0

    for kind in ("table", "file"):
        for way, make in {**{w: lambda n, f=f: f(n, "") for w, f in ways.items()}, **named}.items():
            place = folder / "warehouse" / f"at_{kind}_{way}"
            taken(place, kind)
            if (kind, way) == ("file", "clone_over"):
                make(place.name)
                assert spark.table(place.name).count() == 0
            else:
                rejects(lambda make=make, n=place.name: make(n), place)
        for way, make in over.items():
            taken(folder / "warehouse" / f"at_{kind}_{way}", kind)
            make(f"at_{kind}_{way}")
            assert found(spark, f"at_{kind}_{way}") == [(0,), (1,)]
    for way, make_at in ways.items():
        place = folder / f"placed_{way}"
        taken(place, "file")
        rejects(lambda f=make_at, n=place.name, p=place: f(n, f"LOCATION '{p}'"), place)
        if way != "like":
            rejects(lambda f=make_at, p=place: f(f"delta.`{p}`", ""), place)
    rejects(lambda: table.create(spark).location(str(place)).addColumn("id", "BIGINT").execute(), place)
    with pytest.raises(TableNotFoundError):
        table.replace(spark).tableName("at_table_create").addColumn("id", "BIGINT").execute()
    # a first write that was stopped leaves this
    (folder / "warehouse/at_log/_delta_log").mkdir(parents=True)
    two.write.format("delta").saveAsTable("at_log")
    assert spark.table("at_log").count() == 2


def check_other_kinds(spark: Any, folder: Path) -> None:
    """Names of tables of other formats, and of views."""
    spark.sql("CREATE TABLE kind_other (id INT) USING parquet")
    makes = {"kind_parquet": "CREATE TABLE {} (id INT) USING parquet", "kind_view": "CREATE VIEW {} AS SELECT 1 x"}
    for name, make in makes.items():
        spark.sql(make.format(name))
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (z INT) USING delta")
        assert spark.table(name).columns != ["z"]
        with pytest.raises(TableExistsError, match="another kind of table"):
            spark.sql(f"CREATE OR REPLACE TABLE {name} (z INT) USING delta")
        writer = spark.range(4).selectExpr("id", "id % 2 AS p").write.format("delta").mode("overwrite")
        writer = writer.partitionBy("p").option("delta.appendOnly", "false")
        if not spark.version.startswith(("4.0.", "4.1.", "4.2.")):
            # Spark drops the other table there after the new one is accepted, and no delta-spark is there yet
            with pytest.raises(TableExistsError, match="another kind of table"):
                writer.saveAsTable(name)
            spark.sql(f"DROP {'VIEW' if name == 'kind_view' else 'TABLE'} {name}")
        writer.saveAsTable(name)
        assert found(spark, name) == [(0, 0), (1, 1), (2, 0), (3, 1)]
        detail = spark.sql(f"DESCRIBE DETAIL {name}").first()
        assert (detail.format, detail.partitionColumns, dict(detail.properties)["delta.appendOnly"]) == (
            "delta", ["p"], "false"
        )  # fmt: skip
    with pytest.raises(AnalysisException):
        spark.range(1).write.format("delta").mode("append").saveAsTable("kind_other")
    assert spark.table("kind_other").count() == 0
    spark.sql("DROP TABLE kind_other")
    if spark.version.startswith(("4.0.", "4.1.", "4.2.")):
        spark.sql("CREATE TABLE kind_other (id INT) USING parquet")
    place = folder / "kinds" / "a b%20c"
    spark.range(2).write.format("delta").mode("overwrite").option("path", str(place)).saveAsTable("kind_other")
    assert [p.name for p in place.parent.iterdir()] == [place.name]
    assert DeltaTable(str(place)).count() == 2
    spark.range(9).createOrReplaceTempView("kind_view")
    with pytest.raises(TableNotFoundError, match="is a view"):
        ds.DeltaTable.forName(spark, "kind_view")
    assert ds.DeltaTable.forName(spark, "default.kind_view").toDF().count() == 4
    spark.catalog.dropTempView("kind_view")


def check_names_with_blanks(spark: Any) -> None:
    """Columns with blanks are assigned by their names, in statements and calls, quoted or not, as in delta-spark."""
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    spark.sql(f"CREATE TABLE blanks (id INT, `a b` INT, s STRUCT<`x y`: INT>) USING delta {mapped}")
    spark.sql("INSERT INTO blanks VALUES (1, 2, struct(3))")
    spark.sql("UPDATE blanks SET `a b` = `a b` + s.`x y`, s.`x y` = 4")
    assert found(spark, "blanks") == [(1, 5, (4,))]
    blanks = ds.DeltaTable.forName(spark, "blanks")
    for name in ("a b", "`a b`"):
        blanks.update(set={name: f"`a b` + {len(name)}"})
    for name in ("s.x y", "s.`x y`"):
        blanks.update(set={name: "s.`x y` * 2"})
    source = spark.sql("SELECT 1 AS id, 7 AS `a b`").alias("s")
    blanks.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"a b": "s.`a b` + t.`a b`"}).execute()
    assert found(spark, "blanks") == [(1, 20, (16,))]


def check_fields_of_structs(spark: Any) -> None:
    """Fields in another order match by name where nothing has to be cast, and by their places elsewhere."""
    query, expected = "SELECT named_struct('y', 2, 'x', 1) AS s, 1 AS b", (1, 2)

    def written(write: Any, columns: str = "s STRUCT<x: INT, y: INT>, b INT") -> Any:
        spark.sql(f"CREATE OR REPLACE TABLE structs ({columns}) USING delta")
        write()
        [row] = spark.table("structs").collect()
        return row.s

    def insert(text: str) -> Any:
        return lambda: spark.sql(f"INSERT {text}")

    frame = spark.sql(query)
    for write in (
        insert(f"INTO structs {query}"), insert(f"OVERWRITE structs {query}"),
        insert(f"INTO structs REPLACE WHERE b = 1 {query}"), lambda: frame.write.insertInto("structs"),
        lambda: frame.write.insertInto("structs", overwrite=True), lambda: frame.writeTo("structs").append(),
        lambda: frame.write.format("delta").mode("append").saveAsTable("structs"),
    ):  # fmt: skip
        assert written(write) == expected
    for text in (
        "INTO structs SELECT named_struct('y', 2, 'x', 1) AS s, 1 AS c", "INTO structs (s, b) " + query,
        "INTO structs (b, s) SELECT 1 AS b, named_struct('y', 2, 'x', 1) AS s",
        "INTO structs " + query.replace("'x'", "'X'"),
        "INTO structs (s) SELECT named_struct('y', 2, 'x', 1) AS s",
    ):  # fmt: skip
        assert written(insert(text)) == (2, 1)
    assert written(insert(f"INTO structs {query}"), "s STRUCT<x: BIGINT, y: INT>, b INT") == (2, 1)  # it has to be cast
    listed = query.replace("named_struct", "array(named_struct").replace("1) AS s", "1)) AS s")
    for text in (f"INTO structs {listed}", f"INTO structs (s, b) {listed}"):
        assert written(insert(text), "s ARRAY<STRUCT<x: INT, y: INT>>, b INT") == [expected]
    nested = "SELECT named_struct('z', 3, 'i', named_struct('y', 2, 'x', 1)) AS s, 1 AS b"
    columns = "s STRUCT<i: STRUCT<x: INT, y: INT>, z: INT>, b INT"
    assert written(insert(f"INTO structs {nested}"), columns) == (expected, 3)
    with pytest.raises(AnalysisException, match=r"Found INT for s\.i") as rejected:
        written(insert(f"INTO structs (s, b) {nested}"), columns)
    assert rejected.value.getCondition() == "DELTA_COLUMN_STRUCT_TYPE_MISMATCH"
    with pytest.raises(AnalysisException):  # no field is left out
        written(insert("INTO structs (s) SELECT named_struct('y', 2, 'x', 1, 'w', 7) AS s"))


def check_wider_types(spark: Any) -> None:
    """Writes that merge schemas widen columns, and parts of them, and cast the others."""
    columns = "a INT, f FLOAT, d DECIMAL(5, 2), s STRUCT<x: SMALLINT>, dt DATE, arr ARRAY<INT>"
    widened = {
        "5000000000L AS a": ("a", "bigint", 5000000000),
        "1.1D AS f": ("f", "double", 1.1),
        "timestamp_ntz'2020-01-01 10:00:00' AS dt": ("dt", "timestamp_ntz", datetime(2020, 1, 1, 10)),
        "named_struct('x', 100000) AS s": ("s", "struct<x:int>", (100000,)),
        "array(5L) AS arr": ("arr", "array<bigint>", [5]),
        "123456.789BD AS d": ("d", "decimal(9,3)", Decimal("123456.789")),
        "named_struct('x', 5L, 'n', 1) AS s": ("s", "struct<x:bigint,n:int>", (5, 1)),
        "5L AS a, '8' AS f": ("a", "bigint", 5),
    }
    for query, (name, kind, value) in widened.items():
        for is_named in (True, False):
            spark.sql(
                f"CREATE OR REPLACE TABLE wide ({columns}) USING delta TBLPROPERTIES ("
                "'delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')"
            )
            frame = spark.sql(f"SELECT {query}")
            if is_named:
                frame.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("wide")
            else:
                frame.writeTo("wide").option("mergeSchema", "true").append()
            found = spark.table("wide")
            assert dict(found.dtypes)[name] == kind
            assert found.first()[name] == value


def check_tables(spark: Any, folder: Path) -> None:
    """The results are those of delta-spark."""
    made = spark.range(4).selectExpr("id", "id % 2 AS p")
    four = [(0, 0), (1, 1), (2, 0), (3, 1)]
    made.write.format("delta").partitionBy("p").saveAsTable("s")
    with pytest.raises(TableExistsError):
        made.write.format("delta").saveAsTable("s")
    made.write.format("delta").mode("ignore").saveAsTable("s")
    assert found(spark, "s") == four
    made.selectExpr("p", "id").write.format("delta").mode("append").saveAsTable("s")
    assert found(spark, "s") == sorted(four * 2)
    more = made.selectExpr("id", "p", "1 AS q").write.format("delta").mode("append")
    with pytest.raises(SchemaMismatchError, match="'q'"):
        more.saveAsTable("s")
    made.select("id").write.format("delta").mode("append").saveAsTable("s")
    more.option("mergeSchema", "true").saveAsTable("s")
    assert spark.table("s").where("q IS NULL").count() == 12
    made.write.format("delta").mode("overwrite").saveAsTable("s")
    assert spark.table("s").columns == ["id", "p", "q"]
    assert spark.table("s").count() == 4
    changed = made.selectExpr("id", "2 AS r").write.format("delta").mode("overwrite")
    with pytest.raises(SchemaMismatchError):
        changed.saveAsTable("s")
    changed.option("overwriteSchema", "true").saveAsTable("s")
    assert spark.sql("DESCRIBE DETAIL s").first().partitionColumns == []
    made.selectExpr("p AS x", "int(id)").write.mode("append").insertInto("s")
    assert spark.table("s").where("r = 3").count() == 1
    made.selectExpr("id", "7").write.mode("overwrite").insertInto("s")
    assert found(spark, "s") == [(n, 7) for n in range(4)]
    with pytest.raises(SchemaMismatchError):
        made.select("id").write.mode("append").insertInto("s")

    path = str(folder / "external")
    made.write.format("delta").option("path", path).saveAsTable("e")
    spark.sql("DROP TABLE e")
    assert DeltaTable(path).count() == 4
    with pytest.raises(TableExistsError):
        made.write.format("delta").mode("append").option("path", path).saveAsTable("e")
    made.write.format("delta").mode("overwrite").option("path", path).saveAsTable("e")
    assert DeltaTable(path).version() == 1
    spark.sql(f"CREATE TABLE named (id BIGINT, p BIGINT) USING delta LOCATION '{path}'")
    assert found(spark, "named") == four
    for columns, clause in (
        ("(id INT, p BIGINT)", ""),
        ("(id BIGINT, p BIGINT)", "PARTITIONED BY (p)"),
        ("", "TBLPROPERTIES ('x' = 'y')"),
    ):
        with pytest.raises(InvalidArgumentError, match="another definition"):
            spark.sql(f"CREATE TABLE other {columns} USING delta {clause} LOCATION '{path}'")

    made.writeTo("w").using("delta").partitionedBy("p").create()
    made.where("p = 1").writeTo("w").append()
    made.where("id = 1").writeTo("w").overwrite(F.col("p") == 1)
    assert found(spark, "w") == [(0, 0), (1, 1), (2, 0)]
    made.where("id = 2").writeTo("w").overwritePartitions()
    assert found(spark, "w") == [(1, 1), (2, 0)]
    made.writeTo("w").using("delta").tableProperty("k", "v").createOrReplace()
    detail = spark.sql("DESCRIBE DETAIL w").first()
    assert (detail.properties, detail.partitionColumns) == ({"k": "v"}, [])
    spark.sql("CREATE OR REPLACE TABLE w USING delta CLUSTER BY (id) AS SELECT id FROM w UNION ALL SELECT 9")
    assert found(spark, "w") == [(n,) for n in (0, 1, 2, 3, 9)]
    detail = spark.sql("DESCRIBE DETAIL w").first()
    assert ("k" in detail.properties, detail.clusteringColumns) == (False, ["id"])
    spark.sql("CREATE TABLE IF NOT EXISTS w USING delta AS SELECT 1 AS other")
    spark.sql("CREATE OR REPLACE TABLE w (a INT NOT NULL, b STRING) USING delta")
    assert found(spark, "w") == []
    with pytest.raises(TableNotFoundError):
        spark.sql("REPLACE TABLE nothing USING delta AS SELECT 1 AS a")
    spark.sql(
        "CREATE TABLE g (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT, b INT GENERATED ALWAYS AS (a + 1), "
        "c VARCHAR(3), d INT DEFAULT 7) USING delta"
    )
    spark.sql("INSERT INTO g (a, c) VALUES (1, 'x')")
    assert found(spark, "g") == [(1, 1, 2, "x", 7)]
    with pytest.raises(ConstraintViolationError):
        spark.sql("INSERT INTO g (a, c) VALUES (1, 'long')")
    spark.sql(f"CREATE TABLE delta.`{folder}/path` (id INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{folder}/path` VALUES (1)")
    assert spark.sql(f"DELETE FROM delta.`{folder}/path` AS x WHERE x.id = 1").first()[0] == 1


def check_names(spark: Any) -> None:
    spark.sql("CREATE TABLE n USING delta AS SELECT 1 AS id")
    spark.sql("CREATE VIEW seen AS SELECT * FROM n")
    spark.sql("CREATE DATABASE other")
    spark.sql("USE other")
    spark.sql("CREATE TABLE n USING delta AS SELECT 2 AS id")
    spark.sql("INSERT INTO default.n VALUES (3)")
    assert rows(spark.table("default.seen")) == [1, 3]
    assert rows(spark.table("n")) == [2]
    assert rows(spark.table("spark_catalog.other.n")) == [2]
    spark.sql("USE default")
    spark.sql("DROP DATABASE other CASCADE")
    assert rows(spark.sql("WITH n AS (SELECT 5 AS id) SELECT * FROM n")) == [5]
    assert rows(spark.newSession().sql("SELECT * FROM IDENTIFIER('n')")) == [1, 3]
    assert rows(spark.read.option("versionAsOf", 0).table("n")) == [1]
    spark.range(1).createOrReplaceTempView("n")
    for statement in ("INSERT INTO n VALUES (1)", "DELETE FROM n"):
        with pytest.raises(Exception, match=r"table|relation"):
            spark.sql(statement)
    spark.catalog.dropTempView("n")
    assert rows(spark.table("n")) == [1, 3]
    # other formats are as without
    spark.sql("CREATE TABLE parquet_table (a INT) USING parquet")
    spark.sql("ALTER TABLE parquet_table ADD COLUMNS (b INT)")
    spark.sql("CREATE TABLE copied LIKE parquet_table")
    spark.sql("INSERT INTO copied VALUES (1, 2)")
    spark.sql("TRUNCATE TABLE copied")
    spark.range(2).write.mode("overwrite").saveAsTable("copied")
    assert spark.table("copied").count() == 2


def check_rejected(spark: Any) -> None:
    before = history(spark, "n")
    spark.sql("CREATE TEMPORARY VIEW of_n AS SELECT id + 1 AS id FROM n")
    merge = "MERGE INTO of_n USING (SELECT 1 AS id) s ON of_n.id = s.id WHEN MATCHED THEN DELETE"
    for statement in ("DELETE FROM of_n WHERE id = 1", "UPDATE of_n SET id = 1", merge, "DELETE FROM seen"):
        with pytest.raises(UnsupportedOperationError, match="view"):
            spark.sql(statement)
    for statement, error in (
        ("ANALYZE TABLE n COMPUTE STATISTICS", AnalysisException),
        ("MSCK REPAIR TABLE n", AnalysisException),
        ("LOAD DATA INPATH '/none' INTO TABLE n", AnalysisException),
        ("ALTER TABLE n ADD PARTITION (id = 1)", AnalysisException),
        ("ALTER TABLE n DROP PARTITION (id = 1)", AnalysisException),
        ("SHOW PARTITIONS n", AnalysisException),
        ("TRUNCATE TABLE n PARTITION (id = 1)", AnalysisException),
        ("ALTER TABLE n SET LOCATION '/none'", UnsupportedOperationError),
        ("ALTER TABLE n REPLACE COLUMNS (id STRING)", DeltaError),
        ("BEGIN ALTER TABLE n ADD COLUMN z INT; END", Exception),
        ("CREATE TABLE x (a INT) USING delta PARTITIONED BY (bucket(4, a))", UnsupportedOperationError),
        ("CREATE TABLE x (a INT) USING delta CLUSTERED BY (a) INTO 4 BUCKETS", UnsupportedOperationError),
        ("CREATE TABLE x (a INT, CONSTRAINT c CHECK (a > 0)) USING delta", Exception),
        ("CREATE TABLE x (a STRING COLLATE UTF8_LCASE) USING delta", DeltaError),
        ("CREATE TABLE x USING delta", InvalidArgumentError),
        ("INSERT INTO n AS a REPLACE ON a.id = s.id (SELECT 1 AS id) AS s", Exception),
        ("CREATE TABLE nowhere.x (a INT) USING delta", InvalidArgumentError),
        ("INSERT INTO n SELECT nothing FROM copied", AnalysisException),
        ("INSERT INTO n VALUES ('text')", EngineError),
        ("WITH w AS (SELECT 1 AS id) DELETE FROM n WHERE id IN (SELECT id FROM w)", DeltaError),
        ("OPTIMIZE copied", TableNotFoundError),
        ("SELECT * FROM n VERSION AS OF 99", DeltaError),
        ("ALTER TABLE n DROP COLUMN id", DeltaError),
    ):
        with pytest.raises(error):
            spark.sql(statement)
    assert history(spark, "n") == before
    assert not {"x", "nothing"} & {t.name for t in spark.catalog.listTables()}


def check_streams(spark: Any, folder: Path) -> None:
    path, once = str(folder / "stream"), {"availableNow": True}
    spark.sql("CREATE TABLE source USING delta AS SELECT id FROM range(4)")

    def copy() -> None:
        copied = spark.readStream.option("maxFilesPerTrigger", 1).table("source").writeStream.format("delta")
        copied = copied.option("checkpointLocation", f"{folder}/c1").trigger(**once)
        copied.start(path).awaitTermination()
        named = spark.readStream.format("delta").load(path).writeStream.format("delta").trigger(**once)
        named.option("checkpointLocation", f"{folder}/c2").toTable("streamed").awaitTermination()

    copy()
    spark.sql("INSERT INTO source VALUES (10)")
    copy()
    assert rows(spark.table("streamed")) == [0, 1, 2, 3, 10]
    copy()  # nothing twice
    assert rows(spark.table("streamed")) == [0, 1, 2, 3, 10]
    counts = spark.readStream.format("delta").load(path).groupBy(F.expr("id % 2 AS p")).count().writeStream
    counts = counts.format("delta").trigger(**once).option("checkpointLocation", f"{folder}/c3")
    counts.outputMode("complete").start(f"{folder}/counts").awaitTermination()
    assert {tuple(r) for r in spark.read.format("delta").load(f"{folder}/counts").collect()} == {(0, 3), (1, 2)}
    [made] = DeltaTable(f"{folder}/counts").history()
    assert (made["operation"], made["operationParameters"]["outputMode"]) == ("STREAMING UPDATE", "Complete")
    with pytest.raises(InvalidArgumentError, match="output mode"):
        counts.outputMode("update").start(f"{folder}/counts")
    assert spark.readStream.format("delta").option("nope", 1).load(path).isStreaming
    with pytest.raises(VersionNotFoundError, match="startingVersion=latest"):
        spark.readStream.format("delta").option("startingTimestamp", "2999-01-01").load(path)


def check_schemas_of_streams(spark: Any, folder: Path) -> None:
    path, target = str(folder / "evolving"), str(folder / "evolved")
    ds.write(spark.range(2).selectExpr("id", "id AS x"), path, properties={"delta.columnMapping.mode": "name"})

    def follow(**options: str) -> None:
        reader = spark.readStream.format("delta").options(**options)
        found = reader.option("schemaTrackingLocation", f"{folder}/c4/schemas").load(path).writeStream.format("delta")
        found = found.option("checkpointLocation", f"{folder}/c4").option("mergeSchema", "true")
        found.trigger(availableNow=True).start(target).awaitTermination()

    follow()
    DeltaTable(path).alter.rename_column("x", "y")
    spark.range(2, 3).selectExpr("id", "id AS y").write.format("delta").mode("append").save(path)
    for error in (StreamRestartError, StreamSchemaError):
        with pytest.raises(error, match="column x was"):
            follow()
    follow(allowSourceColumnRename="1")
    found = spark.read.format("delta").load(target).collect()
    assert sorted((r.id, r.x, r.y) for r in found) == [(0, 0, None), (1, 1, None), (2, None, 2)]
    with pytest.raises(InvalidArgumentError, match="allow_source_column_drop='some'"):
        follow(allowSourceColumnDrop="some")


def check_options(spark: Any, folder: Path) -> None:
    path = str(folder / "options")
    spark.range(10).selectExpr("id", "id % 2 AS p").write.format("delta").partitionBy("p").save(path)
    when = datetime.now(UTC).isoformat()
    odd, more = [1, 3, 5, 7, 9], spark.range(100, 101).selectExpr("id", "0L AS p").write.format("delta")
    dynamic = more.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    dynamic.option("userMetadata", "a note").save(path)
    assert rows(spark.read.format("delta").load(path)) == [*odd, 100]
    assert DeltaTable(path).history(1)[0]["userMetadata"] == "a note"
    again = spark.range(200, 201).selectExpr("id", "0L AS p").write.format("delta").mode("append")
    for _ in range(2):
        again.option("txnAppId", "loader").option("txnVersion", 7).save(path)
    assert rows(spark.read.format("delta").load(path)) == [*odd, 100, 200]
    assert rows(spark.read.format("delta").option("timestampAsOf", when).load(path)) == [*range(10)]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    spark.range(300, 301).selectExpr("id", "0L AS p").write.format("delta").mode("overwrite").save(path)
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows(spark.read.format("delta").load(path)) == [*odd, 300]
    spark.range(2).write.format("delta").clusterBy("id").save(f"{path}-clustered")
    assert spark.sql(f"DESCRIBE DETAIL delta.`{path}-clustered`").first().clusteringColumns == ["id"]
    changed = spark.range(3).selectExpr("id", "id AS q").write.format("delta").partitionBy("q")
    changed.mode("overwrite").option("overwriteSchema", "true").save(path)
    other = spark.newSession().read.format("delta").load(path)
    assert other.columns == ["id", "q"]
    assert rows(other) == [0, 1, 2]
    check_passed_options(spark, f"{path}-passed")


def check_passed_options(spark: Any, path: str) -> None:
    """Properties of a new table, options of the Parquet writer, and options that the format does not have."""
    made = spark.range(4).write.format("delta").option("delta.appendOnly", "false").option("header", "true")
    made.option("parquet.block.size", "1048576").option("delta.logRetentionDuration", "interval 9 days").save(path)
    properties = DeltaTable(path).metadata().configuration
    assert {n: v for n, v in properties.items() if "log" in n} == {"delta.logRetentionDuration": "interval 9 days"}
    more = spark.range(4, 6).write.format("delta").mode("append").option("delta.logRetentionDuration", "interval 1 day")
    more.option("mergeSchema", "false").save(path)
    assert DeltaTable(path).metadata().configuration == properties
    arranged = spark.range(6).coalesce(1).write.format("delta").mode("overwrite").option("dataChange", "false")
    arranged.save(path)
    assert DeltaTable(path).snapshot().files.columns(["dataChange"]).column(0).to_pylist() == [False]
    using = spark.range(3, 7).write.format("delta").mode("overwrite").option("replaceUsing", "id")
    using.save(path)
    assert rows(spark.read.format("delta").option("mergeSchema", "true").option("header", "x").load(path)) == [
        *range(7)
    ]
    with pytest.raises(UnsupportedOperationError, match=r"fs\.s3a\.access\.key"):
        spark.read.format("delta").option("fs.s3a.access.key", "k").load(path)
    named = spark.range(2).write.format("delta").option("delta.constraints.NotFew", "id >= 0")
    named.option("delta.feature.deletionVectors", "supported").save(f"{path}-named")
    assert "delta.constraints.NotFew" in DeltaTable(f"{path}-named").metadata().configuration
    assert "deletionVectors" in DeltaTable(f"{path}-named").protocol().writer_features
    for call in (
        spark.read.format("delta").option("startingVersion", 0),
        spark.read.format("delta").option("replaceOn", "x"),
    ):
        with pytest.raises(UnsupportedOperationError, match="in another call"):
            call.load(path)


def check_lance_writes(spark: Any, place: str) -> None:
    from delta_plugins.lance import write_lance

    def write(frame: Any, mode: str, **options: Any) -> None:
        frame.write.format("lance").mode(mode).options(**options).save(place)

    columns = "id", "cast(id AS string) AS s", "named_struct('a', id, 'b', array(id, null)) AS st", "map('k', id) AS m"
    first = spark.range(0, 1000, 1, 4).selectExpr(*columns, "timestamp'2024-01-01 00:00:07Z' AS at")
    write(first, "errorifexists", stable_row_ids=True)
    made = open_table(place)
    assert (made.version, made.manifest.has_stable_row_ids, made.stats().num_fragments) == (1, True, 4)
    expected = {r.id: r.asDict(True) for r in first.collect()}
    assert {r.id: r.asDict(True) for r in spark.read.format("lance").load(place).collect()} == expected
    with pytest.raises(TableExistsError, match="append"):
        write(first, "errorifexists")
    write(first, "ignore")
    write(spark.range(1000, 1010).selectExpr("id"), "append")
    made = open_table(place)
    assert (made.version, made.count(), made.count("s is null")) == (2, 1010, 10)
    files = sorted(Path(place, "data").iterdir())
    # a task that fails leaves no visible row
    failing = spark.range(0, 100, 1, 4).selectExpr("id", "if(id = 90, raise_error('stop'), 'x') AS s")
    with pytest.raises(Exception, match="stop"):
        write(failing, "append")
    assert open_table(place).version == 2
    # the files of tasks that ended before are in no version, and cleanup finds them; those that Spark is still stopping
    # may write more
    removed, end = 0, time.monotonic() + 60
    while sorted(Path(place, "data").iterdir()) != files or not removed:
        done = open_table(place).cleanup(unreferenced_older_than=timedelta(0))
        assert done["removed_versions"] == []
        removed += done["num_files"]
        assert time.monotonic() < end, "files that cleanup does not find, or none"
    assert open_table(place).count() == 1010
    for frame in (spark.sql("SELECT 1 AS other"), spark.sql("SELECT 'x' AS id")):
        with pytest.raises(SchemaMismatchError):
            write(frame, "append")
    with pytest.raises(UnsupportedOperationError, match=r"(?i)maxrows.*max_rows_per_file"):
        write(first, "append", maxRows=3)
    with pytest.raises(InvalidArgumentError, match="whole number"):
        write(first, "append", max_rows_per_file="many")
    with pytest.raises(UnsupportedOperationError, match="partition"):
        spark.range(3).write.format("lance").partitionBy("id").mode("append").save(place)
    write(spark.range(5).selectExpr("id AS n"), "overwrite", max_rows_per_file=2)
    made = open_table(place)
    assert (made.version, made.schema().names) == (3, ["n"])
    assert sorted(made.to_pyarrow_table()["n"].to_pylist()) == [*range(5)]
    assert made.history(1)[0]["operation"].lower() == "overwrite"
    write(spark.range(0).selectExpr("id AS n"), "append")
    assert open_table(place).count() == 5
    write_lance(place, made.to_pyarrow_table(), "append")
    assert rows(spark.read.format("lance").load(place).selectExpr("n AS id")) == sorted([*range(5)] * 2)


def check_lance_changes(spark: Any, place: str) -> None:
    """Statements with a path, and with an entry of the catalog."""

    def count(text: str) -> int:
        return int(spark.sql(text).first()[0])

    spark.range(0).write.format("lance").save(place)
    spark.range(5).selectExpr("id", "'t' AS text").write.format("lance").mode("overwrite").save(place)
    name = f"lance.`{place}`"
    assert rows(spark.sql(f"SELECT l.id FROM {name} l WHERE l.id > 2")) == [3, 4]
    assert rows(spark.sql(f"SELECT id FROM {name} VERSION AS OF 1")) == []
    assert count(f"DELETE FROM {name} AS l WHERE l.id = 4") == 1
    assert count(f"UPDATE {name} SET text = concat(text, id) WHERE id IN (0, 3)") == 2
    spark.range(2, 7).selectExpr("id", "'new' AS text").createOrReplaceTempView("news")
    merge = f"MERGE INTO {name} t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET text = s.text"
    assert count(merge + " WHEN NOT MATCHED AND s.id > 5 THEN INSERT *") == 3
    spark.sql(f"CREATE TABLE people USING lance LOCATION '{place}'")
    assert rows(spark.table("people")) == [0, 1, 2, 3, 6]
    assert count("DELETE FROM people p WHERE p.id = 1 OR p.text = 't0'") == 2
    spark.sql("INSERT INTO people VALUES (9, 'x'), (8, NULL)")
    found = ds.DeltaTable.forName(spark, "people").merge(spark.table("news").alias("s"), "target.id = s.id")
    assert found.whenMatchedDelete().execute().first()[0] == 3
    assert open_table(place).to_pyarrow_table().sort_by("id").to_pydict() == {"id": [8, 9], "text": [None, "x"]}
    assert ds.DeltaTable.forName(spark, name).toDF().count() == 2
    spark.sql(f"CREATE TABLE people_1 USING lance OPTIONS (path '{place}', version '1')")
    for text in (
        "DELETE FROM people_1",
        f"INSERT OVERWRITE {name} VALUES (1, 'a')",
        f"SELECT * FROM {name} TIMESTAMP AS OF '2024-01-01'",
        f"DELETE FROM {name} WHERE id IN (SELECT id FROM news)",
    ):
        with pytest.raises(DeltaError):
            spark.sql(text).collect()
    assert open_table(place).count() == 2
    # a Delta table is not made in the folder of a dataset
    for write in (
        lambda: spark.range(3).write.format("delta").save(place),
        lambda: spark.sql(f"CREATE TABLE beside (id INT) USING delta LOCATION '{place}'"),
    ):
        with pytest.raises(TableExistsError, match="lance"):
            write()
    spark.sql("DROP TABLE people")


def check_lance(spark: Any, folder: Path) -> None:
    place = str(ROOT / "tests" / "lance" / "fixtures" / "plain")
    table = open_table(place)
    expected = sorted(table.scan(["id"]).to_table()["id"].to_pylist())

    def load(**options: Any) -> Any:
        return spark.read.format("lance").options(**options).load(place)

    assert rows(load()) == rows(load(timestamp="2100-01-01")) == expected
    first = sorted(table.checkout(1).scan(["id"]).to_table()["id"].to_pylist())
    assert rows(load(version=1)) == rows(load(VERSION="1")) == first
    for tag, made in table.tags().items():
        assert load(tag=tag).count() == table.checkout(made.version).count()
    with pytest.raises(UnsupportedOperationError, match=r"nope.*version, timestamp, tag, branch"):
        load(nope=1)
    with pytest.raises(UnsupportedOperationError, match="versionasof"):
        load(versionAsOf=1)
    with pytest.raises(InvalidArgumentError, match="version"):
        load(version="x")
    with pytest.raises(InvalidArgumentError, match="version and timestamp"):
        load(version=1, timestamp="2100-01-01")
    for options in ({"version": 99}, {"tag": "none-such"}):
        with pytest.raises(VersionNotFoundError):
            load(**options)
    with pytest.raises(TableNotFoundError, match="none-such"):
        load(branch="none-such")
    with pytest.raises(TableNotFoundError):
        spark.read.format("lance").load(str(folder / "nothing"))
    with pytest.raises(InvalidArgumentError, match="path"):
        spark.read.format("lance").load()
    check_lance_writes(spark, str(folder / "made.lance"))
    check_lance_changes(spark, str(folder / "changed.lance"))
    plan = load(**{"storage.secret_access_key": "hush-hush"})._jdf.queryExecution().toString()
    assert "hush-hush" not in plan
    spark.range(3, 5).write.format("delta").save(str(folder / "beside-lance"))
    spark.sql(f"CREATE TEMPORARY VIEW lances USING lance OPTIONS (path '{place}', version '{table.version}')")
    joined = spark.sql(f"SELECT l.id FROM lances l JOIN delta.`{folder}/beside-lance` d ON l.id = d.id WHERE l.id > 3")
    assert rows(joined) == [i for i in expected if i == 4]


def check_texts(spark: Any) -> None:
    """CHAR(n) by names and paths."""
    spark.sql("CREATE TABLE texts (id INT, c CHAR(5), v VARCHAR(5), s STRUCT<c: CHAR(2)>) USING delta")
    spark.sql("INSERT INTO texts VALUES (1, 'ab', 'ab', named_struct('c', 'x'))")
    place = spark.sql("DESCRIBE DETAIL texts").first().location
    for found in (spark.table("texts"), spark.read.format("delta").load(place), spark.sql("SELECT * FROM texts")):
        assert [tuple(r) for r in found.collect()] == [(1, "ab   ", "ab", ("x ",))]
        assert found.where("c = 'ab'").count() == 1
    assert spark.sql("SELECT count(*) FROM texts WHERE c = 'ab' AND c != 'abc'").first()[0] == 1
    with pytest.raises(ConstraintViolationError):
        spark.sql("INSERT INTO texts VALUES (1, 'abcdef', 'ab', NULL)")
    spark.sql("UPDATE texts SET c = 'cd' WHERE c = 'ab'")
    spark.sql("MERGE INTO texts t USING (SELECT 1 AS id) s ON t.c = 'cd' WHEN MATCHED THEN UPDATE SET v = 'hit'")
    assert [tuple(r)[1:3] for r in spark.table("texts").collect()] == [("cd   ", "hit")]
    assert spark.sql("DELETE FROM texts WHERE c IN ('cd')").first()[0] == 1


def check_changes_by_name(spark: Any) -> None:
    """The change feed of a table of the catalog."""
    properties = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"CREATE TABLE fed (id INT) USING delta {properties}")
    spark.sql("INSERT INTO fed VALUES (1), (2)")
    spark.sql("DELETE FROM fed WHERE id = 1")
    reader = spark.read.option("readChangeFeed", "true").option("startingVersion", 0)
    found = reader.table("fed")
    assert found.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert sorted((r[0], r[1], r[2]) for r in found.collect()) == [(1, "delete", 2), (1, "insert", 1), (2, "insert", 1)]
    assert found.where("_change_type = 'delete'").select("id").collect() == [(1,)]
    with_ = "WITH ('readChangeFeed' = 'true', 'startingVersion' = '0')"
    assert spark.sql(f"SELECT id, _change_type FROM fed {with_} WHERE _commit_version = 2").collect() == [(1, "delete")]
    stream = spark.readStream.option("readChangeFeed", "true").option("startingVersion", 0).table("fed")
    assert stream.columns == found.columns
    with pytest.raises(DeltaError):
        spark.read.option("readChangeFeed", "true").option("startingVersion", 9).table("fed")


def check_user_defined_types(spark: Any, folder: Path) -> None:
    for kind, given in frames(spark).items():
        path = str(folder / f"values {kind}")
        before = sorted(map(tuple, given.where("x IS NOT NULL").collect()), key=lambda r: r[0])
        given.where("id = 1").write.format("delta").save(path)
        given.where("id > 1").write.format("delta").mode("append").save(path)
        found = spark.read.format("delta").load(path)
        assert found.schema["x"].dataType == given.schema["x"].dataType
        assert [tuple(r) for r in found.where("x IS NOT NULL").orderBy("id").collect()] == before
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2 OR x IS NULL")
        spark.sql(f"UPDATE delta.`{path}` SET id = id + 6 WHERE id = 1")
        given.selectExpr("id + 6 AS id", "x").createOrReplaceTempView("changes_of_values")
        spark.sql(
            f"MERGE INTO delta.`{path}` t USING changes_of_values s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        merged = spark.sql(f"SELECT * FROM delta.`{path}` WHERE x IS NOT NULL ORDER BY id")
        assert [tuple(r) for r in merged.collect()] == [(i + 6, x) for i, x in before], kind


def check_settings(spark: Any, folder: Path) -> None:
    """Settings of the session count for the format, for names and for paths; results run no stage of Python."""
    delta, path = "spark.databricks.delta.", str(folder / "settings")
    spark.conf.set(f"{delta}clusteredTable.numClusteringColumnsLimit", "8")
    for statement in (
        "CREATE TABLE set1 (id INT) USING delta", "CREATE TABLE set1 USING delta AS SELECT 1 AS id",
        "INSERT INTO fed VALUES (3)", "SELECT * FROM fed", "DESCRIBE HISTORY fed",
        "ALTER TABLE fed ADD COLUMNS (v INT)",
    ):  # fmt: skip
        with pytest.raises(UnsupportedOperationError, match=r"clusteredTable\.numClusteringColumnsLimit"):
            spark.sql(statement)
    for write in (spark.range(1).write.format("delta").save, spark.range(1).write.format("delta").saveAsTable):
        with pytest.raises(UnsupportedOperationError, match=r"clusteredTable\.numClusteringColumnsLimit"):
            write(path if write.__name__ == "save" else "set1")
    with pytest.raises(UnsupportedOperationError, match=r"clusteredTable\.numClusteringColumnsLimit"):
        spark.read.format("delta").load(str(folder / "plain"))
    spark.conf.unset(f"{delta}clusteredTable.numClusteringColumnsLimit")
    spark.conf.set(f"{delta}properties.defaults.logRetentionDuration", "interval 3 days")
    spark.conf.set(f"{delta}commitInfo.userMetadata", "nightly")
    spark.sql(f"CREATE TABLE set2 (id INT) USING delta LOCATION '{path}'")
    spark.conf.unset(f"{delta}properties.defaults.logRetentionDuration")
    assert DeltaTable(path).metadata().configuration["delta.logRetentionDuration"] == "interval 3 days"
    assert spark.sql("DESCRIBE HISTORY set2").first().userMetadata == "nightly"
    spark.conf.unset(f"{delta}commitInfo.userMetadata")
    spark.conf.set(f"{delta}legacy.storeOptionsAsProperties", "true")
    kept = spark.range(1).write.format("delta").option("own", "kept").option("own.secret.key", "hunter2")
    kept.saveAsTable("stored")
    spark.conf.unset(f"{delta}legacy.storeOptionsAsProperties")
    stored = dict(map(tuple, spark.sql("SHOW TBLPROPERTIES stored").collect()))
    assert "kept" in stored.values(), stored
    assert "hunter2" not in stored.values()
    spark.conf.set(f"{delta}write.txnAppId", "app")
    spark.conf.set(f"{delta}write.txnVersion", "1")
    for _ in range(3):
        spark.sql("INSERT INTO set2 VALUES (1)")
        spark.sql("SELECT CAST(1 AS INT) AS id").write.format("delta").mode("append").save(path)
    assert DeltaTable(path).version() == 1
    for name in ("write.txnAppId", "write.txnVersion"):
        spark.conf.unset(f"{delta}{name}")
    spark.conf.set(f"{delta}schema.autoMerge.enabled", "true")
    more = spark.sql("SELECT CAST(2 AS INT) AS id, 'x' AS v")
    with pytest.raises(SchemaMismatchError):
        more.write.format("delta").mode("append").option("mergeSchema", "false").save(path)
    more.write.format("delta").mode("append").save(path)
    spark.conf.unset(f"{delta}schema.autoMerge.enabled")
    assert rows(spark.table("set2").where("v = 'x'")) == [2]
    for statement in ("DESCRIBE HISTORY set2", "DESCRIBE DETAIL set2", "OPTIMIZE set2", "VACUUM set2 DRY RUN"):
        plan = str(ds.sql(spark, statement)._jdf.queryExecution().executedPlan().toString())
        assert "LocalTableScan" in plan, plan


def check_sessions(spark: Any, folder: str) -> None:
    """A session that names delta-spark's classes has those of this library; another catalog keeps its name."""
    assert ds.configure(type(spark).builder).getOrCreate() is spark
    spark.stop()
    peer = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    settings = {
        "spark__sql__extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark__sql__catalog__spark_catalog": peer,
    }
    again = session(folder, **settings)
    again.sql("CREATE TABLE again USING delta AS SELECT 1 AS id")
    assert rows(again.table("again")) == [1]
    again.stop()
    with pytest.raises(UnsupportedOperationError, match="another name"):
        session(folder, spark__sql__catalog__spark_catalog="org.example.Catalog")
    for name in ("spark_catalog", "main"):
        with pytest.raises(UnsupportedOperationError, match=rf"UCSingleCatalog as spark\.sql\.catalog\.{name}.*uc://"):
            session(folder, **{f"spark__sql__catalog__{name}": "io.unitycatalog.spark.UCSingleCatalog"})
    plain = type(spark).builder.master("local[1]").getOrCreate()
    with pytest.raises(UnsupportedOperationError, match="exists already"):
        session(folder)
    plain.stop()
    check_alone(plain, Path(folder))


def check_alone(spark: Any, folder: Path) -> None:
    """A driver whose class path has delta-spark gets no second format of the name."""
    jar = folder / "delta-spark.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("io/delta/sql/DeltaSparkSessionExtension.class", b"")
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(spark._jvm.java.io.File(str(jar)).toURI().toURL())
    with pytest.raises(UnsupportedOperationError, match="Found delta-spark in the session"):
        session(str(folder))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    spark = session(sys.argv[1])
    check(spark, folder)
    check_options(spark, folder)
    check_statements(spark)
    check_created_again(spark, folder)
    check_syntax(spark)
    check_places(spark, folder)
    check_other_kinds(spark, folder)
    check_names_with_blanks(spark)
    check_fields_of_structs(spark)
    check_wider_types(spark)
    check_tables(spark, folder)
    check_names(spark)
    check_rejected(spark)
    check_lance(spark, folder)
    check_texts(spark)
    check_changes_by_name(spark)
    check_user_defined_types(spark, folder)
    check_settings(spark, folder)
    check_streams(spark, folder)
    check_schemas_of_streams(spark, folder)
    for page in ("spark-drop-in", "start/delta-spark", "start/spark-administrators"):
        names: dict[str, Any] = {}
        for block in blocks(ROOT / f"docs/{page}.md"):
            if block.language == "python":
                run_python(block._replace(code=block.code.replace("/data/", f"{sys.argv[1]}/")), names)
    assert DeltaTable(f"{sys.argv[1]}/drop-in").count() == 10
    check_sessions(spark, sys.argv[1])
    print("same rows")
