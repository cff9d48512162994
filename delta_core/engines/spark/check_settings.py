"""Settings of a session that end checks in delta-spark, and have no effect here."""

from __future__ import annotations

__all__ = ["CHECK_SETTINGS", "without_effect"]

#: As they were in the session when settings were read last.
CHECK_SETTINGS: dict[str, str] = {}


def without_effect() -> str | None:
    """Return a sentence about the settings of the session that end checks in delta-spark, None if it has none."""
    found = [f"{name} = {text}" for name, text in sorted(CHECK_SETTINGS.items())]
    if not found:
        return None
    return f"No effect here, since this library always makes its checks: {', '.join(found)}."
