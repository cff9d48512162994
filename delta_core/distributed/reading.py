"""The parts of a scan: files, and ranges of rows of large ones, that other processes read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import InvalidArgumentError
from delta_core.kernel.commit.intents import read_columns
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.scan import Scan
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels.row_set import RowSet
from delta_core.runtime.arguments import check_number, path_text
from delta_core.table.delta_table import DeltaTable

__all__ = ["ReadPart", "check_not_opened_again", "opened_table", "plan_parts"]

#: The bytes of files that a part has, about, unless requested.
PART_BYTES = 128 << 20


class ReadPart(Struct, frozen=True):
    """The rows of some files of one version of a table, or of a range of one file; it can be pickled.

    Parameters
    ----------
    version : bytes
        A pickle of the version, the same for all parts: a process opens it once.
    files : pyarrow.Table
        The files, as their actions describe them.
    rows : (int, int) or None
        The positions of the rows in the only file, begin and end.
    columns, metadata, predicate
        As of `Snapshot.scan`.
    num_bytes : int
        Of the files, about.
    """

    version: bytes
    files: pa.Table
    rows: tuple[int, int] | None
    columns: Sequence[str] | None
    metadata: Sequence[str]
    predicate: Any
    num_bytes: int

    def scan(self, columns: Sequence[str] | None = None) -> Scan:
        """Return the scan of the rows.

        Parameters
        ----------
        columns : sequence of str, optional
            Fewer columns than the part has.
        """
        keep = None if self.rows is None else {0: RowSet.from_range(*self.rows)}
        return _opened(self.version).scan(
            columns=self.columns if columns is None else columns,
            metadata=self.metadata,
            predicate=self.predicate,
            files=FileSet.of(self.files, keep=keep),
        )

    def to_table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the rows.

        Parameters
        ----------
        columns : sequence of str, optional
            Fewer columns than the part has.
        """
        return self.scan(columns).to_table()


@lru_cache(maxsize=8)
def _opened(version: bytes) -> Snapshot:
    """Open a version once in each process: its parts are many."""
    found: Snapshot = pickle.loads(version)  # noqa: S301  # made by the process that planned the parts
    return found


def opened_table(
    table_or_uri: Any, version: int | None, storage_options: dict[str, str] | None, pickle_secrets: bool
) -> DeltaTable:
    """Return a table that was given, or open it.

    Parameters
    ----------
    table_or_uri : DeltaTable, str or path
        The table.
    version, storage_options, pickle_secrets
        As of `DeltaTable`, if a path or URI is given.

    Raises
    ------
    InvalidArgumentError
        If one of them is passed with a `DeltaTable`, and for an argument of another type.
    TableNotFoundError, VersionNotFoundError
        As of `DeltaTable`.
    """
    if not isinstance(table_or_uri, DeltaTable):
        uri = path_text(table_or_uri)
        return DeltaTable(uri, version, storage_options=storage_options, pickle_secrets=pickle_secrets)
    check_not_opened_again(version=version, storage_options=storage_options, pickle_secrets=pickle_secrets)
    return table_or_uri


def check_not_opened_again(**given: Any) -> None:
    """Reject options of the opening of a table that is open already.

    Parameters
    ----------
    **given
        The options; None and False are not given.

    Raises
    ------
    InvalidArgumentError
        If one is given; the message names all.
    """
    if any(value is not None and value is not False for value in given.values()):
        *names, last = given
        raise InvalidArgumentError(
            f"{', '.join(names)} and {last} are those of the DeltaTable that was passed: leave them out."
        )


def plan_parts(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    metadata: Sequence[str] = (),
    part_bytes: int | None = None,
) -> tuple[pa.Schema, list[ReadPart]]:
    """Return the schema of a scan, and its rows in parts: each row in exactly one of them, in the order of the scan.

    Files that the predicate excludes are in no part. A part has files of about ``part_bytes``; a file of more than
    twice that is divided into ranges of rows, after its footer was read.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    columns, predicate, metadata
        As of `Snapshot.scan`.
    part_bytes : int, optional
        128 MiB unless given.

    Raises
    ------
    InvalidArgumentError
        For a ``part_bytes`` that is no positive number, and what `Snapshot.scan` rejects.
    UnsupportedOperationError
        If the table can't be pickled.
    """
    check_number("part_bytes", part_bytes, 1, what="a number of bytes")
    size = PART_BYTES if part_bytes is None else part_bytes
    scan = snapshot.scan(columns=columns, metadata=metadata, predicate=predicate)
    try:
        version = pickle.dumps(snapshot)
    except (TypeError, AttributeError, pickle.PicklingError) as e:
        raise InvalidArgumentError(
            f"The table can't be passed to other processes: {e}. Open it by its URI, with an engine, a committer and "
            "commits that can be pickled."
        ) from e
    files = scan.file_set
    table = files.columns(read_columns(snapshot.action_fields))
    sizes = table.column("size").to_numpy()
    large = sizes > 2 * size
    counts = np.zeros(len(sizes), np.int64)
    if large.any():  # of these the number of rows must be exact: their footers have it
        chosen = table.filter(pa.array(large))
        counts[large] = snapshot.engine.data.row_counts(
            decode_paths(chosen.column("path")), chosen.column("size").to_pylist()
        )
    return scan.schema, [
        ReadPart(version, table.slice(begin, end - begin), rows, columns, metadata, predicate, num_bytes)
        for begin, end, rows, num_bytes in _divided(sizes, counts, size)
    ]


def _divided(sizes: Any, counts: Any, size: int) -> Iterator[tuple[int, int, tuple[int, int] | None, int]]:
    """Yield begin and end of runs of files, the range of rows of a divided file, and the bytes."""
    begin = 0
    for large in [*np.flatnonzero(counts > 1).tolist(), len(sizes)]:
        yield from _runs(sizes, begin, large, size)
        if large < len(sizes):
            rows, num_bytes = int(counts[large]), int(sizes[large])
            num = min(-(-num_bytes // size), rows)
            edges = [rows * i // num for i in range(num + 1)]
            for bounds in pairwise(edges):
                yield large, large + 1, bounds, num_bytes // num
        begin = large + 1


def _runs(sizes: Any, begin: int, end: int, size: int) -> Iterator[tuple[int, int, None, int]]:
    while begin < end:
        total = np.cumsum(sizes[begin:end])
        stop = begin + max(1, int(np.searchsorted(total, size, side="right")))
        yield begin, stop, None, int(total[stop - begin - 1])
        begin = stop
