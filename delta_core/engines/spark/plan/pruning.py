"""From a filter of Spark's plan to the files that may hold a row for which it is true."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

from delta_core.engines.spark.plan.names import constant_name
from delta_core.errors import DeltaError
from delta_core.expressions.ast import Call, Column, Expression, Literal, all_of
from delta_core.expressions.binding import bind
from delta_core.expressions.skipping import SkippingPlan, plan_skipping
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.scan.scan import Scan
from delta_core.schema.fields import Path
from delta_core.schema.types import DataType, PrimitiveType, StructType, parse_decimal

__all__ = ["SparkFilePruner", "FilterReader"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FUNCTIONS = frozenset(("isnull", "isnotnull", "startswith", "in", "=", "<=>", "<", "<=", ">", ">="))


class FilterReader:
    """From a filter over the raw columns, as the file index writes it, to what it requires of files.

    Parameters
    ----------
    shown, logical : StructType
        The columns as plans name them (the fields within them by the names of the table), and in parallel as users
        do; columns beyond those of ``logical`` are no columns of the table.
    """

    def __init__(self, scan: Scan, shown: StructType, logical: StructType) -> None:
        self._scan = scan
        self._shown = {a.name: (a.type, b.name) for a, b in zip(shown.fields, logical.fields, strict=False)}
        self._constants = {constant_name(i): leaf for i, leaf in enumerate(scan.plan.constants)}

    def plan(self, text: str) -> SkippingPlan:
        """Return the tests of files."""
        parts = [p for node in json.loads(text) if (p := self._read(node, whole=False)) is not None]
        state = self._scan.source.state
        try:
            bound = [bind(p, state.schema, {}) for p in parts]
        except DeltaError:  # of a type that has no order here: the rows are still filtered
            return SkippingPlan(None, None)
        return plan_skipping(all_of(bound), state.schema, state.column_map, state.partition_columns)

    # --- the filter's text -----------------------------------------------------------------

    def _read(self, node: Any, whole: bool) -> Expression | None:
        """Return an expression that follows from a node (``whole``: one that means the same), None for none."""
        if node is None:
            return None
        name, *args = node
        if name == "column":
            return self._column(args)
        if name == "literal":
            return _literal(*args)
        if name == "and" and not whole:
            return all_of([p for a in args if (p := self._read(a, False)) is not None])
        if name not in ("and", "or", "not") and name not in _FUNCTIONS:
            return None
        parts = [self._read(a, whole or name != "or") for a in args]
        known = [p for p in parts if p is not None]
        return Call(name, tuple(known)) if len(known) == len(parts) else None

    def _column(self, names: list[str]) -> Expression | None:
        if names[0] in self._constants:
            return self._constants[names[0]]
        if names[0] not in self._shown:
            return None
        kind, first = self._shown[names[0]]
        for name in names[1:]:
            if not isinstance(kind, StructType) or name not in kind.names:
                return None
            kind = kind.fields[kind.names.index(name)].type
        path: Path = (first, *names[1:])
        return Column(path)


class SparkFilePruner:
    """Chooses files of a set for a filter over the raw columns."""

    def __init__(self, scan: Scan, files: FileSet, filters: FilterReader) -> None:
        self._source = scan.source
        self._files = files
        self._filters = filters

    def __call__(self, text: str) -> FileSet | None:
        """Return the files that may hold such a row; None if the filter contains nothing of files."""
        if text == "[]":
            return self._files
        if self._files.keep is not None:
            return None
        plan = self._filters.plan(text)
        if plan.partition is None and plan.statistics is None:
            return None
        evaluator, zone = self._source.engine.evaluator, self._source.timezone
        left = self._files.where(plan.partition, evaluator, zone, exact=True)
        return left.where(plan.statistics, evaluator, zone)


def _literal(kind: Any, text: str | None) -> Literal | None:
    if not isinstance(kind, str):
        return None
    t: DataType = PrimitiveType(kind)
    if text is None:
        return Literal(None, t)
    try:
        return Literal(Decimal(text) if parse_decimal(kind) else _VALUES[kind](text), t)
    except (KeyError, ValueError, OverflowError):  # a type or a year that Python lacks
        return None


_VALUES: dict[str, Any] = {
    "boolean": lambda v: v == "true",
    "string": str,
    "binary": bytes.fromhex,
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "date": lambda v: (_EPOCH + dt.timedelta(days=int(v))).date(),
    "timestamp": lambda v: _EPOCH + dt.timedelta(microseconds=int(v)),
    "timestamp_ntz": lambda v: (_EPOCH + dt.timedelta(microseconds=int(v))).replace(tzinfo=None),
}
