"""Facts of a Delta table that several operations need: applied transactions, live rows of files."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from delta_core.expressions.ast import NUM_RECORDS
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc

__all__ = ["has_transactions", "live_rows"]


def has_transactions(base: Snapshot, transactions: Mapping[str, int]) -> bool:
    """Return whether a table has these versions of applications, or later ones; False for none."""
    if not transactions:
        return False
    known = base.transactions()
    return all(app in known and known[app].version >= version for app, version in transactions.items())


def live_rows(files: FileSet, table: pa.Table) -> int | None:
    """Return how many rows of files are not deleted, None if a file's statistics lack their number.

    Parameters
    ----------
    files : FileSet
        The files, whose statistics are read.
    table : pyarrow.Table
        The ``deletionVector`` of each of the files.
    """
    records, vectors = files.statistics([NUM_RECORDS]).column(0), table.column("deletionVector")
    if records.null_count:
        return None
    deleted = 0 if vectors.null_count == len(vectors) else pc.sum(pc.struct_field(vectors, "cardinality")).as_py()
    return int(pc.sum(records).as_py() or 0) - int(deleted or 0)
