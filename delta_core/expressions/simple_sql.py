"""Simple predicates, parsed without sqlglot, which takes longer to import than a small table to read.

Columns, constants, comparisons, arithmetic, AND, OR, NOT, IN, BETWEEN, LIKE and IS. The tree is the one that `sql`
builds through sqlglot; every other text, and each one whose grouping is not plain, is left to it.
"""

from __future__ import annotations

import re
from decimal import Decimal

from delta_core.expressions.ast import Call, Column, Expression, Literal
from delta_core.expressions.coercion import name_of
from delta_core.expressions.literals import literal_type, negated_number
from delta_core.runtime.patterns import lazy_pattern
from delta_core.schema.types import PrimitiveType

__all__ = ["RESERVED", "PLACEHOLDER", "parse_simple"]

#: Words that sqlglot does not take for a column's name.
RESERVED = frozenset([
    "alter", "and", "any", "as", "between", "call", "case", "connect_by_root", "create", "cross", "describe",
    "distinct", "drop", "else", "escape", "except", "execute", "explain", "exists", "false", "fetch", "for", "from",
    "glob", "grant", "having", "if", "ilike", "in", "inner", "insert", "intersect", "interval", "into", "is", "join",
    "lateral", "like", "minus", "not", "notnull", "null", "on", "optimize", "or", "outer", "partitioned_by",
    "prepare", "qualify", "regexp", "rename", "returning", "revoke", "rlike", "rollback", "select", "serdeproperties",
    "show", "tablesample", "then", "true", "uncache", "union", "using", "vacuum", "values", "when", "where", "with",
    "xor",
])  # fmt: skip
#: The beginning of the names of columns that represent long lists.
PLACEHOLDER = "\0"
_MOST_CHARACTERS = 4096
_MOST_NESTED = 32
_TOKENS = lazy_pattern(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+(?![+-]))?)(?![\w.`'\"])"
    r"|(?P<text>'[^'\\]*')(?!['\"])"
    r"|(?P<name>(?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`))*)(?![\w.`'\"(\[:])"
    r"|(?P<sign><=>|<=|>=|<>|!=|==|[=<>+*/%(),-])(?![=<>|&!~^:*-]))",
    re.ASCII,
)
_COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_RANGES = ("is", "in", "between", "like")
_BOOLEAN, _STRING = PrimitiveType("boolean"), PrimitiveType("string")
Token = tuple[str, str]


def parse_simple(text: str) -> Expression | None:
    """Return the tree of a simple expression; None for a text that is left to sqlglot."""
    if len(text) > _MOST_CHARACTERS or not text.isascii() or "--" in text or "/*" in text:
        return None
    tokens: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKENS.match(text, at)
        if found is None or found.lastgroup is None:
            return None
        kind, word = found.lastgroup, found[found.lastgroup]
        tokens.append(
            (word.lower(), "")
            if kind == "name" and word.lower() in RESERVED
            else (kind if kind != "sign" else word, word)
        )
        at = found.end()
    if not tokens:
        return None
    try:
        return _Parser(tokens).parse()
    except _NotSimpleError:
        return None


class _NotSimpleError(Exception):
    """The text is left to sqlglot."""


class _Parser:
    """Parses by precedence: OR, AND, NOT, one comparison or range, sums, products, a sign."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = [*tokens, ("", "")]
        self._at = 0
        self._nested = 0

    def parse(self) -> Expression:
        found = self._or()
        self._expect("")
        return found

    @property
    def _next(self) -> str:
        return self._tokens[self._at][0]

    def _take(self, kind: str) -> bool:
        if self._next != kind:
            return False
        self._at += 1
        return True

    def _expect(self, kind: str) -> str:
        found = self._tokens[self._at][1]
        if not self._take(kind):
            raise _NotSimpleError
        return found

    def _deeper(self) -> None:
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise _NotSimpleError

    def _or(self) -> Expression:
        found = self._and()
        while self._take("or"):
            found = Call("or", (found, self._and()))
        return found

    def _and(self) -> Expression:
        found = self._not()
        while self._take("and"):
            found = Call("and", (found, self._not()))
        return found

    def _not(self) -> Expression:
        if not self._take("not"):
            return self._comparison()
        if self._next == "not":
            raise _NotSimpleError
        opened = self._next == "("
        inner = self._not()
        if not opened and isinstance(inner, Call) and inner.function == "isnull":
            return Call("isnotnull", inner.args)
        if opened and self._tokens[self._at - 1][0] != ")":
            raise _NotSimpleError  # NOT (a) IS NULL
        return Call("not", (inner,))

    def _comparison(self) -> Expression:
        left = self._sum()
        sign = _COMPARISONS.get(self._next)
        if sign is not None:
            self._at += 1
            found: Expression = Call(sign, (left, self._sum()))
        elif self._next in _RANGES or self._next == "not":
            found = self._range(left)
        else:
            return left
        if self._next in _COMPARISONS or self._next in _RANGES or self._next == "not":
            raise _NotSimpleError
        return found

    def _range(self, value: Expression) -> Expression:
        if self._take("is"):
            negated = self._take("not")
            if self._take("null"):
                return Call("isnotnull" if negated else "isnull", (value,))
            if self._next not in ("true", "false"):
                raise _NotSimpleError
            found = Call("<=>", (value, Literal(self._take("true"), _BOOLEAN)))
            if not found.args[1].value:  # type: ignore[union-attr]  # the literal of the line above
                self._expect("false")
            return Call("not", (found,)) if negated else found
        negated = self._take("not")
        if self._take("in"):
            found = Call("in", (value, *self._constants()))
        elif self._take("like"):
            found = Call("like", (value, Literal(self._expect("text")[1:-1], _STRING)))
        else:
            self._expect("between")
            low = self._sum()
            self._expect("and")
            found = Call("and", (Call(">=", (value, low)), Call("<=", (value, self._sum()))))
        return Call("not", (found,)) if negated else found

    def _constants(self) -> list[Expression]:
        self._expect("(")
        found = [self._constant()]
        while self._take(","):
            found.append(self._constant())
        self._expect(")")
        return found

    def _constant(self) -> Expression:
        found = self._signed()
        if not isinstance(found, Literal) and not (isinstance(found, Column) and found.path[0].startswith(PLACEHOLDER)):
            raise _NotSimpleError
        return found

    def _sum(self) -> Expression:
        found = self._product()
        while (sign := self._next) in ("+", "-"):
            self._at += 1
            found = Call(sign, (found, self._product()))
        return found

    def _product(self) -> Expression:
        found = self._signed()
        while (sign := self._next) in ("*", "/", "%"):
            self._at += 1
            found = Call(sign, (found, self._signed()))
        return found

    def _signed(self) -> Expression:
        if not self._take("-"):
            return self._leaf()
        if self._next == "number":
            number = self._leaf()
            assert isinstance(number, Literal)
            return Literal(negated_number(number.value))
        if self._next != "name":
            raise _NotSimpleError
        return Call("negative", (self._leaf(),))

    def _leaf(self) -> Expression:
        kind, word = self._tokens[self._at]
        self._at += 1
        if kind == "name":
            parts = re.findall(r"`[^`]+`|\w+", word, re.ASCII)
            return Column(tuple(p.strip("`") for p in parts))
        if kind == "number":
            return _number(word)
        if kind == "text":
            return Literal(word[1:-1], _STRING)
        if kind in ("true", "false"):
            return Literal(kind == "true", _BOOLEAN)
        if kind == "null":
            return Literal(None)
        if kind != "(":
            raise _NotSimpleError
        self._deeper()
        found = self._or()
        self._expect(")")
        self._nested -= 1
        return found


def _number(word: str) -> Literal:
    if "e" in word or "E" in word:
        return Literal(float(word), PrimitiveType("double"))
    value = Decimal(word) if "." in word else int(word)
    found = literal_type(value)
    return Literal(Decimal(value) if name_of(found) == "decimal" else value, found)
