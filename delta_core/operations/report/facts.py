"""The figures of a report on a table of any format; `table_checks` judges them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct

from delta_core.runtime.sizes import size_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Check",
    "ColumnOrder",
    "Compaction",
    "Coverage",
    "ServedFeature",
    "LogUpkeep",
    "PartitionSize",
    "ReportFacts",
    "SizeRange",
    "VersionSize",
    "file_quantity",
    "histogram",
    "table_checks",
]

State = Literal["good", "attention", "bad"]

#: A part of the rows, of the files, or of the bytes, from which on a check requires attention.
DELETED_PART, SMALL_PART, UNUSED_PART = 0.1, 0.5, 0.5
#: Fewer files than this are not worth a compaction.
FEW_FILES = 10
#: The largest partition, compared with the one in the middle.
MOST_SKEW = 10
#: The part of all files that a value of a clustering column is looked for in; more is attention.
MOST_OVERLAP = 0.25
#: Commits after a checkpoint, in intervals of checkpoints.
MOST_INTERVALS = 3


class SizeRange(Struct, frozen=True):
    """The data files whose size is within a range.

    Parameters
    ----------
    least, most : int
        The range in bytes; the upper end does not belong to it.
    files, size_bytes : int
        How many there are, and their bytes.
    """

    least: int
    most: int
    files: int
    size_bytes: int


class VersionSize(Struct, frozen=True):
    """A version of the table.

    Parameters
    ----------
    version : int
    timestamp : int or None
        When it was committed, ms since the epoch.
    operation : str or None
        As its writer named it.
    files, size_bytes : int or None
        Data files of the version, and their bytes; None if the log does not specify them.
    """

    version: int
    timestamp: int | None
    operation: str | None
    files: int | None
    size_bytes: int | None


class Compaction(Struct, frozen=True):
    """The effect of joining small files.

    Parameters
    ----------
    files, size_bytes : int
        Files that would be written again, and their bytes.
    files_after : int
        Into how many.
    """

    files: int
    size_bytes: int
    files_after: int


class ColumnOrder(Struct, frozen=True):
    """How well the bounds of a column distinguish files.

    Parameters
    ----------
    column : str
    is_clustered : bool
        Whether the table is clustered by it.
    files : int
        Files that have bounds of it.
    overlap : float
        The part of these files whose bounds overlap those of a file, on the average: 1 divided by the files if none
        overlap, 1 if all do.
    spans : tuple of (float, float)
        The bounds of some of the files, in their order, as parts of the whole range.
    """

    column: str
    is_clustered: bool
    files: int
    overlap: float
    spans: tuple[tuple[float, float], ...]


class PartitionSize(Struct, frozen=True):
    """The files of a partition.

    Parameters
    ----------
    partition : str
        Its values.
    files, size_bytes : int
    """

    partition: str
    files: int
    size_bytes: int


class Coverage(Struct, frozen=True):
    """How many files have statistics of a column.

    Parameters
    ----------
    column : str
    with_bounds, with_nulls : int
        Files with a least and a greatest value (or only nulls), and with a number of nulls.
    """

    column: str
    with_bounds: int
    with_nulls: int


class ServedFeature(Struct, frozen=True):
    """A table feature.

    Parameters
    ----------
    name : str
    plugin : str or None
        The distribution that serves it; None if nothing does.
    is_active : bool or None
        None if it is not known.
    summary : str
    """

    name: str
    plugin: str | None
    is_active: bool | None
    summary: str


class LogUpkeep(Struct, frozen=True):
    """How far a reader has to go to open the table, and how long old versions stay.

    Parameters
    ----------
    checkpoint : int or None
        The version of the checkpoint that is read; None if there is none.
    commits : int
        Files of the log that are read after it.
    interval : int or None
        After how many commits a checkpoint is due.
    retention : Mapping of str to str
        How long something is kept, by its name.
    """

    checkpoint: int | None
    commits: int
    interval: int | None
    retention: Mapping[str, str]


class Check(Struct, frozen=True):
    """One line of a table's health.

    Parameters
    ----------
    name : str
        The subject.
    state : "good", "attention" or "bad"
    found : str
    advice : str
        The remedy; empty if the state is good.
    """

    name: str
    state: State
    found: str
    advice: str = ""


class ReportFacts(Struct, frozen=True):
    """The figures of a report.

    Parameters
    ----------
    uri, format : str
    version : int
    timestamp : int or None
        When the version was committed, ms since the epoch.
    facts : Mapping of str to str
        Further facts, by title.
    files, size_bytes : int
        Its data files, and their bytes.
    rows, deleted_rows : int or None
        Rows, and deleted ones that are still in the files; None if the files do not specify it.
    sizes : tuple of SizeRange
        The sizes of data files.
    compaction : Compaction or None
        The effect of joining small files; None if it was not looked for.
    versions : tuple of VersionSize
        The latest versions, oldest first.
    orders : tuple of ColumnOrder
    partitions : tuple of PartitionSize
        The largest ones first.
    num_partitions : int
        All of them.
    skew : float or None
        The bytes of the largest partition by those of the one in the middle.
    coverage : tuple of Coverage
        Of columns that can have statistics.
    features : tuple of ServedFeature
    log : LogUpkeep or None
        None if the format has no log.
    unused : tuple of int, optional
        The number and the bytes of files that a vacuum would delete; None if the store was not listed.
    findings : tuple of dict
        Of `delta_core.VerifyReport`.
    checks : tuple of Check
        Its health.
    seconds : float
        How long it took.
    """

    uri: str
    format: str
    version: int
    timestamp: int | None
    facts: Mapping[str, str]
    files: int
    size_bytes: int
    rows: int | None
    deleted_rows: int | None
    sizes: tuple[SizeRange, ...]
    compaction: Compaction | None
    versions: tuple[VersionSize, ...]
    orders: tuple[ColumnOrder, ...] = ()
    partitions: tuple[PartitionSize, ...] = ()
    num_partitions: int = 0
    skew: float | None = None
    coverage: tuple[Coverage, ...] = ()
    features: tuple[ServedFeature, ...] = ()
    log: LogUpkeep | None = None
    unused: tuple[int, int] | None = None
    findings: tuple[Mapping[str, Any], ...] = ()
    checks: tuple[Check, ...] = ()
    seconds: float = 0.0

    @property
    def state(self) -> State:
        """The worst state of its checks.

        Examples
        --------
        >>> table.report().state
        'good'
        """
        states = {check.state for check in self.checks}
        return "bad" if "bad" in states else "attention" if "attention" in states else "good"


def histogram(sizes: NDArray[np.int64]) -> tuple[SizeRange, ...]:
    """Return files by size, in ranges that double from 1 KiB on; those at both ends without files are left out.

    Parameters
    ----------
    sizes : int64[n]
        Bytes of each file.
    """
    found = np.maximum(sizes, 0)
    if not len(found):
        return ()
    at = np.floor(np.log2(np.maximum(found, 1) / 1024)).astype(np.int64) + 1
    at = np.maximum(at, 0)
    counts, totals = np.bincount(at), np.bincount(at, weights=found.astype(np.float64))
    return tuple(
        SizeRange(0 if i == 0 else 1024 << (i - 1), 1024 << i, int(counts[i]), int(totals[i]))
        for i in range(int(at.min()), len(counts))
    )


def file_quantity(files: int, size: int) -> str:
    """Return a number of files with their bytes."""
    return f"{files:,} file{'' if files == 1 else 's'} ({size_text(size)})"


def table_checks(report: ReportFacts) -> tuple[Check, ...]:
    """Return what is good of a table, and what is not, with what to do.

    Parameters
    ----------
    report : ReportFacts
        Without checks.
    """
    found = [_soundness(report), _file_sizes(report), _deleted(report)]
    if report.files and (report.coverage or report.log is not None):
        found.append(_statistics(report))
    if any(o.is_clustered for o in report.orders):
        found.append(_order(report))
    if report.skew is not None:
        found.append(_partitions(report, report.skew))
    if report.log is not None:
        found.append(_log(report.log))
    if report.unused is not None:
        found.append(_unused(report, *report.unused))
    if report.features:
        found.append(_features(report))
    return (*found, _age(report))


def _soundness(report: ReportFacts) -> Check:
    severities = [f["severity"] for f in report.findings]
    errors, warnings = severities.count("error"), severities.count("warning")
    if not errors and not warnings:
        return Check("soundness", "good", "Nothing is wrong with the log and the files.")
    found = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}."
    first = next(f for f in report.findings if f["severity"] in ("error", "warning"))
    rule = f"{first['rule']} ({first['file']})" if first.get("file") else first["rule"]
    return Check("soundness", "bad" if errors else "attention", found, f"{rule}: {first['advice']}")


def _file_sizes(report: ReportFacts) -> Check:
    mean = f", {size_text(report.size_bytes / report.files)} on the average" if report.files else ""
    found = f"{file_quantity(report.files, report.size_bytes)}{mean}."
    c = report.compaction
    if c is None or c.files < max(FEW_FILES, SMALL_PART * report.files) or c.files_after > c.files / 2:
        return Check("files", "good", found)
    return Check("files", "attention", found, f"Optimize the table: {c.files:,} files would be {c.files_after:,}.")


def _deleted(report: ReportFacts) -> Check:
    if report.rows is None or report.deleted_rows is None:
        return Check("rows", "good", "Unknown: some files do not have their number of rows.")
    stored = report.rows + report.deleted_rows
    part = report.deleted_rows / stored if stored else 0.0
    found = f"{report.rows:,}; {report.deleted_rows:,} deleted ones are still in the files ({part:.0%})."
    if part < DELETED_PART:
        return Check("rows", "good", found)
    return Check("rows", "attention", found, "Optimize the table: it leaves deleted rows out.")


def _statistics(report: ReportFacts) -> Check:
    if not report.coverage:
        return Check("statistics", "good", "No column has bounds, by its type or a table property: reads skip no file.")
    least = min(report.coverage, key=lambda c: c.with_bounds)
    if least.with_bounds == report.files:
        return Check(
            "statistics",
            "good",
            f"All files have bounds of {len(report.coverage)} column{'' if len(report.coverage) == 1 else 's'}.",
        )
    found = f"{report.files - least.with_bounds:,} of {report.files:,} files have no bounds of {least.column!r}."
    few = [c for c in report.coverage if c.with_bounds < report.files]
    state: State = "attention" if any(c.with_bounds for c in few) or len(few) == len(report.coverage) else "good"
    advice = "Add them with compute_statistics, so that reads skip files." if state == "attention" else ""
    return Check("statistics", state, found, advice)


def _order(report: ReportFacts) -> Check:
    worst = max((o for o in report.orders if o.is_clustered), key=lambda o: o.overlap)
    found = f"A value of {worst.column!r} may be in {worst.overlap:.0%} of {worst.files:,} files."
    if worst.files < FEW_FILES or worst.overlap <= MOST_OVERLAP:
        return Check("order", "good", found)
    return Check("order", "attention", found, "Optimize the table: new files are not clustered.")


def _partitions(report: ReportFacts, skew: float) -> Check:
    found = f"{report.num_partitions:,}; the largest has {skew:.1f} times the bytes of the one in the middle."
    if skew <= MOST_SKEW or report.num_partitions < 3:
        return Check("partitions", "good", found)
    largest = report.partitions[0].partition
    return Check("partitions", "attention", found, f"The largest is {largest}: partition by other columns, or by none.")


def _log(log: LogUpkeep) -> Check:
    where = f"version {log.checkpoint}" if log.checkpoint is not None else "none"
    found = f"Checkpoint: {where}; {log.commits:,} file{'' if log.commits == 1 else 's'} of the log after it."
    if log.interval is None or log.commits <= MOST_INTERVALS * log.interval:
        return Check("log", "good", found)
    return Check("log", "attention", found, f"Write a checkpoint; one is due after {log.interval} commits.")


def _unused(report: ReportFacts, files: int, size: int) -> Check:
    found = f"A vacuum would delete {file_quantity(files, size)}."
    if size <= UNUSED_PART * report.size_bytes:
        return Check("unused files", "good", found)
    return Check("unused files", "attention", found, "Vacuum the table.")


def _features(report: ReportFacts) -> Check:
    missing = [f.name for f in report.features if f.plugin is None]
    if not missing:
        return Check("features", "good", f"{len(report.features)}, all of which are served.")
    return Check("features", "bad", f"Nothing serves {', '.join(missing)}.", "Install a plugin that does.")


def _age(report: ReportFacts) -> Check:
    if report.timestamp is None:
        return Check("version", "good", f"{report.version}, at an unknown time.")
    made = datetime.fromtimestamp(report.timestamp / 1000, UTC)
    return Check("version", "good", f"{report.version}, of {made:%Y-%m-%d %H:%M} UTC.")
