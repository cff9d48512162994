"""A commit's lines: its actions as JSON, and the same actions as a reader of the lines would find them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.kernel.protocol.actions import ADD, CDC, REMOVE
from delta_core.kernels.arrow_buffers import number_array, one_array, scalar_of, strings_of, utf8_of
from delta_core.kernels.dedup import dv_unique_ids
from delta_core.kernels.json_actions import ActionParser, ParsedActions
from delta_core.kernels.json_lines import RUN_ROWS, format_lines

__all__ = ["CommitLines", "SmallAction", "as_parsed", "format_commit", "small_action", "stamped"]

#: An action that is no file's: its kind, and its value as JSON.
SmallAction = tuple[str, str]
#: The columns of file actions that checksums and opening a table use.
_COLUMNS = ("size", "modificationTime", "dataChange", "dvCardinality")
_FILE_ACTIONS = frozenset({ADD.name, REMOVE.name, CDC.name})
# a NaN would be a commit that no reader parses
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def small_action(kind: str, value: Any) -> SmallAction:
    """Return an action that is no file's, as it will be in its line.

    Raises
    ------
    InvalidArgumentError
        For a value that JSON has no text for.
    """
    try:
        return kind, _encode(value)
    except (TypeError, ValueError) as e:
        raise InvalidArgumentError(
            f"The action {kind} holds a value that JSON has no text for: {e}. Pass it as text.", action=kind
        ) from e


def stamped(removes: pa.Table, now_ms: int) -> pa.Table:
    """Return removes as their lines have them: with the time of the removal, without what only adds have."""
    if not removes.num_rows:
        return removes
    count = removes.num_rows
    kept = removes.drop_columns([c for c in ("dvId", "stats") if c in removes.column_names])
    return kept.append_column("deletionTimestamp", pa.repeat(scalar_of(now_ms, pa.int64()), count)).append_column(
        "extendedFileMetadata", pa.repeat(scalar_of(True, pa.bool_()), count)
    )


class CommitLines:
    """The lines of a commit: small actions, then those of files. The order is that of `as_parsed`.

    They are formatted each time they are iterated over: a commit of a million files is never held as text.

    Attributes
    ----------
    failure : InvalidArgumentError or None
        Why they could not be formatted, if an iteration ended with that: then they were put nowhere.
    """

    failure: InvalidArgumentError | None = None

    def __init__(self, small: Sequence[SmallAction], removes: pa.Table, adds: pa.Table, cdcs: pa.Table) -> None:
        self._head = b"".join(utf8_of(f"{{{_encode(kind)}:{text}}}\n", f"The action {kind}") for kind, text in small)
        files = ((REMOVE.name, removes), (ADD.name, adds), (CDC.name, cdcs))
        self._files = [(kind, _without_nulls(t)) for kind, t in files if t.num_rows]

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines in pieces of at most some MB.

        Raises
        ------
        InvalidArgumentError
            For a text that UTF-8 has no bytes for.
        """
        yield self._head
        try:
            for kind, files in self._files:
                yield from format_lines(kind, files)
        except InvalidArgumentError as e:
            self.failure = e
            raise


def format_commit(
    small: Sequence[SmallAction], removes: pa.Table, adds: pa.Table, cdcs: pa.Table
) -> bytes | CommitLines:
    """Return the lines of a commit: whole, or, of many files, to be formatted while they are written.

    Raises
    ------
    InvalidArgumentError
        For a text that UTF-8 has no bytes for; in lines that are not whole, when it is reached.
    """
    lines = CommitLines(small, removes, adds, cdcs)
    return lines if removes.num_rows + adds.num_rows + cdcs.num_rows > RUN_ROWS else b"".join(lines)


def _without_nulls(files: pa.Table) -> pa.Table:
    """Leave out columns that do not specify any file: describing them to the formatter costs more than all the rest."""
    count = files.num_rows
    return files.select([i for i, column in enumerate(files.itercolumns()) if column.null_count < count])


def as_parsed(
    version: int, small: Sequence[SmallAction], removes: pa.Table, adds: pa.Table, skip: frozenset[str] = frozenset()
) -> ParsedActions | None:
    """Return what `LogFiles.read_commits` makes of a commit's lines, without parsing them; change files are left out.

    Parameters
    ----------
    version : int
        The version of the commit.
    small : sequence of SmallAction
        The actions other than those of files, in the order of their lines.
    removes, adds : pyarrow.Table
        The file actions of the commit; the removes come first.
    skip : frozenset of str
        Kinds of small actions to pass over.

    Returns
    -------
    ParsedActions or None
        With the columns ``size``, ``modificationTime``, ``dataChange`` and ``dvCardinality`` (removes: no
        ``modificationTime``). None if a file's action was staged as a small one, so that only parsing reports.
    """
    if any(kind in _FILE_ACTIONS for kind, _ in small):
        return None
    empty = _nothing()
    first = len(small)
    return ParsedActions(
        _files(adds, empty.adds, version, first + removes.num_rows),
        _files(removes, empty.removes, version, first),
        empty.cdcs,
        _others(small, empty.other_actions, version, skip),
    )


@functools.cache
def _nothing() -> ParsedActions:
    """Return the tables that parsing no commit returns: they have the schemas."""
    return ActionParser(_COLUMNS).finish()


def _files(files: pa.Table, empty: pa.Table, version: int, first_line: int) -> pa.Table:
    count = files.num_rows
    if not count:
        return empty
    found: dict[str, Any] = {
        "version": number_array(np.full(count, version, np.int64)),
        "line": number_array(np.arange(first_line, first_line + count, dtype=np.int32)),
    }
    vectors = files.column("deletionVector")
    if vectors.null_count < count:
        kind, text, offset, _, cardinality = one_array(vectors).flatten()
        found |= {"dvId": dv_unique_ids(kind, text, offset), "dvCardinality": cardinality}
    columns = []
    for f in empty.schema:
        column = found.get(f.name)
        if column is None:
            column = pa.nulls(count, f.type) if f.name.startswith("dv") else files.column(f.name)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=empty.schema)


def _others(small: Sequence[SmallAction], empty: pa.Table, version: int, skip: frozenset[str]) -> pa.Table:
    kept = [(line, kind, text) for line, (kind, text) in enumerate(small) if kind not in skip]
    if not kept:
        return empty
    lines, kinds, texts = zip(*kept, strict=True)
    arrays = [
        number_array(np.full(len(kept), version, np.int64)),
        number_array(np.array(lines, np.int32)),
        strings_of(kinds),
        strings_of(texts),
    ]
    return pa.Table.from_arrays(arrays, schema=empty.schema)
