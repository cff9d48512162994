"""Loaded on first use (`runtime.lazy`): nested columns, footers for PyArrow."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.parquet.footer_check import check_footer as check_footer
    from delta_core.parquet.nested_pages import (
        LeafForm as LeafForm,
        NestedChunk as NestedChunk,
        NestedColumnStretches as NestedColumnStretches,
        assemble_files as assemble_files,
        leaf_forms as leaf_forms,
        nested_column as nested_column,
        read_nested_column as read_nested_column,
    )
