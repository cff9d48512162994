"""Tables as notebooks show them: how large they are, their first rows, and how they grew."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from delta_core.handles.charts import bars
from delta_core.runtime.html import escaped, grid, page
from delta_core.runtime.sizes import size_text
from delta_core.schema.html import schema_table

__all__ = ["table_page"]

_log = logging.getLogger(__name__)
#: Rows and columns of a preview, characters of a value, and versions of the chart.
ROWS, COLUMNS, CHARACTERS, VERSIONS = 5, 20, 60, 30
#: The chart has the colour of the notebook's text, so that it is legible in light and dark ones.
_CHART = "<style>.delta-chart svg { max-width: 480px; display: block; fill: currentColor; font-size: 11px }</style>"


def table_page(
    title: str,
    facts: Mapping[str, Any],
    schema: Any,
    partitions: Sequence[str],
    size: Callable[[], Mapping[str, int | None]],
    head: Callable[[int], pa.Table],
    history: Callable[[int], Sequence[Mapping[str, Any]]],
) -> str:
    """Return a table as HTML. Parts that fail to be read are left out: a view never fails.

    Parameters
    ----------
    title : str
        The heading.
    facts : Mapping
        The facts that are known without a read, by name.
    schema : Schema or pyarrow.Schema
        The columns.
    partitions : sequence of str
        The partition columns.
    size : function() -> Mapping
        ``rows``, ``files`` and ``bytes``; None where it is not known.
    head : function(int) -> pyarrow.Table
        Some rows, at most as many.
    history : function(int) -> sequence of Mapping
        The latest commits, newest first, at most as many.
    """
    sizes = _try(size, {})
    counted = {
        "rows": _number(sizes.get("rows")),
        "files": _number(sizes.get("files")),
        "size": None if sizes.get("bytes") is None else size_text(sizes["bytes"]),
    }
    shown = _try(lambda: preview(head(ROWS)), "")
    chart = _try(lambda: recent_versions(history(VERSIONS)), "")
    return page(title, {**facts, **counted}, schema_table(schema, partitions), shown, chart)


def _try(call: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return call()
    except Exception as e:  # noqa: BLE001  # a notebook shows the rest
        _log.debug("A view leaves out what can't be read: %s", e)
        return otherwise


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def preview(rows: pa.Table) -> str:
    """Return the first rows of a table as HTML."""
    names = rows.column_names[:COLUMNS]
    cells = [[_text(value) for value in rows.column(i).slice(0, ROWS)] for i in range(len(names))]
    head = [*names, *(["..."] if rows.num_columns > COLUMNS else [])]
    found = [[*row, *(["..."] if rows.num_columns > COLUMNS else [])] for row in zip(*cells, strict=True)]
    return f"<p>First rows</p>{grid(head, found)}" if found else ""


def _text(value: pa.Scalar) -> str:
    text = "null" if not value.is_valid else str(value.as_py())
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"


def recent_versions(commits: Sequence[Mapping[str, Any]]) -> str:
    """Return a chart of the rows that each of the latest versions wrote, or deleted, as HTML."""
    found = list(reversed(commits))
    rows = [_written(commit) for commit in found]
    if len(found) < 2 or not any(rows):  # nothing to compare, or a format whose history has no numbers of rows
        return ""
    titles = [
        f"version {c['version']}, {_day(c)}: {c.get('operation') or 'unknown'}{f', {n:,} rows' if n else ''}"
        for c, n in zip(found, rows, strict=True)
    ]
    drawn = bars([str(c["version"]) for c in found], rows, titles)
    lead = f"Rows that recent versions wrote or deleted. Latest: {escaped(titles[-1])}"
    return f'<div class="delta-chart">{_CHART}<p>{lead}</p>{drawn}</div>'


def _written(commit: Mapping[str, Any]) -> int:
    metrics = commit.get("operationMetrics") or {}
    for name in ("numOutputRows", "numTargetRowsInserted", "numUpdatedRows", "numDeletedRows"):
        text = str(metrics.get(name, ""))
        if text.isdigit():
            return int(text)
    return 0


def _day(commit: Mapping[str, Any]) -> str:
    ms = commit.get("timestamp")
    return "time unknown" if ms is None else f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"
