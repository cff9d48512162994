"""Checks of arguments that callers pass."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from delta_core.errors import InvalidArgumentError

__all__ = ["check_names", "check_number", "check_options", "path_text"]


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
        The expected value, for the message.
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


def check_options(found: Any) -> None:
    """Reject storage options that are neither None nor a mapping.

    Raises
    ------
    InvalidArgumentError
        They are something else.
    """
    if found is not None and not isinstance(found, Mapping):
        raise InvalidArgumentError(
            f"Found storage_options of type {type(found).__name__}, expected a dictionary of names to values, such as "
            "{'region': 'eu-central-1'}."
        )


def path_text(found: Any) -> str:
    """Return the path or URI of a table as text.

    Raises
    ------
    InvalidArgumentError
        It is neither text nor a path.
    """
    text = os.fspath(found) if isinstance(found, os.PathLike) else found
    if not isinstance(text, str):
        kind = type(found)
        is_small = found is None or isinstance(found, (int, float, bytes))
        shown = repr(found) if is_small else f"an object of type {kind.__module__}.{kind.__qualname__}"
        hint = " Rows are passed after the table's place." if hasattr(found, "__arrow_c_stream__") else ""
        raise InvalidArgumentError(
            f"Found {shown} as the place of a table, expected a path or a URI such as s3://bucket/table.{hint}"
        )
    return text


def check_names(argument: str, given: object) -> None:
    """Reject one text where a list of names is due: it is a sequence too, of its characters.

    Raises
    ------
    InvalidArgumentError
        The value is a text.
    """
    if isinstance(given, (str, bytes)):
        raise InvalidArgumentError(f"Found {argument}={given!r}, expected a list of names.")
