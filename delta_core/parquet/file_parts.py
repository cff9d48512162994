"""Loaded on first use (`runtime.lazy`): PyArrow's reader, files on remote stores, and dates of old calendars."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.parquet.legacy_calendar import read_calendar as read_calendar
    from delta_core.parquet.reader import ParquetFile as ParquetFile
    from delta_core.storage.prefetch import Prefetch as Prefetch, RangedSource as RangedSource
