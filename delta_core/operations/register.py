"""Register files that were written elsewhere, and remove files by name, in one commit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from delta_core.errors import DataFileNotFoundError, InvalidArgumentError, LogError, SchemaMismatchError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Column, Expression, leaves
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit.intents import READ_TO_REMOVE, removed_files
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES, AddAction, PostCommit, RemoveAction
from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.plugins.encodings import check_not_encoded
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernel.write.files import describe_files
from delta_core.kernel.write.names import encode_path
from delta_core.kernel.write.partition_text import format_partition_values
from delta_core.kernel.write.plan import WritePlan
from delta_core.kernels.arrow_buffers import array_of, strings_of, utf8_of
from delta_core.schema.fields import format_path
from delta_core.schema.types import BASE_TYPES, Field, parse_decimal

__all__ = ["check_partitions", "register_files"]

_ABSOLUTE = r"/|[A-Za-z][A-Za-z0-9+.\-]*:"


def register_files(
    context: TableContext,
    base: Snapshot | None,
    adds: Sequence[AddAction],
    removes: Sequence[RemoveAction],
    *,
    mode: str = "append",
    replace_filters: Any = None,
    operation: str = "WRITE",
    custom_metadata: Mapping[str, Any] | None = None,
    max_commit_retries: int = MAX_COMMIT_RETRIES,
    transactions: Mapping[str, int] | None = None,
    post: PostCommit | None = None,
    transaction: Transaction[Snapshot] | None = None,
) -> CommitResult[Snapshot]:
    """Commit files that exist already.

    Parameters
    ----------
    context : TableContext
        Where the table is, and how it is reached.
    base : Snapshot or None
        The version that the removes were found in; None for a table that the transaction creates.
    adds : sequence of AddAction
        The files; statistics that they lack are read from their footers.
    removes : sequence of RemoveAction
        Live files; none with mode ``overwrite``.
    mode : str
        ``append``; or ``overwrite``, which removes every live file, or those of the partitions that ``replace_filters``
        names.
    replace_filters : filters, optional
        On partition columns, with mode ``overwrite``; all files are replaced unless given.
    operation : str
        The operation that the commit names.
    custom_metadata : Mapping, optional
        Further fields of ``commitInfo``.
    max_commit_retries : int
        How often to try again after a race is lost.
    transactions : Mapping of str to int, optional
        Application ids and versions that the commit records.
    post : PostCommit, optional
        Which checkpoints and checksums follow; what the table's properties specify unless given.
    transaction : Transaction, optional
        One that stages more, such as the creation of the table.

    Raises
    ------
    InvalidArgumentError
        For filters without mode ``overwrite``; for a path that is added and removed, removed and not live, or added and
        not below the table's root; for a size that is not the file's.
    DataFileNotFoundError
        For an added file that is not there.
    """
    if mode not in ("append", "overwrite"):
        raise InvalidArgumentError(f"Found mode {mode!r}, expected append or overwrite.")
    if mode == "overwrite" and removes:
        raise InvalidArgumentError("Mode overwrite finds the files to remove itself; name none.")
    if mode == "append" and replace_filters:
        raise InvalidArgumentError("Filters specify which files are replaced: they need mode 'overwrite'.")
    both = sorted({a.path for a in adds} & {r.path for r in removes})
    if both:
        raise InvalidArgumentError(f"{both[0]} is both added and removed.")
    txn = transaction or Transaction(context, base, operation, {"mode": mode.capitalize()})
    for action in adds:
        _check_text(action)
    if adds:
        check_not_encoded(
            txn.table,
            "Files that were written elsewhere can't be added",
            "Write their rows with write_deltalake instead.",
        )
        _check_places(txn, adds)
        txn.add_files(_described(txn, adds))
    if base is not None:
        _stage_removes(txn, base, removes, mode, replace_filters)
    for app_id, version in (transactions or {}).items():
        txn.set_transaction(app_id, version)
    txn.metrics.setdefault("numFiles", len(adds))
    return txn.commit(None, custom_metadata, max_commit_retries, post=post)


def _check_text(add: AddAction) -> None:
    """Reject text that has no bytes in UTF-8, in which the log is written."""
    for text in (add.path, add.stats, *add.partition_values, *add.partition_values.values()):
        utf8_of(text or "", f"The file {add.path!a}")


def _check_places(txn: Transaction[Snapshot], adds: Sequence[AddAction]) -> None:
    """Reject paths that are no files below the table's root, and sizes that are not the files' own."""
    for add in adds:
        if not add.path:
            raise InvalidArgumentError("An action adds a file with an empty path; expected one from the table's root.")
        if re.match(_ABSOLUTE, add.path) or ".." in add.path.split("/"):
            what = "is absolute" if re.match(_ABSOLUTE, add.path) else "leaves the table"
            raise InvalidArgumentError(
                f"The path {add.path!r} {what}; expected that of a file below {shown_uri(txn.context.log.uri)}, from "
                "there. Copy the file into the table's folder, or clone the table that has it.",
                path=add.path,
            )
    sizes, _ = txn.context.log.engine.storage.find(strings_of([a.path for a in adds]))
    for add, size in zip(adds, sizes.tolist(), strict=True):
        if size < 0:
            raise DataFileNotFoundError(
                f"The file {add.path!r} is not there; write it below {shown_uri(txn.context.log.uri)} before it is "
                "committed.",
                path=add.path,
            )
        if add.size != size:
            raise InvalidArgumentError(
                f"The action specifies that {add.path} has {add.size} bytes, the file has {size}. Readers look for its "
                "end by that number: correct it.",
                path=add.path,
            )


def check_partitions(
    txn: Transaction[Snapshot], adds: Sequence[AddAction], null_on_failed_cast: bool = False
) -> list[dict[str, str | None]]:
    """Return the partition values of files as writers spell them; reject those that are none of their column's type.

    Readers differ about other spellings, such as `` 4`` or ``1`` for true: some can't open the table.

    Parameters
    ----------
    txn : Transaction
        Of the table, with its partition columns.
    adds : sequence of AddAction
        Files with values of these.
    null_on_failed_cast : bool
        Whether a value of another type becomes null.

    Returns
    -------
    list of dict
        The values of each file, under the names that were passed; an empty text is null.

    Raises
    ------
    InvalidArgumentError
        For a value of another type, or null in a column that is NOT NULL.
    """
    table = txn.table
    normal = [dict(a.partition_values) for a in adds]
    for column in table.partition_columns:
        found = table.schema.get(column)
        assert found is not None
        keys = [next(k for k in a.partition_values if k.lower() == column.lower()) for a in adds]
        texts = [a.partition_values[k] for a, k in zip(adds, keys, strict=True)]
        try:
            values = _parsed(txn, found, texts, null_on_failed_cast)
            if not found.nullable and values.null_count:
                add = adds[values.is_null().index(True).as_py()]
                raise InvalidArgumentError(
                    f"{add.path} has no value for the partition column {column} (null or an empty text), which is NOT "
                    "NULL.",
                    path=add.path,
                    column=column,
                )
        except LogError as e:
            add = next(a for a, text in zip(adds, texts, strict=True) if text == e.facts.get("value"))
            raise InvalidArgumentError(
                f"{add.path} has the partition value {e.facts.get('value')!r}, which is no {found.type.type}, the type "
                f"of column {column}.",
                path=add.path,
                column=column,
            ) from e
        if found.type.type in BASE_TYPES or parse_decimal(found.type.type) is not None:
            spelled = format_partition_values(values, found.type, column)
            for own, key, text in zip(normal, keys, spelled, strict=True):
                own[key] = text
    return normal


def _parsed(
    txn: Transaction[Snapshot], column: Field, texts: list[str | None], null_on_failed_cast: bool
) -> pa.ChunkedArray:
    """Return the values of a partition column; those that are none of its type are errors, or null."""
    while True:
        try:
            return parse_partition_values(
                strings_of(texts), column.type, txn.context.timezone, column=column.name, types=txn.table.types
            )
        except LogError as e:
            wrong = e.facts.get("value")
            if not null_on_failed_cast or wrong is None:
                raise
            texts = [None if text == wrong else text for text in texts]


def _described(txn: Transaction[Snapshot], adds: Sequence[AddAction]) -> pa.Table:
    """Return the files' facts; statistics that are missing come from the footers."""
    columns = {c.lower(): c for c in txn.table.partition_columns}
    for a in adds:
        strange = next((k for k in a.partition_values if k.lower() not in columns), None)
        given = {k.lower() for k in a.partition_values}
        missing = next((c for c in columns if c not in given), None)
        if strange is not None or missing is not None:
            raise SchemaMismatchError(
                f"{a.path} has partition values for {sorted(a.partition_values)}, the table is partitioned by "
                f"{list(columns.values())}.",
                path=a.path,
            )
    partitions = check_partitions(txn, adds)
    physical = {
        f.name: p.name for f, p in zip(txn.table.schema.members, txn.table.column_map.physical.members, strict=True)
    }
    bare = [a for a in adds if not a.stats]
    described = {}
    if bare:
        engine, plan = txn.context.log.engine, txn.plan
        found = describe_files(engine, _unpartitioned(plan), [a.path for a in bare])
        described = dict(zip((a.path for a in bare), found.column("stats").to_pylist(), strict=True))
    stats = [a.stats or described[a.path] for a in adds]
    values = [[(physical[columns[k.lower()]], v) for k, v in found.items()] for found in partitions]
    return pa.table(
        {
            "path": [encode_path(a.path) for a in adds],
            "partitionValues": array_of(values, FILE_COLUMNS["partitionValues"]),
            "size": array_of([a.size for a in adds], pa.int64()),
            "modificationTime": array_of([a.modification_time for a in adds], pa.int64()),
            "dataChange": [a.data_change for a in adds],
            "stats": strings_of(stats),
            "fresh": [True] * len(adds),
        }
    )


def _unpartitioned(plan: WritePlan) -> WritePlan:
    """Return the plan of the same files without partition values: theirs are given as text."""
    metadata = replace(plan.table.metadata, partition_columns=())
    return replace(plan, table=replace(plan.table, metadata=metadata))


def _check_whole(predicate: Expression | None, base: Snapshot) -> None:
    """Reject to replace part of a file's rows: only filters on partition columns select whole files."""
    columns = {c.lower() for c in base.state.partition_columns}
    used = () if predicate is None else (leaf.path for leaf in leaves(predicate) if isinstance(leaf, Column))
    other = next((path for path in used if path[0].lower() not in columns), None)
    if other is not None:
        raise InvalidArgumentError(
            f"Files are replaced by partition, and {format_path(other)} is no partition column (they are "
            f"{', '.join(base.state.partition_columns) or 'none'}): rows that the filter does not select would be "
            "lost. Overwrite with a predicate instead.",
            column=format_path(other),
        )


def _stage_removes(
    txn: Transaction[Snapshot], base: Snapshot, removes: Sequence[RemoveAction], mode: str, filters: Any
) -> None:
    if mode == "overwrite":
        predicate = None if not filters else to_expression(filters, base.schema)
        _check_whole(predicate, base)
        files = base.scan(predicate=predicate).file_set.columns(READ_TO_REMOVE)
        txn.read(predicate, files)
        change: bool | pa.Array = True
    elif removes:
        if any(r.deletion_timestamp is not None for r in removes):
            warnings.warn(
                "deletion_timestamp is not recorded: files are removed at the time of the commit, from which on vacuum "
                "keeps them for the retention.",
                UserWarning,
                stacklevel=2,
            )
        wanted = {encode_path(r.path): r.data_change for r in removes} | {r.path: r.data_change for r in removes}
        files = base.files.columns(READ_TO_REMOVE)
        hit = [p in wanted for p in files.column("path").to_pylist()]
        files = files.filter(array_of(hit, pa.bool_()))
        found = set(files.column("path").to_pylist())
        missing = [r.path for r in removes if r.path not in found and encode_path(r.path) not in found]
        if missing:
            raise InvalidArgumentError(
                f"{missing[0]} is not a live file of version {base.version}: it can't be removed."
            )
        change = array_of([wanted[p] for p in files.column("path").to_pylist()], pa.bool_())
    else:
        return
    if files.num_rows:
        txn.remove_files(removed_files(files, change))
