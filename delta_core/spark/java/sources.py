"""Java that runs in the driver alone, compiled there at run time: file index, planner rule, Parquet source, maker.

All touch files, never rows, and are never shipped: what executors run are Spark's own classes. Each class is a file of
this folder. Spark's compiler (Janino) supports no generics, annotations or lambdas, so they have none.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["PACKAGE", "source"]

PACKAGE = "delta_core_driver"
_HEADER = re.compile(r"(package|import) [\w.*]+;")


@cache
def source() -> str:
    """Return all classes as one compilation unit: the compiler takes one, and they name each other."""
    headers, bodies = dict[str, None](), list[str]()
    for file in sorted(files(__package__).iterdir(), key=lambda f: f.name):
        if file.name.endswith(".java"):
            lines = file.read_text(encoding="utf-8").splitlines()
            headers.update(dict.fromkeys(line for line in lines if _HEADER.fullmatch(line)))
            bodies += [line for line in lines if not _HEADER.fullmatch(line)]
    return "\n".join((*headers, *bodies, ""))
