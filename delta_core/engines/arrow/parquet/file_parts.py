"""What reads files of remote stores and dates of old calendars, loaded on first use: most files need neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.engines.arrow.parquet.legacy_calendar import read_calendar
    from delta_core.engines.arrow.storage.prefetch import Prefetch, RangedSource

__all__ = ["Prefetch", "RangedSource", "read_calendar"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.engines.arrow.parquet.legacy_calendar": "read_calendar",
        "delta_core.engines.arrow.storage.prefetch": "Prefetch RangedSource",
    },
)
