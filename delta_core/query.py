"""SQL over tables under its short name; it lives in `delta_core.table.query`."""

from delta_core.table.query import QueryBuilder

__all__ = ["QueryBuilder"]
