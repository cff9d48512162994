"""Loaded on first use (`runtime.lazy`): nested columns, footers for PyArrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.parquet.footer_check import check_footer
    from delta_core.parquet.nested_pages import (
        LeafForm,
        NestedChunk,
        NestedColumnStretches,
        assemble_files,
        leaf_forms,
        nested_column,
        read_nested_column,
    )

__all__ = [
    "LeafForm",
    "NestedChunk",
    "NestedColumnStretches",
    "assemble_files",
    "check_footer",
    "leaf_forms",
    "nested_column",
    "read_nested_column",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.parquet.footer_check": "check_footer",
        "delta_core.parquet.nested_pages": (
            "LeafForm NestedChunk NestedColumnStretches assemble_files leaf_forms nested_column read_nested_column"
        ),
    },
)
