"""Parquet checkpoints and sidecars, read through our own decoder where it can, else through PyArrow."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core import parquet
from delta_core.engines.arrow.pinned import PinnedFile
from delta_core.engines.interface import Storage
from delta_core.engines.records import FileIdentity
from delta_core.errors import AccessDeniedError, CheckpointError, DeltaError, EngineError, IrregularFileError
from delta_core.expressions.ast import FileStatistic
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernels.arrow_buffers import is_text, nulls_of
from delta_core.kernels.gather import SelectionVector
from delta_core.parquet.columns import find_chunk, find_nested, has_codes
from delta_core.parquet.footer import read_footer
from delta_core.parquet.nested_pages import NestedColumn, nested_column, read_nested_column
from delta_core.parquet.opened_file import ArrowFooter
from delta_core.parquet.pages import ColumnChunk, UnsupportedPagesError, read_chunks, text_pages
from delta_core.parquet.reader import ParquetFile
from delta_core.parquet.row_groups import group_bounds
from delta_core.runtime.processes import cached_property
from delta_core.storage.places import is_of_system

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ParquetCheckpoint"]

Path = tuple[str, ...]
#: This many statistics texts stay in a core's cache from their decoding to their parsing.
BATCH_ROWS = 4096


class ParquetCheckpoint:
    """One Parquet checkpoint part or sidecar; opening it reads the footer."""

    def __init__(self, storage: Storage, path: str, size: int | None, listed: FileIdentity | None = None) -> None:
        self.path = path
        self._file = PinnedFile(storage, path, size, listed)
        with self._guard(), self._file.opened(for_footer=True) as source:
            self._metadata = read_footer(source)
            self._schema: pa.Schema = self._parquet(source).schema_arrow
            self._check_schema()
        self._footer = ArrowFooter(self._metadata)
        self.group_rows: Sequence[int] = self._footer.group_rows

    def _check_schema(self) -> None:
        """Reject an action that lacks what every such action has: it would be taken for one that is not there."""
        for action, name in _REQUIRED.items():
            index = self._schema.get_field_index(action)
            found = self._schema.field(index).type if index >= 0 else pa.null()
            if not pa.types.is_null(found) and not (pa.types.is_struct(found) and found.get_field_index(name) >= 0):
                raise ValueError(f"it has {action} of type {str(found)[:200]}, expected a struct with {name}")

    def check_name(self) -> None:
        """Raise LogChangedError if another file has its name by now."""
        with self._guard():
            self._file.check_name()

    @contextmanager
    def _reader(self, dictionary: list[str] | None = None) -> Iterator[Any]:
        with self._file.opened() as source:
            # each call has a reader of its own, so that threads share nothing
            yield self._parquet(source, dictionary)

    def _parquet(self, source: Any, dictionary: list[str] | None = None) -> ParquetFile:
        return ParquetFile(
            source,
            self._metadata,
            dictionary=dictionary,
            pre_buffer=self._file.local is None,
            pages=None if self._file.local is None else source.fileno(),
        )

    def _guard(self) -> _Guard:
        return _Guard(self.path)

    @cached_property
    def fields(self) -> Mapping[str, list[str]]:
        """The struct fields of each action that the file has."""
        return {f.name: [c.name for c in f.type] for f in self._schema if pa.types.is_struct(f.type)}

    def arrow_type(self, path: Path) -> pa.DataType | None:
        """Return the type of a nested field as the file stores it, None if it has none."""
        index = self._schema.get_field_index(path[0])
        found: Any = self._schema.field(index).type if index >= 0 else None
        for name in path[1:]:
            if found is None or not pa.types.is_struct(found) or (i := found.get_field_index(name)) < 0:
                return None
            found = found.field(i).type
        return found

    def may_hold(self, group: int, action: str) -> bool:
        """Whether a group may hold a row of this action; False only if the footer proves that it does not."""
        return self.num_actions(group, action) != 0

    def num_actions(self, group: int, action: str) -> int | None:
        """Return how many rows of a group are of this action, None if the footer does not specify it."""
        if self._schema.get_field_index(action) < 0:
            return 0
        # an optional field would prove nothing
        name = _REQUIRED.get(action)
        return None if name is None else self._num_valid(group, (action, name))

    def all_null(self, group: int, path: Path) -> bool:
        """Whether the footer proves that a field is null in every row of a group, or the file lacks it."""
        return self._num_valid(group, path) == 0

    def _num_valid(self, group: int, path: Path) -> int | None:
        leaf = self._leaf_index.get(path)
        if leaf is None:
            return 0 if self.arrow_type(path) is None else None
        statistics = self._metadata.row_group(group).column(leaf).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        return int(self.group_rows[group] - statistics.null_count)

    def group_bounds(self, leaves: Sequence[FileStatistic]) -> list[pa.Array]:
        """Return what the footer specifies for nested fields, one value a group; null if it specifies nothing."""
        paths = {w.path: self._leaf_index.get(w.path) for w in leaves if w.path}
        stored = {p: (i, t) for p, i in paths.items() if i is not None and (t := self.arrow_type(p)) is not None}
        return group_bounds(self._footer, stored, leaves)

    @cached_property
    def _leaf_index(self) -> dict[Path, int]:
        columns = self._metadata.schema
        return {p: i for p, _, i in parquet.parquet_leaves(self._schema) if columns.column(i).max_repetition_level == 0}

    def read(self, group: int, columns: Sequence[Path], dictionary: Sequence[Path] = ()) -> list[pa.Array]:
        """Read paths of one group, an array each; an absent path returns nulls.

        Parameters
        ----------
        group : int
            The row group's number.
        columns : sequence of Path
            The paths, in the order of the result.
        dictionary : sequence of Path
            Columns whose strings (a map's keys and values) come dictionary-encoded.
        """
        found = self._read_flat(group, [c for c in columns if c not in dictionary])
        found |= self._read_nested(group, [c for c in columns if c not in found and c not in dictionary])
        found |= self._read_with_pyarrow(group, [c for c in columns if c not in found], dictionary)
        return [found[c] for c in columns]

    def _read_with_pyarrow(
        self, group: int, columns: Sequence[Path], dictionary: Sequence[Path]
    ) -> dict[Path, pa.Array]:
        """Read paths through pyarrow."""
        stored = self._stored(columns)
        rows = self.group_rows[group]
        if not stored:
            return {c: nulls_of(rows, _default_type(c)) for c in columns}
        with self._guard(), self._reader([leaf for c in dictionary for leaf in self._coded(group, c)]) as file:
            table = file.read_row_group(group, stored)
        return {c: self._extract(table, c) for c in columns}

    def _read_flat(self, group: int, columns: Sequence[Path]) -> dict[Path, pa.Array]:
        """Read those paths that our own decoder supports."""
        chunks = {c: chunk for c in columns if (chunk := self._chunk(group, c)) is not None}
        if not chunks:
            return {}
        with self._guard(), self._file.opened() as file:
            return read_chunks(file.fileno(), chunks)

    def _read_nested(self, group: int, columns: Sequence[Path]) -> dict[Path, pa.Array]:
        """Read those maps and structs of an action that our own decoder supports."""
        found: dict[Path, pa.Array] = {}
        for path in columns:
            column = self._nested.get(path) if self._file.local is not None else None
            chunks = {} if column is None else find_nested(self._footer, group, column)
            if column is None or not chunks:
                continue
            with self._guard(), self._file.opened() as file:
                array = read_nested_column(file.fileno(), column, chunks, self.group_rows[group])
            if array is not None:
                found[path] = _nested(array, path)
        return found

    @cached_property
    def _nested(self) -> Mapping[Path, NestedColumn]:
        """The maps and structs of actions that our own decoder may read, each as a struct of this one field."""
        first: dict[Path, int] = {}
        for path, _, number in parquet.parquet_leaves(self._schema):
            first.setdefault(path[:2], number)
        found = {}
        for path, number in first.items():
            t = self.arrow_type(path) if len(path) == 2 else None
            if t is not None and pa.types.is_nested(t):
                action = self._schema.field(path[0])
                inner = action.type.field(action.type.get_field_index(path[1]))
                column = nested_column(action.with_type(pa.struct([inner])), number)
                if column is not None:
                    found[path] = column
        return found

    def _chunk(self, group: int, path: Path) -> ColumnChunk | None:
        """Return the column chunk of a path, if it is one that our own decoder reads."""
        leaf = self._leaf_index.get(path)
        found = self.arrow_type(path)
        if leaf is None or found is None or self._file.local is None:
            return None
        return find_chunk(self._footer, group, leaf, found)

    def pick(self, group: int, columns: Sequence[Path], rows: NDArray[np.bool_]) -> list[pa.Array] | None:
        """Read some rows; pages without one are not decompressed. None if a column is not flat or not decoded here."""
        chunks = {c: chunk for c in columns if (chunk := self._chunk(group, c)) is not None}
        if len(chunks) < len(columns):
            return None
        with self._guard(), self._file.opened() as file:
            found = read_chunks(file.fileno(), chunks, keep=SelectionVector.of_flags(rows).mask)
        return [found[c] for c in columns] if len(found) == len(columns) else None

    def batches(self, group: int, columns: Sequence[Path]) -> Generator[list[pa.Array]]:
        """Read as `read` does, a few thousand rows at a time."""
        done = 0
        chunk = self._chunk(group, columns[0]) if len(columns) == 1 else None
        if chunk is not None and is_text(chunk.type):
            with self._guard(), self._file.opened() as file, suppress(UnsupportedPagesError):
                for page in text_pages(file.fileno(), chunk):
                    done += len(page)
                    yield [page]
        if done < self.group_rows[group] or not done:
            yield from self._other_batches(group, columns, done)

    def _other_batches(self, group: int, columns: Sequence[Path], first: int) -> Iterator[list[pa.Array]]:
        """Read paths through pyarrow, from a row on."""
        stored = self._stored(columns)
        if not stored:
            yield self.read(group, columns)
            return
        with self._guard(), self._reader() as file:
            for batch in file.iter_batches(BATCH_ROWS, group, stored):
                if first < batch.num_rows:
                    yield [self._extract(batch.slice(first), c) for c in columns]
                first = max(0, first - batch.num_rows)

    def _stored(self, columns: Sequence[Path]) -> list[str]:
        return [".".join(c) for c in columns if self.arrow_type(c) is not None]

    def _extract(self, data: pa.Table | pa.RecordBatch, path: Path) -> pa.Array:
        if self.arrow_type(path) is None:
            return nulls_of(data.num_rows, _default_type(path))
        return _nested(data.column(data.schema.get_field_index(path[0])), path)

    def _coded(self, group: int, path: Path) -> list[str]:
        """Return the Parquet columns below a path whose strings PyArrow can return dictionary-encoded."""
        below = [i for p, _, i in parquet.parquet_leaves(self._schema) if p[: len(path)] == path]
        return [self._metadata.schema.column(i).path for i in below if has_codes(self._metadata, i, [group])]


_REQUIRED = {
    "add": "path",
    "remove": "path",
    "protocol": "minReaderVersion",
    "metaData": "schemaString",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
    "checkpointMetadata": "version",
}


def _default_type(path: Path) -> pa.DataType:
    return FILE_COLUMNS.get(path[-1], pa.string())


def _nested(column: pa.Array | pa.ChunkedArray, path: Path) -> pa.Array:
    """Return a nested field as one array; it is null if any struct above it is."""
    parts = []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        found: Any = chunk
        for name in path[1:]:
            found = found.flatten()[found.type.get_field_index(name)]
        parts.append(found)
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, _default_type(path))


class _Guard:
    """Turns what Parquet and the store raise into errors that name the file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, IrregularFileError):
            raise CheckpointError.of_unreadable(self._path, error) from error
        if error is None or isinstance(error, (DeltaError, KeyboardInterrupt, MemoryError)):
            return
        if isinstance(error, FileNotFoundError):
            raise CheckpointError.of_missing(self._path) from error
        if isinstance(error, PermissionError):
            raise AccessDeniedError.of(self._path, error) from error
        if is_of_system(error):
            raise EngineError(
                f"Checkpoint file {self._path} could not be read: {type(error).__name__}: {error}.", path=self._path
            ) from error
        if isinstance(error, (pa.ArrowException, OSError, ValueError)):
            raise CheckpointError.of_unreadable(self._path, error) from error
