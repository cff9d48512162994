"""The functions that expressions may call: names, parameters, result types. Pure, the same for every engine.

`resolve_call` checks and casts a call's arguments; `rewrite` turns synonyms into the functions of the table first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyarrow as pa

from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal, all_parts, is_portable
from delta_core.expressions.coercion import (
    BINARY,
    DATE,
    INTEGER,
    INTERVAL_DAY,
    INTERVAL_YEAR_MONTH,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    describe,
    is_integral,
    is_interval,
    is_open,
)
from delta_core.expressions.literals import as_constant_of
from delta_core.expressions.typing_rules import (
    Rule,
    Typed,
    arithmetic,
    array,
    array_contains,
    bits,
    cast_to,
    comparison,
    conditional,
    hashed,
    implicit,
    item,
    logic,
    map_part,
    membership,
    misfit,
    named_struct,
    nan_test,
    number,
    overlap,
    rounded,
    same_nulls,
    signature,
    size,
    struct_field,
    to_boolean,
    unified,
    whole,
)
from delta_core.schema.logical import facts, open_type
from delta_core.schema.types import PrimitiveType, StructType

__all__ = ["COMPARISONS", "SAME_NULLS", "function_names", "is_builtin", "unsupported_name", "resolve_call", "rewrite"]

COMPARISONS = ("=", "!=", "<=>", "<", "<=", ">", ">=")
#: Returns its first argument, and fails if that is null in other rows than the second one.
SAME_NULLS = "same nulls"
#: Functions that planning calls, and that no text names.
_PLANNED = ("between any", SAME_NULLS)

#: ``name: parameters -> result``; parameters after ``|`` may be left out, ``...`` repeats the last one;
#: ``text`` is STRING or BINARY, ``time`` either timestamp, ``clock`` a time of day too, ``first`` the type of the
#: first argument.
_SIGNATURES = """
upper lower initcap reverse: string -> string
trim ltrim rtrim btrim: string | string -> string
length octet_length bit_length: text -> integer
ascii: string -> integer
chr: long -> string
substring: text integer | integer -> first
right: string integer -> string
startswith endswith contains: text text -> boolean
replace: string string | string -> string
translate: string string string -> string
split_part: string string integer -> string
lpad rpad: string integer | string -> string
repeat: string integer -> string
instr: string string -> integer
concat: string ... -> string
concat_ws: string string ... -> string
regexp_replace: string string string -> string
regexp_extract: string string | integer -> string
hex: any -> string
unhex: string -> binary
base64: binary -> string
md5 sha1: binary -> string
sha2: binary integer -> string
crc32: binary -> long
year quarter month day dayofweek dayofyear weekday weekofyear: date -> integer
hour minute second: clock -> integer
date_add date_sub add_months: date integer -> date
datediff: date date -> integer
last_day: date -> date
trunc: date string -> date
date_trunc: string time -> timestamp
date_format: time string -> string
to_date: string string -> date
to_timestamp: string string -> timestamp
unix_timestamp unix_seconds unix_millis unix_micros: timestamp -> long
timestamp_seconds timestamp_millis timestamp_micros: long -> timestamp
unix_date: date -> integer
date_from_unix_date: integer -> date
make_date: integer integer integer -> date
sqrt cbrt exp ln log10 log2 log1p expm1 sin cos tan asin acos atan radians degrees sign: double -> double
pow atan2: double double -> double
"""

_SPECIAL: dict[str, tuple[Rule, int, int]] = {
    "and": (logic, 1, 10_000_000), "or": (logic, 1, 10_000_000), "not": (logic, 1, 1),
    "isnull": (to_boolean, 1, 1), "isnotnull": (to_boolean, 1, 1), "isnan": (nan_test, 1, 1),
    **dict.fromkeys(COMPARISONS, (comparison, 2, 2)), "in": (membership, 1, 10_000_000), "between any": (overlap, 3, 3),
    "like": (signature(("string", "string", "string"), "boolean"), 2, 3),
    "ilike": (signature(("string", "string", "string"), "boolean"), 2, 3),
    "rlike": (signature(("string", "string"), "boolean"), 2, 2),
    "case": (conditional, 2, 9999), "if": (conditional, 3, 3), "coalesce": (unified, 1, 9999),
    "greatest": (unified, 2, 9999), "least": (unified, 2, 9999),
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "pmod"), (arithmetic, 2, 2)),
    **dict.fromkeys(("negative", "positive", "abs"), (number, 1, 1)),
    **dict.fromkeys(("round", "bround"), (rounded, 1, 2)), **dict.fromkeys(("floor", "ceil"), (whole, 1, 1)),
    **dict.fromkeys(("&", "|", "^"), (bits, 2, 2)), "~": (bits, 1, 1),
    **dict.fromkeys(("[]", "element_at", "try_element_at", "get"), (item, 2, 2)), "get_field": (struct_field, 2, 2),
    "named_struct": (named_struct, 2, 9999), "array": (array, 0, 9999),
    "size": (size, 1, 1), "array_contains": (array_contains, 2, 2),
    **dict.fromkeys(("map_keys", "map_values"), (map_part, 1, 1)),
    SAME_NULLS: (same_nulls, 4, 4), "hash": (hashed(INTEGER), 1, 9999), "xxhash64": (hashed(LONG), 1, 9999),
}  # fmt: skip


@cache
def _named() -> dict[str, tuple[Rule, int, int]]:
    """Return the functions of `_SIGNATURES`, which few predicates call."""
    rules: dict[str, tuple[Rule, int, int]] = {}
    for line in _SIGNATURES.strip().splitlines():
        names, _, rest = line.partition(":")
        parameters, _, result = rest.partition("->")
        needed, _, optional = parameters.partition("|")
        repeats = "..." in needed
        kinds = tuple(k for k in (needed + optional).split() if k != "...")
        least = len(needed.split()) - repeats
        rule = signature((*kinds, *kinds[-1:] * 64) if repeats else kinds, result.strip())
        for name in names.split():
            rules[name] = rule, least, 65 if repeats else len(kinds)
    return rules


def _rule(name: str) -> tuple[Rule, int, int] | None:
    return _SPECIAL.get(name) or _named().get(name)


# --- synonyms ------------------------------------------------------------------------------

Rewrite = Callable[[tuple[Expression, ...]], Expression]


def _rename(name: str) -> Rewrite:
    return lambda args: Call(name, args)


def _cast_call(type_name: str) -> Rewrite:
    return lambda args: Cast(args[0], PrimitiveType(type_name))


def _nullif(args: tuple[Expression, ...]) -> Expression:
    return Call("if", (Call("=", args), Literal(None), args[0]))


def _struct(args: tuple[Expression, ...]) -> Expression:
    names = [a.path[-1] if isinstance(a, Column) else f"col{i}" for i, a in enumerate(args, 1)]
    return Call("named_struct", tuple(e for n, a in zip(names, args, strict=True) for e in (Literal(n), a)))


def _date_part(args: tuple[Expression, ...]) -> Expression:
    unit = args[0].value if isinstance(args[0], Literal) else None
    name = _PARTS.get(str(unit).lower())
    if name is None:
        raise UnsupportedExpressionError(
            f"Date part {unit!r} is not supported; use one of: {', '.join(sorted(_PARTS))}."
        )
    return Call(name, args[1:])


_PARTS = {
    "year": "year", "y": "year", "years": "year", "quarter": "quarter", "qtr": "quarter", "month": "month",
    "mon": "month",
    "months": "month", "day": "day", "d": "day", "days": "day", "dayofweek": "dayofweek", "dow": "dayofweek",
    "doy": "dayofyear", "week": "weekofyear", "w": "weekofyear", "hour": "hour", "h": "hour", "hours": "hour",
    "minute": "minute", "m": "minute", "min": "minute", "minutes": "minute",
}  # fmt: skip

#: A function of the table, then its other names.
_SYNONYMS = """
= ==
!= <>
not !
<=> equal_null
coalesce nvl ifnull
case when
% mod
pow power
ceil ceiling
sign signum
ln log
substring substr mid
upper ucase
lower lcase
length len char_length character_length
concat ||
chr char
rlike regexp regexp_like
size cardinality
day dayofmonth
date_add dateadd
datediff date_diff
sha1 sha
"""
_CASTS = {
    "boolean": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "decimal": "decimal(10,0)",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
}

REWRITES: dict[str, tuple[Rewrite, int, int]] = {
    **{
        name: (_rename(group.split()[0]), 0, 9999)
        for group in _SYNONYMS.strip().splitlines()
        for name in group.split()[1:]
    },
    **{name: (_cast_call(target), 1, 1) for name, target in _CASTS.items()},
    "nullif": (_nullif, 2, 2),
    "struct": (_struct, 1, 9999),
    "nvl2": (lambda a: Call("if", (Call("isnotnull", a[:1]), a[1], a[2])), 3, 3),
    "between": (lambda a: Call("and", (Call(">=", a[:2]), Call("<=", (a[0], a[2])))), 3, 3),
    "left": (lambda a: Call("substring", (a[0], Literal(1), a[1])), 2, 2),
    "locate": (lambda a: Call("instr", (a[1], a[0])), 2, 2),
    "position": (lambda a: Call("instr", (a[1], a[0])), 2, 2),
    "charindex": (lambda a: Call("instr", (a[1], a[0])), 2, 2),
    "date_part": (_date_part, 2, 2),
    "datepart": (_date_part, 2, 2),
    "extract": (_date_part, 2, 2),
}
_OPTIONAL_FORMAT = {"to_date": DATE, "to_timestamp": TIMESTAMP, "to_timestamp_ntz": TIMESTAMP_NTZ}

_REJECTED = {
    "an aggregate function": "sum count avg mean min max any every some all bool_and bool_or first last first_value "
    "last_value any_value collect_list collect_set array_agg stddev stddev_samp variance var_samp median mode "
    "percentile approx_count_distinct count_if max_by min_by corr covar_pop listagg string_agg",
    "a window function": "row_number rank dense_rank percent_rank ntile lag lead cume_dist nth_value",
    "not deterministic": "rand random randn uuid monotonically_increasing_id spark_partition_id shuffle "
    "input_file_name input_file_block_start input_file_block_length current_user current_database current_catalog user",
    "a generator": "explode explode_outer posexplode inline stack",
}


def is_builtin(name: str) -> bool:
    """Return whether a function of this lower-case name is known without plugins."""
    return name in _SPECIAL or name in REWRITES or name in _OPTIONAL_FORMAT or name in _named()


def can_test_files(expression: Expression) -> bool:
    """Return whether the files of a log can be tested with an expression: all its functions are built in.

    Those of plugins, and parts that an engine alone evaluates, are evaluated for the rows.
    """
    calls = (part for part in all_parts(expression) if isinstance(part, Call))
    return is_portable(expression) and all(is_builtin(call.function) for call in calls)


def function_names() -> tuple[str, ...]:
    """Return the names of all built-in functions and operators, synonyms included, sorted."""
    return tuple(
        sorted(
            {
                *(name for name in _SPECIAL if name not in _PLANNED),
                *_named(),
                *REWRITES,
                *_OPTIONAL_FORMAT,
                "current_date",
                "current_timestamp",
                "localtimestamp",
                "now",
            }
        )
    )


def unsupported_name(name: str) -> UnsupportedExpressionError:
    """Return the error for a function that expressions can't call, specifying why."""
    for reason, names in _REJECTED.items():
        if name in names.split():
            return UnsupportedExpressionError(
                f"Function {name!r} is {reason}; an expression over rows can't hold it.", function=name
            )
    return UnsupportedExpressionError(
        f"Function {name!r} is not known here. Rewrite the expression, or install a plugin that provides it.",
        function=name,
    )


def rewrite(name: str, args: tuple[Expression, ...]) -> Expression | None:
    """Return what a synonym represents, None for a function of the table."""
    if name in _OPTIONAL_FORMAT and len(args) == 1:
        return Cast(args[0], _OPTIONAL_FORMAT[name])
    if name not in REWRITES:
        return None
    make, least, most = REWRITES[name]
    _check_count(name, len(args), least, most)
    return make(args)


def _check_count(name: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        expected = str(least) if least == most else f"{least} to {most}" if most < 65 else f"at least {least}"
        raise ExpressionError(f"Function {name!r} got {count} arguments, expected {expected}.", function=name)


def resolve_call(name: str, args: list[Typed]) -> Typed:
    """Check and cast a built-in's arguments; return the call and its type.

    Raises
    ------
    UnsupportedExpressionError
        For a name that is not known.
    ExpressionError
        For arguments that don't fit.
    """
    found = _rule(name)
    if found is None:
        raise unsupported_name(name)
    rule, least, most = found
    _check_count(name, len(args), least, most)
    if name == "[]" and isinstance(args[0].type, StructType):
        name, rule = "get_field", struct_field
    moved = _move_time(name, args) if name in ("+", "-") else None
    if moved is not None:
        return moved
    if name == "length" and args[0].type == BINARY:
        name = "octet_length"
    cast, result = rule(name, args)
    return Typed(Call(name, tuple(cast)), result)


def _move_time(name: str, args: list[Typed]) -> Typed | None:
    """Resolve date and timestamp arithmetic: ``date + days``, ``date/timestamp +- INTERVAL``."""
    if name == "+" and (is_interval(args[0].type) or (is_integral(args[0].type) and args[1].type == DATE)):
        return _move_time(name, [args[1], args[0]])
    time, step = args
    if time.type == DATE and is_integral(step.type):
        return resolve_call("date_add" if name == "+" else "date_sub", args)
    moved = _add_duration(name, args)
    if moved is not None:
        return moved
    if not is_interval(step.type):
        if facts(time.type).family in ("date", "timestamp"):
            raise UnsupportedExpressionError(
                f"{describe([time.type])} {name} {describe([step.type])} is not supported; use datediff or unix_micros."
            )
        return None
    count = step.expression.value if isinstance(step.expression, Literal) else None
    if count is None or facts(time.type).family not in ("date", "timestamp", "text"):
        raise misfit(name, args, "a date or timestamp and a constant INTERVAL")
    if time.type == DATE and step.type == INTERVAL_YEAR_MONTH:
        return Typed(Call("add_months", (time.expression, Literal(count if name == "+" else -count, INTEGER))), DATE)
    if time.type == DATE and step.type == INTERVAL_DAY:
        days = count // 86_400_000_000
        return Typed(Call("date_add", (time.expression, Literal(days if name == "+" else -days, INTEGER))), DATE)
    target = time.type if facts(time.type).family == "timestamp" else TIMESTAMP
    return Typed(Call(name, (implicit(name, time, target), step.expression)), target)


def _add_duration(name: str, args: list[Typed]) -> Typed | None:
    """Resolve ``timestamp +- duration`` and ``duration +- duration``, in the finer of both units."""
    time, step = args
    if facts(time.type).family == "duration" and facts(step.type).family == "timestamp" and name == "+":
        return _add_duration(name, [step, time])
    moved = facts(time.type)
    if is_interval(step.type) and is_open(time.type) and isinstance(step.expression, Literal):
        kind = open_type(pa.duration("us"))
        constant = as_constant_of(step.expression, kind)
        step = step if constant is None else Typed(constant, kind)
    added = facts(step.type)
    if added.family != "duration" or moved.family not in ("timestamp", "duration"):
        return None
    unit = (moved if moved.per_day >= added.per_day else added).arrow.unit
    duration = open_type(pa.duration(unit))
    target = duration if moved.family == "duration" else open_type(pa.timestamp(unit, moved.arrow.tz))
    return Typed(Call(name, (cast_to(time, target), cast_to(step, duration))), target)
