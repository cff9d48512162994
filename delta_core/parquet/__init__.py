"""Data files: Parquet read and written, on threads, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.parquet.data_writer import write_parquet_files
    from delta_core.parquet.footers import ArrowFooters, read_schema
    from delta_core.parquet.statistics import footer_statistics, leaves_of, parquet_leaves

__all__ = ["ArrowFooters", "footer_statistics", "leaves_of", "parquet_leaves", "read_schema", "write_parquet_files"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.parquet.data_writer": "write_parquet_files",
        "delta_core.parquet.footers": "ArrowFooters read_schema",
        "delta_core.parquet.statistics": "footer_statistics leaves_of parquet_leaves",
    },
)
