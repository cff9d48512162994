"""Java that runs in the driver alone, compiled there at run time.

None of it touches rows or is shipped: executors run Spark's own classes. Each class is a file of its package's folder:
this one (file index, planner rule, Parquet source, maker) and that of the format delta. README.md in this folder lists
what Spark's compiler (Janino) does not support. The imports of this folder's classes are in `shared_imports.java`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["PACKAGE", "source"]

#: The Java package of the classes of this folder.
PACKAGE = "delta_core_driver"
_HEADER = re.compile(r"(package|import) [\w.*$]+;")


@cache
def source(folder: str = __package__) -> str:
    """Return all classes of a folder as one compilation unit: the compiler takes one, and they name each other.

    Parameters
    ----------
    folder : str
        The Python package whose folder it is.
    """
    headers, bodies = dict[str, None](), list[str]()
    for file in sorted(files(folder).iterdir(), key=lambda f: f.name):
        if file.name.endswith(".java"):
            lines = file.read_text(encoding="utf-8").splitlines()
            headers.update(dict.fromkeys(line for line in lines if _HEADER.fullmatch(line)))
            bodies += [line for line in lines if not _HEADER.fullmatch(line)]
    return "\n".join((*headers, *bodies, ""))
