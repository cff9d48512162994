"""The recorded answers of deltalake, those of this library, and the listed differences."""

from __future__ import annotations

import json
import lzma
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.interop.deltalake_surface.answers import is_equal
from tests.interop.deltalake_surface.cells import Cell, all_cells
from tests.interop.deltalake_surface.surface import Surface, public_surface

__all__ = [
    "Comparison",
    "Difference",
    "Recorded",
    "compare",
    "differences",
    "our_answers",
    "record",
    "recorded",
    "recorded_cells",
    "stated_shares",
]

_RECORDED = Path(__file__).with_name("recorded.json.xz")
_DIFFERENCES = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True)
class Recorded:
    """The release that answered, its public names, and its answer to each script."""

    version: str
    surface: Surface
    answers: Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """A listed difference: the scripts whose names match, and whose answers of the peer do, may have other answers."""

    name: str
    reason: str
    script: str = ""
    theirs: str = ""
    ours: str = ""
    #: Whether this library's answers are the better ones on purpose, for the reason that is given.
    better: bool = False
    #: The only keys, at any depth, whose values differ; unless given, anything may.
    keys: tuple[str, ...] = ()

    def covers(self, name: str, theirs: Any, ours: Any) -> bool:
        """Return whether this difference explains a pair of answers."""
        patterns = (self.script, name), (self.theirs, json.dumps(theirs)), (self.ours, json.dumps(ours))
        if not all(re.search(pattern, text) for pattern, text in patterns):
            return False
        return not self.keys or is_equal(_without(theirs, self.keys), _without(ours, self.keys))


@dataclass(frozen=True)
class Comparison:
    """How many answers were compared, and which differ: listed ones by difference, and the others."""

    compared: int
    listed: Mapping[str, tuple[str, ...]]
    unlisted: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of equal answers."""
        return 1 - (len(self.unlisted) + sum(map(len, self.listed.values()))) / self.compared

    @property
    def share_or_better(self) -> float:
        """The share of answers that are equal, or better on purpose."""
        better = {d.name for d in differences() if d.better}
        return self.share + sum(len(names) for name, names in self.listed.items() if name in better) / self.compared

    @property
    def is_explained(self) -> bool:
        """Whether every difference is listed."""
        return not self.unlisted

    def text(self, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
        """Return the differences as lines."""
        lines = [
            f"--- {n}\n  theirs {json.dumps(theirs[n])[:300]}\n  ours   {json.dumps(ours[n])[:300]}"
            for n in self.unlisted
        ]
        lines += [f"{len(names):5} {name}" for name, names in self.listed.items()]
        return "\n".join(
            [
                *lines,
                f"{self.share:.2%} of {self.compared} equal, {self.share_or_better:.2%} equal or better on purpose",
                f"{len(self.unlisted)} differences not listed",
            ]
        )


@cache
def recorded() -> Recorded:
    """Return deltalake's answers."""
    return Recorded(**json.loads(lzma.decompress(_RECORDED.read_bytes())))


def recorded_cells() -> list[Cell]:
    """Return the scripts, generated from deltalake's recorded public names."""
    return all_cells(recorded().surface)


@cache
def _listed() -> dict[str, Any]:
    return tomllib.loads(_DIFFERENCES.read_text(encoding="utf-8"))


def differences() -> tuple[Difference, ...]:
    """Return the listed differences."""
    return tuple(
        Difference(name, **{**each, "keys": tuple(each.get("keys", ()))})
        for name, each in _listed()["differences"].items()
    )


def stated_shares() -> tuple[str, str]:
    """Return the shares that the page states: of equal answers, and of those that are equal or better on purpose."""
    return str(_listed()["equal"]), str(_listed()["equal_or_better"])


def record(workers: int, pattern: str = "") -> str:
    """Run the scripts with the real package, record its answers, and return a line about them.

    With a pattern, only the scripts whose names match it, and those without an answer, are run.
    """
    from tests.interop.deltalake_surface import running

    surface = public_surface()
    cells = all_cells(surface)
    import deltalake

    assert deltalake.__file__ is not None, "this is not the real package"
    known = recorded().answers if pattern else {}
    left = [c for c in cells if c.name not in known or re.search(pattern, c.name)]
    found = {**known, **running.answers(left, batch=1, workers=workers)}
    content: dict[str, Any] = {
        "version": deltalake.__version__,
        "surface": surface,
        "answers": {c.name: found[c.name] for c in cells},
    }
    _RECORDED.write_bytes(lzma.compress(json.dumps(content, ensure_ascii=False).encode(), preset=9))
    failed = Counter("raises" in a for a in content["answers"].values())[True]
    return f"{len(cells)} scripts, {failed} of which raise; {_RECORDED.stat().st_size} bytes"


def our_answers(cells: Sequence[Cell], workers: int) -> dict[str, Any]:
    """Run scripts with this library under the peer's name; not in a process that imported the real package."""
    from tests.interop.deltalake_surface import running

    running.use_this_library()
    return running.answers(cells, batch=50, workers=workers)


def compare(found: Mapping[str, Any]) -> Comparison:
    """Compare answers of this library with the recorded ones."""
    theirs = recorded().answers
    listed: dict[str, list[str]] = {}
    unlisted = []
    for name, ours in found.items():
        if is_equal(theirs[name], ours):
            continue
        reason = next((d.name for d in differences() if d.covers(name, theirs[name], ours)), None)
        if reason is None:
            unlisted.append(name)
        else:
            listed.setdefault(reason, []).append(name)
    return Comparison(len(found), {k: tuple(v) for k, v in listed.items()}, tuple(unlisted))


def _without(answer: Any, keys: Sequence[str]) -> Any:
    """Leave out keys of an answer, at any depth."""
    if isinstance(answer, dict):
        return {k: _without(v, keys) for k, v in answer.items() if k not in keys}
    return [_without(v, keys) for v in answer] if isinstance(answer, list) else answer
