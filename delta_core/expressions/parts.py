"""Loaded on first use (`runtime.lazy`): long lists, patterns, and readers of filters in other forms."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.expressions.implied import implied_range as implied_range
    from delta_core.expressions.members import (
        cast_values as cast_values,
        expand as expand,
        from_arrow as from_arrow,
        from_literals as from_literals,
        from_python as from_python,
        from_text as from_text,
        look_up as look_up,
    )
    from delta_core.expressions.patterns import parse_like as parse_like
    from delta_core.expressions.pyarrow_filters import from_pyarrow as from_pyarrow
    from delta_core.expressions.sqlglot_trees import parse_with_sqlglot as parse_with_sqlglot
