"""Loggers of what happens at each read, for which ``logging`` is not imported: that takes 2 ms of a process's start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["debug_log"]


def debug_log(name: str) -> Logger | None:
    """Return the logger of a module if it writes debug messages, else None.

    Debug messages need a level that is set through ``logging``; until that is imported, the result is None.
    """
    logging = sys.modules.get("logging")
    if logging is None or not hasattr(logging, "getLogger"):  # another thread may be importing it
        return None
    found: Logger = logging.getLogger(name)
    return found if found.isEnabledFor(logging.DEBUG) else None
