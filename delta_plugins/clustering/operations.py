"""The operation that sets a table's clustering columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from delta_core.api import (
    FileStatistic,
    IsolationLevel,
    PrimitiveType,
    Snapshot,
    Transaction,
    UnsupportedOperationError,
    format_path,
)
from delta_plugins.clustering.logic import REQUEST, clustering_columns, readable_columns

__all__ = ["cluster_by"]


def cluster_by(source: Any, columns: Sequence[str], **commit: Any) -> int:
    """Set the columns by which files are clustered from now on; none ends clustering. Returns the version.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The table's latest version.
    columns : sequence of str
        Logical names, dotted for fields of structs.
    **commit
        Arguments of `Transaction.commit`.

    Raises
    ------
    UnsupportedOperationError
        A file lacks statistics of one of the columns, which every file of a clustered table has.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    old = [format_path(p) for p in readable_columns(snapshot.state) or ()]
    said = {"oldClusteringColumns": ",".join(old), "newClusteringColumns": ",".join(columns)}
    # files that are added meanwhile may lack the statistics: no append may be missed
    serializable = IsolationLevel.SERIALIZABLE
    transaction = Transaction(snapshot.context, snapshot, "CLUSTER BY", said, isolation=serializable)
    metadata = snapshot.metadata
    asked = {**metadata.configuration, REQUEST: json.dumps(list(columns))}
    transaction.set_metadata(replace(metadata, configuration=asked))
    _check_statistics(transaction, snapshot)
    transaction.read(None)
    return transaction.commit(**commit).version


def _check_statistics(transaction: Transaction[Snapshot], snapshot: Snapshot) -> None:
    old = readable_columns(snapshot.state) or ()
    new = [p for p in clustering_columns(transaction.table) if p not in old]
    if not new or not snapshot.files.count:
        return
    found = snapshot.files.statistics([FileStatistic("nullCount", p, PrimitiveType("long")) for p in new])
    for path, column in zip(new, found.columns, strict=True):
        if column.null_count:
            raise UnsupportedOperationError(
                f"{column.null_count} file(s) have no statistics of column {format_path(path)}; clustered tables have "
                "them in every file. Rewrite these files, or collect their statistics, first.",
                column=format_path(path),
            )
