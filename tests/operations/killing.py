"""Kill an operation at any of its writes, in process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from delta_core.storage.local import LocalStorage

__all__ = ["KilledError", "Killer", "Staller", "killing"]

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
    def around(self, what: str = "") -> Iterator[None]:
        """Count a write, and end the process before or after it if its turn has come."""
        del what
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


class Staller(Killer):
    """Stops at a write for ever, until a signal ends the process: before it takes effect, or after it.

    Parameters
    ----------
    at : int, optional
        The number of the write; the commit unless given.
    is_after : bool
        Whether it takes effect.
    """

    def __init__(self, at: int | None, is_after: bool) -> None:
        super().__init__(at, is_after)
        self.has_stalled = threading.Event()

    @contextmanager
    def around(self, what: str = "") -> Iterator[None]:
        """Count a write, and stop before or after it if its turn has come; stop at those behind it too."""
        with self._lock:
            is_last = what == "put_if_absent" if self.at is None else self.count == self.at
            self.count += 1
            is_dead, self.is_dead = self.is_dead, self.is_dead or is_last
        if is_dead or (is_last and not self.is_after):
            self._stall()
        yield
        if is_last:
            self._stall()

    def _stall(self) -> None:
        self.has_stalled.set()
        threading.Event().wait()


@contextmanager
def killing(killer: Killer, root: str | None = None) -> Iterator[Killer]:
    """Let a killer count all writes, or those below a root alone."""

    def around(storage: LocalStorage, what: str) -> AbstractContextManager[None]:
        return killer.around(what) if root in (None, storage.root) else nullcontext()

    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            real = getattr(LocalStorage, name)

            def wrapped(self: Any, *args: Any, _real: Any = real, _name: str = name, **kwargs: Any) -> Any:
                with around(self, _name):
                    return _real(self, *args, **kwargs)

            def one_by_one(self: Any, paths: Any, _real: Any = real) -> Any:
                total = 0
                for i in range(len(paths)):
                    with around(self, "delete"):
                        total += _real(self, paths[i : i + 1])
                return total

            @contextmanager
            def streamed(self: Any, *args: Any, _real: Any = real, **kwargs: Any) -> Any:
                with around(self, "put_stream"), _real(self, *args, **kwargs) as file:
                    yield file

            others = {"put_stream": streamed, "delete_files": one_by_one, "delete_folders": one_by_one}
            patch.setattr(LocalStorage, name, others.get(name, wrapped))
        yield killer
