"""`DeltaTable.optimize` under its short name; it lives in `delta_core.table.optimizer`."""

from delta_core.table.optimizer import TableOptimizer

__all__ = ["TableOptimizer"]
