"""How much of a large test a run of all tests does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

from hypothesis import settings

__all__ = ["IS_LONG", "chosen", "examples"]

T = TypeVar("T")

#: Whether this is the long form, which runs every case: ``DELTA_CORE_LONG=1 pytest``.
IS_LONG = bool(os.environ.get("DELTA_CORE_LONG"))
#: Of the profile that `tests/conftest.py` loads: one with more is the long form.
_DEFAULT = 50


def examples(number: int) -> int:
    """Return the number itself, or more in proportion in the long form: ``pytest --hypothesis-profile long``."""
    return number * settings().max_examples // _DEFAULT


def chosen(every: Iterable[T], few: Iterable[T]) -> Sequence[T]:
    """Return the cases of a run of all tests, which must be among all of them, or in the long form all of them."""
    found, short = list(every), list(few)
    assert all(case in found for case in short), "a case that the long form lacks"
    return found if IS_LONG else short
