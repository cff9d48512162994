"""Checks of arguments that several calls take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_core.api import InvalidArgumentError

__all__ = ["checked_texts"]


def checked_texts(found: Any, what: str) -> dict[str, str]:
    """Return texts by their keys; None is none of them.

    Parameters
    ----------
    found : Mapping of str to str, or None
        The argument.
    what : str
        Its name in errors.

    Raises
    ------
    InvalidArgumentError
        For another object, and for keys or values that are no texts.
    """
    if not isinstance(found, (Mapping, type(None))):
        raise InvalidArgumentError(f"Found {found!r} as {what}, expected texts by their keys.")
    for key, value in (found or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidArgumentError(f"Found {key!r} = {value!r} in {what}, expected texts.")
    return dict(found or {})
