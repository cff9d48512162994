"""Tables, snapshots and scans as HTML, for notebooks; nothing is read for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from delta_core.expressions.coercion import spark_name
from delta_core.schema.fields import Schema

__all__ = ["MOST_ROWS", "escaped", "grid", "page", "schema_table"]

#: Rows of a list, beyond which the rest is counted.
MOST_ROWS = 100
#: Characters of a type.
MOST_TEXT = 300
_CELL = 'style="text-align: left; vertical-align: top"'
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def page(title: str, facts: Mapping[str, Any], *tables: str) -> str:
    """Return a heading, facts by name (None and empty ones are left out), and tables."""
    rows = [
        f"<tr><th {_CELL}>{escaped(name)}</th><td {_CELL}>{escaped(value)}</td></tr>"
        for name, value in facts.items()
        if value not in (None, "", ())
    ]
    return f"<div><b>{escaped(title)}</b><table>{''.join(rows)}</table>{''.join(tables)}</div>"


def schema_table(schema: Schema | pa.Schema, partitions: Iterable[str] = ()) -> str:
    """Return a schema's columns: name, type, whether they may be null, and their comment."""
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
    more = f'<tr><td {_CELL} colspan="4">and {left:,} more</td></tr>' if left else ""
    return grid(("column", "type", "", "comment"), rows, more)


def grid(head: Iterable[str], rows: Iterable[Iterable[str]], more: str = "") -> str:
    """Return a table of texts; ``more`` is HTML of further rows."""
    top = "".join(f"<th {_CELL}>{escaped(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td {_CELL}>{escaped(v)}</td>" for v in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}{more}</tbody></table>"


def escaped(value: Any) -> str:
    """Return a value as the text of HTML; the parts of a list are joined with commas."""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    # half of a surrogate pair has no bytes in the notebook's file
    return text.encode(errors="replace").decode().translate(_ESCAPES)
