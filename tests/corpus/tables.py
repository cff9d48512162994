"""What the corpus is made of: one entry a table, and the steps that write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Step", "Table", "steps_of"]

#: SQL, with ``{t}`` for the table, or a function of the writer and the table's folder.
Step = str | Callable[[Any, Path], None]


@dataclass(frozen=True)
class Table:
    """A table of the corpus.

    Parameters
    ----------
    name : str
        Its folder.
    steps : sequence of str or function
        What writes it, in order.
    conf : mapping
        Options of the session while it is written.
    changes : (start, end)
        Versions between which its change feed is recorded; None: not at all.
    gone : sequence of int
        Versions whose commits were cleaned up.
    unreadable : sequence of int
        Versions whose data files were removed on purpose, so that their rows cannot be read.
    error : str
        Why the table must not be read; empty: it must be.
    as_json : bool
        Whether variants are compared by what they hold, since their bytes may differ.
    after : sequence of str or function
        Steps once the rows are recorded, which don't change them: delta-spark itself needs the latest commit, for one.
    needs : sequence of str
        Other tables that this one names by absolute path.
    """

    name: str
    steps: Sequence[Step]
    conf: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[int, int] | None = None
    gone: Sequence[int] = ()
    unreadable: Sequence[int] = ()
    error: str = ""
    as_json: bool = False
    after: Sequence[Step] = ()
    needs: Sequence[str] = ()


def steps_of(*steps: Step | Sequence[Step]) -> list[Step]:
    """Return steps as one list, in which lists of steps may be."""
    found: list[Step] = []
    for step in steps:
        found.extend([step] if isinstance(step, str) or callable(step) else step)
    return found
