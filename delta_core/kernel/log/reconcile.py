"""Action reconciliation over a run of commits: which file actions are the newest for their key.

Protocol: Action Reconciliation. The key of a logical file is (path, deletion vector id). Newer commits win; within a
commit the later line. Checkpoints never enter here: their rows only query the keys of the commits above them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, number_array
from delta_core.kernels.dedup import KeySet
from delta_core.kernels.json_actions import ParsedActions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

__all__ = ["Reconciled", "reconcile"]


class Reconciled(Struct, frozen=True):
    """The outcome for a run of commits.

    Parameters
    ----------
    adds, removes : bool[n]
        Which rows of the parsed tables are the newest for their key: live files, and tombstones.
    keys : KeySet
        Every key that the run touched: it hides older state.
    """

    adds: Mask
    removes: Mask
    keys: KeySet


def reconcile(actions: ParsedActions, compacted: Collection[int] = ()) -> Reconciled:
    """Reconcile adds and removes, newest first; linear in their number.

    Parameters
    ----------
    actions : ParsedActions
        The file actions of the commits, with their version and line; in any order.
    compacted : collection of int
        End versions of compacted files. Such a file should hold each key once; if one does not, its writer put
        the newest first.
    """
    adds, removes = actions.adds, actions.removes
    keys = KeySet()
    new_adds = keys.insert(adds.column("path"), _ids(adds))
    new_removes = keys.insert(removes.column("path"), _ids(removes))
    if len(keys) == adds.num_rows + removes.num_rows:
        return Reconciled(new_adds, new_removes, keys)
    return _newest_first(adds, removes, np.array(sorted(compacted), np.int64))


def _ids(table: pa.Table) -> pa.ChunkedArray | None:
    ids = table.column("dvId")
    return None if ids.null_count == len(ids) else ids


def _newest_first(adds: pa.Table, removes: pa.Table, compacted: NDArray[np.int64]) -> Reconciled:
    place = np.concatenate([_place(adds, compacted), _place(removes, compacted)])
    order = np.argsort(place, kind="stable")[::-1]
    both = pc.take(
        pa.concat_tables([adds.select(["path", "dvId"]), removes.select(["path", "dvId"])]), number_array(order)
    )
    keys = KeySet()
    first = keys.insert(both.column("path"), _ids(both))
    newest = np.zeros(len(order), bool)
    newest[order] = first
    return Reconciled(newest[: adds.num_rows], newest[adds.num_rows :], keys)


def _place(table: pa.Table, compacted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers that order actions by commit and line."""
    version, line = (int64_values(table.column(name)) for name in ("version", "line"))
    if len(compacted):
        line = np.where(np.isin(version, compacted), -line, line)
    place: NDArray[np.int64] = (version << 32) + line
    return place
