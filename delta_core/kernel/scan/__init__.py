"""From what is requested of a table to its rows.

Names are resolved on first use: opening a table reads no rows.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.scan.scan import Scan as Scan
    from delta_core.kernel.scan.vectors import read_dropped_rows as read_dropped_rows, read_row_sets as read_row_sets
