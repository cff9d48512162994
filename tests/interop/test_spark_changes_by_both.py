"""Delta's own Spark library and this one change rows of the same tables, in one session, in turns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import CommitConflictError, ConcurrentDeleteDeleteError

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


#: Changes of the row with id {i}: a statement, and the same with Arrow.
CHANGES: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "delete": ("DELETE FROM {t} WHERE id = {i}", lambda t, i: t.delete(f"id = {i}")),
    "update": ("UPDATE {t} SET x = -2 WHERE id = {i}", lambda t, i: t.update({"x": "-2"}, predicate=f"id = {i}")),
    "merge": (
        "MERGE INTO {t} AS t USING (SELECT {i}L AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = -2",
        lambda t, i: (
            t.merge(DeltaTable(t.table_uri).scan(["id"], predicate=f"id = {i}").to_table(), "t.id = s.id", "s", "t")
            .when_matched_update({"x": "-2"})
            .execute()
        ),
    ),
}


@pytest.mark.parametrize("engine", ["spark", "arrow"])
@pytest.mark.parametrize("name", CHANGES)
def test_rows_that_delta_spark_dropped_meanwhile_stay_dropped(
    spark: Any, tmp_path: Path, name: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(spark, tmp_path / "t", f"{VECTORS}, {IDS}, {FEED}", "")
    text, call = CHANGES[name]
    commit, rivals = type(DeltaTable(tmp_path / "t").snapshot().begin("WRITE")).commit, list[str]()

    def race(self: Any, *args: Any, **kwargs: Any) -> Any:
        while rivals:
            spark.sql(rivals.pop())
        return commit(self, *args, **kwargs)

    def change(i: int, *meanwhile: str) -> None:
        rivals.extend(s.replace("{t}", table) for s in meanwhile)
        if engine == "spark":
            ds.sql(spark, text.replace("{t}", table).replace("{i}", str(i)))
        else:
            call(DeltaTable(tmp_path / "t"), i)

    monkeypatch.setattr("delta_core.kernel.commit.transaction.Transaction.commit", race)
    change(3, "DELETE FROM {t} WHERE id = 4", "UPDATE {t} SET x = -1 WHERE id = 5")
    expected = {i: (-2.0 if i == 3 else -1.0 if i == 5 else i / 4) for i in range(20) if i != 4}
    if name == "delete":
        del expected[3]
    assert {r.id: r.x for r in spark.sql(f"SELECT id, x FROM {table}").collect()} == expected
    with pytest.raises(ConcurrentDeleteDeleteError):
        change(6, "DELETE FROM {t} WHERE id = 6")
    del expected[6]
    assert {r.id: r.x for r in ds.read(spark, tmp_path / "t").collect()} == expected
    kinds = "SELECT _change_type, count(*) FROM table_changes_by_path('{}', 3) GROUP BY 1"
    found = dict(map(tuple, spark.sql(kinds.format(tmp_path / "t")).collect()))
    updates = 1 + (name != "delete")
    assert found == {"delete": 4 - updates, "update_preimage": updates, "update_postimage": updates}


def test_changes_by_three_writers_at_once_are_all_kept(spark: Any, tmp_path: Path) -> None:
    table, path = made(spark, tmp_path / "t", VECTORS, ""), tmp_path / "t"
    statements = ("DELETE FROM {t} WHERE id = {i}", "UPDATE {t} SET x = -1 WHERE id = {i}")
    errors: list[str] = []

    def again(run: Callable[[], Any]) -> None:
        for _ in range(40):
            try:
                run()
                return
            except CommitConflictError:
                continue
            except Exception as e:  # noqa: BLE001 (of Java; only conflicts are expected)
                if "DELTA_CONCURRENT" not in str(e):
                    errors.append(str(e)[:500])
                    return
        errors.append("no end of conflicts")

    def write(ids: range, run: Callable[[str], Any]) -> None:
        for i in ids:
            text = statements[i % 2].replace("{t}", table).replace("{i}", str(i))
            again(lambda text=text: run(text))  # type: ignore[misc]  # mypy finds no type for a default

    def on_arrow(text: str) -> None:
        condition = text.rpartition(" WHERE ")[2]
        target = DeltaTable(path)
        (target.delete if text.startswith("DELETE") else lambda c: target.update({"x": "-1"}, predicate=c))(condition)

    writers = ((range(4), spark.sql), (range(4, 8), lambda text: ds.sql(spark, text)), (range(8, 12), on_arrow))
    threads = [threading.Thread(target=write, args=given) for given in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    expected = {i: -1.0 if i < 12 else i / 4 for i in range(20) if i % 2 or i >= 12}
    assert {r.id: r.x for r in spark.sql(f"SELECT id, x FROM {table}").collect()} == expected
    assert {r["id"]: r["x"] for r in DeltaTable(path).to_pyarrow_table().to_pylist()} == expected
    assert DeltaTable(path).version() == 2 + 12
