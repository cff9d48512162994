"""delta-spark's tables of each protocol version and table feature."""

from __future__ import annotations

from tests.corpus.spark_steps import (
    BASE,
    BOTH_STATS,
    CDF,
    DV,
    FILL,
    ID,
    NAME,
    ROW_TRACKING,
    V2,
    WIDENING,
    built,
    checkpoint,
    create,
    fill,
    insert,
    merge,
    set_properties,
    with_invariant,
)
from tests.corpus.tables import Table

__all__ = ["TABLES"]

LEGACY = {
    (1, 1): ([], []),
    (1, 2): ([], ["ALTER TABLE {t} ALTER COLUMN v SET NOT NULL"][:0]),
    (1, 3): ([], ["ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)"]),
    (1, 4): ([CDF], ["UPDATE {t} SET v = 'x' WHERE id = 1"]),
    (1, 5): ([], []),
    (2, 5): ([NAME], ["ALTER TABLE {t} RENAME COLUMN v TO w"]),
    (2, 6): ([ID], []),
    (1, 7): (["checkConstraints"], ["ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)"]),
    (2, 7): ([NAME, "columnMapping"], []),
    (3, 7): ([DV, NAME, CDF], ["DELETE FROM {t} WHERE id = 1"]),
}
FEATURES = [
    *(
        Table(
            f"protocol_{reader}_{writer}",
            [
                create(
                    "id INT, v STRING",
                    f"delta.minReaderVersion={reader}",
                    f"delta.minWriterVersion={writer}",
                    *properties,
                ),
                fill(FILL, 0, 3),
                *more,
            ],
        )
        for (reader, writer), (properties, more) in LEGACY.items()
    ),
    Table(
        "protocol_raised_step_by_step",
        [
            create("id INT, v STRING", "delta.minReaderVersion=1", "delta.minWriterVersion=1"),
            fill(FILL, 0, 2),
            set_properties("delta.minWriterVersion=4"),
            set_properties("delta.minReaderVersion=2", "delta.minWriterVersion=5"),
            set_properties(
                "delta.minReaderVersion=3", "delta.minWriterVersion=7", "delta.feature.timestampNtz=supported"
            ),
            fill(FILL, 2, 3),
        ],
    ),
    *(
        Table(f"feature_{name}".lower().replace("-", "_"), [create("id INT, v STRING", name), fill(FILL, 0, 3)])
        for name in (
            "appendOnly",
            "invariants",
            "checkConstraints",
            "changeDataFeed",
            "generatedColumns",
            "identityColumns",
            "columnMapping",
            "deletionVectors",
            "timestampNtz",
            "typeWidening",
            "typeWidening-preview",
            "variantType",
            "variantType-preview",
            "variantShredding",
            "variantShredding-preview",
            "v2Checkpoint",
            "vacuumProtocolCheck",
            "domainMetadata",
            "rowTracking",
            "inCommitTimestamp",
            "checkpointProtection",
            "allowColumnDefaults",
        )
    ),
    Table("feature_not_known", [create("id INT", "geospatial"), insert("(1)")], error="unsupported-feature"),
    Table("append_only", [create("id INT, v STRING", "delta.appendOnly=true"), fill(FILL, 0, 2), fill(FILL, 2, 3)]),
    Table(
        "check_constraints",
        [
            *BASE,
            "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",
            "ALTER TABLE {t} ADD CONSTRAINT `short v` CHECK (length(v) < 9)",
            fill(FILL, 5, 6),
            "ALTER TABLE {t} DROP CONSTRAINT positive",
        ],
    ),
    Table(
        "not_null",
        [
            create("id INT NOT NULL, s STRUCT<x: INT NOT NULL> NOT NULL"),
            insert("(1, struct(2))"),
            "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
            insert("(NULL, struct(3))"),
        ],
    ),
    Table("column_invariants", [with_invariant, insert("(3, 98)")]),
    Table(
        "change_feed",
        [
            create("id INT, v STRING", CDF),
            fill(FILL, 0, 6),
            "UPDATE {t} SET v = 'x' WHERE id < 2",
            "DELETE FROM {t} WHERE id = 5",
            merge(
                "SELECT CAST(id AS INT) AS id FROM range(4, 8)",
                "MATCHED THEN UPDATE SET v = 'm'",
                "NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
            ),
            "DELETE FROM {t}",
        ],
        changes=(0, 5),
    ),
    Table(
        "change_feed_partitioned",
        [
            create("id INT, p STRING", CDF, tail="PARTITIONED BY (p)"),
            fill("CAST(id AS INT), concat('p/', id % 2)", 0, 6),
            "UPDATE {t} SET p = 'q' WHERE id = 1",
            "DELETE FROM {t} WHERE p = 'p/0'",
            "INSERT OVERWRITE {t} VALUES (9, NULL)",
        ],
        changes=(0, 4),
    ),
    Table(
        "change_feed_and_vectors",
        [
            create("id INT, v STRING", CDF, DV),
            fill(FILL, 0, 6, 2),
            "DELETE FROM {t} WHERE id = 1",
            "DELETE FROM {t} WHERE id IN (2, 5)",
            "UPDATE {t} SET v = 'x' WHERE id = 3",
        ],
        changes=(1, 4),
    ),
    Table(
        "change_feed_turned_on",
        [*BASE, set_properties(CDF), fill(FILL, 3, 5), "DELETE FROM {t} WHERE id = 0", "OPTIMIZE {t}"],
        changes=(2, 5),
    ),
    Table(
        "change_feed_and_row_tracking",
        [
            create("id INT, v STRING", CDF, ROW_TRACKING),
            fill(FILL, 0, 4),
            "UPDATE {t} SET v = 'x' WHERE id = 1",
            "DELETE FROM {t} WHERE id = 2",
        ],
        changes=(0, 3),
    ),
    Table(
        "identity_columns",
        [
            built(k=("BIGINT", {"identity": (10, -3, True)}), id=("INT", {})),
            "INSERT INTO {t} (id) VALUES (1), (2)",
            "INSERT INTO {t} (id) VALUES (3)",
        ],
    ),
    Table(
        "identity_columns_by_default",
        [
            built(k=("BIGINT", {"identity": (1, 1, False)}), id=("INT", {})),
            "INSERT INTO {t} (id) VALUES (1)",
            "INSERT INTO {t} VALUES (100, 2)",
            "INSERT INTO {t} (id) VALUES (3)",
            "ALTER TABLE {t} ALTER COLUMN k SYNC IDENTITY",
            "INSERT INTO {t} (id) VALUES (4)",
        ],
    ),
    Table(
        "generated_columns",
        [
            built(
                id=("INT", {}),
                t=("TIMESTAMP", {}),
                day=("DATE", {"generatedAlwaysAs": "CAST(t AS DATE)", "partition": True}),
                twice=("INT", {"generatedAlwaysAs": "id * 2"}),
            ),
            "INSERT INTO {t} (id, t) VALUES (1, TIMESTAMP '2020-02-29 12:00:00'), (NULL, NULL)",
            "UPDATE {t} SET id = 5 WHERE id = 1",
        ],
    ),
    Table(
        "column_defaults",
        [
            create("id INT, v STRING DEFAULT 'none', w INT DEFAULT 4 + 1", "allowColumnDefaults"),
            "INSERT INTO {t} (id) VALUES (1)",
            "INSERT INTO {t} VALUES (2, DEFAULT, NULL)",
            "ALTER TABLE {t} ALTER COLUMN v DROP DEFAULT",
            "INSERT INTO {t} (id) VALUES (3)",
        ],
    ),
    Table(
        "row_tracking",
        [
            create("id INT, v STRING", ROW_TRACKING),
            fill(FILL, 0, 4, 2),
            "UPDATE {t} SET v = 'x' WHERE id = 1",
            "DELETE FROM {t} WHERE id = 2",
            "OPTIMIZE {t}",
        ],
    ),
    Table(
        "row_tracking_turned_on",
        [
            *BASE,
            fill(FILL, 3, 5),
            set_properties(ROW_TRACKING),
            fill(FILL, 5, 6),
            merge("SELECT 1 AS id", "MATCHED THEN UPDATE SET v = 'm'"),
        ],
    ),
    Table(
        "row_tracking_suspended",
        [
            create("id INT, v STRING", ROW_TRACKING),
            fill(FILL, 0, 2),
            set_properties("delta.enableRowTracking=false"),
            fill(FILL, 2, 3),
        ],
    ),
    Table(
        "clustered",
        [
            create("a INT, b STRING", DV, tail="CLUSTER BY (a, b)"),
            fill("CAST(id AS INT), CAST(id % 5 AS STRING)", 0, 40, 4),
            "OPTIMIZE {t}",
            "ALTER TABLE {t} CLUSTER BY (b)",
            "DELETE FROM {t} WHERE a = 3",
        ],
    ),
    Table(
        "clustering_removed",
        [
            create("a INT, s STRUCT<b: INT>", tail="CLUSTER BY (s.b)"),
            insert("(1, struct(2))"),
            "ALTER TABLE {t} CLUSTER BY NONE",
            insert("(2, NULL)"),
        ],
    ),
    Table(
        "clustered_column_mapping",
        [
            create("a INT, `b c` INT", NAME, tail="CLUSTER BY (`b c`)"),
            insert("(1, 2)"),
            "OPTIMIZE {t}",
            "ALTER TABLE {t} RENAME COLUMN `b c` TO d",
            insert("(3, 4)"),
        ],
    ),
    Table(
        "v2_checkpoints_feature_dropped",
        [
            create("id INT", V2),
            insert("(1)"),
            checkpoint,
            insert("(2)"),
            set_properties("delta.checkpointPolicy=classic"),
            checkpoint,
        ],
    ),
    Table(
        "iceberg_compat_v1",
        [
            create("id INT, v STRING, c DECIMAL(9, 2)", NAME, "delta.enableIcebergCompatV1=true"),
            insert("(1, 'a', 1.5)", "(2, NULL, NULL)"),
            "UPDATE {t} SET v = 'b' WHERE id = 1",
        ],
    ),
    Table(
        "iceberg_compat_v2",
        [
            create(
                "id INT, l ARRAY<INT>, m MAP<STRING, STRUCT<x: INT>>, p STRING",
                NAME,
                "delta.enableIcebergCompatV2=true",
                tail="PARTITIONED BY (p)",
            ),
            insert("(1, array(1, NULL), map('a', struct(1)), 'x')", "(2, NULL, NULL, NULL)"),
            "ALTER TABLE {t} ADD COLUMN ll ARRAY<ARRAY<DATE>>",
            insert("(3, array(), map(), 'y', array(array(DATE '2020-01-01')))"),
        ],
    ),
    Table(
        "iceberg_compat_v3",
        [
            create("id INT, l ARRAY<INT>", NAME, ROW_TRACKING, "delta.enableIcebergCompatV3=true"),
            insert("(1, array(1))"),
            "DELETE FROM {t} WHERE id = 9",
            insert("(2, NULL)"),
        ],
    ),
]


NESTED_NAMES = "id INT, s STRUCT<x: INT, l: ARRAY<STRUCT<k: INT>>>, m MAP<STRING, STRUCT<v: INT>>"
NESTED_ROWS = insert("(1, struct(1, array(struct(1), NULL)), map('a', struct(1)))", "(2, NULL, NULL)")
MAPPING = [
    *(
        Table(
            f"column_mapping_{mode}",
            [
                create(
                    "`a b` INT, `c,;{}()=` STRING, p INT", f"delta.columnMapping.mode={mode}", tail="PARTITIONED BY (p)"
                ),
                insert("(1, 'x', 1)", "(2, NULL, NULL)"),
            ],
        )
        for mode in ("name", "id")
    ),
    *(
        Table(
            f"column_mapping_{mode}_renamed_and_dropped",
            [
                create("id INT, v STRING, w INT, p INT", f"delta.columnMapping.mode={mode}", tail="PARTITIONED BY (p)"),
                insert("(1, 'a', 10, 1)"),
                "ALTER TABLE {t} RENAME COLUMN v TO `v 2`",
                "ALTER TABLE {t} DROP COLUMN w",
                insert("(2, 'b', 1)"),
                "ALTER TABLE {t} ADD COLUMN w STRING",
                insert("(3, 'c', 2, 'new')"),
                "ALTER TABLE {t} RENAME COLUMN p TO q",
                insert("(4, NULL, NULL, NULL)"),
            ],
        )
        for mode in ("name", "id")
    ),
    *(
        Table(
            f"column_mapping_{mode}_nested",
            [
                create(NESTED_NAMES, f"delta.columnMapping.mode={mode}"),
                NESTED_ROWS,
                "ALTER TABLE {t} RENAME COLUMN s.x TO y",
                "ALTER TABLE {t} RENAME COLUMN m.value.v TO `v.1`",
                "ALTER TABLE {t} ADD COLUMN s.l.element.n STRING",
                "ALTER TABLE {t} DROP COLUMN s.y",
                insert("(3, struct(array(struct(3, 'n'))), map('c', struct(NULL)))"),
            ],
        )
        for mode in ("name", "id")
    ),
    Table(
        "column_mapping_turned_on",
        [
            create("id INT, v STRING, p STRING", tail="PARTITIONED BY (p)"),
            insert("(1, 'a', 'x y')"),
            set_properties(NAME, "delta.minReaderVersion=2", "delta.minWriterVersion=5"),
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            insert("(2, 'b', NULL)"),
            "UPDATE {t} SET w = 'c' WHERE id = 1",
        ],
    ),
    Table(
        "column_mapping_two_names_swapped",
        [
            create("a INT, b INT", NAME),
            insert("(1, 2)"),
            "ALTER TABLE {t} RENAME COLUMN a TO c",
            "ALTER TABLE {t} RENAME COLUMN b TO a",
            "ALTER TABLE {t} RENAME COLUMN c TO b",
            insert("(3, 4)"),
        ],
    ),
    Table(
        "column_mapping_removed",
        [
            create("id INT, v STRING", NAME),
            fill(FILL, 0, 3),
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            set_properties("delta.columnMapping.mode=none"),
        ],
    ),
    Table(
        "column_mapping_checkpoint",
        [
            create(
                "id INT, `a b` STRUCT<`c d`: INT>, p DATE",
                NAME,
                "delta.checkpoint.writeStatsAsStruct=true",
                tail="PARTITIONED BY (p)",
            ),
            insert("(1, struct(2), DATE '2020-01-01')", "(3, NULL, NULL)"),
            checkpoint,
            "ALTER TABLE {t} RENAME COLUMN p TO q",
            insert("(5, struct(NULL), DATE '2021-01-01')"),
        ],
    ),
    Table(
        "column_mapping_change_feed",
        [
            create("id INT, v STRING", NAME, CDF),
            fill(FILL, 0, 4),
            "UPDATE {t} SET v = 'x' WHERE id = 1",
            "DELETE FROM {t} WHERE id = 2",
        ],
        changes=(0, 3),
    ),
]


WIDER = {
    "byte": ("TINYINT", "SMALLINT", "5", "300"),
    "short": ("SMALLINT", "INT", "300", "70000"),
    "integer": ("INT", "BIGINT", "70000", "1234567890123"),
    "float": ("FLOAT", "DOUBLE", "0.1", "1e300"),
    "integer_to_double": ("INT", "DOUBLE", "2147483647", "0.5"),
    "byte_to_decimal": ("TINYINT", "DECIMAL(12, 2)", "-7", "1.25"),
    "decimal": ("DECIMAL(5, 2)", "DECIMAL(12, 4)", "123.45", "12345678.1234"),
    "date": ("DATE", "TIMESTAMP_NTZ", "DATE '1969-12-31'", "TIMESTAMP_NTZ '2020-01-01 12:00:00.5'"),
}
WIDENED = [
    *(
        Table(
            f"widened_{name}",
            [
                create(f"id INT, c {before}", WIDENING, "timestampNtz", *BOTH_STATS),
                insert(f"(1, {first})", "(2, NULL)"),
                f"ALTER TABLE {{t}} ALTER COLUMN c TYPE {after}",
                insert(f"(3, {second})"),
                checkpoint,
            ],
        )
        for name, (before, after, first, second) in WIDER.items()
    ),
    Table(
        "widened_nested",
        [
            create("id INT, s STRUCT<x: SMALLINT>, a ARRAY<INT>, m MAP<TINYINT, FLOAT>", WIDENING),
            insert("(1, struct(1), array(1, NULL), map(1Y, 0.5F))", "(2, NULL, NULL, NULL)"),
            "ALTER TABLE {t} ALTER COLUMN s.x TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN a.element TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN m.key TYPE INT",
            "ALTER TABLE {t} ALTER COLUMN m.value TYPE DOUBLE",
            insert("(3, struct(1234567890123), array(1234567890123), map(70000, 1e300D))"),
        ],
    ),
    Table(
        "widened_partition_column",
        [
            create("id INT, p TINYINT, q DATE", WIDENING, "timestampNtz", tail="PARTITIONED BY (p, q)"),
            insert("(1, 5, DATE '2020-01-01')", "(2, NULL, NULL)"),
            "ALTER TABLE {t} ALTER COLUMN p TYPE INT",
            "ALTER TABLE {t} ALTER COLUMN q TYPE TIMESTAMP_NTZ",
            insert("(3, 70000, TIMESTAMP_NTZ '2020-01-01 12:00:00')"),
        ],
    ),
    Table(
        "widened_twice_and_rewritten",
        [
            create("id INT, c TINYINT", WIDENING),
            insert("(1, 5)"),
            "ALTER TABLE {t} ALTER COLUMN c TYPE SMALLINT",
            insert("(2, 300)"),
            "ALTER TABLE {t} ALTER COLUMN c TYPE INT",
            insert("(3, 70000)"),
            "OPTIMIZE {t}",
        ],
    ),
    Table(
        "widened_column_mapping_and_vectors",
        [
            create("id INT, c INT", WIDENING, NAME, DV),
            fill("CAST(id AS INT), CAST(id AS INT)", 0, 5),
            "ALTER TABLE {t} ALTER COLUMN c TYPE BIGINT",
            "ALTER TABLE {t} RENAME COLUMN c TO d",
            "DELETE FROM {t} WHERE d = 2",
            insert("(9, 1234567890123)"),
        ],
    ),
    Table(
        "widened_feature_dropped",
        [
            create("id INT, c TINYINT", WIDENING),
            insert("(1, 5)"),
            "ALTER TABLE {t} ALTER COLUMN c TYPE INT",
            insert("(2, 70000)"),
            "ALTER TABLE {t} DROP FEATURE typeWidening",
        ],
    ),
]


VARIANT_ROWS = (
    '(1, parse_json(\'{"a": 1, "b": [true, null, "x"], "c": {"d": 1.5}}\'))',
    "(2, NULL)",
    "(3, parse_json('null'))",
    "(4, parse_json('\"ü\"'))",
    "(5, CAST(DATE '2020-01-01' AS VARIANT))",
    "(6, CAST(CAST(1.25 AS DECIMAL(38, 20)) AS VARIANT))",
    "(7, parse_json('[]'))",
    "(8, parse_json('12345678901234567890'))",
)
OBJECTS = (
    """CAST(id AS INT), parse_json(concat('{"a": ', id, ', "b": "x', id, '"', """
    """CASE WHEN id % 2 = 0 THEN ', "c": [1, {"d": null}]' ELSE '' END, '}'))"""
)
SHREDDED = {
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.inferShreddingSchema": "true",
    "spark.sql.variant.shredding.inferSchema": "true",
}
VARIANTS = [
    Table(
        "variants",
        [
            create("id INT, v VARIANT"),
            insert(*VARIANT_ROWS),
            fill(OBJECTS, 10, 14),
            "DELETE FROM {t} WHERE id = 2",
            checkpoint,
        ],
    ),
    Table(
        "variants_nested",
        [
            create("id INT, a ARRAY<VARIANT>, s STRUCT<v: VARIANT>, m MAP<STRING, VARIANT>"),
            insert(
                "(1, array(parse_json('1'), NULL), struct(parse_json('{\"x\": 1}')), map('k', parse_json('[2]')))",
                "(2, NULL, struct(NULL), map())",
            ),
        ],
    ),
    Table("variants_preview", [create("id INT, v VARIANT", "variantType-preview"), insert(*VARIANT_ROWS[:4])]),
    Table(
        "variants_column_mapping_and_vectors",
        [
            create("id INT, v VARIANT", NAME, DV),
            insert(*VARIANT_ROWS),
            "DELETE FROM {t} WHERE id = 4",
            "ALTER TABLE {t} RENAME COLUMN v TO `w x`",
        ],
    ),
    Table(
        "variants_shredded",
        [
            create("id INT, v VARIANT", "delta.enableVariantShredding=true"),
            fill(OBJECTS, 0, 20),
            insert(*VARIANT_ROWS),
            "DELETE FROM {t} WHERE id = 12",
        ],
        SHREDDED,
        as_json=True,
    ),
    Table(
        "variants_shredded_forced",
        [create("id INT, v VARIANT", "delta.enableVariantShredding=true"), fill(OBJECTS, 0, 6), insert(*VARIANT_ROWS)],
        {**SHREDDED, "spark.sql.variant.forceShreddingSchemaForTest": "a INT, b STRING, c ARRAY<STRUCT<d: INT>>"},
        as_json=True,
    ),
]

TABLES = [*FEATURES, *MAPPING, *WIDENED, *VARIANTS]
