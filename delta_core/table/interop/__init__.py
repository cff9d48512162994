"""The forms of a table for other libraries: pyarrow datasets, Polars frames, and the tables that deltalake returns.

Names are resolved on first use, since each needs a third-party module that opening a table does not.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.scan.interop import require as require
    from delta_core.scan.interop.dataset_of_scan import read_table as read_table, scan_dataset as scan_dataset
    from delta_core.table.interop.changes import ChangeFeed as ChangeFeed
    from delta_core.table.interop.dataset_of_files import parquet_dataset as parquet_dataset
    from delta_core.table.interop.duckdb_relation import relation_of as relation_of
    from delta_core.table.interop.file_tables import (
        Sizes as Sizes,
        add_actions as add_actions,
        file_table as file_table,
        file_uris as file_uris,
        keep_masks as keep_masks,
        partition_values as partition_values,
        root_uri as root_uri,
        sizes as sizes,
    )
    from delta_core.table.interop.polars_frame import frame_of as frame_of
    from delta_core.table.interop.predicates import file_filter as file_filter
    from delta_core.table.interop.rows import read_rows as read_rows
