"""The schemas of a stream: how those of two versions differ, and how one is stored for a later run.

The stored files have the form of the schema log of delta-spark's streaming source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from msgspec import Struct

from delta_core.errors import LogError, StreamSchemaError, shortened
from delta_core.kernel.plugins.encodings import why_stored_otherwise
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol import actions
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.protocol.schema_history import why_unreadable
from delta_core.kernel.snapshot import Snapshot
from delta_core.runtime.json_text import decode_json
from delta_core.schema.fields import Schema
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType

__all__ = [
    "ColumnChanges",
    "VersionDefinition",
    "StoredDefinition",
    "StoredSchema",
    "column_changes",
    "why_different",
    "why_not_readable",
]

_VERSION = "v1"


class VersionDefinition(Protocol):
    """The schema of a version: a snapshot, or what was stored of one."""

    @property
    def version(self) -> int:
        """The version."""

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""

    @property
    def schema(self) -> Schema:
        """Its logical schema."""

    @property
    def state(self) -> TableState:
        """The content of its protocol and metadata."""

    @property
    def plugins(self) -> PluginSet:
        """The plugins that serve it."""


# --- how two differ --------------------------------------------------------------------------


def why_not_readable(old: VersionDefinition, new: VersionDefinition) -> str | None:
    """Return why rows of an older version can't be read by the definition of a newer one, None if they can."""

    def widens(before: DataType, after: DataType) -> bool:
        return _widens(new, before, after)

    why = why_unreadable(old.metadata, new.metadata, widens, "")
    if why is not None:
        return why
    before, after = _physical_names(old), _physical_names(new)
    encoded = why_stored_otherwise(old.state, new.state)
    if encoded is not None:
        return encoded
    moved = next((p for p, name in before.items() if after.get(p, name) != name), None)
    return None if moved is None else f"column {'.'.join(moved)} was dropped and added again"


def _widens(new: VersionDefinition, before: DataType, after: DataType) -> bool:
    return bool(new.plugins.single("accept_type_change", False, table=new.state, path=(), old=before, new=after))


def why_different(old: VersionDefinition, new: VersionDefinition) -> str | None:
    """Return in what a newer version's rows differ in their schema, None if they do not."""
    why = why_not_readable(old, new) or why_unreadable(old.metadata, new.metadata, False, "")
    if why is not None:
        return why
    back = why_unreadable(new.metadata, old.metadata, False, "")
    if back is None:
        return None
    known = _physical_names(old)
    added = [".".join(path) for path in _physical_names(new) if path not in known]
    return f"column {added[0]} was added" if added else "a column lost its NOT NULL"


def _physical_names(definition: VersionDefinition) -> dict[tuple[str, ...], str]:
    """Return the name in files of each field that is not within an array or map, by its path."""
    found: dict[tuple[str, ...], str] = {}

    def walk(logical: StructType, physical: StructType, prefix: tuple[str, ...]) -> None:
        for f, stored in zip(logical.members, physical.members, strict=True):
            path = (*prefix, f.name)
            found[path] = stored.name
            if isinstance(f.type, StructType) and isinstance(stored.type, StructType):
                walk(f.type, stored.type, path)

    walk(definition.schema, definition.state.column_map.physical, ())
    return found


class ColumnChanges(Struct, frozen=True):
    """The changes to the columns of an older version, beside the columns that were added.

    Parameters
    ----------
    dropped : tuple of str
        Their names.
    renamed : tuple of (str, str)
        Their names before and after.
    widened : tuple of (str, DataType, DataType)
        Their names, and the types before and after.
    """

    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    widened: tuple[tuple[str, DataType, DataType], ...] = ()

    def __str__(self) -> str:
        parts = [f"column {name} was dropped" for name in self.dropped]
        parts += [f"column {old} was renamed to {new}" for old, new in self.renamed]
        parts += [f"column {name} changed its type from {a.type} to {b.type}" for name, a, b in self.widened]
        return ", ".join(parts)


def column_changes(old: VersionDefinition, new: VersionDefinition) -> ColumnChanges:
    """Return what happened to columns from one version to another; they are recognized by their names in files.

    Raises
    ------
    StreamSchemaError
        If a column changed its type to one that does not contain all values of the old one.
    """
    before, after = dict(_fields(old)), dict(_fields(new))
    lost = before.keys() - after.keys()
    gone = [path for path in before if path in lost and path[:-1] not in lost]
    stays = [path for path in before if path in after]
    renamed = [(before[p][0], after[p][0]) for p in stays if _last(before[p][0]) != _last(after[p][0])]
    retyped = [(after[p][0], before[p][1], after[p][1]) for p in stays if not _is_same(before[p][1], after[p][1])]
    bad = next((c for c in retyped if not _widens(new, c[1], c[2])), None)
    if bad is not None:
        raise StreamSchemaError(
            f"Column {bad[0]} changed its type from {bad[1].type} to {bad[2].type} between versions "
            f"{old.version} and {new.version}, which is no wider type: a stream can't go on with it. Begin a stream "
            f"with another checkpoint, and start={new.version}.",
            version=new.version,
        )
    return ColumnChanges(tuple(before[p][0] for p in gone), tuple(renamed), tuple(retyped))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _is_same(old: DataType, new: DataType) -> bool:
    """Whether a type is the same but for the fields within it, which are compared one by one."""
    if isinstance(old, PrimitiveType) and isinstance(new, PrimitiveType):
        return old in (new, PrimitiveType("void"))
    return type(old) is type(new)


def _fields(definition: VersionDefinition) -> Iterator[tuple[tuple[str, ...], tuple[str, DataType]]]:
    """Yield the path in files of each field and element, with its name and type."""
    return _walk(definition.schema, definition.state.column_map.physical, (), "")


def _walk(
    logical: DataType, physical: DataType, path: tuple[str, ...], name: str
) -> Iterator[tuple[tuple[str, ...], tuple[str, DataType]]]:
    parts: list[tuple[str, str, DataType, DataType]] = []
    if isinstance(logical, StructType) and isinstance(physical, StructType):
        parts = [(f.name, p.name, f.type, p.type) for f, p in zip(logical.members, physical.members, strict=True)]
    elif isinstance(logical, ArrayType) and isinstance(physical, ArrayType):
        parts = [("element", "element", logical.element_type, physical.element_type)]
    elif isinstance(logical, MapType) and isinstance(physical, MapType):
        parts = [
            ("key", "key", logical.key_type, physical.key_type),
            ("value", "value", logical.value_type, physical.value_type),
        ]
    for shown, stored, kind, inner in parts:
        full = f"{name}.{shown}" if name else shown
        yield (*path, stored), (full, kind)
        yield from _walk(kind, inner, (*path, stored), full)


# --- how one is stored -----------------------------------------------------------------------


class StoredSchema(Struct, frozen=True):
    """An entry of the schema log of a stream: with which schema it reads from a version on.

    Parameters
    ----------
    table_id : str
        The ``id`` of the table's metadata.
    version : int
        A version with this schema, at or after the place where the stream began to use it.
    metadata : Metadata
        The table's at this version; of its other parts only the properties are stored.
    protocol : Protocol or None
        The table's at this version; None if an old entry lacks it.
    source : str
        The folder of the source in the query's checkpoint.
    previous : int or None
        The number of the entry that came before this one; None: the one with the number before.
    """

    table_id: str
    version: int
    metadata: Metadata
    protocol: actions.Protocol | None
    source: str
    previous: int | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, source: str, previous: int | None = None) -> StoredSchema:
        """Return the entry for the schema of a version."""
        return cls(snapshot.metadata.id, snapshot.version, snapshot.metadata, snapshot.protocol, source, previous)

    def to_text(self) -> str:
        """Return the content of the entry's file."""
        schema = json.loads(self.metadata.schema_string)
        partition = [f for f in schema["fields"] if f["name"] in self.metadata.partition_columns]
        partition.sort(key=lambda f: self.metadata.partition_columns.index(f["name"]))
        value: dict[str, Any] = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": self.metadata.schema_string,
            "partitionSchemaJson": json.dumps({"type": "struct", "fields": partition}),
            "sourceMetadataPath": self.source,
            "tableConfigurations": dict(self.metadata.configuration),
        }
        if self.protocol is not None:
            value["protocolJson"] = json.dumps({"protocol": self.protocol.to_json()})
        if self.previous is not None:
            value["previousMetadataSeqNum"] = self.previous
        return f"{_VERSION}\n{json.dumps(value)}"

    @classmethod
    def parse(cls, text: str, where: str) -> StoredSchema:
        """Return the entry in a file.

        Raises
        ------
        LogError
            If the file is not whole, or of another version.
        """
        try:
            version, _, body = text.partition("\n")
            if version != _VERSION:
                raise ValueError(f"found {shortened(version)!r}, expected {_VERSION}")
            return cls._of_json(decode_json(body), where)
        except (ValueError, KeyError, TypeError) as e:
            raise LogError(
                f"The stored schema of a stream in {where} can't be read: {type(e).__name__} {shortened(e)}. Start the "
                "query with another place for stored schemas.",
                path=where,
            ) from e

    @classmethod
    def _of_json(cls, value: Any, where: str) -> StoredSchema:
        partition = Schema.from_json(value["partitionSchemaJson"])
        metadata = Metadata(
            str(value["tableId"]),
            str(value["dataSchemaJson"]),
            tuple(partition.names),
            dict(value.get("tableConfigurations") or {}),
        )
        Schema.from_json(metadata.schema_string)
        found = value.get("protocolJson")
        protocol = None if found is None else actions.Protocol.parse(decode_json(found)["protocol"], where)
        previous = value.get("previousMetadataSeqNum")
        return cls(
            metadata.id,
            int(value["deltaCommitVersion"]),
            metadata,
            protocol,
            str(value["sourceMetadataPath"]),
            None if previous is None else int(previous),
        )


class StoredDefinition(Struct, frozen=True):
    """The definition that an entry describes."""

    version: int
    metadata: Metadata
    schema: Schema
    state: TableState
    plugins: PluginSet

    @classmethod
    def of(cls, stored: StoredSchema, base: Snapshot) -> StoredDefinition:
        """Build it; ``base``: any version of the table, whose protocol is that of an entry without one."""
        protocol = base.protocol if stored.protocol is None else stored.protocol
        state, plugins = base.context.define(protocol, stored.metadata, stored.version, dict)
        return cls(stored.version, stored.metadata, state.schema, state, plugins)
