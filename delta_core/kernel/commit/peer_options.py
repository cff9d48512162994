"""Options that are objects of the `deltalake` package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_core.runtime.arguments import is_of_deltalake

__all__ = ["own_option"]


def own_option(value: Any, kinds: Mapping[str, type]) -> Any:
    """Return an option of the `deltalake` package as an object of the class that ``kinds`` has for its name.

    Values within it too; all others are returned as they are.
    """
    if isinstance(value, list):
        return [own_option(v, kinds) for v in value]
    if isinstance(value, dict):
        return {k: own_option(v, kinds) for k, v in value.items()}
    kind: Any = kinds.get(type(value).__name__)
    if kind is None or not is_of_deltalake(value):
        return value
    found = {n: own_option(getattr(value, n, None), kinds) for n in kind.__struct_fields__}
    return kind(**{n: v for n, v in found.items() if v is not None})
