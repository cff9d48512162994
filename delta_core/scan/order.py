"""In which order the conjuncts of a filter run on rows: cheap ones first, those that may raise if they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from delta_core.expressions.ast import (
    Call,
    Cast,
    Expression,
    FileConstant,
    Leaf,
    Literal,
    PartitionValue,
    all_of,
    all_parts,
    conjuncts,
    leaves,
)

__all__ = ["test_order"]

#: Functions of a boolean result that raise for no value, each with the cost of one row beside that of a comparison.
_TOTAL = {
    "=": 1, "!=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "<=>": 2, "isnull": 0, "isnotnull": 0, "in": 3, "and": 0,
    "or": 0, "not": 0,
    "like": 8, "startswith": 4, "endswith": 4, "contains": 6,
}  # fmt: skip
#: The approximate cost of decoding and comparing one value of a type.
_NUMBER, _TEXT, _NESTED = 1, 4, 16


def test_order(
    condition: Expression | None,
    types: Mapping[Leaf, pa.DataType],
    is_value_test: Callable[[Expression], bool] = lambda part: False,
) -> list[Expression]:
    """Return the conjuncts of a condition in the order in which they are to run, those of the same columns as one.

    Parameters
    ----------
    condition : Expression or None
        Bound. A conjunct that may raise (a cast, a division) stays after all those that precede it, since these may
        keep it from the rows for which it does.
    types : Mapping of Leaf to pyarrow.DataType
        Of its leaves.
    is_value_test : function(Expression) -> bool
        Whether an engine may test a conjunct while it decodes values, before those that precede it. Such a conjunct
        raises for no value, whatever its constants are calculated from.
    """
    total: dict[frozenset[Leaf], list[Expression]] = {}
    partial: list[Expression] = []
    parts = list(conjuncts(condition))
    if len(parts) < 2:
        return parts
    for part in parts:
        if _is_total(part) or is_value_test(part):
            total.setdefault(frozenset(leaves(part)), []).append(part)
        else:
            partial.append(part)
    joined = [joint for same in total.values() if (joint := all_of(same)) is not None]
    joined.sort(key=lambda e: _cost(e, types))  # stable: as they are if the costs are the same
    return joined + partial


def _is_total(e: Expression) -> bool:
    """Whether an expression raises for no value of its leaves."""
    return all(e.function in _TOTAL if isinstance(e, Call) else not isinstance(e, Cast) for e in all_parts(e))


def _cost(e: Expression, types: Mapping[Leaf, pa.DataType]) -> int:
    return _work(e) + sum(_leaf_cost(leaf, types.get(leaf)) for leaf in leaves(e))


def _work(e: Expression) -> int:
    return sum(_TOTAL.get(part.function, 0) for part in all_parts(e) if isinstance(part, Call))


def _leaf_cost(leaf: Leaf, t: Any) -> int:
    if isinstance(leaf, (FileConstant, PartitionValue, Literal)):
        return 0
    if t is None or pa.types.is_nested(t):
        return _NESTED
    return _TEXT if pa.types.is_string(t) or pa.types.is_binary(t) else _NUMBER
