"""The code blocks of README.md, docs/ and the pages of folders, and how they run."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["PAGES", "ROOT", "Block", "blocks", "run_python", "run_shell"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("delta_core/**/README.md"))]
#: The line before a block that does not run: its reason is for readers of the page, too.
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


class Block(NamedTuple):
    """One fenced block.

    Parameters
    ----------
    page : str
        From the project's root.
    line : int
        The first line of the code, from 1.
    not_run : str
        Why it does not run; empty for a block that does.
    """

    page: str
    line: int
    language: str
    code: str
    not_run: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    name = str(page.relative_to(ROOT))
    language: str | None = None
    before, reason, first, code = "", "", 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if language is None and text.startswith("```"):
            marker = _NOT_RUN.fullmatch(before)
            language, reason, first, code = text[3:], marker[1] if marker else "", number + 1, []
        elif language is not None and text == "```":
            yield Block(name, first, language, "\n".join(code) + "\n", reason)
            language = None
        elif language is not None:
            code.append(line)
        before = text or before
    assert language is None, f"{name}: the block that begins at line {first} has no end"


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Run a block with the names that earlier blocks of its page made; tracebacks have the page's lines."""
    with _log_levels_kept():
        exec(compile("\n" * (block.line - 1) + block.code, block.page, "exec"), names)


@contextmanager
def _log_levels_kept() -> Iterator[None]:
    """Undo what a block does to logging: other tests of this process look at what is logged."""
    loggers = [logging.getLogger(), logging.getLogger("delta_core")]
    before = [(logger.level, logger.handlers[:]) for logger in loggers]
    try:
        yield
    finally:
        for logger, (level, handlers) in zip(loggers, before, strict=True):
            logger.setLevel(level)
            logger.handlers[:] = handlers


def run_shell(code: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run shell commands in a folder, each of which must succeed, and return what they print."""
    program = folder / "bin" / "delta-core"
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m delta_core.cli "$@"\n')
        program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            **environment,
        },
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout
