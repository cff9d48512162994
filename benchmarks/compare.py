"""``compare``: two saved runs, or another commit and the files here, with the noise of both."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.saved import ROOT, Figure, SavedRun

__all__ = ["built_commit", "environment_of", "format_comparison", "verdict"]

HEAD = ("case", "before", "after", "after / before", "noise", "verdict")


def verdict(before: Figure, after: Figure, wall: bool = False) -> tuple[float, float, str]:
    """Return the ratio of the medians, the noise of both sides together, and what they show.

    The verdict is ``slower`` or ``faster`` only if the ratio differs from 1 by more than the noise and by more than
    2 %, and ``one run`` if a side has no second run, whose noise is not known.
    """
    ratio = after.median(wall) / max(before.median(wall), 1e-9)
    noise = before.noise(wall) + after.noise(wall)
    if min(len(before.times(wall)), len(after.times(wall))) < 2:
        return ratio, noise, "one run"
    if abs(ratio - 1) <= max(noise, 0.02):
        return ratio, noise, "no change"
    return ratio, noise, "slower" if ratio > 1 else "faster"


def format_comparison(before: SavedRun, after: SavedRun, wall: bool = False) -> tuple[str, bool]:
    """Return a table of the cases that both runs have, and whether one is slower."""
    rows: list[Sequence[str]] = [HEAD, ("---",) * len(HEAD)]
    is_slower = False
    for case in after.cases:
        old, new = before.of(case), after.of(case)
        if old is None or new is None:
            continue
        ratio, noise, text = verdict(old, new, wall)
        is_slower = is_slower or text == "slower"
        rows.append((case, _time(old, wall), _time(new, wall), f"{ratio:.2f}", f"{noise:.0%}", text))
    kind = "Elapsed" if wall else "Processor"
    notes = [f"{kind} time; before: {before.commit}, {before.time}; after: {after.commit}, {after.time}."]
    if before.scale != after.scale:
        sys.exit(f"the runs have other tables: scale {before.scale:g} and {after.scale:g}")
    if before.machine != after.machine:
        notes.append(f"The machines or packages are not the same: {before.machine}; {after.machine}.")
    missing = sorted(set(before.cases) ^ set(after.cases))
    if missing:
        notes.append(f"In one of the runs only: {', '.join(missing)}.")
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([*notes, "", table]), is_slower


def _time(figure: Figure, wall: bool) -> str:
    seconds = figure.median(wall)
    return f"{seconds * 1_000:.3g} ms" if seconds < 0.1 else f"{seconds:.3g} s"


def built_commit(tables: Path, revision: str, say: Callable[[str], None]) -> Path:
    """Make a work tree of a commit, with its modules compiled, and return its folder.

    It is kept in ``.benchmarks/commits`` for later comparisons.
    """
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    commit = done.stdout.strip()
    if not commit:
        sys.exit(f"{ROOT} has no commit {revision!r}")
    folder = tables.resolve() / "commits" / commit[:10]
    ready = folder / ".built"
    if not ready.exists():
        if folder.exists():  # a build that did not end
            shutil.rmtree(folder)
            subprocess.run(["git", "-C", str(ROOT), "worktree", "prune"], check=True)
        say(f"building {commit[:10]} in {folder}")
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "-q", "--detach", str(folder), commit], check=True)
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        built = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
        if built.returncode:
            sys.exit(f"{commit[:10]} can't be built: {built.stderr.strip()[-500:]}")
        # the entry points of its plugins and engines, which may lie elsewhere than those that are installed
        subprocess.run([sys.executable, "setup.py", "-q", "egg_info"], cwd=folder, capture_output=True, check=True)
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", "delta_core", "delta_plugins"], cwd=folder, check=True
        )
        ready.touch()
    return folder


def environment_of(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return where a process starts, and its environment, so that it has these benchmarks and a commit's package."""
    place = folder / ".run"
    place.mkdir(exist_ok=True)
    link = place / "benchmarks"
    if not link.exists():
        link.symlink_to(ROOT / "benchmarks")
    return place, {**os.environ, "PYTHONPATH": str(folder)}
