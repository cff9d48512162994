"""Conditions on the rows of a scan, bound to the columns of a dataset and evaluated batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

# the expressions are loaded with the first predicate
from delta_core import api
from delta_core.api import ColumnNotFoundError, UnsupportedExpressionError
from delta_core.kernels.arrow_buffers import mask_of, one_array
from delta_plugins.lance.schema import LanceField, arrow_field, blob_kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Column, Compiled, DataType, Evaluator, Expression, Schema

__all__ = ["Predicate", "bind_predicate", "delta_schema"]

_TESTS = (
    pa.types.is_boolean, pa.types.is_signed_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_string,
    pa.types.is_binary, pa.types.is_date32,
)  # fmt: skip


def is_bound(of: pa.DataType) -> bool:
    """Whether values of an Arrow type can be part of a condition.

    Types without a counterpart in Delta come in here: unsigned integers, halves, times, durations, decimals of 256
    bits, large and fixed-size types, and dictionaries.
    """
    types = pa.types
    if types.is_timestamp(of):
        return bool(of.unit == "us" and of.tz in (None, "UTC"))
    if types.is_decimal128(of):
        return bool(0 <= of.scale <= of.precision)
    if types.is_struct(of):
        return all(is_bound(f.type) for f in of)
    if types.is_list(of):
        return is_bound(of.value_type)
    if types.is_map(of):
        return is_bound(of.key_type) and is_bound(of.item_type)
    return any(test(of) for test in _TESTS)


class Predicate:
    """A bound condition.

    Attributes
    ----------
    expression : Expression
        The condition.
    names : tuple of str
        The columns at the top of the schema that it needs.
    """

    def __init__(self, expression: Expression, schema: pa.Schema, evaluator: Evaluator) -> None:
        self.expression = expression
        found: list[Column] = list(dict.fromkeys(x for x in api.leaves(expression) if isinstance(x, api.Column)))
        self.names = tuple(dict.fromkeys(x.path[0] for x in found))
        self._compiled: Compiled = evaluator.compile(expression, {x: _type_at(schema, x.path) for x in found})

    def __str__(self) -> str:
        return api.format_sql(self.expression)

    def passing(self, columns: dict[str, pa.Array], num_rows: int) -> NDArray[np.int64]:
        """Return the indices of the rows that pass, in ascending order; null counts as false.

        Parameters
        ----------
        columns : dict of str to pyarrow.Array
            Those of ``names``.
        num_rows : int
            Rows of each of them.
        """
        values = [_at(columns, x.path) for x in self._compiled.leaves]  # type: ignore[union-attr]
        found = one_array(self._compiled(values, num_rows))
        bits = found.buffers()[-1]
        if bits is None or not np.frombuffer(bits, np.uint8).any():
            # as a rule of a condition that few rows pass
            return np.zeros(0, np.int64)
        return np.flatnonzero(mask_of(found))


def bind_predicate(predicate: Any, fields: Sequence[LanceField], evaluator: Evaluator) -> Predicate | None:
    """Bind a condition to the columns of a dataset; None for none.

    Parameters
    ----------
    predicate : str, filters, Expression, pyarrow expression or None
        As of `delta_core.DeltaTable.scan`.
    fields : sequence of LanceField
        The fields at the top of the schema.
    evaluator : Evaluator
        Of the engine.

    Raises
    ------
    UnsupportedExpressionError
        If it needs a column whose type can't be part of a condition yet, or has a part that can't be evaluated.
    ColumnNotFoundError, ExpressionError
        If it can't be parsed, or does not fit the columns.
    """
    if predicate is None:
        return None
    listed = [(f, arrow_field(f)) for f in fields]
    alike: dict[str, int] = {}
    for f in fields:
        alike[f.name.lower()] = alike.get(f.name.lower(), 0) + 1
    usable = [a for f, a in listed if is_bound(a.type) and not blob_kind(f) and alike[f.name.lower()] == 1]
    schema = api.Schema([api.Field(a.name, api.arrow_to_type(a.type), a.nullable) for a in usable])
    try:
        expression = api.to_expression(predicate, schema)
    except ColumnNotFoundError as e:
        asked = str(e.facts.get("column", "")).partition(".")[0].lower()
        other = next((a for f, a in listed if f.name.lower() == asked and a not in usable), None)
        if other is None:
            raise
        why = "several columns have this name in other cases" if alike[asked] > 1 else f"its type is {other.type}"
        raise UnsupportedExpressionError(
            f"Column {other.name!r} can't be part of a predicate yet: {why}. Read the column, and filter the rows.",
            column=other.name,
        ) from None
    return None if expression is None else Predicate(expression, pa.schema(usable), evaluator)


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    of: Any = schema.field(path[0]).type
    for name in path[1:]:
        of = of.field(name).type
    return of


def _at(columns: dict[str, pa.Array], path: Sequence[str]) -> pa.Array:
    array: Any = columns[path[0]]
    for name in path[1:]:
        # nulls of the struct are nulls of its fields
        array = array.flatten()[array.type.get_field_index(name)]
    return array


def delta_schema(schema: pa.Schema) -> Schema:
    """Return a schema in Delta's types; a type that Delta lacks is a primitive type of its Arrow name."""
    return api.Schema([api.Field(f.name, _delta_type(f.type), f.nullable) for f in schema])


def _delta_type(of: pa.DataType) -> DataType:
    if is_bound(of):
        return api.arrow_to_type(of)
    if pa.types.is_struct(of):
        return api.StructType([api.Field(f.name, _delta_type(f.type), f.nullable) for f in of])
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return api.ArrayType(_delta_type(of.value_type), of.value_field.nullable)
    return api.PrimitiveType(str(of))
