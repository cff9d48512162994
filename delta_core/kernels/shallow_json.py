"""JSON of the log, which may hold anything: of a depth that whatever is done with the values can follow."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["decode_json"]


def decode_json(text: str | bytes) -> Any:
    """Decode as ``json.loads`` does; raises ValueError for text that is nested too deeply too."""
    try:
        return json.loads(text)
    except RecursionError as e:  # deeper than what writes, prints or compares the value goes
        raise ValueError("it is nested too deeply") from e
