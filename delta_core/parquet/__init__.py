"""Data files: Parquet read and written, on threads, in bounded memory."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.parquet.data_writer import write_parquet_files as write_parquet_files
    from delta_core.parquet.footers import ArrowFooters as ArrowFooters, read_schema as read_schema
    from delta_core.parquet.statistics import (
        footer_statistics as footer_statistics,
        leaves_of as leaves_of,
        parquet_leaves as parquet_leaves,
    )
