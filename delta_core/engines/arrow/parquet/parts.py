"""What reads several data files at once, loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.engines.arrow.ordered import run_ordered, run_quick
    from delta_core.engines.arrow.parquet.small_files import SmallFiles

__all__ = ["SmallFiles", "run_ordered", "run_quick"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.engines.arrow.ordered": "run_ordered run_quick",
        "delta_core.engines.arrow.parquet.small_files": "SmallFiles",
    },
)
