"""The parts that `DeltaTable`, `Snapshot` and `Scan` share as objects: how they are pickled, and shown to people.

Names are resolved on first use: only notebooks and terminals need them.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.handles.preview import table_page as table_page
    from delta_core.runtime.html import MOST_ROWS as MOST_ROWS, grid as grid, page as page
    from delta_core.runtime.progress_bars import progress_bar as progress_bar
    from delta_core.schema.html import schema_table as schema_table
