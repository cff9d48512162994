"""Loaded on first use (`runtime.lazy`): casts, rows as JSON."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernels.decimals import checked_cast as checked_cast
    from delta_core.kernels.json_lines import format_objects as format_objects
