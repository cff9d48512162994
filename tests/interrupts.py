"""Interrupts at every place where one can come: after any call from Python code."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["interrupted", "interrupted_everywhere"]

#: After so many seconds a test takes a thread to hang.
PATIENCE = 20


def _interrupt() -> None:
    raise KeyboardInterrupt


def interrupted(
    number: int, files: tuple[str, ...], work: Callable[[], Any], handler: Callable[[], None] = _interrupt
) -> bool:
    """Run something with an interrupt at the n-th place in Python files; return whether it has so many.

    Parameters
    ----------
    files : tuple of str
        The ends of their paths.
    work : function()
        Runs on a thread of its own, which is the one that is interrupted.
    handler : function()
        Called at the place, as the handler of a signal.
    """
    left = number
    was_interrupted = False

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal left, was_interrupted
        # an error of the called function comes as it is
        if event in ("call", "c_return") and frame.f_code.co_filename.endswith(files):
            left -= 1
            if not left:
                was_interrupted = True
                handler()

    def run() -> None:
        sys.setprofile(profile)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), f"an interrupt at place {number} leaves threads that wait for each other"
    return was_interrupted


def interrupted_everywhere(files: tuple[str, ...], work: Callable[[], Any], step: int = 1) -> Iterator[int]:
    """Run something again and again, each time with an interrupt at the next place; yield the numbers of the places."""
    number = 1
    while interrupted(number, files, work):
        yield number
        number += step
