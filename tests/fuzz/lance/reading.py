"""Everything that a reader does with one data file that may be damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.conditions import NullTest, TextBound, ValueRange
from delta_core.errors import CorruptTableError, SchemaError, UnsupportedFeatureError
from delta_core.kernels.arrow_buffers import is_text
from delta_core.parquet.pages import compiled_test
from delta_plugins.lance.files import (
    MOST_SMALL_BYTES,
    DataFile,
    LeafTest,
    SmallFilesReader,
    is_leaf,
    layout_to_test,
    open_data_file,
)
from delta_plugins.lance.projection import pruned
from delta_plugins.lance.schema import LanceField, arrow_field
from tests.lance.made_files import MemoryBytes
from tests.lance.recorded_files import as_array

__all__ = ["check_together", "read_damaged"]

#: Files that claim more rows are read in part.
_MOST_ROWS = 100_000
#: Of PyArrow's errors, those about numbers that the type has bits for.
_OF_NUMBERS = ("whole number of days", "precision", "acceptable range")


def read_damaged(data: bytes, fields: Any, columns: dict[int, int], version: tuple[int, int]) -> bool:
    """Read all rows, two rows and the rows of conditions, check them, and return whether the file was rejected."""
    try:
        file = _opened(data, version)
        rows = None if file.num_rows < _MOST_ROWS else (0, 1000)
        arrays = [as_array(a) for a in file.read(fields, columns, rows)]
        if file.num_rows > 2:
            file.read(fields, columns, np.array([0, file.num_rows - 1]))
        _test(file, fields, columns, rows)
    except (CorruptTableError, UnsupportedFeatureError, SchemaError):
        return True
    for array in arrays:
        why = _invalid(array)
        # any number may be stored
        assert not why or any(text in why for text in _OF_NUMBERS), why
    return False


def check_together(
    fields: Any, columns: dict[int, int], version: tuple[int, int], paths: Sequence[Path], is_rejected: bool
) -> None:
    """Read a sound file and a damaged copy of it together; the rows are those of the files by themselves."""
    sizes = [p.stat().st_size for p in paths]
    reader = SmallFilesReader(fields, columns, version)
    if not reader.is_usable or max(sizes) > MOST_SMALL_BYTES:
        return
    sound = _opened(paths[0].read_bytes(), version)
    rows = np.full(len(paths), sound.num_rows, np.int64)
    together = reader.read([os.fspath(p) for p in paths], np.array(sizes, np.int64), rows)
    if together is None:
        return
    assert not is_rejected, "files read together have rows that one of them by itself does not have"
    files = [sound, _opened(paths[1].read_bytes(), version)]
    assert files[1].num_rows == sound.num_rows
    parts = [[as_array(a) for a in f.read(fields, columns)] for f in files]
    for found, *expected in zip(together, *parts, strict=True):
        assert _are_equal(found, pa.concat_arrays(expected)), "rows of files that are read together differ"


def _opened(data: bytes, version: tuple[int, int]) -> DataFile:
    source = MemoryBytes(data)
    return open_data_file(source, source.size, path="damaged.lance", major=version[0], minor=version[1])


def _are_equal(found: pa.Array, expected: pa.Array) -> bool:
    if found.equals(expected):
        return True
    try:
        # NaN is not equal to itself
        return repr(found.to_pylist()) == repr(expected.to_pylist())
    except (OverflowError, ValueError):  # Python has no value for it
        return len(found) == len(expected)


def _test(file: DataFile, fields: Any, columns: dict[int, int], rows: tuple[int, int] | None) -> None:
    """Test the values of each column that can be tested before it is decoded."""
    for path in (p for f in fields for p in _paths((f,))):
        leaf = path[-1]
        of, layout = arrow_field(leaf).type, layout_to_test(leaf)
        if layout is None:
            continue
        number = 0.0 if pa.types.is_floating(of) else 0
        likely = TextBound(0, b"m") if is_text(of) else ValueRange(0, number, number)
        for condition in (NullTest(0, True), likely):
            test = compiled_test(condition, of)
            width = 1 if layout.bits == 1 else layout.bits // 8
            if test is not None and test.fits_form(width, layout.bits == 1):
                passes_null = isinstance(condition, NullTest)
                whole = LeafTest(0, pruned(path), leaf, layout.bits, layout.is_wide, test, passes_null)
                assert (np.diff(file.passing(whole, columns, rows)) > 0).all()


def _paths(path: tuple[LanceField, ...]) -> Iterator[tuple[LanceField, ...]]:
    """Yield the paths of the fields that are in a field, or in structs within it."""
    if path[-1].logical_type != "struct" or is_leaf(path[-1]):
        yield path
        return
    for child in path[-1].children:
        yield from _paths((*path, child))


def _invalid(array: pa.Array) -> str:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as e:
        return str(e)
    return ""
