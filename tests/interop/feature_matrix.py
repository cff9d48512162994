"""Every table feature that is written, alone and with each other one: what a table needs, and the rows it then has.

A recipe is reported twice: what is requested of the writer, and what a reader must find. Two recipes join into a table.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.kernels.row_set import RowSet
from delta_core.operations.create import create_table
from delta_core.operations.write import WriteOptions, write_table
from delta_core.schema.fields import Schema

__all__ = [
    "OURS",
    "OWN_PAIRS",
    "PAIRS",
    "RECIPES",
    "REJECTED",
    "WITHOUT_RECIPE",
    "Recipe",
    "Row",
    "append",
    "make",
    "model",
    "recipe_of",
    "schema_of",
    "set_domain",
]

Row = dict[str, Any]
#: Ids of each append; the row of id 2 is dropped if a feature drops rows.
BATCHES = ((1, 2, 3, 4), (5, 6), (7, 8, 9))
DROPPED = 2
START = datetime(2024, 1, 31, 23, 30)


def _nothing(uri: str) -> None:
    del uri


@dataclass(frozen=True)
class Recipe:
    """What a table with a feature is made of.

    Parameters
    ----------
    fields : sequence of (name, type, metadata, nullable)
        Columns beside ``id``; metadata and nullability may be left out.
    given : function(id)
        What the writer is given of them in a row.
    found : function(id)
        What a reader must find; None: what was given.
    after : function(uri)
        Done after the second append.
    drops : bool
        Whether ``after`` drops the row of id 2.
    """

    fields: Sequence[tuple[Any, ...]] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] = ()
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    given: Callable[[int], Row] = lambda i: {}
    found: Callable[[int], Row] | None = None
    after: Callable[[str], None] = _nothing
    drops: bool = False


def _drop_row(uri: str) -> None:
    snapshot = open_snapshot(uri)
    place = snapshot.scan(["id"], metadata=["_file_path", "_file_row_index"], predicate=f"id = {DROPPED}").to_table()
    [path] = place.column("_file_path").to_pylist()
    transaction = Transaction(snapshot.context, snapshot, "DELETE")
    files = snapshot.files.columns(["path"]).column("path").to_pylist()
    [name] = [f for f in files if path.rpartition("/")[2] == f.rpartition("/")[2]]
    transaction.remove_rows(name, RowSet.from_positions(place.column("_file_row_index").to_pylist()))
    transaction.commit()


def set_domain(uri: str) -> None:
    """Set a domain of the user's own."""
    snapshot = open_snapshot(uri)
    transaction = Transaction(snapshot.context, snapshot, "SET DOMAIN")
    transaction.set_domain("org.example", '{"a": 1}')
    transaction.commit()


def schema_of(fields: Sequence[tuple[Any, ...]]) -> Schema:
    """Return a schema of (name, type, metadata, nullable); the last two may be left out."""
    filled = [(*f, *({}, True)[len(f) - 2 :]) for f in fields]
    listed = [{"name": n, "type": t, "nullable": nullable, "metadata": m} for n, t, m, nullable in filled]
    return Schema.from_json(json.dumps({"type": "struct", "fields": listed}))


def _time(i: int) -> datetime:
    return START + timedelta(hours=i)


STRUCT = {"type": "struct", "fields": [{"name": "a b", "type": "integer", "nullable": True, "metadata": {}}]}
WORD = ("v", "string")
MAPPED_FIELDS = (("a b", "string"), ("s", STRUCT))


def _mapped(i: int) -> Row:
    return {"a b": f"m{i}", "s": {"a b": i} if i % 2 else None}


RECIPES: dict[str, Recipe] = {
    "appendOnly": Recipe(properties={"delta.appendOnly": "true"}),
    "invariants": Recipe(
        [
            ("need", "integer", {}, False),
            ("low", "integer", {"delta.invariants": '{"expression":{"expression":"low < 99"}}'}),
        ],
        features=["invariants"],
        given=lambda i: {"need": i, "low": -i},
    ),
    "checkConstraints": Recipe(
        [("c", "long")], {"delta.constraints.positive": "c > 0 AND id < 1000"}, given=lambda i: {"c": 10 * i}
    ),
    "changeDataFeed": Recipe(properties={"delta.enableChangeDataFeed": "true"}),
    "generatedColumns": Recipe(
        [("ts", "timestamp_ntz"), ("day", "date", {"delta.generationExpression": "CAST(ts AS DATE)"})],
        partition_by=["day"],
        given=lambda i: {"ts": _time(i)},
        found=lambda i: {"ts": _time(i), "day": _time(i).date()},
    ),
    "columnMapping by name": Recipe(MAPPED_FIELDS, {"delta.columnMapping.mode": "name"}, given=_mapped),
    "columnMapping by id": Recipe(MAPPED_FIELDS, {"delta.columnMapping.mode": "id"}, given=_mapped),
    "identityColumns": Recipe(
        [
            (
                "k",
                "long",
                {"delta.identity.start": 100, "delta.identity.step": -10, "delta.identity.allowExplicitInsert": False},
            )
        ],
        found=lambda i: {"k": 110 - 10 * i},
    ),
    "deletionVectors": Recipe(properties={"delta.enableDeletionVectors": "true"}, after=_drop_row, drops=True),
    "rowTracking": Recipe(properties={"delta.enableRowTracking": "true"}),
    "timestampNtz": Recipe([("t", "timestamp_ntz")], given=lambda i: {"t": _time(i) if i % 3 else None}),
    "domainMetadata": Recipe(features=["domainMetadata"], after=set_domain),
    "v2Checkpoint": Recipe(properties={"delta.checkpointPolicy": "v2"}),
    "icebergCompatV1": Recipe(
        [("w", "decimal(9,2)")], {"delta.enableIcebergCompatV1": "true"}, given=lambda i: {"w": None}
    ),
    "icebergCompatV2": Recipe(
        [("l", {"type": "array", "elementType": "long", "containsNull": True})],
        {"delta.enableIcebergCompatV2": "true"},
        given=lambda i: {"l": [i, None]},
    ),
    "clustering": Recipe([("z", "integer")], cluster_by=["z", "id"], given=lambda i: {"z": -i}),
    "inCommitTimestamp": Recipe(properties={"delta.enableInCommitTimestamps": "true"}),
    "vacuumProtocolCheck": Recipe(features=["vacuumProtocolCheck"]),
    "typeWidening": Recipe(
        [("n", "integer")], {"delta.enableTypeWidening": "true"}, given=lambda i: {"n": i if i < 5 else 2**40 + i}
    ),
    "variantType": Recipe([("x", "variant")], given=lambda i: {"x": None}),
    "allowColumnDefaults": Recipe(
        [("d", "string", {"CURRENT_DEFAULT": "'none'"})],
        features=["allowColumnDefaults"],
        found=lambda i: {"d": "none"},
    ),
    "checkpointProtection": Recipe(features=["checkpointProtection"]),
    "materializePartitionColumns": Recipe(
        [("p", "string")],
        features=["materializePartitionColumns"],
        partition_by=["p"],
        given=lambda i: {"p": f"p {i % 2}"},
    ),
}

#: Features that no peer has, or with no peer left: they are held to their rows by this reader alone.
OURS: dict[str, Recipe] = {
    "icebergCompatV3": Recipe(
        [("l", {"type": "array", "elementType": "long", "containsNull": True})],
        {"delta.enableIcebergCompatV3": "true"},
        given=lambda i: {"l": [i, None]},
    ),
    "icebergWriterCompatV1": Recipe(
        [("l", {"type": "array", "elementType": "long", "containsNull": True})],
        {"delta.enableIcebergWriterCompatV1": "true"},
        given=lambda i: {"l": [i, None]},
    ),
    "variantShredding": Recipe(
        [("x", "variant")], {"delta.enableVariantShredding": "true"}, given=lambda i: {"x": None}
    ),
    "columnMappingUsageTracking": Recipe(
        [WORD], {"delta.columnMapping.mode": "name"}, ["columnMappingUsageTracking"], given=lambda i: {"v": f"v{i}"}
    ),
    "collations": Recipe([WORD], features=["collations"], given=lambda i: {"v": f"v{i}"}),
    "rowIds": Recipe([WORD], {"delta_core.writeDrafts": "true"}, ["rowIds"], given=lambda i: {"v": f"v{i}"}),
    "coordinatedCommits-preview": Recipe(
        [WORD], features=["coordinatedCommits-preview"], given=lambda i: {"v": f"v{i}"}
    ),
}
#: Bundled features without a recipe, and why.
WITHOUT_RECIPE: dict[str, str] = {
    "catalogManaged": "a table is its catalog's: tests/plugins/test_catalog_managed_written.py",
    "icebergWriterCompatV3": "no text specifies what to write; a table that uses it is refused",
}

PAIRS = [(a, a) for a in RECIPES] + list(itertools.combinations(RECIPES, 2))
OWN_PAIRS = [(a, a) for a in OURS] + list(itertools.combinations(OURS, 2)) + list(itertools.product(OURS, RECIPES))

#: Pairs that the protocol does not allow, and what the rejection names.
REJECTED: dict[frozenset[str], str] = {
    frozenset(("appendOnly", "deletionVectors")): "appendOnly",
    frozenset(("deletionVectors", "icebergCompatV1")): "(?i)deletion ?vectors",
    frozenset(("deletionVectors", "icebergCompatV2")): "(?i)deletion ?vectors",
    frozenset(("icebergCompatV1", "icebergCompatV2")): "icebergCompatV",
    frozenset(("generatedColumns", "clustering")): "(?i)partition",
    frozenset(("clustering", "materializePartitionColumns")): "(?i)partition",
    frozenset(("icebergCompatV1", "variantType")): "variant.*icebergCompatV1",
    frozenset(("icebergCompatV2", "variantType")): "variant.*icebergCompatV2",
    frozenset(("icebergCompatV3", "icebergCompatV1")): "one version at a time",
    frozenset(("icebergCompatV3", "icebergCompatV2")): "one version at a time",
    frozenset(("icebergWriterCompatV1", "icebergCompatV1")): "one version at a time",
    frozenset(("variantShredding", "icebergCompatV1")): "variant.*icebergCompatV1",
    frozenset(("variantShredding", "icebergCompatV2")): "variant.*icebergCompatV2",
    **{
        frozenset(("icebergWriterCompatV1", other)): "IcebergWriterCompatV1=true needs"
        for other in (
            "allowColumnDefaults",
            "changeDataFeed",
            "checkConstraints",
            "checkpointProtection",
            "collations",
            "columnMapping by name",
            "columnMappingUsageTracking",
            "coordinatedCommits-preview",
            "deletionVectors",
            "generatedColumns",
            "icebergCompatV3",
            "identityColumns",
            "invariants",
            "materializePartitionColumns",
            "rowIds",
            "rowTracking",
            "variantShredding",
            "variantType",
        )
    },
}


def recipe_of(first: str, second: str) -> Recipe:
    """Join two recipes into that of one table; of a column that both have, the first counts."""
    a, b = ({**RECIPES, **OURS}[name] for name in (first, second))
    if a is b:
        return a
    names = {f[0] for f in a.fields}

    def found(i: int) -> Row:
        return {**(b.found or b.given)(i), **(a.found or a.given)(i)}

    def after(uri: str) -> None:
        a.after(uri)
        b.after(uri)

    return Recipe(
        [*a.fields, *(f for f in b.fields if f[0] not in names)],
        {**b.properties, **a.properties},
        [*a.features, *b.features],
        [*a.partition_by, *b.partition_by],
        [*a.cluster_by, *b.cluster_by],
        lambda i: {**b.given(i), **a.given(i)},
        found,
        after,
        a.drops or b.drops,
    )


def model(recipe: Recipe, batches: int, dropped: bool) -> list[Row]:
    """Return the rows that a table must have after some appends, by id."""
    ids = [i for batch in BATCHES[:batches] for i in batch if not (dropped and i == DROPPED)]
    return [{"id": i, **(recipe.found or recipe.given)(i)} for i in ids]


def make(uri: str, recipe: Recipe) -> None:
    """Create the table, append twice, do what the features do, write a checkpoint, and append behind it."""
    create_table(
        open_context(uri),
        schema_of([("id", "long"), *recipe.fields]),
        properties=recipe.properties,
        features=recipe.features,
        partition_by=recipe.partition_by,
        cluster_by=recipe.cluster_by,
    )
    for number in range(len(BATCHES)):
        if number == len(BATCHES) - 1:
            recipe.after(uri)
            write_checkpoint(open_snapshot(uri))
        append(uri, recipe, BATCHES[number])


def append(uri: str, recipe: Recipe, ids: Sequence[int]) -> None:
    """Append rows; if types may widen, the values decide."""
    known = {f.name: f for f in open_snapshot(uri).schema.to_arrow()}
    rows = [{"id": i, **recipe.given(i)} for i in ids]
    columns = {}
    for name in rows[0]:
        values = [r[name] for r in rows]
        widened = name == "n" and max(values) >= 2**31
        columns[name] = pa.array(values, pa.int64() if widened else known[name].type)
    mode = "merge" if "n" in columns else None
    assert write_table(open_context(uri), pa.table(columns), WriteOptions(mode="append", schema_mode=mode)) is not None
