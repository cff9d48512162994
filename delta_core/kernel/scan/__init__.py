"""From what is requested of a table to its rows.

Names are resolved on first use: opening a table reads no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.scan.scan import Scan
    from delta_core.kernel.scan.vectors import read_dropped_rows, read_row_sets

__all__ = ["Scan", "read_dropped_rows", "read_row_sets"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {"delta_core.kernel.scan.scan": "Scan", "delta_core.kernel.scan.vectors": "read_dropped_rows read_row_sets"},
)
