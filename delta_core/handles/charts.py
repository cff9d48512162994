"""Charts as SVG whose colours follow the page; every mark has its figure as a tooltip."""

from __future__ import annotations

from collections.abc import Sequence

from delta_core.runtime.html import escaped

__all__ = ["bars", "part_bar", "spans", "steps"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 150, 8, 20, 8


def bars(labels: Sequence[str], values: Sequence[float], titles: Sequence[str]) -> str:
    """Return bars side by side, such as those of a histogram.

    Parameters
    ----------
    labels, titles : sequence of str
        The text below each bar, and its tooltip.
    values : sequence of float
        Their heights, from 0 on.
    """
    most, room = max(values, default=0) or 1, (WIDTH - LEFT) / max(len(values), 1)
    every = -(-len(labels) * 76 // WIDTH) or 1
    marks = []
    for i, (label, value, title) in enumerate(zip(labels, values, titles, strict=True)):
        height = max((HEIGHT - TOP - BOTTOM) * value / most, 1.5)
        x, y = LEFT + i * room, HEIGHT - BOTTOM - height
        width = max(min(room - 3, 60), 1)
        if value:
            marks.append(
                f'<rect class="mark" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2">'
                f"<title>{escaped(title)}</title></rect>"
            )
        if i % every == 0:
            # a narrow page enlarges labels
            place = f'class="end" x="{WIDTH}"' if x > WIDTH - 76 else f'x="{x:.1f}"'
            marks.append(f'<text {place} y="{HEIGHT - 6}">{escaped(label)}</text>')
    return _svg(HEIGHT, "".join(marks))


def steps(values: Sequence[float | None], titles: Sequence[str], kinds: Sequence[str], first: str, last: str) -> str:
    """Return values over versions as steps, with a point for each one; values that are None leave a gap.

    Parameters
    ----------
    values : sequence of float or None
        From 0 on.
    titles, kinds : sequence of str
        The tooltip of each point, and the class of its colour.
    first, last : str
        The labels of both ends.
    """
    most = max((v for v in values if v is not None), default=0) or 1
    room = (WIDTH - 2 * LEFT) / max(len(values), 1)
    path, points, is_open = [], [], False
    for i, (value, title, kind) in enumerate(zip(values, titles, kinds, strict=True)):
        if value is None:
            is_open = False
            continue
        x, y = LEFT + i * room, TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most)
        path.append(f"{'L' if is_open else 'M'}{x:.1f},{y:.1f}H{x + room:.1f}")
        is_open = True
        points.append(
            f'<circle class="{escaped(kind)}" cx="{x + room / 2:.1f}" cy="{y:.1f}" r="3.5">'
            f"<title>{escaped(title)}</title></circle>"
        )
    ends = f'<text x="{LEFT}" y="{HEIGHT - 6}">{escaped(first)}</text>'
    ends += f'<text class="end" x="{WIDTH - LEFT}" y="{HEIGHT - 6}">{escaped(last)}</text>'
    return _svg(HEIGHT, f'<path class="line" d="{"".join(path)}"/>{"".join(points)}{ends}')


def spans(ranges: Sequence[tuple[float, float]]) -> str:
    """Return ranges below each other, from 0 to 1: a staircase if they do not overlap, a block if all do."""
    height = 3 * len(ranges) + 4 if len(ranges) < 30 else 96
    step = (height - 4) / max(len(ranges), 1)
    marks = [
        f'<rect class="mark" x="{LEFT + a * (WIDTH - 2 * LEFT):.1f}" y="{2 + i * step:.2f}" '
        f'width="{max((b - a) * (WIDTH - 2 * LEFT), 2):.1f}" height="{max(step * 0.8, 0.6):.2f}"/>'
        for i, (a, b) in enumerate(ranges)
    ]
    return _svg(height, "".join(marks))


def part_bar(part: float, title: str) -> str:
    """Return a bar that is filled in part, from 0 to 1."""
    return (
        f'<span class="bar" title="{escaped(title)}"><span style="width: {100 * min(max(part, 0.0), 1.0):.1f}%">'
        "</span></span>"
    )


def _svg(height: float, marks: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" preserveAspectRatio="xMinYMin meet">{marks}</svg>'
