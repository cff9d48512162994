"""Actions of the log: their kinds and fields, and the small ones as records.

This module is where camelCase of the disk meets snake_case of Python. File actions (add, remove, cdc)
never become Python objects: they live in Arrow columns under the names of `FILE_COLUMNS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import LogError
from delta_core.runtime.json_text import decode_json
from delta_core.runtime.processes import cached_property
from delta_core.schema.fields import Schema

__all__ = [
    "ADD", "ADDED_FILE", "ADD_FIELDS", "CDC", "CHANGE_FILE", "COMMIT_INFO", "CORE_KINDS", "DELETION_VECTOR",
    "FILE_COLUMNS", "REMOVE", "REMOVE_FIELDS", "ActionField", "ActionKind", "DomainMetadata", "Format", "Metadata",
    "Protocol", "SetTransaction", "parse_action",
]  # fmt: skip

_STRING_MAP = pa.map_(pa.string(), pa.string())

#: Protocol: Deletion Vector Descriptor Schema.
DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)

#: The columns of a file table and their types. ``dvId`` is the protocol's deletion vector unique id, null
#: without a vector; ``version`` is the commit that the action is in, null in a checkpoint. Further
#: columns: ``partition:<physical name>`` (string) and the fields that plugins declare.
FILE_COLUMNS: Mapping[str, pa.DataType] = {
    "path": pa.string(),
    "partitionValues": _STRING_MAP,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": _STRING_MAP,
    "deletionVector": DELETION_VECTOR,
    "dvId": pa.string(),
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
    "clusteringProvider": pa.string(),
    "deletionTimestamp": pa.int64(),
    "extendedFileMetadata": pa.bool_(),
    "version": pa.int64(),
}
#: The fields of ``add`` and of ``remove`` that the protocol defines.
ADD_FIELDS = (
    "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "deletionVector",
    "baseRowId", "defaultRowCommitVersion", "clusteringProvider",
)  # fmt: skip
REMOVE_FIELDS = (
    "path", "deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues", "size", "deletionVector",
    "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip
#: The columns of a file that a transaction adds: the columns of an ``add``, and ``numRecords`` (physical rows) and
#: ``fresh``: true for a new data file, false for one that is added again with other properties.
ADDED_FILE = pa.schema([*((n, FILE_COLUMNS[n]) for n in ADD_FIELDS), ("numRecords", pa.int64()), ("fresh", pa.bool_())])
#: A change file that it adds.
CHANGE_FILE = pa.schema([(n, FILE_COLUMNS[n]) for n in ("path", "partitionValues", "size", "dataChange", "tags")])


class ActionKind(Struct, frozen=True):
    """A kind of action and how it reconciles; a feature declares its own in `TableFeature.actions`.

    `Transaction.add_action` and the rule `ExtraAction` add actions of the kind; `Snapshot.custom_actions` returns those
    that are in force.

    Parameters
    ----------
    name : str
        Its key in a commit line.
    type : pyarrow.DataType or None
        Its struct in a checkpoint; None if it is never there.
    key : tuple of str
        The fields by which a newer action replaces an older; empty: one per table.
    in_checkpoint : bool
        Whether checkpoints keep it.
    rebasable : bool
        Whether two commits may write one key concurrently.
    """

    name: str
    type: pa.DataType | None = None
    key: tuple[str, ...] = ()
    in_checkpoint: bool = True
    rebasable: bool = False


class ActionField(Struct, frozen=True):
    """A field that a plugin adds to an action, e.g. to ``add``.

    Parameters
    ----------
    action : str
        The action: ``add``, ``remove`` or ``cdc``.
    name : str
        The field.
    type : pyarrow.DataType
        Its type.
    """

    action: str
    name: str
    type: pa.DataType


ADD = ActionKind("add", pa.struct([(n, FILE_COLUMNS[n]) for n in ADD_FIELDS]), key=("path", "dvId"))
REMOVE = ActionKind("remove", pa.struct([(n, FILE_COLUMNS[n]) for n in REMOVE_FIELDS]), key=("path", "dvId"))
CDC = ActionKind("cdc", None, in_checkpoint=False)
PROTOCOL = ActionKind(
    "protocol",
    pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
)
METADATA = ActionKind(
    "metaData",
    pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _STRING_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _STRING_MAP),
            ("createdTime", pa.int64()),
        ]
    ),
)
TXN = ActionKind(
    "txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]), key=("appId",)
)
DOMAIN_METADATA = ActionKind(
    "domainMetadata",
    pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    key=("domain",),
)
COMMIT_INFO = ActionKind("commitInfo", None, in_checkpoint=False)
CORE_KINDS: Mapping[str, ActionKind] = {
    k.name: k for k in (ADD, REMOVE, CDC, PROTOCOL, METADATA, TXN, DOMAIN_METADATA, COMMIT_INFO)
}


def parse_action(text: str, where: str) -> Any:
    """Decode an action's JSON; errors name ``where`` it was.

    Raises
    ------
    LogError
        For text that is not JSON.
    """
    try:
        return decode_json(text)
    except ValueError as e:
        raise LogError(f"An action in {where} is no JSON that can be read: {e}.") from e


def _object(value: Any, action: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise LogError(f"Action {action} in {where} is {_shown(value)}, expected an object.", action=action)
    return value


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _require(value: Mapping[str, Any], name: str, kind: type, action: str, where: str) -> Any:
    found = value.get(name)
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise LogError(f"Action {action} in {where} has {name}={_shown(found)}, expected {kind.__name__}.", field=name)
    return found


def _optional(value: Mapping[str, Any], name: str, kind: type, action: str, where: str) -> Any:
    return None if value.get(name) is None else _require(value, name, kind, action, where)


def _names(value: Mapping[str, Any], name: str, action: str, where: str) -> tuple[str, ...] | None:
    found = value.get(name)
    if found is None:
        return None
    if not isinstance(found, (list, tuple)) or not all(isinstance(x, str) for x in found):
        raise LogError(f"Action {action} in {where} has {name}={_shown(found)}, expected a list of names.", field=name)
    return tuple(found)


def _string_map(value: Mapping[str, Any], name: str, action: str, where: str) -> dict[str, str]:
    """Return a map's entries; Arrow hands maps out as pairs, JSON as an object; null values are dropped."""
    found = value.get(name)
    pairs = list(found.items()) if isinstance(found, Mapping) else [] if found is None else found
    if not isinstance(pairs, list) or not all(
        isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in pairs
    ):
        raise LogError(f"Action {action} in {where} has {name}={_shown(found)}, expected an object.", field=name)
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in pairs if v is not None}


class Protocol(Struct, frozen=True):
    """The versions and features that a reader and a writer must support.

    Protocol: Protocol Evolution. ``reader_features`` is None below reader version 3, ``writer_features``
    below writer version 7.

    Parameters
    ----------
    min_reader_version, min_writer_version : int
        The protocol versions.
    reader_features, writer_features : tuple of str or None
        The features that are listed; None if the versions have no lists.
    """

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    @staticmethod
    def parse(value: Mapping[str, Any], where: str) -> Protocol:
        """Build from the action's decoded JSON; errors name ``where`` it was.

        Parameters
        ----------
        value : Mapping
            The action as decoded JSON.
        where : str
            The place of the action, for errors.
        """
        _object(value, "protocol", where)
        return Protocol(
            _require(value, "minReaderVersion", int, "protocol", where),
            _require(value, "minWriterVersion", int, "protocol", where),
            _names(value, "readerFeatures", "protocol", where),
            _names(value, "writerFeatures", "protocol", where),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the action's JSON value."""
        out: dict[str, Any] = {"minReaderVersion": self.min_reader_version, "minWriterVersion": self.min_writer_version}
        if self.reader_features is not None:
            out["readerFeatures"] = list(self.reader_features)
        if self.writer_features is not None:
            out["writerFeatures"] = list(self.writer_features)
        return out


class Format(Struct, frozen=True):
    """The format of the data files."""

    provider: str = "parquet"
    options: Mapping[str, str] = {}


class Metadata(Struct, frozen=True, dict=True):
    """The table's metadata. Protocol: Change Metadata.

    ``schema_string`` is empty if the action has none: opening such a version is rejected.

    Parameters
    ----------
    id : str
        The table's id.
    schema_string : str
        The schema as JSON.
    partition_columns : tuple of str
        The logical names of the partition columns.
    configuration : Mapping of str to str
        The table properties.
    name, description : str or None
        The table's texts.
    format : Format
        The format of the data files.
    created_time : int or None
        Milliseconds since the epoch.
    """

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = {}
    name: str | None = None
    description: str | None = None
    format: Format = Format()
    created_time: int | None = None

    @cached_property
    def schema(self) -> Schema:
        """The schema that ``schema_string`` describes.

        Raises
        ------
        ValueError, SchemaError
            If it describes none.
        """
        return Schema.from_json(self.schema_string)

    @staticmethod
    def parse(value: Mapping[str, Any], where: str) -> Metadata:
        """Build from the action's decoded JSON; errors name ``where`` it was.

        Parameters
        ----------
        value : Mapping
            The action as decoded JSON.
        where : str
            The place of the action, for errors.

        Raises
        ------
        LogError
            If a field is missing that the action must have.
        """
        action = "metaData"
        # without them rows would lack their partition values, and columns their physical names
        missing = next(
            (n for n in ("partitionColumns", "configuration") if _object(value, action, where).get(n) is None), None
        )
        if missing is not None:
            raise LogError(f"Action {action} in {where} has no {missing}, which it must have.", field=missing)
        given = _object(value.get("format") or {}, f"{action}.format", where)
        return Metadata(
            id=_optional(value, "id", str, action, where) or "",
            schema_string=_optional(value, "schemaString", str, action, where) or "",
            partition_columns=_names(value, "partitionColumns", action, where) or (),
            configuration=_string_map(value, "configuration", action, where),
            name=_optional(value, "name", str, action, where),
            description=_optional(value, "description", str, action, where),
            format=Format(
                _optional(given, "provider", str, action, where) or "parquet",
                _string_map(given, "options", action, where),
            ),
            created_time=_optional(value, "createdTime", int, action, where),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the action's JSON value."""
        out: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "format": {"provider": self.format.provider, "options": dict(self.format.options)},
            "schemaString": self.schema_string,
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
            "createdTime": self.created_time,
        }
        return {k: v for k, v in out.items() if v is not None}


class SetTransaction(Struct, frozen=True):
    """The last version that an application wrote. Protocol: Transaction Identifiers."""

    app_id: str
    version: int
    last_updated: int | None = None

    @staticmethod
    def parse(value: Mapping[str, Any], where: str) -> SetTransaction:
        """Build from the action's decoded JSON; errors name ``where`` it was."""
        return SetTransaction(
            _require(_object(value, "txn", where), "appId", str, "txn", where),
            _require(value, "version", int, "txn", where),
            _optional(value, "lastUpdated", int, "txn", where),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the action's JSON value."""
        out = {"appId": self.app_id, "version": self.version}
        return out if self.last_updated is None else {**out, "lastUpdated": self.last_updated}


class DomainMetadata(Struct, frozen=True):
    """A named configuration. Protocol: Domain Metadata. Drafts kept a map; it becomes its JSON text.

    Parameters
    ----------
    domain : str
        The name of the domain.
    configuration : str
        Its text.
    removed : bool
        Whether the action removes it.
    """

    domain: str
    configuration: str
    removed: bool = False

    @staticmethod
    def parse(value: Mapping[str, Any], where: str) -> DomainMetadata:
        """Build from the action's decoded JSON; errors name ``where`` it was.

        Parameters
        ----------
        value : Mapping
            The action as decoded JSON.
        where : str
            The place of the action, for errors.
        """
        action = "domainMetadata"
        domain = _require(_object(value, action, where), "domain", str, action, where)
        config = value.get("configuration")
        text = (
            config
            if isinstance(config, str)
            else json.dumps(_string_map(value, "configuration", action, where))
            if config
            else ""
        )
        return DomainMetadata(domain, text, _optional(value, "removed", bool, action, where) or False)

    def to_json(self) -> dict[str, Any]:
        """Return the action's JSON value."""
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}
