"""Expressions: the tree (`ast`), its text (`sql`, `printing`), its types (`binding`), and pruning (`skipping`)."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.expressions.binding import bind as bind
    from delta_core.expressions.filters import (
        from_filters as from_filters,
        is_pyarrow as is_pyarrow,
        to_condition as to_condition,
        to_expression as to_expression,
    )
    from delta_core.expressions.functions import is_builtin as is_builtin
    from delta_core.expressions.printing import format_sql as format_sql
    from delta_core.expressions.skipping import SkippingPlan as SkippingPlan, plan_skipping as plan_skipping
    from delta_core.expressions.sql import parse_sql as parse_sql
