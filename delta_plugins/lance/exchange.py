"""Conversions from datasets and to new ones (`delta_core.api.ExchangeFormat`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.api import ColumnNotFoundError, Engine, InvalidArgumentError, Outgoing, SchemaError, TableFacet
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.commit.indices import index_messages, index_names
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.opened import reopening_of
from delta_plugins.lance.schema import LanceField, blob_kind, walk_fields
from delta_plugins.lance.version_files import VersionFiles
from delta_plugins.lance.write.fragments_writer import MAX_BYTES, MAX_ROWS
from delta_plugins.lance.write.write_lance import FILE_VERSIONS, DatasetWrite

if TYPE_CHECKING:
    from delta_core.api import Incoming
    from delta_plugins.lance.manifest import FileVersion

__all__ = ["incoming_dataset", "outgoing_dataset"]

_ROW_ID = "_rowid"
_EXTENSION = "ARROW:extension:name"
_ENCODING = "lance-encoding:"
_BLOB = "lance-encoding:blob"
#: Metadata that is part of a type, or a request for how values are stored.
_OF_FORMAT = ("lance-encoding:", "lance-schema:", "ARROW:extension:", "packed", "lance:")
_TEXTS = ("name", "description")


def outgoing_dataset(dataset: LanceDataset, columns: Sequence[str] | None, row_ids: bool) -> Outgoing:
    """Return a version for another format.

    Parameters
    ----------
    dataset : LanceDataset
        The version.
    columns : sequence of str, optional
        The columns at the top of its schema; all unless given.
    row_ids : bool
        Whether stable ids are requested.

    Raises
    ------
    ColumnNotFoundError
        For a column that is not there.
    SchemaError
        For a column whose bytes only Lance interprets.
    """
    manifest = dataset.manifest
    fields = _chosen(manifest.fields, columns)
    for field in fields:
        _check_values(field)
    has_ids = row_ids and manifest.has_stable_row_ids
    rows = dataset.scan([(f.name,) for f in fields], metadata=[_ROW_ID] if has_ids else [], blobs="bytes")
    found = pa.schema(list(rows.schema)[: len(fields)])
    texts = {k: bytes(v).decode(errors="replace") for k, v in manifest.message["schema_metadata"].items()}
    return Outgoing(
        rows,
        pa.schema([_plain(a) for a in found]),
        [_type_name(f) for f in fields],
        _ROW_ID if has_ids else None,
        list(_facets(dataset, fields, texts)),
        {f.name: ("blobs",) for f in fields if any(blob_kind(g) for g in walk_fields([f]))},
        {k: v for k, v in manifest.message["config"].items() if not k.startswith("lance.")},
        *(texts.get(n) for n in _TEXTS),
    )


def _chosen(fields: Sequence[LanceField], columns: Sequence[str] | None) -> list[LanceField]:
    if columns is None:
        return list(fields)
    named = {f.name: f for f in fields}
    missing = next((n for n in columns if n not in named), None)
    if missing is not None:
        raise ColumnNotFoundError(
            f"Column {missing!r} is not in the dataset; its columns are: {', '.join(named)}.", column=missing
        )
    return [named[n] for n in columns]


def _check_values(field: LanceField) -> None:
    """Reject bytes that only Lance interprets."""
    for below in walk_fields([field]):
        name = below.metadata.get(_EXTENSION, b"").decode(errors="replace")
        is_own = below.logical_type == "json" or name.startswith("lance.")
        if is_own and not blob_kind(below):
            raise SchemaError(
                f"Column {field.name} has values of the type {name or below.logical_type}, which only Lance "
                "interprets. Leave it out with columns=.",
                column=field.name,
            )


def _type_name(field: LanceField) -> str:
    if blob_kind(field):
        return "blob"
    name = field.metadata.get(_EXTENSION)
    shown = str(field.arrow.type)
    return f"{name.decode(errors='replace')} ({shown})" if name else shown


def _plain(field: pa.Field) -> pa.Field:
    """Return a field without the metadata of the format."""
    kept = {k: v for k, v in (field.metadata or {}).items() if not k.decode(errors="replace").startswith(_OF_FORMAT)}
    extension = {k: v for k, v in (field.metadata or {}).items() if k.startswith(b"ARROW:extension:")}
    return field.with_metadata({**kept, **extension} or None)


def _facets(dataset: LanceDataset, fields: Sequence[LanceField], texts: Mapping[str, str]) -> Iterator[TableFacet]:
    """Yield the parts of a dataset beside rows and columns."""
    manifest = dataset.manifest
    every = list(walk_fields(fields))
    listed = {
        "tags": sorted(dataset.tags()),
        "branches": sorted(dataset.branches()),
        "indices": sorted(set(index_names(index_messages(manifest)))),
        "primaryKey": [f.name for f in every if f.key_position],
        "clusteringKey": [f.name for f in every if f.cluster_position],
        "tableMetadata": sorted(manifest.message["table_metadata"]),
        "schemaMetadata": sorted(k for k in texts if k not in _TEXTS),
    }
    for name, values in listed.items():
        if values:
            yield TableFacet(name, ", ".join(values))
    encoded = [f.name for f in every if any(k.startswith(_ENCODING) and k != _BLOB for k in f.metadata)]
    if encoded:
        yield TableFacet("encodings", f"requests for how values of {', '.join(encoded)} are stored", "not needed")
    settings = sorted(k for k in manifest.message["config"] if k.startswith("lance."))
    if settings:
        yield TableFacet("settings", f"configuration {', '.join(settings)}", "not needed")


class _NewDataset:
    """A dataset that is about to be created (`delta_core.api.Incoming`)."""

    facets: Sequence[TableFacet] = ()

    def __init__(
        self,
        engine: Engine,
        uri: str,
        outgoing: Outgoing,
        *,
        row_ids: bool = False,
        file_version: str | None = None,
        max_rows_per_file: int = MAX_ROWS,
        max_bytes_per_file: int = MAX_BYTES,
    ) -> None:
        self._row_id = outgoing.row_id if row_ids else None
        self._config = dict(outgoing.properties)
        texts = {n: t for n, t in zip(_TEXTS, (outgoing.name, outgoing.description), strict=True) if t is not None}
        try:
            fields = lance_fields(outgoing.schema)
        except SchemaError as e:
            raise SchemaError(f"{e} Or leave the column out with columns=.", **e.facts) from e
        self.schema = pa.schema([f.arrow for f in fields])
        self.types = [_type_name(f) for f in fields]
        self._engine, self._uri = engine, uri
        self._given = outgoing.schema.with_metadata({k: v.encode() for k, v in texts.items()} or None)
        self._row_ids = row_ids
        self._version = _file_version(file_version)
        self._limits = {"max_rows": max_rows_per_file, "max_bytes": max_bytes_per_file}

    def write(self, rows: pa.RecordBatchReader) -> LanceDataset:
        """See `Incoming.write`."""
        run = DatasetWrite(self._engine, None, rows, self._given, self._version, self._row_id)
        manifest = run.commit("create", self._limits, self._config, {}, self._row_ids)
        opening = reopening_of(self._engine, self._uri)
        return LanceDataset(VersionFiles(self._engine, self._uri, manifest, None, opening))


def _file_version(text: str | None) -> FileVersion:
    found = FILE_VERSIONS.get(text or max(FILE_VERSIONS))
    if found is None:
        raise InvalidArgumentError(f"Found file_version {text!r}, expected one of {', '.join(FILE_VERSIONS)}.")
    return found


def incoming_dataset(engine: Engine, uri: str, outgoing: Outgoing, options: Mapping[str, Any]) -> Incoming:
    """Prepare a new dataset for the rows of another table.

    Parameters
    ----------
    engine, uri, outgoing
        See `ExchangeFormat.incoming`.
    options : Mapping
        ``row_ids``, ``file_version``, ``max_rows_per_file``, ``max_bytes_per_file``.

    Raises
    ------
    InvalidArgumentError
        For another option.
    SchemaError
        For a column that Lance does not store.
    """
    known = ("row_ids", "file_version", "max_rows_per_file", "max_bytes_per_file")
    strange = next((n for n in options if n not in known), None)
    if strange is not None:
        raise InvalidArgumentError(
            f"Found the argument {strange}, which a new Lance dataset does not take; it takes {', '.join(known)}.",
            argument=strange,
        )
    return _NewDataset(engine, uri, outgoing, **options)
