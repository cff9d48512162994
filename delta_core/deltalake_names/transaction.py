"""Names of ``deltalake.transaction``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from delta_core import operations
from delta_core.errors import InvalidArgumentError, TableExistsError
from delta_core.kernel.commit.options import commit_options, own_actions
from delta_core.kernel.commit.transaction import Transaction as Commit
from delta_core.kernel.snapshot import Snapshot, open_context
from delta_core.operations.create import stage_definition
from delta_core.runtime.arguments import mode_text, path_text, properties_by_position
from delta_core.schema.fields import Schema
from delta_core.table.delta_table import DeltaTable
from delta_core.table.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
    Transaction,
)

__all__ = [
    "AddAction",
    "CommitProperties",
    "PostCommitHookProperties",
    "RemoveAction",
    "Transaction",
    "create_table_with_add_actions",
]


@properties_by_position("commit_properties", "post_commithook_properties")
def create_table_with_add_actions(
    table_uri: str | os.PathLike[str],
    schema: Any,
    add_actions: Sequence[AddAction],
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    partition_by: list[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    *,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Create a table of files that were written elsewhere, in one commit.

    Parameters
    ----------
    table_uri : str or path
        The table's place; the files lie below it.
    schema : Schema or anything with ``__arrow_c_schema__``
        The table's columns.
    add_actions : sequence of AddAction
        The files; statistics that they lack are read from their footers.
    mode : str
        Of a table that exists: ``error`` and ``append`` raise, ``ignore`` leaves it, ``overwrite`` replaces its
        definition and its files.
    partition_by : str or list of str, optional
        The columns that partition the table.
    name, description : str, optional
        Texts of the table's metadata.
    configuration : Mapping, optional
        Table properties.
    storage_options : Mapping, optional
        Options of the file system.
    commit_properties : CommitProperties, optional
        Custom metadata of the commit, application versions, and how often it is tried again.
    post_commithook_properties : PostCommitHookProperties, optional
        The upkeep that follows the commit.

    Raises
    ------
    InvalidArgumentError
        For a mode that is not known.
    TableExistsError
        If there is a table already, unless ``mode`` allows it; further errors are those of
        `DeltaTable.create_write_transaction`.
    """
    mode = mode_text(mode)
    if mode not in ("error", "append", "overwrite", "ignore"):
        raise InvalidArgumentError(f"Found mode {mode!r}, expected error, append, overwrite or ignore.")
    uri = path_text(table_uri)
    context = open_context(uri, storage_options)
    base = context.read(None) if DeltaTable.is_deltatable(uri, dict(storage_options or {})) else None
    if base is not None and mode == "ignore":
        return
    if base is not None and mode != "overwrite":
        raise TableExistsError(f"There is a table at {uri} already (version {base.version}).", path=uri)
    partitions = operations.column_names("partition_by", partition_by or ())
    commit, post = commit_options(commit_properties, post_commithook_properties)
    transaction: Commit[Snapshot] = Commit(
        context, base, "WRITE", {"mode": mode.capitalize(), "partitionBy": json.dumps(partitions)}
    )
    stage_definition(
        transaction,
        schema if isinstance(schema, Schema) else Schema.from_arrow(schema),
        partition_by=partitions,
        name=name,
        description=description,
        properties=configuration,
    )
    operations.register_files(
        context,
        base,
        own_actions(add_actions, AddAction),
        [],
        mode="append" if base is None else "overwrite",
        custom_metadata=commit.custom_metadata,
        max_commit_retries=commit.retries,
        transactions=commit.transactions,
        post=post.post_commit,
        transaction=transaction,
    )
