"""WriterProperties to the arguments of pyarrow's Parquet writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_core.engines.writer_properties import (
    BloomFilterProperties,
    ColumnProperties,
    WriterProperties,
    default_level,
)
from delta_core.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedOperationError, did_you_mean
from delta_core.kernels.arrow_buffers import ARROW_VERSION
from delta_core.parquet.statistics import parquet_leaves
from delta_core.schema.fields import Path

__all__ = ["ROW_GROUP_ROWS", "columns_to_code", "parquet_options", "without_statistics"]

#: The most rows of a row group if nothing is specified, and the distinct values that Bloom filters are made for.
ROW_GROUP_ROWS = 1 << 20
#: Arguments of PyArrow's writer that older versions of it lack: the first version with each, and the property.
_NEWER = {
    "max_rows_per_page": (23, "data_page_row_count_limit"),
    "bloom_filter_options": (24, "bloom_filter_properties"),
}


def parquet_options(schema: pa.Schema, properties: WriterProperties, statistics: Sequence[Path]) -> dict[str, Any]:
    """Return keyword arguments for ``pyarrow.parquet.ParquetWriter``.

    Only strings are dictionary encoded unless requested otherwise: for numbers it costs more than it saves. Footers
    have statistics of every column that the table's log needs, whatever the properties specify.
    """
    # pyarrow takes columns by their paths joined by dots, which several columns may share
    columns: dict[str, list[pa.DataType]] = {}
    for path, t, _ in parquet_leaves(schema):
        columns.setdefault(".".join(path), []).append(t)
    chosen = _by_leaf(columns, properties)
    dictionary = [p for p, types in columns.items() if all(_uses_dictionary(t, chosen[p]) for t in types)]
    needed = {".".join(p) for p in statistics}
    bounds = [p for p in columns if p in needed or (chosen[p].statistics_enabled or "CHUNK").upper() != "NONE"]
    codec, level = _codec(properties.compression or "SNAPPY"), properties.compression_level
    options: dict[str, Any] = {
        "version": "2.6",
        "store_schema": False,
        "store_decimal_as_integer": True,
        "use_dictionary": dictionary or False,
        "write_statistics": True if len(bounds) == len(columns) else bounds or False,
        "compression": codec,
        "data_page_version": properties.data_page_version or "1.0",
        "compression_level": default_level(codec) if level is None else level,
        "data_page_size": properties.data_page_size_limit,
        "dictionary_pagesize_limit": properties.dictionary_page_size_limit,
        "write_batch_size": properties.write_batch_size,
    }
    if properties.data_page_row_count_limit is not None:
        options["max_rows_per_page"] = properties.data_page_row_count_limit
    encodings = {p: c.encoding.upper() for p, c in chosen.items() if c.encoding is not None and p not in dictionary}
    if encodings:
        options["column_encoding"] = {p: encodings.get(p, "PLAIN") for p in columns if p not in dictionary}
    rows = properties.max_row_group_size or ROW_GROUP_ROWS
    given = ((p, c.bloom_filter_properties) for p, c in chosen.items())
    filters = {p: _filter(b, rows) for p, b in given if b is not None and _wanted(b)}
    if filters:
        options["bloom_filter_options"] = filters
    if any((c.statistics_enabled or "").upper() == "PAGE" for c in chosen.values()):
        options["write_page_index"] = True
    _check_version(options)
    return options


def _check_version(options: Mapping[str, Any]) -> None:
    for argument, (version, given) in _NEWER.items():
        if argument in options and version > ARROW_VERSION:
            raise UnsupportedOperationError(
                f"{given} needs pyarrow {version} or newer, and pyarrow {pa.__version__} is installed. Install a newer "
                "one, or leave it out of the writer properties."
            )


def columns_to_code(schema: pa.Schema, properties: WriterProperties, options: Mapping[str, Any]) -> dict[str, int]:
    """Return the top-level columns of strings that PyArrow is to encode with a dictionary as it does by default.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the file.
    properties : WriterProperties
        The requested properties; a column with properties of its own is left out.
    options : Mapping
        The result of `parquet_options` for both.

    Returns
    -------
    dict of str to int
        The number of each column among the leaves.
    """
    limits = properties.default_column_properties, properties.dictionary_page_size_limit
    if any(x is not None for x in limits) or options.keys() & {"write_page_index", "bloom_filter_options"}:
        return {}
    leaves = [(".".join(path), number) for path, _, number in parquet_leaves(schema)]
    counts = Counter(name for name, _ in leaves)
    coded = frozenset(options["use_dictionary"] or ())
    given = tuple(properties.column_properties or ())
    measured = options["write_statistics"]
    with_bounds = counts.keys() if measured is True else frozenset(measured or ())
    return {
        name: number
        for name, number in leaves
        if name in coded
        and schema.get_field_index(name) >= 0
        and pa.types.is_string(schema.field(name).type)
        and name in with_bounds
        and counts[name] == 1
        and not any(name == n or name.startswith(f"{n}.") for n in given)
    }


def without_statistics(schema: pa.Schema, columns: Collection[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with which PyArrow measures none of some columns."""
    found = options["write_statistics"]
    paths = [".".join(path) for path, _, _ in parquet_leaves(schema)] if found is True else found or []
    left_out = frozenset(columns)
    return {**options, "write_statistics": [p for p in paths if p not in left_out] or False}


def _by_leaf(columns: Collection[str], properties: WriterProperties) -> dict[str, ColumnProperties]:
    default = properties.default_column_properties or ColumnProperties()
    given = dict(properties.column_properties or {})
    found = {}
    for path in columns:
        names = [n for n in given if path == n or path.startswith(f"{n}.")]
        found[path] = given[max(names, key=len)] if names else default
    unknown = [n for n in given if not any(p == n or p.startswith(f"{n}.") for p in columns)]
    if unknown:
        raise ColumnNotFoundError(
            f"Writer properties name the column {unknown[0]!r}, which the data files do not have; they have: "
            f"{', '.join(list(columns)[:20])}.{did_you_mean(unknown[0], columns)}",
            column=unknown[0],
        )
    return found


def _uses_dictionary(t: pa.DataType, chosen: ColumnProperties) -> bool:
    if pa.types.is_boolean(t) or pa.types.is_null(t):
        return False
    if chosen.dictionary_enabled is not None:
        return chosen.dictionary_enabled
    return chosen.encoding is None and bool(pa.types.is_string(t))


def _codec(name: str) -> str:
    codec = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(name.upper(), name.upper())
    if codec != "NONE" and not pa.Codec.is_available(codec.lower()):
        raise InvalidArgumentError(
            f"Compression {name!r} is not available in this build of pyarrow. Choose another one."
        )
    return codec


def _wanted(given: BloomFilterProperties) -> bool:
    if given.set_bloom_filter_enabled is None:
        return given.fpp is not None or given.ndv is not None
    return given.set_bloom_filter_enabled


def _filter(given: BloomFilterProperties, rows: int) -> dict[str, Any]:
    # PyArrow sizes a filter for the row groups that it would make itself, of 67,108,864 rows: 64 MB in memory for each
    # column of each row group until the file is closed
    return {"ndv": given.ndv or rows, **({} if given.fpp is None else {"fpp": given.fpp})}
