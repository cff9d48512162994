"""pyarrow.compute, loaded when one of its functions is first requested: whoever only opens a table needs none."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
