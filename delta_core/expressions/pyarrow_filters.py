"""pyarrow expressions, read through the form in which pyarrow pickles them.

That is an Arrow file: its metadata list columns, constants, calls and their ends in order, and its one row holds the
constants and the options of calls. (Substrait, which pyarrow writes too, doubles with each level of nesting.) A part
that is not known here is rejected by name. The result has Spark's semantics, which differ from pyarrow's for NaN only:
it equals itself and is greater than any number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from delta_core.errors import ColumnNotFoundError, ExpressionError, SchemaError, UnsupportedExpressionError
from delta_core.expressions.ast import Call, Column, Expression, Literal, Values, any_of
from delta_core.expressions.literals import typed
from delta_core.expressions.members import from_arrow
from delta_core.kernels import compute as pc
from delta_core.runtime.patterns import lazy_pattern
from delta_core.schema.types import DataType, PrimitiveType, StructType, arrow_to_type

__all__ = ["from_pyarrow", "pyarrow_columns"]

_ALTERNATIVES = "Use SQL text (\"x > 5 AND s = 'a'\") or filters ([('x', '>', 5)]) instead."
_FUNCTIONS = {
    "equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    # not pyarrow's other AND and OR, which are null if one part is: below NOT they would select other rows
    "and_kleene": "and", "or_kleene": "or", "invert": "not", "is_null": "isnull", "is_valid": "isnotnull",
    "add_checked": "+", "subtract_checked": "-", "multiply_checked": "*", "negate_checked": "negative",
    "coalesce": "coalesce", "if_else": "if",
    "match_substring": "contains", "starts_with": "startswith", "ends_with": "endswith", "is_nan": "=", "is_in": "in",
}  # fmt: skip
#: Options that change what a function means, each with the value that is known here.
_KNOWN_OPTIONS = {"nan_is_null": False, "ignore_case": False, "null_matching_behavior": 0}
_STEP = lazy_pattern(r"(call|end|field_ref|nested_field_ref|literal|options): '(.*)'")
_METADATA = "-- schema metadata --\n"


def from_pyarrow(expression: Any, schema: StructType) -> Expression:
    """Translate a pyarrow expression over the schema's columns; the result is not bound yet.

    Raises
    ------
    ColumnNotFoundError
        It names a column that the schema lacks (pyarrow compares names exactly).
    UnsupportedExpressionError
        A part is not known here.
    """
    batch, steps = _read(expression)
    return _Reader(batch, schema).read(steps)


def pyarrow_columns(expression: Any) -> set[str] | None:
    """Return the top-level columns that a pyarrow expression names; None if that cannot be determined."""
    try:
        steps = _read(expression)[1]
    except UnsupportedExpressionError:
        return None
    names: set[str] = set()
    rest = iter(steps)
    for kind, value in rest:
        if kind == "field_ref":
            names.add(value)
        elif kind == "nested_field_ref":
            path = _nested(value, rest)
            names.add(path[0])
    return names


def _read(expression: Any) -> tuple[pa.RecordBatch, list[tuple[str, str]]]:
    """Return the row of constants and options, and the steps that lead through the expression."""
    try:
        (written, *_) = expression.__reduce__()[1]
        with pa.ipc.open_file(written) as file:
            text = file.schema.to_string(show_schema_metadata=True, truncate_metadata=False)
            batch = file.get_batch(0)
    except (pa.ArrowException, TypeError, ValueError) as e:
        raise UnsupportedExpressionError(f"The pyarrow expression can't be read: {e}. {_ALTERNATIVES}") from e
    found = [_STEP.fullmatch(line) for line in text.rpartition(_METADATA)[2].rstrip("\n").split("\n")]
    if not all(found):
        raise UnsupportedExpressionError(f"The pyarrow expression holds a name with a line break. {_ALTERNATIVES}")
    return batch, [(m[1], m[2]) for m in found if m is not None]


def _nested(count: str, rest: Iterator[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(next(rest)[1] for _ in range(int(count)))


class _Reader:
    """Builds an expression step by step: calls that are not closed yet are on a list."""

    def __init__(self, batch: pa.RecordBatch, schema: StructType) -> None:
        self._batch, self._schema = batch, schema

    def read(self, steps: list[tuple[str, str]]) -> Expression:
        open_: list[tuple[str, list[Expression], dict[str, Any]]] = [("", [], {})]
        rest = iter(steps)
        for kind, value in rest:
            arguments = open_[-1][1]
            if kind == "call":
                open_.append((value, [], {}))
            elif kind == "options":
                open_[-1][2].update(self._options(self._batch.column(int(value))))
            elif kind == "literal":
                arguments.append(_constant(self._batch.column(int(value))[0]))
            elif kind == "end":
                name, args, options = open_.pop()
                if name != value or not open_:
                    raise UnsupportedExpressionError(f"The pyarrow expression is not as expected. {_ALTERNATIVES}")
                open_[-1][1].append(_call(name, args, options))
            else:
                arguments.append(self._column((value,) if kind == "field_ref" else _nested(value, rest)))
        if len(open_) != 1 or len(open_[0][1]) != 1:
            raise UnsupportedExpressionError(f"The pyarrow expression is not as expected. {_ALTERNATIVES}")
        return open_[0][1][0]

    def _options(self, column: Any) -> dict[str, Any]:
        names = [f.name for f in column.type]
        return {n: c[0] for n, c in zip(names, column.flatten(), strict=True) if n != "_type_name"}

    def _column(self, path: tuple[str, ...]) -> Column:
        current: DataType = self._schema
        for part in path:
            found = None
            if isinstance(current, StructType):
                index = current.index(part)
                found = None if index is None or current.members[index].name != part else current.members[index]
            if found is None:
                names = ", ".join(self._schema.names[:20])
                raise ColumnNotFoundError(
                    f"The pyarrow expression names column {'.'.join(path)!r}, which the table lacks (pyarrow compares "
                    f"names exactly). The table's columns are: {names}.",
                    column=".".join(path),
                )
            current = found.type
        return Column(path)


def _call(name: str, args: list[Expression], options: dict[str, Any]) -> Expression:
    if name not in _FUNCTIONS:
        raise UnsupportedExpressionError(
            f"Function {name!r} of the pyarrow expression is not supported. {_ALTERNATIVES}", function=name
        )
    for option, known in _KNOWN_OPTIONS.items():
        if option in options and options[option].as_py() != known:
            raise UnsupportedExpressionError(
                f"{name} with {option}={options[option].as_py()!r} is not supported. {_ALTERNATIVES}", function=name
            )
    if name == "is_nan":
        return Call("=", (args[0], Literal(math.nan)))  # null for null, if Spark's isnan is false
    if name == "is_in":
        return _members(args[0], options["value_set"])
    if name == "if_else":
        return _if_valid(*args)
    if "pattern" in options:
        args = [*args, _constant(options["pattern"])]
    return Call(_FUNCTIONS[name], tuple(args))


def _if_valid(condition: Expression, found: Expression, otherwise: Expression) -> Expression:
    """Read what DuckDB makes of ``in``: null if the value is null."""
    if isinstance(condition, Call) and condition.function == "isnotnull" and otherwise == Literal(None):
        test = _null_for_null(found, condition.args[0])
        if test is not None:
            return test
    raise UnsupportedExpressionError(
        f"Function 'if_else' of the pyarrow expression is not supported. {_ALTERNATIVES}", function="if_else"
    )


def _null_for_null(e: Expression, value: Expression) -> Expression | None:
    """Return a test of a value that equals another one if that is not null, and is else null; None if unknown."""
    if not isinstance(e, Call) or not e.args:
        return None
    first, *rest = e.args
    if e.function == "and" and first == Call("isnotnull", (value,)) and len(rest) == 1:
        return _null_for_null(rest[0], value)
    if e.function == "or":
        tests = [_null_for_null(part, value) for part in e.args if part != Literal(False, PrimitiveType("boolean"))]
        known = [test for test in tests if test is not None]
        return any_of(known) if known and len(known) == len(tests) else None
    constants = all(isinstance(a, Values) or (isinstance(a, Literal) and a.value is not None) for a in rest)
    return e if e.function in ("in", "=") and first == value and constants and rest else None


def _members(value: Expression, options: Any) -> Expression:
    """Read ``isin``, which pyarrow never answers with null: a null is in the list only if the list holds one."""
    values = options.values
    known = pc.drop_null(values)
    many = from_arrow(known)
    listed = [many] if many is not None else [_constant(known[i]) for i in range(len(known))]
    found: Expression = Call("in", (value, *listed)) if listed else Literal(False)
    if values.null_count:
        return Call("or", (Call("isnull", (value,)), found))
    return Call("and", (Call("isnotnull", (value,)), found))


def _constant(scalar: pa.Scalar) -> Literal:
    """Return a constant with the type that it has in Arrow."""
    if not scalar.is_valid:
        return Literal(None)
    t = scalar.type
    if pa.types.is_timestamp(t):
        return _timestamp(scalar)
    if pa.types.is_decimal(t):
        return Literal(scalar.as_py())
    tests: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_boolean,
        pa.types.is_signed_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_date32,
    )
    if pa.types.is_unsigned_integer(t) or pa.types.is_time(t) or pa.types.is_duration(t):
        return typed(Literal(scalar))
    if not any(test(t) for test in tests):
        raise UnsupportedExpressionError(f"The pyarrow expression holds a constant of type {t}. {_ALTERNATIVES}")
    try:
        return Literal(scalar.as_py(), arrow_to_type(t))
    except (SchemaError, ValueError, OverflowError) as e:
        raise ExpressionError(
            f"The pyarrow expression holds a constant that can't be read: {e}. {_ALTERNATIVES}"
        ) from e


def _timestamp(scalar: Any) -> Literal:
    try:
        return typed(Literal(scalar))
    except (pa.ArrowInvalid, ValueError, OverflowError) as e:
        raise UnsupportedExpressionError(f"The timestamp can't be read: {e}. {_ALTERNATIVES}") from e
