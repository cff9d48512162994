"""Clustering columns: from a request's logical names to the domain's physical ones; and what they must be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from delta_core.api import (
    CorruptTableError,
    DomainMetadata,
    Field,
    Finding,
    InvalidArgumentError,
    Metadata,
    Path,
    PrimitiveType,
    SchemaError,
    TableState,
    decode_json,
    find,
    format_path,
    leaf_fields,
    parse_columns,
    parse_decimal,
)

__all__ = [
    "DOMAIN",
    "REQUEST",
    "check_columns",
    "clustering_columns",
    "is_clustered",
    "logical_columns",
    "missing_columns",
    "readable_columns",
    "reported_columns",
    "requested_domain",
    "without_request",
]

DOMAIN = "delta.clustering"
#: A property that is never stored: JSON list of column names, dotted for fields of structs.
REQUEST = "delta.clusterBy"
#: Types that have least and greatest values in statistics.
_ORDERED = frozenset(
    {
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "date",
        "timestamp",
        "timestamp_ntz",
        "timestampNTZ",
        "timestampWithoutTimezone",
    }
)


def clustering_columns(table: TableState) -> tuple[Path, ...]:
    """Return the physical paths of the clustering columns, in order; empty for a table that is not clustered.

    The domain holds a list of name paths; plain names, as the protocol's text has them, are read too.

    Raises
    ------
    CorruptTableError
        If the domain holds no such list.
    """
    text = table.domains.get(DOMAIN)
    if not text:
        return ()
    try:
        found: Any = decode_json(text)["clusteringColumns"]
        if not isinstance(found, list):
            raise TypeError
        paths = tuple((c,) if isinstance(c, str) else tuple(map(str, c)) for c in found)
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptTableError(
            f"Domain {DOMAIN} is {text[:200]!r}, expected JSON with clusteringColumns: a list of name paths.",
            domain=DOMAIN,
        ) from e
    return paths


def readable_columns(table: TableState) -> tuple[Path, ...] | None:
    """Return the clustering columns as `clustering_columns` does; None if the domain is damaged."""
    try:
        return clustering_columns(table)
    except CorruptTableError:
        return None


def is_clustered(table: TableState) -> bool:
    """Whether the table has clustering columns; true for a damaged domain, which readers don't need."""
    return readable_columns(table) != ()


def missing_columns(table: TableState) -> Iterable[Finding]:
    """Yield clustering columns that the table does not have.

    Raises
    ------
    CorruptTableError
        If the domain holds no list of columns.
    """
    have = {path for path, _ in leaf_fields(table.column_map.physical)}
    for path in clustering_columns(table):
        if path not in have:
            yield Finding(
                "clustering-column-missing",
                f"clustering column {format_path(path)}, which the table does not have",
                "physical names of columns",
                "Set the clustering columns again: table.alter.cluster_by([...]).",
                "warning",
                column=format_path(path),
            )


def without_request(metadata: Metadata) -> Metadata:
    """Return the metadata without what only requires clustering."""
    left = {k: v for k, v in metadata.configuration.items() if k != REQUEST}
    return metadata if left == metadata.configuration else replace(metadata, configuration=left)


def requested_domain(table: TableState, requested: Mapping[str, str]) -> Iterable[DomainMetadata]:
    """Yield the domain that a request requires: by physical names, so that renaming a column changes nothing.

    Raises
    ------
    InvalidArgumentError
        If a column is named twice.
    """
    text = requested.get(REQUEST)
    if text is None:
        return
    paths = [_found(table, name) for name in _names(text)]
    if not paths and DOMAIN not in table.domains:
        return  # it is not clustered
    physical = [list(table.column_map.physical_path(table.schema, p)) for p in paths]
    if len({tuple(p) for p in physical}) < len(physical):
        raise InvalidArgumentError(f"A clustering column is named twice: {text}.")
    configuration = {"clusteringColumns": physical, "domainName": DOMAIN}
    yield DomainMetadata(DOMAIN, json.dumps(configuration, separators=(",", ":"), ensure_ascii=False))


def _names(text: str) -> list[str]:
    try:
        names = decode_json(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise InvalidArgumentError(f"Found {REQUEST}={text!r}, expected a JSON list of column names.")
    return names


def _found(table: TableState, name: str) -> Path:
    whole = table.schema.get(name)
    if whole is not None:
        return (whole.name,)
    try:
        (path,) = parse_columns(name)
    except ValueError as e:
        raise InvalidArgumentError(f"Found the clustering column {name!r}, expected one column's name.") from e
    return find(table.schema, path)[0]


def check_columns(table: TableState, previous: TableState | None) -> None:
    """Reject clustering columns that are dropped or gone, have no order, or are beside partition columns.

    Raises
    ------
    InvalidArgumentError
        If the table is partitioned too.
    SchemaError
        If the table lacks a column, or files have no bounds for its type.
    """
    paths = clustering_columns(table)
    if not paths:
        return
    if table.partition_columns:
        raise InvalidArgumentError(
            f"The table is partitioned by {', '.join(table.partition_columns)} and would be clustered too; a table is "
            "one of the two."
        )
    leaves = _physical_leaves(table)
    for path in paths:
        found = leaves.get(path)
        if found is None and previous is not None and path in _physical_leaves(previous):
            column = format_path(_physical_leaves(previous)[path][0])
            raise SchemaError(
                f"Column {column} clusters the table and can't be dropped. Change the clustering columns first.",
                column=column,
            )
        if found is None:
            raise SchemaError(
                f"Clustering column {format_path(path)} (by its name in files) is not a column of the table, or has "
                f"parts. Columns that can be: {', '.join(format_path(p) for p, _ in list(leaves.values())[:20])}. "
                "Change the clustering columns before dropping one.",
                column=format_path(path),
            )
        logical, f = found
        name = f.type.type if isinstance(f.type, PrimitiveType) else "a list or map"
        if name not in _ORDERED and parse_decimal(name) is None:
            raise SchemaError(
                f"Column {format_path(logical)} of type {name} can't cluster the table: files have no least and "
                "greatest value of it.",
                column=format_path(logical),
                type=name,
            )


def logical_columns(table: TableState) -> tuple[str, ...]:
    """Return the clustering columns that the table has, by logical names, dotted for fields of structs."""
    leaves = _physical_leaves(table)
    return tuple(format_path(leaves[path][0]) for path in clustering_columns(table) if path in leaves)


def reported_columns(table: TableState) -> tuple[str, ...]:
    """Return the logical names for a description of the table: none if the domain is damaged."""
    return () if readable_columns(table) is None else logical_columns(table)


def _physical_leaves(table: TableState) -> dict[Path, tuple[Path, Field]]:
    pairs = zip(leaf_fields(table.schema), leaf_fields(table.column_map.physical), strict=True)
    return {physical: (logical, f) for (logical, f), (physical, _) in pairs}
