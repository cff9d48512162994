"""The share of rows for which a condition is true, estimated from the statistics of files."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from typing import Any

from delta_core.expressions.ast import Call, Column, Expression, FileStatistic, Literal, conjuncts
from delta_core.kernel.log.files import FileSet
from delta_core.kernels import compute as pc
from delta_core.schema.types import PrimitiveType

__all__ = ["share_of_rows"]

_BELOW, _ABOVE = ("<", "<="), (">", ">=")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def share_of_rows(predicate: Expression, files: FileSet, stored: Mapping[str, str]) -> float:
    """Return about what share of the rows of files a bound predicate keeps, 0 if that is not known.

    Parameters
    ----------
    predicate : Expression
        Of the parts that AND joins, those count that compare a number or a time with a constant. Values are taken to
        be spread evenly between the least and the greatest one.
    files : FileSet
        The files that may have such rows.
    stored : mapping of str to str
        The columns, each with its name in files.
    """
    share = 1.0
    for part in conjuncts(predicate):
        found = _share(part, files, stored)
        if found is None:
            return 0.0
        share = min(share, found)
    return share


def _share(part: Expression, files: FileSet, stored: Mapping[str, str]) -> float | None:
    if not isinstance(part, Call) or part.function not in _TURNED or len(part.args) != 2:
        return None
    first, second = part.args
    function = part.function
    if isinstance(first, Literal):
        first, second, function = second, first, _TURNED[function]
    if not isinstance(first, Column) or len(first.path) != 1 or not isinstance(second, Literal):
        return None
    bound = _number(second.value)
    ends = _ends(stored[first.path[0]], second, files)
    if bound is None or ends is None:
        return None
    low, high = ends
    below = 0.5 if low == high else min(max((bound - low) / (high - low), 0.0), 1.0)
    return below if function in _BELOW else 1.0 - below


def _ends(column: str, constant: Literal, files: FileSet) -> tuple[float, float] | None:
    if not isinstance(constant.type, PrimitiveType):
        return None
    leaves = [FileStatistic(kind, (column,), constant.type) for kind in ("min", "max")]
    low, high = files.statistics(leaves).columns
    if low.null_count or high.null_count or not len(low):
        return None
    ends = _number(pc.min(low).as_py()), _number(pc.max(high).as_py())
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal, dt.date)):
        return None
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=value.tzinfo or dt.UTC).timestamp()
    return float(value.toordinal()) if isinstance(value, dt.date) else float(value)
