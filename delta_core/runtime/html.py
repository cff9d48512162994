"""Pieces of HTML, for notebooks and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["CELL", "MOST_ROWS", "escaped", "grid", "page"]

#: Rows of a list, beyond which the rest is counted.
MOST_ROWS = 100
CELL = 'style="text-align: left; vertical-align: top"'
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def page(title: str, facts: Mapping[str, Any], *tables: str) -> str:
    """Return a heading, facts by name (None and empty ones are left out), and tables."""
    rows = [
        f"<tr><th {CELL}>{escaped(name)}</th><td {CELL}>{escaped(value)}</td></tr>"
        for name, value in facts.items()
        if value not in (None, "", ())
    ]
    return f"<div><b>{escaped(title)}</b><table>{''.join(rows)}</table>{''.join(tables)}</div>"


def grid(head: Iterable[str], rows: Iterable[Iterable[str]], more: str = "") -> str:
    """Return a table of texts; ``more`` is HTML of further rows."""
    top = "".join(f"<th {CELL}>{escaped(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td {CELL}>{escaped(v)}</td>" for v in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}{more}</tbody></table>"


def escaped(value: Any) -> str:
    """Return a value as the text of HTML; the parts of a list are joined with commas."""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    # half of a surrogate pair has no bytes in the notebook's file
    return text.encode(errors="replace").decode().translate(_ESCAPES)
