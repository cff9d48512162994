"""JSON texts of the log, which may hold anything."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["decode_json"]


def decode_json(text: str | bytes) -> Any:
    """Decode as ``json.loads`` does; raises ValueError for text that is nested too deeply too."""
    try:
        return json.loads(text)
    except RecursionError as e:
        raise ValueError("it is nested too deeply") from e
