"""Filters of users, as far as they choose files of a Delta table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from delta_core.errors import InvalidArgumentError
from delta_core.expressions.ast import Expression
from delta_core.expressions.filters import from_filters
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.scan.plan import plan_table_skipping
from delta_core.kernel.snapshot import Snapshot
from delta_core.scan.interop.predicates import all_filters
from delta_core.schema.types import Field, PrimitiveType

__all__ = ["as_texts", "file_filter", "plan_files", "row_filter"]


def plan_files(snapshot: Snapshot, predicate: Any = None) -> FileSet:
    """Return the files that may hold rows for a predicate: exact for partitions, else as far as statistics report."""
    bound = file_filter(snapshot, predicate)
    if bound is None:
        return snapshot.files
    state, evaluator = snapshot.state, snapshot.engine.evaluator
    skipping = plan_table_skipping(state, bound)
    files = snapshot.files.where(skipping.partition, evaluator, snapshot.timezone, exact=True)
    return files.where(skipping.statistics, evaluator, snapshot.timezone)


def file_filter(snapshot: Snapshot, predicate: Any) -> Expression | None:
    """Return a filter on files as an expression; for partition columns the empty string represents null."""
    return all_filters(snapshot, as_texts(snapshot, predicate))


def as_texts(snapshot: Snapshot, predicate: Any) -> Any:
    """Return filters on partition columns with values as the log has them; other predicates as they are.

    The empty string represents null, and numbers are compared with columns of texts as texts.
    """
    names = snapshot.state.partition_columns
    return _as_texts(predicate, {n.lower(): snapshot.schema.get(n) for n in names})


def _as_texts(predicate: Any, columns: Mapping[str, Field | None]) -> Any:
    if not isinstance(predicate, (list, tuple)):
        return predicate
    nested = [isinstance(p, list) for p in predicate]
    if any(nested) and not all(nested):
        raise InvalidArgumentError(
            "Found filters that mix tuples and lists, expected a list of (column, op, value) tuples that must all be "
            "true, or a list of such lists; one of them must be true."
        )
    if any(nested):
        return [_as_texts(p, columns) for p in predicate]
    tests = {"=": "is", "==": "is", "!=": "is not"}
    found = []
    for part in predicate:
        if not isinstance(part, tuple) or len(part) != 3 or str(part[0]).lower() not in columns:
            found.append(part)
            continue
        name, operator, value = part
        if isinstance(value, str) and value == "" and operator in tests:
            found.append((name, tests[operator], None))
            continue
        field = columns[str(name).lower()]
        if field is not None and field.type == PrimitiveType("string"):
            value = [_text(v) for v in value] if isinstance(value, (list, tuple)) else _text(value)
        found.append((name, operator, value))
    return found


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def row_filter(snapshot: Snapshot, filters: Any) -> Any:
    """Return filters of rows, in which null is a value for ``in`` and ``not in``, as in filters of PyArrow.

    Those that compare with None select nothing, and a warning reports each.
    """
    if not isinstance(filters, (list, tuple)):
        return filters
    if len(filters) == 3 and all(isinstance(p, str) for p in filters[:2]):
        tests: Any = _none_is_never_equal(filters)
    else:
        tests = [
            _none_is_never_equal(p)
            if isinstance(p, tuple)
            else [_none_is_never_equal(t) for t in p]
            if isinstance(p, list)
            else p
            for p in filters
        ]
    return from_filters(tests, snapshot.schema, null_is_value=True)


def _none_is_never_equal(test: Any) -> Any:
    if not isinstance(test, tuple) or len(test) != 3 or test[2] is not None or test[1] not in _COMPARISONS:
        return test
    warnings.warn(
        f"The filter {test!r} selects no row: a comparison with None is never true. Use (column, 'is', None) or "
        "(column, 'is not', None).",
        UserWarning,
        stacklevel=2,
    )
    return (test[0], "in", [])


_COMPARISONS = frozenset(("=", "==", "!=", "<", "<=", ">", ">="))
