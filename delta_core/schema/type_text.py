"""Types as people write them: ``bigint``, ``decimal(10,2)``, ``struct<a: int, b: array<string>>``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from delta_core.errors import InvalidArgumentError
from delta_core.schema.types import (
    KNOWN_TYPES,
    MOST_PARQUET_LEVELS,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    parse_decimal,
)

__all__ = ["parse_type_text"]

_PART = re.compile(r"\s*(decimal\s*\([^()]*\)|`(?:[^`]|``)+`|\w+|[<>,:])", re.IGNORECASE)
_WHOLE_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*\)")
#: The protocol's name of each type that SQL calls otherwise.
_NAMES = {t.ddl.lower(): name for name, t in KNOWN_TYPES.items() if name == t.name}
_NAMES |= {"int": "integer", "bool": "boolean", "dec": "decimal(10,0)", "decimal": "decimal(10,0)"}
_NAMES |= {"numeric": "decimal(10,0)", "timestamp_ltz": "timestamp", "real": "float"}


def parse_type_text(text: str) -> DataType:
    """Return the type that a text names, in the words of SQL or of the protocol; lists, maps and structs may be nested.

    Parameters
    ----------
    text : str
        The type, such as ``decimal(10,2)``.

    Raises
    ------
    InvalidArgumentError
        For text that names no type.
    """
    parser = _Parser(text)
    found = parser.type()
    if parser.part:
        raise parser._not_a_type()
    return found


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._depth = 0
        self._parts = self._split()
        self.part = next(self._parts, "")

    def _split(self) -> Iterator[str]:
        at, text = 0, self.text.rstrip()
        while at < len(text):
            match = _PART.match(text, at)
            if match is None:
                raise self._not_a_type()
            yield match[1]
            at = match.end()

    def _not_a_type(self) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"Found the type {self.text!r}; expected one such as bigint, decimal(10,2), array<string>, map<string, "
            "int> or struct<a: int, b: date>.",
            type=self.text,
        )

    def _next(self) -> str:
        part = self.part
        if not part:
            raise self._not_a_type()
        self.part = next(self._parts, "")
        return part

    def _expect(self, part: str) -> None:
        if self._next() != part:
            raise self._not_a_type()

    def type(self) -> DataType:
        name = self._next().lower()
        if self.part == "<":
            return self._nested(name)
        whole = _WHOLE_DECIMAL.fullmatch(name)
        digits = (int(whole[1]), 0) if whole else parse_decimal("".join(_NAMES.get(name, name).split()))
        if digits is not None:
            found = PrimitiveType(f"decimal({digits[0]},{digits[1]})")
            found.to_arrow()
            return found
        known = _NAMES.get(name, name)
        if known not in KNOWN_TYPES:
            raise self._not_a_type()
        return PrimitiveType(known)

    def _nested(self, name: str) -> DataType:
        self._expect("<")
        self._depth += 1
        if self._depth > MOST_PARQUET_LEVELS:
            raise self._not_a_type()
        made: DataType
        if name == "array":
            made = ArrayType(self.type())
        elif name == "map":
            key = self.type()
            self._expect(",")
            made = MapType(key, self.type())
        elif name == "struct":
            fields = [self._field()]
            while self.part == ",":
                self._next()
                fields.append(self._field())
            made = StructType(fields)
        else:
            raise self._not_a_type()
        self._expect(">")
        self._depth -= 1
        return made

    def _field(self) -> Field:
        name = self._next()
        if name in "<>,:":
            raise self._not_a_type()
        if self.part == ":":
            self._next()
        return Field(name[1:-1].replace("``", "`") if name.startswith("`") else name, self.type())
