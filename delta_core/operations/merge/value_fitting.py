"""Values of a merge in the types of the columns that they are assigned to: casts, and structs that lack fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from delta_core.errors import SchemaMismatchError
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal as Constant
from delta_core.expressions.binding import ResultOf, bind_typed
from delta_core.expressions.coercion import VOID, canonical, same_type
from delta_core.expressions.typing_rules import Typed
from delta_core.schema.fields import Path, format_path
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType, spark_name

__all__ = ["DEFAULT_RULES", "Fitting", "FittingRules"]

_STRING = PrimitiveType("string")


class FittingRules(Struct, frozen=True):
    """How values become those of structs.

    Parameters
    ----------
    by_place : bool
        Whether fields of structs are found by their places; otherwise by their names, ignoring case.
    keeps_null : bool
        Whether a null struct stays null if its type is another one than that of its column; otherwise it becomes a
        struct of nulls.
    keeps_null_in_star : bool
        Likewise of structs that an update of all columns assigns while it changes the schema, whatever their types are.
    """

    by_place: bool = False
    keeps_null: bool = True
    keeps_null_in_star: bool = True


DEFAULT_RULES = FittingRules()


class Fitting:
    """Turns assigned values into the types of their columns.

    The work that remains when rows are written is to order fields, and to add nulls for those that structs within
    arrays and maps lack.

    Parameters
    ----------
    schema : StructType
        The columns that expressions are bound to.
    is_safe : bool
        Whether a value that does not cast becomes null instead of an error.
    is_evolving : bool
        Whether a struct may lack fields of its column: these become null, or keep their values.
    rules : FittingRules
        How values become those of structs.
    """

    def __init__(
        self,
        schema: StructType,
        functions: Mapping[str, ResultOf],
        is_safe: bool,
        is_evolving: bool,
        rules: FittingRules = DEFAULT_RULES,
    ) -> None:
        self._schema, self._functions = schema, functions
        self._is_safe, self._is_evolving, self._rules = is_safe, is_evolving, rules
        #: A struct that is found by place is cast as a whole.
        self._keeps_null = rules.keeps_null or rules.by_place

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
        if self._rules.by_place:
            value = self._placed(path, value, target)
        self._check(path, value.type, target)
        is_star = kept is not None and self._is_evolving
        expands = is_star and not self._rules.keeps_null_in_star
        return self._fitted(value, target, kept, expands).expression

    def _placed(self, path: Path, value: Typed, target: DataType) -> Typed:
        """Return a value whose fields of structs have the names of the column's fields at their places.

        Raises
        ------
        SchemaMismatchError
            A struct has another number of fields, or a struct within an array or a map has other names of fields.
        """
        if not (isinstance(value.type, StructType) and isinstance(target, StructType)):
            if _are_nested(value.type, target) and not _has_names(value.type, target):
                raise self._mismatch(format_path(path), value.type, target, "the names of fields within")
            return value
        if _has_names(value.type, target):
            return value
        if len(value.type.members) != len(target.members):
            raise self._mismatch(format_path(path), value.type, target, "the number of fields")
        parts: list[Expression] = []
        for own, f in zip(value.type.members, target.members, strict=True):
            made = self._field(value, own.name)
            assert made is not None
            parts += [Constant(f.name, _STRING), self._placed((*path, f.name), made, f.type).expression]
        return self._bound(_unless_null([value], Call("named_struct", tuple(parts))))

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

    def _fitted(self, value: Typed, target: DataType, kept: Typed | None, expands: bool) -> Typed:
        if value.type == VOID:
            return Typed(Constant(None, target), target)
        if isinstance(value.type, StructType) and isinstance(target, StructType):
            is_kept = kept is not None and _lacks(value.type, target)
            has_casts = _has_casts(value.type, target)
            is_changed = has_casts or not _has_names(value.type, target)
            keeps_null = not expands and (self._keeps_null or not is_changed)
            if is_kept or has_casts or not keeps_null:
                return self._struct(value, target, kept if is_kept else None, keeps_null, expands)
            return value
        stored = canonical(target)
        if _are_nested(value.type, stored) or same_type(value.type, stored):
            return value
        return self._bound(Cast(value.expression, target, self._is_safe))

    def _struct(self, value: Typed, target: StructType, kept: Typed | None, keeps_null: bool, expands: bool) -> Typed:
        """Return a struct made of the fields of a value and, where it lacks some, of an old value."""
        parts: list[Expression] = []
        for f in target.members:
            old = None if kept is None else self._field(kept, f.name)
            made = self._field(value, f.name)
            chosen = old if made is None else self._fitted(made, f.type, old, expands)
            if chosen is not None:
                parts += [Constant(f.name, _STRING), chosen.expression]
        whole = Call("named_struct", tuple(parts))
        if not keeps_null:
            return self._bound(whole)
        return self._bound(_unless_null([e for e in (value, kept) if e is not None], whole))

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


def _unless_null(values: Sequence[Typed], struct: Expression) -> Expression:
    """Return a struct, or null if all of these values are null."""
    nulls = [Call("isnull", (e.expression,)) for e in values]
    return Call("if", (nulls[0] if len(nulls) == 1 else Call("and", tuple(nulls)), Constant(None), struct))


def _has_names(found: DataType, target: DataType) -> bool:
    """Whether structs have fields of the same names in the same order, ignoring case, at every depth."""
    if isinstance(found, StructType) and isinstance(target, StructType):
        have, want = ([f.name.lower() for f in t.members] for t in (found, target))
        pairs = zip(found.members, target.members, strict=False)
        return have == want and all(_has_names(a.type, b.type) for a, b in pairs)
    if isinstance(found, ArrayType) and isinstance(target, ArrayType):
        return _has_names(found.element_type, target.element_type)
    if isinstance(found, MapType) and isinstance(target, MapType):
        return _has_names(found.key_type, target.key_type) and _has_names(found.value_type, target.value_type)
    return True


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
