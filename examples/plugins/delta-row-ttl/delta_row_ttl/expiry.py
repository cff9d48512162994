"""The operation ``expire``: files whose every row is hidden leave the table."""

import time
from typing import Any

import pyarrow as pa

from delta_core.api import REMOVED_FILE, Snapshot, Transaction
from delta_row_ttl.logic import all_expired, time_to_live

__all__ = ["expire"]


def expire(source: Any) -> int:
    """Remove the files that hold nothing but rows which are too old.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``

    Returns
    -------
    int
        The number of files that left the table.

    Notes
    -----
    Reads no data file: partition values and statistics report. Files that they don't describe stay.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    ttl = time_to_live(snapshot.state)
    if ttl is None:
        return 0
    expired = all_expired(snapshot.state, ttl, time.time_ns() // 1000)
    names = [name for name in REMOVED_FILE.names if name != "dataChange"]
    files = snapshot.files.where(expired, snapshot.engine.evaluator, snapshot.timezone).columns(names)
    if files.num_rows:
        transaction = Transaction(snapshot.context, snapshot, "DELETE", {"predicate": '["expired"]'})
        transaction.remove_files(files.append_column("dataChange", pa.repeat(pa.scalar(True), files.num_rows)))
        transaction.commit()
    return int(files.num_rows)
