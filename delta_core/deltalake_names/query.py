"""Names of ``deltalake.query``."""

from delta_core.table.delta_table import DeltaTable
from delta_core.table.query import QueryBuilder

__all__ = ["DeltaTable", "QueryBuilder"]
