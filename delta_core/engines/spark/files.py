"""The files of a scan as Spark needs them: places, sizes, typed constants, and the rows that are dropped or kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.errors import CorruptTableError, DataFileError
from delta_core.expressions.ast import FileConstant, FileStatistic, PartitionValue
from delta_core.kernels.row_set import RowSet
from delta_core.log.partition_values import parse_partition_values
from delta_core.rules import RowSelector
from delta_core.scan.plan import LOCATION
from delta_core.scan.scan import Scan, decode_paths
from delta_core.scan.vectors import locate, read_row_sets
from delta_core.types import PrimitiveType

__all__ = ["PlannedFiles", "Rows", "check_rows", "hadoop_path", "root_of"]

_NUM_RECORDS = FileStatistic("numRecords", (), PrimitiveType("long"))
#: Vectors decoded at a time.
_WINDOW = 2048
#: Hadoop's file systems by the schemes that other libraries use.
_SCHEMES = {"s3://": "s3a://", "gcs://": "gs://"}


@dataclass(frozen=True)
class Rows:
    """Rows of one file: those that are dropped, or (``keeps``) the only ones that are wanted."""

    file: int
    rows: RowSet
    keeps: bool


class PlannedFiles:
    """The files of a scan.

    Attributes
    ----------
    table : pyarrow.Table
        One row a file: path, size and what constants and selectors need.
    places : pyarrow.Array
        URIs or absolute paths, not encoded: string[n_files].
    """

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self.files = scan.file_set
        self.table = self.files.columns(self._names())
        self.places = _places(self.table.column("path"), scan.source.engine.storage.uri)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _names(self) -> list[str]:
        plan = self._scan.plan
        names = ["path", "size", *(c for s in plan.selectors for c in s.columns)]
        for leaf in plan.constants:
            if isinstance(leaf, PartitionValue):
                names.append(f"partition:{leaf.name}")
            elif leaf != LOCATION:
                names.append(leaf.name)
        return list(dict.fromkeys(names))

    def path(self, number: int) -> str:
        """Return a file's path as the log means it."""
        return decode_paths(self.table.column("path").slice(number, 1))[0]

    def hadoop_paths(self) -> pa.Array:
        """Return the places as Hadoop spells them: string[n_files]."""
        import pyarrow.compute as pc

        out = pc.replace_substring_regex(self.places, "^/", "file:/")
        for scheme, hadoop in _SCHEMES.items():
            out = pc.replace_substring_regex(out, f"^{scheme}", hadoop)
        return out

    def sizes(self) -> pa.Array:
        """Return int64 bytes of each file, asking the store where the log does not tell."""
        column = self.table.column("size").combine_chunks()
        if not column.null_count:
            return column
        sizes = column.to_pylist()
        missing = [i for i, size in enumerate(sizes) if size is None]
        found = self._scan.source.engine.storage.stat([self.path(i) for i in missing])
        for i, (size, _) in zip(missing, found, strict=True):
            sizes[i] = size
        return pa.array(sizes, pa.int64())

    def constant(self, leaf: FileConstant | PartitionValue) -> pa.Array:
        """Return a typed constant, one value a file."""
        source = self._scan.source
        if leaf == LOCATION:
            return self.places
        if isinstance(leaf, PartitionValue):
            text = self.table.column(f"partition:{leaf.name}")
            return parse_partition_values(text, leaf.type, source.timezone, column=leaf.name, types=source.state.types)
        column = self.table.column(leaf.name).combine_chunks()
        wanted = leaf.type.to_arrow(source.state.types)
        return column if column.type.equals(wanted) else column.cast(wanted)

    # --- dropped and kept rows -------------------------------------------------------------

    @cached_property
    def num_records(self) -> pa.Array:
        """Physical rows of each file by statistics, null where unknown."""
        return self.files.statistics([_NUM_RECORDS]).column(0).combine_chunks()

    @cached_property
    def located(self) -> list[tuple[RowSelector, pa.Table]]:
        """Where the vectors lie, a table for each selector that finds any."""
        return [(s, t) for s in self._scan.plan.selectors if (t := locate(s, self.table)).num_rows]

    @cached_property
    def with_vector(self) -> Any:
        """Whether each file has dropped or chosen rows: bool, shape (n_files,)."""
        flags = np.zeros(len(self), bool)
        for _, table in self.located:
            flags[table.column("file").to_numpy()] = True
        for file in self.files.keep or ():
            flags[file] = True
        return flags

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
        """Return how large the vectors are at one bit a row, None where statistics do not tell."""
        counts = self.num_records.filter(pa.array(self.with_vector))
        return None if counts.null_count else int(np.sum((counts.to_numpy() + 63) // 64 * 8))

    def largest_file(self) -> int | None:
        """Return the most rows of a file that has a vector, None where statistics do not tell."""
        counts = self.num_records.filter(pa.array(self.with_vector))
        return None if counts.null_count else int(max(counts.to_numpy(), default=0))

    def rows(self, numbers: Sequence[int] | None = None) -> Iterator[Rows]:
        """Yield the dropped or chosen rows of files (all that have such), read window by window."""
        wanted = np.flatnonzero(self.with_vector) if numbers is None else np.asarray(numbers, np.int64)
        keep = self.files.keep or {}
        for start in range(0, len(wanted), _WINDOW):
            window = wanted[start : start + _WINDOW]
            found = self.dropped(self.table.take(pa.array(window)))
            for at, number in enumerate(window.tolist()):
                rows = found.get(at, RowSet.empty())
                check_rows(rows, self.num_records[number].as_py(), self.path(number))
                if number in keep:
                    yield Rows(number, keep[number] - rows, True)
                else:
                    yield Rows(number, rows, False)

    def dropped(self, table: pa.Table) -> dict[int, RowSet]:
        """Return the rows that selectors drop of some files, by row of their table."""
        return read_row_sets(self._scan.source.engine.storage, self._scan.plan.selectors, table)


def check_rows(rows: RowSet, num_records: int | None, path: str) -> None:
    """Refuse dropped rows beyond a file's; raises DataFileError."""
    try:
        if num_records is not None:
            rows.check_fits(num_records)
    except CorruptTableError as e:
        raise DataFileError(f"The deleted rows of data file {path!r} do not fit it: {e}", path=path) from e


def root_of(uri: Callable[[str], str]) -> str:
    """Return what stands before a name in the place of a file."""
    return uri("x")[:-1]


def _places(paths: pa.ChunkedArray, uri: Callable[[str], str]) -> pa.Array:
    """Return where files lie; only paths that are encoded or absolute are looked at one by one."""
    import pyarrow.compute as pc

    given = paths.combine_chunks()
    odd = pc.match_substring_regex(given, "^(/|[A-Za-z][A-Za-z0-9+.-]*:)|%")
    places = pc.binary_join_element_wise(pa.scalar(root_of(uri)), given, "")
    if odd.true_count:
        resolved = [uri(p) for p in decode_paths(pa.chunked_array([given.filter(odd)]))]
        places = pc.replace_with_mask(places, odd, pa.array(resolved, pa.string()))
    return places


def hadoop_path(place: str) -> str:
    """Return one place as Hadoop spells it, as `PlannedFiles.hadoop_paths`."""
    if place.startswith("/"):
        return f"file:{place}"
    scheme = next((s for s in _SCHEMES if place.startswith(s)), "")
    return _SCHEMES.get(scheme, "") + place[len(scheme) :]
