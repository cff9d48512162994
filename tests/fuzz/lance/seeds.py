"""The files that are damaged, by their version: recorded ones, and in the versions that are written ones of our own."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from delta_core.errors import UnsupportedFeatureError
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.files import DataFileWriter, column_map
from delta_plugins.lance.manifest import file_version
from tests.lance.made_arrays import CASES, made_array
from tests.lance.recorded_files import FOLDER, datasets, fields_of, manifests

__all__ = ["Seed", "VERSIONS", "damaged", "recorded_seeds", "seeds"]

VERSIONS = ((0, 1), (2, 0), (2, 1), (2, 2))
#: Larger files take too long for each input.
_MOST_BYTES = 100_000
#: A file, its fields, the column of each field, and its version as manifests spell it.
Seed = tuple[bytes, Any, dict[int, int], tuple[int, int]]


def recorded_seeds(name: str, most_bytes: int) -> Iterator[Seed]:
    """Yield the files of the first fragment of a recorded dataset's latest version."""
    assert FOLDER is not None
    manifest = list(manifests(name))[-1]
    fields = fields_of(manifest["fields"])
    for fragment in manifest["fragments"][:1]:
        for file in fragment["files"]:
            path = FOLDER / name / "data" / file["path"]
            if path.exists() and path.stat().st_size < most_bytes:
                columns = column_map(file["fields"], file["column_indices"])
                yield path.read_bytes(), fields, columns, (file["file_major_version"], file["file_minor_version"])


def _made(version: tuple[int, int]) -> Iterator[Seed]:
    for name, (of, _) in CASES.items():
        array = made_array(name, "some", 300)
        schema = pa.schema([pa.field("c", of)])
        fields = lance_fields(schema)
        out = io.BytesIO()
        try:
            writer = DataFileWriter(out, fields, version=version, page_bytes=2000)
            writer.write(pa.record_batch([array], schema=schema))
            file = writer.finish()
        except UnsupportedFeatureError:
            continue
        yield out.getvalue(), fields, column_map(file.fields, file.column_indices), version


def seeds(version: tuple[int, int]) -> list[Seed]:
    """Return the files of a version; none if it is neither written nor recorded here."""
    names = datasets() if FOLDER is not None else []
    listed = [s for n in names for s in recorded_seeds(n, _MOST_BYTES)]
    found = [s for s in listed if file_version(*s[3], "a seed") == version]
    return found + (list(_made(version)) if version >= (2, 1) else [])


def damaged(data: bytes, choose: random.Random, other: bytes = b"") -> bytes:
    """Change a few places, most of them near the end, where the metadata are: bits, numbers, cuts and splices."""
    out = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 5))):
        low = max(len(out) - 3000, 0) if choose.random() < 0.5 else 0
        at = choose.randrange(low, max(len(out), low + 1))
        kind = choose.randrange(7)
        if kind == 0 and out:
            out[at] ^= 1 << choose.randrange(8)
        elif kind == 1:
            width = choose.choice((1, 2, 4, 8))
            value = choose.choice((0, 1, len(data), (1 << 8 * width) - 1, 1 << 8 * width - 1)) % (1 << 8 * width)
            # numbers lie at multiples of their width
            at -= choose.choice((0, at % width))
            out[at : at + width] = value.to_bytes(width, "little")
        elif kind == 2:
            del out[at : at + choose.randrange(1, 40)]
        elif kind == 3:
            start = choose.randrange(max(len(out), 1))
            out[at : at + 8] = out[start : start + choose.randrange(1, 24)]
        elif kind == 4 and out:
            out[at] = choose.randrange(256)
        elif kind == 5 and choose.random() < 0.2:
            del out[at:-16]
        elif kind == 6 and other:
            start = choose.randrange(len(other))
            size = choose.choice((8, 64, 1024))
            out[at : at + size] = other[start : start + size]
    return bytes(out)
