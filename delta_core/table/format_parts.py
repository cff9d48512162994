"""Loaded on first use: the class of Delta tables, which a table of another format does not need."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.table.delta_table import DeltaTable as DeltaTable
