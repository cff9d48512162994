"""Bars that show the progress of operations that take long, in terminals and notebooks."""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

from msgspec.structs import replace

from delta_core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Shown", "progress_bar", "shows_progress"]

P = ParamSpec("P")
R = TypeVar("R")
#: The environment variable that turns bars off.
SETTING = "DELTA_CORE_PROGRESS"
#: Work that is shorter shows no bar.
DELAY_SECONDS = 2.0
#: How often a notebook's bar is drawn, at most.
_DRAWN_EVERY_SECONDS = 0.2
#: Whether an operation shows its progress; those that it runs show none of their own.
_is_watched: ContextVar[bool] = ContextVar("is_watched", default=False)


class Shown(Protocol):
    """A report of progress that has more than a step and two numbers."""

    def shown(self) -> tuple[str, int, int]:
        """Return the text beside the bar, how much is done, and of how much (0: unknown)."""
        ...


class _Display(ABC):
    """Where a bar is drawn."""

    @abstractmethod
    def draw(self, text: str, done: int, total: int) -> None:
        """Draw the bar; a total of 0: unknown."""

    @abstractmethod
    def close(self) -> None:
        """Remove the bar."""


class _Stream:
    """Stderr without its errors: an operation does not fail because its terminal is gone."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Terminal(_Display):
    """A line of stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        # stderr is replaced while another bar is drawn
        stream = _Stream(getattr(sys.stderr, "rich_proxied_file", sys.stderr))
        console = Console(file=cast("Any", stream), highlight=False, markup=False, emoji=False)
        text = TextColumn("{task.description}", markup=False)
        self._bar: Progress = Progress(BarColumn(), text, TimeRemainingColumn(), console=console, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._step = ""
        self._bar.start()

    def draw(self, text: str, done: int, total: int) -> None:
        step = text.partition(":")[0]
        if step != self._step:
            # the time that is left is computed from the pace of this step alone
            self._bar.reset(self._task)
            self._step = step
        self._bar.update(self._task, description=text, completed=done, total=total or None)

    def close(self) -> None:
        self._bar.stop()


class _Notebook(_Display):
    """An output of the cell that runs."""

    def __init__(self, show: Callable[..., Any]) -> None:
        self._handle = show({"text/plain": ""}, raw=True, display_id=True)
        self._drawn = 0.0

    def draw(self, text: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._drawn < _DRAWN_EVERY_SECONDS:
            return
        self._drawn = now
        share = f' value="{done}" max="{total}"' if total else ""
        shown = text.replace("&", "&amp;").replace("<", "&lt;")
        html = f"<progress{share}></progress> <span>{shown}</span>"
        self._handle.update({"text/plain": text, "text/html": html}, raw=True)

    def close(self) -> None:
        self._handle.update({"text/plain": "", "text/html": ""}, raw=True)


class _Bar:
    """The progress of an operation, from any thread; drawn once some seconds are over, even without a report."""

    def __init__(self, display: Callable[[], _Display]) -> None:
        self._make = display
        self._display: _Display | None = None
        self._state: tuple[str, int, int] = ("working", 0, 0)
        self._is_closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(DELAY_SECONDS, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def _begin(self) -> None:
        with self._lock:
            if not self._is_closed:
                with suppress(Exception):  # the work goes on without a bar that can't be drawn
                    self._display = self._make()
                    self._display.draw(*self._state)

    def advance(self, *now: Any) -> None:
        """Show how far the operation is."""
        with self._lock:
            self._state = _state(*now)
            if self._display is not None and not self._is_closed:
                with suppress(Exception):
                    self._display.draw(*self._state)

    def close(self) -> None:
        """Remove the bar; it is not drawn again."""
        self._timer.cancel()
        with self._lock:
            self._is_closed = True
            if self._display is not None:
                with suppress(Exception):
                    self._display.close()


def _state(now: str | Shown, done: int = 0, total: int = 0) -> tuple[str, int, int]:
    """Return the text of a call for progress, what is done, and of how much."""
    if not isinstance(now, str):
        return now.shown()
    return (f"{now}: {done:,} of {total:,}", done, total) if total else (now, 0, 0)


def _find_display() -> Callable[[], _Display] | None:
    """Return what makes a display; None without a terminal or notebook, or if the environment turns bars off."""
    setting = os.environ.get(SETTING, "on")
    if setting not in ("on", "off"):
        raise InvalidArgumentError(f"The environment variable {SETTING} is {setting!r}, expected on or off.")
    if setting == "off":
        return None
    # a notebook's kernel has imported IPython; a plain process does not have to
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        return lambda: _Notebook(display)
    return _Terminal if _has_terminal() else None


def _has_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):  # closed, or replaced by an object that can only write
        return False


@contextmanager
def progress_bar(call: Callable[..., None] | None = None) -> Iterator[Callable[..., None] | None]:
    """Show a bar for work that takes more than two seconds, and whose progress is not reported otherwise.

    Parameters
    ----------
    call : function, optional
        The user's function; with it there is no bar.

    Yields
    ------
    function, optional
        The function that the work calls: ``call``, that of the bar, or None if stderr is no terminal, the
        environment variable ``DELTA_CORE_PROGRESS`` is ``off``, or work around this work shows its own.

    Raises
    ------
    InvalidArgumentError
        If the environment variable is something else.
    """
    display = None if call is not None or _is_watched.get() else _find_display()
    if display is None:
        watched = _is_watched.set(True) if call is not None else None
        try:
            yield call
        finally:
            if watched is not None:
                _is_watched.reset(watched)
        return
    bar = _Bar(display)
    token = _is_watched.set(True)
    try:
        yield bar.advance
    finally:
        _is_watched.reset(token)
        bar.close()


def shows_progress(operation: Callable[P, R]) -> Callable[P, R]:
    """Decorate an operation, whose last positional argument is its options, to show a bar while it runs."""

    @wraps(operation)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        *others, options = arguments
        given = cast("Any", options)
        with progress_bar(given.progress) as progress:
            if progress is not given.progress:
                given = replace(given, progress=progress)
            return operation(*cast("Any", (*others, given)), **named)

    return run
