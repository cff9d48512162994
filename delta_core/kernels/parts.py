"""Loaded on first use (`runtime.lazy`): casts, rows as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernels.decimals import checked_cast
    from delta_core.kernels.json_lines import format_objects

__all__ = ["checked_cast", "format_objects"]

__getattr__, __dir__ = lazy_names(
    __name__, {"delta_core.kernels.decimals": "checked_cast", "delta_core.kernels.json_lines": "format_objects"}
)
