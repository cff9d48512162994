"""Tables that are written here are read, changed and maintained by Delta's own Spark library, and read here again.

They run if `test_spark_tables` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.kernels.row_set import RowSet
from delta_core.operations.create import create_table
from delta_core.operations.write import WriteOptions, write_table
from tests.interop.conftest import Made, plain
from tests.interop.feature_matrix import schema_of, set_domain

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

Fields = Sequence[tuple[Any, ...]]
#: What a removal of rows needs of a file.
READ = (
    "path",
    "partitionValues",
    "size",
    "modificationTime",
    "stats",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider",
)


@dataclass(frozen=True)
class Case:
    """A table: its fields (name, type, metadata, nullable), what it is created with, the rows of each append.

    ``insert`` is what Spark inserts (``{t}`` the table), ``delete`` what it deletes, ``peer`` whether deltalake reads
    it.
    """

    fields: Fields
    appends: Sequence[Mapping[str, Any]]
    properties: Mapping[str, str] = field(default_factory=dict)
    features: Iterable[str] = ()
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    insert: str = "INSERT INTO {t} SELECT * FROM {t} LIMIT 2"
    delete: str | None = "DELETE FROM {t} WHERE id = 1"
    select: str = "*"
    peer: bool = True
    checkpoint: bool = False
    after: Callable[[str], None] | None = None


def make(path: Path, case: Case) -> str:
    uri = str(path)
    create_table(
        open_context(uri),
        schema_of(case.fields),
        properties=case.properties,
        features=case.features,
        partition_by=case.partition_by,
        cluster_by=case.cluster_by,
    )
    for rows in case.appends:
        append(uri, rows)
    if case.after is not None:
        case.after(uri)
    if case.checkpoint:
        write_checkpoint(open_snapshot(uri))
        append(uri, case.appends[-1])
    return uri


def append(uri: str, rows: Mapping[str, Any], **options: Any) -> None:
    given = open_snapshot(uri).schema
    known = {f.name: f for f in given.to_arrow()}
    arrow = pa.table(
        {
            n: v if isinstance(v, pa.Array) else pa.array(v, known[n].type) if n in known else pa.array(v)
            for n, v in rows.items()
        }
    )
    assert write_table(open_context(uri), arrow, WriteOptions(mode="append", **options)) is not None


def drop_rows(*positions: int) -> Callable[[str], None]:
    def drop(uri: str) -> None:
        snapshot = open_snapshot(uri)
        transaction = Transaction(snapshot.context, snapshot, "DELETE")
        files = snapshot.files.columns([*READ, "dvId"])
        transaction.remove_rows(files.slice(0, 1), RowSet.from_positions(positions))
        transaction.commit()

    return drop


def struct(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


ID = ("id", "long")
IDS = {"id": [1, 2, 3, 4]}
ODD = ["a b/c%d", "ü=:#?{}*^~'\"\\", None, "__HIVE_DEFAULT_PARTITION__x"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC), None, EPOCH]
DAYS = [date(2020, 1, 1), None, None, date(2021, 1, 1)]
NAIVE = [t and t.replace(tzinfo=None) for t in TIMES]
NESTED = [
    (
        "n",
        struct(
            ("a", "integer"),
            ("l", array(struct(("x", "integer"), ("y", "string")))),
            ("m", mapping("string", struct(("k", "integer")))),
        ),
    )
]
NESTED_ROWS = {
    "n": [
        {"a": 1, "l": [{"x": 1, "y": "q"}, None], "m": [("k", {"k": 5})]},
        None,
        {"a": None, "l": [], "m": []},
        {"a": -2, "l": None, "m": [("z", None)]},
    ]
}
PRIMITIVES: Fields = [
    ID,
    ("b", "byte"),
    ("s", "short"),
    ("i", "integer"),
    ("f", "float"),
    ("d", "double"),
    ("t", "string"),
    ("x", "binary"),
    ("o", "boolean"),
    ("dt", "date"),
    ("ts", "timestamp"),
    ("c", "decimal(5,2)"),
    ("e", "decimal(38,10)"),
    ("g", "decimal(18,0)"),
]
PRIMITIVE_ROWS = {
    **IDS,
    "b": [-128, 127, None, 0],
    "s": [-(2**15), 2**15 - 1, None, 0],
    "i": [-(2**31), 2**31 - 1, None, 0],
    "f": [math.nan, -0.0, None, math.inf],
    "d": [math.nan, -0.0, None, -math.inf],
    "t": ["x" * 31 + "\U0001f600tail", "", None, "\U0010ffff" * 40],
    "x": [b"\x00\xff", b"", None, b"z" * 50],
    "o": [True, False, None, True],
    "dt": [date(1, 1, 1), date(9999, 12, 31), None, date(1969, 12, 31)],
    "ts": TIMES,
    "c": [Decimal("999.99"), Decimal("-999.99"), None, Decimal(0)],
    "e": [Decimal(10) ** 27, -Decimal("0.0000000001"), None, Decimal(1)],
    "g": [10**17, -(10**17), None, 0],
}
CDF = {"delta.enableChangeDataFeed": "true"}
DV = {"delta.enableDeletionVectors": "true"}

CASES: dict[str, Case] = {
    "every primitive": Case(PRIMITIVES, [PRIMITIVE_ROWS]),
    "nested": Case([ID, *NESTED], [{**IDS, **NESTED_ROWS}], checkpoint=True),
    "partitions by text": Case(
        [ID, ("p", "string"), ("Q", "integer")], [{**IDS, "p": ODD, "Q": [1, None, 3, -4]}], partition_by=["p", "Q"],
        checkpoint=True,
    ),
    "partitions by every type": Case(
        [n for n in PRIMITIVES if n[0] != "x"], [{k: v for k, v in PRIMITIVE_ROWS.items() if k != "x"} | {"t": ODD}],
        partition_by=["b", "s", "i", "f", "d", "t", "o", "dt", "ts", "c", "e", "g"], checkpoint=True, peer=False,
    ),
    "binary partitions": Case(
        [ID, ("p", "binary")], [{**IDS, "p": [b"ab", b"c/d", None, "ü".encode()]}], partition_by=["p"]
    ),
    "not null and char lengths": Case(
        [ID, ("c", "string", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
         ("v", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(4)", "comment": "it's"}), ("r", "integer", {}, False)],
        [{**IDS, "c": ["abc", "xyz", None, "123"], "v": ["abcd", "", None, "ü"], "r": [1, 2, 3, 4]}],
    ),
    "constraints": Case(
        [ID, ("v", "integer")], [{**IDS, "v": [1, 2, 3, 4]}], {"delta.constraints.positive": "v > 0 AND id <> 99"},
    ),
    "generated": Case(
        [ID, ("ts", "timestamp"), ("y", "integer", {"delta.generationExpression": "YEAR(ts)"})], [{**IDS, "ts": TIMES}],
        partition_by=["y"], insert="INSERT INTO {t} (id, ts) VALUES (9, TIMESTAMP '2001-01-01 00:00:00')",
    ),
    "defaults": Case(
        [ID, ("d", "string", {"CURRENT_DEFAULT": "'dflt'"})], [IDS, {**IDS, "d": ["a", None, "b", "c"]}],
        {"delta.feature.allowColumnDefaults": "supported"}, insert="INSERT INTO {t} (id) VALUES (9)",
    ),
    "identity": Case(
        [ID, ("k", "long", {
            "delta.identity.start": 5, "delta.identity.step": -3, "delta.identity.allowExplicitInsert": False,
        })], [IDS, IDS], insert="INSERT INTO {t} (id) VALUES (9), (10)",
    ),
    "name mapping": Case(
        [("id", "long"), ("a ,;{}()\n\t=", "string"), *NESTED, ("p q", "date")],
        [{**IDS, "a ,;{}()\n\t=": ["1", None, "3", "4"], **NESTED_ROWS, "p q": DAYS}],
        {"delta.columnMapping.mode": "name"}, partition_by=["p q"], checkpoint=True, peer=False,
    ),
    "id mapping": Case(
        [ID, *NESTED], [{**IDS, **NESTED_ROWS}], {"delta.columnMapping.mode": "id"}, peer=False, checkpoint=True
    ),
    "vectors": Case(
        [ID], [IDS, IDS], DV, after=drop_rows(0, 2), checkpoint=True, insert="INSERT INTO {t} VALUES (7), (8)"
    ),
    "vectors and row ids and changes": Case(
        [ID], [IDS, IDS], {**DV, **CDF, "delta.enableRowTracking": "true"}, after=drop_rows(1), checkpoint=True,
        insert="INSERT INTO {t} VALUES (7), (8)",
        select="*, _metadata.row_id AS _row_id, _metadata.row_commit_version AS _row_commit_version",
    ),
    "in-commit timestamps": Case([ID], [IDS], {"delta.enableInCommitTimestamps": "true"}, checkpoint=True),
    "clustering": Case(
        [ID, ("k", "integer"), ("n", struct(("a", "integer"), ("b", "string")))],
        [{**IDS, "k": [4, 3, 2, 1], "n": [{"a": 1, "b": "x"}] * 4}], cluster_by=["k", "n.a"], checkpoint=True,
    ),
    "clustering, mapped": Case(
        [ID, ("k", "integer")], [{**IDS, "k": [4, 3, 2, 1]}], {"delta.columnMapping.mode": "name"}, cluster_by=["k"],
        peer=False,
    ),
    "change feed": Case([ID], [IDS], CDF),
    "checkpoints of version 2": Case(
        [ID, *NESTED], [{**IDS, **NESTED_ROWS}], {"delta.checkpointPolicy": "v2"}, checkpoint=True
    ),
    "checkpoints without structs": Case(
        [ID, ("p", "date")], [{**IDS, "p": DAYS}],
        {"delta.checkpoint.writeStatsAsStruct": "false"}, partition_by=["p"], checkpoint=True,
    ),
    "checkpoints without text": Case(
        PRIMITIVES, [PRIMITIVE_ROWS], {"delta.checkpoint.writeStatsAsJson": "false"}, checkpoint=True
    ),
    "timestamps without zone": Case(
        [ID, ("t", "timestamp_ntz"), ("p", "timestamp_ntz")], [{**IDS, "t": NAIVE, "p": NAIVE}], partition_by=["p"],
        checkpoint=True,
    ),
    "compatible with Iceberg": Case(
        [ID, *NESTED], [{**IDS, **NESTED_ROWS}],
        {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}, peer=False,
    ),
    "domains": Case(
        [ID], [IDS], features=["domainMetadata"], checkpoint=True,
        after=set_domain,
    ),
    "append only": Case([ID], [IDS], {"delta.appendOnly": "true"}, delete=None),
    "plain acknowledgements": Case(
        [ID], [IDS], features=["vacuumProtocolCheck", "checkpointProtection", "materializePartitionColumns"],
        peer=False,
    ),
    "codec and indexed columns": Case(
        [ID, ("a", "string"), ("b", "string")], [{**IDS, "a": ["1"] * 4, "b": ["2"] * 4}],
        {"delta.parquet.compression.codec": "gzip", "delta.dataSkippingStatsColumns": "`b`", "custom.key": "v"},
        checkpoint=True,
    ),
    "widened by a merge": Case(
        [ID, ("i", "integer"), ("f", "float")], [{**IDS, "i": [1, 2, 3, 4], "f": [0.5] * 4}],
        {"delta.enableTypeWidening": "true"}, peer=False,
        after=lambda uri: append(
            uri, {"id": [7], "i": pa.array([2**40]), "f": pa.array([0.1], pa.float64()), "more": [date(2020, 1, 1)]},
            schema_mode="merge",
        ),
    ),
}  # fmt: skip


def ours(uri: str, case: Case) -> list[str]:
    hidden = [n for n in ("_row_id", "_row_commit_version") if n in case.select]
    return plain(open_snapshot(uri).scan(metadata=hidden).to_table())


@pytest.mark.parametrize("name", CASES)
def test_spark_reads_changes_and_compacts_what_we_wrote(table: Made, name: str) -> None:
    case = CASES[name]
    uri = make(table.path, case)
    snapshot = open_snapshot(uri)
    assert theirs(table, case, snapshot.version) == ours(uri, case)
    history = table.spark.sql(f"DESCRIBE HISTORY {table.name}").collect()
    assert [r["operation"] for r in history] == [h["operation"] for h in snapshot.history()]
    detail = table.spark.sql(f"DESCRIBE DETAIL {table.name}").collect()[0]
    assert (detail["numFiles"], detail["id"]) == (snapshot.files.count, snapshot.metadata.id)
    if case.peer:
        assert PeerTable(uri).version() == snapshot.version
    table.run(case.insert)
    if case.delete:
        table.run(case.delete, "OPTIMIZE {t}")
    version = open_snapshot(uri).version
    assert version > snapshot.version
    assert theirs(table, case, version) == ours(uri, case)
    append(uri, case.appends[-1])
    assert theirs(table, case, version + 1) == ours(uri, case)


def theirs(made: Made, case: Case, version: int) -> list[str]:
    # of a version: Spark rejects some tables with vectors if the query names none
    return made.rows(f"SELECT {case.select} FROM {{t}} VERSION AS OF {version}")


PROPERTIES: dict[str, str] = {
    "delta.appendOnly": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableTypeWidening": "true",
    "delta.columnMapping.mode": "name",
    "delta.checkpointPolicy": "v2",
    "delta.constraints.c": "id > 0",
    "delta.feature.allowColumnDefaults": "supported",
    "delta.feature.vacuumProtocolCheck": "supported",
    "delta.feature.timestampNtz": "supported",
    "delta.feature.domainMetadata": "supported",
    "delta.feature.icebergCompatV1": "supported",
}


def protocol(row: Any) -> tuple[int, int, list[str]]:
    return row["minReaderVersion"], row["minWriterVersion"], sorted(row["tableFeatures"])


@pytest.mark.parametrize("name", PROPERTIES)
def test_protocol_is_the_one_that_spark_makes(table: Made, tmp_path: Path, name: str) -> None:
    table.create("id BIGINT", f"'{name}' = '{PROPERTIES[name]}'")
    uri = str(tmp_path / "ours")
    create_table(open_context(uri), schema_of([ID]), properties={name: PROPERTIES[name]})
    theirs, made = (protocol(table.spark.sql(f"DESCRIBE DETAIL delta.`{p}`").collect()[0]) for p in (table.path, uri))
    assert made == theirs
