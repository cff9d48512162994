"""Spark SQL text as tokens: which Delta tables it names, and statements that are lists of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from delta_core.errors import InvalidArgumentError
from delta_core.schema.fields import Path, format_path

__all__ = ["TABLE_FUNCTION", "NamedTable", "TablePlace", "Reader", "Token", "find_tables", "tokenize"]

TABLE_FUNCTION = "delta_scan"
#: Catalogs in front of a path in backticks.
_OWN, _SHARED = "delta_core", "delta"


class Token(Struct, frozen=True):
    """A part of a text.

    Parameters
    ----------
    kind : str
        ``text`` for a string, ``name`` for a name in backticks, else empty.
    value : str
        Without quotes and escapes.
    start, stop : int
        Its place in the text, quotes included.
    """

    kind: str
    value: str
    start: int
    stop: int

    @property
    def word(self) -> str:
        """The token in capitals; empty if it is in quotes or backticks."""
        return "" if self.kind else self.value.upper()


class TablePlace(Struct, frozen=True):
    """A table, or an older version of it.

    Parameters
    ----------
    uri : str
    version : int, optional
    timestamp : str, optional
    """

    uri: str
    version: int | None = None
    timestamp: str | None = None


class NamedTable(Struct, frozen=True):
    """A table that a text names.

    Parameters
    ----------
    start, stop : int
        Its place among the tokens.
    place : TablePlace
        The table.
    """

    start: int
    stop: int
    place: TablePlace


@cache
def _dialect() -> Any:
    from sqlglot.dialects.spark import Spark

    return Spark()


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text, without comments.

    Raises
    ------
    InvalidArgumentError
        A quote or a comment does not end.
    """
    from sqlglot.errors import TokenError

    try:
        found = _dialect().tokenize(f"({text}")[1:]  # a statement such as OPTIMIZE would be one token at the beginning
    except TokenError as e:
        raise InvalidArgumentError(f"The statement {text[:200]!r} can't be read: {e}") from e
    tokens: list[Token] = []
    for token in found:
        if token.token_type.name == "HINT":
            continue
        kind = {"IDENTIFIER": "name", "STRING": "text", "RAW_STRING": "text"}.get(token.token_type.name, "")
        made = Token(kind, token.text, token.start - 1, token.end)
        last = tokens[-1] if tokens else None
        if last is not None and last.kind == kind == "text" and last.stop == made.start:
            tokens[-1] = Token("text", f"{last.value}'{made.value}", last.start, made.stop)  # '' within a text
        elif last is None or made.start >= last.stop:  # a suffix such as that of 2L is reported apart
            tokens += [made] if kind else _words(text, made)
    while tokens and tokens[-1].value == ";" and not tokens[-1].kind:
        tokens.pop()
    return tokens


def _words(text: str, token: Token) -> Iterator[Token]:
    """Yield the words of a token, which may be several, such as CLUSTER BY."""
    for word in re.finditer(r"\S+", text[token.start : token.stop]):
        yield Token("", word[0], token.start + word.start(), token.start + word.end())


def find_tables(tokens: Sequence[Token]) -> list[NamedTable]:
    """Return the tables that a text names by their place.

    These are ``delta_core.`uri```, ``delta.`path``` if the path contains a slash, each with ``VERSION AS OF`` or
    ``TIMESTAMP AS OF`` if it follows, and ``delta_scan('uri'[, version])``.
    """
    found: list[NamedTable] = []
    place = 0
    while place < len(tokens):
        table = _path(tokens, place) or _call(tokens, place)
        if table is None:
            place += 1
        else:
            found.append(table)
            place = table.stop
    return found


def _path(tokens: Sequence[Token], place: int) -> NamedTable | None:
    if not _follow(tokens, place + 1, ".") or (place and tokens[place - 1].word == "."):
        return None
    first, name = tokens[place], tokens[min(place + 2, len(tokens) - 1)]
    catalog = first.word.lower()
    is_table = catalog == _OWN or (catalog == _SHARED and "/" in name.value)
    if not is_table or name.kind != "name":
        return None
    stop = place + 3
    travel = stop + 1 if _follow(tokens, stop, "FOR") else stop
    value = tokens[travel + 3] if travel + 3 < len(tokens) else None
    if value is not None and _follow(tokens, travel + 1, "AS", "OF"):
        kind = tokens[travel].word.removeprefix("SYSTEM_")
        if kind == "VERSION" and not value.kind and value.value.isdecimal():
            return NamedTable(place, travel + 4, TablePlace(name.value, version=int(value.value)))
        if kind in ("TIMESTAMP", "TIME") and value.kind == "text":
            return NamedTable(place, travel + 4, TablePlace(name.value, timestamp=value.value))
    return NamedTable(place, stop, TablePlace(name.value))


def _call(tokens: Sequence[Token], place: int) -> NamedTable | None:
    if tokens[place].word.lower() != TABLE_FUNCTION or (place and tokens[place - 1].word == "."):
        return None
    uri = tokens[place + 2] if _follow(tokens, place + 1, "(") and place + 3 < len(tokens) else None
    if uri is None or uri.kind != "text":
        return None
    if _follow(tokens, place + 3, ")"):
        return NamedTable(place, place + 4, TablePlace(uri.value))
    number = tokens[place + 4] if _follow(tokens, place + 3, ",") and place + 5 < len(tokens) else None
    if number is None or not number.value.isdecimal() or not _follow(tokens, place + 5, ")"):
        return None
    return NamedTable(place, place + 6, TablePlace(uri.value, version=int(number.value)))


def _follow(tokens: Sequence[Token], place: int, *words: str) -> bool:
    return tuple(t.word for t in tokens[place : place + len(words)]) == words


class Reader:
    """Reads a statement from its first token to its last.

    Parameters
    ----------
    text : str
        The statement.
    tokens : sequence of Token
        Of the text.
    tables : sequence of NamedTable
        Those among the tokens.
    """

    def __init__(self, text: str, tokens: Sequence[Token], tables: Sequence[NamedTable]) -> None:
        self._text, self._tokens, self._place = text, tokens, 0
        self._tables = {t.start: t for t in tables}

    @property
    def position(self) -> int:
        """The number of tokens that it passed over; a caller may go back."""
        return self._place

    @position.setter
    def position(self, place: int) -> None:
        self._place = place

    @property
    def statement(self) -> str:
        """The whole text."""
        return self._text

    def has(self, word: str) -> bool:
        """Return whether a word is among those that are left."""
        return any(t.word == word for t in self._tokens[self._place :])

    def comes(self, *words: str) -> bool:
        """Return whether words come next."""
        return _follow(self._tokens, self._place, *words)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self._place >= len(self._tokens)

    def take(self, *words: str) -> bool:
        """Pass over words if they come next; return whether they do."""
        found = _follow(self._tokens, self._place, *words)
        self._place += len(words) if found else 0
        return found

    def expect(self, *words: str) -> None:
        """Pass over words.

        Raises
        ------
        InvalidArgumentError
            Something else comes next.
        """
        if not self.take(*words):
            raise self.unexpected(" ".join(words))

    def table(self) -> TablePlace | str:
        """Pass over a table: return its place, or its name in the session's catalog.

        Raises
        ------
        InvalidArgumentError
            No table comes next.
        """
        found = self._tables.get(self._place)
        if found is not None:
            self._place = found.stop
            return found.place
        if not self.is_done and self._tokens[self._place].kind == "text":
            return TablePlace(self.text())
        start = self._place
        self.name()
        return self._text[self._tokens[start].start : self._tokens[self._place - 1].stop]

    def versioned_table(self) -> tuple[TablePlace | str, int | str | None]:
        """Pass over a table and ``VERSION AS OF`` or ``TIMESTAMP AS OF``: return it, and the version or time.

        Raises
        ------
        InvalidArgumentError
            No table comes next, or no version after these words.
        """
        found = self.table()
        if isinstance(found, TablePlace):
            return TablePlace(found.uri), found.timestamp if found.version is None else found.version
        self.take("FOR")
        if any(self.take(word, "AS", "OF") for word in ("VERSION", "SYSTEM_VERSION")):
            return found, self.version()
        if any(self.take(word, "AS", "OF") for word in ("TIMESTAMP", "SYSTEM_TIME")):
            return found, self.text()
        return found, None

    def version(self) -> int:
        """Pass over the number of a version.

        Raises
        ------
        InvalidArgumentError
            Something else comes next.
        """
        value = "" if self.is_done else self._tokens[self._place].value
        if not value.isdecimal():
            raise self.unexpected("a version")
        self._place += 1
        return int(value)

    def name(self) -> Path:
        """Pass over a name and return its parts.

        Raises
        ------
        InvalidArgumentError
            No name comes next.
        """
        parts = []
        while True:
            token = None if self.is_done else self._tokens[self._place]
            if token is None or token.kind == "text" or not (token.kind or token.value[:1].isidentifier()):
                raise self.unexpected("a name")
            parts.append(token.value)
            self._place += 1
            if not self.take("."):
                return tuple(parts)

    def names(self) -> list[str]:
        """Pass over names between commas, in parentheses or not, and return them as names of columns."""
        is_open = self.take("(")
        found = [format_path(self.name())]
        while self.take(","):
            found.append(format_path(self.name()))
        if is_open:
            self.expect(")")
        return found

    def number(self) -> float:
        """Pass over a number.

        Raises
        ------
        InvalidArgumentError
            No number comes next.
        """
        try:
            value = float("" if self.is_done else self._tokens[self._place].value)
        except ValueError:
            raise self.unexpected("a number") from None
        self._place += 1
        return value

    def text(self) -> str:
        """Pass over a text in quotes.

        Raises
        ------
        InvalidArgumentError
            No such text comes next.
        """
        if self.is_done or self._tokens[self._place].kind != "text":
            raise self.unexpected("a text in quotes")
        self._place += 1
        return self._tokens[self._place - 1].value

    def label(self) -> str:
        """Pass over a name without dots, or a text in quotes."""
        is_text = not self.is_done and self._tokens[self._place].kind == "text"
        return self.text() if is_text else ".".join(self.name())

    def until(self, *words: str) -> str:
        """Pass over everything before words outside of parentheses, or everything, and return it as it was written.

        Raises
        ------
        InvalidArgumentError
            That is nothing.
        """
        start, depth = self._place, 0
        while not self.is_done and (depth or not words or not self.comes(*words)):
            depth += {"(": 1, ")": -1}.get(self._tokens[self._place].word, 0)
            self._place += 1
        if self._place == start:
            raise self.unexpected("an expression")
        return self._text[self._tokens[start].start : self._tokens[self._place - 1].stop]

    def inside(self) -> str:
        """Pass over parentheses and return what is between them, as it was written.

        Raises
        ------
        InvalidArgumentError
            No parentheses come next, or nothing is between them.
        """
        self.expect("(")
        found = self.until(")")
        self.expect(")")
        return found

    def type_text(self) -> str:
        """Pass over a type, such as ``decimal(5, 2)`` or ``array<int>``, and return it as it was written.

        Raises
        ------
        InvalidArgumentError
            No type comes next.
        """
        start = self._place
        self.name()
        pair = next((p for p in ("()", "<>") if self.comes(p[0])), "")
        depth = 0
        while pair and (depth or self._tokens[self._place - 1].value[-1:] != pair[1]):
            if self.is_done:
                raise self.unexpected(pair[1])
            text = self._tokens[self._place].value
            depth += text.count(pair[0]) - text.count(pair[1])
            self._place += 1
        return self._text[self._tokens[start].start : self._tokens[self._place - 1].stop]

    def properties(self) -> dict[str, str]:
        """Pass over ``(key = value, ...)``; keys are names or texts, values texts or words.

        Raises
        ------
        InvalidArgumentError
            No such list comes next.
        """
        found: dict[str, str] = {}
        self.expect("(")
        while True:
            key = self.label()
            self.take("=")
            if self.is_done or self._tokens[self._place].value in (",", ")"):
                raise self.unexpected(f"the value of {key}")
            found[key] = self._tokens[self._place].value
            self._place += 1
            if not self.take(","):
                self.expect(")")
                return found

    def property_names(self) -> list[str]:
        """Pass over names or texts in parentheses.

        Raises
        ------
        InvalidArgumentError
            No such list comes next.
        """
        self.expect("(")
        found = [self.label()]
        while self.take(","):
            found.append(self.label())
        self.expect(")")
        return found

    def end(self) -> None:
        """Check that nothing is left.

        Raises
        ------
        InvalidArgumentError
            Something is left.
        """
        if not self.is_done:
            raise self.unexpected("the end of the statement")

    def unexpected(self, expected: str) -> InvalidArgumentError:
        """Return the error of a statement in which something else comes next than expected."""
        rest = "its end" if self.is_done else repr(self._text[self._tokens[self._place].start :][:80])
        return InvalidArgumentError(f"Found {rest} in the statement {self._text[:200]!r}, expected {expected}.")
