"""Deletion vectors through pyroaring, as far as the positions that a filter needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.ours import Work
from benchmarks.questions import vector_payloads


def vectors(table: Path, small: Path) -> Work:
    """Decode each vector into an array of positions; the 32-bit class is the faster one, and all are held."""
    from pyroaring import BitMap

    del small
    payloads, _ = vector_payloads(table)
    # magic, bucket count and the only bucket's key go before the 32-bit bitmap
    bitmaps = [p[16:] for p in payloads]

    def work() -> float:
        return len([np.asarray(BitMap.deserialize(b).to_array()) for b in bitmaps])

    return work
