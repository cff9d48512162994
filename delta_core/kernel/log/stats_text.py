"""Parsed statistics back to JSON text, for files whose checkpoint keeps nothing else. Protocol: Per-file Statistics."""

from __future__ import annotations

import pyarrow as pa

from delta_core.kernels import compute as pc, parts as kernels

__all__ = ["statistics_text"]


def statistics_text(parsed: pa.StructArray) -> pa.Array:
    """Return ``stats_parsed`` as ``stats``: null if it is null.

    Timestamps are floored to milliseconds, as everywhere in the text; bounds that JSON can't hold (NaN, infinities, and
    values of types without a text form) are left out, that is unknown.

    Parameters
    ----------
    parsed : struct array, **shape (n,)**
        The column ``stats_parsed``.
    """
    return kernels.format_objects(_plain(parsed))


def _plain(column: pa.Array) -> pa.Array:
    """Return a column in types that have a JSON form."""
    kind = column.type
    if pa.types.is_struct(kind):
        parts = [_plain(column.field(i)) for i in range(kind.num_fields)]
        typed = [(f.name, p) for f, p in zip(kind, parts, strict=True) if not pa.types.is_null(p.type)]
        if not typed:
            return pa.nulls(len(column))
        return pa.StructArray.from_arrays([p for _, p in typed], [n for n, _ in typed], mask=pc.is_null(column))
    if pa.types.is_date(kind):
        return pc.cast(column, pa.string())
    if pa.types.is_timestamp(kind):
        millis = pc.cast(
            pc.floor_temporal(pc.cast(column, pa.timestamp(kind.unit)), unit="millisecond"), pa.timestamp("ms")
        )
        return pc.strftime(millis, "%Y-%m-%dT%H:%M:%SZ" if kind.tz else "%Y-%m-%dT%H:%M:%S")
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), column, None)
    known = (
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    )
    return column if known else pa.nulls(len(column))
