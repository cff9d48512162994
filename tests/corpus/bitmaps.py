"""Roaring bitmaps of every container, as CRoaring writes them (through pyroaring), and the same with bytes changed."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["write_bitmaps"]

MANY = [*range(0, 60_000, 3), 65_535]
RUNS = [*range(70_000), *range(131_072, 140_000)]
#: Name, bits, values, and whether runs are encoded as such.
BITMAPS: list[tuple[str, int, Iterable[int], bool]] = [
    ("empty", 32, [], False),
    ("one", 32, [7], False),
    ("array", 32, range(0, 9_000, 9), False),
    ("bits", 32, MANY, False),
    ("runs", 32, RUNS, True),
    ("runs_as_bits", 32, RUNS, False),
    ("mixed", 32, [*MANY, *range(65_536, 70_000, 8), *range(200_000, 300_000)], True),
    ("four_containers_with_runs", 32, [c << 16 | v for c in range(4) for v in range(20)], True),
    ("largest", 32, [0, 2**32 - 1], False),
    ("empty", 64, [], False),
    ("array", 64, range(0, 9_000, 9), False),
    ("buckets", 64, [*range(100), *(2**33 + v for v in range(0, 500, 5)), 2**40, 2**62], False),
    ("runs", 64, [*RUNS, *(2**35 + v for v in range(70_000))], True),
]


def _changed(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + value + data[offset + len(value) :]


#: What is done to the bytes of one bitmap, so that no reader may take them.
DAMAGED: dict[str, tuple[str, int, Callable[[bytes], bytes]]] = {
    "nothing": ("array", 32, lambda data: b""),
    "header_cut_off": ("array", 32, lambda data: data[:6]),
    "array_cut_off": ("array", 32, lambda data: data[:-1]),
    "bits_cut_off": ("bits", 32, lambda data: data[:5_000]),
    "runs_cut_off": ("runs", 32, lambda data: data[:-3]),
    "other_cookie": ("array", 32, _changed(0, struct.pack("<I", 12_345))),
    "too_many_containers": ("array", 32, _changed(4, struct.pack("<I", 70_000))),
    "more_containers_than_bytes": ("array", 32, _changed(4, struct.pack("<I", 60_000))),
    "more_values_than_bytes": ("array", 32, _changed(10, struct.pack("<H", 4_000))),
    "bucket_cut_off": ("buckets", 64, lambda data: data[:-9]),
    "more_buckets_than_bytes": ("buckets", 64, _changed(0, struct.pack("<Q", 2**40))),
}


def write_bitmaps(folder: Path) -> list[dict[str, Any]]:
    """Write a file for each bitmap, and return their records."""
    import pyroaring

    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.bin"):
        old.unlink()
    written: dict[tuple[str, int], bytes] = {}
    records = []
    for name, bits, values, runs in BITMAPS:
        bitmap = (pyroaring.BitMap if bits == 32 else pyroaring.BitMap64)(values, optimize=runs)
        written[name, bits] = bitmap.serialize()
        found = sorted(bitmap)
        record = {"file": f"{name}_{bits}.bin", "bits": bits, "expect": "values", "cardinality": len(found)}
        record |= {"min": found[0] if found else None, "max": found[-1] if found else None}
        record["values_sha256_le64"] = hashlib.sha256(struct.pack(f"<{len(found)}Q", *found)).hexdigest()
        records.append(record)
        (folder / record["file"]).write_bytes(written[name, bits])
    for name, (source, bits, change) in DAMAGED.items():
        records.append({"file": f"damaged_{name}.bin", "bits": bits, "expect": "error"})
        (folder / f"damaged_{name}.bin").write_bytes(change(written[source, bits]))
    return records
