"""What other libraries take of a table: pyarrow datasets, Polars frames, and the tables that deltalake returns.

Names are resolved on first use, since each needs a third-party module that opening a table does not.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from delta_core.errors import MissingDependencyError
from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.scan.interop.dataset_of_scan import read_table, scan_dataset
    from delta_core.scan.interop.polars_source import scan_polars
    from delta_core.table.interop.changes import ChangeFeed
    from delta_core.table.interop.dataset_of_files import parquet_dataset
    from delta_core.table.interop.file_tables import (
        Sizes,
        add_actions,
        file_table,
        file_uris,
        keep_masks,
        partition_values,
        root_uri,
        row_count,
        sizes,
    )
    from delta_core.table.interop.predicates import file_filter
    from delta_core.table.interop.rows import read_rows

__all__ = [
    "ChangeFeed",
    "Sizes",
    "add_actions",
    "file_filter",
    "file_table",
    "file_uris",
    "keep_masks",
    "parquet_dataset",
    "partition_values",
    "read_rows",
    "read_table",
    "require",
    "root_uri",
    "row_count",
    "scan_dataset",
    "scan_polars",
    "sizes",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.table.interop.changes": "ChangeFeed",
        "delta_core.table.interop.dataset_of_files": "parquet_dataset",
        "delta_core.scan.interop.dataset_of_scan": "read_table scan_dataset",
        "delta_core.table.interop.file_tables": (
            "Sizes add_actions file_table file_uris keep_masks partition_values root_uri row_count sizes"
        ),
        "delta_core.scan.interop.polars_source": "scan_polars",
        "delta_core.table.interop.predicates": "file_filter",
        "delta_core.table.interop.rows": "read_rows",
    },
)


def require(package: str) -> None:
    """Raise MissingDependencyError for a package that is not installed, which the extra of its name provides.

    Raises
    ------
    MissingDependencyError
        The package is not installed.
    """
    if find_spec(package) is None:
        raise MissingDependencyError(
            f"This call needs {package}, which is not installed. Run: pip install 'delta-core-lake[{package}]'",
            package=package,
        )
