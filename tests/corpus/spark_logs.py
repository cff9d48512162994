"""delta-spark's tables by the state of their logs: checkpoints, compacted commits, checksums, damage."""

from __future__ import annotations

from collections.abc import Mapping

from tests.corpus.spark_steps import (
    BASE,
    BOTH_STATS,
    CONF,
    CRC,
    DV,
    FILL,
    NAME,
    ROW_TRACKING,
    V2,
    checkpoint,
    classic_name,
    commit_file,
    compacted,
    create,
    fill,
    insert,
    log_file,
    replaced,
    set_properties,
    transaction,
    without,
)
from tests.corpus.tables import Step, Table, steps_of

__all__ = ["TABLES"]

ORDERS = "id INT, t TIMESTAMP, s STRING, n STRUCT<x: INT>, p DATE"
ORDER = (
    "CAST(id AS INT), timestamp_micros(id * 1234567), repeat('ü', CAST(id AS INT) * 7), struct(CAST(id AS INT)), "
    "date_add(DATE '2020-01-01', CAST(id % 3 AS INT))"
)


def checkpointed(*properties: str) -> list[Step]:
    """Six appends, a checkpoint, and a commit behind it."""
    return steps_of(
        create(ORDERS, *properties, tail="PARTITIONED BY (p)"),
        [fill(ORDER, n, n + 4) for n in (0, 3, 6)],
        transaction(
            "app-1",
            3,
            "SELECT 50 AS id, TIMESTAMP '2020-01-01 00:00:00' AS t, 'txn' AS s, named_struct('x', 1) AS n, DATE "
            "'2020-01-01' AS p",
        ),
        "DELETE FROM {t} WHERE id = 4",
        checkpoint,
        insert("(-1, NULL, NULL, NULL, NULL)"),
    )


PARTS = {CONF + "checkpoint.partSize": "3"}
JSON_STATS = ("delta.checkpoint.writeStatsAsJson=true", "delta.checkpoint.writeStatsAsStruct=false")
STRUCT_STATS = ("delta.checkpoint.writeStatsAsJson=false", "delta.checkpoint.writeStatsAsStruct=true")
NO_STATS = ("delta.checkpoint.writeStatsAsJson=false", "delta.checkpoint.writeStatsAsStruct=false")
STATS = {"json": JSON_STATS, "struct": STRUCT_STATS, "both": BOTH_STATS, "none": NO_STATS}
FORMS: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "classic": ((), {}),
    "multipart": ((), PARTS),
    "v2_json": ((V2,), {CONF + "checkpointV2.topLevelFileFormat": "json"}),
    "v2_parquet": ((V2,), {CONF + "checkpointV2.topLevelFileFormat": "parquet"}),
    "v2_json_sidecars": ((V2,), {CONF + "checkpointV2.topLevelFileFormat": "json", **PARTS}),
    "v2_parquet_sidecars": ((V2,), {CONF + "checkpointV2.topLevelFileFormat": "parquet", **PARTS}),
}
COUNTED = [create("id INT, v STRING", "delta.checkpointInterval=3"), *(fill(FILL, n, n + 2) for n in range(7))]
CHECKPOINTS = [
    *(
        Table(f"checkpoint_{form}_{stats}", checkpointed(*properties, *STATS[stats]), conf)
        for form, (properties, conf) in FORMS.items()
        for stats in (STATS if form == "classic" else ("json", "struct"))
    ),
    *(
        Table(
            f"checkpoint_{form}_alone",
            [*checkpointed(*properties, *BOTH_STATS), checkpoint],
            conf,
            gone=range(5),
            after=[without("_delta_log/" + "[0-9]" * 20 + ".json")],
        )
        for form, (properties, conf) in FORMS.items()
    ),
    Table(
        "checkpoint_v2_classic_name",
        [*checkpointed(V2), without("_delta_log/" + "0" * 19 + "[0-4].json"), classic_name],
        {CONF + "checkpointV2.topLevelFileFormat": "parquet"},
        gone=range(5),
    ),
    Table("checkpoints_several", COUNTED),
    Table(
        "checkpoints_several_logs_cleaned",
        [*COUNTED, without("_delta_log/" + "0" * 19 + "[0-5].json", "_delta_log/" + "0" * 19 + "3.checkpoint.parquet")],
        gone=range(6),
    ),
    Table("last_checkpoint_missing", [*COUNTED, without("_delta_log/_last_checkpoint")]),
    Table("last_checkpoint_stale", [*COUNTED, replaced("_last_checkpoint", ".*", '{"version":3,"size":5}')]),
    Table("last_checkpoint_corrupt", [*COUNTED, replaced("_last_checkpoint", ".*", '{"version":')]),
    Table("last_checkpoint_empty", [*COUNTED, replaced("_last_checkpoint", ".*", "")]),
    Table("last_checkpoint_of_a_missing_file", [*COUNTED, without("_delta_log/" + "0" * 19 + "6.checkpoint.parquet")]),
    Table(
        "multipart_checkpoint_incomplete",
        [*checkpointed(), without("_delta_log/*.checkpoint.0000000002.*.parquet")],
        PARTS,
    ),
    Table(
        "multipart_checkpoint_incomplete_after_another",
        [*COUNTED, checkpoint, without("_delta_log/*7.checkpoint.0000000001.*.parquet")],
        {CONF + "checkpoint.partSize": "4"},
    ),
    Table(
        "checkpoint_across_schema_change",
        [
            create("id INT, v STRING", *BOTH_STATS),
            fill(FILL, 0, 2),
            checkpoint,
            "ALTER TABLE {t} ADD COLUMNS (w DATE FIRST, s STRUCT<a: INT>)",
            insert("(DATE '2020-01-01', 5, 'x', struct(1))"),
            checkpoint,
            insert("(NULL, 6, NULL, NULL)"),
        ],
    ),
    Table(
        "checkpoint_with_domains",
        [
            create("id INT, v STRING", ROW_TRACKING, tail="CLUSTER BY (id)"),
            fill(FILL, 0, 4),
            checkpoint,
            fill(FILL, 4, 5),
        ],
    ),
]


LOG = [
    Table(
        "compacted_commits",
        [
            create("id INT, v STRING", DV),
            *(fill(FILL, n * 3, n * 3 + 3) for n in range(4)),
            "DELETE FROM {t} WHERE id IN (1, 4)",
            compacted(1, 4),
            "DELETE FROM {t} WHERE id = 7",
            compacted(5, 6),
        ],
    ),
    Table(
        "compacted_commits_over_schema_change",
        [
            create("id INT"),
            insert("(1)"),
            "ALTER TABLE {t} ADD COLUMN v STRING",
            insert("(2, 'b')"),
            "DELETE FROM {t} WHERE id = 1",
            compacted(0, 3),
            insert("(3, 'c')"),
        ],
    ),
    Table(
        "compacted_commits_and_checkpoint",
        [
            create("id INT, v STRING"),
            *(fill(FILL, n, n + 1) for n in range(4)),
            checkpoint,
            compacted(2, 4),
            "DELETE FROM {t} WHERE id = 0",
            compacted(3, 5),
            fill(FILL, 8, 9),
        ],
    ),
    Table(
        "checksums",
        [
            create("id INT, v STRING", DV, tail="PARTITIONED BY (v)"),
            fill(FILL, 0, 3),
            "DELETE FROM {t} WHERE id = 1",
            transaction("app", 7, "SELECT 9 AS id, 'x' AS v"),
        ],
        CRC,
    ),
    Table(
        "checksums_of_all_features",
        [
            create(
                "id INT, v STRING",
                DV,
                ROW_TRACKING,
                "delta.enableInCommitTimestamps=true",
                NAME,
                tail="CLUSTER BY (id)",
            ),
            fill(FILL, 0, 3),
            "DELETE FROM {t} WHERE id = 1",
        ],
        CRC,
    ),
    Table(
        "checksum_missing_latest",
        [create("id INT, v STRING"), fill(FILL, 0, 3), fill(FILL, 3, 4), without("_delta_log/*2.crc")],
        CRC,
    ),
    Table(
        "checksum_no_json",
        [create("id INT, v STRING"), fill(FILL, 0, 3), replaced("0" * 19 + "1.crc", ".*", "not JSON")],
        CRC,
    ),
    Table(
        "checksum_cut_off",
        [create("id INT, v STRING"), fill(FILL, 0, 3), replaced("0" * 19 + "1.crc", r'"protocol".*', "")],
        CRC,
    ),
    Table(
        "checksum_with_text_behind",
        [
            create("id INT, v STRING"),
            fill(FILL, 0, 3),
            lambda spark, path: log_file(path, "0" * 19 + "1.crc").open("a").write("\n{}"),
        ],
        CRC,
    ),
    Table(
        "checksum_without_metadata",
        [
            create("id INT, v STRING"),
            fill(FILL, 0, 3),
            replaced("0" * 19 + "1.crc", r'"metadata":\{.*?\},"protocol"', '"protocol"'),
        ],
        CRC,
    ),
    Table(
        "checksum_without_protocol",
        [create("id INT, v STRING"), fill(FILL, 0, 3), replaced("0" * 19 + "1.crc", r',"protocol":\{[^}]*\}', "")],
        CRC,
    ),
    Table(
        "checksum_at_checkpoint", [*checkpointed(), without("_delta_log/" + "0" * 19 + "[0-3].*")], CRC, gone=range(5)
    ),
    Table(
        "empty_commit",
        [
            create("id INT, v STRING"),
            fill(FILL, 0, 3),
            "DELETE FROM {t} WHERE id = 99",
            "OPTIMIZE {t}",
            set_properties("a=b"),
        ],
    ),
    Table(
        "commits_with_blank_lines",
        [
            create("id INT"),
            insert("(1)"),
            lambda spark, path: commit_file(path, 1).write_text(commit_file(path, 1).read_text().replace("\n", "\n\n")),
        ],
    ),
    Table(
        "unknown_fields_and_actions",
        [
            create("id INT"),
            insert("(1)"),
            replaced("0" * 19 + "1.json", r'"dataChange":true', '"dataChange":true,"futureField":{"a":[1]}'),
            lambda spark, path: commit_file(path, 1).open("a").write('{"futureAction":{"x":1}}\n'),
        ],
    ),
    Table(
        "user_properties_and_comments",
        [
            create(
                "id INT COMMENT 'key', v STRING COMMENT 'ü \"quoted\"'",
                "team=x",
                "delta.logRetentionDuration=interval 20 days",
                tail="COMMENT 'a table'",
            ),
            fill(FILL, 0, 2),
            "COMMENT ON TABLE {t} IS 'still a table'",
            "ALTER TABLE {t} ALTER COLUMN id COMMENT 'no key'",
            "ALTER TABLE {t} UNSET TBLPROPERTIES ('team')",
        ],
    ),
    Table(
        "transactions_of_applications",
        [
            create("id INT"),
            *(transaction(app, n, f"SELECT {n} AS id") for app, n in (("a", 1), ("b", 5), ("a", 2), ("a", 2))),
        ],
    ),
    Table(
        "in_commit_timestamps",
        [
            create("id INT", "delta.enableInCommitTimestamps=true"),
            insert("(1)"),
            insert("(2)"),
            checkpoint,
            insert("(3)"),
        ],
    ),
    Table(
        "in_commit_timestamps_turned_on",
        [create("id INT"), insert("(1)"), set_properties("delta.enableInCommitTimestamps=true"), insert("(2)")],
    ),
    Table(
        "coordinated_commits_feature", [create("id INT", "coordinatedCommits-preview"), insert("(1)"), insert("(2)")]
    ),
    Table(
        "statistics_of_no_column", [create("id INT, v STRING", "delta.dataSkippingNumIndexedCols=0"), fill(FILL, 0, 3)]
    ),
    Table(
        "statistics_of_first_column",
        [
            create("id INT, v STRING, n STRUCT<x: INT>", "delta.dataSkippingNumIndexedCols=1"),
            insert("(1, 'a', struct(1))"),
        ],
    ),
    Table(
        "statistics_of_named_columns",
        [
            create("id INT, v STRING, n STRUCT<x: INT, y: STRING>", "delta.dataSkippingStatsColumns=v,n.y"),
            insert("(1, 'a', struct(1, 'b'))", "(2, NULL, NULL)"),
        ],
    ),
    Table(
        "statistics_missing",
        [create("id INT, v STRING"), fill(FILL, 0, 3), fill(FILL, 3, 5), checkpoint],
        {CONF + "stats.collect": "false"},
    ),
    Table(
        "statistics_missing_on_some",
        steps_of(
            create("id INT, v STRING"),
            fill(FILL, 0, 3),
            lambda spark, path: spark.session.conf.set(CONF + "stats.collect", "true"),
            fill(FILL, 3, 5),
            checkpoint,
        ),
        {CONF + "stats.collect": "false"},
    ),
    Table(
        "statistics_of_nulls",
        [
            create("id INT, v STRING, n STRUCT<x: INT>"),
            insert("(NULL, NULL, NULL)"),
            insert("(1, NULL, struct(NULL))"),
            checkpoint,
        ],
    ),
]


# --- tables that must not be read ----------------------------------------------------------


def damaged(name: str, error: str, *steps: Step) -> Table:
    return Table(f"damaged_{name}", [*BASE, fill(FILL, 3, 5), *steps], error=error)


FIRST = "0" * 20 + ".json"
LAST = "0" * 19 + "2.json"
DAMAGED = [
    damaged("commit_missing", "missing-commit", without("_delta_log/*1.json")),
    damaged("first_commit_missing", "missing-first-commit", without("_delta_log/*0.json")),
    damaged("commit_cut_off", "corrupt-commit-json", replaced(LAST, r'"dataChange".*', "")),
    damaged("commit_no_json", "corrupt-commit-json", replaced(LAST, ".*", "not JSON\n")),
    damaged("no_protocol", "no-protocol", replaced(FIRST, r'\{"protocol"[^\n]*\n', "")),
    damaged("no_metadata", "no-metadata", replaced(FIRST, r'\{"metaData"[^\n]*\n', "")),
    damaged("no_schema", "metadata-without-schema", replaced(FIRST, r'"schemaString":"(\\.|[^"\\])*",', "")),
    damaged("no_commits", "no-commits", without("_delta_log/*.json")),
    damaged(
        "reader_version",
        "unsupported-reader-version",
        replaced(FIRST, r'"minReaderVersion":1', '"minReaderVersion":99'),
    ),
    damaged("unknown_type", "unsupported-type", replaced(FIRST, r'\\"integer\\"', '\\"geometry(4326)\\"')),
    damaged("data_file_missing", "missing-data-file", lambda spark, path: next(path.glob("*.parquet")).unlink()),
    damaged(
        "checkpoint_cut_off",
        "checkpoint-unreadable",
        checkpoint,
        without("_delta_log/*.json"),
        lambda spark, path: next(path.glob("_delta_log/*.parquet")).write_bytes(b"PAR1"),
    ),
    Table(
        "damaged_vector_missing",
        [create("id INT", DV), fill("CAST(id AS INT)", 0, 5), "DELETE FROM {t} WHERE id = 1", without("*.bin")],
        error="missing-dv-file",
    ),
    Table(
        "damaged_sidecar_missing",
        [
            *checkpointed(V2),
            without("_delta_log/" + "0" * 19 + "[0-4].json"),
            lambda spark, path: next(path.glob("_delta_log/_sidecars/*")).unlink(),
        ],
        {CONF + "checkpointV2.topLevelFileFormat": "parquet", **PARTS},
        error="checkpoint-unreadable",
    ),
]

TABLES = [*CHECKPOINTS, *LOG, *DAMAGED]
