"""Loaded on first use (`runtime.lazy`): descriptions of schemas."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.schema.html import schema_table as schema_table
