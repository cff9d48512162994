"""Vectors of dropped rows: located from the file table, read by ranges, decoded to RowSets, in windows of files."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.records import RangeRequest
from delta_core.errors import DataFileNotFoundError
from delta_core.kernel.plugins.rules import VECTOR_LOCATION, RowSelector, VectorBytes
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, int64_values, is_valid, number_array, one_array, values_of
from delta_core.kernels.row_set import RowSet, RowSets
from delta_core.runtime.plugin_errors import contract_error, plugin_errors
from delta_core.runtime.threads import Task, ThreadPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.interface import Storage

__all__ = ["Vectors", "read_dropped_rows", "read_row_sets"]

#: Vectors of one window; a few windows are in memory at a time.
WINDOW_VECTORS = 2048
_WINDOWS_HELD = 4
#: Bytes of vector files that become sets at a time.
_PART_BYTES = 64 << 20
#: A vector file is read from the first to the last requested vector if this reads at most this many times their bytes,
#: or little more.
_SPARSE = 4
_SPARSE_BYTES = 1 << 16


def read_row_sets(storage: Storage, selectors: Sequence[RowSelector], files: pa.Table) -> dict[int, RowSet]:
    """Return the rows that selectors drop, by row number in the file table; files without a vector are left out.

    All ranges are read in one call, those of one file joined.

    Raises
    ------
    DataFileNotFoundError
        If a vector file is missing; the message names it.
    """
    out: dict[int, RowSet] = {}
    for selector in selectors:
        _read(storage, selector, locate(selector, files), out)
    return out


def read_dropped_rows(storage: Storage, selectors: Sequence[RowSelector], files: pa.Table) -> RowSets:
    """Return the rows that selectors drop of each file of a file table, without a Python object a vector.

    A selector without `RowSelector.decode_all`, and vectors that it can't read, take the way of `read_row_sets`.

    Raises
    ------
    DataFileNotFoundError
        If a vector file is missing; the message names it.
    """
    nothing = np.empty(0, np.int64)
    sets = RowSets.from_positions(files.num_rows, nothing, nothing)
    for selector in selectors:
        located = locate(selector, files)
        if selector.decode_all is not None and located.num_rows:
            reader = _ManyVectors(storage, selector, located, files.num_rows)
            sets |= reader.read()
            located = pc.filter(located, bool_array(~reader.is_read))
        left: dict[int, RowSet] = {}
        _read(storage, selector, located, left)
        sets = sets.with_more(left)
    return sets


class _ManyVectors:
    """Reads the vectors that a selector located: those of one file in one range, as many at a time as memory allows."""

    def __init__(self, storage: Storage, selector: RowSelector, located: pa.Table, num_files: int) -> None:
        self._storage, self._selector, self._num_files = storage, selector, num_files
        files, self._starts, self._sizes = (
            int64_values(one_array(located.column(n))) for n in ("file", "offset", "length")
        )
        counts = one_array(located.column("cardinality"))
        self._files, self._counts = files, np.where(is_valid(counts), int64_values(counts), -1)
        self._paths, self._inline = (one_array(located.column(n)) for n in ("path", "data"))
        #: Which vectors were read.
        self.is_read = np.zeros(len(files), np.bool_)

    def read(self) -> RowSets:
        """Return the rows of all vectors that can be read at once."""
        nothing = np.empty(0, np.int64)
        sets = RowSets.from_positions(self._num_files, nothing, nothing)
        inline = np.flatnonzero(is_valid(self._inline))
        if len(inline):
            _, ends, data = self._inline.buffers()
            bounds = np.frombuffer(ends, np.int32)[self._inline.offset :].astype(np.int64)
            sets |= self._decoded(data or b"", inline, bounds[inline], bounds[inline + 1] - bounds[inline])
        for part in self._parts():
            sets |= self._read_part(*part)
        return sets

    def _parts(self) -> Iterator[tuple[list[RangeRequest], list[NDArray[np.int64]]]]:
        """Yield ranges, each from the first to the last vector of a file, and the vectors in each."""
        placed = np.flatnonzero(is_valid(self._paths) & ~is_valid(self._inline))
        if not len(placed):
            return
        coded = pc.dictionary_encode(pc.take(self._paths, number_array(placed)))
        codes, names = values_of(coded.indices), coded.dictionary.to_pylist()
        order = placed[np.argsort(codes, kind="stable")]
        requests: list[RangeRequest] = []
        vectors: list[NDArray[np.int64]] = []
        held = 0
        ends = np.cumsum(np.bincount(codes, minlength=len(names)))
        for name, own in zip(names, np.split(order, ends[:-1]), strict=True):
            first = int(self._starts[own].min())
            span = int((self._starts[own] + self._sizes[own]).max()) - first
            if span > _SPARSE * int(self._sizes[own].sum()) + _SPARSE_BYTES:
                continue
            if requests and held + span > _PART_BYTES:
                yield requests, vectors
                requests, vectors, held = [], [], 0
            requests.append(RangeRequest(name, first, span))
            vectors.append(own)
            held += span
        if requests:
            yield requests, vectors

    def _read_part(self, requests: Sequence[RangeRequest], vectors: Sequence[NDArray[np.int64]]) -> RowSets:
        pieces = _fetch(self._storage, requests)
        starts: list[NDArray[np.int64]] = []
        chosen: list[NDArray[np.int64]] = []
        base = 0
        for request, piece, own in zip(requests, pieces, vectors, strict=True):
            at = self._starts[own] - request.offset
            # of a file that is cut off
            whole = at + self._sizes[own] <= len(piece)
            starts.append(at[whole] + base)
            chosen.append(own[whole])
            base += len(piece)
        numbers = np.concatenate(chosen)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return self._decoded(data, numbers, np.concatenate(starts), self._sizes[numbers])

    def _decoded(
        self, data: Any, numbers: NDArray[np.int64], starts: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> RowSets:
        decode = self._selector.decode_all
        assert decode is not None
        vectors = VectorBytes(data, self._num_files, self._files[numbers], starts, sizes, self._counts[numbers])
        with plugin_errors(self._selector.feature, "RowSelector.decode_all of hook read_rules", "read_rules"):
            found = decode(vectors)
        if not (
            isinstance(found, tuple)
            and len(found) == 2
            and isinstance(found[0], RowSets)
            and isinstance(found[1], np.ndarray)
            and (found[1].dtype, found[1].shape) == (np.dtype(np.bool_), (len(numbers),))
        ):
            shown = [getattr(f, "dtype", type(f).__name__) for f in found] if isinstance(found, tuple) else found
            raise contract_error(
                self._selector.feature,
                "read_rules",
                "RowSelector.decode_all",
                f"returned {shown}; expected RowSets and a NumPy array of {len(numbers)} bool",
            )
        sets, self.is_read[numbers] = found
        return sets


def locate(selector: RowSelector, files: pa.Table) -> pa.Table:
    """Query a selector for the location of the vectors; the answer is sorted by file.

    Raises
    ------
    HookContractError
        If a row selector returns another schema.
    """
    with plugin_errors(selector.feature, "RowSelector.locate of hook read_rules", "read_rules"):
        found = selector.locate(files.select(list(selector.columns)))
    if not isinstance(found, pa.Table) or (found.schema.names, found.schema.types) != (
        VECTOR_LOCATION.names,
        VECTOR_LOCATION.types,
    ):
        columns = [f"{f.name}: {f.type}" for f in found.schema] if isinstance(found, pa.Table) else type(found).__name__
        raise contract_error(
            selector.feature,
            "read_rules",
            "RowSelector.locate",
            f"returned {columns}; expected a table of VECTOR_LOCATION ("
            f"{', '.join(f'{f.name}: {f.type}' for f in VECTOR_LOCATION)})",
        )
    numbers = int64_values(found.column("file"))
    return found if (numbers[1:] >= numbers[:-1]).all() else found.sort_by("file")


def _read(storage: Storage, selector: RowSelector, located: pa.Table, out: dict[int, RowSet]) -> None:
    columns = {name: located.column(name).to_pylist() for name in VECTOR_LOCATION.names}
    requests = [
        RangeRequest(path, offset or 0, length)
        for path, offset, length, data in zip(
            columns["path"], columns["offset"], columns["length"], columns["data"], strict=True
        )
        if data is None
    ]
    ranges = iter(_fetch(storage, requests))
    located_rows = zip(
        columns["file"], columns["path"], columns["offset"], columns["data"], columns["cardinality"], strict=True
    )
    with plugin_errors(selector.feature, "RowSelector.decode of hook read_rules", "read_rules"):
        for file, path, offset, data, cardinality in located_rows:
            where = "its descriptor" if data is not None else f"{path!r}, byte {offset}"
            rows = selector.decode(next(ranges) if data is None else data, cardinality, where)
            if not isinstance(rows, RowSet):
                raise contract_error(
                    selector.feature, "read_rules", "RowSelector.decode", f"returned {rows!r}; expected a RowSet"
                )
            out[file] = out[file] | rows if file in out else rows


def _fetch(storage: Storage, requests: Sequence[RangeRequest]) -> list[Any]:
    if not requests:
        return []
    try:
        return list(storage.read(requests))
    except FileNotFoundError as e:
        path = next((p for p in dict.fromkeys(r.path for r in requests) if not _exists(storage, p)), requests[0].path)
        raise DataFileNotFoundError(
            f"The file {path!r}, which holds deleted rows that the log names, is not there. Restore it: without it the "
            "rows that are left cannot be determined.",
            path=path,
        ) from e


def _exists(storage: Storage, path: str) -> bool:
    try:
        storage.stat([path])
    except FileNotFoundError:
        return False
    return True


class Vectors:
    """The dropped rows of a scan's files, read window by window, the next one ahead of its use.

    Parameters
    ----------
    files : pyarrow.Table
        The columns that the selectors request, one row a file of the read.
    """

    def __init__(self, storage: Storage, selectors: Sequence[RowSelector], files: pa.Table) -> None:
        self._storage = storage
        self.located: list[tuple[RowSelector, pa.Table]] = [
            (s, t) for s in selectors if files.num_rows and (t := locate(s, files)).num_rows
        ]
        numbers = [int64_values(t.column("file")) for _, t in self.located]
        self._files = np.unique(np.concatenate(numbers)) if numbers else np.empty(0, np.int32)
        self._windows: dict[int, Task[dict[int, RowSet]]] = {}
        self._lock = threading.Lock()
        self._pool: ThreadPool | None = None

    def __bool__(self) -> bool:
        return bool(len(self._files))

    def start(self) -> None:
        """Begin reading the first window."""
        if self:
            self._window(0)

    def close(self) -> None:
        """Start nothing more."""
        if self._pool is not None:
            self._pool.stop()

    def rows(self, file: int) -> RowSet | None:
        """Return the rows of a file that are dropped, None for a file without a vector."""
        if not len(self._files):
            return None
        at = int(np.searchsorted(self._files, file))
        if at == len(self._files) or self._files[at] != file:
            return None
        return self._window(at // WINDOW_VECTORS).result()[file]

    def between(self, first: int, stop: int) -> tuple[NDArray[np.int64], RowSets] | None:
        """Return which of the files ``first`` to ``stop`` have a vector, and the rows that are dropped of these."""
        start, end = np.searchsorted(self._files, [first, stop]).tolist()
        if start == end:
            return None
        files = self._files[start:end].astype(np.int64)
        windows = range(start // WINDOW_VECTORS, -(-end // WINDOW_VECTORS))
        found = {file: rows for number in windows for file, rows in self._window(number).result().items()}
        return files, RowSets(found[file] for file in files.tolist())

    def num_dropped(self) -> int | None:
        """Return how many rows are dropped, None if descriptors alone do not report."""
        if not self:
            return 0
        if len(self.located) > 1:
            return None
        counts = self.located[0][1].column("cardinality")
        if counts.null_count or len(self._files) != len(counts):
            return None
        return int(int64_values(counts).sum())

    def _window(self, number: int) -> Task[dict[int, RowSet]]:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPool(1, "delta-vectors")
            for wanted in (number, number + 1):
                if wanted not in self._windows and wanted * WINDOW_VECTORS < len(self._files):
                    self._windows[wanted] = self._pool.submit(self._load, wanted)
            for old in [n for n in self._windows if n < number - _WINDOWS_HELD]:
                del self._windows[old]
            return self._windows[number]

    def _load(self, number: int) -> dict[int, RowSet]:
        chosen = self._files[number * WINDOW_VECTORS : (number + 1) * WINDOW_VECTORS]
        out: dict[int, RowSet] = {}
        for selector, located in self.located:
            numbers = int64_values(located.column("file"))
            start, stop = np.searchsorted(numbers, chosen[0]), np.searchsorted(numbers, chosen[-1], side="right")
            _read(self._storage, selector, located.slice(int(start), int(stop - start)), out)
        return out
