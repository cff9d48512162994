"""From what is asked of a table to its rows.

Names are resolved on first use: opening a table reads no rows.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_core.scan.scan import Scan
    from delta_core.scan.vectors import read_row_sets

__all__ = ["Scan", "read_row_sets"]

_HOME = {"Scan": "scan", "read_row_sets": "vectors"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'delta_core.scan' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"delta_core.scan.{_HOME[name]}"), name)
    globals()[name] = value
    return value
