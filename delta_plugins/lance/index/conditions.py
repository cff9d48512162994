"""Conditions on one column, for values of it and for ranges of values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core import api
from delta_core.kernels.arrow_buffers import is_valid, mask_of, number_array, one_array, values_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Column, Evaluator, Expression, Schema, ValueRange

__all__ = ["Condition"]


class Condition(Struct, frozen=True, dict=True):
    """A condition on one column.

    Parameters
    ----------
    expression : Expression
        Bound; it does not raise for any value.
    column : Column
        Its only leaf.
    type : pyarrow.DataType
        Of the column.
    schema : Schema
        The columns that conditions can use.
    evaluator : Evaluator
        Of the engine.
    """

    expression: Expression
    column: Column
    type: pa.DataType
    schema: Schema
    evaluator: Evaluator

    def is_true(self, values: pa.Array) -> NDArray[np.bool_]:
        """Return for which values the condition is true; it may be null for others.

        Parameters
        ----------
        values : pyarrow.Array, **shape (n,)**
            Of the type of the column.
        """
        accepted = self._range
        if accepted is not None:
            return _within(accepted, values, values) & is_valid(values)
        compiled = self.evaluator.compile(self.expression, {self.column: self.type})
        return self._mask(compiled([values for _ in compiled.leaves], len(values)), len(values), False)

    def may_be_true(self, bounds: Mapping[str, pa.Array], num_rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which groups of rows may have one for which the condition is true.

        Parameters
        ----------
        bounds : Mapping of str to pyarrow.Array
            ``min`` and ``max`` of the values of each group, null if they are not known, and ``nullCount``.
        num_rows : int64[n]
            Of each group.
        """
        accepted = self._range
        if accepted is not None:
            least, greatest = bounds["min"], bounds["max"]
            is_known = is_valid(least) & is_valid(greatest)
            has_values = values_of(bounds["nullCount"]) < num_rows
            return (_within(accepted, least, greatest) | ~is_known) & has_values
        plan = api.plan_skipping(self.expression, self.schema, api.ColumnMap.identity(self.schema), ())
        count = len(num_rows)
        if plan.statistics is None:
            return np.ones(count, np.bool_)
        arrays = {**bounds, "numRecords": number_array(num_rows)}
        leaves = list(dict.fromkeys(api.leaves(plan.statistics)))
        compiled = self.evaluator.compile(plan.statistics, {x: arrays[x.kind].type for x in leaves})  # type: ignore[union-attr]
        return self._mask(compiled([arrays[x.kind] for x in compiled.leaves], count), count, True)  # type: ignore[union-attr]

    @cached_property
    def _range(self) -> ValueRange | None:
        """Return the whole numbers that the condition is true for, if they are a range without null."""
        if not pa.types.is_signed_integer(self.type):
            return None
        sources: dict[Any, Any] = {self.column: api.PhysicalSource(0)}
        parts = [api.part_test(part, sources, {self.column: self.type}) for part in api.conjuncts(self.expression)]
        found = api.joined_test(parts)
        return found if isinstance(found, api.ValueRange) else None

    @staticmethod
    def _mask(found: Any, count: int, null: bool) -> NDArray[np.bool_]:
        if isinstance(found, pa.Scalar):
            value = found.as_py()
            return np.full(count, null if value is None else value, np.bool_)
        return mask_of(one_array(found), null)


def _within(accepted: ValueRange, least: pa.Array, greatest: pa.Array) -> NDArray[np.bool_]:
    """Return which ranges of whole numbers have one that is accepted; of nulls any answer."""
    found: NDArray[np.bool_] = (values_of(least) <= accepted.most) & (values_of(greatest) >= accepted.least)
    return found
