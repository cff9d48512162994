"""How a scan reads, as a report."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

# the records of reports are loaded with the first one
from delta_core import api
from delta_plugins.lance.predicates import Predicate
from delta_plugins.lance.version_files import VersionFiles

if TYPE_CHECKING:
    from delta_core.api import Expression, PlannedRows, RunReport, ScanReport
    from delta_plugins.lance.index import IndexPlan

__all__ = ["explain_scan"]


def explain_scan(
    dataset: VersionFiles,
    predicate: Predicate | None,
    columns: Sequence[str],
    limit: int | None,
    run: PlannedRows | None = None,
    indices: IndexPlan | None = None,
    encoded: Sequence[Expression] = (),
) -> ScanReport:
    """Return how a scan reads.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    predicate : Predicate, optional
        Its condition.
    columns : sequence of str
        The columns that it returns.
    limit : int, optional
        The most rows to return.
    run : PlannedRows, optional
        The scan, if it is to be run.
    indices : IndexPlan, optional
        The rows that indices leave for the predicate.
    encoded : sequence of Expression
        Parts of the predicate that are tested on encoded values.
    """
    fragments = dataset.manifest.fragments
    parts = [] if predicate is None else api.conjuncts(predicate.expression)
    return api.ScanReport(
        table=repr(dataset),
        columns=tuple(columns),
        limit=limit,
        files=(api.FileStep("table", fragments.num_files, int(fragments.file_size.sum()), 0.0),),
        predicate=tuple(
            api.PredicatePart(api.format_sql(p), "predicate", False, False, False, p in encoded, True) for p in parts
        ),
        effects=tuple(_effects(dataset, indices)),
        run=None if run is None else _run(run, fragments.num_files),
    )


def _effects(dataset: VersionFiles, indices: IndexPlan | None) -> list[tuple[str, str]]:
    fragments = dataset.manifest.fragments
    found = []
    with_deletions = int((fragments.deletion_kind >= 0).sum())
    if with_deletions:
        found.append(("deletion files", f"rows of {with_deletions} of {len(fragments)} fragments are left out"))
    return found + ([] if indices is None else [*indices.notes])


def _run(scan: PlannedRows, num_files: int) -> RunReport:
    start, rows = perf_counter(), 0
    for batch in scan.batches():
        rows += batch.num_rows
    took = (perf_counter() - start) * 1000
    return api.RunReport(
        rows=rows,
        rows_examined=rows,
        files=num_files,
        row_groups=0,
        row_groups_left=0,
        pages=0,
        pages_decoded=0,
        whole_files=0,
        size_bytes=0,
        read_ms=took,
        filter_ms=0.0,
        output_ms=0.0,
    )
