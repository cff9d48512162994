"""The description of a scan of a Delta table: the files that each step leaves, and where the predicate is tested.

Nothing here runs unless `Scan.explain` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from delta_core.expressions.ast import Column, Expression, FileStatistic, PhysicalColumn, conjuncts, leaves
from delta_core.expressions.printing import format_sql
from delta_core.expressions.skipping import SkippingPlan
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.plugins.rules import MetadataColumn, ReadCheck, ReadRule, RowFilter
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.scan.plan import ReadPlan, plan_row_groups, plan_table_skipping
from delta_core.kernel.scan.vectors import locate
from delta_core.kernels.arrow_buffers import int64_values, is_valid
from delta_core.scan.report import FileStep, PredicatePart
from delta_core.scan.value_ranges import Build, column_test

if TYPE_CHECKING:
    from delta_core.engines.interface import Evaluator

__all__ = ["describe_effects", "describe_predicate", "prune_in_steps"]


def prune_in_steps(
    list_files: Callable[[], FileSet], skipping: SkippingPlan, evaluator: Evaluator, zone: str
) -> tuple[FileSet, tuple[FileStep, ...]]:
    """Return the files that are left, and those that each step leaves: the steps of `Scan`, timed."""
    steps: list[FileStep] = []
    start = perf_counter()

    def note(step: str, files: FileSet) -> FileSet:
        nonlocal start
        sizes = files.columns(["size"]).column(0)
        total = int(int64_values(sizes)[is_valid(sizes)].sum())
        took = (perf_counter() - start) * 1000
        steps.append(FileStep(step, files.count, total, took))
        start = perf_counter()
        return files

    files = note("table", list_files())
    if files.keep is None and skipping.partition is not None:
        files = note("partition values", files.where(skipping.partition, evaluator, zone, exact=True))
    if files.keep is None and skipping.statistics is not None:
        files = note("statistics", files.where(skipping.statistics, evaluator, zone))
    return files, tuple(steps)


def describe_predicate(
    predicate: Expression | None,
    plan: ReadPlan,
    rules: Sequence[ReadRule],
    state: TableState,
    prunes_files: bool,
    build: Build,
) -> tuple[PredicatePart, ...]:
    """Return where each part of the predicate, and of the features' row filters, is tested."""
    own = len(list(conjuncts(predicate)))
    filters = ", ".join(r.feature for r in rules if isinstance(r, RowFilter))
    evaluated = {id(part) for part in conjuncts(plan.filter)}
    found = []
    for number, part in enumerate(conjuncts(plan.pruning)):
        one = plan_table_skipping(state, part)
        is_encoded = any(isinstance(leaf, Column) and leaf.path[0] in state.encodings for leaf in leaves(part))
        tested = None if plan.checks else plan_row_groups(state, part, one)
        groups = () if tested is None else leaves(tested)
        found.append(
            PredicatePart(
                format_sql(part),
                "predicate" if number < own else filters,
                prunes_files and one.partition is not None,
                prunes_files and one.statistics is not None,
                any(isinstance(leaf, FileStatistic) for leaf in groups),
                id(part) in evaluated and column_test(part, plan.sources, plan.types, build) is not None,
                id(part) in evaluated or is_encoded,
            )
        )
    return tuple(found)


def describe_effects(
    plan: ReadPlan, rules: Sequence[ReadRule], metadata: Sequence[str], state: TableState, files: FileSet
) -> tuple[tuple[str, str], ...]:
    """Return what features do to the rows of a scan, as sentences without a subject."""
    found = []
    for selector in plan.selectors:
        located = locate(selector, files.columns(selector.columns))
        count = len(np.unique(int64_values(located.column("file"))))
        found.append((selector.feature, f"drops rows of {count:,} of {files.count:,} files"))
    for rule in rules:
        if isinstance(rule, RowFilter):
            found.append((rule.feature, "hides rows by a filter"))
        elif isinstance(rule, ReadCheck):
            found.append((rule.feature, f"checks {rule.name!r} on each row: no row group is left out"))
        elif isinstance(rule, MetadataColumn) and rule.name in metadata:
            found.append((rule.feature, f"adds {rule.name}"))
    for name, encoding in state.encodings.items():
        if any(
            isinstance(leaf, PhysicalColumn) and leaf.name in plan.columns.names for leaf in leaves(encoding.decode)
        ):
            found.append((encoding.feature, f"decodes column {name}"))
    names = zip(state.schema.names, state.column_map.physical.names, strict=True)
    if plan.match == "id":
        found.append(("column names", "columns are found in files by field id"))
    elif any(logical != physical for logical, physical in names):
        found.append(("column names", "columns are found in files by physical name"))
    return tuple(found)
