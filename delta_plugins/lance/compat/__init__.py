"""The names of pylance that scripts use most, so that ``import delta_plugins.lance.compat as lance`` moves a script.

All work is done by our own datasets (`delta_plugins.lance`). A name or an argument that is not offered is an error that
names our call.
"""

from __future__ import annotations

from typing import Any

from delta_plugins.lance.compat.dataset import (
    LanceDataset as LanceDataset,
    dataset as dataset,
    write_dataset as write_dataset,
    write_fragments as write_fragments,
)
from delta_plugins.lance.compat.fragments import (
    FragmentMetadata as FragmentMetadata,
    LanceFragment as LanceFragment,
    LanceOperation as LanceOperation,
)
from delta_plugins.lance.compat.merging import MergeInsertBuilder as MergeInsertBuilder
from delta_plugins.lance.compat.rejections import (
    CommitConflictError as CommitConflictError,
    CompatError as CompatError,
    NotOfferedError as NotOfferedError,
    not_offered,
)
from delta_plugins.lance.compat.scanner import ColumnOrdering as ColumnOrdering, LanceScanner as LanceScanner


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise not_offered(name, "lance")
