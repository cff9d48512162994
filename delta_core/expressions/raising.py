"""Whether an expression may raise for a value: a cast that does not fit, an overflow, a division by zero.

Rows for which other conjuncts are not true never reach such an expression, and whether a file or a row group is read
must not change what is raised: what may raise is evaluated last, and excludes nothing where it may raise for a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Leaf, Literal, all_parts
from delta_core.expressions.binding import leaf_type, resolve
from delta_core.expressions.coercion import as_decimal, canonical, name_of, same_type
from delta_core.expressions.typing_rules import Typed
from delta_core.schema.fields import find
from delta_core.schema.types import ArrayType, DataType, StructType

__all__ = ["cast_may_raise", "may_raise", "only_casts_raise", "raising_last", "types_in"]

TypeOf = Callable[[Expression], DataType | None]

#: Functions that raise for no value.
_TOTAL_NAMES = """
= != <=> < <= > >= and or not in isnull isnotnull isnan like ilike startswith endswith contains case if coalesce
greatest least get_field named_struct array get try_element_at size array_contains map_keys map_values hash xxhash64
upper lower initcap reverse trim ltrim rtrim btrim length octet_length bit_length ascii substring right instr md5 sha1
crc32 year quarter month day dayofweek dayofyear weekday weekofyear hour minute second datediff last_day trunc
date_trunc unix_timestamp unix_seconds unix_millis unix_micros unix_date sqrt cbrt exp ln log10 log2 log1p expm1 sin
cos tan asin acos atan radians degrees sign pow atan2 & | ^ ~
"""
_TOTAL = frozenset((*_TOTAL_NAMES.split(), "between any"))
#: Functions of numbers that raise for no floating-point value.
_TOTAL_FOR_FLOATS = frozenset(("+", "-", "*", "negative", "positive", "abs", "round", "bround", "floor", "ceil"))
_WHOLE = ("byte", "short", "integer", "long")
_FLOATS = ("float", "double")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
#: Casts that raise for no value, by what they begin with; numbers among each other apart.
_TOTAL_CASTS = {
    "boolean": {*_WHOLE, *_FLOATS, "string"},
    **dict.fromkeys((*_WHOLE, *_FLOATS, "decimal"), frozenset(("boolean", "string"))),
    "binary": {"string"},
    "date": {"string", "timestamp", "timestamp_ntz"},
    "timestamp": {"string", "date", "timestamp_ntz", "long", "double"},
    "timestamp_ntz": {"string", "date", "timestamp"},
}


def types_in(schema: StructType) -> TypeOf:
    """Return the function that finds the types of expressions over the columns of a schema.

    Parameters
    ----------
    schema : StructType
        The columns.

    Returns
    -------
    function(Expression) -> DataType or None
        The type of a bound expression; None if a plugin's function is in it.
    """

    def locate(leaf: Leaf) -> Typed:
        if isinstance(leaf, Column):
            return Typed(leaf, canonical(find(schema, leaf.path)[1].type))
        return leaf_type(leaf)

    def type_of(e: Expression) -> DataType | None:
        try:
            return resolve(e, locate, {}).type
        except ExpressionError:  # a plugin's function
            return None

    return type_of


def may_raise(expression: Expression, type_of: TypeOf) -> bool:
    """Return whether a bound expression may raise for a value of its leaves.

    Parameters
    ----------
    expression : Expression
        Bound.
    type_of : function(Expression) -> DataType or None
        The type of a part; None if it is not known.
    """
    return any(_part_may_raise(part, type_of) for part in all_parts(expression))


def raising_last(parts: Iterable[Expression], type_of: TypeOf) -> list[Expression]:
    """Return the conjuncts of a predicate with those that may raise after the others."""
    return sorted(parts, key=lambda part: may_raise(part, type_of))


def only_casts_raise(expression: Expression, type_of: TypeOf) -> bool:
    """Return whether nothing but casts may raise, so that with ``try_cast`` in their place nothing does."""
    parts = (p for p in all_parts(expression) if not isinstance(p, Cast))
    return not any(_part_may_raise(part, type_of) for part in parts)


def cast_may_raise(source: DataType | None, target: DataType) -> bool:
    """Return whether a cast may raise for a value; True if the type it begins with is not known."""
    if source is None:
        return True
    if same_type(source, target) or name_of(source) == "void":
        return False
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return cast_may_raise(source.element_type, target.element_type)
    if isinstance(source, StructType) and isinstance(target, StructType):
        return any(cast_may_raise(a.type, b.type) for a, b in zip(source, target, strict=True))
    a, b = name_of(source), name_of(target)
    if b in _TOTAL_CASTS.get(a, ()):
        return False
    if b in _FLOATS:
        return a not in (*_WHOLE, *_FLOATS, "decimal")
    if a in _WHOLE and b in _WHOLE:
        return _WHOLE.index(a) > _WHOLE.index(b)
    if b == "decimal" and (a in _WHOLE or a == "decimal"):
        digits, scale = (_DIGITS[a], 0) if a in _WHOLE else as_decimal(source) or (38, 0)
        precision, kept = as_decimal(target) or (0, 0)
        # what is rounded away may carry into one more digit
        return precision - kept < digits - scale + (kept < scale)
    return True


def _part_may_raise(part: Expression, type_of: TypeOf) -> bool:
    if isinstance(part, Cast):
        return not part.safe and cast_may_raise(type_of(part.arg), part.type)
    if not isinstance(part, Call) or part.function in _TOTAL:
        return False
    kinds = {name_of(t) for t in map(type_of, part.args[:2]) if t is not None}
    is_float = bool(kinds) and kinds <= {*_FLOATS, "integer"} and bool(kinds & {*_FLOATS})
    if part.function in _TOTAL_FOR_FLOATS:
        return not is_float
    if part.function in ("%", "pmod", "/"):
        divisor = part.args[1]
        is_known = isinstance(divisor, Literal) and divisor.value is not None and divisor.value != 0
        return not is_known or not (is_float or (part.function == "%" and kinds <= set(_WHOLE)))
    return True
