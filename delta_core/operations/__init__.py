"""One module a verb. Names are resolved on first use, so that reading a table loads nothing of this."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_core.log.checkpoint_writer import write_checkpoint
    from delta_core.operations.create import column_names, create_table
    from delta_core.operations.register import register_files
    from delta_core.operations.write import WriteOptions, write_table

__all__ = ["WriteOptions", "column_names", "create_table", "register_files", "write_checkpoint", "write_table"]

_HOME = {
    "WriteOptions": "delta_core.operations.write",
    "create_table": "delta_core.operations.create",
    "column_names": "delta_core.operations.create",
    "register_files": "delta_core.operations.register",
    "write_checkpoint": "delta_core.log.checkpoint_writer",
    "write_table": "delta_core.operations.write",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'delta_core.operations' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
