"""Filters of other libraries, as far as they mean the same here."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.errors import ColumnNotFoundError, ExpressionError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    Values,
    all_of,
    all_parts,
    conjuncts,
    leaves,
)
from delta_core.expressions.pyarrow_filters import pyarrow_columns
from delta_core.scan.rows import Scannable
from delta_core.schema.fields import find

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["Pushed", "all_filters", "exact_parts", "prunable", "referenced_columns"]

#: Conditions that mean the same to Spark, Arrow, Polars, DuckDB and DataFusion, for columns that hold no NaN.
_SHARED = frozenset((
    "and", "or", "not", "=", "!=", "<", "<=", ">", ">=", "in", "isnull", "isnotnull",
    "startswith", "endswith", "contains",
))  # fmt: skip
_FLOATING = ("float", "double")
#: Conditions that mean the same for doubles to engines that rank NaN; and, with the column first, to those for which
#: NaN fails every comparison but ``!=``. Not IN: -0.0 and 0.0 differ to some.
_RANKED = frozenset(("=", "!=", "<", "<=", ">", ">=", "isnull", "isnotnull"))
_UNRANKED = _RANKED - {">", ">="}
#: Every whole number up to it is a double.
_MOST_EXACT = 1 << 53


class Pushed(NamedTuple):
    """The part of another library's filter that a scan takes.

    Attributes
    ----------
    predicate : Expression, optional
        It drops no row that the filter keeps; None: nothing.
    is_all : bool
        Whether it drops every row that the filter drops, so that nothing is left to filter.
    """

    predicate: Expression | None
    is_all: bool


def all_filters(source: Scannable, *predicates: Any) -> Expression | None:
    """Join predicates of any kind that scans take by AND; None if there are none."""
    bound = [to_expression(p, source.schema, functions=source.functions) for p in predicates]
    return all_of([b for b in bound if b is not None])


def prunable(source: Scannable, filter: ds.Expression | None, *, takes_floats: bool = False) -> Pushed:
    """Return what of a pyarrow expression certainly drops the same rows here; of None, which drops none, all.

    Parameters
    ----------
    source : Scannable
        It has the columns' types.
    filter : pyarrow.compute.Expression, optional
        An untranslatable one is left to the caller.
    takes_floats : bool
        Whether an expression over float columns has this library's semantics, so that it is taken as a whole.
    """
    try:
        found = all_filters(source, filter)
    except ExpressionError:
        return Pushed(None, is_all=False)
    except ColumnNotFoundError:
        # parts that only the Arrow type of a column has, as that of a variant, are PyArrow's
        if not (pyarrow_columns(filter) or {""}).issubset(source.schema.names):
            raise
        return Pushed(None, is_all=False)
    if takes_floats and found is not None and any(_type_of(source, leaf) in _FLOATING for leaf in leaves(found)):
        return Pushed(found, is_all=True)
    return exact_parts(source, found, ranks_nan=False, is_bound=True)


def exact_parts(source: Scannable, expression: Expression | None, *, ranks_nan: bool, is_bound: bool = False) -> Pushed:
    """Keep the parts that AND joins which drop no row that another engine keeps.

    Engines differ about NaN, so parts about floats may keep rows that hold NaN.

    Parameters
    ----------
    source : Scannable
        It has the columns' types.
    expression : Expression, optional
        The filter, or what translates of it.
    ranks_nan : bool
        Whether the other engine takes NaN for equal to itself and greater than every number, as Spark does.
    is_bound : bool
        Whether the expression is bound.
    """
    parts = list(conjuncts(expression))
    agreements = [_agreement(source, p, ranks_nan) for p in parts]
    found = all_of([p for p, a in zip(parts, agreements, strict=True) if a is not None])
    try:
        found = found if is_bound else all_filters(source, found)
    except ExpressionError:
        return Pushed(None, is_all=False)
    return Pushed(found, is_all=all(agreements))


def _agreement(source: Scannable, expression: Expression, ranks_nan: bool) -> bool | None:
    """Compare the rows that an expression drops here with those that another engine drops.

    Returns
    -------
    bool or None
        True: the same rows, NaN and -0.0 included. False: no other rows, but maybe not all of them. None: not known.
    """
    floats = tests = 0
    is_same, negates = True, False
    for e in all_parts(expression):
        if not _is_shared_part(source, e):
            return None
        floats += _type_of(source, e) in _FLOATING
        if not isinstance(e, Call):
            continue
        negates |= e.function == "not"
        if any(_type_of(source, a) == "double" for a in e.args):
            tests += _is_double_test(source, e)
            same = e.function in _RANKED if ranks_nan else e.function in _UNRANKED and isinstance(e.args[0], Column)
            is_same &= same
    # below NOT, a row that is kept too much would be one that is dropped
    if floats and (negates or floats != tests):
        return None
    return is_same


def _is_double_test(source: Scannable, e: Call) -> bool:
    """Whether a call compares a double column with constants, true for NaN wherever another engine's is."""
    columns = [a for a in e.args if isinstance(a, Column) and _type_of(source, a) == "double"]
    return len(columns) == 1 and all(a is columns[0] or _is_plain_number(a) for a in e.args)


def _is_plain_number(e: Expression) -> bool:
    """Whether an expression is a constant that is a double everywhere, and not NaN."""
    if isinstance(e, Values):
        return pa.types.is_float64(e.array.type) and not np.isnan(e.array.to_numpy(zero_copy_only=False)).any()
    if not isinstance(e, Literal) or isinstance(e.value, bool):
        return False
    if isinstance(e.value, int):
        return abs(e.value) <= _MOST_EXACT
    return isinstance(e.value, float) and not math.isnan(e.value)


def _is_shared_part(source: Scannable, expression: Expression) -> bool:
    if isinstance(expression, Call):
        return expression.function in _SHARED
    if isinstance(expression, Cast):
        # a widening that binding has put in
        kinds = [_type_of(source, expression.arg), expression.type.type]
        return all(k in ("byte", "short", "integer", "long") for k in kinds)
    if isinstance(expression, (Literal, Values)):
        return True
    return isinstance(expression, Column) and _type_of(source, expression) is not None


def _type_of(source: Scannable, expression: Expression) -> str | None:
    """Return the name of a column's type; None for other expressions, and for parts that only its Arrow type has."""
    if not isinstance(expression, Column):
        return None
    try:
        return str(find(source.schema, expression.path)[1].type.type)
    except ColumnNotFoundError:
        return None


def referenced_columns(expressions: Iterable[ds.Expression], schema: pa.Schema) -> set[str]:
    """Return the top-level columns that pyarrow expressions name; all if one can't be read."""
    used: set[str] = set()
    for expression in expressions:
        names = pyarrow_columns(expression)
        if names is None or not names <= set(schema.names):
            return set(schema.names)
        used |= names
    return used
