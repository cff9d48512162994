"""Conditions on one column, for values of it and for ranges of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core import api
from delta_core.kernels.arrow_buffers import mask_of, number_array, one_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Column, Evaluator, Expression, Schema

__all__ = ["Condition"]


class Condition(Struct, frozen=True):
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
        plan = api.plan_skipping(self.expression, self.schema, api.ColumnMap.identity(self.schema), ())
        count = len(num_rows)
        if plan.statistics is None:
            return np.ones(count, np.bool_)
        arrays = {**bounds, "numRecords": number_array(num_rows)}
        leaves = list(dict.fromkeys(api.leaves(plan.statistics)))
        compiled = self.evaluator.compile(plan.statistics, {x: arrays[x.kind].type for x in leaves})  # type: ignore[union-attr]
        return self._mask(compiled([arrays[x.kind] for x in compiled.leaves], count), count, True)  # type: ignore[union-attr]

    @staticmethod
    def _mask(found: Any, count: int, null: bool) -> NDArray[np.bool_]:
        if isinstance(found, pa.Scalar):
            value = found.as_py()
            return np.full(count, null if value is None else value, np.bool_)
        return mask_of(one_array(found), null)
