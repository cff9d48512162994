"""Streams to new files of a store, which end without a file if what is written to them fails."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from typing import Any

from delta_core.api import EngineError

__all__ = ["abandon_stream"]


class _AbandonedError(Exception):
    """Why a stream ends without its file."""


def abandon_stream(stream: AbstractContextManager[Any]) -> None:
    """End a stream without its file, for a reason that is no failure of the store; the store's own are passed over."""
    error = _AbandonedError()
    with suppress(_AbandonedError, EngineError):
        stream.__exit__(_AbandonedError, error, None)
