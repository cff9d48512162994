"""Loaded on first use (`runtime.lazy`): PyArrow's reader, files on remote stores, and dates of old calendars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.parquet.legacy_calendar import read_calendar
    from delta_core.parquet.reader import ParquetFile
    from delta_core.storage.prefetch import Prefetch, RangedSource

__all__ = ["ParquetFile", "Prefetch", "RangedSource", "read_calendar"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.parquet.legacy_calendar": "read_calendar",
        "delta_core.parquet.reader": "ParquetFile",
        "delta_core.storage.prefetch": "Prefetch RangedSource",
    },
)
