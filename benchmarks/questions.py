"""What every side is queried, and the bytes that every side decodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Rows that each made-up file claims to hold; ``id`` is unique over the table and ascending within a file.
ROWS_PER_FILE = 1_000
FIRST_FILE = 12_345
DAY = "2022-03-17"
PARTITION = f"event_date = '{DAY}'"
#: The scale of the tables that sides warm up on.
SMALLEST = 0.001
#: Ten files by their statistics, whatever the scale.
RANGE = f"id >= {FIRST_FILE * ROWS_PER_FILE} and id < {(FIRST_FILE + 10) * ROWS_PER_FILE}"


def vector_payloads(table: Path) -> tuple[list[bytes], int]:
    """Return the payload of each vector of a table's first commit, and the rows of its files."""
    payloads, rows = [], 0
    [file] = table.glob("deletion_vector_*.bin")
    body = file.read_bytes()
    for line in (table / "_delta_log" / f"{0:020}.json").read_text().splitlines():
        add = json.loads(line).get("add")
        if add:
            vector = add["deletionVector"]
            start = vector["offset"] + 4
            payloads.append(body[start : start + vector["sizeInBytes"]])
            rows = json.loads(add["stats"])["numRecords"]
    return payloads, rows


def positions_seen(found: Sequence[NDArray[np.integer]]) -> int:
    """Return a number that differs between arrays of positions, from their lengths and ends."""
    return sum(len(p) + int(p[0]) + int(p[-1]) for p in found)


def masks_seen(found: Sequence[NDArray[np.uint8]]) -> int:
    """Return a number that differs between bit masks, from their lengths and ends."""
    return sum(len(m) + int(m[:512].sum(dtype=np.int64)) + int(m[-512:].sum(dtype=np.int64)) for m in found)
