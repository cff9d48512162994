"""Verify a table: its log, its definition, its files; each fact that breaks a rule becomes a finding."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import (
    DeltaError,
    EngineError,
    InvalidArgumentError,
    LogChangedError,
    LogError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    UnsupportedVersionError,
    shortened,
)
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.commits import read_infos
from delta_core.kernel.log.names import MOST_VERSION
from delta_core.kernel.log.segment import complete_checkpoints
from delta_core.kernel.log.timestamps import parse_version
from delta_core.kernel.plugins.checks import Finding
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernels.arrow_buffers import array_of
from delta_core.operations.vacuum.operation import VacuumOptions, plan_vacuum
from delta_core.operations.verify.checkpoints import check_checkpoints
from delta_core.operations.verify.checksums import CommitTotals, check_checksums
from delta_core.operations.verify.data_files import check_footers, check_rows
from delta_core.operations.verify.log import check_commits, check_compacted, check_hint
from delta_core.operations.verify.version import (
    check_change_files,
    check_data,
    check_definition,
    check_features,
    check_files,
    check_statistics_types,
)
from delta_core.runtime.html import grid, page
from delta_core.runtime.progress_bars import shows_progress

__all__ = ["FINDINGS", "VerifyOptions", "VerifyReport", "verify_table"]

#: Columns of `VerifyReport.findings`.
FINDINGS = pa.schema(
    [
        pa.field("rule", pa.string(), False),
        pa.field("severity", pa.string(), False),
        ("file", pa.string()),
        ("version", pa.int64()),
        ("column", pa.string()),
        pa.field("found", pa.string(), False),
        pa.field("expected", pa.string(), False),
        pa.field("advice", pa.string(), False),
    ]
)
#: The number of findings of one rule that are kept; the number of the others is a finding of its own.
_MOST = 1000
_ORDER = ("error", "warning", "information")
Progress = Callable[[str, int, int], None]


class VerifyOptions(Struct, frozen=True):
    """The extent of a verification.

    Parameters
    ----------
    deep : bool or "rows"
        True compares statistics with the footers of the data files; "rows" with the rows, which it reads all.
    data : bool
        Whether to look for the data files and read deletion vectors. False reads the log only.
    versions : sequence of int, optional
        The versions whose files are verified; the one that the table has loaded unless given.
    progress : function(str, int, int), optional
        Called with the name of a step, how much of it is done and how much there is; on any thread.
    """

    deep: bool | Literal["rows"] = False
    data: bool = True
    versions: Sequence[int] | None = None
    progress: Progress | None = None


class VerifyReport(Struct, frozen=True):
    """The result of verifying a table.

    Parameters
    ----------
    uri : str
        The table, without secrets.
    versions : tuple of int
        The versions whose files were verified.
    findings : pyarrow.Table
        A row for each finding, errors first: ``rule``, ``severity`` (``error``: readers fail or return wrong rows;
        ``warning``: a rule is broken, rows are right today; ``information``), ``file``, ``version``, ``column``,
        ``found``, ``expected`` and ``advice``.
    checked : Mapping of str to int
        How many files, commits and checkpoints were verified.
    seconds : float
        How long it took.

    Examples
    --------
    >>> report = table.verify()
    >>> report.ok, report.findings.num_rows
    (True, 0)
    """

    uri: str
    versions: tuple[int, ...]
    findings: pa.Table
    checked: Mapping[str, int]
    seconds: float

    @classmethod
    def of(
        cls, uri: str, version: int, findings: Iterable[Finding], checked: Mapping[str, int], seconds: float
    ) -> VerifyReport:
        """Return the report of one version; of each rule the first 1000 findings are kept.

        Parameters
        ----------
        uri : str
            The table, without secrets.
        version : int
            The version whose files were verified.
        findings : iterable of Finding
            In any order.
        checked : Mapping of str to int
            How many things of each kind were verified.
        seconds : float
            How long it took.

        Examples
        --------
        >>> from delta_core.operations import VerifyReport
        >>> VerifyReport.of("people", 3, [], {"files": 2}, 0.1).ok
        True
        """
        found = _Findings()
        found.take(findings)
        return cls(uri, (version,), found.table(), checked, seconds)

    @property
    def ok(self) -> bool:
        """Whether there is neither an error nor a warning.

        Examples
        --------
        >>> table.verify().ok
        True
        """
        return not {"error", "warning"} & set(self.findings.column("severity").to_pylist())

    def rules(self) -> set[str]:
        """Return the rules that errors and warnings are of.

        Examples
        --------
        >>> from pathlib import Path
        >>> Path(table.file_uris()[0]).unlink()
        >>> table.verify().rules()
        {'data-file-missing'}
        """
        return {f["rule"] for f in self.findings.to_pylist() if f["severity"] != "information"}

    def to_text(self) -> str:
        """Return the findings as text, a paragraph each, under a summary.

        Examples
        --------
        >>> print(table.verify().to_text())
        table: nothing found (version 1; 2 commits, 0 checkpoints, 2 files; ... s)
        """
        paragraphs = [self._summary()]
        for f in self.findings.to_pylist():
            place = ", ".join(
                text
                for text in (
                    f["file"],
                    None if f["version"] is None else f"version {f['version']}",
                    None if f["column"] is None else f"column {f['column']}",
                )
                if text
            )
            paragraphs.append(
                f"{f['severity']} {f['rule']}{f': {place}' if place else ''}\n"
                f"  found:    {f['found']}\n  expected: {f['expected']}\n  advice:   {f['advice']}"
            )
        return "\n".join(paragraphs)

    def to_json(self) -> str:
        """Return the report as a JSON object: ``ok``, ``uri``, ``versions``, ``checked``, ``seconds``, ``findings``.

        Examples
        --------
        >>> '"ok": true' in table.verify().to_json()
        True
        """
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `to_json` has it.

        Examples
        --------
        >>> table.verify().to_dict()["checked"]
        {'commits': 2, 'checkpoints': 0, 'files': 2}
        """
        return {
            "ok": self.ok,
            "uri": self.uri,
            "versions": list(self.versions),
            "checked": dict(self.checked),
            "seconds": round(self.seconds, 3),
            "findings": self.findings.to_pylist(),
        }

    def _summary(self) -> str:
        severities = self.findings.column("severity").to_pylist()
        counts = [(severities.count(s), s) for s in _ORDER]
        found = ", ".join(f"{n} {s}{'s' * (n > 1 and s != 'information')}" for n, s in counts if n) or "nothing found"
        checked = ", ".join(f"{n:,} {name.removesuffix('s') if n == 1 else name}" for name, n in self.checked.items())
        versions = ", ".join(map(str, self.versions)) or "none could be opened"
        return f"{self.uri}: {found} (version {versions}; {checked}; {self.seconds:.1f} s)"

    def __repr__(self) -> str:
        return f"VerifyReport({self._summary()})"

    def _repr_html_(self) -> str:
        names = ("rule", "severity", "file", "version", "column", "found", "expected", "advice")
        rows = [["" if f[n] is None else str(f[n]) for n in names] for f in self.findings.slice(0, 100).to_pylist()]
        facts = {"table": self.uri, "versions": self.versions, "result": self._summary()}
        return page("Verification", facts, grid(names, rows))


class _Findings:
    """Collects findings, a bounded number of each rule."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: dict[str, int] = {}

    def take(self, findings: Iterable[Finding]) -> None:
        for f in findings:
            count = self._counts[f.rule] = self._counts.get(f.rule, 0) + 1
            if count <= _MOST:
                self._found.append(f)

    def table(self) -> pa.Table:
        more = [
            Finding(
                rule,
                f"{count - _MOST} further findings of this rule",
                "none",
                "Mend those that are listed and verify again.",
                next(f.severity for f in self._found if f.rule == rule),
            )
            for rule, count in self._counts.items()
            if count > _MOST
        ]
        ordered = sorted([*self._found, *more], key=lambda f: _ORDER.index(f.severity))
        return pa.Table.from_arrays(
            [array_of([getattr(f, field.name) for f in ordered], field.type) for field in FINDINGS], schema=FINDINGS
        )


@shows_progress
def verify_table(context: TableContext, base: Snapshot | None, options: VerifyOptions) -> VerifyReport:
    """Verify a table; changes nothing.

    Parameters
    ----------
    context : TableContext
        Where the table is, and how it is reached.
    base : Snapshot or None
        The version whose files are verified, unless ``options`` name others; the latest if None.
    options : VerifyOptions
        The extent of the verification.

    Raises
    ------
    InvalidArgumentError
        For ``deep`` that is neither a bool nor "rows", or deep without data.
    TableNotFoundError
        If there is no log.
    EngineError
        If the store fails.

    Notes
    -----
    The log is read whole: each commit once, each checkpoint once and, if the commits below it are there, once more
    through these. Live files are Arrow columns; only findings are objects.
    """
    if options.deep not in (False, True, "rows") or options.deep and not options.data:
        raise InvalidArgumentError(
            f"Found deep={options.deep!r} with data={options.data!r}; expected False, True or 'rows', and data=True if "
            "deep."
        )
    begin = time.perf_counter()
    progress: Progress = options.progress or (lambda step, done, total: None)
    findings = _Findings()
    logs = context.log.engine.logs
    files = context.log.listed()
    commits = [f for f in files if f.kind in ("commit", "staged")]
    totals = CommitTotals()
    findings.take(check_commits(context, files, totals, progress))
    findings.take(finding for finding, _ in check_checkpoints(context, files, progress))
    findings.take(_missing_above(context, files, commits))
    findings.take(check_compacted(logs, files))
    findings.take(check_hint(context, files))
    states: dict[int, Snapshot] = {}
    for version in [None] if options.versions is None else options.versions:
        findings.take(_open(context, base, version, states))
    findings.take(check_checksums(context, files, states, totals))
    checked = {"commits": len(commits), "checkpoints": len(complete_checkpoints(files, set())), "files": 0}
    for snapshot in states.values():
        findings.take(_guarded(snapshot, _checks(snapshot, commits, options, progress)))
        checked["files"] += snapshot.files.count
    if options.data and states:
        newest = states[max(states)]
        findings.take(_guarded(newest, check_change_files(newest, commits, progress)))
        findings.take(_guarded(newest, _unreferenced(newest)))
    seconds = time.perf_counter() - begin
    return VerifyReport(shown_uri(context.log.uri), tuple(states), findings.table(), checked, seconds)


def _missing_above(context: TableContext, files: Sequence[LogFile], commits: Sequence[LogFile]) -> Iterator[Finding]:
    """Yield files that belong to versions above the latest one: the commits were there when they were written."""
    if context.log.catalog is not None:  # whose commits may be in the log later than what follows from them
        return
    last = max((f.end_version for f in files if f.kind in ("commit", "checkpoint")), default=-1)
    for f in files:
        if f.kind in ("crc", "compacted") and f.end_version > last >= 0:
            found, expected = f"{f.name}, and no commit of version {f.end_version}", "the commit"
            advice = "Restore the commit from a copy: its rows are not read. If it never was there, delete this file."
            yield Finding("commit-missing", found, expected, advice, "error", f.name, f.end_version)


def _unreferenced(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield how many files no version within the retention needs."""
    try:
        plan = plan_vacuum(snapshot, VacuumOptions())
    except LogChangedError:
        raise
    except (UnsupportedFeatureError, UnsupportedVersionError, UnsupportedOperationError, LogError):
        return  # which files belong to the table is not known
    if plan.num_files:
        found = f"{plan.num_files:,} files ({plan.num_bytes:,} bytes) that no version within the retention needs"
        advice = "vacuum(full=True) deletes them."
        yield Finding("files-unreferenced", found, "none", advice, "information", version=snapshot.version)


def _open(
    context: TableContext, base: Snapshot | None, version: int | None, states: dict[int, Snapshot]
) -> Iterator[Finding]:
    """Open a version; one that can't be opened is a finding."""
    number = None if version is None else parse_version(version)
    try:
        snapshot = base if base is not None and number in (None, base.version) else context.read(number)
        _ = snapshot.files.count
        states[snapshot.version] = snapshot
    except (EngineError, LogChangedError):
        raise
    except DeltaError as e:
        advice = "Restore the files that other findings name, or read an older version."
        shown = None if number is None or number > MOST_VERSION else number
        expected = "a version that can be opened"
        yield Finding("version-unreadable", shortened(e), expected, advice, "error", version=shown)


def _guarded(snapshot: Snapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings; a part of the log that can't be read becomes one too."""
    try:
        yield from findings
    except (EngineError, LogChangedError):
        raise
    except DeltaError as e:
        advice = "Mend the other findings first, then verify again."
        yield Finding("version-unreadable", shortened(e), "values that can be read", advice, version=snapshot.version)


def _checks(
    snapshot: Snapshot, commits: Sequence[LogFile], options: VerifyOptions, progress: Progress
) -> Iterator[Finding]:
    @cache
    def infos() -> Mapping[int, Mapping[str, Any]]:
        own = [f for f in commits if f.version <= snapshot.version]
        found = read_infos(snapshot.engine, own)
        return {f.version: found.get(f.version, {}) for f in own}

    progress("definition", 0, 1)
    yield from check_definition(snapshot)
    yield from check_files(snapshot)
    yield from check_features(snapshot, infos)
    if options.data:
        yield from check_data(snapshot, progress)
    if options.deep:
        yield from check_statistics_types(snapshot)
    if options.deep == "rows":
        yield from check_rows(snapshot, progress)
    elif options.deep:
        yield from check_footers(snapshot, progress)
