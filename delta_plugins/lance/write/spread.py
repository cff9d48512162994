"""Writes whose rows several processes write, as Spark's executors do, and which one commit completes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from delta_core.api import Engine, EngineError, InvalidArgumentError
from delta_plugins.lance.commit.draft import NewFragment
from delta_plugins.lance.external_blobs import Targets
from delta_plugins.lance.opened import reopening_of
from delta_plugins.lance.schema import LanceField
from delta_plugins.lance.write.fitting import fit_batches
from delta_plugins.lance.write.fragments_writer import MAX_BYTES, MAX_ROWS, FragmentsWriter
from delta_plugins.lance.write.write_lance import FILE_VERSIONS, DatasetWrite, check_existing, existing_dataset

if TYPE_CHECKING:
    from delta_plugins.lance.manifest import BasePath, FileVersion

__all__ = ["LancePart", "LanceSpreadWrite", "begin_spread_write"]


class LancePart(Struct, frozen=True):
    """Writes the rows of one task; it can be pickled.

    Parameters
    ----------
    below : str
        The folder of a branch.
    columns : tuple of LanceField
        The columns of data files.
    version : tuple of int
        Of the files.
    metadata : Mapping of str to bytes
        Of the schema.
    limits : Mapping of str to int
        The most rows and bytes of a file.
    bases : Mapping of int to BasePath
        The base paths of the dataset.
    """

    below: str
    columns: tuple[LanceField, ...]
    version: FileVersion
    metadata: Mapping[str, bytes]
    limits: Mapping[str, int]
    bases: Mapping[int, BasePath]

    def write(self, engine: Engine, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> str:
        """Write rows to data files that no version has yet, and return what the commit needs of them.

        Parameters
        ----------
        engine : Engine
            Of the dataset's place.
        schema : pyarrow.Schema
            Of the rows.
        rows : iterator of pyarrow.RecordBatch
            The rows.
        """
        writer = FragmentsWriter(engine.storage, self.below, self.columns, self.version, self.metadata, **self.limits)
        try:
            for batch, _ in fit_batches(rows, schema, self.columns, Targets(engine.storage, self.bases)):
                writer.write(batch)
            fragments = writer.finish()
        except BaseException:
            writer.abandon()
            raise
        return json.dumps({"fragments": [[f.rows, list(f.files)] for f in fragments], "paths": writer.paths})


class LanceSpreadWrite:
    """A write of several tasks (`delta_core.api.SpreadWrite`).

    Attributes
    ----------
    part : LancePart
        Writes the rows of a task.
    """

    def __init__(
        self, run: DatasetWrite, schema: pa.Schema, mode: str, stable_row_ids: bool, limits: Mapping[str, int]
    ) -> None:
        self._run, self._mode, self._stable_row_ids = run, mode, stable_row_ids
        self._fields, self._metadata, written = run.columns(mode)
        # types that don't fit are rejected before a task begins
        assert not list(fit_batches(iter(()), schema, written, run.targets))
        self.part = LancePart(run.below, tuple(written), run.version, dict(self._metadata), limits, run.targets.bases)

    def commit(self, parts: Sequence[str]) -> int:
        """Commit the files of all tasks as one version, and return its number."""
        found = [f for part in parts for f in json.loads(part)["fragments"]]
        fragments = [NewFragment(rows, files) for rows, files in found]
        operation = self._run.operation(self._mode, fragments, self._fields, self._metadata, {})
        paths = self._paths(parts)
        return self._run.committed(operation, {}, self._stable_row_ids, paths).version

    def abandon(self, parts: Sequence[str]) -> None:
        """Delete the files of tasks whose write is not committed."""
        with suppress(EngineError):
            self._run.storage.delete(self._paths(parts))

    def _paths(self, parts: Sequence[str]) -> list[str]:
        return [path for part in parts for path in json.loads(part)["paths"]]


def begin_spread_write(
    engine: Engine, uri: str, schema: pa.Schema, mode: str, options: Mapping[str, Any]
) -> LanceSpreadWrite:
    """Begin a write; nothing is written yet.

    Parameters
    ----------
    engine : Engine
        Of the place.
    uri : str
        As the user wrote it.
    schema : pyarrow.Schema
        Of the rows.
    mode : "create", "append" or "overwrite"
        As of `write_lance`; ``append`` creates a dataset that is not there.
    options : Mapping
        Those of `LanceFormat.write_options`.

    Raises
    ------
    TableExistsError, SchemaMismatchError, SchemaError, InvalidArgumentError
        As of `write_lance`.
    """
    text = options.get("file_version")
    if text is not None and text not in FILE_VERSIONS:
        raise InvalidArgumentError(f"Found file_version {text!r}, expected one of {', '.join(FILE_VERSIONS)}.")
    opening = reopening_of(engine, uri)
    # an append to nothing creates, as in Spark
    base = existing_dataset(engine, uri, "overwrite" if mode == "append" else mode, options.get("branch"), opening)
    if base is not None:
        check_existing(base, text, options.get("stable_row_ids"))
    own = "append" if mode == "append" and base is not None else "overwrite"
    run = DatasetWrite(engine, base, schema.empty_table(), None, FILE_VERSIONS[text or max(FILE_VERSIONS)])
    limits = {
        "max_rows": options.get("max_rows_per_file", MAX_ROWS),
        "max_bytes": options.get("max_bytes_per_file", MAX_BYTES),
    }
    return LanceSpreadWrite(run, schema, own, bool(options.get("stable_row_ids")), limits)
