"""FileSet: a snapshot's live files as Arrow columns, loaded on demand.

A file set is a list of chunks (the adds of the commits, the row groups of a checkpoint) with a mask of the
live rows each. Columns are read only when asked for; what hides a row is asked only where its chunk is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.actions import FILE_COLUMNS
from delta_core.engine import CheckpointHandle, Evaluator
from delta_core.errors import InvalidArgumentError
from delta_core.expressions.ast import (
    Expression,
    FileConstant,
    FileStatistic,
    Leaf,
    PartitionValue,
    all_of,
    conjuncts,
    leaves,
)
from delta_core.kernels.dedup import KeySet
from delta_core.kernels.row_set import RowSet
from delta_core.kernels.stats import StatField, parse_stats
from delta_core.log.group_tests import GroupTest, plan_group_test, statistic_path
from delta_core.log.partition_values import parse_dictionary, parse_partition_values
from delta_core.types import TypeDef

__all__ = ["Chunk", "FileSet", "Part", "TableChunk"]

Mask = NDArray[np.bool_]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
PARTITION = "partition:"


class Chunk(Protocol):
    """Rows of file actions from one place of the log."""

    #: What the rows come from: ``commits``, or a checkpoint part and its row group.
    source: str
    num_rows: int
    #: The checkpoint file and its row group, where the rows come from one.
    place: tuple[CheckpointHandle, int] | None

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns, one row per row of the chunk; rows that hold no file are null in ``path``."""
        ...

    def statistics(self, wanted: Sequence[FileStatistic], rows: Mask | None, keep: bool = True) -> list[pa.Array]:
        """Return statistics, of the rows where ``rows`` is true (None: all), null where they are not known.

        ``keep`` False: they are asked once only.
        """
        ...


class TableChunk:
    """A chunk whose columns are all at hand."""

    place: tuple[CheckpointHandle, int] | None

    def __init__(self, table: pa.Table, source: str = "table") -> None:
        self.table = table.combine_chunks()
        self.source = source
        self.place = None
        self.num_rows = table.num_rows

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns; a missing one is null."""
        return [self._column(n) for n in names]

    def _column(self, name: str) -> pa.Array:
        index = self.table.schema.get_field_index(name)
        if index >= 0:
            return _one(self.table.column(index))
        if name.startswith(PARTITION) and self.table.schema.get_field_index("partitionValues") >= 0:
            return partition_text(_one(self.table.column("partitionValues")), name.removeprefix(PARTITION))
        return pa.nulls(self.num_rows, FILE_COLUMNS.get(name, pa.string()))

    def statistics(self, wanted: Sequence[FileStatistic], rows: Mask | None, keep: bool = True) -> list[pa.Array]:
        """Return statistics from the column ``stats``."""
        (text,) = self.load(["stats"])
        return json_statistics(text if rows is None else text.filter(pa.array(rows)), wanted)


class Part:
    """A chunk with its live rows; which they are stays unknown until it is needed."""

    __slots__ = ("alive", "chunk", "hidden_by")

    def __init__(self, chunk: Chunk, hidden_by: tuple[KeySet, ...] = (), alive: Mask | None = None) -> None:
        self.chunk = chunk
        self.hidden_by = hidden_by
        self.alive = alive

    def mask(self) -> Mask:
        """Return which rows are live files."""
        if self.alive is None:
            path, dv = self.chunk.load(["path", "dvId"])
            self.alive = self._unhidden(path, dv)
        return self.alive

    def _unhidden(self, path: pa.Array, dv: pa.Array) -> Mask:
        alive = np.ones(len(path), bool) if path.null_count == 0 else _is_valid(path)
        ids = None if dv.null_count == len(dv) else dv
        for keys in self.hidden_by:
            if len(keys):
                alive &= ~keys.contains(path, ids)
        return alive

    def load_all(self, names: Sequence[str]) -> tuple[list[pa.Array], Mask]:
        """Return columns of all rows, and which rows are live files; one read serves both."""
        if self.alive is not None:
            return self.chunk.load(names), self.alive
        wanted = list(dict.fromkeys([*names, "path", "dvId"]))
        found = dict(zip(wanted, self.chunk.load(wanted), strict=True))
        self.alive = self._unhidden(found["path"], found["dvId"])
        return [found[n] for n in names], self.alive

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns of the live rows."""
        if self.alive is not None and not self.alive.any():
            return [pa.nulls(0, c.type) for c in self.chunk.load(names)] if names else []
        columns, alive = self.load_all(names)
        if alive.all():
            return columns
        keep = pa.array(alive)
        return [c.filter(keep) for c in columns]

    def hide(self, keys: KeySet) -> Part:
        """Return the part with further keys hidden."""
        if self.alive is None:
            return Part(self.chunk, (*self.hidden_by, keys))
        if not len(keys) or not self.alive.any():
            return Part(self.chunk, self.hidden_by, self.alive)
        path, dv = self.chunk.load(["path", "dvId"])
        return Part(self.chunk, (), self.alive & ~keys.contains(path, None if dv.null_count == len(dv) else dv))


class FileSet:
    """Live files; immutable but for what it has loaded.

    Parameters
    ----------
    parts : sequence
        Chunks with their masks, newest first.
    types : Mapping
        Types of the partition values and of plugins' fields by column name.
    keep : dict of int to RowSet, optional
        Row number in the file table to the rows of the file that are wanted at all.
    """

    def __init__(
        self, parts: Sequence[Part], run: Map, types: Mapping[str, TypeDef] | None = None,
        keep: Mapping[int, RowSet] | None = None,
    ) -> None:  # fmt: skip
        self._parts = tuple(parts)
        self._run = run
        self._types = types
        self.keep = dict(keep) if keep else None
        self._loaded: dict[str, pa.ChunkedArray] = {}

    @staticmethod
    def of(table: pa.Table, run: Map | None = None, keep: Mapping[int, RowSet] | None = None) -> FileSet:
        """Return a file set of files that the caller has: a table with ``path`` and further `FILE_COLUMNS`."""
        alive = np.ones(table.num_rows, bool)
        return FileSet([Part(TableChunk(table), alive=alive)], run or _serial, keep=keep)

    @staticmethod
    def of_chunks(chunks: Sequence[tuple[Chunk, tuple[KeySet, ...], Mask | None]], run: Map) -> FileSet:
        """Return a file set of chunks, each with the keys that hide its rows, or with its live rows."""
        return FileSet([Part(*c) for c in chunks], run)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The chunks with their live rows, newest first."""
        return self._parts

    @cached_property
    def count(self) -> int:
        """The number of live files."""
        return sum(int(m.sum()) for m in self._run(lambda p: p.mask(), self._parts))

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the live files, in a fixed order of rows.

        Parameters
        ----------
        names : sequence of str
            Names of `FILE_COLUMNS`, ``partition:<physical name>`` (the text, as dictionary or string), or fields of
            plugins. A column that the log does not have is null.
        """
        missing = [n for n in dict.fromkeys(names) if n not in self._loaded]
        if missing:
            loaded = self._run(lambda p: p.load(missing), self._parts)
            for i, name in enumerate(missing):
                column = _joined([part[i] for part in loaded if part], FILE_COLUMNS.get(name))
                # statistics texts are as large as everything else together: keep what is small
                self._loaded[name] = column
        table = pa.Table.from_arrays([self._loaded[n] for n in names], list(names))
        for name in missing:
            if name in ("stats", "tags", "partitionValues"):
                del self._loaded[name]
        return table

    def statistics(self, wanted: Sequence[FileStatistic]) -> pa.Table:
        """Return statistics of the live files, a column per leaf in the order asked, null where not known."""

        def load(part: Part) -> list[pa.Array]:
            mask = part.mask()
            return part.chunk.statistics(wanted, None if mask.all() else mask)

        loaded = self._run(load, self._parts)
        columns = [_joined([part[i] for part in loaded], statistic_type(w)) for i, w in enumerate(wanted)]
        return pa.Table.from_arrays(columns, [f"{w.kind}:{'.'.join(w.path)}" for w in wanted])

    def where(self, expression: Expression | None, evaluator: Evaluator, zone: str = "UTC", exact: bool = False) -> FileSet:
        """Return the files for which an expression is not false.

        Parameters
        ----------
        expression : Expression
            Over PartitionValue, FileStatistic and FileConstant leaves.
        exact : bool
            Drop files for which it is null too: right where it decides about rows, as over partition values alone.

        Notes
        -----
        The parts that AND joins are asked one after the other, cheap ones first, and each only where the former left
        a file. Over one partition column alone each distinct value is asked once.
        """
        asked = sorted(conjuncts(expression), key=_cost)
        if not asked:
            return self
        # one pass over the statistics serves every part that needs them
        dear = all_of([e for e in asked if _cost(e) == _DEAR])
        tests = [_Test(e, evaluator, zone, exact) for e in (*(e for e in asked if _cost(e) < _DEAR), dear) if e is not None]
        if self.keep is not None:
            raise InvalidArgumentError("Files that carry row sets can't be filtered again.")
        parts = self._run(lambda p: _filter(p, tests), self._parts)
        return FileSet([p for p in parts if p is not None], self._run, self._types)

    def head(self, count: int) -> FileSet:
        """Return the first files."""
        parts: list[Part] = []
        for part in self._parts:
            if count <= 0:
                break
            mask = part.mask()
            cut = mask & (np.cumsum(mask) <= count)
            count -= int(cut.sum())
            parts.append(Part(part.chunk, alive=cut))
        return FileSet(parts, self._run, self._types)

    def refreshed(self, newer: Sequence[tuple[Chunk, Mask]], hidden: KeySet) -> FileSet:
        """Return the set after later commits: their chunks first, and the rows that they hide gone."""
        added = [Part(chunk, alive=mask) for chunk, mask in newer]
        return FileSet([*added, *(p.hide(hidden) for p in self._parts)], self._run, self._types)


def _filter(part: Part, tests: Sequence[_Test]) -> Part | None:
    mask = part.alive
    if part.chunk.place is not None and not all(test.keeps(*part.chunk.place) for test in tests):
        return None
    for test in tests:
        hits = test.run(part.chunk, mask)
        mask = hits if mask is None else mask & hits
        if not mask.any():
            return None
    if part.alive is None:
        path, dv = part.chunk.load(["path", "dvId"])
        mask = part._unhidden(path, dv) if mask is None else mask & part._unhidden(path, dv)
    return Part(part.chunk, alive=mask)


class _Test:
    """One conjunct, compiled once and run chunk by chunk."""

    def __init__(self, expression: Expression, evaluator: Evaluator, zone: str, exact: bool) -> None:
        self.leaves = leaves(expression)
        types = {leaf: _leaf_type(leaf) for leaf in self.leaves}
        self._expression = expression
        self._evaluator = evaluator
        self._compiled = evaluator.compile(expression, types)
        self._zone = zone
        self._exact = exact

    @cached_property
    def _of_groups(self) -> GroupTest | None:
        return plan_group_test(self._expression, self._evaluator, self._exact)

    def keeps(self, handle: CheckpointHandle, group: int) -> bool:
        """Whether a row group of a checkpoint may hold a file that passes, by its footer."""
        return self._of_groups is None or self._of_groups.keeps(handle, group)

    def run(self, chunk: Chunk, rows: Mask | None) -> Mask:
        """Return which rows of a chunk pass; rows outside ``rows`` may be anything."""
        if len(self._compiled.leaves) == 1 and isinstance(leaf := self._compiled.leaves[0], PartitionValue):
            return self._run_distinct(chunk, leaf)
        wanted = [leaf for leaf in self._compiled.leaves if isinstance(leaf, FileStatistic)]
        selected = None if rows is None or rows.all() else rows
        found: dict[Leaf, Any] = dict(zip(wanted, chunk.statistics(wanted, selected), strict=True)) if wanted else {}
        for leaf in self._compiled.leaves:
            if leaf not in found:
                column = self._load(chunk, leaf)
                found[leaf] = column if selected is None else column.filter(pa.array(selected))
        count = chunk.num_rows if selected is None else int(selected.sum())
        passed = self._passed(self._compiled([found[leaf] for leaf in self._compiled.leaves], count))
        if selected is None:
            return passed
        out = np.zeros(chunk.num_rows, bool)
        out[selected] = passed
        return out

    def _load(self, chunk: Chunk, leaf: Leaf) -> pa.Array:
        if isinstance(leaf, PartitionValue):
            (text,) = chunk.load([PARTITION + leaf.name])
            return parse_partition_values(text, leaf.type, self._zone)
        assert isinstance(leaf, FileConstant)
        return chunk.load([leaf.name])[0]

    def _run_distinct(self, chunk: Chunk, leaf: PartitionValue) -> Mask:
        (text,) = chunk.load([PARTITION + leaf.name])
        coded: Any = text if pa.types.is_dictionary(text.type) else text.dictionary_encode()
        distinct = parse_dictionary(coded, leaf.type, self._zone)
        # the last row of the table is for null
        padded = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
        table = self._passed(self._compiled([padded], len(padded)))
        codes = coded.indices
        if codes.null_count:
            codes = codes.fill_null(len(distinct))
        return table[codes.to_numpy(zero_copy_only=False)]

    def _passed(self, result: pa.Array) -> Mask:
        found = result.fill_null(not self._exact) if result.null_count else result
        return found.to_numpy(zero_copy_only=False)


_DEAR = 2


def _cost(expression: Expression) -> int:
    kinds = {type(leaf) for leaf in leaves(expression)}
    return _DEAR if FileStatistic in kinds else 1 if kinds != {PartitionValue} else 0


def _leaf_type(leaf: Leaf) -> pa.DataType:
    if isinstance(leaf, FileStatistic):
        return statistic_type(leaf)
    if isinstance(leaf, (PartitionValue, FileConstant)):
        return leaf.type.to_arrow()
    raise InvalidArgumentError(f"Files can't be filtered by {leaf}: only partition values, statistics and file constants.")


def statistic_type(leaf: FileStatistic) -> pa.DataType:
    """Return the Arrow type of a statistic."""
    if leaf.kind in ("nullCount", "numRecords"):
        return pa.int64()
    return pa.bool_() if leaf.kind == "tightBounds" else leaf.type.to_arrow()


def json_statistics(text: pa.Array, wanted: Sequence[FileStatistic]) -> list[pa.Array]:
    """Return statistics from their JSON text, each with the leaf's own type."""
    fields = [StatField(statistic_path(w), _statistic_kind(w)) for w in wanted]
    return [_as(c, statistic_type(w)) for c, w in zip(parse_stats(text, fields), wanted, strict=True)]


def _statistic_kind(leaf: FileStatistic) -> str:
    if leaf.kind in ("nullCount", "numRecords"):
        return "long"
    return "boolean" if leaf.kind == "tightBounds" else str(leaf.type.type)


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast a bound; values that the type can't hold become null, that is unknown."""
    if column.type == wanted:
        return column
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        return pa.array([_try_cast(v, wanted) for v in column], wanted)


def _try_cast(value: Any, wanted: pa.DataType) -> Any:
    try:
        return value.cast(wanted).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def partition_text(values: Any, key: str) -> pa.DictionaryArray:
    """Return one key's values of a partitionValues column as dictionary<int32, string>, null where absent.

    Parameters
    ----------
    values : pyarrow.MapArray
        Keys and values may be dictionary-encoded.
    """
    keys, items = _dictionary(values.keys), _dictionary(values.items)
    offsets = np.asarray(values.offsets)
    code = keys.dictionary.index(key).as_py()
    codes = np.full(len(values), -1, np.int32)
    if code >= 0:
        hits = np.flatnonzero(keys.indices.to_numpy(zero_copy_only=False) == code)
        hits = hits[(hits >= offsets[0]) & (hits < offsets[-1])]
        rows = np.searchsorted(offsets, hits, side="right") - 1
        indices = items.indices
        picked = indices.fill_null(-1) if indices.null_count else indices
        codes[rows] = picked.to_numpy(zero_copy_only=False)[hits]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), items.dictionary)


def _dictionary(column: pa.Array) -> Any:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _is_valid(column: pa.Array) -> Mask:
    return column.is_valid().to_numpy(zero_copy_only=False)


def _one(column: pa.ChunkedArray) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _joined(parts: list[pa.Array], default: pa.DataType | None) -> pa.ChunkedArray:
    filled = [p for p in parts if len(p)] or parts
    if not filled:
        return pa.chunked_array([], default or pa.string())
    kinds = {p.type for p in filled}
    if len(kinds) > 1:
        plain = next((p.type for p in filled if not pa.types.is_dictionary(p.type)), filled[0].type)
        filled = [p.cast(plain) for p in filled]
    return pa.chunked_array(filled)


def _serial(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [function(x) for x in items]
