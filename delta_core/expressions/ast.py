"""Expressions: what touches rows, as frozen values that any engine can evaluate.

An expression is a tree of `Call` and `Cast` over leaves. A leaf specifies where a value comes from; the evaluator
evaluates hands in one array (or scalar) a leaf. Semantics are Spark SQL's: three-valued logic, its casts,
its functions by lower-case name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Union, final

from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import ExpressionError
from delta_core.runtime.patterns import lazy_pattern
from delta_core.runtime.recursion import MOST_NESTED, Steps, each, run
from delta_core.schema.types import DataType, PrimitiveType

__all__ = ["MANY", "NUM_RECORDS",
    "Call", "Cast", "Column", "EngineCall", "Expression", "FileConstant", "FileStatistic", "Leaf", "Literal",
    "PartitionValue", "PhysicalColumn", "RowPosition", "TaskCount", "TaskIndex", "TaskRow", "Values", "all_of",
    "all_parts", "any_of", "check_depth", "column", "conjuncts", "flatten", "is_portable", "leaves",
    "literal", "negate", "too_deep", "transform", "uses",
]  # fmt: skip


#: Lists of more values are kept as `Values`; shorter ones as constants, which every engine supports.
MANY = 24
#: A part of a name in backticks, to the dot after it or the end.
_QUOTED = lazy_pattern(r"`((?:[^`]|``)*)`(?:\.|\Z)")
_DOUBLE_QUOTED = lazy_pattern(r"\"((?:[^\"]|\"\")+)\"(?:\.|\Z)")


class Literal(Struct, frozen=True):
    """A constant; ``type`` None means: take it from the other operand (or null).

    Parameters
    ----------
    value : object
        The Python value; None = null.
    type : DataType or None
        Its type; None: that of the other operand.
    """

    value: Any
    type: DataType | None = None


class Values(Struct, frozen=True):
    """Constants of one type: the candidates of a long ``in``, as its only argument beside the value.

    Parameters
    ----------
    array : pyarrow.Array
        Of the type's Arrow type, without nulls.
    has_null : bool
        Whether a null was among them.
    is_sorted : bool
        Whether they ascend, NaN last, as in every bound expression.
    """

    array: Any
    type: DataType
    has_null: bool = False
    is_sorted: bool = False

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Values
            and (self.type, self.has_null) == (other.type, other.has_null)
            and bool(self.array is other.array or self.array.equals(other.array))
        )

    def __hash__(self) -> int:
        return hash((self.type, self.has_null, len(self.array)))

    def __repr__(self) -> str:
        return f"Values({len(self.array)} of {self.type}, has_null={self.has_null})"


class Column(Struct, frozen=True):
    """A logical column, by its path of names (several names reach into structs).

    Parameters
    ----------
    path : tuple of str
        The logical names from the outermost in.
    """

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The path joined by dots."""
        return ".".join(self.path)


class PhysicalColumn(Struct, frozen=True):
    """A top-level column of the data file, by physical name; null if a file lacks it.

    Parameters
    ----------
    name : str
        The physical name.
    type : DataType
        Its type.
    field_id : int or None
        The id of the Parquet field by which it is found; None: by name.
    """

    name: str
    type: DataType
    field_id: int | None = None


class FileConstant(Struct, frozen=True):
    """A value that is one per file: a column of the file table such as ``baseRowId``.

    Parameters
    ----------
    name : str
        The column of the file table.
    type : DataType
        Its type.
    """

    name: str
    type: DataType


class PartitionValue(Struct, frozen=True):
    """A file's partition value, typed, by the column's physical name.

    Parameters
    ----------
    name : str
        The physical name of the partition column.
    type : DataType
        Its type.
    """

    name: str
    type: DataType


class FileStatistic(Struct, frozen=True):
    """A file's statistic: ``kind`` is min, max, nullCount, numRecords or tightBounds; ``path`` is physical.

    Parameters
    ----------
    kind : str
        ``min``, ``max``, ``nullCount``, ``numRecords`` or ``tightBounds``.
    path : tuple of str
        The physical path of the column; empty for statistics of the file.
    type : DataType
        Its type.
    """

    kind: str
    path: tuple[str, ...]
    type: DataType


#: How many rows a file has, deleted ones included.
NUM_RECORDS = FileStatistic("numRecords", (), PrimitiveType("long"))


class RowPosition(Struct, frozen=True):
    """The row's physical position in its file: int64, from 0, deleted rows counted."""


class TaskIndex(Struct, frozen=True):
    """The number of the writing task: int64, from 0."""


class TaskCount(Struct, frozen=True):
    """How many tasks write: int64, above every `TaskIndex`."""


class TaskRow(Struct, frozen=True):
    """The row's number within its writing task: int64, from 0."""


Leaf = Union[
    Column, PhysicalColumn, FileConstant, PartitionValue, FileStatistic, RowPosition, TaskCount, TaskIndex, TaskRow
]


@final
class Call(Struct, frozen=True):
    """A function applied to arguments.

    Operators are functions too: ``and or not = != <=> < <= > >= + - * / % isnull isnotnull in like case if``.
    ``case`` takes condition, value, ... and an optional last default; ``in`` takes the value, then the candidates, or
    one `Values` for all of them.

    Parameters
    ----------
    function : str
        The function or operator, in lower case.
    args : tuple of Expression
        The arguments.
    sql : str
        The text it was parsed from, if known: another engine gets it as written. Not compared.
    """

    function: str
    args: tuple[Expression, ...]
    sql: str = ""

    def __eq__(self, other: object) -> bool:
        return type(other) is Call and _are_equal(self, other)

    def __hash__(self) -> int:
        return _shallow_hash(self)

    def __repr__(self) -> str:
        return _shown(self)


@final
class Cast(Struct, frozen=True):
    """A cast with Spark's rules; ``safe`` returns null if the plain one would raise (``try_cast``).

    Parameters
    ----------
    arg : Expression
        The value.
    type : DataType
        The type of the result.
    safe : bool
        Whether a value that can't be cast becomes null instead of an error.
    sql : str
        The text it was parsed from, if known. Not compared.
    """

    arg: Expression
    type: DataType
    safe: bool = False
    sql: str = ""

    def __eq__(self, other: object) -> bool:
        return type(other) is Cast and _are_equal(self, other)

    def __hash__(self) -> int:
        return _shallow_hash(self)

    def __repr__(self) -> str:
        return _shown(self)


@final
class EngineCall(Struct, frozen=True):
    """A call that one engine alone can evaluate, of a function that the library lacks; other engines reject it.

    Parameters
    ----------
    args : tuple of Expression
        The values that it is evaluated on.
    type : DataType
        The type of the result.
    call : object
        The call in the form of the engine that made it.
    sql : str
        The call as text, for commits and messages. Not compared.
    """

    args: tuple[Expression, ...]
    type: DataType
    call: Any
    sql: str = ""

    def __eq__(self, other: object) -> bool:
        return type(other) is EngineCall and _are_equal(self, other)

    def __hash__(self) -> int:
        return _shallow_hash(self)

    def __repr__(self) -> str:
        return _shown(self)


Expression = Union[Leaf, Literal, Values, Call, Cast, EngineCall]
#: Levels that a hash looks at, and that a message shows.
_HASHED, _SHOWN = 4, 20


def _parts(e: Any) -> tuple[Expression, ...]:
    """Return the expressions right below another one."""
    return e.args if isinstance(e, (Call, EngineCall)) else (e.arg,) if isinstance(e, Cast) else ()


def _head(e: Any) -> Any:
    """Return what an expression is apart from those below it."""
    if isinstance(e, Call):
        return Call, e.function, len(e.args)
    if isinstance(e, EngineCall):
        return EngineCall, id(e.call), len(e.args)
    return (Cast, e.type, e.safe) if isinstance(e, Cast) else e


def _are_equal(a: Expression, b: Expression) -> bool:
    pairs = [(a, b)]
    while pairs:
        x, y = pairs.pop()
        if x is not y:
            if _head(x) != _head(y):
                return False
            pairs.extend(zip(_parts(x), _parts(y), strict=True))
    return True


def _shallow_hash(e: Expression, levels: int = _HASHED) -> int:
    return hash((_head(e), *(_shallow_hash(p, levels - 1) for p in _parts(e)))) if levels else 0


def _shown(e: Any, levels: int = _SHOWN) -> str:
    if not isinstance(e, (Call, Cast, EngineCall)):
        return repr(e)
    if not levels:
        return "..."
    parts = ", ".join(_shown(p, levels - 1) for p in _parts(e))
    if isinstance(e, Call):
        return f"Call({e.function!r}, {parts})"
    if isinstance(e, EngineCall):
        return f"EngineCall({e.sql!r}, {parts})"
    return f"Cast({parts}, {e.type!r}{', safe=True' if e.safe else ''})"


def column(name: str) -> Column:
    """Return the column of a dotted name; quotes keep dots: ``a.`b.c```, and a doubled one is the character itself.

    Backticks enclose a part, as in Spark, and double quotes, as in standard SQL.

    Parameters
    ----------
    name : str
        The column, dotted for fields of structs; a name that contains a dot is in backticks.

    Raises
    ------
    ExpressionError
        For a name that opens a backtick and does not close it.
    """
    parts: list[str] = []
    rest = name
    while rest:
        if rest.startswith("`"):
            found = _QUOTED.match(rest)
            if found is None:
                raise ExpressionError(
                    f"The column name {name!r} has a backtick too many; expected pairs around a part, such as a.`b.c`.",
                    name=name,
                )
            parts.append(found[1].replace("``", "`"))
            rest = rest[found.end() :]
        elif rest.startswith('"') and (found := _DOUBLE_QUOTED.match(rest)) is not None:
            parts.append(found[1].replace('""', '"'))
            rest = rest[found.end() :]
        else:
            part, _, rest = rest.partition(".")
            parts.append(part)
    return Column(tuple(parts))


def literal(value: Any, type: DataType | None = None) -> Literal:
    """Return a constant.

    Parameters
    ----------
    value : object
        A Python value; None = null.
    type : DataType, optional
        Its type; that of the Python value unless given.
    """
    return Literal(value, type)


def all_of(parts: list[Expression] | tuple[Expression, ...]) -> Expression | None:
    """Join expressions by AND; None if there are none.

    Parameters
    ----------
    parts : iterable of Expression
        The conditions.
    """
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts))


def any_of(parts: list[Expression] | tuple[Expression, ...]) -> Expression | None:
    """Join expressions by OR; None if there are none.

    Parameters
    ----------
    parts : iterable of Expression
        The conditions.
    """
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call("or", tuple(parts))


def negate(expression: Expression) -> Expression:
    """Return NOT expression.

    Parameters
    ----------
    expression : Expression
        A condition.
    """
    return Call("not", (expression,))


def conjuncts(expression: Expression | None) -> Iterator[Expression]:
    """Yield the parts that AND joins, flattened.

    Parameters
    ----------
    expression : Expression or None
        A condition; None has no parts.
    """
    left = [] if expression is None else [expression]
    while left:
        e = left.pop()
        if isinstance(e, Call) and e.function == "and":
            left.extend(reversed(e.args))
        else:
            yield e


def leaves(expression: Expression) -> tuple[Leaf, ...]:
    """Return the distinct leaves, in order of first appearance.

    Parameters
    ----------
    expression : Expression
        The expression.
    """
    found: list[Leaf] = []
    left = [expression]
    while left:
        e = left.pop()
        if type(e) is Call or type(e) is EngineCall:
            left += e.args[::-1]
        elif type(e) is Cast:
            left.append(e.arg)
        elif not isinstance(e, (Literal, Values)):
            found.append(e)
    # to hash a leaf takes longer than the rest
    return tuple(found) if len(found) < 2 else tuple(dict.fromkeys(found))


def all_parts(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all those below it, parents first."""
    left = [expression]
    while left:
        e = left.pop()
        yield e
        left.extend(reversed(_parts(e)))


def is_portable(expression: Expression) -> bool:
    """Return whether every engine evaluates an expression: it has no `EngineCall`."""
    return not any(isinstance(part, EngineCall) for part in all_parts(expression))


def check_depth(expression: Expression) -> None:
    """Reject an expression of more levels than are supported.

    Raises
    ------
    ExpressionError
        If it has `MOST_NESTED` levels or more.
    """
    level, levels = [expression], 0
    while level := [p for e in level for p in _parts(e)]:
        levels += 1
        if levels >= MOST_NESTED:
            raise too_deep()


def too_deep(**facts: Any) -> ExpressionError:
    """Return the error for an expression of more levels than are supported."""
    return ExpressionError(
        f"The expression is nested more than {MOST_NESTED} levels deep, which is the limit. Write it flatter: AND and "
        "OR take any number of parts, IN takes a list.",
        limit=MOST_NESTED,
        **facts,
    )


def flatten(expression: Expression) -> Expression:
    """Join ANDs right below an AND, and ORs below an OR, so that long chains are not deep; the text is kept."""
    return run(_flatten(expression))


def _flatten(e: Expression) -> Steps[Expression]:
    if isinstance(e, Cast):
        arg = yield _flatten(e.arg)
        return e if arg is e.arg else replace(e, arg=arg)
    if not isinstance(e, Call):
        return e
    parts: Sequence[Expression] = e.args
    if e.function in ("and", "or"):
        parts, left = [], list(reversed(e.args))
        while left:
            part = left.pop()
            if isinstance(part, Call) and part.function == e.function:
                left.extend(reversed(part.args))
            else:
                parts.append(part)
    args = parts
    if any(isinstance(part, (Call, Cast)) for part in parts):
        args = yield from each(map(_flatten, parts))
    same = len(args) == len(e.args) and all(a is b for a, b in zip(args, e.args, strict=True))
    return e if same else replace(e, args=tuple(args))


def uses(expression: Expression, path: Sequence[str]) -> bool:
    """Whether an expression uses a column: all of it, a part of it, or what it is part of, in any case.

    Parameters
    ----------
    expression : Expression
        The expression.
    path : tuple of str
        The logical path of a column.
    """
    prefix = [p.lower() for p in path]
    found = [[p.lower() for p in leaf.path] for leaf in leaves(expression) if isinstance(leaf, Column)]
    return any(f[: len(prefix)] == prefix or prefix[: len(f)] == f for f in found)


def transform(
    expression: Expression,
    change: Callable[[Leaf], Expression],
    change_call: Callable[[Call], Expression | None] | None = None,
) -> Expression:
    """Rebuild an expression with every leaf replaced by ``change(leaf)``.

    Parameters
    ----------
    expression : Expression
        The expression.
    change : function(Leaf) -> Expression
        Returns the replacement of a leaf, or the leaf itself.
    change_call : function(Call) -> Expression or None, optional
        Returns the replacement of a call, whose leaves are not changed; None for a call to be rebuilt.
    """
    return run(_transform(expression, change, change_call))


def _transform(
    e: Expression, change: Callable[[Leaf], Expression], change_call: Callable[[Call], Expression | None] | None
) -> Steps[Expression]:
    if isinstance(e, Call):
        changed = None if change_call is None else change_call(e)
        if changed is not None:
            return changed
        args = yield from each(_transform(a, change, change_call) for a in e.args)
        return replace(e, args=tuple(args), sql="")
    if isinstance(e, EngineCall):
        values = yield from each(_transform(a, change, change_call) for a in e.args)
        return replace(e, args=tuple(values))
    if isinstance(e, Cast):
        arg = yield _transform(e.arg, change, change_call)
        return replace(e, arg=arg, sql="")
    return e if isinstance(e, (Literal, Values)) else change(e)
