"""Evaluate expressions on Arrow arrays with Spark's semantics (Spark 4: ANSI mode, session zone UTC).

`compile_expression` types the tree once and builds closures; a call per batch then runs Arrow kernels only.
Overflow, division by zero and casts that don't read raise ExpressionError, whose ``condition`` is Spark's
error class. A part that is never reached (a branch of ``case`` not taken, the right side of a false ``and``) never
raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.arrow.evaluate import (
    casts,
    compute as pc,
    functions_compare,
    functions_hash,
    functions_nested,
    functions_numbers,
    functions_text,
    functions_times,
)
from delta_core.engines.arrow.evaluate.compute import CallInfo, Kernel, Maker, evaluated_type, scalar_of, typed
from delta_core.engines.arrow.evaluate.layouts import with_plain_layout
from delta_core.engines.arrow.evaluate.result_size import choose, spread, take
from delta_core.errors import ExpressionError, InternalError, UnsupportedExpressionError
from delta_core.expressions.ast import Call, Cast, Column, EngineCall, Expression, Leaf, Literal, Values, leaves
from delta_core.expressions.binding import leaf_type, resolve, resolve_args
from delta_core.expressions.coercion import canonical
from delta_core.expressions.functions import is_builtin
from delta_core.expressions.printing import format_sql
from delta_core.expressions.typing_rules import Typed
from delta_core.kernels.arrow_buffers import is_valid, number_array, one_array, values_of
from delta_core.runtime.plugin_errors import contract_error, plugin_errors
from delta_core.runtime.recursion import Steps, each, run
from delta_core.runtime.sizes import num_bytes
from delta_core.schema.logical import facts, open_type, plain_layout
from delta_core.schema.types import DataType, PrimitiveType

if TYPE_CHECKING:
    from delta_core.expressions.plugin_functions import Function

__all__ = ["ArrowEvaluator", "CompiledExpression", "compile_expression", "read_column"]

_MAKERS: Mapping[str, Maker] = {
    **functions_compare.MAKERS,
    **functions_numbers.MAKERS,
    **functions_text.MAKERS,
    **functions_times.MAKERS,
    **functions_nested.MAKERS,
    **functions_hash.MAKERS,
}
#: The most bytes that offsets of 32 bits reach.
_MOST_BYTES = 2**31 - 1
_TRUE, _FALSE = typed(True, pa.bool_()), typed(False, pa.bool_())
_CONDITIONS = (
    ("divide by zero", "DIVIDE_BY_ZERO"),
    ("overflow", "ARITHMETIC_OVERFLOW"),
    ("Failed to parse", "CAST_INVALID_INPUT"),
)


class _Batch(Struct, frozen=True):
    """The columns of one evaluation, one a leaf."""

    columns: Sequence[Any]
    num_rows: int
    #: Whether a part is evaluated on the rows alone that need it, since it failed on all of them.
    careful: bool = False

    def select(self, mask: pa.Array) -> _Batch:
        rows = mask.true_count
        # constants as arrays: if no row is left, no value is looked at
        columns = [pa.repeat(c, rows) if isinstance(c, pa.Scalar) else pc.filter(c, mask) for c in self.columns]
        return _Batch(columns, rows, self.careful)


#: Evaluates a part: returns its value, or the steps to it.
Node = Callable[[_Batch], Any]


class _Built(Struct, frozen=True):
    """A part's node, its type, and whether its value depends on rows."""

    node: Node
    type: DataType
    varies: bool


class CompiledExpression(Struct, frozen=True):
    """An expression ready to run.

    Parameters
    ----------
    leaves : tuple of Leaf
        The meaning of the columns that are passed, in order.
    type : pyarrow.DataType
        The result's type.
    """

    leaves: tuple[Leaf, ...]
    type: pa.DataType
    _node: Node
    _inputs: tuple[DataType, ...]
    _by_distinct: bool

    def __call__(self, columns: Sequence[Any], num_rows: int) -> pa.Array:
        """Evaluate.

        Parameters
        ----------
        columns : sequence of pyarrow.Array, ChunkedArray or Scalar
            One a leaf; arrays are ``num_rows`` long, a scalar represents that many equal values.
        num_rows : int
            Rows of the batch, which is the length of the result.

        Raises
        ------
        ExpressionError
            A value overflows, is divided by zero or does not cast; ``condition`` names which.
        """
        if len(columns) != len(self.leaves):
            raise InternalError(f"{len(columns)} columns were handed in for {len(self.leaves)} leaves.")
        if self._by_distinct and isinstance(columns[0], pa.DictionaryArray) and len(columns[0].dictionary) < num_rows:
            found = self._on_dictionary(columns[0])
            if found is not None:
                return found
        if num_rows > 1 and any(map(_is_oversized, columns)):
            return self._in_halves(columns, num_rows)
        batch = _Batch([_normal(c, t) for c, t in zip(columns, self._inputs, strict=True)], num_rows)
        try:
            value = run(self._node(batch))
        except ExpressionError:
            # what failed may be a part that no row needs
            value = run(self._node(replace(batch, careful=True)))
        return _as_array(value, num_rows, self.type)

    def _in_halves(self, columns: Sequence[Any], num_rows: int) -> pa.Array:
        middle = num_rows // 2
        halves = [slice(None, middle), slice(middle, None)]
        parts = [[c if isinstance(c, pa.Scalar) else c[half] for c in columns] for half in halves]
        return pa.concat_arrays([self(parts[0], middle), self(parts[1], num_rows - middle)])

    def _on_dictionary(self, column: pa.DictionaryArray) -> pa.Array | None:
        """Evaluate once a distinct value; None if that raises, since a value may be in no row."""
        distinct = column.dictionary
        values = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
        try:
            out = self((values,), len(values))
        except ExpressionError:
            return None
        codes = values_of(column)
        if column.null_count:
            codes = np.where(is_valid(column.indices), codes, len(distinct))
        return take(out, number_array(codes), "an expression")


class ArrowEvaluator:
    """The Arrow engine's evaluator: see `delta_core.engines.interface.Evaluator`."""

    def compile(
        self, expression: Expression, types: Mapping[Leaf, pa.DataType], functions: Mapping[str, Function] | None = None
    ) -> CompiledExpression:
        """Compile once per plan. UnsupportedExpressionError names a part that can't run here."""
        return compile_expression(expression, types, functions)


def compile_expression(
    expression: Expression, types: Mapping[Leaf, pa.DataType], functions: Mapping[str, Function] | None = None
) -> CompiledExpression:
    """Type an expression and build the function that evaluates it.

    Parameters
    ----------
    expression : Expression
        Parsed or bound.
    types : mapping of Leaf to pyarrow.DataType
        How each leaf's values will come; a leaf that carries its type may be left out.
    functions : mapping of str to Function
        Plugins' functions by lower-case name.

    Raises
    ------
    ExpressionError, UnsupportedExpressionError
        A part does not fit its arguments, or can't be evaluated as Spark does.
    """
    functions = functions or {}

    def locate(leaf: Leaf) -> Typed:
        if leaf in types:
            return Typed(leaf, _type_of(types[leaf]))
        if isinstance(leaf, Column):
            raise ExpressionError(f"No type was given for column {leaf.name!r}.", column=leaf.name)
        return leaf_type(leaf)

    bound = resolve(expression, locate, functions)
    order = leaves(bound.expression)
    inputs = tuple(locate(leaf).type for leaf in order)
    compiler = _Compiler({leaf: i for i, leaf in enumerate(order)}, dict(zip(order, inputs, strict=True)), functions)
    node = run(compiler.build(bound.expression)).node
    result = evaluated_type(bound.type)
    compiled = CompiledExpression(order, result, node, inputs, len(order) == 1 and not compiler.foreign)
    _rehearse(compiled, bound.expression)
    return compiled


def read_column(batch: pa.RecordBatch | pa.Table, path: Sequence[str]) -> Any:
    """Return a column by path; within structs a null parent makes a null."""
    column = batch.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, indices=[column.type.get_field_index(name)])
    return column


def _rehearse(compiled: CompiledExpression, expression: Expression) -> None:
    """Run on no rows, so that a kernel that Arrow lacks is rejected before data moves."""
    try:
        compiled([pa.nulls(0, evaluated_type(t)) for t in compiled._inputs], 0)
    except pa.ArrowNotImplementedError as e:
        raise UnsupportedExpressionError(f"{format_sql(expression)} can't be evaluated here: {e}") from e


# --- columns in and out --------------------------------------------------------------------


@lru_cache(maxsize=64)
def _type_of(t: pa.DataType) -> DataType:
    return canonical(open_type(t))


def _normal(column: Any, t: DataType) -> Any:
    """Convert a column to the one Arrow type of its logical type, and its parts to plain layouts."""
    if isinstance(column, pa.ChunkedArray):
        column = one_array(column)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    elif isinstance(column, pa.DictionaryScalar):
        column = column.value
    plain = plain_layout(column.type)
    if plain != column.type:
        column = with_plain_layout(column, plain)
    if isinstance(t, PrimitiveType) and facts(t).family != "opaque" and column.type != evaluated_type(t):
        return pc.cast(column, evaluated_type(t))
    return column


def _is_oversized(column: Any) -> bool:
    """Return whether a column may have more text than an array of offsets of 32 bits holds."""
    t = column.type
    is_plain = pa.types.is_string(t) or pa.types.is_binary(t) or pa.types.is_primitive(t)
    return not (is_plain or isinstance(column, pa.Scalar)) and plain_layout(t) != t and num_bytes(column) > _MOST_BYTES


def _as_array(value: Any, num_rows: int, target: pa.DataType) -> pa.Array:
    if isinstance(value, pa.ChunkedArray):
        value = one_array(value)
    if not isinstance(value, pa.Scalar):
        return value
    return spread(value, num_rows) if value.is_valid else pa.nulls(num_rows, target)


# --- compiling -----------------------------------------------------------------------------


class _Compiler:
    """Builds nodes from a bound tree."""

    def __init__(
        self, places: Mapping[Leaf, int], types: Mapping[Leaf, DataType], functions: Mapping[str, Function]
    ) -> None:
        self._places, self._types, self._functions = places, types, functions
        self.foreign = False

    def build(self, e: Expression) -> Steps[_Built]:
        """Return the node of an expression."""
        if isinstance(e, Literal):
            scalar = scalar_of(e)
            assert e.type is not None
            return _Built(lambda _: scalar, e.type, False)
        if isinstance(e, Values):
            return _Built(lambda _: None, e.type, False)  # the kernel has them from its call
        if isinstance(e, Cast):
            arg: _Built = yield self.build(e.arg)
            kernel = casts.cast_kernel(arg.type, canonical(e.type), e.safe)
            return _Built(_apply(kernel, [arg.node], e, arg.varies), canonical(e.type), arg.varies)
        if isinstance(e, Call):
            args = yield from each(map(self.build, e.args))
            varies = any(a.varies for a in args)
            return _Built(*self._call(e, args, varies), varies)
        if isinstance(e, EngineCall):
            raise UnsupportedExpressionError(
                f"{e.sql} can be evaluated on Spark alone. Run this with delta_core.spark.DeltaTable.", feature=""
            )
        place = self._places[e]
        return _Built(lambda batch: batch.columns[place], self._types[e], True)

    def _call(self, e: Call, args: list[_Built], varies: bool) -> tuple[Node, DataType]:
        nodes, types = [a.node for a in args], [a.type for a in args]
        result = resolve_args(
            e.function, [Typed(a, t) for a, t in zip(e.args, types, strict=True)], self._functions
        ).type
        if not is_builtin(e.function):
            self.foreign = True
            return _foreign(self._functions[e.function], nodes, evaluated_type(result)), result
        if e.function in _CONTROL:
            return _CONTROL[e.function](args), result
        if e.function not in _MAKERS:
            raise UnsupportedExpressionError(
                f"Function {e.function!r} is not evaluated by the Arrow engine.", function=e.function
            )
        kernel = _MAKERS[e.function](CallInfo(e.function, e.args, tuple(types), result))
        return _apply(kernel, nodes, e, varies), result


def _apply(kernel: Kernel, nodes: list[Node], e: Expression, varies: bool) -> Node:
    def node(batch: _Batch) -> Steps[Any]:
        values = yield from each(n(batch) for n in nodes)
        try:
            return kernel(*values)
        except (pa.ArrowInvalid, OverflowError) as error:
            condition = next((c for text, c in _CONDITIONS if text in str(error)), "CAST_OVERFLOW")
            raise ExpressionError(
                f"{format_sql(e)} failed with {condition}: {error}. Guard it with try_cast or case for null instead.",
                condition=condition,
            ) from error

    return node if varies else _once(node)


def _once(node: Node) -> Node:
    """Compute a part without leaves one time; what it raises is raised when it is requested."""
    result: list[Any] = []

    def constant(batch: _Batch) -> Steps[Any]:
        if not result:
            value = yield node(batch)
            result.append(value)
        return result[0]

    return constant


def _foreign(function: Function, nodes: list[Node], result: pa.DataType) -> Node:
    def node(batch: _Batch) -> Steps[Any]:
        values = yield from each(n(batch) for n in nodes)
        arguments = [_as_array(v, batch.num_rows, v.type) for v in values]
        with plugin_errors(function.feature, f"Function {function.name!r} of hook functions", "functions"):
            out = function.arrays(*arguments)
        fits = isinstance(out, (pa.Array, pa.ChunkedArray))
        if not fits or len(out) != batch.num_rows or out.type != result:
            found = f"{len(out)} values of {out.type}" if fits else type(out).__name__
            raise contract_error(
                function.feature,
                "functions",
                f"Function {function.name!r}",
                f"returned {found}; expected an Arrow array of {batch.num_rows} values of {result}",
                function=function.name,
            )
        return out

    return node


# --- control flow --------------------------------------------------------------------------


def _where_needed(part: _Built, batch: _Batch, needed: Callable[[], Any]) -> Steps[Any]:
    """Evaluate a part; if with care, on the rows that need it only, and not at all if none does."""
    mask = _as_array(needed(), batch.num_rows, pa.bool_()) if batch.careful else None
    if mask is None or (mask.true_count == batch.num_rows and batch.num_rows):
        value = yield part.node(batch)
        return value
    if not mask.true_count:
        return typed(None, evaluated_type(part.type))
    value = yield part.node(batch.select(mask))
    if isinstance(value, pa.Scalar):
        value = spread(value, mask.true_count)
    places = pc.subtract(pc.cumulative_sum(pc.cast(mask, pa.int64())), typed(1, pa.int64()))
    return pc.array_take(value, pc.if_else(mask, places, typed(None, pa.int64())))


def _junction(kernel_name: str, decided: bool) -> Callable[[list[_Built]], Node]:
    def make(parts: list[_Built]) -> Node:
        kernel = getattr(pc, kernel_name)

        def node(batch: _Batch) -> Steps[Any]:
            found = yield parts[0].node(batch)
            for following in parts[1:]:
                if isinstance(found, pa.Scalar) and found.is_valid and found.as_py() is decided:
                    return found
                found = kernel(found, (yield _where_needed(following, batch, partial(_is_not, found, decided))))
            return found

        return node

    return make


def _is_not(value: Any, decided: bool) -> Any:
    """Return the mask of rows that are not decided yet (null is not)."""
    return pc.fill_null(pc.invert(value) if decided else value, _TRUE)


def _same(value: Any) -> Any:
    return value


def _is_null(value: Any) -> Any:
    return pc.is_null(value)


def _case(parts: list[_Built]) -> Node:
    """Evaluate conditions in order; each part is needed only if no earlier condition was true."""
    default = parts[-1] if len(parts) % 2 else None
    pairs = list(zip(parts[0 : len(parts) - len(parts) % 2 : 2], parts[1::2], strict=True))

    def node(batch: _Batch) -> Steps[Any]:
        open_rows: Any = _TRUE
        taken = []
        for condition, value in pairs:
            is_true = yield _where_needed(condition, batch, partial(_same, open_rows))
            hit = pc.and_(pc.fill_null(is_true, _FALSE), open_rows)
            open_rows = pc.and_not(open_rows, hit)
            taken.append((hit, (yield _where_needed(value, batch, partial(_same, hit)))))
        out = (yield _where_needed(default, batch, partial(_same, open_rows))) if default else None
        if out is None:
            out = typed(None, evaluated_type(parts[1].type))
        for hit, value in reversed(taken):
            out = choose(hit, value, out, "case")
        return out

    return node


def _coalesce(parts: list[_Built]) -> Node:
    def node(batch: _Batch) -> Steps[Any]:
        out = yield parts[0].node(batch)
        for following in parts[1:]:
            value = yield _where_needed(following, batch, partial(_is_null, out))
            out = choose(pc.is_valid(out), out, value, "coalesce")
        return out

    return node


_CONTROL: Mapping[str, Callable[[list[_Built]], Node]] = {
    "and": _junction("and_kleene", False),
    "or": _junction("or_kleene", True),
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
}
