"""Loaded on first use (`runtime.lazy`): applied plans, descriptions, files for other readers, vectors."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.expressions.printing import format_sql as format_sql
    from delta_core.kernel.scan.apply import CompiledPlan as CompiledPlan
    from delta_core.kernel.scan.explain import (
        describe_effects as describe_effects,
        describe_predicate as describe_predicate,
        prune_in_steps as prune_in_steps,
    )
    from delta_core.kernel.scan.scan_files import PlanContext as PlanContext, ScanFiles as ScanFiles
    from delta_core.kernel.scan.vectors import Vectors as Vectors
    from delta_core.runtime.html import page as page
    from delta_core.scan.report import RunCounters as RunCounters, ScanReport as ScanReport
    from delta_core.schema.html import schema_table as schema_table
