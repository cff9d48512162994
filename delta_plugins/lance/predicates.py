"""Conditions on the rows of a scan, bound to the columns of a dataset and evaluated batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
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

    from delta_core.api import Column, Compiled, Evaluator, Expression, Leaf, PrimitiveType, Schema

__all__ = ["Predicate", "bind_predicate", "lance_type"]

#: Extension types of the format have names that begin so; expressions can't interpret their bytes.
_OWN = b"lance."
_EXTENSION = b"ARROW:extension:name"


def lance_type(field: pa.Field) -> PrimitiveType | None:
    """Return the type of a field that has an extension type of the format; None for any other field."""
    name = (field.metadata or {}).get(_EXTENSION, b"")
    return api.logical_type(name.decode(), field.type, "opaque") if name.startswith(_OWN) else None


class Predicate:
    """A bound condition.

    Attributes
    ----------
    expression : Expression
        The condition.
    columns : tuple of Column
        The columns that it needs, and fields of structs.
    names : tuple of str
        The columns at the top of the schema that it needs.
    schema : Schema
        The columns that conditions can use.
    """

    def __init__(self, expression: Expression, schema: Schema, arrow: pa.Schema, evaluator: Evaluator) -> None:
        self.expression = expression
        self.schema = schema
        self._arrow = arrow
        self.columns: tuple[Column, ...] = tuple(
            dict.fromkeys(x for x in api.leaves(expression) if isinstance(x, api.Column))
        )
        self.names = tuple(dict.fromkeys(x.path[0] for x in self.columns))
        self._evaluator = evaluator

    @cached_property
    def _compiled(self) -> Compiled:
        types: dict[Leaf, pa.DataType] = {x: _type_at(self._arrow, x.path) for x in self.columns}
        return self._evaluator.compile(self.expression, types)

    def check(self) -> None:
        """Compile the condition, which is done for the first rows otherwise.

        Raises
        ------
        ExpressionError, UnsupportedExpressionError
            If a part does not fit its arguments, or can't be evaluated.
        """
        _ = self._compiled

    def __str__(self) -> str:
        return api.format_sql(self.expression)

    def type_of(self, column: Column) -> pa.DataType:
        """Return the Arrow type of a column."""
        return _type_at(self._arrow, column.path)

    def part(self, expression: Expression, evaluator: Evaluator) -> Predicate:
        """Return a part of the condition as a condition of its own."""
        return Predicate(expression, self.schema, self._arrow, evaluator)

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
        If it needs a column of blobs or of JSON, or one whose name is not unique.
    ColumnNotFoundError, ExpressionError
        If it can't be parsed, or does not fit the columns.
    """
    if predicate is None:
        return None
    listed = [(f, arrow_field(f)) for f in fields]
    alike: dict[str, int] = {}
    for f in fields:
        alike[f.name.lower()] = alike.get(f.name.lower(), 0) + 1
    usable = [a for f, a in listed if _why_not(f, alike) is None]
    arrow = pa.schema(usable)
    schema = api.schema_of_arrow(arrow, lance_type)
    try:
        expression = api.to_expression(predicate, schema)
    except ColumnNotFoundError as e:
        asked = str(e.facts.get("column", "")).partition(".")[0].lower()
        other = next((f for f in fields if f.name.lower() == asked and _why_not(f, alike)), None)
        if other is None:
            raise
        raise UnsupportedExpressionError(
            f"Column {other.name!r} can't be part of a predicate: {_why_not(other, alike)}. Read it, and filter "
            "the rows.",
            column=other.name,
        ) from None
    return None if expression is None else Predicate(expression, schema, arrow, evaluator)


def _why_not(field: LanceField, alike: Mapping[str, int]) -> str | None:
    """Return why a column can't be part of a condition; None if it can."""
    if alike[field.name.lower()] > 1:
        return "several columns have this name in other cases"
    if field.logical_type == "json":
        return "its values are JSON in a binary form"
    return "its values are blobs" if blob_kind(field) else None


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
