"""How many examples property tests make."""

from __future__ import annotations

from hypothesis import settings

#: Of the profile that `tests/conftest.py` loads: one with more is the long form.
_DEFAULT = 50


def examples(number: int) -> int:
    """Return the number itself, or more in proportion in the long form: ``pytest --hypothesis-profile long``."""
    return number * settings().max_examples // _DEFAULT
