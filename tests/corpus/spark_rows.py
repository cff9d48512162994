"""delta-spark's tables with deletion vectors, and after each operation."""

from __future__ import annotations

from tests.corpus.spark_steps import (
    BASE,
    DV,
    FILL,
    ROW_TRACKING,
    V2,
    actions,
    checkpoint,
    clone_of,
    commit,
    create,
    fill,
    inline_vector,
    insert,
    merge,
    set_properties,
    written,
)
from tests.corpus.tables import Table

__all__ = ["TABLES"]

VECTORS = [
    Table(
        "vectors",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 20),
            "DELETE FROM {t} WHERE id IN (0, 7, 19)",
            "DELETE FROM {t} WHERE id = 8",
        ],
    ),
    Table(
        "vectors_in_one_file",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 40, 4),
            "DELETE FROM {t} WHERE id % 5 = 0",
            "DELETE FROM {t} WHERE id % 7 = 0",
        ],
    ),
    Table("vector_in_the_log", [create("id INT, v STRING", DV), fill(FILL, 0, 40), commit(2, inline_vector)]),
    Table(
        "vector_of_every_row",
        [
            create("id INT", DV),
            fill("CAST(id AS INT)", 0, 9, 3),
            "DELETE FROM {t} WHERE id < 3",
            "DELETE FROM {t} WHERE id < 9",
        ],
    ),
    Table(
        # runs of one value take a few bytes
        "vectors_of_many_rows",
        [
            create("b INT, a INT", DV),
            fill("CAST(id DIV 100 AS INT), CAST(id % 2 AS INT)", 0, 140_000),
            "DELETE FROM {t} WHERE b BETWEEN 10 AND 660 OR b % 3 = 0",
            "DELETE FROM {t} WHERE a = 1 AND b > 700",
        ],
    ),
    Table(
        "vectors_partitioned",
        [
            create("id INT, p STRING", DV, tail="PARTITIONED BY (p)"),
            fill("CAST(id AS INT), concat('p ', id % 3)", 0, 30),
            "DELETE FROM {t} WHERE id % 4 = 0",
            "DELETE FROM {t} WHERE p = 'p 1'",
        ],
    ),
    *(
        Table(
            f"vectors_column_mapping_{mode}",
            [
                create("id INT, `a b` STRING", DV, f"delta.columnMapping.mode={mode}"),
                fill(FILL, 0, 20),
                "DELETE FROM {t} WHERE id = 4",
                "UPDATE {t} SET `a b` = NULL WHERE id = 5",
            ],
        )
        for mode in ("name", "id")
    ),
    Table(
        "vectors_update_and_merge",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 10),
            "UPDATE {t} SET v = upper(v) WHERE id < 3",
            merge(
                "SELECT CAST(id AS INT) AS id FROM range(8, 12)",
                "MATCHED AND s.id = 8 THEN DELETE",
                "MATCHED THEN UPDATE SET v = 'merged'",
                "NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
            ),
        ],
    ),
    Table(
        "vectors_restored",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 10),
            "DELETE FROM {t} WHERE id = 4",
            "DELETE FROM {t} WHERE id = 5",
            "RESTORE TABLE {t} TO VERSION AS OF 2",
        ],
    ),
    Table(
        "vectors_purged",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 10),
            "DELETE FROM {t} WHERE id = 4",
            "REORG TABLE {t} APPLY (PURGE)",
        ],
    ),
    Table(
        "vectors_optimized",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 5),
            fill(FILL, 5, 9),
            "DELETE FROM {t} WHERE id = 4",
            "OPTIMIZE {t}",
        ],
    ),
    Table(
        "vectors_checkpoint",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 20, 2),
            "DELETE FROM {t} WHERE id % 6 = 0",
            checkpoint,
            "DELETE FROM {t} WHERE id = 1",
        ],
    ),
    Table(
        "vectors_checkpoint_v2",
        [
            create("id INT, v STRING", DV, V2),
            fill(FILL, 0, 20, 2),
            "DELETE FROM {t} WHERE id % 6 = 0",
            checkpoint,
            "DELETE FROM {t} WHERE id = 1",
        ],
    ),
    Table(
        "vectors_turned_off",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 9),
            "DELETE FROM {t} WHERE id = 4",
            set_properties("delta.enableDeletionVectors=false"),
            "DELETE FROM {t} WHERE id = 5",
        ],
    ),
    Table(
        "vectors_feature_dropped",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 9),
            "DELETE FROM {t} WHERE id = 4",
            "ALTER TABLE {t} DROP FEATURE deletionVectors",
        ],
    ),
    Table(
        "vectors_and_row_tracking",
        [
            create("id INT, v STRING", DV, ROW_TRACKING),
            fill(FILL, 0, 9),
            "DELETE FROM {t} WHERE id = 4",
            "UPDATE {t} SET v = 'w' WHERE id = 6",
        ],
    ),
    Table(
        "vectors_without_tight_bounds",
        [
            create("id INT, v STRING", DV),
            fill(FILL, 0, 6),
            "DELETE FROM {t} WHERE id IN (0, 5)",
            "UPDATE {t} SET id = 100 WHERE id = 4",
        ],
    ),
]


OPERATIONS = [
    Table("appended_and_overwritten", [*BASE, "INSERT OVERWRITE {t} VALUES (7, 'over')", fill(FILL, 8, 9)]),
    Table(
        "replaced_where",
        [
            create("id INT, p INT", tail="PARTITIONED BY (p)"),
            fill("CAST(id AS INT), CAST(id % 3 AS INT)", 0, 6),
            written("SELECT 9 AS id, 1 AS p", "overwrite", replaceWhere="p = 1"),
            "INSERT INTO {t} REPLACE WHERE id > 4 VALUES (50, 2)",
        ],
    ),
    Table(
        "dynamic_partition_overwrite",
        [
            create("id INT, p INT", tail="PARTITIONED BY (p)"),
            fill("CAST(id AS INT), CAST(id % 3 AS INT)", 0, 6),
            written("SELECT 9 AS id, 1 AS p", "overwrite", partitionOverwriteMode="dynamic"),
        ],
    ),
    Table(
        "updated_deleted_merged",
        [
            *BASE,
            fill(FILL, 3, 6),
            "UPDATE {t} SET v = NULL WHERE id = 1",
            "DELETE FROM {t} WHERE id = 4",
            merge(
                "SELECT CAST(id AS INT) AS id FROM range(5, 8)",
                "MATCHED THEN UPDATE SET v = 'm'",
                "NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
                "NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE",
            ),
        ],
    ),
    Table(
        "restored",
        [*BASE, "INSERT OVERWRITE {t} VALUES (7, 'over')", "RESTORE TABLE {t} TO VERSION AS OF 1", fill(FILL, 8, 9)],
    ),
    Table(
        "optimized",
        [
            create("id INT, p INT", tail="PARTITIONED BY (p)"),
            *(fill("CAST(id AS INT), CAST(id % 2 AS INT)", n * 4, n * 4 + 4) for n in range(3)),
            "OPTIMIZE {t} WHERE p = 1",
            "OPTIMIZE {t} ZORDER BY (id)",
        ],
    ),
    Table(
        "vacuumed",
        [*BASE, "UPDATE {t} SET v = 'x' WHERE id = 1", "DELETE FROM {t} WHERE id = 2", "VACUUM {t} RETAIN 0 HOURS"],
        unreadable=(1, 2),
    ),
    Table(
        "vacuumed_lite_with_checkpoint",
        [*BASE, "INSERT OVERWRITE {t} VALUES (7, 'over')", checkpoint, "VACUUM {t} RETAIN 0 HOURS"],
        unreadable=(1,),
    ),
    Table(
        "replaced", [*BASE, "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (n) AS SELECT 'a' AS n, 1L AS id"]
    ),
    Table(
        "created_from_query",
        [
            (
                "CREATE TABLE {t} USING delta PARTITIONED BY (p) AS "
                "SELECT CAST(id AS INT) AS id, concat('p', id % 2) AS p FROM range(5)"
            )
        ],
    ),
    Table(
        "converted_from_parquet",
        [
            lambda spark, path: (
                spark.session.sql("SELECT CAST(id AS INT) AS id, CAST(id % 2 AS INT) AS p FROM range(4)")
                .coalesce(1)
                .write.partitionBy("p")
                .parquet(str(path))
            ),
            lambda spark, path: spark.session.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p INT)"),
            insert("(9, 1)"),
        ],
    ),
    Table(
        "columns_added",
        [
            create("id INT, s STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>"),
            insert("(1, struct(1), array(struct(1)))"),
            "ALTER TABLE {t} ADD COLUMNS (s.b STRING, first DATE FIRST, mid INT AFTER id, l.element.b INT)",
            insert("(DATE '2020-01-01', 2, 3, struct(4, 'x'), array(struct(5, 6)))"),
            "ALTER TABLE {t} ALTER COLUMN id AFTER mid",
        ],
    ),
    Table(
        "schema_merged",
        [
            written("SELECT 1 AS id, 'a' AS v"),
            written("SELECT 2 AS id, DATE '2020-01-01' AS w", mergeSchema="true"),
            written("SELECT 'x' AS id, 1.5D AS d", "overwrite", overwriteSchema="true"),
        ],
    ),
    Table(
        "one_file_added_again",
        [
            create("id INT"),
            insert("(1)"),
            "DELETE FROM {t} WHERE id = 1",
            insert("(2)"),
            commit(4, lambda path: [{"add": a["add"]} for a in actions(path, 1) if "add" in a]),
        ],
    ),
    Table(
        "two_hundred_columns",
        [
            lambda spark, path: (
                spark.session.sql("SELECT " + ", ".join(f"CAST({n} AS INT) AS c{n}" for n in range(200)))
                .write.format("delta")
                .save(str(path))
            )
        ],
    ),
    Table(
        "clone_source",
        [
            create("id INT, p STRING", DV, tail="PARTITIONED BY (p)"),
            fill("CAST(id AS INT), concat(id % 2, ' %/#?')", 0, 8),
            "DELETE FROM {t} WHERE id = 4",
        ],
    ),
    Table(
        "clone",
        [
            clone_of("clone_source"),
            "DELETE FROM {t} WHERE id = 5",
            insert("(100, 'new')"),
            "UPDATE {t} SET id = -id WHERE id = 6",
        ],
        needs=("spark/clone_source",),
    ),
    Table(
        "clone_emptied_and_filled",
        [clone_of("clone_source"), "DELETE FROM {t}", insert("(1, 'x')")],
        needs=("spark/clone_source",),
    ),
]

TABLES = [*VECTORS, *OPERATIONS]
