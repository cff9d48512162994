"""Create a table, from a schema alone or with its first rows."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from delta_core.errors import ArgumentTypeError, ColumnNotFoundError, InvalidArgumentError, SchemaError, did_you_mean
from delta_core.kernel.commit.intents import READ_TO_REMOVE, removed_files
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES, PostCommit
from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.protocol.properties import normalize_properties
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.runtime.json_text import compact_json
from delta_core.schema.fields import Schema
from delta_core.schema.types import PrimitiveType, StructType, UserDefinedType

__all__ = ["column_names", "create_table", "given_properties", "new_metadata", "partition_columns", "stage_definition"]


def column_names(argument: str, given: object) -> list[str]:
    """Return the names that an argument contains, one alone too.

    Raises
    ------
    ArgumentTypeError
        For anything but names.
    """
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise ArgumentTypeError(f"Found {argument}={given!r}, expected the names of columns.")
    return list(names)


def partition_columns(schema: StructType, names: Sequence[str]) -> tuple[str, ...]:
    """Return partition columns as the schema spells them.

    Raises
    ------
    ColumnNotFoundError
        For a column that the schema lacks.
    SchemaError
        For one of a type without a text form.
    InvalidArgumentError
        For one that is named twice, and where every column partitions.
    """
    spelled: list[str] = []
    for column in names:
        found = schema.get(column)
        if found is None:
            raise ColumnNotFoundError(
                f"Partition column {column!r} is not in the schema; its columns are: {', '.join(schema.names[:20])}."
                f"{did_you_mean(column, schema.names)}",
                column=column,
            )
        is_value = isinstance(found.type, PrimitiveType) and not isinstance(found.type, UserDefinedType)
        if not is_value or found.type.type in ("void", "variant"):
            raise SchemaError(
                f"Partition column {found.name!r} is {found.type}: its values have no text form. Partition by a column "
                "of a primitive type.",
                column=found.name,
            )
        if found.name in spelled:
            raise InvalidArgumentError(f"Partition column {found.name!r} is named twice.", column=found.name)
        spelled.append(found.name)
    if spelled and len(spelled) == len(schema.members):
        raise InvalidArgumentError("Every column partitions the table; data files need at least one other column.")
    return tuple(spelled)


def new_metadata(
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    name: str | None = None,
    description: str | None = None,
    properties: Mapping[str, str | None] | None = None,
    table_id: str | None = None,
) -> Metadata:
    """Return the metadata of a new table.

    Raises
    ------
    InvalidArgumentError
        For a known property with a value that it can't have; and the errors of `partition_columns`.
    """
    partitions = partition_columns(schema, partition_by)
    return Metadata(
        id=table_id or str(uuid.uuid4()),
        schema_string=StructType(schema.members).to_json(),
        partition_columns=partitions,
        configuration=given_properties(properties),
        name=name,
        description=description,
        created_time=time.time_ns() // 1_000_000,
    )


def given_properties(properties: Mapping[str, Any] | None) -> dict[str, str]:
    """Return properties as the log holds them; None leaves one out, true and false are lower case.

    Raises
    ------
    InvalidArgumentError
        For a known property with a value that it can't have.
    """
    return normalize_properties(property_texts(properties or {}))


def property_texts(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return properties as text; None leaves one out, true and false are lower case.

    Raises
    ------
    InvalidArgumentError
        For a name that is no text.
    """
    strange = next((k for k in properties if not isinstance(k, str)), None)
    if strange is not None:
        raise InvalidArgumentError(f"The name of the table property {strange!r} is no text.")
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in properties.items() if v is not None}


def stage_definition(
    transaction: Transaction[Snapshot],
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    name: str | None = None,
    description: str | None = None,
    properties: Mapping[str, str | None] | None = None,
    features: Iterable[str] = (),
    allow_unknown: bool = False,
    row_ids: bool = False,
) -> None:
    """Stage the metadata of a new table, or of one that is replaced: nothing of the old definition stays.

    With ``row_ids`` rows get stable ids.
    """
    asked = dict(properties or {})
    given = {p.lower() for p in asked}
    defaults = transaction.defaults
    asked |= {p: text for p, text in defaults.properties.items() if p.lower() not in given}
    # a new table needs no feature to have no such columns; an old one may have some
    registry = transaction.context.registry
    requests = registry.requests({"cluster_by": cluster_by})
    if cluster_by:
        asked |= requests
    if row_ids:
        asked |= registry.requests({"row_ids": ["true"]})
    requests = {name: text for name, text in requests.items() if name not in asked}
    table_id = None if transaction.base is None else transaction.base.metadata.id
    metadata = new_metadata(
        schema, partition_by=partition_by, name=name, description=description, properties=asked, table_id=table_id
    )
    transaction.set_metadata(
        metadata,
        features=features,
        replaces=True,
        requests=requests,
        allow_unknown=allow_unknown or defaults.allow_unknown,
        is_new=True,
    )


def create_table(
    context: TableContext,
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    name: str | None = None,
    description: str | None = None,
    properties: Mapping[str, str | None] | None = None,
    features: Iterable[str] = (),
    base: Snapshot | None = None,
    user_metadata: str | None = None,
    custom_metadata: Mapping[str, Any] | None = None,
    max_commit_retries: int = MAX_COMMIT_RETRIES,
    transactions: Mapping[str, int] | None = None,
    post: PostCommit | None = None,
    allow_unknown: bool = False,
) -> CommitResult[Snapshot]:
    """Create a table without rows, or replace one by an empty one.

    Parameters
    ----------
    context : TableContext
        Where the table is to be, and how it is reached.
    schema : StructType
        Its columns; a ``pyarrow.Schema`` goes through `Schema.from_arrow`.
    partition_by, cluster_by : sequence of str
        Columns that partition it, or by which its files are clustered.
    name, description : str, optional
        Texts of the table's metadata.
    properties : Mapping
        Table properties: known ones are validated, custom ones kept. ``delta.feature.X`` = ``supported`` requires a
        feature.
    features : iterable of str
        Further features.
    base : Snapshot, optional
        The table to replace: its files are removed, its id, history and features stay.
    user_metadata : str, optional
        ``userMetadata`` of the commit.
    custom_metadata : Mapping, optional
        Further fields of ``commitInfo``.
    max_commit_retries : int
        How often to try again after a race is lost.
    transactions : Mapping of str to int, optional
        Application ids and versions that the commit records.
    post : PostCommit, optional
        Which checkpoints and checksums follow; what the table's properties specify unless given.
    allow_unknown : bool
        Whether properties named ``delta.*`` may be ones that neither the core nor a feature declares.

    Raises
    ------
    ConcurrentAppendError
        If the table exists and is not to be replaced.
    """
    operation = "CREATE TABLE" if base is None else "CREATE OR REPLACE TABLE"
    transaction = Transaction(context, base, operation, _parameters(partition_by, cluster_by, description, properties))
    stage_definition(
        transaction,
        Schema(schema.members),
        partition_by=partition_by,
        cluster_by=cluster_by,
        name=name,
        description=description,
        properties=properties,
        features=features,
        allow_unknown=allow_unknown,
    )
    if base is not None:
        files = base.files.columns(READ_TO_REMOVE)
        transaction.read(None, files)
        transaction.remove_files(removed_files(files))
    return transaction.commit(user_metadata, custom_metadata, max_commit_retries, post=post, transactions=transactions)


def _parameters(
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    description: str | None,
    properties: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "isManaged": "false",
        "description": description or None,
        "partitionBy": compact_json(list(partition_by)),
        "clusterBy": compact_json(list(cluster_by)),
        "properties": compact_json(property_texts(properties or {})),
    }
