"""How calls are typed: the casts that Spark (4, ANSI mode) puts around arguments, and the result's type.

A rule takes a function's name and typed arguments and returns the cast arguments and the result's type.
Pure, the same for every engine. `functions` specifies which function has which rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions import parts
from delta_core.expressions.ast import MANY, Cast, Expression, Literal, Values
from delta_core.expressions.coercion import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    adjusted_decimal,
    as_decimal,
    can_cast,
    common_type,
    decimal_result,
    decimal_type,
    describe,
    is_integral,
    is_numeric,
    is_open,
    is_unsigned,
    most_digits,
    same_type,
    widened,
)
from delta_core.expressions.literals import as_constant_of, cast_literal
from delta_core.schema.logical import MOST_DIGITS, facts
from delta_core.schema.types import (
    ArrayType,
    CustomType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    spark_name,
)

__all__ = [
    "Rule", "Typed", "are_comparable", "arithmetic", "array", "array_contains", "bits", "cast_to", "comparison",
    "conditional", "hashed", "implicit", "item", "logic", "map_part", "membership", "misfit", "nan_test",
    "number", "overlap", "rounded", "signature", "size", "named_struct", "struct_field", "to_boolean",
    "unified", "whole",
]  # fmt: skip


class Typed(NamedTuple):
    """An expression with its type."""

    expression: Expression
    type: DataType


Rule = Callable[[str, list[Typed]], tuple[list[Expression], DataType]]

# --- casts ---------------------------------------------------------------------------------


def cast_to(arg: Typed, target: DataType) -> Expression:
    """Return the argument as another type: constants are converted, everything else wrapped in a `Cast`."""
    if same_type(arg.type, target):
        return arg.expression
    if isinstance(arg.expression, Literal):
        return cast_literal(arg.expression, target)
    return Cast(arg.expression, target)


def misfit(name: str, args: Sequence[Typed], expected: str) -> ExpressionError:
    """Return the error for arguments that a function does not take."""
    found = describe([a.type for a in args])
    return ExpressionError(f"Function {name!r} got ({found}), expected {expected}. Add a cast.", function=name)


def _unify(name: str, args: Sequence[Typed]) -> DataType:
    def meet(a: DataType, b: DataType) -> DataType:
        found = common_type(a, b)
        if found is None:
            raise misfit(name, args, "arguments that have a common type")
        return found

    return reduce(meet, (a.type for a in args))


# --- rules ---------------------------------------------------------------------------------


def logic(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take booleans (text is cast).

    Raises
    ------
    ExpressionError
        If an argument is of another type.
    """
    for a in args:
        if a.type not in (BOOLEAN, VOID, STRING):
            raise misfit(name, args, "BOOLEAN")
    return [cast_to(a, BOOLEAN) for a in args], BOOLEAN


def to_boolean(_: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take anything."""
    return [a.expression for a in args], BOOLEAN


def _exact(arg: Typed) -> Typed:
    """Return an integral argument as the narrowest decimal that holds it; others as they are."""
    if not is_integral(arg.type):
        return arg
    literal = arg.expression
    if isinstance(literal, Literal) and literal.value is not None:
        decimal: DataType = PrimitiveType(f"decimal({len(str(abs(literal.value)))},0)")
    else:
        decimal = PrimitiveType("decimal({},{})".format(*(as_decimal(arg.type) or (38, 0))))
    return Typed(cast_to(arg, decimal), decimal)


def _are_exact(types: Sequence[DataType]) -> bool:
    """Return whether decimals meet decimals or integers only."""
    is_exact = any(facts(t).family == "decimal" for t in types)
    return is_exact and all(as_decimal(t) is not None or t == VOID for t in types)


def _with_constants_of(args: list[Typed]) -> list[Typed]:
    """Return arguments in which constants have the type, if Delta does not have it, of the first that is no constant.

    A value that the type does not hold exactly stays as it is.
    """
    target = next((a.type for a in args if not isinstance(a.expression, Literal)), VOID)
    if not isinstance(target, PrimitiveType) or not is_open(target):
        return args
    found = [as_constant_of(a.expression, target) if isinstance(a.expression, Literal) else None for a in args]
    return [a if e is None else Typed(e, target) for a, e in zip(args, found, strict=True)]


def _are_scaled(types: Sequence[DataType]) -> bool:
    """Return whether all are dates and timestamps, or times, or durations, and one is of a type that Delta lacks.

    They are compared as they are: the finest unit does not hold all values of the others.
    """
    families = {facts(t).family for t in types if t != VOID}
    one_kind = families <= {"date", "timestamp"} or families in ({"time"}, {"duration"})
    return one_kind and any(is_open(t) for t in types)


def comparison(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Meet in one type, decimals and times of several units as they are.

    Raises
    ------
    UnsupportedExpressionError
        For types whose values can't be compared here.
    """
    if any(isinstance(a.type, CustomType) for a in args):
        args = _with_constants_of(args)
        if _are_scaled([a.type for a in args]):
            return [a.expression for a in _fill_void(args)], BOOLEAN
    if _are_exact([a.type for a in args]):
        # Compared as they are, whatever the scales: a common type of 38 digits could cut or overflow.
        return [_exact(a).expression for a in _fill_void(args)], BOOLEAN
    first = next((a.type for a in args if a.type != VOID), VOID)
    if not isinstance(first, PrimitiveType) and all(are_comparable(first, a.type) for a in args):
        # their parts meet when they are compared
        return [a.expression for a in _fill_void(args)], BOOLEAN
    target = _unify(name, args)
    if not isinstance(target, PrimitiveType) or not are_comparable(target, target):
        raise UnsupportedExpressionError(
            f"Values of type {spark_name(target)} can't be compared by {name!r} here; compare their parts.",
            function=name,
        )
    return [cast_to(a, target) for a in args], BOOLEAN


def are_comparable(a: DataType, b: DataType) -> bool:
    """Return whether values of two types are compared without a cast: of one type, numbers, or nested ones of such.

    As in Spark, fields of structs are compared by their places, and may have other names if all types are the same.
    """
    return _is_same_but_for_names(a, b) or _are_comparable_by_name(a, b)


def _is_same_but_for_names(a: DataType, b: DataType) -> bool:
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return _is_same_but_for_names(a.element_type, b.element_type)
    if isinstance(a, StructType) and isinstance(b, StructType):
        pairs = zip(a.members, b.members, strict=False)
        return len(a.members) == len(b.members) and all(_is_same_but_for_names(x.type, y.type) for x, y in pairs)
    return isinstance(a, PrimitiveType) and a == b and facts(a).family not in ("interval", "opaque")


def _are_comparable_by_name(a: DataType, b: DataType) -> bool:
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return _are_comparable_by_name(a.element_type, b.element_type)
    if isinstance(a, StructType) and isinstance(b, StructType):
        names = [[f.name.lower() for f in t.members] for t in (a, b)]
        pairs = zip(a.members, b.members, strict=False)
        return names[0] == names[1] and all(_are_comparable_by_name(x.type, y.type) for x, y in pairs)
    if VOID in (a, b):
        return not isinstance(a, MapType) and not isinstance(b, MapType)
    return _is_same_but_for_names(a, b) or (is_numeric(a) and is_numeric(b))


def membership(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Meet in one type as a comparison does; many constants become `Values`."""
    values = args[-1].expression
    if len(args) == 2 and isinstance(values, Values):
        return _look_up(name, args[0], values)
    cast, result = comparison(name, args)
    literals = [e for e in cast[1:] if isinstance(e, Literal)]
    if len(literals) <= MANY or len(literals) < len(cast) - 1 or not _has_one_type([a.type for a in args]):
        return cast, result
    found = parts.from_literals(literals)
    return (cast if found is None else list(parts.look_up(cast[0], found).args)), result


def _has_one_type(types: Sequence[DataType]) -> bool:
    """Return whether one decimal type holds all values, if they are compared as decimals."""
    sizes = [as_decimal(t) or (0, 0) for t in types]
    return not _are_exact(types) or max(p - s for p, s in sizes) + max(s for _, s in sizes) <= MOST_DIGITS


def _look_up(name: str, value: Typed, values: Values) -> tuple[list[Expression], DataType]:
    pair = [value, Typed(values, values.type)]
    if value.type == VOID:
        return list(parts.look_up(cast_to(value, values.type), values).args), BOOLEAN
    if _are_exact([value.type, values.type]):
        digits = as_decimal(values.type) or (38, 0)
        is_one_type = _has_one_type([value.type, values.type])
        known = parts.cast_values(values, decimal_type(*digits, MOST_DIGITS)) if is_one_type else None
        target, found = value.type, _exact(value).expression
    elif is_unsigned(value.type) and is_integral(values.type):
        target, found = value.type, value.expression
        known = parts.cast_values(values, target)
    else:
        target = _unify(name, pair)
        known = parts.cast_values(values, target)
        found = cast_to(value, target)
    if known is None:
        return membership(name, [value, *(Typed(e, values.type) for e in parts.expand(values))])
    comparison(name, [value, Typed(Literal(None, known.type), known.type)])  # raises for what can't be compared
    return list(parts.look_up(found, known).args), BOOLEAN


def overlap(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take two bounds and `Values` of types that compare with them, as planning makes it: no text names it."""
    return [a.expression for a in args], BOOLEAN


def same_nulls(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take decoded values, what files store, and the feature and the column in errors: no text names it."""
    return [a.expression for a in args], args[0].type


def _fill_void(args: list[Typed]) -> list[Typed]:
    other = next((a.type for a in args if a.type != VOID), VOID)
    return [Typed(cast_to(a, other), other) if a.type == VOID else a for a in args]


def unified(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Cast all to their common type."""
    target = _unify(name, args)
    return [cast_to(a, target) for a in args], target


def conditional(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take ``case`` and ``if``: condition, value, ... and perhaps a default."""
    default = len(args) % 2
    conditions = args[: len(args) - default : 2]
    values = args[1::2] + ([args[-1]] if default else [])
    target = _unify(name, values)
    checked, _ = logic(name, conditions)
    out: list[Expression] = []
    for condition, value in zip(checked, values, strict=False):
        out += [condition, cast_to(value, target)]
    return out + ([cast_to(args[-1], target)] if default else []), target


def arithmetic(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take numbers, by Spark's promotion and decimal precision.

    Raises
    ------
    ExpressionError
        If an argument is no number, or one with a fraction that ``div`` can't take.
    """
    if all(a.type == VOID for a in args):
        return [cast_to(a, DOUBLE) for a in args], DOUBLE
    args = _with_signs(name, _fill_void(args))
    if _are_exact([a.type for a in args]):
        a, b = (_exact(x) for x in args)
        if name == "div":
            return [a.expression, b.expression], LONG
        precisions = as_decimal(a.type) or (38, 0), as_decimal(b.type) or (38, 0)
        return [a.expression, b.expression], decimal_result("%" if name == "pmod" else name, *precisions)
    target = _unify(name, args)
    if target == STRING:
        target = DOUBLE
    if not is_numeric(target):
        raise misfit(name, args, "numbers")
    if name == "/":
        return [cast_to(a, DOUBLE) for a in args], DOUBLE
    if name == "div":
        if not is_integral(target):
            raise misfit(name, args, "whole numbers or decimals")
        target = target if is_unsigned(target) else LONG
    return [cast_to(a, target) for a in args], target


def _with_signs(name: str, args: list[Typed]) -> list[Typed]:
    """Return unsigned arguments as the types with a sign that hold them, unless all are and so is every result."""
    same = _with_constants_of(args)
    if name in ("%", "pmod", "div") and all(is_unsigned(a.type) for a in same):
        return same
    return [Typed(cast_to(a, wide), wide) if is_unsigned(a.type) else a for a in args for wide in [widened(a.type)]]


def number(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take one number.

    Raises
    ------
    ExpressionError
        If the argument is no number.
    """
    target = DOUBLE if args[0].type in (STRING, VOID) else widened(args[0].type)
    if not is_numeric(target):
        raise misfit(name, args, "a number")
    return [cast_to(args[0], target)], target


def rounded(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take a number and a constant number of digits.

    Raises
    ------
    UnsupportedExpressionError
        If the number of digits is not a constant.
    """
    (value,), target = number(name, args[:1])
    digits = args[1].expression if len(args) > 1 else Literal(0, INTEGER)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise UnsupportedExpressionError(f"{name!r} needs a constant whole number of digits.", function=name)
    if facts(target).family == "decimal":
        precision, scale = as_decimal(target) or (38, 0)
        whole, most = precision - scale + 1, most_digits(precision)
        target = (
            decimal_type(max(whole, 1 - digits.value), 0, most)
            if digits.value < 0
            else adjusted_decimal(whole + min(scale, digits.value), min(scale, digits.value), most)
        )
    return [value, digits], target


def whole(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take a number, return a whole one."""
    (value,), source = number(name, args)
    if facts(source).family == "decimal":
        precision, scale = as_decimal(source) or (38, 0)
        return [value], decimal_type(precision - scale + 1, 0, most_digits(precision))
    return [value if is_integral(source) else cast_to(Typed(value, source), DOUBLE)], LONG


def bits(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take whole numbers.

    Raises
    ------
    ExpressionError
        If an argument is no whole number.
    """
    args = _with_constants_of(args)
    target = _unify(name, args)
    if not is_integral(target):
        raise misfit(name, args, "whole numbers")
    return [cast_to(a, target) for a in args], target


def nan_test(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take a number."""
    numbers, source = number(name, args)
    return (numbers if facts(source).bits == 32 and not is_integral(source) else [cast_to(args[0], DOUBLE)]), BOOLEAN


def item(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take an array and an index, or a map and a key.

    Raises
    ------
    ExpressionError
        If the first argument is neither an array nor a map, or the second does not fit it.
    """
    holder, key = args
    if isinstance(holder.type, MapType):
        return [holder.expression, implicit(name, key, holder.type.key_type)], holder.type.value_type
    if isinstance(holder.type, ArrayType):
        return [holder.expression, implicit(name, key, INTEGER)], holder.type.element_type
    raise misfit(name, args, "an ARRAY or MAP")


def array(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take elements that have a common type."""
    if not args:
        return [], ArrayType(VOID, True)
    elements, target = unified(name, args)
    return elements, ArrayType(target, True)


def struct_field(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take a struct and the name of a field.

    Raises
    ------
    ExpressionError
        For a field that the struct lacks.
    """
    holder, key = args
    if isinstance(holder.type, MapType):
        raise misfit(name, args, "a STRUCT; reach into a map with m['key']")
    if not isinstance(holder.type, StructType) or not isinstance(key.expression, Literal):
        raise misfit(name, args, "a STRUCT and a field's name")
    found = holder.type.get(str(key.expression.value))
    if found is None:
        raise ExpressionError(f"Field {key.expression.value!r} is not in {spark_name(holder.type)}.", function=name)
    return [holder.expression, Literal(found.name, STRING)], found.type


def named_struct(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take names, which are constants, each with its value.

    Raises
    ------
    ExpressionError
        If an argument that names a field is not a constant text, or a name has no value.
    """
    names = [a.expression.value for a in args[::2] if isinstance(a.expression, Literal)]
    if len(args) % 2 or not args or not all(isinstance(n, str) for n in names) or 2 * len(names) != len(args):
        raise misfit(name, args, "names as constants, each with its value")
    fields = [Field(n, value.type) for n, value in zip(names, args[1::2], strict=True)]
    return [a.expression for a in args], StructType(fields)


def size(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take an array or map.

    Raises
    ------
    ExpressionError
        If the argument is neither an array nor a map.
    """
    if not isinstance(args[0].type, (ArrayType, MapType)):
        raise misfit(name, args, "an ARRAY or MAP")
    return [args[0].expression], INTEGER


def array_contains(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take an array and a value like its elements.

    Raises
    ------
    ExpressionError
        If the first argument is no array, or the value is of another type than its elements.
    """
    array = args[0].type
    if not isinstance(array, ArrayType):
        raise misfit(name, args, "an ARRAY and a value of its elements' type")
    constant = args[1].expression
    exact = as_constant_of(constant, array.element_type) if isinstance(constant, Literal) else None
    value = args[1] if exact is None else Typed(exact, array.element_type)
    if common_type(array.element_type, value.type) != array.element_type:
        raise misfit(name, args, "an ARRAY and a value of its elements' type")
    return [args[0].expression, cast_to(value, array.element_type)], BOOLEAN


def map_part(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
    """Take a map, return its keys or values.

    Raises
    ------
    ExpressionError
        If the argument is no map.
    """
    source = args[0].type
    if not isinstance(source, MapType):
        raise misfit(name, args, "a MAP")
    if name == "map_keys":
        return [args[0].expression], ArrayType(source.key_type, False)
    return [args[0].expression], ArrayType(source.value_type, source.value_contains_null)


def hashed(result: DataType) -> Rule:
    """Take anything but maps."""

    def rule(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
        for a in args:
            if isinstance(a.type, MapType):
                raise misfit(name, args, "no MAP: maps have no hash in Spark")
            if is_open(a.type):
                raise misfit(name, args, "types that Spark has a hash for")
        return [a.expression for a in args], result

    return rule


# --- signatures ----------------------------------------------------------------------------

_NAMED = {
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "long": LONG,
    "double": DOUBLE,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}


def implicit(name: str, arg: Typed, target: DataType) -> Expression:
    """Cast an argument to a parameter's type as Spark does on its own.

    Raises
    ------
    ExpressionError
        If Spark would not cast the argument on its own.
    """
    exact = as_constant_of(arg.expression, target) if isinstance(arg.expression, Literal) else None
    if exact is not None:
        return exact
    if not (same_type(arg.type, target) or arg.type == VOID or _is_upcast(arg.type, target)):
        raise misfit(name, [arg], spark_name(target))
    return cast_to(arg, target)


def _is_upcast(source: DataType, target: DataType) -> bool:
    have, want = facts(source), facts(target)
    if have.family == want.family == "integer":
        (low, high), (least, most) = have.limits, want.limits
        return least <= low and high <= most
    if "text" in (have.family, want.family):
        return can_cast(source, target)
    if {have.family, want.family} <= {"date", "timestamp"}:
        return True
    return target == DOUBLE and is_numeric(source)


def _parameter(name: str, arg: Typed, kind: str) -> Expression:
    if kind == "any":
        return arg.expression
    if kind == "clock" and facts(arg.type).family == "time":
        return arg.expression
    if kind in ("time", "clock"):
        return arg.expression if arg.type == TIMESTAMP_NTZ else implicit(name, arg, TIMESTAMP)
    if kind == "text":
        return arg.expression if arg.type == BINARY else implicit(name, arg, STRING)
    return implicit(name, arg, _NAMED[kind])


def signature(parameters: tuple[str, ...], result: str) -> Rule:
    """Return the rule of a list of parameter kinds."""

    def rule(name: str, args: list[Typed]) -> tuple[list[Expression], DataType]:
        kinds = parameters if len(parameters) >= len(args) else (parameters * len(args))[: len(args)]
        cast = [_parameter(name, a, k) for a, k in zip(args, kinds, strict=False)]
        if result != "first":
            return cast, _NAMED[result]
        return cast, args[0].type if args[0].type in (BINARY, TIMESTAMP_NTZ) else _NAMED[_FIRST[parameters[0]]]

    return rule


_FIRST = {"text": "string", "time": "timestamp"}
