"""What `DeltaTable`, `Snapshot` and `Scan` share as objects: how they are pickled, and shown in notebooks.

Names are resolved on first use: only notebooks need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.handles.notebooks import page, schema_table

__all__ = ["page", "schema_table"]

__getattr__, __dir__ = lazy_names(__name__, {"delta_core.handles.notebooks": "page schema_table"})
