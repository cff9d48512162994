"""Deletion vectors through pyroaring (CRoaring); its 32-bit class is the faster one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.ours import Work
from benchmarks.questions import masks_seen, positions_seen, vector_payloads


def _bitmaps(table: Path) -> tuple[list[bytes], int]:
    payloads, rows = vector_payloads(table)
    # magic, bucket count and the only bucket's key go before the 32-bit bitmap
    return [p[16:] for p in payloads], rows


def vector_positions(table: Path, small: Path) -> Work:
    """Decode each vector into an array of 64-bit positions; all are held."""
    from pyroaring import BitMap

    del small
    bitmaps, _ = _bitmaps(table)

    def work() -> float:
        return positions_seen([np.asarray(BitMap.deserialize(b).to_array()).astype(np.int64) for b in bitmaps])

    return work


def vector_masks(table: Path, small: Path) -> Work:
    """Decode each vector into a bit for each row, least significant first; all are held."""
    from pyroaring import BitMap

    del small
    bitmaps, rows = _bitmaps(table)

    def mask(bitmap: bytes) -> NDArray[np.uint8]:
        found = np.zeros(rows, np.bool_)
        found[np.asarray(BitMap.deserialize(bitmap).to_array())] = True
        return np.packbits(found, bitorder="little")

    def work() -> float:
        return masks_seen([mask(b) for b in bitmaps])

    return work


def vector_algebra(table: Path, small: Path) -> Work:
    """Combine each vector with the next one in three ways."""
    from pyroaring import BitMap

    del small
    sets = [BitMap.deserialize(b) for b in _bitmaps(table)[0]]

    def work() -> float:
        found = [(a | b, a & b, a - b) for a, b in pairwise(sets)]
        return sum(len(s) for three in found for s in three)

    return work
