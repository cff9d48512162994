"""The public API for PySpark under its short name; it lives in `delta_core.engines.spark`."""

from delta_core.engines.spark import (
    DeltaTable,
    IdentityGenerator,
    configure,
    read,
    read_changes,
    read_changes_stream,
    read_stream,
    register,
    save_jar,
    sql,
    write,
    write_stream,
)

__all__ = [
    "DeltaTable", "IdentityGenerator", "configure", "read", "read_changes", "read_changes_stream", "read_stream",
    "register", "save_jar", "sql", "write", "write_stream",
]  # fmt: skip
