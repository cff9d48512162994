"""Delta's own Spark library and this one change rows of the same tables, in one session, in turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FEED = "delta.enableChangeDataFeed = true"
VECTORS = "delta.enableDeletionVectors = true"
IDS = "delta.enableRowTracking = true"
MAPPED = "delta.columnMapping.mode = 'name'"
#: Statements that both sides run alike.
STEPS = (
    "UPDATE {t} SET x = x + 1, s.n = NULL WHERE id % 3 = 0",
    "DELETE FROM {t} WHERE id % 5 = 1 OR p = 'c'",
    "INSERT INTO {t} VALUES (100, 'a', 0.5, named_struct('n', 7)), (101, 'n', null, null)",
    """MERGE INTO {t} AS t USING (SELECT explode(sequence(3, 25, 2)) AS id) AS s ON t.id = s.id
    WHEN MATCHED AND t.id > 15 THEN DELETE WHEN MATCHED THEN UPDATE SET t.x = -1
    WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id + 200, 'm')
    WHEN NOT MATCHED BY SOURCE AND t.id = 100 THEN UPDATE SET p = 'z'""",
    "OPTIMIZE {t} ZORDER BY (id, x)",
    "RESTORE TABLE {t} TO VERSION AS OF 4",
    "INSERT INTO {t} REPLACE WHERE p = 'a' SELECT id + 1000, p, x, s FROM {t} WHERE p = 'a'",
    "INSERT INTO {t} REPLACE WHERE id > 5 AND x IS NOT NULL SELECT 2000 + id, 'q', id, null FROM range(2)",
    "INSERT INTO {t} REPLACE WHERE s.n IN (2, 7) SELECT 3000, null, null, named_struct('n', 7)",
)


def made(spark: Any, path: Path, properties: str, tail: str) -> str:
    name = f"delta.`{path}`"
    columns = "id BIGINT, p STRING, x DOUBLE, s STRUCT<n: INT>"
    spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {tail} TBLPROPERTIES ({properties})")
    rows = "id, substr('abc', 1 + id % 3, 1), id / 4, named_struct('n', CAST(id AS INT))"
    for start in (0, 10):
        spark.sql(f"INSERT INTO {name} SELECT {rows} FROM range({start}, {start + 10}, 1, 1)")
    return name


def rows_of(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize(
    ("properties", "tail", "first"),
    [(f"{FEED}, {VECTORS}, {IDS}", "PARTITIONED BY (p)", 0), (f"{VECTORS}, {MAPPED}", "", 1)],
    ids=["all", "mapped"],
)
def test_statements_of_both_libraries_give_the_same_rows(
    spark: Any, tmp_path: Path, properties: str, tail: str, first: int
) -> None:
    theirs, mixed = (made(spark, tmp_path / n, properties, tail) for n in ("theirs", "mixed"))
    for i, step in enumerate(STEPS):
        spark.sql(step.replace("{t}", theirs))
        (ds.sql(spark, step.replace("{t}", mixed)) if i % 2 == first else spark.sql(step.replace("{t}", mixed)))
        expected = rows_of(spark.sql(f"SELECT * FROM {theirs}"))
        assert (step, rows_of(spark.sql(f"SELECT * FROM {mixed}"))) == (step, expected)
        assert (step, rows_of(ds.sql(spark, f"SELECT * FROM {mixed}"))) == (step, expected)
    if FEED in properties:
        columns = "id, p, x, s, _change_type"
        feeds = [
            rows_of(spark.sql(f"SELECT {columns} FROM table_changes_by_path('{tmp_path / n}', 2)"))
            for n in ("theirs", "mixed")
        ]
        assert feeds[0] == feeds[1]
