"""A report as HTML: one page that needs no other file, in light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from delta_core.handles import charts
from delta_core.operations.report.facts import ReportFacts, file_quantity
from delta_core.runtime.html import escaped
from delta_core.runtime.sizes import size_text

__all__ = ["report_body", "report_page"]

_STYLE = """
.delta-report { --ink: #1c2430; --soft: #5c6675; --line: #dde2e9; --paper: #ffffff; --card: #f6f8fa;
  --accent: #2563b8; --good: #1a7f4b; --attention: #b25d00; --bad: #c02626;
  color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .delta-report { --ink: #e4e9f0; --soft: #9aa6b6; --line: #303846;
  --paper: #12161d; --card: #1a2029; --accent: #6ea8fe; --good: #4cc38a; --attention: #f0a04b; --bad: #ff7b72; } }
.delta-report h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere; }
.delta-report h2 { font-size: 16px; margin: 28px 0 8px; }
.delta-report p { margin: 4px 0; color: var(--soft); overflow-wrap: anywhere; }
.delta-report .state { font-size: 13px; padding: 2px 10px; border-radius: 10px; color: var(--paper);
  vertical-align: middle; white-space: nowrap; }
.delta-report .tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 16px 0; }
.delta-report .tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px 14px; min-width: 110px; }
.delta-report .tiles b { display: block; font-size: 20px; }
.delta-report .wide { overflow-x: auto; }
.delta-report table { border-collapse: collapse; width: 100%; font-size: 14px; }
.delta-report th, .delta-report td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0;
  border-bottom: 1px solid var(--line); color: var(--ink); background: none; }
.delta-report th { color: var(--soft); font-weight: 600; }
.delta-report .number { text-align: right; white-space: nowrap; }
.delta-report td.name { overflow-wrap: anywhere; min-width: 110px; }
.delta-report svg { width: 100%; max-width: 760px; display: block; }
.delta-report svg text { fill: var(--soft); font-size: 11px; }
.delta-report svg text.end { text-anchor: end; }
.delta-report .mark { fill: var(--accent); }
.delta-report .line { fill: none; stroke: var(--accent); stroke-width: 1.5; }
.delta-report circle { fill: var(--accent); stroke: var(--paper); stroke-width: 1; }
.delta-report circle.change { fill: var(--attention); }
.delta-report circle.upkeep { fill: var(--good); }
.delta-report circle.definition { fill: var(--soft); }
.delta-report .bar { display: inline-block; width: 160px; height: 9px; border-radius: 4px; background: var(--line);
  overflow: hidden; }
.delta-report .bar span { display: block; height: 100%; background: var(--accent); }
@media (max-width: 620px) { .delta-report svg text { font-size: 16px; } .delta-report .bar { width: 80px; } }
.delta-report .key span { margin-right: 14px; white-space: nowrap; }
.delta-report .key i { display: inline-block; width: 9px; height: 9px; border-radius: 5px; margin-right: 5px; }
"""
_PAGE = """
body { margin: 0; }
.delta-report { min-height: 100vh; }
.delta-report > div { max-width: 860px; margin: 0 auto; padding: 24px 20px 60px; }
"""
_STATES = {"good": "in good health", "attention": "needs attention", "bad": "has errors"}
_MARKS = {"good": "&#10003;", "attention": "!", "bad": "&#10007;"}
_KINDS = (
    ("change", "rows changed", ("DELETE", "UPDATE", "MERGE", "REPLACE", "TRUNCATE")),
    ("upkeep", "upkeep", ("OPTIMIZE", "VACUUM", "PURGE", "REORG", "RESTORE", "COMPACT", "REWRITE", "RESERVE")),
    (
        "definition",
        "definition",
        ("CREATE TABLE", "SET", "ADD", "ALTER", "DROP", "CHANGE", "RENAME", "UPGRADE", "PROJECT"),
    ),
)


def report_page(report: ReportFacts) -> str:
    """Return a whole page.

    Parameters
    ----------
    report : ReportFacts
        The report.
    """
    title = f"{report.uri.rstrip('/').rpartition('/')[2] or report.uri}: version {report.version}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{_PAGE}</style></head><body>{report_body(report)}</body></html>\n"
    )


def report_body(report: ReportFacts) -> str:
    """Return what a notebook shows.

    Parameters
    ----------
    report : ReportFacts
        The report.
    """
    sections = (
        _head(report),
        _health(report),
        _versions(report),
        _sizes(report),
        _orders(report),
        _partitions(report),
        _coverage(report),
        _log(report),
        _features(report),
        _findings(report),
    )
    return f'<div class="delta-report"><style>{_STYLE}</style><div>{"".join(sections)}</div></div>'


def _head(report: ReportFacts) -> str:
    state = f'<span class="state" style="background: var(--{report.state})">{_STATES[report.state]}</span>'
    when = "" if report.timestamp is None else f" of {_time(report.timestamp)}"
    facts = ". ".join(f"{escaped(k)}: {escaped(v)}" for k, v in report.facts.items() if v)
    stored = None if report.rows is None or report.deleted_rows is None else report.rows + report.deleted_rows
    tiles = [
        ("rows", "unknown" if report.rows is None else f"{report.rows:,}"),
        ("files", f"{report.files:,}"),
        ("bytes", size_text(report.size_bytes)),
        ("a file", size_text(report.size_bytes / report.files) if report.files else "-"),
        (
            "deleted rows",
            f"{(report.deleted_rows or 0) / stored:.1%}" if stored else "0 %" if stored == 0 else "unknown",
        ),
    ]
    return (
        f"<h1>{escaped(report.uri)} {state}</h1>"
        f"<p>{report.format} table, version {report.version:,}{when}. {facts}</p>"
        f'<div class="tiles">{"".join(f"<div><b>{escaped(v)}</b>{k}</div>" for k, v in tiles)}</div>'
    )


def _health(report: ReportFacts) -> str:
    rows = (
        (
            f'<b style="color: var(--{c.state})">{_MARKS[c.state]}</b>',
            escaped(c.name),
            escaped(c.found) + (f" <b>{escaped(c.advice)}</b>" if c.advice else ""),
        )
        for c in report.checks
    )
    return "<h2>Health</h2>" + _table((), rows)


def _kind(operation: str | None) -> str:
    name = (operation or "").upper()
    return next((kind for kind, _, words in _KINDS if name.startswith(words)), "append")


def _versions(report: ReportFacts) -> str:
    known = report.versions
    if not known:
        return ""
    titles = [
        f"version {v.version}: {v.operation or 'unknown'}, {'' if v.timestamp is None else _time(v.timestamp)}"
        + ("" if v.files is None or v.size_bytes is None else f", {file_quantity(v.files, v.size_bytes)}")
        for v in known
    ]
    kinds = [_kind(v.operation) for v in known]
    first, last = f"version {known[0].version}", f"version {known[-1].version}"
    colours = [
        ("append", "rows added", "accent"),
        *((k, t, c) for (k, t, _), c in zip(_KINDS, ("attention", "good", "soft"), strict=True)),
    ]
    key = "".join(
        f'<span><i style="background: var(--{colour})"></i>{text}</span>'
        for kind, text, colour in colours
        if kind in kinds
    )
    charted = [
        f"<p>{title}</p>" + charts.steps(values, titles, kinds, first, last)
        for title, values in (
            (
                "Bytes of the version, at most " + size_text(max((v.size_bytes or 0) for v in known)),
                [v.size_bytes for v in known],
            ),
            (f"Files of the version, at most {max((v.files or 0) for v in known):,}", [v.files for v in known]),
        )
        if any(v is not None for v in values)
    ]
    return f'<h2>Versions</h2>{"".join(charted)}<p class="key">{key}</p>'


def _sizes(report: ReportFacts) -> str:
    if not report.sizes:
        return ""
    labels = [size_text(s.least) for s in report.sizes]
    titles = [
        f"{size_text(s.least)} to {size_text(s.most)}: {file_quantity(s.files, s.size_bytes)}" for s in report.sizes
    ]
    c = report.compaction
    saved = ""
    if c is not None:
        saved = (
            f"Optimizing would write {file_quantity(c.files, c.size_bytes)} again, as {c.files_after:,}."
            if c.files
            else "Optimizing would write no file again."
        )
    chart = charts.bars(labels, [s.files for s in report.sizes], titles)
    return f"<h2>Sizes of files</h2><p>Files by size, from the label on. {saved}</p>{chart}"


def _orders(report: ReportFacts) -> str:
    if not report.orders:
        return ""
    parts = [
        f"<p><b>{escaped(o.column)}</b>{' (clustered)' if o.is_clustered else ''}: bounds of a file overlap those of "
        f"{o.overlap:.1%} of {o.files:,} files, itself included.</p>{charts.spans(o.spans)}"
        for o in report.orders
    ]
    return (
        "<h2>Order of columns</h2><p>Each line is a file, from its least to its greatest value, in their order. "
        "The fewer lines lie above each other, the fewer files a condition reads.</p>" + "".join(parts)
    )


def _partitions(report: ReportFacts) -> str:
    if not report.partitions:
        return ""
    most = report.partitions[0].size_bytes or 1
    rows = (
        (
            escaped(p.partition),
            f"{p.files:,}",
            size_text(p.size_bytes),
            charts.part_bar(p.size_bytes / most, size_text(p.size_bytes)),
        )
        for p in report.partitions
    )
    left = report.num_partitions - len(report.partitions)
    more = f"<p>and {left:,} more</p>" if left else ""
    return "<h2>Partitions</h2>" + _table(("partition", "files", "bytes", ""), rows, (1, 2), (0,)) + more


def _coverage(report: ReportFacts) -> str:
    if not report.coverage:
        return ""
    total = report.files or 1
    rows = (
        (
            escaped(c.column),
            f"{c.with_bounds / total:.0%}",
            charts.part_bar(c.with_bounds / total, f"{c.with_bounds:,} of {report.files:,} files"),
            f"{c.with_nulls / total:.0%}",
        )
        for c in report.coverage
    )
    return "<h2>Statistics</h2>" + _table(
        ("column", "files with bounds", "", "with numbers of nulls"), rows, names=(0,)
    )


def _log(report: ReportFacts) -> str:
    log = report.log
    if log is None:
        return ""
    checkpoint = "none" if log.checkpoint is None else f"version {log.checkpoint:,}"
    facts = {
        "checkpoint that is read": checkpoint,
        "files of the log after it": f"{log.commits:,}",
        "commits between checkpoints": "unknown" if log.interval is None else f"{log.interval:,}",
        **{f"retention of {name}": text.removeprefix("interval ") for name, text in log.retention.items()},
    }
    if report.unused is not None:
        facts["a vacuum would delete"] = file_quantity(*report.unused)
    return "<h2>Log and retention</h2>" + _table((), ((escaped(k), escaped(v)) for k, v in facts.items()))


def _features(report: ReportFacts) -> str:
    if not report.features:
        return ""
    active = {True: "yes", False: "no", None: "-"}
    rows = (
        (escaped(f.name), active[f.is_active], escaped(f.plugin or "none"), escaped(f.summary)) for f in report.features
    )
    return "<h2>Features</h2>" + _table(("feature", "active", "served by", "what it does"), rows)


def _findings(report: ReportFacts) -> str:
    names = ("severity", "rule", "file", "found", "expected", "advice")
    rows = [tuple(_shown(f.get(n)) for n in names) for f in report.findings[:100]]
    if not rows:
        return "<h2>Findings</h2><p>Verification found nothing.</p>"
    left = len(report.findings) - len(rows)
    return "<h2>Findings</h2>" + _table(names, rows, names=(2, 3, 4)) + (f"<p>and {left:,} more</p>" if left else "")


def _shown(value: Any) -> str:
    return "" if value is None else escaped(value)


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), names: Sequence[int] = ()
) -> str:
    """Return a table of HTML; ``numbers`` are columns set to the right, ``names`` those with words of any length."""
    kind = {i: ' class="number"' for i in numbers} | {i: ' class="name"' for i in names}
    top = "".join(f"<th{kind.get(i, '')}>{n}</th>" for i, n in enumerate(head))
    top = f"<thead><tr>{top}</tr></thead>" if head else ""
    body = "".join(
        "<tr>" + "".join(f"<td{kind.get(i, '')}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table>{top}<tbody>{body}</tbody></table></div>'


def _time(timestamp_ms: int) -> str:
    return f"{datetime.fromtimestamp(timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
