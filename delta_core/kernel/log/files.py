"""FileSet: a snapshot's live files as Arrow columns, loaded on demand.

A file set is a list of chunks (the adds of the commits, the row groups of a checkpoint) with a mask of the
live rows each. Columns are read only when requested; what hides a row is queried only if its chunk is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import ExpressionError, InvalidArgumentError, LogChangedError, LogError
from delta_core.expressions.ast import Expression, FileStatistic
from delta_core.kernel.log.file_columns import PARTITION, Chunk, TableChunk, json_statistics, pick_all, statistic_type
from delta_core.kernel.log.file_pruning import FilePruner, plan_tests
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid
from delta_core.kernels.dedup import KeySet
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from delta_core.engines.interface import Evaluator
    from delta_core.kernel.log.file_columns import Mask
    from delta_core.kernels.row_set import RowSet

from delta_core.runtime.arguments import check_names

__all__ = [
    "LISTED_COLUMNS",
    "MOST_CHANGES",
    "PARTITION",
    "Chunk",
    "FileSet",
    "Map",
    "Part",
    "TableChunk",
    "json_statistics",
]

Map = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
Renew = Callable[[], "FileSet"]
T = TypeVar("T")
_KEY = ("path", "dvId")
#: The columns of a file table by default: statistics and tags are larger than all others together.
LISTED_COLUMNS = [n for n in FILE_COLUMNS if n not in ("stats", "tags", "deletionTimestamp", "extendedFileMetadata")]
#: How often in a row what reads the log starts again because files of the log are replaced or deleted meanwhile.
MOST_CHANGES = 8


class Part:
    """A chunk with its live rows; which they are stays unknown until it is needed.

    Parameters
    ----------
    hidden_by : tuple of KeySet
        Keys that newer commits touched, while ``alive`` is None.
    alive : bool[n], optional
        Which rows are live files.
    candidates : bool[n], optional
        The only rows that may be, while ``alive`` is None.
    """

    __slots__ = ("alive", "candidates", "chunk", "hidden_by")

    def __init__(
        self,
        chunk: Chunk,
        hidden_by: tuple[KeySet, ...] = (),
        alive: Mask | None = None,
        candidates: Mask | None = None,
    ) -> None:
        self.chunk: Chunk = chunk
        self.hidden_by: tuple[KeySet, ...] = hidden_by
        self.alive = alive
        self.candidates: Mask | None = candidates

    def mask(self) -> Mask:
        """Return which rows are live files."""
        if self.alive is None:
            if self.candidates is None:
                self.alive = self._unhidden(*self.chunk.load(_KEY))
            else:
                self._load_candidates(self.candidates, ())
        assert self.alive is not None
        return self.alive

    def _resolve(self, path: pa.Array, dv: pa.Array) -> Mask:
        """Find the live rows from the columns of all rows; what hides a row is evaluated for the candidates only."""
        if self.candidates is None:
            self.alive = self._unhidden(path, dv)
        else:
            alive = self.candidates.copy()
            alive[alive] = self._unhidden(*pick_all([path, dv], alive))
            self.alive = alive
        return self.alive

    def _unhidden(self, path: pa.Array, dv: pa.Array) -> Mask:
        alive = is_valid(path)
        ids = None if dv.null_count == len(dv) else dv
        for keys in self.hidden_by:
            if len(keys):
                alive &= ~keys.contains(path, ids)
        return alive

    def load_all(self, names: Sequence[str]) -> tuple[list[pa.Array], Mask]:
        """Return columns of all rows, and which rows are live files; one read serves both.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        """
        if self.alive is not None:
            return self.chunk.load(names), self.alive
        columns = list(dict.fromkeys([*names, *_KEY]))
        found = dict(zip(columns, self.chunk.load(columns), strict=True))
        alive = self._resolve(found["path"], found["dvId"])
        return [found[n] for n in names], alive

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns of the live rows; none if there are none.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        """
        known = self.candidates if self.alive is None else self.alive
        if known is None:
            return pick_all(*self.load_all(names))
        if not known.any():
            return []
        if self.alive is not None:
            return self.chunk.pick(names, known)
        return self._load_candidates(known, names)

    def _load_candidates(self, candidates: Mask, names: Sequence[str]) -> list[pa.Array]:
        """Find out which candidates are live files, and return columns of those."""
        columns = list(dict.fromkeys([*names, *_KEY]))
        found = dict(zip(columns, self.chunk.pick(columns, candidates), strict=True))
        unhidden = self._unhidden(found["path"], found["dvId"])
        self.alive = candidates.copy()
        self.alive[candidates] = unhidden
        return pick_all([found[n] for n in names], unhidden)

    def where(self, tests: Sequence[FilePruner]) -> Part | None:
        """Return the part with the rows that pass; None if none does.

        Parameters
        ----------
        tests : sequence of FilePruner
            The tests, cheap ones first.
        """
        if self.chunk.place is not None and not all(test.keeps(*self.chunk.place) for test in tests):
            return None
        mask = self.candidates if self.alive is None else self.alive
        for test in tests:
            try:
                mask = test.run(self.chunk, mask)
            except (LogError, ExpressionError):
                # a removed file, or one that an earlier test dropped, may have a value that this test can't take
                mask = test.run_alone(self.chunk, self.mask() if mask is None else mask & self.mask())
            if not mask.any():
                return None
        if self.alive is None:
            return Part(self.chunk, self.hidden_by, candidates=mask)
        return Part(self.chunk, alive=mask)

    def hide(self, keys: KeySet) -> Part:
        """Return the part with further keys hidden.

        Parameters
        ----------
        keys : KeySet
            The keys of files that later commits touch.
        """
        if self.alive is None:
            return Part(self.chunk, (*self.hidden_by, keys), candidates=self.candidates)
        if not len(keys) or not self.alive.any():
            return self
        path, dv = self.chunk.load(_KEY)
        return Part(self.chunk, alive=self.alive & ~keys.contains(path, None if dv.null_count == len(dv) else dv))


class _Rows(Struct, frozen=True):
    """Chunks, and the order in which their rows are handed out, if it is not their own."""

    parts: tuple[Part, ...]
    order: pa.Array | None = None
    touched: pa.Table | None = None

    def ordered(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column if self.order is None else pc.take(column, self.order)


class FileSet:
    """Live files; immutable but for what it has loaded. As an Arrow stream it has `LISTED_COLUMNS`.

    Parameters
    ----------
    parts : sequence
        Chunks with their masks, newest first.
    keep : Mapping of int to RowSet, optional
        Row number in the file table to the rows of the file that are requested at all.
    renew : function() -> FileSet, optional
        Makes the set again from a fresh listing of the log.

    Notes
    -----
    If files of the log are replaced while the set is in use, it is made again, and nothing of the old files is joined
    with the new ones: what was returned before is found again by path, so that the order of rows stays. Without
    ``renew``, or if rows were returned without their paths, LogChangedError is raised.
    """

    def __init__(
        self, parts: Sequence[Part], run: Map, keep: Mapping[int, RowSet] | None = None, renew: Renew | None = None
    ) -> None:
        self._run = run
        self.keep: Mapping[int, RowSet] | None = keep or None
        self._renew = renew
        self._rows = _Rows(tuple(parts))
        self._loaded: dict[str, pa.ChunkedArray] = {}
        #: Whether rows were handed out in an order.
        self._is_ordered = self.keep is not None

    def __repr__(self) -> str:
        return f"FileSet({len(self._rows.parts)} parts of the log)"

    @staticmethod
    def of(table: pa.Table, run: Map | None = None, keep: Mapping[int, RowSet] | None = None) -> FileSet:
        """Return a file set of files that the caller has: a table with ``path`` and further `FILE_COLUMNS`.

        Parameters
        ----------
        table : pyarrow.Table, **n rows**
            A row for each file.
        run : Map, optional
            Runs work on the parts on threads; the caller's thread does it unless given.
        keep : Mapping of int to RowSet, optional
            The rows of a file to read, by the number of the file; of other files all.
        """
        alive = np.ones(table.num_rows, bool)
        return FileSet([Part(TableChunk(table), alive=alive)], run or _serial, keep=keep)

    @staticmethod
    def of_chunks(chunks: Sequence[tuple[Chunk, tuple[KeySet, ...], Mask | None]], run: Map) -> FileSet:
        """Return a file set of chunks, each with the keys that hide its rows, or with its live rows.

        Parameters
        ----------
        chunks : sequence of (Chunk, tuple of KeySet, Mask or None)
            Newest first.
        run : Map
            Runs work on the parts on threads.
        """
        return FileSet([Part(*c) for c in chunks], run)

    def renewable(self, renew: Renew, touched: pa.Table) -> FileSet:
        """Return the same set, which can be made again.

        Parameters
        ----------
        renew : function() -> FileSet
            Lists the log again, for a file of it that was replaced or deleted while it was read.
        touched : pyarrow.Table
            ``path`` and ``dvId`` of what the commits above the checkpoint touch.
        """
        made = FileSet(self._rows.parts, self._run, self.keep, renew)
        made._rows = replace(made._rows, touched=touched)
        return made

    @property
    def touched(self) -> pa.Table:
        """The files that the commits above the checkpoint touch: ``path`` and ``dvId``, as the log spells them."""
        assert self._rows.touched is not None
        return self._rows.touched

    @property
    def parts(self) -> tuple[Part, ...]:
        """The chunks with their live rows, newest first."""
        self._is_ordered = True
        return self._rows.parts

    @cached_property
    def count(self) -> int:
        """The number of live files."""
        return self._reading(lambda rows: sum(int(m.sum()) for m in self._run(lambda p: p.mask(), rows.parts)))

    def _reading(self, read: Callable[[_Rows], T]) -> T:
        """Run what reads the log's files; if these changed, again on the set made again."""
        for _ in range(MOST_CHANGES):
            try:
                return read(self._rows)
            except LogChangedError as e:
                self._rows = self._renew_rows(e)
        return read(self._rows)

    def _renew_rows(self, error: LogChangedError) -> _Rows:
        """Return the rows of the set made again, in the order of those returned already; else raise an error."""
        if self._renew is None or (self._is_ordered and "path" not in self._loaded):
            raise error
        made = self._renew()
        if not self._is_ordered:
            return made._rows
        known, found = self._loaded["path"], made.columns(["path"]).column(0)
        order = pc.index_in(known, value_set=found)
        if order.null_count or len(known) != len(found) or len(pc.unique(found)) != len(found):
            raise error
        return replace(made._rows, order=order)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.columns(LISTED_COLUMNS).__arrow_c_stream__(requested_schema)

    def _derived(self, make: Callable[[FileSet], FileSet]) -> Renew | None:
        renew = self._renew
        return None if renew is None else lambda: make(renew())

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the live files, in a fixed order of rows.

        Parameters
        ----------
        names : sequence of str
            Names of `FILE_COLUMNS`, ``partition:<physical name>`` (the text, as dictionary or string), or fields of
            plugins. A column that the log does not have is null.

        Raises
        ------
        InvalidArgumentError
            For a text in place of a list.
        """
        check_names("columns", names)
        found = {n: self._loaded[n] for n in names if n in self._loaded}
        missing = [n for n in dict.fromkeys(names) if n not in found]
        if missing:
            found |= zip(missing, self._reading(lambda rows: self._load(rows, missing)), strict=True)
            self._is_ordered = True
            # statistics texts are as large as everything else together: keep what is small
            self._loaded |= {n: found[n] for n in missing if n not in ("stats", "tags", "partitionValues")}
        return pa.Table.from_arrays([found[n] for n in names], list(names))

    def map_columns(self, function: Callable[[pa.Table], T], names: Sequence[str]) -> list[T]:
        """Return what a function makes of columns of the live files, run of files by run.

        The columns of all files are not in memory together, and those of one run are decoded while the function
        converts those of another. The order is that of `columns` unless files of the log are replaced meanwhile.

        Parameters
        ----------
        function : function(pyarrow.Table) -> T
            Is called on several threads, and again if files of the log are replaced meanwhile.
        names : sequence of str
            As of `columns`.
        """

        def convert(part: Part) -> list[T]:
            columns = part.load(names)
            return [function(pa.Table.from_arrays(columns, list(names)))] if columns else []

        def read(rows: _Rows) -> list[T]:
            if rows.order is not None or all(n in self._loaded for n in names):
                return [function(self.columns(names))]
            return [found for of_part in self._run(convert, rows.parts) for found in of_part]

        return self._reading(read)

    def _load(self, rows: _Rows, names: Sequence[str]) -> list[pa.ChunkedArray]:
        loaded = [part for part in self._run(lambda p: p.load(names), rows.parts) if part]
        if not loaded and rows.parts:
            # the chunk has the columns' types
            loaded = [[c.slice(0, 0) for c in rows.parts[0].chunk.load(names)]]
        return [
            rows.ordered(_joined([part[i] for part in loaded], FILE_COLUMNS.get(name))) for i, name in enumerate(names)
        ]

    @property
    def nbytes(self) -> int:
        """The bytes of what it keeps of what was loaded, about."""
        chunks = sum(part.chunk.nbytes for part in self._rows.parts)
        return chunks + sum(int(column.nbytes) for column in list(self._loaded.values()))

    def statistics(self, leaves: Sequence[FileStatistic], beside: Sequence[str] = ()) -> pa.Table:
        """Return statistics of the live files, a column per leaf in the order requested, null if not known.

        Parameters
        ----------
        leaves : sequence of FileStatistic
            The statistics, in the order of the columns.
        beside : sequence of str
            Columns that will be requested next: one pass over the commits serves both.
        """

        def load(part: Part) -> list[pa.Array]:
            mask = part.mask()
            # one is requested several times: the number of rows
            return part.chunk.statistics(leaves, None if mask.all() else mask, keep=len(leaves) == 1, beside=beside)

        def read(rows: _Rows) -> list[pa.ChunkedArray]:
            loaded = self._run(load, rows.parts)
            return [
                rows.ordered(_joined([part[i] for part in loaded], statistic_type(w))) for i, w in enumerate(leaves)
            ]

        columns = self._reading(read)
        self._is_ordered = True
        return pa.Table.from_arrays(columns, [f"{w.kind}:{'.'.join(w.path)}" for w in leaves])

    def where(
        self, expression: Expression | None, evaluator: Evaluator, zone: str = "UTC", exact: bool = False
    ) -> FileSet:
        """Return the files for which an expression is not false.

        Parameters
        ----------
        expression : Expression
            Over PartitionValue, FileStatistic and FileConstant leaves.
        evaluator : Evaluator
            The engine's, which evaluates the expression over columns of files.
        zone : str
            The zone of partition timestamps that name none.
        exact : bool
            Drop files for which it is null too: right if it decides about rows, as over partition values alone.

        Raises
        ------
        InvalidArgumentError
            For files that carry row sets: they can't be filtered again.

        Notes
        -----
        The parts that AND joins are queried one after the other, cheap ones first, and each only if the former left
        a file. Over one partition column alone each distinct value is queried once.
        """
        if expression is None:
            return self
        if self.keep is not None:
            raise InvalidArgumentError("Files that carry row sets can't be filtered again.")
        tests = plan_tests(expression, evaluator, zone, exact)
        parts = self._reading(lambda rows: self._run(lambda p: p.where(tests), rows.parts))
        again = self._derived(lambda made: made.where(expression, evaluator, zone, exact))
        return FileSet([p for p in parts if p is not None], self._run, renew=again)

    def head(self, count: int) -> FileSet:
        """Return the first files.

        Parameters
        ----------
        count : int
            The most files.
        """
        return self._reading(lambda rows: self._head(rows.parts, count))

    def _head(self, every: Sequence[Part], count: int) -> FileSet:
        again = self._derived(lambda made: made.head(count))
        parts: list[Part] = []
        for part in every:
            if count <= 0:
                break
            mask = part.mask()
            cut = mask & (np.cumsum(mask) <= count)
            count -= int(cut.sum())
            parts.append(Part(part.chunk, alive=cut))
        return FileSet(parts, self._run, renew=again)

    def refreshed(self, newer: Sequence[tuple[Chunk, Mask]], hidden: KeySet) -> FileSet:
        """Return the set after later commits: their chunks first, and the rows that they hide gone.

        Parameters
        ----------
        newer : sequence of (Chunk, Mask)
            The chunks of the later commits, with their live rows.
        hidden : KeySet
            The keys of the files that they touch.
        """
        added = [Part(chunk, alive=mask) for chunk, mask in newer]
        return self.with_parts([*added, *(p.hide(hidden) for p in self._rows.parts)])

    def with_parts(self, parts: Sequence[Part]) -> FileSet:
        """Return a set of other parts, without row sets.

        Parameters
        ----------
        parts : sequence of Part
            The parts.
        """
        return FileSet(parts, self._run)


def _joined(parts: list[pa.Array], default: pa.DataType | None) -> pa.ChunkedArray:
    filled = [p for p in parts if len(p)] or parts
    if not filled:
        return pa.chunked_array([], default or pa.string())
    kinds = {p.type for p in filled}
    if len(kinds) > 1:
        plain = next((p.type for p in filled if not pa.types.is_dictionary(p.type)), filled[0].type)
        filled = [pc.cast(p, plain) for p in filled]
    return pa.chunked_array(filled)


def _serial(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [function(x) for x in items]
