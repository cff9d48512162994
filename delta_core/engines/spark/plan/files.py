"""The files of a scan as Spark needs them: places, sizes, typed constants, and the rows that are dropped or kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.interface import Storage
from delta_core.errors import CorruptTableError, DataFileError, DataFileNotFoundError
from delta_core.expressions.ast import NUM_RECORDS, FileConstant, PartitionValue
from delta_core.kernel.log.files import FileSet, Part
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.rules import RowSelector
from delta_core.kernel.scan.plan import LOCATION
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.scan.vectors import locate, read_row_sets
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, number_array, one_array, values_of
from delta_core.kernels.row_set import RowSet
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PlannedFiles", "Rows", "check_rows", "hadoop_path", "root_of"]

#: Vectors decoded at a time.
_WINDOW = 2048
#: Hadoop's file systems by the schemes that other libraries use.
_SCHEMES = {"s3://": "s3a://", "gcs://": "gs://"}


class Rows(Struct, frozen=True):
    """Rows of one file: those that are dropped, or (``keeps``) the only ones that are requested."""

    file: int
    rows: RowSet
    keeps: bool


class PlannedFiles:
    """The files of a scan, or some of them; columns are loaded when they are requested.

    Parameters
    ----------
    files : FileSet, optional
        The scan's own unless given.
    """

    def __init__(self, scan: Scan, files: FileSet | None = None) -> None:
        self._scan = scan
        self.files: FileSet = scan.file_set if files is None else files

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def table(self) -> pa.Table:
        """One row a file: path, size and what constants need."""
        names = ["path", "size"]
        for leaf in self._scan.plan.constants:
            if isinstance(leaf, PartitionValue):
                names.append(f"partition:{leaf.name}")
            elif leaf != LOCATION:
                names.append(leaf.name)
        return self.files.columns(list(dict.fromkeys(names)))

    @cached_property
    def places(self) -> pa.Array:
        """URIs or absolute paths, not encoded: string[n_files]."""
        return self._places(str)

    def hadoop_paths(self) -> pa.Array:
        """Return the places as Hadoop spells them: string[n_files]."""
        return self._places(hadoop_path)

    def _places(self, spell: Callable[[str], str]) -> pa.Array:
        return _places(self.table.column("path"), self._scan.source.engine.storage.uri_for_engine, spell)

    def path(self, number: int) -> str:
        """Return a file's path as the log means it."""
        return decode_paths(self._selected.column("path").slice(number, 1))[0]

    def sizes(self) -> pa.Array:
        """Return int64 bytes of each file, querying the store if the log does not report."""
        column = one_array(self.files.columns(["size"]).column(0))
        if not column.null_count:
            return column
        sizes = column.to_pylist()
        missing = [i for i, size in enumerate(sizes) if size is None]
        found = self._scan.source.engine.storage.stat([self.path(i) for i in missing])
        for i, (size, _) in zip(missing, found, strict=True):
            sizes[i] = size
        return pa.array(sizes, pa.int64())

    def check_stored(self) -> None:
        """Reject files that are missing, or empty: a reader of paths passes over these.

        Queries the store once a file.

        Raises
        ------
        DataFileNotFoundError, DataFileError
            For such a file.
        """
        storage = self._scan.source.engine.storage
        paths = decode_paths(self.table.column("path"))
        try:
            found = storage.stat(paths)
        except FileNotFoundError:
            raise DataFileNotFoundError.of(next(p for p in paths if not _exists(storage, p))) from None
        for path, (size, _) in zip(paths, found, strict=True):
            if size == 0:
                raise DataFileError(
                    f"Data file {path!r} can't be read: it is no sound Parquet file (it is empty).", path=path
                )

    def constant(self, leaf: FileConstant | PartitionValue) -> pa.Array:
        """Return a typed constant, one value a file."""
        source = self._scan.source
        if leaf == LOCATION:
            return self.places
        if isinstance(leaf, PartitionValue):
            text = self.table.column(f"partition:{leaf.name}")
            return parse_partition_values(text, leaf.type, source.timezone, column=leaf.name, types=source.state.types)
        column = one_array(self.table.column(leaf.name))
        type_ = leaf.type.to_arrow(source.state.types)
        return column if column.type.equals(type_) else column.cast(type_)

    # --- dropped and kept rows -------------------------------------------------------------

    @cached_property
    def _selected(self) -> pa.Table:
        """The columns that selectors request, one row per file."""
        names = ["path", *(c for s in self._scan.plan.selectors for c in s.columns)]
        return self.files.columns(list(dict.fromkeys(names)))

    @cached_property
    def located(self) -> list[tuple[RowSelector, pa.Table]]:
        """Where the vectors lie, a table for each selector that finds any."""
        return [(s, t) for s in self._scan.plan.selectors if (t := locate(s, self._selected)).num_rows]

    @cached_property
    def with_vector(self) -> NDArray[np.bool_]:
        """Whether each file has dropped or chosen rows: bool, shape (n_files,)."""
        flags = np.zeros(self._selected.num_rows, bool)
        for _, table in self.located:
            flags[values_of(one_array(table.column("file")))] = True
        for file in self.files.keep or ():
            flags[file] = True
        return flags

    @cached_property
    def num_records(self) -> pa.Array:
        """Physical rows of the files that have a vector, in their order, by statistics, null if unknown."""
        chosen = _choose(self.files, self.with_vector)
        return one_array(chosen.statistics([NUM_RECORDS]).column(0))

    @property
    def keeps(self) -> bool:
        """Whether any file has chosen rows."""
        return bool(self.files.keep)

    def stored_bytes(self) -> int:
        """Return about how large the vectors are as they lie on disk."""
        total = sum(r.nbytes for r in (self.files.keep or {}).values())
        for _, table in self.located:
            total += int(np.sum(table.column("length").fill_null(0).to_numpy()))
        return total

    def bit_bytes(self) -> int | None:
        """Return how large the vectors are at one bit a row, None if statistics do not report."""
        counts = self.num_records
        return None if counts.null_count else int(np.sum((int64_values(counts) + 63) // 64 * 8))

    def largest_file(self) -> int | None:
        """Return the most rows of a file that has a vector, None if statistics do not report."""
        counts = self.num_records
        return None if counts.null_count else int(max(int64_values(counts), default=0))

    def rows(self, numbers: Sequence[int] | None = None) -> Iterator[Rows]:
        """Yield the dropped or chosen rows of files (all that have such), read window by window."""
        marked = np.flatnonzero(self.with_vector)
        positions = marked if numbers is None else np.asarray(numbers, np.int64)
        counts = dict(zip(marked.tolist(), self.num_records.to_pylist(), strict=True))
        keep = self.files.keep or {}
        for start in range(0, len(positions), _WINDOW):
            window = positions[start : start + _WINDOW]
            found = self.dropped(self._selected.take(number_array(window)))
            for at, number in enumerate(window.tolist()):
                rows = found.get(at, RowSet.empty())
                check_rows(rows, counts.get(number), self.path(number))
                if number in keep:
                    yield Rows(number, keep[number] - rows, True)
                else:
                    yield Rows(number, rows, False)

    def dropped(self, table: pa.Table) -> dict[int, RowSet]:
        """Return the rows that selectors drop of some files, by row of their table."""
        return read_row_sets(self._scan.source.engine.storage, self._scan.plan.selectors, table)


def check_rows(rows: RowSet, num_records: int | None, path: str) -> None:
    """Reject dropped rows beyond a file's.

    Raises
    ------
    DataFileError
        If a row's position is not below the number of the file's rows.
    """
    try:
        if num_records is not None:
            rows.check_fits(num_records)
    except CorruptTableError as e:
        raise DataFileError(f"The deleted rows of data file {path!r} do not fit it: {e}", path=path) from e


def _exists(storage: Storage, path: str) -> bool:
    try:
        storage.stat([path])
    except FileNotFoundError:
        return False
    return True


def root_of(uri: Callable[[str], str]) -> str:
    """Return what precedes a name in the place of a file."""
    return uri("x")[:-1]


def _choose(files: FileSet, flags: NDArray[np.bool_]) -> FileSet:
    """Return some files of a set: a flag for each file, in order."""
    parts = []
    first = 0
    for part in files.parts:
        alive = part.mask().copy()
        count = int(alive.sum())
        alive[alive] = flags[first : first + count]
        first += count
        if alive.any():
            parts.append(Part(part.chunk, alive=alive))
    return files.with_parts(parts)


def _places(paths: pa.ChunkedArray, uri: Callable[[str], str], spell: Callable[[str], str]) -> pa.Array:
    """Return where files lie; only paths that are encoded, absolute or climb are looked at one by one."""
    given = one_array(paths)
    odd = pc.match_substring_regex(given, r"^(/|[A-Za-z][A-Za-z0-9+.-]*:)|(^|/)\.\.(/|$)|%")
    places = pc.binary_join_element_wise(pa.scalar(spell(root_of(uri))), given, "")
    if odd.true_count:
        resolved = [spell(uri(p)) for p in decode_paths(pa.chunked_array([given.filter(odd)]))]
        places = pc.replace_with_mask(places, odd, pa.array(resolved, pa.string()))
    return places


def hadoop_path(place: str) -> str:
    """Return one place as Hadoop spells it, as `PlannedFiles.hadoop_paths`."""
    if place.startswith("/"):
        return f"file:{place}"
    scheme = next((s for s in _SCHEMES if place.startswith(s)), "")
    return _SCHEMES.get(scheme, "") + place[len(scheme) :]
