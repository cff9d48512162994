"""Values of a merge in the types of the columns that they are assigned to: casts, and structs that lack fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_core.errors import SchemaMismatchError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal as Constant
from delta_core.expressions.binding import ResultOf, bind_typed
from delta_core.expressions.coercion import VOID, canonical, same_type
from delta_core.expressions.typing_rules import Typed
from delta_core.schema.fields import Path, format_path
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType, spark_name

__all__ = ["Fitting"]

_STRING = PrimitiveType("string")


class Fitting:
    """Turns assigned values into the types of their columns.

    Fields of structs are found by name, ignoring case. The work that remains when rows are written is to order
    fields, and to add nulls for those that structs within arrays and maps lack.

    Parameters
    ----------
    schema : StructType
        The columns that expressions are bound to.
    is_safe : bool
        Whether a value that does not cast becomes null instead of an error.
    is_evolving : bool
        Whether a struct may lack fields of its column: these become null, or keep their values.
    """

    def __init__(self, schema: StructType, functions: Mapping[str, ResultOf], is_safe: bool, is_evolving: bool) -> None:
        self._schema, self._functions = schema, functions
        self._is_safe, self._is_evolving = is_safe, is_evolving

    def fit(self, path: Path, value: Typed, target: DataType, kept: Typed | None = None) -> Expression:
        """Return a value for a column.

        Parameters
        ----------
        path : Path
            The column, for messages.
        value : Typed
            The assigned value, bound.
        target : DataType
            The type of the column.
        kept : Typed, optional
            The column's old value, from which fields come that the new value lacks, at any depth of structs. It is
            null with the new value only. Without it, such fields become null.

        Raises
        ------
        SchemaMismatchError
            A struct has fields that the column lacks or, without schema evolution, lacks fields that it has; or the
            types are not of one kind.
        ExpressionError
            The value has no cast to the column's type.
        """
        value = Typed(value.expression, canonical(value.type))
        self._check(path, value.type, target)
        return self._fitted(value, target, kept).expression

    # --- what fits ---

    def _check(self, path: Path, found: DataType, target: DataType) -> None:
        if isinstance(found, PrimitiveType) or isinstance(target, PrimitiveType):
            return
        if isinstance(found, StructType) and isinstance(target, StructType):
            self._check_fields(path, found, target)
        for name, old, new in _parts(found, target, path):
            self._check((*path, name), old, new)

    def _check_fields(self, path: Path, found: StructType, target: StructType) -> None:
        have, want = ([f.name.lower() for f in t.members] for t in (found, target))
        extra = next(
            (f.name for f, n in zip(found.members, have, strict=True) if n not in want or have.count(n) > 1), None
        )
        lacking = next((f.name for f, n in zip(target.members, want, strict=True) if n not in have), None)
        column = format_path(path)
        if extra is not None:
            why = "has twice" if have.count(extra.lower()) > 1 else "has, and the column lacks"
            raise self._mismatch(column, found, target, f"the field {extra!r}, which the value {why}")
        if lacking is not None and not self._is_evolving:
            raise self._mismatch(column, found, target, f"the field {lacking!r}, which the value lacks")

    def _mismatch(self, column: str, found: DataType, target: DataType, what: str) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"The merge assigns {spark_name(found)} to {column}, which is {spark_name(target)}: they differ in {what}. "
            "Build the value with named_struct, assign single fields, or allow schema evolution (merge_schema=True, "
            "withSchemaEvolution), which adds fields of the source's column of that name and fills missing ones.",
            column=column,
            found=spark_name(found),
            expected=spark_name(target),
        )

    # --- values ---

    def _fitted(self, value: Typed, target: DataType, kept: Typed | None) -> Typed:
        if value.type == VOID:
            return Typed(Constant(None, target), target)
        if isinstance(value.type, StructType) and isinstance(target, StructType):
            is_kept = kept is not None and _lacks(value.type, target)
            if is_kept or _has_casts(value.type, target):
                return self._struct(value, target, kept if is_kept else None)
            return value
        stored = canonical(target)
        if _are_nested(value.type, stored) or same_type(value.type, stored):
            return value
        return self._bound(Cast(value.expression, target, self._is_safe))

    def _struct(self, value: Typed, target: StructType, kept: Typed | None) -> Typed:
        """Return a struct made of the fields of a value and, where it lacks some, of an old value."""
        parts: list[Expression] = []
        for f in target.members:
            old = None if kept is None else self._field(kept, f.name)
            made = self._field(value, f.name)
            chosen = old if made is None else self._fitted(made, f.type, old)
            if chosen is not None:
                parts += [Constant(f.name, _STRING), chosen.expression]
        nulls = [Call("isnull", (e.expression,)) for e in (value, kept) if e is not None]
        is_null = nulls[0] if len(nulls) == 1 else Call("and", tuple(nulls))
        return self._bound(Call("if", (is_null, Constant(None), Call("named_struct", tuple(parts)))))

    def _field(self, struct: Typed, name: str) -> Typed | None:
        """Return a field of a struct, None if it has none of that name."""
        assert isinstance(struct.type, StructType)
        found = struct.type.get(name)
        if found is None:
            return None
        if isinstance(struct.expression, Column):
            return Typed(Column((*struct.expression.path, found.name)), found.type)
        return Typed(Call("get_field", (struct.expression, Constant(found.name, _STRING))), found.type)

    def _bound(self, expression: Expression) -> Typed:
        return bind_typed(expression, self._schema, self._functions)


def _parts(found: DataType, target: DataType, path: Path) -> Iterator[tuple[str, DataType, DataType]]:
    """Yield the parts that two nested types have in common; an array of entries is a map too."""
    if isinstance(found, StructType) and isinstance(target, StructType):
        for f in found.members:
            own = target.get(f.name)
            if own is not None:
                yield own.name, f.type, own.type
    elif isinstance(found, ArrayType) and isinstance(target, ArrayType):
        yield "element", found.element_type, target.element_type
    elif isinstance(target, MapType) and isinstance(found, (MapType, ArrayType)):
        entry = found.element_type if isinstance(found, ArrayType) else None
        fields = list(entry.members) if isinstance(entry, StructType) else []
        if isinstance(found, MapType):
            yield "key", found.key_type, target.key_type
            yield "value", found.value_type, target.value_type
        elif len(fields) == 2:
            yield "key", fields[0].type, target.key_type
            yield "value", fields[1].type, target.value_type
    elif type(found) is not type(target):
        raise SchemaMismatchError(
            f"The merge assigns {spark_name(found)} to {format_path(path)}, which is {spark_name(target)}.",
            column=format_path(path),
            found=spark_name(found),
            expected=spark_name(target),
        )


def _common(found: StructType, target: StructType) -> Iterator[tuple[DataType | None, DataType]]:
    for f in target.members:
        given = found.get(f.name)
        yield None if given is None else given.type, f.type


def _lacks(found: DataType, target: DataType) -> bool:
    """Whether a struct lacks a field, or a struct within it does; one within an array or a map does not count."""
    if not isinstance(found, StructType) or not isinstance(target, StructType):
        return False
    return any(have is None or _lacks(have, want) for have, want in _common(found, target))


def _has_casts(found: StructType, target: StructType) -> bool:
    """Whether a field of a struct, or of a struct within it, has another primitive type than the column."""
    for have, want in _common(found, target):
        if isinstance(have, StructType) and isinstance(want, StructType):
            if _has_casts(have, want):
                return True
            continue
        stored = canonical(want)
        if have is not None and have != VOID and not (same_type(have, stored) or _are_nested(have, stored)):
            return True
    return False


def _are_nested(a: DataType, b: DataType) -> bool:
    return not isinstance(a, PrimitiveType) and not isinstance(b, PrimitiveType)
