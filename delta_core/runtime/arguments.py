"""Checks of arguments that callers pass."""

from __future__ import annotations

from typing import Any

from delta_core.errors import InvalidArgumentError

__all__ = ["check_number"]


def check_number(
    name: str, found: Any, least: int, *, what: str = "a whole number", kinds: tuple[type, ...] = (int,)
) -> None:
    """Reject an argument that is neither None nor a number of some kinds from ``least`` on.

    Parameters
    ----------
    name : str
        The argument's, for the message.
    found : object
        Its value.
    least : int
        The least number that it may be.
    what : str
        What it has to be, for the message.
    kinds : tuple of type
        The types of such a number; a bool is none.

    Raises
    ------
    InvalidArgumentError
        It is something else.
    """
    if found is None:
        return
    is_number = isinstance(found, kinds) and not isinstance(found, bool)
    # NaN is not from any number on
    if not is_number or not found >= least:
        raise InvalidArgumentError(f"Found {name}={found!r}, expected {what} from {least} on.")
