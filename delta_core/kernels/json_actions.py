"""Commits of the log to Arrow columns, in one pass and without a Python object per action."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import InvalidArgumentError, IrregularFileError, LogError
from delta_core.kernels._json import Parser

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ActionParser", "ParsedActions"]

_STRING_MAP = pa.map_(pa.string(), pa.string())
_ARROW = {
    "s": pa.string(),
    "l": pa.int64(),
    "i": pa.int32(),
    "b": pa.bool_(),
    "m": _STRING_MAP,
    "d": pa.dictionary(pa.int32(), pa.string()),
}

# Field: type, as ext/log/json_actions.h spells them. The last three of a vector may be absent.
_VECTOR = {"storageType": "s", "pathOrInlineDv": "s", "offset": "i", "sizeInBytes": "i", "cardinality": "l"}
_VECTOR_COLUMNS = {
    "storageType": "dvStorageType",
    "pathOrInlineDv": "dvPathOrInline",
    "offset": "dvOffset",
    "sizeInBytes": "dvSizeInBytes",
    "cardinality": "dvCardinality",
}
_FIELDS: dict[str, dict[str, str]] = {
    "add": {
        "path": "s", "partitionValues": "m", "size": "l", "modificationTime": "l", "dataChange": "b", "stats": "j",
        "tags": "m", "deletionVector": "o", "baseRowId": "l", "defaultRowCommitVersion": "l", "clusteringProvider": "s",
    },
    "remove": {
        "path": "s", "deletionTimestamp": "l", "dataChange": "b", "extendedFileMetadata": "b", "partitionValues": "m",
        "size": "l", "stats": "j", "tags": "m", "deletionVector": "o", "baseRowId": "l", "defaultRowCommitVersion": "l",
    },
    "cdc": {"path": "s", "partitionValues": "m", "size": "l", "dataChange": "b", "tags": "m"},
}  # fmt: skip
_ALWAYS = {"path", "dvId"}
_OTHER_ACTIONS = pa.schema(
    [("version", pa.int64()), ("line", pa.int32()), ("kind", pa.string()), ("json", pa.string())]
)
_VECTOR_TYPE = pa.struct([(name, _ARROW[code]) for name, code in _VECTOR.items()])


class ParsedActions(Struct, frozen=True):
    """The actions of the commits that were fed, in the order fed and then of their lines.

    Parameters
    ----------
    adds, removes, cdcs : pyarrow.Table
        A row per file action: ``version`` (int64), ``line`` (int32: which action of its commit, from 0) and the
        columns requested.
    other_actions : pyarrow.Table
        ``version``, ``line``, ``kind`` and ``json``, the raw JSON text of the action's value, of every other action.
    """

    adds: pa.Table
    removes: pa.Table
    cdcs: pa.Table
    other_actions: pa.Table


class _Layout(Struct, frozen=True):
    """A kind's fields and columns as the compiled parser takes them, and the schema of its batches."""

    spec: tuple[Any, ...]
    schema: pa.Schema


class _Plan:
    """Collects the columns of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.columns = {"version": "l", "line": "i"}
        self.fields: list[tuple[str, str, int, int, bool]] = []
        self.entries: list[tuple[int, str, int]] = []
        self.id: tuple[int, int, int, int] | None = None

    def column(self, name: str, code: str) -> int:
        self.columns[name] = code
        return len(self.columns) - 1

    def field(self, name: str, code: str, column_name: str | None, *, parent: int = -1, required: bool = False) -> int:
        column = -1 if column_name is None else self.column(column_name, {"j": "s", "r": "s"}.get(code, code))
        self.fields.append((name, code, parent, column, required))
        return len(self.fields) - 1

    def vector(self, requested: Collection[str]) -> None:
        parent = self.field("deletionVector", "o", None)
        parts = [
            self.field(name, code, column if column in requested else None, parent=parent, required=code == "s")
            for (name, code), column in zip(_VECTOR.items(), _VECTOR_COLUMNS.values(), strict=True)
        ]
        self.id = (self.column("dvId", "s"), parts[0], parts[1], parts[2])

    def layout(self) -> _Layout:
        spec = (self.kind, "".join(self.columns.values()), self.fields, self.entries, self.id)
        return _Layout(spec, pa.schema([(name, _ARROW[code]) for name, code in self.columns.items()]))


@functools.lru_cache(256)
def _plan(
    kind: str, columns: frozenset[str] | None, partition_keys: tuple[str, ...], extra: tuple[str, ...]
) -> _Layout:
    known = _FIELDS[kind]
    requested = {*known, *_VECTOR_COLUMNS.values()} - {"deletionVector"} if columns is None else _ALWAYS.union(columns)
    if "deletionVector" in requested:
        requested = requested.union(_VECTOR_COLUMNS.values())
    plan = _Plan(kind)
    for name, code in known.items():
        if code == "o":
            plan.vector(requested)
        elif name in requested or (name == "partitionValues" and partition_keys):
            # without its map a file's partition is unknown, if a map without a key means null
            required = name == "path" or (kind == "add" and name == "partitionValues" and bool(partition_keys))
            index = plan.field(name, code, name if name in requested else None, required=required)
            if name == "partitionValues":
                plan.entries = [(index, key, plan.column(f"partition:{key}", "d")) for key in partition_keys]
    for name in extra:
        if name in known:
            raise InvalidArgumentError(
                f"{kind}.{name} is a field of the protocol, it can't be declared as an extra one."
            )
        plan.field(name, "r", f"extra:{name}")
    return plan.layout()


class ActionParser:
    """Parse commits into columns, one after the other.

    Parameters
    ----------
    columns : collection of str or None
        The columns of the file tables to keep, by their protocol names; None keeps all. Values of other columns
        are neither unescaped nor copied. ``path`` and ``dvId`` (storageType + pathOrInlineDv [+ "@" + offset], null
        without a vector) are always there. A deletion vector's parts are ``dvStorageType``, ``dvPathOrInline``,
        ``dvOffset``, ``dvSizeInBytes``, ``dvCardinality``; requested as ``deletionVector`` they come as one struct
        instead.
    kinds : collection of str or None
        The kinds of action to keep, such as ``{"protocol", "metaData"}``; None keeps all, unknown ones too.
    skip_kinds : collection of str
        Kinds to pass over, such as ``{"commitInfo"}``.
    partition_keys : sequence of str
        Keys of ``partitionValues`` that each become a column ``partition:<key>`` (dictionary of strings), null if
        the key is absent or its value null. An ``add`` must then have ``partitionValues``.
    extra_fields : mapping of str to sequence of str
        Further fields of ``add``, ``remove`` or ``cdc``; each becomes a column ``extra:<field>`` with the raw JSON
        text of its value, null if it is absent or null.

    Notes
    -----
    A commit is a sequence of JSON objects: one may spread over lines, share a line with the next, or be followed by one
    stray character. Of equal keys the last one counts. A null is an absent value. Only ``feed_files`` does I/O; all
    parsing is done without the interpreter lock. After an error the parser holds nothing and takes nothing more.
    """

    def __init__(
        self,
        columns: Collection[str] | None = None,
        *,
        kinds: Collection[str] | None = None,
        skip_kinds: Collection[str] = (),
        partition_keys: Sequence[str] = (),
        extra_fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        extra = dict(extra_fields or {})
        if unknown := extra.keys() - _FIELDS.keys():
            raise InvalidArgumentError(
                f"Extra fields for {sorted(unknown)}: only {sorted(_FIELDS)} are kept as columns."
            )
        if len(set(partition_keys)) != len(partition_keys):
            raise InvalidArgumentError(f"partition_keys names a key twice: {list(partition_keys)}.")
        requested, keys = None if columns is None else frozenset(columns), tuple(partition_keys)
        self._layouts = {k: _plan(k, requested, keys, tuple(extra.get(k, ()))) for k in _FIELDS}
        if columns is not None:
            names = {name for layout in self._layouts.values() for name in layout.schema.names} | {"deletionVector"}
            if unknown := set(columns) - names:
                raise InvalidArgumentError(f"No file action has a column {sorted(unknown)}; there are {sorted(names)}.")
        self._nested = columns is not None and "deletionVector" in columns
        self._kinds = [k for k in _FIELDS if (kinds is None or k in kinds) and k not in skip_kinds]
        self._parser = Parser([self._layouts[k].spec for k in self._kinds], list(skip_kinds), kinds)

    def feed(self, version: int, data: bytes | bytearray | memoryview | pa.Buffer, path: str = "") -> None:
        """Parse one commit's bytes.

        Parameters
        ----------
        version : int
            The version of the commit.
        data : bytes-like
            Its JSON; may be changed or released after the call.
        path : str
            The file, for errors.

        Raises
        ------
        LogError
            The bytes are no sequence of actions; ``path``, ``version`` and ``offset`` (bytes) specify where.
        """
        if fault := self._parser.feed(version, data):
            _raise_log_error(path, version, *fault[2:])

    def feed_files(
        self, paths: Sequence[str | bytes], versions: npt.ArrayLike | Sequence[int], threads: int = 2
    ) -> None:
        """Read and parse local files, in the order given.

        Parameters
        ----------
        paths : sequence of str or bytes
            Files of the local file system.
        versions : int64[n_files]
            The version of each file.
        threads : int
            How many files are read at once; the order of the actions does not depend on it.

        Raises
        ------
        FileNotFoundError, OSError
            A file is not there or can't be read.
        IrregularFileError
            A file is a pipe, a socket or a device.
        LogError
            As `feed`.
        """
        numbers = np.ascontiguousarray(versions, dtype=np.int64)
        if fault := self._parser.feed_files([os.fsencode(p) for p in paths], numbers, threads):
            file, error = fault[:2]
            path = os.fsdecode(paths[file])
            if error == errno.ESPIPE:
                raise IrregularFileError.of(path)
            if error:
                raise OSError(error, os.strerror(error), path)
            _raise_log_error(path, int(numbers[file]), *fault[2:])

    def finish(self) -> ParsedActions:
        """Return what was parsed; the columns take over the parser's memory, and the parser starts again."""
        schemas = [*(self._layouts[k].schema for k in self._kinds), _OTHER_ACTIONS]
        taken = self._parser.take(schemas)
        batches = dict(zip((*self._kinds, ""), taken, strict=True))
        tables = {k: self._table(batches.get(k, []), self._layouts[k].schema) for k in _FIELDS}
        other_actions = pa.Table.from_batches([pa.record_batch(b) for b in batches[""]], _OTHER_ACTIONS)
        return ParsedActions(tables["add"], tables["remove"], tables["cdc"], other_actions)

    def _table(self, exported: list[Any], schema: pa.Schema) -> pa.Table:
        batches = [pa.record_batch(b) for b in exported]
        if self._nested and "dvId" in schema.names:
            batches = [_nest_vector(b) for b in batches]
            schema = _nest_vector(pa.record_batch([pa.nulls(0, t) for t in schema.types], schema=schema)).schema
        return pa.Table.from_batches(batches, schema)


def _nest_vector(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Put a vector's columns into one struct column; it is null if its required storageType is."""
    parts = [batch.column(name) for name in _VECTOR_COLUMNS.values()]
    nested = pa.Array.from_buffers(_VECTOR_TYPE, batch.num_rows, [parts[0].buffers()[0]], children=parts)
    rest = batch.drop_columns(list(_VECTOR_COLUMNS.values()))
    return rest.append_column("deletionVector", nested)


def _raise_log_error(path: str, version: int, offset: int, expected: str, found: bytes) -> NoReturn:
    text = repr(found.decode("utf-8", "backslashreplace")) if found else "the end of the file"
    where = f"Commit {version}" + (f" ({path})" if path else "")
    raise LogError(
        f"{where} is damaged: at byte {offset} expected {expected}, found {text}. "
        "Restore the file from a copy, or read a version before it.",
        path=path or None,
        version=version,
        offset=offset,
    )
