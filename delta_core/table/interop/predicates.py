"""Filters of users, as far as they choose files of a Delta table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_core.errors import InvalidArgumentError
from delta_core.expressions.ast import Expression
from delta_core.expressions.skipping import plan_skipping
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.snapshot import Snapshot
from delta_core.scan.interop.predicates import all_filters

__all__ = ["file_filter", "plan_files"]


def plan_files(snapshot: Snapshot, predicate: Any = None) -> FileSet:
    """Return the files that may hold rows for a predicate: exact for partitions, else as far as statistics report."""
    bound = file_filter(snapshot, predicate)
    if bound is None:
        return snapshot.files
    state, evaluator = snapshot.state, snapshot.engine.evaluator
    skipping = plan_skipping(bound, state.schema, state.column_map, state.partition_columns)
    files = snapshot.files.where(skipping.partition, evaluator, snapshot.timezone, exact=True)
    return files.where(skipping.statistics, evaluator, snapshot.timezone)


def file_filter(snapshot: Snapshot, predicate: Any) -> Expression | None:
    """Return a filter on files as an expression; for partition columns the empty string represents null."""
    return all_filters(snapshot, _empty_is_null(predicate, snapshot.state.partition_columns))


def _empty_is_null(predicate: Any, partition_columns: Sequence[str]) -> Any:
    """Read the empty string as null in filters on partition columns, as the log does."""
    if not isinstance(predicate, (list, tuple)):
        return predicate
    nested = [isinstance(p, list) for p in predicate]
    if any(nested) and not all(nested):
        raise InvalidArgumentError(
            "Found filters that mix tuples and lists, expected a list of (column, op, value) tuples that must all be "
            "true, or a list of such lists; one of them must be true."
        )
    if any(nested):
        return [_empty_is_null(p, partition_columns) for p in predicate]
    names = {n.lower() for n in partition_columns}
    tests = {"=": "is", "==": "is", "!=": "is not"}
    return [
        (p[0], tests[p[1]], None) if len(p) == 3 and p[2] == "" and p[1] in tests and str(p[0]).lower() in names else p
        for p in predicate
    ]
