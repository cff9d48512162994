"""Loaded on first use (`runtime.lazy`): descriptions of scans, and vectors of dropped rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.expressions.printing import format_sql
    from delta_core.handles.notebooks import page, schema_table
    from delta_core.kernel.scan.explain import describe_effects, describe_predicate, prune_in_steps
    from delta_core.kernel.scan.vectors import Vectors
    from delta_core.scan.report import RunCounters, ScanReport

__all__ = [
    "RunCounters",
    "ScanReport",
    "Vectors",
    "describe_effects",
    "describe_predicate",
    "format_sql",
    "page",
    "prune_in_steps",
    "schema_table",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernel.scan.explain": "describe_effects describe_predicate prune_in_steps",
        "delta_core.scan.report": "RunCounters ScanReport",
        "delta_core.expressions.printing": "format_sql",
        "delta_core.handles.notebooks": "page schema_table",
        "delta_core.kernel.scan.vectors": "Vectors",
    },
)
