"""TableBuilder: real Delta tables for tests, action by action: log state x features x layout.

It writes what a Delta writer would, with PyArrow and plain Python only, keeps no promise for the caller (illegal
tables are as easy as legal ones), and remembers the rows, so that a test compares a reader with `expected`::

    table = (
        TableBuilder(path)
        .create({"id": "long", "kind": "string"}, partition_by=["kind"], features=["deletionVectors"])
        .append([{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}])
        .delete_rows(lambda row: row["id"] == 2)
        .checkpoint("v2-parquet", sidecars=2)
        .cleanup_before(2)
    )
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import pyarrow as pa

from delta_core.schema.fields import Schema, arrow_schema
from delta_core.schema.types import BASE_TYPES, TIMESTAMP_NTZ, VARIANT
from delta_core.testing.data_files import (
    Rows,
    as_schema,
    as_table,
    hive_directory,
    logical_rows,
    map_columns,
    parquet_bytes,
    partition_text,
    physical_name,
    physical_table,
    uri_path,
)
from delta_core.testing.log_builder import LogBuilder
from delta_core.testing.log_state import Action, vector_id
from delta_core.testing.statistics import compute_statistics, statistics_json
from delta_core.testing.vector_bytes import encode_vector, encode_vector_file, encode_z85, vector_path

__all__ = ["READER_FEATURES", "TableBuilder"]

#: Features that a reader must understand: they go into both lists of the protocol.
READER_FEATURES = frozenset(
    {
        "catalogManaged",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    }
)
_TYPES = {**BASE_TYPES, "timestamp_ntz": TIMESTAMP_NTZ, "variant": VARIANT}


class TableBuilder(LogBuilder):
    """A Delta table under construction: its data files and vectors, and the operations of `LogBuilder`.

    ``options`` are `LogBuilder`'s: ``storage_options``, ``start_ms``, ``step_ms``, ``seed``.
    """

    def __init__(self, path: Any, **options: Any) -> None:
        super().__init__(path, **options)
        self._tables: dict[str, pa.Table] = {}
        self._vectors: dict[str | None, frozenset[int]] = {None: frozenset()}

    # --- what was written ------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The latest schema."""
        return Schema.from_json(self.state.metadata["schemaString"])

    def paths(self, version: int | None = None) -> list[str]:
        """Return the paths of the live files as the log spells them, in order of their adds."""
        return [path for path, _ in self.state_at(version).files]

    def expected(self, version: int | None = None) -> pa.Table:
        """Return the rows that a reader must find, in the order of the adds, with the version's schema."""
        state = self.state_at(version)
        schema = Schema.from_json(state.metadata["schemaString"])
        rows = [row for key in state.files for row in self._live_rows(key, schema)]
        return pa.Table.from_pylist(rows, schema=arrow_schema(schema, _TYPES))

    def _live_rows(self, key: tuple[str, str | None], schema: Schema) -> list[dict[str, Any]]:
        rows = logical_rows(self._tables[key[0]], schema, self._partitions[key[0]])
        return [row for at, row in enumerate(rows) if at not in self._vectors[key[1]]]

    # --- the log ---------------------------------------------------------------------------

    def create(
        self,
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        features: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        column_mapping: Literal["name", "id"] | None = None,
        protocol: Mapping[str, Any] | tuple[int, int] | None = None,
        actions: Sequence[Action] = (),
        **commit: Any,
    ) -> Self:
        """Write protocol and metadata.

        Parameters
        ----------
        schema : pyarrow.Schema, delta_core.schema.fields.Schema or dict
            Or decoded JSON, or ``{"id": "long"}``.
        partition_by : sequence of str
            The partition columns.
        features : sequence of str
            The features of the protocol.
        properties : Mapping, optional
            Table properties.
        column_mapping : str, optional
            Assign every field an id and a physical name.
        protocol : (reader, writer) or dict, optional
            Instead of what the features request.
        actions : sequence of dict
            Further actions of the commit.
        **commit
            As of `commit`.
        """
        fields = as_schema(schema)
        configuration = dict(properties or {})
        if column_mapping is not None:
            fields, last_id = map_columns(fields)
            configuration |= {
                "delta.columnMapping.mode": column_mapping,
                "delta.columnMapping.maxColumnId": str(last_id),
            }
        metadata = {
            "id": str(self._uuid()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": fields.to_json(),
            "partitionColumns": list(partition_by),
            "configuration": configuration,
            "createdTime": self.timestamp_ms(0),
        }
        first = {"protocol": _protocol(protocol, features, column_mapping is not None)}
        return self.commit(first, {"metaData": metadata}, *actions, operation="CREATE TABLE", **commit)

    def alter(
        self,
        schema: Any = None,
        *,
        properties: Mapping[str, str | None] | None = None,
        features: Sequence[str] = (),
        protocol: Mapping[str, Any] | tuple[int, int] | None = None,
        **commit: Any,
    ) -> Self:
        """Change schema, properties (None unsets one) or protocol; fields keep their ids by name under mapping."""
        metadata = dict(self.state.metadata)
        configuration = {**metadata["configuration"], **(properties or {})}
        if schema is not None:
            fields = as_schema(schema)
            if configuration.get("delta.columnMapping.mode", "none") != "none":
                last_id = int(configuration["delta.columnMapping.maxColumnId"])
                fields, last_id = map_columns(fields, last_id, self.schema)
                configuration["delta.columnMapping.maxColumnId"] = str(last_id)
            metadata["schemaString"] = fields.to_json()
        metadata["configuration"] = {k: v for k, v in configuration.items() if v is not None}
        actions: list[Action] = [{"metaData": metadata}]
        if features or protocol:
            actions.insert(0, {"protocol": _protocol(protocol, features, False)})
        return self.commit(*actions, operation="ALTER TABLE", **commit)

    # --- data ------------------------------------------------------------------------------

    def append(self, rows: Rows, *, files: int = 1, commit: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """Add rows: one file for each partition, or ``files`` of them for an unpartitioned table.

        ``options`` are those of `add_actions`.
        """
        table = as_table(rows, self.schema)
        step = -(-table.num_rows // files) or 1
        parts = [table.slice(at, step) for at in range(0, max(table.num_rows, 1), step)]
        actions = [action for part in parts for action in self.add_actions(part, **options)]
        return self.commit(*actions, *self._row_id_mark(), **(commit or {}))

    def add_actions(
        self,
        rows: Rows,
        *,
        path: str | None = None,
        statistics: bool | Mapping[str, Any] | str = True,
        materialize_partitions: bool = False,
        parquet: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> list[Action]:
        """Write the data files for rows and return their ``add`` actions, uncommitted.

        Parameters
        ----------
        rows : pyarrow.Table, or sequence of dict
            The rows; there is a file for each partition.
        path : str, optional
            The file's path below the root, not yet percent-encoded.
        statistics : bool, dict or str
            Computed ones or none; a dict replaces entries of the computed ones; a str is taken as it is.
        materialize_partitions : bool
            Whether files hold the partition columns too.
        parquet : Mapping, optional
            Options of `pyarrow.parquet.write_table`: ``row_group_size``, ``use_deprecated_int96_timestamps`` ...
        fields
            Further fields of the action: ``tags``, ``baseRowId``, ``partitionValues`` ...
        """
        table = as_table(rows, self.schema)
        names = list(self.state.metadata["partitionColumns"])
        out: list[Action] = []
        for values, part in _split(table, names):
            stored = physical_table(part if materialize_partitions else part.drop_columns(names), self.schema)
            data = parquet_bytes(stored, **(parquet or {}))
            name = f"part-{len(self._tables):05d}-{self._uuid()}.parquet"
            place = path or f"{hive_directory(names, values)}/{name}".lstrip("/")
            out.append({"add": self._add(place, values, stored, data, statistics, fields)})
        return out

    def _add(
        self,
        place: str,
        values: Mapping[str, Any],
        stored: pa.Table,
        data: bytes,
        statistics: bool | Mapping[str, Any] | str,
        fields: Mapping[str, Any],
    ) -> dict[str, Any]:
        self.write(place, data)
        physical = {f.name: physical_name(f) for f in self.schema.members}
        logged = uri_path(place)
        self._tables[logged] = stored
        self._partitions[logged] = {physical[n]: None if v == "" else v for n, v in values.items()}
        add: dict[str, Any] = {
            "path": logged,
            "partitionValues": {physical[n]: partition_text(v) for n, v in values.items()},
            "size": len(data),
            "modificationTime": self.timestamp_ms(self.version + 1),
            "dataChange": True,
        }
        if statistics is not False:
            computed = compute_statistics(stored)
            given = statistics if isinstance(statistics, Mapping) else {}
            add["stats"] = statistics if isinstance(statistics, str) else statistics_json({**computed, **given})
        if "rowTracking" in (self.state.protocol.get("writerFeatures") or ()):
            add |= {"baseRowId": self._take_row_ids(stored.num_rows), "defaultRowCommitVersion": self.version + 1}
        return {**add, **fields}

    def _take_row_ids(self, count: int) -> int:
        domain = self.state.domains.setdefault("delta.rowTracking", {"configuration": '{"rowIdHighWaterMark":-1}'})
        mark = json.loads(domain["configuration"])["rowIdHighWaterMark"]
        domain["configuration"] = json.dumps({"rowIdHighWaterMark": mark + count})
        return int(mark) + 1

    def _row_id_mark(self) -> list[Action]:
        domain = self.state.domains.get("delta.rowTracking")
        return [{"domainMetadata": {"domain": "delta.rowTracking", "removed": False, **domain}}] if domain else []

    def remove(self, *paths: str, data_change: bool = True, more: Sequence[Action] = (), **commit: Any) -> Self:
        """Remove live files, all if none is named; ``more`` actions go into the same commit."""
        return self.commit(*self.remove_actions(*paths, data_change=data_change), *more, operation="DELETE", **commit)

    def remove_actions(self, *paths: str, data_change: bool = True) -> list[Action]:
        """Return the ``remove`` actions of live files, uncommitted, each with the vector that it has."""
        when = self.timestamp_ms(self.version + 1)
        carried = ("path", "partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
        return [
            {
                "remove": {
                    **{k: add[k] for k in carried if k in add},
                    "deletionTimestamp": when,
                    "dataChange": data_change,
                    "extendedFileMetadata": True,
                }
            }
            for (path, _), add in self.state.files.items()
            if not paths or path in paths
        ]

    def change_actions(self, rows: Rows, path: str | None = None) -> list[Action]:
        """Write change files for rows with ``_change_type`` and return their ``cdc`` actions, uncommitted."""
        place = f"_change_data/{path or f'cdc-{self._uuid()}.parquet'}"
        keep = ("path", "partitionValues", "size")
        out = self.add_actions(rows, path=place)
        return [{"cdc": {**{k: a["add"][k] for k in keep}, "dataChange": False}} for a in out]

    # --- deletion vectors ------------------------------------------------------------------

    def delete_rows(
        self,
        where: Callable[[dict[str, Any]], bool] | Mapping[str, Iterable[int]],
        *,
        storage: Literal["u", "p", "i"] = "u",
        prefix: str = "",
        runs: bool = False,
        more: Sequence[Action] = (),
        **commit: Any,
    ) -> Self:
        """Delete rows by deletion vectors, those of all files in one vector file.

        Parameters
        ----------
        where : function or Mapping
            Over a row's dict; or positions by path.
        storage : str
            ``u`` and ``p`` for a vector file by a relative or an absolute path, ``i`` for vectors within the log.
        prefix : str
            The directory of the vector file below the root, for ``u``.
        runs : bool
            Whether vectors may have run containers.
        more : sequence of dict
            Further actions of the commit.
        **commit
            As of `commit`.
        """
        positions = where if isinstance(where, Mapping) else self._matching(where)
        dropped: dict[str, frozenset[int]] = {}
        for path, vector in self.state.files:
            rows = self._vectors[vector] | set(positions.get(path, ()))
            if rows != self._vectors[vector]:
                dropped[path] = frozenset(rows)
        actions = self.vector_actions(dropped, storage=storage, prefix=prefix, runs=runs)
        return self.commit(*actions, *more, operation="DELETE", **commit)

    def _matching(self, where: Callable[[dict[str, Any]], bool]) -> dict[str, list[int]]:
        schema = self.schema
        found = {}
        for path, _ in self.state.files:
            rows = logical_rows(self._tables[path], schema, self._partitions[path])
            found[path] = [at for at, row in enumerate(rows) if where(row)]
        return found

    def vector_actions(
        self,
        rows: Mapping[str, Iterable[int]],
        *,
        storage: Literal["u", "p", "i"] = "u",
        prefix: str = "",
        runs: bool = False,
    ) -> list[Action]:
        """Write vectors that drop these rows and return the files' ``remove`` and ``add`` actions, uncommitted."""
        descriptors = self.write_vectors(rows, storage=storage, prefix=prefix, runs=runs)
        out = self.remove_actions(*descriptors) if descriptors else []
        for (path, _), add in self.state.files.items():
            if path in descriptors:
                changed = {**add, "deletionVector": descriptors[path], "dataChange": True}
                if "stats" in add:
                    changed["stats"] = statistics_json({**json.loads(add["stats"]), "tightBounds": False})
                out.append({"add": changed})
        return out

    def write_vectors(
        self,
        rows: Mapping[str, Iterable[int]],
        *,
        storage: Literal["u", "p", "i"] = "u",
        prefix: str = "",
        runs: bool = False,
    ) -> dict[str, dict[str, Any]]:
        """Write one vector for each path, all in one file, and return their descriptors."""
        sets = {path: frozenset(numbers) for path, numbers in rows.items()}
        payloads = {path: encode_vector(s, runs) for path, s in sets.items()}
        text, place = vector_path(self._uuid(), prefix)
        data, offsets = encode_vector_file(list(payloads.values()))
        if storage != "i":
            self.write(place, data)
        if storage == "p":
            local = "file" in self._fs.protocol
            text = f"file://{uri_path(self.location(place))}" if local else f"{self.uri}/{place}"
        out: dict[str, dict[str, Any]] = {}
        for (path, payload), offset in zip(payloads.items(), offsets, strict=True):
            where: dict[str, Any] = {"pathOrInlineDv": text, "offset": offset}
            if storage == "i":
                where = {"pathOrInlineDv": encode_z85(payload)}
            out[path] = {"storageType": storage, **where, "sizeInBytes": len(payload), "cardinality": len(sets[path])}
            self._vectors[vector_id(out[path])] = sets[path]
        return out


def _protocol(
    given: Mapping[str, Any] | tuple[int, int] | None, features: Sequence[str], mapped: bool
) -> dict[str, Any]:
    """Return the protocol action that the features request."""
    if isinstance(given, Mapping):
        return dict(given)
    if given is not None:
        return {"minReaderVersion": given[0], "minWriterVersion": given[1]}
    if not features:
        return (
            {"minReaderVersion": 2, "minWriterVersion": 5} if mapped else {"minReaderVersion": 1, "minWriterVersion": 2}
        )
    listed = sorted({*features, *(("columnMapping",) if mapped else ())})
    readers = [f for f in listed if f in READER_FEATURES]
    out: dict[str, Any] = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    return {**out, **({"readerFeatures": readers} if readers else {}), "writerFeatures": listed}


def _split(table: pa.Table, names: Sequence[str]) -> list[tuple[dict[str, Any], pa.Table]]:
    """Return (partition values, rows) for each partition, in order of first appearance."""
    if not names:
        return [({}, table)]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(table.select(list(names)).to_pylist()):
        groups.setdefault(tuple(row[n] for n in names), []).append(at)
    return [(dict(zip(names, values, strict=True)), table.take(rows)) for values, rows in groups.items()]
