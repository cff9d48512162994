"""Progress of an operation on stderr, if a terminal shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_core.cli.output import console, quantity

if TYPE_CHECKING:
    from rich.progress import Progress

    from delta_core.operations import OperationProgress

__all__ = ["shown_progress", "terminal_bar"]


@contextmanager
def terminal_bar() -> Iterator[Progress | None]:
    """Yield a bar on stderr that goes away in the end, None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        yield bar


@contextmanager
def shown_progress() -> Iterator[Callable[[OperationProgress], None] | None]:
    """Show files, rows, bytes and the time left; yields what an operation calls, None without a terminal."""
    with terminal_bar() as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task("", total=None)
        step = ""

        def advance(now: OperationProgress) -> None:
            nonlocal step
            if now.step != step:
                bar.reset(task)
                step = now.step
            files = f"{now.files:,} of {now.total_files:,} files, " if now.total_files else ""
            text = f"{now.step}: {files}{now.rows:,} rows, {quantity(now.bytes)}"
            done, total = (now.bytes, now.total_bytes) if now.bytes else (now.files, now.total_files)
            bar.update(task, total=total or None, completed=done, description=text)

        yield advance
