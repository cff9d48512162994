"""`DeltaTable.alter` under its short name; it lives in `delta_core.table.alterer`."""

from delta_core.table.alterer import AlteredTable, TableAlterer, TableFeatures

__all__ = ["AlteredTable", "TableAlterer", "TableFeatures"]
