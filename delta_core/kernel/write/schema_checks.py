"""The requirements of the schema itself on rows: no nulls if there may be none, no text that is longer than declared.

Protocol: Column Invariants (``nullable: false`` at any depth). ``char(n)`` and ``varchar(n)`` are strings whose field
metadata reports it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, Union

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import ConstraintViolationError, shortened
from delta_core.kernel.write.convert import own_values
from delta_core.kernels import compute as pc
from delta_core.schema.fields import Path, format_path
from delta_core.schema.types import ArrayType, DataType, Field, MapType, StructType

__all__ = ["CHAR_VARCHAR", "CharLengths", "SchemaCheck", "char_lengths", "declared", "schema_checks"]

#: The field metadata in which Spark keeps the declared type.
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
_TEXT = re.compile(r"(char|varchar)\s*\(\s*(\d+)\s*\)\Z", re.IGNORECASE)
#: The length of a ``char(n)``; of a struct, list or map those of its parts by their names; None: there is no such text.
CharLengths: TypeAlias = Union[int, "dict[str, CharLengths]", None]
#: From the failing row's number to the row, for the message.
Sample = Callable[[int], Any]


class SchemaCheck(Struct, frozen=True):
    """The requirements on one column, or a part of it; ``parts`` are named as in a path."""

    path: Path
    required: bool
    longest: int | None
    parts: tuple[tuple[str, SchemaCheck], ...]

    def run(self, array: pa.Array, sample: Sample) -> None:
        """Raise ConstraintViolationError for the first thing that is broken."""
        if self.required and array.null_count:
            name = f"NOT NULL {format_path(self.path)}"
            self._fail(array.null_count, name, "is null", array.is_null(), sample)
        if self.longest is not None:
            long = pc.fill_null(pc.greater(pc.utf8_length(array), self.longest), False)
            if long.true_count:
                name = f"{format_path(self.path)} has at most {self.longest} characters"
                self._fail(long.true_count, name, "is longer", long, sample)
        if self.parts and len(array) > array.null_count:
            self._run_parts(array, sample)

    def _run_parts(self, array: pa.Array, sample: Sample) -> None:
        valid = array.drop_null() if array.null_count else array
        if pa.types.is_struct(array.type):
            for name, part in self.parts:
                part.run(valid.field(name), sample)
            return
        valid = own_values(valid)
        for name, part in self.parts:
            values = valid.values if name == "element" else valid.keys if name == "key" else valid.items
            part.run(values, sample)

    def _fail(self, count: int, name: str, what: str, mask: pa.Array, sample: Sample) -> None:
        column = format_path(self.path)
        row = sample(mask.index(pa.scalar(True)).as_py()) if len(self.path) == 1 else None
        raise ConstraintViolationError(
            f"{count} value{'s' * (count != 1)} of column {column} break{'s' * (count == 1)} the check {name!r}: "
            f"the column {what} there{'' if row is None else f', first in {shortened(row)}'}. Correct the rows; "
            "nothing was written.",
            name=name,
            expression=name,
            column=column,
            count=count,
            row=row,
        )


def schema_checks(schema: StructType) -> dict[str, SchemaCheck]:
    """Return the checks of each column that has any, by its name."""
    made = {f.name: _check(f, (f.name,), declared(f)) for f in schema}
    return {name: check for name, check in made.items() if check is not None}


def declared(f: Field) -> str:
    """Return the type that a field was declared with, if it is more than its type specifies."""
    text = f.metadata.get(CHAR_VARCHAR, "")
    return text if isinstance(text, str) else ""


def declared_text(text: str) -> bool:
    """Whether a declared type is one of texts with a length, ``char(n)`` or ``varchar(n)``."""
    return _TEXT.match(text.strip()) is not None


def char_lengths(f: Field) -> CharLengths:
    """Return the lengths of a column's texts of the declared type ``char(n)``."""
    return _char_lengths(f.type, declared(f))


def _char_lengths(t: DataType, text: str) -> CharLengths:
    match = _TEXT.match(text.strip())
    if match is not None:
        return int(match[2]) if match[1].lower() == "char" else None
    parts = {name: _char_lengths(part.type, declared(part) or inner) for name, part, inner in named_parts(t, text)}
    return {name: found for name, found in parts.items() if found is not None} or None


def _check(f: Field, path: Path, text: str) -> SchemaCheck | None:
    parts = tuple((n, c) for n, c in _parts(f.type, path, text) if c is not None)
    match = _TEXT.match(text.strip())
    longest = int(match[2]) if match else None
    if f.nullable and longest is None and not parts:
        return None
    return SchemaCheck(path, not f.nullable, longest, parts)


def _parts(t: DataType, path: Path, text: str) -> list[tuple[str, SchemaCheck | None]]:
    parts = named_parts(t, text)
    return [(name, _check(part, (*path, name), declared(part) or inner)) for name, part, inner in parts]


def named_parts(t: DataType, text: str) -> list[tuple[str, Field, str]]:
    """Return the parts of a type by their names in a path, each with the text of its declared type."""
    inner = _arguments(text)
    if isinstance(t, StructType):
        texts = {name.strip("`").lower(): rest for name, _, rest in (part.partition(":") for part in inner)}
        return [(f.name, f, texts.get(f.name.lower(), "")) for f in t.members]
    if isinstance(t, ArrayType):
        return [("element", Field("element", t.element_type, t.contains_null), inner[0] if inner else "")]
    if isinstance(t, MapType):
        # keys are never null in Arrow
        key, value = Field("key", t.key_type), Field("value", t.value_type, t.value_contains_null)
        of_key, of_value = inner if len(inner) == 2 else ["", ""]
        return [("key", key, of_key), ("value", value, of_value)]
    return []


def _arguments(text: str) -> list[str]:
    """Split what is between the outer angle brackets at its own commas: ``map<string,varchar(3)>``."""
    start, end = text.find("<"), text.rfind(">")
    if start < 0 or end < start:
        return []
    found, depth, last = [], 0, start + 1
    for i in range(start + 1, end):
        if text[i] in "<(":
            depth += 1
        elif text[i] in ">)":
            depth -= 1
        elif text[i] == "," and depth == 0:
            found.append(text[last:i].strip())
            last = i + 1
    return [*found, text[last:end].strip()]
