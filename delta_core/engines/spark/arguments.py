"""Checks of the arguments of the calls that are named as delta-spark's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column

from delta_core.errors import ArgumentTypeError

__all__ = ["check_bool", "check_condition", "check_properties", "check_text", "check_values", "check_version"]


def check_text(value: Any, name: str) -> None:
    """Reject what is no text.

    Raises
    ------
    ArgumentTypeError
        The value is of another type.
    """
    _check(isinstance(value, str), value, name, "text")


def check_bool(value: Any, name: str) -> None:
    """Reject what is neither True nor False.

    Raises
    ------
    ArgumentTypeError
        The value is of another type.
    """
    _check(isinstance(value, bool), value, name, "True or False")


def check_version(value: Any, name: str) -> None:
    """Reject what is no integer.

    Raises
    ------
    ArgumentTypeError
        The value is of another type.
    """
    _check(isinstance(value, int) and not isinstance(value, bool), value, name, "an integer")


def check_condition(value: Any, name: str = "condition") -> None:
    """Reject what is neither SQL text, a Column nor None.

    Raises
    ------
    ArgumentTypeError
        The value is of another type.
    """
    _check(value is None or isinstance(value, (str, Column)), value, name, "SQL text or a Column of PySpark")


def check_values(value: Any, name: str) -> None:
    """Reject what is no mapping of columns to SQL text or Columns.

    Raises
    ------
    ArgumentTypeError
        The value, a key or a value of it is of another type.
    """
    _check(isinstance(value, Mapping), value, name, "a dict of column to value")
    for column, given in value.items():
        check_text(column, f"a column of {name}")
        _check(isinstance(given, (str, Column)), given, f"{name}[{column!r}]", "SQL text or a Column of PySpark")


def check_properties(value: Any, name: str) -> None:
    """Reject what is no mapping of texts to texts.

    Raises
    ------
    ArgumentTypeError
        The value, a key or a value of it is of another type.
    """
    _check(isinstance(value, Mapping), value, name, "a dict of text to text")
    for key, text in value.items():
        check_text(key, f"a key of {name}")
        check_text(text, f"{name}[{key!r}]")


def _check(fits: bool, value: Any, name: str, expected: str) -> None:
    if not fits:
        raise ArgumentTypeError(f"Found {name} as {type(value).__name__}, expected {expected}.")
