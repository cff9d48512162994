"""Regular expressions that are compiled at their first use: to compile all of them takes milliseconds at each start."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["lazy_pattern"]


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, without compiling it yet; an error in the text is raised at the first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))


class _LazyPattern:
    def __init__(self, text: Any, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled: re.Pattern[Any] = re.compile(*self._source)
        found = getattr(compiled, name)
        # the next use finds the bound method at once
        setattr(self, name, found)
        return found
