"""Settings of a session that end checks in delta-spark, and have no effect here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["noting_settings", "set_check_settings", "without_effect"]

#: Those of the session of the call that runs, by their names; None outside of calls.
_found: ContextVar[Mapping[str, str] | None] = ContextVar("check_settings", default=None)


@contextmanager
def noting_settings() -> Iterator[None]:
    """Keep the settings that are found for the errors of one call, with those that it makes in turn."""
    if _found.get() is not None:
        yield
        return
    token = _found.set({})
    try:
        yield
    finally:
        _found.reset(token)


def set_check_settings(settings: Mapping[str, str]) -> None:
    """Keep settings, by their names, until the call that runs ends, or finds those of another session."""
    if _found.get() is not None:
        _found.set(settings)


def without_effect() -> str | None:
    """Return a sentence about the settings of the session that end checks in delta-spark, None if it has none."""
    found = [f"{name} = {text}" for name, text in sorted((_found.get() or {}).items())]
    if not found:
        return None
    return f"No effect here, since this library always makes its checks: {', '.join(found)}."
