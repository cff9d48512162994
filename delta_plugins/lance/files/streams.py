"""Streams to new files of a store, which end without a file if what is written to them fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from delta_core.api import EngineError

__all__ = ["FileStream", "abandon_stream"]


class FileStream:
    """A stream to a new file, which is whole on its store after `finish`.

    Parameters
    ----------
    stream : context manager
        Of `Storage.put_stream`.
    """

    def __init__(self, stream: AbstractContextManager[Any]) -> None:
        self._stream = stream
        self.sink = stream.__enter__()
        self._is_open = True

    @contextmanager
    def writing(self) -> Iterator[None]:
        """End without a file if writing to it fails; the stream turns failures of a disk into errors of the store."""
        try:
            yield
        except BaseException as e:
            self._is_open = False
            with suppress(type(e)):
                self._stream.__exit__(type(e), e, e.__traceback__)
            raise

    def finish(self) -> None:
        """Complete the file."""
        self._is_open = False
        self._stream.__exit__(None, None, None)

    def abandon(self) -> None:
        """End without a file, unless it has ended."""
        if self._is_open:
            self._is_open = False
            abandon_stream(self._stream)


class _AbandonedError(Exception):
    """Why a stream ends without its file."""


def abandon_stream(stream: AbstractContextManager[Any]) -> None:
    """End a stream without its file, for a reason that is no failure of the store; the store's own are passed over."""
    error = _AbandonedError()
    with suppress(_AbandonedError, EngineError):
        stream.__exit__(_AbandonedError, error, None)
