"""Spark SQL text to expressions by sqlglot: what `simple_sql` leaves to it.

Every function call is kept by name and place of its arguments, so that nothing but `functions` decides what a function
means. Texts that Spark and sqlglot would group differently are rejected.
"""

from __future__ import annotations

import decimal
import functools
import re
from collections.abc import Callable
from typing import Any

from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal, transform
from delta_core.expressions.coercion import INTERVAL_DAY, INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH, name_of
from delta_core.expressions.literals import cast_literal, literal_type, negated_number
from delta_core.expressions.simple_sql import PLACEHOLDER
from delta_core.runtime.patterns import lazy_pattern
from delta_core.runtime.recursion import Steps, each, run
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType

__all__ = ["parse_with_sqlglot"]


@functools.cache
def _parser() -> tuple[Any, Any]:
    """Return (dialect, parser class); made on first use, because sqlglot takes 0.1 s to import."""
    from sqlglot.dialects.spark import Spark

    base = Spark.parser_class if hasattr(Spark, "parser_class") else Spark.Parser
    parsers = {name: base.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM")}

    class ByNameParser(base):  # type: ignore[misc, valid-type]  # a class by sqlglot's version
        """Spark's grammar with all functions left as they are written."""

        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012 (sqlglot declares no ClassVar)
        FUNCTION_PARSERS = parsers
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012 (as above)
        STRICT_CAST = True

    return Spark(), ByNameParser


def parse_with_sqlglot(short: str, text: str, parts: dict[Any, Expression]) -> Expression:
    """Parse a text through sqlglot; what is deep in parentheses is parsed apart, and put into ``parts``.

    Parameters
    ----------
    short : str
        The text, in which columns replace long lists.
    text : str
        The whole text, for messages.
    parts : dict of Column to Expression
        The values that such columns replace.

    Raises
    ------
    ExpressionError, UnsupportedExpressionError
        See `sql.parse_sql`.
    """
    from sqlglot import errors

    dialect, _ = _parser()
    if not text.strip():
        raise ExpressionError("The expression is empty; expected Spark SQL text such as \"x > 5 AND s = 'a'\".")
    try:
        tokens = _with_short_runs(_reread(dialect.tokenize(short), short))
    except (errors.ParseError, errors.TokenError) as e:
        raise _not_parsed(text, e) from e
    return _parse_tokens(_without_depth(tokens, short, text, parts), short, text)


def _not_parsed(text: str, error: Exception) -> ExpressionError:
    return ExpressionError(f"The expression {_short(text)!r} can't be parsed: {_reason(error)}.", sql=text)


def _parse_tokens(tokens: list[Any], short: str, text: str) -> Expression:
    from sqlglot import errors, exp

    dialect, parser = _parser()
    try:
        trees = parser(dialect=dialect).parse_into(exp.Condition, tokens, short)
    except (errors.ParseError, errors.TokenError) as e:
        raise _not_parsed(text, e) from e
    except RecursionError:
        raise ExpressionError(
            f"The expression {_short(text)!r} is nested too deep without parentheses. Put its parts in parentheses.",
            sql=text,
        ) from None
    if len(trees) != 1 or trees[0] is None:
        raise ExpressionError(f"The text {_short(text)!r} is not one expression.", sql=text)
    found: Expression = run(_convert(trees[0], text))
    return found


#: Levels of parentheses that sqlglot, which calls itself a dozen times for each, is given at once.
_AT_ONCE = 8
#: Words before a parenthesis that call nothing.
_NO_CALLS = frozenset((
    "and", "or", "not", "between", "like", "ilike", "rlike", "regexp", "is", "when", "then", "else", "case", "escape",
    "div", "by",
    "end", "distinct", "as", "from", "on",
))  # fmt: skip


def _without_depth(tokens: list[Any], short: str, text: str, parts: dict[Any, Expression]) -> list[Any]:
    """Put a column in the place of each deep part in parentheses, with the function that is called on it."""
    out: list[Any] = []
    open_: list[tuple[int, int]] = []  # the position of a parenthesis, and the levels within it so far
    for token in tokens:
        out.append(token)
        kind = token.token_type.name
        if kind in ("L_PAREN", "CASE"):
            open_.append((len(out) - 1, 0))
        if kind not in ("R_PAREN", "END") or not open_:
            continue
        first, levels = open_.pop()
        word = out[first - 1] if first else token
        is_named = kind == "R_PAREN" and word.text[:1].isidentifier() and word.token_type.name != "STRING"
        if levels >= _AT_ONCE and not (is_named and word.text.lower() == "in"):
            first -= is_named and word.text.lower() not in _NO_CALLS
            found = _parse_tokens(out[first:], short, text)
            name = f"{PLACEHOLDER}{len(parts)}"
            parts[Column((name,))] = transform(found, lambda leaf: parts.get(leaf, leaf))
            del out[first:]
            out += _tokens_of(f"(`{name}`)", token)
            levels = 0
        if open_:
            start, inner = open_.pop()
            open_.append((start, max(inner, levels + 1)))
    return out


def _tokens_of(text: str, like: Any) -> list[Any]:
    dialect, _ = _parser()
    return [_token(like, t.token_type, t.text, like.start) for t in dialect.tokenize(text)]


#: Operators that undo themselves: two more of them in a row change neither value, type nor errors.
_INVOLUTIONS = ("NOT", "DASH", "TILDE")


def _with_short_runs(tokens: list[Any]) -> list[Any]:
    """Leave at most three of the same operator in a row, since sqlglot calls itself for each."""
    out: list[Any] = []
    for token in tokens:
        out.append(token)
        kind = token.token_type.name
        if kind in _INVOLUTIONS and len(out) >= 4 and all(t.token_type.name == kind for t in out[-4:]):
            del out[-2:]
    return out


def _reread(tokens: list[Any], text: str) -> list[Any]:
    """Read strings and decimals from the source: sqlglot's reading of escapes and of ``1.5BD`` is not Spark's."""
    out: list[Any] = []
    for token in tokens:
        kind, start = token.token_type.name, token.start
        if kind == "STRING":
            if out and out[-1].token_type.name == "STRING" and _touch(out[-1], token, text):
                start = out.pop().start  # a doubled quote
            out.append(_token(token, token.token_type, _unescape(text[start + 1 : token.end], text[start]), start))
        elif kind == "DECIMAL" and len(out) > 1 and out[-2].token_type.name == "NUMBER" and out[-2].start == start:
            out.pop()
            number = out.pop()
            plain = format(decimal.Decimal(number.text), "f")
            out.append(_token(token, number.token_type, plain if "." in plain else plain + ".", start))
        elif kind == "L_PAREN" and out and out[-1].token_type.name == "BETWEEN" and _begins_operand(out[:-1]):
            word = out.pop()  # the function between(x, low, high), as Spark prints the operator
            out += [_token(word, token.token_type.VAR, word.text, word.start), token]
        else:
            out.append(token)
    return out


#: Tokens after which an operand begins.
_BEFORE_OPERAND = frozenset(
    ("L_PAREN", "COMMA", "AND", "OR", "EQ", "NEQ", "NULLSAFE_EQ", "CASE", "WHEN", "THEN", "ELSE")
)


def _begins_operand(before: list[Any]) -> bool:
    """Whether the token after others begins an operand; ``x NOT BETWEEN`` goes on with one."""
    while before and before[-1].token_type.name == "NOT":
        before = before[:-1]
    return not before or before[-1].token_type.name in _BEFORE_OPERAND


def _token(like: Any, kind: Any, text: str, start: int) -> Any:
    return type(like)(kind, text, line=like.line, col=like.col, start=start, end=like.end)


def _touch(before: Any, token: Any, text: str) -> bool:
    return bool(before.end + 1 == token.start and text[before.end] == text[token.start])


#: The findings of sqlglot's parser, in words of the text that it parses.
_PLAIN_REASONS = {
    r"Required keyword: '\w+' missing for \w+": "an operand is missing",
    "Invalid expression / Unexpected token": "unexpected text",
    "^Expect(?:ing|ed) ": "expected ",
}


def _reason(error: Exception) -> str:
    from sqlglot import errors

    details = getattr(error.__cause__ or error, "errors", None) or [{}]
    found = details[0]
    if found.get("description"):
        description = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", found["description"])
        for pattern, text in _PLAIN_REASONS.items():
            description = re.sub(pattern, text, description)
        return f"{description} at line {found.get('line')}, column {found.get('col')}"
    if isinstance(error, errors.TokenError):
        return "a quote or a comment is not closed"
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0].rstrip(".")


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = lazy_pattern(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))|(['\"])\5", re.DOTALL)


def _unescape(body: str, quote: str) -> str:
    r"""Read a string literal's escapes as Spark does: ``\%`` and ``\_`` keep their backslash, for LIKE."""

    def read(match: re.Match[str]) -> str:
        short, long, octal, single, doubled = match.groups()
        if doubled:
            return quote if doubled == quote else match[0]
        if short or long or octal:
            return chr(int(short or long, 16) if short or long else int(octal, 8))
        return _ESCAPES.get(single, single)

    return _ESCAPE.sub(read, body)


# --- the tree ------------------------------------------------------------------------------

_BINARY = {
    "And": "and", "Or": "or", "EQ": "=", "NEQ": "!=", "NullSafeEQ": "<=>", "GT": ">", "GTE": ">=", "LT": "<",
    "LTE": "<=",
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "div", "DPipe": "concat",
    "RegexpLike": "rlike",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "ILike": "ilike", "Like": "like",
}  # fmt: skip
_COMPARING = ("EQ", "NEQ", "NullSafeEQ", "NullSafeNEQ", "GT", "GTE", "LT", "LTE")
_RANGES = ("Is", "In", "Between", "Like", "ILike", "RegexpLike", "Escape")
_BITS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
_REJECTED = {
    "Subquery": "a subquery",
    "Select": "a subquery",
    "Exists": "a subquery (EXISTS)",
    "Union": "a subquery",
    "Window": "a window function",
    "Filter": "an aggregate's FILTER",
    "Distinct": "DISTINCT",
    "Lambda": "a lambda",
    "Star": "a star (*)",
    "Parameter": "a parameter",
    "Placeholder": "a parameter",
    "Tuple": "a tuple",
    "Any": "ANY",
    "All": "ALL",
    "Collate": "COLLATE",
    "AtTimeZone": "AT TIME ZONE",
    "Array": "an array in brackets, or an index behind array(...)",
    "JSONExtract": "the operator ->",
}


def _convert(node: Any, text: str) -> Steps[Expression]:
    kind = type(node).__name__
    if kind in _BINARY:
        return (yield _binary(node, kind, text))  # type: ignore[no-any-return]  # what it returns
    if kind in _NODES:
        return (yield _NODES[kind](node, text))  # type: ignore[no-any-return]  # what it returns
    what = _REJECTED.get(kind, f"{kind} ({_short(node.sql(dialect='spark'))})")
    raise UnsupportedExpressionError(
        f"The expression {_short(text)!r} holds {what}, which is not supported here. Rewrite it without.",
        part=kind,
        sql=text,
    )


def _binary(node: Any, kind: str, text: str) -> Steps[Expression]:
    left, right = node.this, node.expression
    names = type(left).__name__, type(right).__name__
    ambiguous = (
        (kind in _COMPARING and names[1] in _RANGES)
        or (kind in _BITS and any(n in _BITS and n != kind for n in names))
        or (kind == "DPipe" and any(n in ("Add", "Sub") for n in names))
    )
    if ambiguous:
        raise UnsupportedExpressionError(
            f"In {_short(text)!r} it is not plain how {_short(node.sql(dialect='spark'))} is grouped: put parentheses.",
            sql=text,
        )
    a, b = (yield _convert(left, text)), (yield _convert(right, text))
    if kind == "Add" and isinstance(a, Literal) and isinstance(b, Literal) and _are_spans(a, b):
        # INTERVAL 1 DAY 2 HOURS comes as a sum.
        return Literal(a.value + b.value, a.type if a.type == b.type else INTERVAL_DAY_TIME)
    call = Call(_BINARY[kind], (a, b))
    return Call("not", (call,)) if node.args.get("negate") else call


def _are_spans(*literals: Literal) -> bool:
    return all(e.type in (INTERVAL_DAY, INTERVAL_DAY_TIME) for e in literals)


def _escape(node: Any, text: str) -> Steps[Expression]:
    like = yield _convert(node.this, text)
    negated = isinstance(like, Call) and like.function == "not"
    inner = like.args[0] if negated and isinstance(like, Call) else like
    if not isinstance(inner, Call) or inner.function not in ("like", "ilike"):
        raise UnsupportedExpressionError(f"ESCAPE in {_short(text)!r} does not follow a LIKE.", sql=text)
    call = Call(inner.function, (*inner.args, (yield _convert(node.expression, text))))
    return Call("not", (call,)) if negated else call


def _null_safe_not_equal(node: Any, text: str) -> Steps[Expression]:
    return Call("not", (Call("<=>", ((yield _convert(node.this, text)), (yield _convert(node.expression, text)))),))


def _is(node: Any, text: str) -> Steps[Expression]:
    value, target = (yield _convert(node.this, text)), type(node.expression).__name__
    if target == "Null":
        return Call("isnull", (value,))
    if target == "Boolean":
        return Call("<=>", (value, Literal(bool(node.expression.this), PrimitiveType("boolean"))))
    raise UnsupportedExpressionError(f"IS {target.upper()} in {_short(text)!r} is not supported.", sql=text)


def _not(node: Any, text: str) -> Steps[Expression]:
    inner = yield _convert(node.this, text)
    if type(node.this).__name__ == "Is" and isinstance(inner, Call) and inner.function == "isnull":
        return Call("isnotnull", inner.args)
    return Call("not", (inner,))


def _in(node: Any, text: str) -> Steps[Expression]:
    if node.args.get("query") or node.args.get("unnest") or not node.expressions:
        raise UnsupportedExpressionError(
            f"IN takes a list of values in {_short(text)!r}; found something else.", sql=text
        )
    return Call("in", tuple((yield from each(_convert(e, text) for e in (node.this, *node.expressions)))))


def _between(node: Any, text: str) -> Steps[Expression]:
    if node.args.get("symmetric"):
        raise UnsupportedExpressionError(f"BETWEEN SYMMETRIC in {_short(text)!r} is not supported.", sql=text)
    value = yield _convert(node.this, text)
    return Call(
        "and",
        (
            Call(">=", (value, (yield _convert(node.args["low"], text)))),
            Call("<=", (value, (yield _convert(node.args["high"], text)))),
        ),
    )


def _case(node: Any, text: str) -> Steps[Expression]:
    subject = (yield _convert(node.this, text)) if node.this is not None else None
    args: list[Expression] = []
    for branch in node.args["ifs"]:
        condition = yield _convert(branch.this, text)
        args += [
            condition if subject is None else Call("=", (subject, condition)),
            (yield _convert(branch.args["true"], text)),
        ]
    default = node.args.get("default")
    return Call("case", tuple(args) + (((yield _convert(default, text)),) if default is not None else ()))


def _if(node: Any, text: str) -> Steps[Expression]:
    otherwise = node.args.get("false")
    last = (yield _convert(otherwise, text)) if otherwise is not None else Literal(None)
    return Call("if", ((yield _convert(node.this, text)), (yield _convert(node.args["true"], text)), last))


def _negative(node: Any, text: str) -> Steps[Expression]:
    inner = yield _convert(node.this, text)
    is_number = isinstance(inner, Literal) and isinstance(inner.value, int | float | decimal.Decimal)
    if is_number and type(node.this).__name__ in ("Literal", "Cast"):
        value = negated_number(inner.value)
        return Literal(value) if type(node.this).__name__ == "Literal" else Literal(value, inner.type)
    return Call("negative", (inner,))


def _literal(node: Any, text: str) -> Expression:
    if node.is_string:
        return Literal(node.this, PrimitiveType("string"))
    try:
        if re.search("[eE]", node.this):
            return Literal(float(node.this), PrimitiveType("double"))
        value = decimal.Decimal(node.this) if "." in node.this else int(node.this)
    except (ValueError, decimal.InvalidOperation) as e:
        raise ExpressionError(f"The number {node.this!r} in {_short(text)!r} can't be read.", sql=text) from e
    found = literal_type(value)
    return Literal(decimal.Decimal(value) if name_of(found) == "decimal" else value, found)


def _cast(node: Any, text: str) -> Steps[Expression]:
    inner, target = (yield _convert(node.this, text)), _data_type(node.args["to"], text)
    safe = type(node).__name__ == "TryCast"
    plain = isinstance(inner, Literal) and type(node.this).__name__ == "Literal" and inner.type is not None
    if not safe and plain and node.args.get("default") is None:
        # DATE '...', 5L and CAST('5' AS INT) are all constants.
        assert isinstance(inner, Literal)
        return cast_literal(inner, target)
    return Cast(inner, target, safe)


_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "TEXT": "string",
    "VARCHAR": "string",
    "CHAR": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}


def _data_type(node: Any, text: str) -> DataType:
    kind = getattr(node.this, "name", str(node.this))
    parts = node.expressions
    if kind == "DECIMAL":
        digits = [int(p.name) for p in parts] or [10]
        name = f"decimal({digits[0]},{digits[1] if len(digits) > 1 else 0})"
        PrimitiveType(name).to_arrow()
        return PrimitiveType(name)
    if kind == "ARRAY" and len(parts) == 1:
        return ArrayType(_data_type(parts[0], text))
    if kind == "MAP" and len(parts) == 2:
        return MapType(_data_type(parts[0], text), _data_type(parts[1], text))
    if kind in _TYPES and not parts:
        return PrimitiveType(_TYPES[kind])
    raise UnsupportedExpressionError(
        f"Type {node.sql(dialect='spark')} in {_short(text)!r} is not supported in a cast.", sql=text
    )


def _column(node: Any, text: str) -> Expression:
    parts = node.parts
    if any(type(p).__name__ == "Star" for p in parts):
        raise UnsupportedExpressionError(f"The expression {_short(text)!r} holds a star (*).", sql=text)
    return Column(tuple(p.name for p in parts))


def _dot(node: Any, text: str) -> Steps[Expression]:
    if type(node.expression).__name__ != "Identifier":
        raise UnsupportedExpressionError(f"{node.sql(dialect='spark')} in {_short(text)!r} is not supported.", sql=text)
    if type(node.this).__name__ == "Identifier":
        return Column((node.this.name, node.expression.name))
    holder, name = (yield _convert(node.this, text)), node.expression.name
    if isinstance(holder, Column):
        return Column((*holder.path, name))
    return Call("get_field", (holder, Literal(name, PrimitiveType("string"))))


def _bracket(node: Any, text: str) -> Steps[Expression]:
    if len(node.expressions) != 1 or node.args.get("offset"):
        raise UnsupportedExpressionError(f"{node.sql(dialect='spark')} in {_short(text)!r} is not supported.", sql=text)
    return Call("[]", ((yield _convert(node.this, text)), (yield _convert(node.expressions[0], text))))


def _function(node: Any, text: str) -> Steps[Expression]:
    name, args = str(node.this).lower(), node.expressions
    if name == "position" and len(args) == 1 and type(args[0]).__name__ == "In":
        inside = args[0]
        return Call("locate", ((yield _convert(inside.this, text)), (yield _convert(inside.args["field"], text))))
    if any(type(a).__name__ in ("Star", "Distinct") for a in args):
        args = []
    if name in ("date_add", "dateadd", "datediff", "date_diff") and len(args) == 3:
        raise UnsupportedExpressionError(f"{name} with a unit in {_short(text)!r} is not supported.", sql=text)
    return Call(name, tuple((yield from each(_convert(a, text) for a in args))))


def _trim(node: Any, text: str) -> Steps[Expression]:
    position = (node.args.get("position") or "BOTH").upper()
    name = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    characters = node.args.get("expression")
    if characters is None:
        return Call("trim" if name == "btrim" else name, ((yield _convert(node.this, text)),))
    trimmed, removed = (yield _convert(node.this, text)), (yield _convert(characters, text))
    # of the three, btrim alone has the text first
    return Call(name, (trimmed, removed) if name == "btrim" else (removed, trimmed))


def _extract(node: Any, text: str) -> Steps[Expression]:
    return Call(
        "date_part", (Literal(node.this.name, PrimitiveType("string")), (yield _convert(node.expression, text)))
    )


_INTERVAL_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}


def _interval(node: Any, text: str) -> Expression:
    unit = (node.args["unit"].name if node.args.get("unit") is not None else "").upper().removesuffix("S")
    amount = node.this
    negative = type(amount).__name__ == "Neg"
    number = (amount.this if negative else amount).name
    is_name = type(amount).__name__ == "Column"
    if is_name or not re.fullmatch(r"-?\d+(\.\d{1,6})?", number) or ("." in number and unit != "SECOND"):
        raise UnsupportedExpressionError(
            f"The interval {node.sql(dialect='spark')} in {_short(text)!r} is not supported.", sql=text
        )
    count = decimal.Decimal(number) * (-1 if negative else 1)
    if unit in ("YEAR", "MONTH"):
        return Literal(int(count) * (12 if unit == "YEAR" else 1), INTERVAL_YEAR_MONTH)
    if unit in _INTERVAL_US:
        return Literal(int(count * _INTERVAL_US[unit]), INTERVAL_DAY if unit in ("DAY", "WEEK") else INTERVAL_DAY_TIME)
    raise UnsupportedExpressionError(
        f"The interval {node.sql(dialect='spark')} in {_short(text)!r} is not supported.", sql=text
    )


def _hex(node: Any, text: str) -> Expression:
    digits = str(node.this)
    return Literal(bytes.fromhex("0" * (len(digits) % 2) + digits), PrimitiveType("binary"))


def _concat(node: Any, text: str) -> Expression:
    return Literal("".join(e.this for e in node.expressions), PrimitiveType("string"))


def _bitwise_not(node: Any, text: str) -> Steps[Expression]:
    return Call("~", ((yield _convert(node.this, text)),))


#: Returns an expression, or the steps to it.
_NODES: dict[str, Callable[[Any, str], Any]] = {
    "Paren": lambda n, t: _convert(n.this, t), "Not": _not, "Is": _is, "In": _in, "Between": _between, "Case": _case,
    "If": _if, "Escape": _escape, "NullSafeNEQ": _null_safe_not_equal, "Neg": _negative, "Literal": _literal,
    "Cast": _cast, "TryCast": _cast, "Column": _column, "Dot": _dot, "Bracket": _bracket, "Anonymous": _function,
    "Trim": _trim,
    "Extract": _extract, "Interval": _interval, "HexString": _hex, "Concat": _concat,
    "Boolean": lambda n, _: Literal(bool(n.this), PrimitiveType("boolean")), "Null": lambda n, _: Literal(None),
    "RawString": lambda n, _: Literal(str(n.this), PrimitiveType("string")),
    "BitwiseNot": _bitwise_not,
}  # fmt: skip
