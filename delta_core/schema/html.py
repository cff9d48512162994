"""Schemas as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from delta_core.runtime.html import CELL, MOST_ROWS, grid
from delta_core.schema.types import spark_name

__all__ = ["schema_table"]

#: Characters of a type.
MOST_TEXT = 300


def schema_table(schema: Any, partitions: Iterable[str] = ()) -> str:
    """Return the columns of a `Schema` or a pyarrow.Schema: name, type, whether they may be null, and their comment."""
    by = frozenset(partitions)
    fields = list(schema)
    rows = []
    for field in fields[:MOST_ROWS]:
        kind = str(field.type) if isinstance(field, pa.Field) else spark_name(field.type)
        notes = ["partition"] * (field.name in by) + ["not null"] * (not field.nullable)
        comment = (field.metadata or {}).get("comment") or ""
        rows.append(
            (field.name, kind if len(kind) <= MOST_TEXT else f"{kind[:MOST_TEXT]} ...", ", ".join(notes), comment)
        )
    left = len(fields) - len(rows)
    more = f'<tr><td {CELL} colspan="4">and {left:,} more</td></tr>' if left else ""
    return grid(("column", "type", "", "comment"), rows, more)
