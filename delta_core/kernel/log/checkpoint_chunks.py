"""Chunks of a FileSet that are row groups of checkpoints and sidecars; few reads of young tables have one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import CheckpointHandle
from delta_core.errors import CheckpointError
from delta_core.expressions.ast import FileStatistic
from delta_core.kernel.log import value_parts
from delta_core.kernel.log.file_columns import (
    PARTITION,
    json_statistics,
    known_counts,
    partition_text,
    pick,
    pick_all,
    statistic_path,
    statistic_type,
)
from delta_core.kernel.protocol.actions import DELETION_VECTOR, FILE_COLUMNS, ActionField
from delta_core.kernels import compute as pc, parts as kernels
from delta_core.kernels.arrow_buffers import is_utf8, is_valid, nulls_of
from delta_core.kernels.dedup import dv_unique_ids
from delta_core.kernels.nested import struct_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

__all__ = ["CheckpointChunk"]


class CheckpointChunk:
    """The adds, or the removes, of one row group of a checkpoint part or sidecar."""

    def __init__(
        self, handle: CheckpointHandle, group: int, fields: Sequence[ActionField], action: str = "add"
    ) -> None:
        self.source: str = f"{handle.path}#{group}"
        self.num_rows: int = handle.group_rows[group]
        self.place: tuple[CheckpointHandle, int] | None = (handle, group)
        self._handle = handle
        self._group = group
        self._action = action
        self._vector = (action, "deletionVector")
        self._map = (action, "partitionValues")
        self._fields = {f.name: f.type for f in fields if f.action == action}
        self._partitions: dict[str, pa.Array] = {}
        self._bounds: dict[FileStatistic, pa.Array] = {}

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns, read in one pass over the row group.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        """
        partitions = [n for n in names if n.startswith(PARTITION) and n not in self._partitions]
        paths = self._paths(names)
        if partitions and self._map not in paths:
            paths.append(self._map)
        dictionary = [self._map] if partitions and "partitionValues" not in names else []
        found = dict(zip(paths, self._handle.read(self._group, paths, dictionary), strict=True)) if paths else {}
        if partitions and self._action == "add":
            self._check_partitions(found[self._map])
        if partitions:
            values = self._conformed("partitionValues", found[self._map], FILE_COLUMNS["partitionValues"])
            for name in partitions:
                self._partitions[name] = partition_text(values, name.removeprefix(PARTITION))
        return [self._column(n, found, self.num_rows) for n in names]

    def _check_partitions(self, values: pa.Array) -> None:
        """Reject an add without ``partitionValues``: its partition is unknown, as a missing key means null."""
        if not values.null_count:
            return
        (path,) = self._handle.read(self._group, [(self._action, "path")])
        incomplete = np.flatnonzero(is_valid(path) & ~is_valid(values))
        if len(incomplete):
            name = path[int(incomplete[0])].as_py()
            raise CheckpointError(
                f"Checkpoint {self._handle.path} names file {name!r} without 'partitionValues', which a partitioned "
                "table needs. Its writer is wrong; read a version before it, or write the checkpoint again.",
                path=self._handle.path,
            )

    @property
    def nbytes(self) -> int:
        """The bytes of the columns that it keeps."""
        return sum(column.nbytes for column in [*self._partitions.values(), *self._bounds.values()])

    def pick(self, names: Sequence[str], rows: Mask) -> list[pa.Array]:
        """Return columns of some rows; if they are few, no others are kept of what is decoded.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        rows : bool, **shape (n,)**
            Whether each row of the chunk is requested.
        """
        chosen = np.flatnonzero(rows)
        partitions = [n for n in names if n.startswith(PARTITION)]
        if _FEW * len(chosen) >= len(rows) or not all(n in self._partitions for n in partitions):
            return pick_all(self.load(names), rows)
        paths = self._paths(names)
        found = dict(zip(paths, self._read_few(paths, rows, chosen), strict=True)) if paths and len(chosen) else {}
        if paths and not found:
            return pick_all(self.load(names), rows)
        of_partitions = dict(zip(partitions, pick_all([self._partitions[n] for n in partitions], rows), strict=True))
        return [of_partitions[n] if n in of_partitions else self._column(n, found, len(chosen)) for n in names]

    def _read_few(self, paths: Sequence[tuple[str, ...]], rows: Mask, chosen: NDArray[np.int64]) -> list[pa.Array]:
        picked = self._handle.pick(self._group, paths, rows)
        if picked is not None:
            return picked
        pieces = []
        first = 0
        # closing it is when it specifies whether the file stayed the same
        with closing(self._handle.batches(self._group, paths)) as batches:
            for columns in batches:
                part = rows[first : first + len(columns[0])]
                if part.any():
                    pieces.append(pick_all(columns, part))
                first += len(part)
                if first > chosen[-1]:
                    break
        return [pa.concat_arrays(column) for column in zip(*pieces, strict=True)]

    def _paths(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return what has to be read for columns, those of partitions apart."""
        plain = [n for n in names if not n.startswith(PARTITION)]
        paths = [(self._action, n) for n in plain if n not in ("dvId", "version", "deletionVector")]
        if "deletionVector" in plain or "dvId" in plain and self._has_vectors:
            paths.append(self._vector)
        if "stats" in plain and self._has_parsed_statistics_only:
            paths = [_PARSED if p == _TEXT else p for p in paths]
        return list(dict.fromkeys(paths))

    @property
    def _has_vectors(self) -> bool:
        stored = self._handle.arrow_type(self._vector)
        if stored is None or not pa.types.is_struct(stored) or stored.get_field_index("storageType") < 0:
            return stored is not None
        return not self._handle.all_null(self._group, (*self._vector, "storageType"))

    @property
    def has_statistics_columns(self) -> bool:
        """Whether the checkpoint has statistics as a struct."""
        return self._action == "add" and self._handle.arrow_type(_PARSED) is not None

    @property
    def _has_parsed_statistics_only(self) -> bool:
        return self.has_statistics_columns and self._handle.all_null(self._group, _TEXT)

    def _column(self, name: str, found: dict[tuple[str, ...], Any], count: int) -> pa.Array:
        if name.startswith(PARTITION):
            return self._partitions[name]
        if name == "version" or name == "dvId" and self._vector not in found:
            return nulls_of(count, FILE_COLUMNS[name])
        if name == "dvId":
            vector = self._descriptors(found[self._vector])
            if vector.null_count == count:
                return nulls_of(count, FILE_COLUMNS[name])
            parts = dict(zip((f.name for f in vector.type), vector.flatten(), strict=True))
            return dv_unique_ids(parts["storageType"], parts["pathOrInlineDv"], parts["offset"])
        if name == "deletionVector":
            return self._descriptors(found[self._vector])
        if name == "stats" and _TEXT not in found:
            return value_parts.statistics_text(found[_PARSED])
        return self._conformed(name, found[self._action, name], self._fields.get(name) or FILE_COLUMNS.get(name))

    def _conformed(self, name: str, column: Any, target: pa.DataType | None) -> pa.Array:
        """Return a column with its type; rejects what is none of its values, and texts that are no UTF-8."""
        if target is not None and column.type != target and not _is_coded_map(column.type, target):
            try:
                column = pc.cast(column, target)
            except pa.ArrowException as e:
                raise self._damaged(f"has {self._action}.{name} of type {column.type}, expected {target}") from e
        texts = [column.keys, column.items] if pa.types.is_map(column.type) else [column]
        if name not in _UNCHECKED and not all(is_utf8(t) for t in texts):
            raise self._damaged(f"has a text in {self._action}.{name} that is no UTF-8")
        return column

    def _descriptors(self, column: Any) -> pa.Array:
        """Return descriptors of vectors with the protocol's five fields, whatever of them the checkpoint has."""
        rows = len(column)
        if column.null_count == rows:
            return nulls_of(rows, DELETION_VECTOR)
        names = [f.name for f in column.type] if pa.types.is_struct(column.type) else []
        if not {"storageType", "pathOrInlineDv"}.issubset(names):
            raise self._damaged(f"has deletion vectors of type {column.type}, expected {DELETION_VECTOR}")
        have = dict(zip(names, column.flatten(), strict=True))
        parts = [
            self._conformed(f"deletionVector.{f.name}", have[f.name], f.type)
            if f.name in have
            else nulls_of(rows, f.type)
            for f in DELETION_VECTOR
        ]
        return struct_of(list(DELETION_VECTOR), parts, parts[0])

    def _damaged(self, what: str) -> CheckpointError:
        return CheckpointError.of_unreadable(self._handle.path, f"row group {self._group} {what}")

    def statistics(
        self, leaves: Sequence[FileStatistic], rows: Mask | None, keep: bool = True, beside: Sequence[str] = ()
    ) -> list[pa.Array]:
        """Return statistics from the struct if the checkpoint has it, else from the JSON text.

        Parameters
        ----------
        leaves : sequence of FileStatistic
            The statistics.
        rows : bool, **shape (n,)**, or None
            Whether each row of the chunk is requested; None: all.
        keep : bool
            Whether the columns are kept for the next call.
        beside : sequence of str
            Columns that will be requested next, so that one pass may serve both.
        """
        missing = [w for w in leaves if w not in self._bounds]
        # a few rows are no reason to parse all
        if rows is not None and (not keep or _FEW * int(rows.sum()) < len(rows)):
            found = dict(zip(missing, self._read_statistics(missing, rows), strict=True)) if missing else {}
            there = {w: pick(self._bounds[w], rows) for w in leaves if w not in found}
            return [found[w] if w in found else there[w] for w in leaves]
        found = dict(zip(missing, self._read_statistics(missing, None), strict=True)) if missing else {}
        columns = [found[w] if w in found else self._bounds[w] for w in leaves]
        if keep:
            self._bounds |= found
        return pick_all(columns, rows)

    def _read_statistics(self, leaves: Sequence[FileStatistic], rows: Mask | None) -> list[pa.Array]:
        struct = {w: (*_PARSED, *statistic_path(w)) for w in leaves}
        parsed = [w for w in leaves if self._handle.arrow_type(struct[w]) is not None]
        found: dict[FileStatistic, pa.Array] = {}
        if parsed:
            columns = pick_all(self._handle.read(self._group, [struct[w] for w in parsed]), rows)
            found = {w: known_counts(w, conform(c, statistic_type(w))) for w, c in zip(parsed, columns, strict=True)}
        rest = [w for w in leaves if w not in found]
        # a part of a checkpoint may have no rows
        if rest and self.num_rows and not self._handle.all_null(self._group, _TEXT):
            found |= zip(rest, self._parse_statistics(rest, rows), strict=True)
        count = self.num_rows if rows is None else int(rows.sum())
        return [found[w] if w in found else nulls_of(count, statistic_type(w)) for w in leaves]

    def _parse_statistics(self, leaves: Sequence[FileStatistic], rows: Mask | None) -> list[pa.Array]:
        """Parse the texts as they are decoded: together they are larger than everything else."""
        pieces = []
        first = 0
        for (text,) in self._handle.batches(self._group, [_TEXT]):
            chosen = None if rows is None else rows[first : first + len(text)]
            pieces.append(json_statistics(pick(text, chosen), leaves))
            first += len(text)
        return [pa.concat_arrays(column) for column in zip(*pieces, strict=True)]


#: Rows are few if there are this many times more in all.
_FEW = 4
_TEXT, _PARSED = ("add", "stats"), ("add", "stats_parsed")
#: Large texts, which are parsed as bytes.
_UNCHECKED = frozenset({"stats"})


def _is_coded_map(found: pa.DataType, target: pa.DataType) -> bool:
    """Whether a map of texts has them as dictionary codes."""
    if not pa.types.is_map(found) or not pa.types.is_map(target):
        return False
    plain = [t.value_type if pa.types.is_dictionary(t) else t for t in (found.key_type, found.item_type)]
    return plain == [target.key_type, target.item_type]


def conform(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a bound to its leaf's type; one that can't be cast is unknown.

    Parameters
    ----------
    column : pyarrow.Array, **shape (n,)**
        The bounds; nulls stay.
    target : pyarrow.DataType
        The type of the leaf.
    """
    if column.type == target:
        return column
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(target) and column.type.tz != target.tz:
        column = pc.cast(column, pa.timestamp(column.type.unit, target.tz))
    try:
        return kernels.checked_cast(column, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return nulls_of(len(column), target)
