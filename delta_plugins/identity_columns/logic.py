"""Start, step and mark of identity columns: whole numbers throughout, never floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from delta_core.api import (
    Call,
    Expression,
    Field,
    FillColumn,
    Literal,
    Metadata,
    PrimitiveType,
    Schema,
    SchemaError,
    StructType,
    TableState,
    TaskCount,
    TaskIndex,
    TaskRow,
    format_path,
    walk,
)

__all__ = [
    "Identity",
    "check",
    "fill",
    "identities",
    "is_needed",
    "kept_marks",
    "marks",
    "with_marks",
    "with_typed_values",
]

NAME = "identityColumns"
PREFIX = "delta.identity."
START, STEP, MARK, EXPLICIT = (PREFIX + n for n in ("start", "step", "highWaterMark", "allowExplicitInsert"))
_NUMBERS = (START, STEP, MARK)
_LONG = PrimitiveType("long")
_LONGS = range(-(2**63), 2**63)


class Identity(Struct, frozen=True):
    """An identity column.

    Parameters
    ----------
    start, step : int
        Its values are ``start + k * step`` with k = 0, 1, ...
    mark : int or None
        The last value that was generated, in the direction of the step; None before the first.
    explicit : bool
        Whether rows may contain values of their own.
    """

    column: str
    start: int
    step: int
    mark: int | None = None
    explicit: bool = False

    @property
    def next(self) -> int:
        """The value after the mark. It may lie outside of LONG: then none is left."""
        steps = 0 if self.mark is None else max(0, (self.mark - self.start) // self.step + 1)
        return self.start + steps * self.step

    def rounded(self, value: int) -> int | None:
        """Return the first of the column's values that is not before a value, None for one before the start."""
        steps = -((self.start - value) // self.step)
        return self.start + steps * self.step if (value - self.start) * self.step >= 0 else None

    def further(self, *marks: int | None) -> int | None:
        """Return the one of several marks that is furthest in the direction of the step."""
        found = [m for m in marks if m is not None]
        return None if not found else max(found) if self.step > 0 else min(found)


def is_needed(schema: StructType) -> bool:
    """Whether a column is an identity column."""
    return any(_is_identity(f) for _, f in walk(schema))


def _is_identity(f: Field) -> bool:
    return any(key.startswith(PREFIX) for key in f.metadata)


def identities(schema: StructType) -> list[Identity]:
    """Return a table's identity columns.

    Raises
    ------
    SchemaError
        For metadata that can't be read, and for parts of columns.
    """
    for path, f in walk(schema):
        if len(path) > 1 and _is_identity(f):
            column = format_path(path)
            raise SchemaError(
                f"Column {column} is part of another column: it can't be an identity column.", column=column
            )
    return [_read(f) for f in schema if _is_identity(f)]


def _read(f: Field) -> Identity:
    values = {key: f.metadata.get(key) for key in _NUMBERS}
    for key, value in values.items():
        whole = isinstance(value, int) and not isinstance(value, bool) and value in _LONGS
        if not whole and not (value is None and key == MARK):
            raise SchemaError(
                f"Column {f.name} has {key}={value!r}; expected a whole number of 64 bits.", column=f.name
            )
    explicit = f.metadata.get(EXPLICIT, False)
    if values[STEP] == 0 or not isinstance(explicit, bool):
        raise SchemaError(
            f"Column {f.name} has {STEP}={values[STEP]} and {EXPLICIT}={explicit!r}; expected a step other than 0, and "
            "true or false.",
            column=f.name,
        )
    return Identity(f.name, values[START], values[STEP], values[MARK], explicit)  # type: ignore[arg-type]  # checked above


# --- values --------------------------------------------------------------------------------


def fill(identity: Identity) -> FillColumn:
    """Return the rule that numbers rows: a row's place in the write, times the step, after the mark.

    Tasks take turns, so that gaps are no larger than the tasks' shares of the rows differ.
    Arithmetic that leaves LONG raises as it does in Spark, so that numbers never wrap.
    """
    place: Expression = Call("+", (Call("*", (TaskRow(), TaskCount())), TaskIndex()))
    if identity.step != 1:
        place = Call("*", (place, Literal(identity.step, _LONG)))
    first: Expression = Literal(identity.next, _LONG)
    if identity.next not in _LONGS:
        first = Call("+", (Literal(identity.mark, _LONG), Literal(identity.step, _LONG)))
    return FillColumn(
        NAME, (identity.column,), Call("+", (first, place)), report_bounds=True, exclusive=not identity.explicit
    )


def with_marks(metadata: Metadata, bounds: Mapping[str, tuple[int, int]]) -> Metadata:
    """Return metadata with marks moved over values.

    Parameters
    ----------
    metadata : Metadata
        The table's metadata.
    bounds : Mapping
        By column: the least and the greatest value that was generated.
    """
    if not bounds:
        return metadata

    def change(f: Field) -> Mapping[str, Any]:
        if f.name not in bounds or not _is_identity(f):
            return f.metadata
        identity = _read(f)
        return {**f.metadata, MARK: identity.further(identity.mark, *bounds[f.name])}

    return _changed(metadata, change)


def marks(schema: StructType) -> dict[str, tuple[int, int]]:
    """Return each column's mark as bounds, for `with_marks`: an older schema that returns resets none."""
    return {i.column: (i.mark, i.mark) for i in identities(schema) if i.mark is not None}


def kept_marks(previous: TableState | None, table: TableState) -> dict[str, tuple[int, int]]:
    """Return the marks that columns have in the table that a commit builds on, as bounds by their names after it.

    A column that was renamed is the one with the same name in files: restoring a version of before resets no mark.
    """
    if previous is None or previous.metadata.schema_string == table.metadata.schema_string:
        return {}
    new = {physical.name: f.name for f, physical in zip(table.schema, table.column_map.physical, strict=True)}
    old = {f.name: physical.name for f, physical in zip(previous.schema, previous.column_map.physical, strict=True)}
    found = marks(previous.schema)
    return {new[old[column]]: mark for column, mark in found.items() if old[column] in new}


def with_typed_values(metadata: Metadata) -> Metadata:
    """Return metadata whose numbers are numbers: schemas that came by way of Arrow hold text.

    If nothing is specified for values that rows contain, they are rejected.
    """

    def change(f: Field) -> Mapping[str, Any]:
        stated = {k: _typed(k, v) if k.startswith(PREFIX) else v for k, v in f.metadata.items()}
        return {**stated, EXPLICIT: stated.get(EXPLICIT, False)} if _is_identity(f) else f.metadata

    return _changed(metadata, change)


def _typed(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if key == EXPLICIT:
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    try:
        return int(value) if key in _NUMBERS else value
    except ValueError:
        return value


def _changed(metadata: Metadata, change: Callable[[Field], Mapping[str, Any]]) -> Metadata:
    schema = metadata.schema
    fields = [Field(f.name, f.type, f.nullable, change(f)) for f in schema]
    if all(new.metadata == old.metadata for new, old in zip(fields, schema, strict=True)):
        return metadata
    return replace(metadata, schema_string=Schema(fields).to_json())


# --- what may be declared ------------------------------------------------------------------


def check(table: TableState) -> None:
    """Reject identity columns that no writer could number.

    Raises
    ------
    SchemaError
        For nested columns, other types than LONG, partition columns, defaults beside them, a step of 0.
    """
    for identity in identities(table.schema):
        why = _flaw(table, next(f for f in table.schema if f.name == identity.column))
        if why is not None:
            raise SchemaError(f"Column {identity.column} can't be an identity column: {why}.", column=identity.column)


def _flaw(table: TableState, f: Field) -> str | None:
    if f.type != _LONG:
        return f"it has type {f.type.type}; expected long"
    if f.name in table.partition_columns:
        return "the table is partitioned by it"
    if "CURRENT_DEFAULT" in f.metadata:
        return "it has a default too"
    return None
