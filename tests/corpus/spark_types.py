"""delta-spark's tables of column types and partitions."""

from __future__ import annotations

from itertools import product

from tests.corpus.spark_steps import CONF, DV, FILL, checkpoint, create, fill, insert, without, written
from tests.corpus.tables import Table, steps_of

__all__ = ["TABLES"]

PRIMITIVES = (
    "b BOOLEAN, y TINYINT, h SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, c DECIMAL(9, 2), e DECIMAL(38, 18), "
    "s STRING, x BINARY, a DATE, t TIMESTAMP"
)
PRIMITIVE_ROWS = (
    (
        "(true, 127, 32767, 2147483647, 9223372036854775807, 3.4028235E38, 1.7976931348623157E308, 9999999.99, "
        "99999999999999999999.999999999999999999, 'ü€😀', X'00FF', DATE '9999-12-31', TIMESTAMP '9999-12-31 "
        "23:59:59.999999')"
    ),
    (
        "(false, -128, -32768, -2147483648, -9223372036854775808, -3.4028235E38, -1.7976931348623157E308, -9999999.99, "
        "-99999999999999999999.999999999999999999, '', X'', DATE '0001-01-01', TIMESTAMP '0001-01-01 00:00:00')"
    ),
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    (
        "(true, 0, 0, 0, 0, float('-0.0'), double('-0.0'), 0, 0, ' \\t\\n\"\\\\', X'61', DATE '1970-01-01', "
        "TIMESTAMP '1969-12-31 23:59:59.999999')"
    ),
)
PRIMITIVE = [create(PRIMITIVES), insert(*PRIMITIVE_ROWS[:2]), insert(*PRIMITIVE_ROWS[2:])]

TYPES = [
    Table("primitive_types", PRIMITIVE),
    Table("primitive_types_legacy_parquet", PRIMITIVE, {"spark.sql.parquet.writeLegacyFormat": "true"}),
    Table("primitive_types_parquet_v2", [create(PRIMITIVES, "delta.parquet.format.version=2.12.0"), *PRIMITIVE[1:]]),
    Table(
        "nested_types",
        [
            create(
                "id INT, s STRUCT<x: INT, y: STRUCT<z: STRING, w: DATE>>, a ARRAY<INT>, aa ARRAY<ARRAY<STRING>>, "
                "m MAP<STRING, INT>, mm MAP<INT, MAP<STRING, DOUBLE>>, sa ARRAY<STRUCT<k: INT, v: DECIMAL(5, 2)>>, "
                "ms MAP<STRING, STRUCT<p: TIMESTAMP>>"
            ),
            insert(
                "(1, struct(1, struct('z', DATE '2020-01-01')), array(1, NULL, 3), array(array('a'), NULL, array()), "
                "map('k', 1, 'n', NULL), map(1, map('x', 0.5D)), array(struct(1, 1.25), NULL), "
                "map('t', struct(TIMESTAMP '2020-01-01 00:00:00')))",
                "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
            ),
            insert(
                "(3, struct(NULL, NULL), array(), array(), map(), map(), array(), map())",
                "(4, struct(4, struct(NULL, NULL)), array(NULL), array(NULL), map('', 0), map(0, NULL), "
                "array(struct(NULL, NULL)), map('', NULL))",
            ),
        ],
    ),
    Table(
        "void_column",
        [create("id INT, v VOID, s STRUCT<a: INT>"), "INSERT INTO {t} (id, s) VALUES (1, struct(2)), (2, NULL)"],
    ),
    Table(
        "char_and_varchar", [create("id INT, c CHAR(4), v VARCHAR(3)"), insert("(1, 'ab', 'abc')", "(2, NULL, 'ü')")]
    ),
    Table(
        "special_numbers",
        [
            create("id INT, f FLOAT, d DOUBLE"),
            insert("(1, float('NaN'), double('Infinity'))", "(2, float('-Infinity'), double('NaN'))", "(3, 1, 2)"),
            insert("(4, float('-0.0'), 0.0)", "(5, 0.0, double('-0.0'))"),
            insert("(6, float('NaN'), double('NaN'))"),
            insert("(7, 1.4E-45, 4.9E-324)", "(8, NULL, NULL)"),
        ],
    ),
    Table(
        "long_strings",
        [
            create("id INT, s STRING, x BINARY"),
            "INSERT INTO {t} VALUES (1, repeat('a', 40), CAST(repeat('b', 40) AS BINARY)), (2, repeat('😀', 40), NULL)",
            "INSERT INTO {t} VALUES (3, repeat('\\uFFFF', 35), X'FF'), (4, repeat('é', 33), X'00')",
        ],
    ),
    *(
        Table(
            f"decimals_{form}",
            [
                create(
                    "id INT, a DECIMAL(1, 0), b DECIMAL(9, 9), c DECIMAL(18, 5), d DECIMAL(19, 0), e DECIMAL(38, 37)"
                ),
                insert(
                    "(1, 9, 0.123456789, 1234567890123.45678, 1234567890123456789, "
                    "9.1234567890123456789012345678901234567)"
                ),
                insert(
                    "(2, -9, -0.999999999, -0.00001, -1, -0.0000000000000000000000000000000000001)",
                    "(3, NULL, 0, 0, 0, NULL)",
                ),
            ],
            {"spark.sql.parquet.writeLegacyFormat": str(form == "legacy").lower()},
        )
        for form in ("integers", "legacy")
    ),
    *(
        Table(
            f"old_times_{kind}_{mode}".lower(),
            [
                create("id INT, t TIMESTAMP, d DATE"),
                insert(
                    "(1, TIMESTAMP '1000-01-01 00:00:00', DATE '1000-01-01')",
                    "(2, TIMESTAMP '2024-01-01 12:34:56.789', DATE '1582-10-04')",
                    "(3, TIMESTAMP '1900-01-01 00:00:00', DATE '0001-01-01')",
                ),
                insert("(4, TIMESTAMP '9999-12-31 23:59:59.999', DATE '9999-12-31')", "(5, NULL, NULL)"),
            ],
            {
                "spark.sql.parquet.outputTimestampType": kind,
                "spark.sql.parquet.int96RebaseModeInWrite": mode,
                "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
            },
        )
        for kind, mode in product(("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"), ("LEGACY", "CORRECTED"))
    ),
    Table(
        "timestamp_ntz",
        [
            create("id INT, n TIMESTAMP_NTZ, s STRUCT<n: TIMESTAMP_NTZ>"),
            insert(
                "(1, TIMESTAMP_NTZ '2024-03-10 02:30:00.123456', NULL)",
                "(2, TIMESTAMP_NTZ '0001-01-01 00:00:00', struct(NULL))",
            ),
            insert(
                "(3, TIMESTAMP_NTZ '9999-12-31 23:59:59.999999', struct(TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'))",
                "(4, NULL, NULL)",
            ),
        ],
    ),
    Table(
        "compression_codecs",
        steps_of(
            create("id INT, v STRING"),
            *(
                [
                    lambda spark, path, c=codec: spark.session.conf.set("spark.sql.parquet.compression.codec", c),
                    fill(FILL, n, n + 2),
                ]
                for n, codec in enumerate(("snappy", "gzip", "zstd", "lz4_raw", "uncompressed", "brotli")[:5])
            ),
        ),
        {"spark.sql.parquet.compression.codec": "snappy"},
    ),
    Table(
        "many_row_groups",
        [create("id INT, v STRING"), fill("CAST(id AS INT), repeat(CAST(id % 7 AS STRING), 12)", 0, 1200)],
        {
            "hadoop:parquet.block.size": "1024",
            "hadoop:parquet.page.size": "256",
            "hadoop:parquet.block.size.row.check.min": "100",
            "hadoop:parquet.page.size.row.check.min": "50",
            "hadoop:parquet.page.size.row.check.max": "50",
        },
    ),
    Table(
        "bloom_filter_and_no_dictionary",
        [create("id INT, v STRING"), fill(FILL, 0, 60)],
        {
            "hadoop:parquet.bloom.filter.enabled#v": "true",
            "hadoop:parquet.bloom.filter.expected.ndv#v": "60",
            "hadoop:parquet.enable.dictionary": "false",
        },
    ),
    Table("no_commit_of_rows", [create("id INT, v STRING")]),
    Table("no_rows", [create("id INT, v STRING"), "INSERT INTO {t} SELECT 1, 'a' WHERE false"]),
    Table(
        "names_in_capitals",
        [
            create("Id INT, `naïve` STRING, CamelCase STRUCT<Inner: INT>", tail="PARTITIONED BY (Id)"),
            insert("(1, 'a', struct(1))", "(2, NULL, NULL)"),
        ],
    ),
]

PARTITIONS = {
    "boolean": ("BOOLEAN", ["true", "false"]),
    "byte": ("TINYINT", ["-128", "127"]),
    "short": ("SMALLINT", ["-32768", "0"]),
    "integer": ("INT", ["-2147483648", "0"]),
    "long": ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    "float": ("FLOAT", ["float('NaN')", "float('-Infinity')", "0.1", "float('-0.0')", "1e30"]),
    "double": ("DOUBLE", ["double('Infinity')", "1e-7", "12345678.9", "double('NaN')"]),
    "decimal": ("DECIMAL(38, 18)", ["-0.000000000000000001", "12345678901234567890.5", "0"]),
    "string": (
        "STRING",
        [
            "'a b'",
            "'%41+#?&='",
            "'ü/\\\\:*\"'",
            "'__HIVE_DEFAULT_PARTITION__x'",
            "' b'",
            "'a=b'",
            "'{}[]^~|`'",
            "'\\n'",
        ],
    ),
    "empty_string": ("STRING", ["''", "'a'"]),
    "binary": ("BINARY", ["X'616263'", "X'C3BC25'"]),
    "date": ("DATE", ["DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1582-10-04'"]),
    "timestamp": (
        "TIMESTAMP",
        [
            "TIMESTAMP '2024-03-10 02:30:00.123456'",
            "TIMESTAMP '1500-01-01 00:00:00'",
            "TIMESTAMP '1969-12-31 23:59:59.999999'",
        ],
    ),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ",
        ["TIMESTAMP_NTZ '2024-03-10 02:30:00.123'", "TIMESTAMP_NTZ '0001-01-01 00:00:00'"],
    ),
}


def of_every(values: list[str]) -> str:
    return insert(*(f"({i}, {v})" for i, v in enumerate([*values, "NULL"])))


PARTITIONED = [
    *(
        Table(f"partition_{name}", [create(f"id INT, p {kind}", tail="PARTITIONED BY (p)"), of_every(values)])
        for name, (kind, values) in PARTITIONS.items()
    ),
    *(
        Table(
            f"partition_{name}_checkpoint",
            [
                create(f"id INT, p {kind}", "delta.checkpoint.writeStatsAsStruct=true", tail="PARTITIONED BY (p)"),
                of_every(values),
                checkpoint,
            ],
            gone=(0,),
            after=[without("_delta_log/*.json")],
        )
        for name, (kind, values) in PARTITIONS.items()
        if name in ("double", "decimal", "string", "binary", "date", "timestamp", "timestamp_ntz")
    ),
    Table(
        "partition_timestamp_iso",
        [
            create("id INT, p TIMESTAMP", tail="PARTITIONED BY (p)"),
            of_every(["TIMESTAMP '2024-07-01 10:00:00-07:00'", "TIMESTAMP '2024-11-03 01:30:00.5-07:00'"]),
        ],
        {"spark.sql.session.timeZone": "America/Los_Angeles", CONF + "write.utcTimestampPartitionValues": "true"},
    ),
    Table(
        "partitioned_by_several",
        [
            create("id INT, p STRING, q INT, r DATE", tail="PARTITIONED BY (q, p, r)"),
            insert(
                "(1, 'a', 1, DATE '2020-01-01')",
                "(2, NULL, 1, NULL)",
                "(3, '', NULL, NULL)",
                "(4, 'a/b', 1, DATE '2020-01-01')",
            ),
            "DELETE FROM {t} WHERE q = 1 AND p = 'a'",
        ],
    ),
    Table(
        "partitioned_by_all_but_one",
        [create("a INT, b INT, c INT", tail="PARTITIONED BY (c, a)"), insert("(1, 2, 3)", "(4, 5, 6)")],
    ),
    Table(
        "random_prefixes",
        [
            create("id INT, p STRING", "delta.randomizeFilePrefixes=true", DV, tail="PARTITIONED BY (p)"),
            fill("CAST(id AS INT), CAST(id % 2 AS STRING)", 0, 20),
            "DELETE FROM {t} WHERE id IN (3, 4)",
        ],
    ),
    Table(
        "repartitioned",
        [
            written(
                "SELECT CAST(id AS INT) AS id, CAST(id % 2 AS INT) AS p, 'x' AS q FROM range(4)", partition_by=("p",)
            ),
            written(
                "SELECT CAST(id AS INT) AS id, CAST(id % 2 AS INT) AS p, CAST(id AS STRING) AS q FROM range(5)",
                "overwrite",
                ("q",),
                overwriteSchema="true",
            ),
            written("SELECT 9 AS id, 8 AS p, '7' AS q"),
        ],
    ),
    Table(
        "materialized_partition_columns",
        [
            create("id INT, p STRING", "materializePartitionColumns", tail="PARTITIONED BY (p)"),
            insert("(1, 'a b')", "(2, NULL)"),
            fill("CAST(id AS INT), 'c'", 5, 8),
        ],
    ),
    Table(
        "materialized_partition_columns_by_property",
        [
            create(
                "id INT, p INT",
                "materializePartitionColumns",
                "delta.writePartitionColumnsToParquet=true",
                tail="PARTITIONED BY (p)",
            ),
            insert("(1, 1)", "(2, NULL)"),
        ],
    ),
]

TABLES = [*TYPES, *PARTITIONED]
