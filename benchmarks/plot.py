"""``plot``: figures as SVG, drawn from the tables of benchmarks/README.md and from saved runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import MARKS, README
from benchmarks.saved import SavedRun

__all__ = ["FIGURES", "plot_history", "plot_published", "published_ratios"]

#: Of each table in README.md: the file, the title, whether a ratio above 1 is better, its columns of title and ratio.
FIGURES = {
    "results": ("delta.svg", "Delta tables: times as fast as the peer", True, 0, 3),
    "lance": ("lance.svg", "Lance datasets: times as fast as pylance", False, 0, 3),
    "spark": ("spark.svg", "On Spark: times as fast as delta-spark", True, 0, 4),
}
OURS, BEHIND = "#009485", "#c8553d"
LONGEST_TITLE = 72


def published_ratios(place: str) -> list[tuple[str, float]]:
    """Return how many times as fast as the peer each row of a table in README.md is, where it has a peer."""
    text = README.read_text(encoding="utf-8")
    begin, end = (mark.format(place) for mark in MARKS)
    rows = [line.strip("| ").split(" | ") for line in text.partition(begin)[2].partition(end)[0].splitlines()]
    _, _, is_speed_up, title, ratio = FIGURES[place]
    found = []
    for cells in rows:
        number = re.match(r"[\d.]+(e[+-]\d+)?", cells[ratio]) if len(cells) > ratio else None
        if number and float(number[0]):
            found.append((cells[title], float(number[0]) if is_speed_up else 1 / float(number[0])))
    return found


def plot_published(folder: Path) -> list[Path]:
    """Draw a figure for each table of README.md, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for place, (name, title, *_) in FIGURES.items():
        made.append(_bars(folder / name, title, published_ratios(place)))
    return made


def _bars(path: Path, title: str, ratios: Sequence[tuple[str, float]]) -> Path:
    """Draw a bar for each ratio on a logarithmic axis, from the line at 1."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(10, 0.6 + 0.24 * len(ratios)))
    names = [t if len(t) <= LONGEST_TITLE else t[: LONGEST_TITLE - 1] + "…" for t, _ in ratios]
    values = [value for _, value in ratios]
    places = range(len(ratios))
    axes.barh(places, [v - 1 for v in values], left=1, color=[OURS if v >= 1 else BEHIND for v in values], height=0.7)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlim(min([*values, 0.5]) / 1.3, max([*values, 2]) * 2)
    for place, value in zip(places, values, strict=True):
        axes.text(max(value, 1) * 1.05, place, f"{value:.3g}", va="center", fontsize=7)
    axes.set_yticks(places, names, fontsize=7)
    axes.invert_yaxis()
    axes.axvline(1, color="#808080", linewidth=1)
    axes.set_title(title, fontsize=10, loc="left")
    return _save(plt, figure, axes, path)


def plot_history(folder: Path, case: str, runs: Sequence[SavedRun]) -> Path:
    """Draw the times of a case over saved runs, with the range of each, and return the file."""
    plt = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(8, 3))
    sides = dict.fromkeys(f.side for run in runs for f in run.figures if f.case == case)
    for side in sides:
        found = [(n, f) for n, run in enumerate(runs) if (f := run.of(case, side))]
        places, medians = [n for n, _ in found], [f.median() for _, f in found]
        low = [m - min(f.times()) for m, (_, f) in zip(medians, found, strict=True)]
        high = [max(f.times()) - m for m, (_, f) in zip(medians, found, strict=True)]
        label = "delta_core" if side == "ours" else side
        axes.errorbar(places, medians, yerr=[low, high], marker="o", capsize=3, label=label,
                      color=OURS if side == "ours" else "#808080")  # fmt: skip
    axes.set_xticks(range(len(runs)), [f"{run.commit}\n{run.time[:10]}" for run in runs], fontsize=7)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("seconds", fontsize=8)
    axes.set_title(case, fontsize=10, loc="left")
    axes.legend(fontsize=8, frameon=False)
    return _save(plt, figure, axes, folder / f"history-{re.sub('[^a-z0-9]+', '-', case.lower())}.svg")


def _pyplot() -> object:
    import matplotlib as mpl

    mpl.use("svg")
    # gray lines and texts are legible on light and on dark pages; the same figures make the same file
    gray = {f"{name}.color": "#808080" for name in ("xtick", "ytick", "text")}
    mpl.rcParams.update({**gray, "axes.labelcolor": "#808080", "svg.fonttype": "none", "svg.hashsalt": "delta_core"})
    from matplotlib import pyplot

    return pyplot


def _save(plt: object, figure: object, axes: object, path: Path) -> Path:
    for side, spine in axes.spines.items():  # type: ignore[attr-defined]
        spine.set_visible(side == "bottom")
        spine.set_color("#808080")
    figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})  # type: ignore[attr-defined]
    plt.close(figure)  # type: ignore[attr-defined]
    return path
