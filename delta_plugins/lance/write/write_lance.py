"""New datasets, and rows appended to datasets or written in place of all their rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from delta_core.api import (
    LOG_DIRECTORY,
    CommitConflictError,
    Engine,
    EngineError,
    InvalidArgumentError,
    Opening,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    make_engine,
    open_source,
    path_text,
    progress_bar,
    report_rows,
)
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array
from delta_plugins.lance import flags
from delta_plugins.lance.arguments import checked_texts
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.changes import check_changeable, manifest_scheme
from delta_plugins.lance.commit.commits import commit_operation
from delta_plugins.lance.commit.conflicts import is_retryable
from delta_plugins.lance.commit.draft import Draft
from delta_plugins.lance.commit.operations import Append, Merge, Operation, Overwrite
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.external_blobs import Targets
from delta_plugins.lance.files.write_file import check_field
from delta_plugins.lance.names import has_manifests
from delta_plugins.lance.opened import Reopening
from delta_plugins.lance.version_files import VersionFiles
from delta_plugins.lance.write.fitting import fit_batches, sorted_columns
from delta_plugins.lance.write.fragments_writer import MAX_BYTES, MAX_ROWS, FragmentsWriter, check_file_version

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.commit.draft import NewFragment
    from delta_plugins.lance.manifest import FileVersion, Manifest
    from delta_plugins.lance.schema import LanceField

__all__ = ["FILE_VERSIONS", "DatasetWrite", "check_existing", "existing_dataset", "write_lance"]

#: The versions of data files that are written; the last one by default.
FILE_VERSIONS: Mapping[str, FileVersion] = {"2.0": (2, 0), "2.1": (2, 1), "2.2": (2, 2)}
_NEWEST = "2.2"
_BATCH_ROWS = 1 << 16
_RETRIES = 15


def write_lance(
    uri: str | os.PathLike[str],
    data: Any,
    mode: Literal["create", "append", "overwrite"] = "create",
    *,
    schema: Any = None,
    file_version: str | None = None,
    max_rows_per_file: int = MAX_ROWS,
    max_bytes_per_file: int = MAX_BYTES,
    stable_row_ids: bool | None = None,
    config: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    branch: str | None = None,
    merge_schema: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    engine: str | Engine = "arrow",
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> LanceDataset:
    """Write rows to a dataset, as one version; rows are streamed, in bounded memory.

    Parameters
    ----------
    uri : str or path
        The root of the dataset.
    data : anything with the Arrow PyCapsule interface, or a pandas data frame
        The rows; a stream is read once.
    mode : "create", "append" or "overwrite"
        Make a new dataset; add rows to one that is there, whose columns that take nulls may be missing; or write rows
        and columns in place of all that it has, or make a new one.
    schema : pyarrow.Schema, optional
        The columns of the dataset; by default those of the rows. Not for ``append``.
    file_version : "2.0", "2.1" or "2.2", optional
        Of the data files of a new dataset, 2.2 by default; an existing dataset is written in its own version.
    max_rows_per_file, max_bytes_per_file : int
        A data file ends after this number of rows, or with the page that makes it longer than this number of bytes.
    stable_row_ids : bool, optional
        Whether the rows of a new dataset have ids that stay when rows are updated or moved; no by default.
    config : Mapping of str to str, optional
        Added to the configuration of the dataset. Not for ``append``.
    properties : Mapping of str to str, optional
        Kept in the transaction.
    branch : str, optional
        The branch of an existing dataset.
    merge_schema : bool
        Whether columns that the dataset does not have are added to it, with ``append``: they take nulls, and are null
        in earlier rows. Otherwise they are an error. Fields of structs are not added.
    storage_options, engine, allow_external
        As of `delta_core.DeltaTable`.

    Returns
    -------
    LanceDataset
        The new version.

    Raises
    ------
    TableExistsError
        With ``create``, if there is a dataset, and always if there is a Delta table.
    TableNotFoundError
        With ``append``, if there is no dataset.
    InvalidArgumentError
        For arguments that contradict each other, or the dataset.
    SchemaError, SchemaMismatchError
        For columns that Lance does not store, that do not fit the dataset, or that have nulls but take none; nothing
        was written.
    UnsupportedFeatureError
        For a dataset with a feature, or of a version of data files, that is not written.
    CommitConflictError
        If another writer's commit contradicts this one; nothing of it is left.
    """
    if mode not in ("create", "append", "overwrite"):
        raise InvalidArgumentError(f"Found mode {mode!r}, expected 'create', 'append' or 'overwrite'.")
    if file_version is not None and file_version not in FILE_VERSIONS:
        raise InvalidArgumentError(f"Found file_version {file_version!r}, expected one of {', '.join(FILE_VERSIONS)}.")
    configured, kept = checked_texts(config, "config"), checked_texts(properties, "properties")
    uri = path_text(uri)
    opening = Opening(uri, storage_options, engine, allow_external=allow_external)
    found = engine if isinstance(engine, Engine) else make_engine(engine, uri, storage_options, allow_external)
    base = existing_dataset(found, uri, mode, branch, Reopening(opening))
    if mode == "append":
        _check_append(schema, config)
    elif merge_schema:
        raise InvalidArgumentError(f"merge_schema is for mode='append', found mode={mode!r}. Leave it out.")
    if base is not None:
        check_existing(base, file_version, stable_row_ids)
    source = open_source(data)
    version = FILE_VERSIONS[file_version or _NEWEST]
    limits = {"max_rows": max_rows_per_file, "max_bytes": max_bytes_per_file}
    with progress_bar() as advance:
        counted = source if advance is None else report_rows(source, advance)
        run = DatasetWrite(found, base, counted, schema, version, merge_schema=merge_schema)
        manifest = run.commit(mode, limits, configured, kept, bool(stable_row_ids))
    return LanceDataset(VersionFiles(found, uri, manifest, run.branch, Reopening(opening)))


def existing_dataset(
    engine: Engine, uri: str, mode: str, branch: str | None, opening: Reopening | None
) -> LanceDataset | None:
    """Return the latest version of the dataset that is there, None if there is none.

    Raises
    ------
    TableExistsError
        If there is a dataset and ``create`` is the mode, or a Delta table.
    TableNotFoundError
        If there is none to append to.
    """
    storage = engine.storage
    if any(n.endswith((".json", ".parquet", "_last_checkpoint")) for n in storage.list_from(LOG_DIRECTORY).names):
        raise TableExistsError(
            f"There is a Delta table at {storage.uri('')}; a Lance dataset needs a place of its own. Choose another "
            "one, or write to the table with write_deltalake.",
            path=storage.uri(""),
        )
    if has_manifests(storage):
        if mode == "create":
            raise TableExistsError(
                f"There is a dataset at {storage.uri('')}. Pass mode='append' or mode='overwrite', or choose another "
                "place.",
                path=storage.uri(""),
            )
        return LanceDataset.open(engine, uri, branch=branch, opening=opening)
    if mode == "append" or branch is not None:
        raise TableNotFoundError(f"There is no dataset at {storage.uri('')}. Pass mode='create'.", path=uri)
    return None


def _check_append(schema: Any, config: Any) -> None:
    given = [n for n, v in (("schema", schema), ("config", config)) if v is not None]
    if given:
        raise InvalidArgumentError(
            f"{' and '.join(given)} can't be passed with mode='append': rows that are appended change neither. Leave "
            "it out; add_columns and set_config of the dataset change them."
        )


def check_existing(base: LanceDataset, file_version: str | None, stable_row_ids: bool | None) -> None:
    """Check that a dataset can be written, and is as the arguments request it.

    Raises
    ------
    InvalidArgumentError
        If it is not as requested.
    """
    manifest = base.manifest
    check_changeable(base)
    check_file_version(manifest)
    own = ".".join(map(str, manifest.file_version))
    if file_version not in (None, own):
        raise InvalidArgumentError(
            f"The dataset has data files of version {own}, found file_version {file_version!r}: it is always written "
            "in its own version. Leave file_version out, or create another dataset.",
            version=own,
        )
    if stable_row_ids not in (None, manifest.has_stable_row_ids):
        has = "has" if manifest.has_stable_row_ids else "does not have"
        raise InvalidArgumentError(
            f"The dataset {has} stable row ids, which stays so; found stable_row_ids={stable_row_ids}. Leave it out, "
            "or create another dataset."
        )


def _lineage(hidden: Mapping[str, pa.Array], row_id: str | None) -> Iterator[NDArray[np.uint64]]:
    """Yield the ids that rows keep, and the version that they are created in, which is the first one."""
    if row_id is None:
        return
    ids = one_array(hidden[row_id])
    if ids.null_count or (pa.types.is_signed_integer(ids.type) and len(ids) and pc.min(ids).as_py() < 0):
        raise SchemaMismatchError("A row has no id, or a negative one, which Lance does not store. Pass row_ids=False.")
    yield np.asarray(ids).astype(np.uint64, copy=False)
    yield np.ones(len(ids), np.uint64)


class DatasetWrite:
    """One write, from its rows to the version.

    Parameters
    ----------
    engine : Engine
        Of the place.
    base : LanceDataset, optional
        The version that is written to; None for a new dataset.
    source : pyarrow.Table or pyarrow.RecordBatchReader
        The rows.
    schema : pyarrow.Schema, optional
        The columns of a new dataset; those of the rows unless given.
    version : tuple of int
        Of the data files of a new dataset.
    row_id : str, optional
        The column of the rows that has their stable ids, which they keep in a new dataset.
    merge_schema : bool
        Whether columns that the version does not have are added to it.
    """

    def __init__(
        self,
        engine: Engine,
        base: LanceDataset | None,
        source: pa.Table | pa.RecordBatchReader,
        schema: pa.Schema | None,
        version: FileVersion,
        row_id: str | None = None,
        merge_schema: bool = False,
    ) -> None:
        self._row_id = row_id
        self._merges_schema = merge_schema
        self.storage = engine.storage
        self.base = base
        self.branch = None if base is None else base.branch
        self.below = "" if base is None else base.files.below
        self.version = version if base is None else base.manifest.file_version
        self.targets = Targets(self.storage, {} if base is None else base.manifest.base_paths)
        self._source = source
        self._given = schema

    def commit(
        self,
        mode: str,
        limits: Mapping[str, int],
        config: Mapping[str, str],
        properties: Mapping[str, str],
        stable_row_ids: bool,
    ) -> Manifest:
        """Write the rows, and commit them.

        Raises
        ------
        SchemaMismatchError
            For rows without columns, and columns that don't fit.
        """
        fields, metadata, written = self.columns(mode)
        rest = [] if self._row_id is None else [self._row_id]
        writer = FragmentsWriter(self.storage, self.below, written, self.version, metadata, **limits)
        try:
            for batch, hidden in fit_batches(self._batches(), self._source.schema, written, self.targets, rest):
                writer.write(batch, *_lineage(hidden, self._row_id))
            fragments = writer.finish()
        except BaseException:
            writer.abandon()
            raise
        operation = self.operation(mode, fragments, fields, metadata, config)
        return self.committed(operation, properties, stable_row_ids, writer.paths)

    def columns(self, mode: str) -> tuple[tuple[LanceField, ...], Mapping[str, bytes], list[LanceField]]:
        """Return the columns of the new version, the metadata of its schema, and the columns that files get.

        Raises
        ------
        SchemaMismatchError
            For rows without columns, and columns that the dataset does not have.
        UnsupportedFeatureError
            For a column that files of the version do not store.
        """
        if mode == "append":
            assert self.base is not None
            fields: tuple[LanceField, ...] = (*self.base.manifest.fields, *self._added_fields(self.base.manifest))
            metadata: Mapping[str, bytes] = self.base.manifest.message["schema_metadata"]
        else:
            fields, metadata = self._new_fields()
        places = sorted_columns([n for n in self._source.schema.names if n != self._row_id], fields)
        written = [f for f, p in zip(fields, places, strict=True) if p is not None or mode != "append"]
        if not written:
            raise SchemaMismatchError("The rows have no columns, so nothing would be stored of them.")
        for field in written:
            check_field(field, self.version)
        return fields, metadata, written

    def operation(
        self,
        mode: str,
        fragments: Sequence[NewFragment],
        fields: tuple[LanceField, ...],
        metadata: Mapping[str, bytes],
        config: Mapping[str, str],
    ) -> Operation:
        """Return the operation that adds fragments, or puts them in place of all."""
        if mode == "append":
            assert self.base is not None
            base = self.base.manifest
            return Append(fragments) if len(fields) == len(base.fields) else Merge(base, fields, {}, None, fragments)
        shown = None if self.base is not None else ".".join(map(str, self.version))
        return Overwrite(fragments, fields, metadata, config, shown)

    def _added_fields(self, manifest: Manifest) -> tuple[LanceField, ...]:
        """Return fields for the columns of the rows that an existing version does not have, if they are to be added."""
        names = {f.name.lower() for f in manifest.fields}
        new = [f.with_nullable(True) for f in self._source.schema if f.name.lower() not in names]
        return lance_fields(pa.schema(new), Draft(manifest).next_field()) if self._merges_schema and new else ()

    def _batches(self) -> Any:
        source = self._source
        return iter(source.to_batches(_BATCH_ROWS) if isinstance(source, pa.Table) else source)

    def _new_fields(self) -> tuple[tuple[LanceField, ...], dict[str, bytes]]:
        schema = self._source.schema if self._given is None else pa.schema(self._given)
        first = 0
        if self.base is not None and self.base.manifest.message["writer_feature_flags"] & flags.UNIQUE_FIELD_IDS:
            first = Draft(self.base.manifest).next_field()
        metadata = {k.decode(): v for k, v in (schema.metadata or {}).items()}
        return lance_fields(schema, first), metadata

    def committed(
        self, operation: Operation, properties: Mapping[str, str], stable_row_ids: bool, paths: Sequence[str]
    ) -> Manifest:
        """Commit, again if another writer replaced everything meanwhile, which the rows do not depend on.

        ``paths``: the data files, which are deleted if the commit certainly did not land.
        """
        base = self.base
        for left in reversed(range(_RETRIES + 1)):
            is_last = base is None or isinstance(operation, (Append, Merge)) or not left
            try:
                return commit_operation(
                    self.storage,
                    operation,
                    None if base is None else base.manifest,
                    below=self.below,
                    scheme=2 if base is None else manifest_scheme(base.manifest.path),
                    properties=properties,
                    stable_row_ids=stable_row_ids,
                    written=paths if is_last else (),
                ).manifest
            except CommitConflictError as e:
                if is_last:
                    raise
                if not is_retryable(e):
                    with suppress(EngineError):
                        self.storage.delete(paths)
                    raise
                assert base is not None
                base = base.latest()
        raise AssertionError
