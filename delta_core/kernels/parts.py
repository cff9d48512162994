"""Loaded on first use (`runtime.lazy`): nested columns, footers for PyArrow, casts, rows as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernels.decimals import checked_cast
    from delta_core.kernels.footer_check import check_footer
    from delta_core.kernels.json_lines import format_objects
    from delta_core.kernels.parquet_nested import (
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
    "checked_cast",
    "format_objects",
    "leaf_forms",
    "nested_column",
    "read_nested_column",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernels.decimals": "checked_cast",
        "delta_core.kernels.footer_check": "check_footer",
        "delta_core.kernels.json_lines": "format_objects",
        "delta_core.kernels.parquet_nested": (
            "LeafForm NestedChunk NestedColumnStretches assemble_files leaf_forms nested_column read_nested_column"
        ),
    },
)
