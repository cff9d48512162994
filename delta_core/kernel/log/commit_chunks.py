"""Chunks of a FileSet that are adds of commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_core.engines.records import ActionQuery
from delta_core.errors import LogChangedError, LogError
from delta_core.expressions.ast import FileStatistic
from delta_core.kernel.log.file_columns import PARTITION, json_statistics, pick, pick_all
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.protocol.actions import ADD_FIELDS, FILE_COLUMNS, ActionField, parse_action
from delta_core.kernels.arrow_buffers import array_of, nulls_of, one_array, values_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.interface import CheckpointHandle, LogFiles

    Mask = NDArray[np.bool_]

__all__ = ["BASE_COLUMNS", "CommitChunk", "extra_fields", "json_values"]

#: The most files, and the most columns, whose statistics are kept after a first request.
_FEW_FILES = 256
_MOST_STATISTICS = 64
#: The columns of file actions that the first pass over commits keeps.
BASE_COLUMNS = ("size", "modificationTime")
_SMALL = frozenset({"path", "dvId", "size", "modificationTime", "baseRowId", "defaultRowCommitVersion", "version"})


def extra_fields(fields: Sequence[ActionField]) -> dict[str, tuple[str, ...]]:
    """Return plugins' fields by action, as the parser of commits takes them.

    Parameters
    ----------
    fields : sequence of ActionField
        The fields that features add to file actions.
    """
    actions = {f.action for f in fields}
    return {a: tuple(f.name for f in fields if f.action == a) for a in actions}


class CommitChunk:
    """The adds of a run of commits; further columns are parsed when they are requested.

    Parameters
    ----------
    table : pyarrow.Table
        The columns that the first pass kept: path, dvId, version and `BASE_COLUMNS`.
    fields : sequence of ActionField
        The fields that plugins add to ``add``.
    """

    has_statistics_columns = False

    def __init__(
        self,
        logs: LogFiles,
        files: Sequence[LogFile],
        table: pa.Table,
        fields: Sequence[ActionField],
        source: str = "commits",
    ) -> None:
        self.source = source
        self.place: tuple[CheckpointHandle, int] | None = None
        self.num_rows: int = table.num_rows
        self._logs = logs
        self._files = tuple(files)
        self._fields = {f.name: f.type for f in fields if f.action == "add"}
        self._columns = {n: one_array(table.column(n)) for n in table.column_names if n in _SMALL}
        self._statistics: dict[FileStatistic, pa.Array] = {}

    def split(self, rows: int) -> list[tuple[int, CommitChunk]]:
        """Cut into chunks of about this many rows each, between files; each with the number of its first row.

        Parameters
        ----------
        rows : int
            Rows of a chunk.
        """
        versions = values_of(self._columns["version"])
        ends = np.searchsorted(versions, [f.end_version for f in self._files], side="right")
        out: list[tuple[int, CommitChunk]] = []
        first = start = 0
        for i, end in enumerate(ends):
            if end - start >= rows or i == len(ends) - 1:
                table = pa.table({n: c.slice(start, end - start) for n, c in self._columns.items()})
                fields = [ActionField("add", n, t) for n, t in self._fields.items()]
                out.append((start, CommitChunk(self._logs, self._files[first : i + 1], table, fields, self.source)))
                first, start = i + 1, int(end)
        return out

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns; one pass over the commits serves all that are missing.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        """
        found = dict(self._columns)
        missing = [n for n in names if n not in found]
        if missing and self.num_rows:
            found |= self._parse(missing)
            self._columns |= {n: c for n, c in found.items() if n in _SMALL or n.startswith(PARTITION)}
        return [found[n] if n in found else nulls_of(self.num_rows, self._type(n)) for n in names]

    @property
    def nbytes(self) -> int:
        """The bytes of the columns that it keeps."""
        return sum(column.nbytes for column in [*self._columns.values(), *self._statistics.values()])

    def pick(self, names: Sequence[str], rows: Mask) -> list[pa.Array]:
        """Return columns of some rows.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        rows : bool, **shape (n,)**
            Whether each row of the chunk is requested.
        """
        return pick_all(self.load(names), rows)

    def _type(self, name: str) -> pa.DataType:
        return self._fields.get(name) or FILE_COLUMNS.get(name, pa.string())

    def _parse(self, names: Sequence[str]) -> dict[str, pa.Array]:
        plugin = [n for n in names if n in self._fields]
        query = ActionQuery(
            columns=tuple(n for n in names if n in ADD_FIELDS),
            partition_keys=tuple(n.removeprefix(PARTITION) for n in names if n.startswith(PARTITION)),
            kinds=frozenset({"add"}),
            extra_fields={"add": tuple(plugin)} if plugin else {},
        )
        adds = self._logs.read_commits(self._files, query).adds
        if not one_array(adds.column("path")).equals(self._columns["path"]):
            raise LogChangedError.of_replaced(f"{self._files[0].name} to {self._files[-1].name}")
        out = {n: one_array(adds.column(n)) for n in names if n in adds.column_names}
        for name in plugin:
            out[name] = json_values(one_array(adds.column(f"extra:{name}")), self._fields[name])
        return out

    def statistics(
        self, leaves: Sequence[FileStatistic], rows: Mask | None, keep: bool = True, beside: Sequence[str] = ()
    ) -> list[pa.Array]:
        """Return statistics from their JSON text; of what is parsed beside it, small columns are kept.

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
        kept = [self._statistics.get(leaf) for leaf in leaves]
        known = [column for column in kept if column is not None]
        if len(known) == len(leaves) and not beside:
            return pick_all(known, rows)
        text, *_ = self.load(["stats", *beside])
        if self.num_rows > _FEW_FILES:
            return json_statistics(pick(text, rows), leaves)
        found = json_statistics(text, leaves)
        if len(self._statistics) < _MOST_STATISTICS:
            self._statistics.update(zip(leaves, found, strict=True))
        return pick_all(found, rows)


def json_values(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values of plugins' fields from their raw JSON texts.

    Parameters
    ----------
    text : string array, **shape (n,)**
        A JSON value each; null = the field is absent.
    kind : pyarrow.DataType
        The type of the field.

    Raises
    ------
    LogError
        For a field that does not have the requested type.
    """
    if text.null_count == len(text):
        return nulls_of(len(text), kind)
    values = [None if t is None else parse_action(t, "the commits") for t in text.to_pylist()]
    try:
        return array_of(values, kind)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as e:
        raise LogError(f"A field of an action can't be read as {kind}: {e}.") from e
