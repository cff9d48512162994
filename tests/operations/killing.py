"""Kill an operation at any of its writes, in process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from delta_core.engines.arrow.storage.local import LocalStorage

__all__ = ["KilledError", "Killer", "killing"]

#: Whatever changes a store.
WRITES = ("create", "put", "put_if_absent", "put_stream", "delete", "delete_files", "delete_folders")


class KilledError(BaseException):
    """The process ends here: nothing catches it, and nothing is cleaned up after it."""


class Killer:
    """Kills at a write: before it takes effect, or after it. Nothing that follows reaches the disk."""

    def __init__(self, at: int | None, is_after: bool) -> None:
        self.at, self.is_after = at, is_after
        self.count = 0
        self.is_dead = False
        self._lock = threading.Lock()

    @contextmanager
    def around(self) -> Iterator[None]:
        """Count a write, and end the process before or after it if its turn has come."""
        with self._lock:
            if self.is_dead:
                raise KilledError
            is_last = self.count == self.at
            self.count += 1
            self.is_dead = is_last
        if is_last and not self.is_after:
            raise KilledError
        yield
        if is_last:
            raise KilledError


@contextmanager
def killing(killer: Killer) -> Iterator[Killer]:
    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            real = getattr(LocalStorage, name)

            def wrapped(self: Any, *args: Any, _real: Any = real, **kwargs: Any) -> Any:
                with killer.around():
                    return _real(self, *args, **kwargs)

            def one_by_one(self: Any, paths: Any, _real: Any = real) -> Any:
                total = 0
                for i in range(len(paths)):
                    with killer.around():
                        total += _real(self, paths[i : i + 1])
                return total

            @contextmanager
            def streamed(self: Any, *args: Any, _real: Any = real, **kwargs: Any) -> Any:
                with killer.around(), _real(self, *args, **kwargs) as file:
                    yield file

            others = {"put_stream": streamed, "delete_files": one_by_one, "delete_folders": one_by_one}
            patch.setattr(LocalStorage, name, others.get(name, wrapped))
        yield killer
