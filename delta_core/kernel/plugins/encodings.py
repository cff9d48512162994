"""Columns that files store in another form: what the hook ``column_encodings`` returns, checked and bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from delta_core.errors import (
    ColumnNotFoundError,
    InvalidArgumentError,
    PluginConflictError,
    SchemaError,
    UnsupportedOperationError,
)
from delta_core.expressions.ast import Call, Column, Expression, Literal, PhysicalColumn, leaves, transform
from delta_core.expressions.binding import bind_rule
from delta_core.expressions.functions import SAME_NULLS
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.plugins.rules import ColumnEncoding, FileRequirement, WriteRule
from delta_core.kernel.plugins.state import TableState
from delta_core.runtime.plugin_errors import contract_error
from delta_core.schema.fields import FIELD_ID, Path, find, format_path
from delta_core.schema.types import DataType, Field, PrimitiveType, StructType

__all__ = [
    "bind_encodings",
    "checked_decode",
    "check_encodings",
    "check_not_encoded",
    "encoded_names",
    "stored_columns",
    "why_stored_otherwise",
]

_HOOK = "column_encodings"
_VOID, _STRING = PrimitiveType("void"), PrimitiveType("string")


def bind_encodings(
    table: TableState, encodings: Sequence[ColumnEncoding], functions: Mapping[str, Function]
) -> dict[str, ColumnEncoding]:
    """Check encodings against a table, and bind their expressions.

    Parameters
    ----------
    table : TableState
        The table, with its column map.
    encodings : sequence of ColumnEncoding
        The answers of the hook.
    functions : Mapping
        Plugins' functions by lower-case name.

    Returns
    -------
    dict of str to ColumnEncoding
        By logical name. ``encode`` is over the column, ``decode`` over the physical column.

    Raises
    ------
    HookContractError
        For a column or an expression that can't be encoded, and for a feature that readers may ignore.
    InvalidArgumentError
        For a partition column.
    PluginConflictError
        For a column with two encodings.
    """
    found: dict[str, ColumnEncoding] = {}
    for rule in encodings:
        bound = _bound(table, rule, functions)
        name = bound.column[0]
        if name in found:
            raise PluginConflictError(
                f"Column {name!r} is encoded by {found[name].feature} and by {rule.feature}; one encoding is allowed. "
                "Disable one of them.",
                column=name,
            )
        found[name] = bound
    return found


def _bound(table: TableState, rule: ColumnEncoding, functions: Mapping[str, Function]) -> ColumnEncoding:
    name, own = _encoded_field(table, rule)
    if name.lower() in {n.lower() for n in table.partition_columns}:
        raise InvalidArgumentError(
            f"Column {name!r} partitions the table, and {rule.feature} encodes it: partition values are part of the "
            "log and of paths, so they can't be encoded. Partition by another column, or leave this one as it is.",
            column=name,
            feature=rule.feature,
        )
    if rule.feature not in table.reader_features:
        what = "encodes a column, but readers may ignore the feature; expected FEATURE.kind 'reader+writer'"
        raise contract_error(rule.feature, _HOOK, "", what)
    if not isinstance(rule.stored, PrimitiveType) or rule.stored == _VOID or rule.stored.type not in table.types:
        what = f"is {rule.stored}; expected a primitive type that files can store"
        raise contract_error(rule.feature, _HOOK, "ColumnEncoding.stored", what, column=name)
    stored = StructType([Field(name, rule.stored)])
    encode = _expression(rule, "encode", rule.encode, StructType([Field(name, own.type)]), rule.stored, functions)
    decode = _expression(rule, "decode", rule.decode, stored, own.type, functions)
    physical = find(table.column_map.physical, table.column_map.physical_path(table.schema, (name,)))[1]
    leaf = PhysicalColumn(physical.name, rule.stored, physical.metadata.get(FIELD_ID))
    return replace(rule, column=(name,), encode=encode, decode=transform(decode, lambda _: leaf))


def _encoded_field(table: TableState, rule: ColumnEncoding) -> tuple[str, Field]:
    """Return the name, as the schema spells it, and the field of the column that a rule encodes."""
    try:
        path, own = find(table.schema, rule.column)
    except ColumnNotFoundError as e:
        what = f"encodes a column that is not there: {e.message}"
        raise contract_error(rule.feature, _HOOK, "ColumnEncoding.column", what) from e
    if len(path) > 1 or not isinstance(own.type, PrimitiveType) or own.type == _VOID:
        what = f"is {format_path(path)} of type {own.type.type}; expected a top-level column of a primitive type"
        raise contract_error(rule.feature, _HOOK, "ColumnEncoding.column", what, column=format_path(path))
    return path[0], own


def _expression(
    rule: ColumnEncoding,
    part: str,
    expression: Expression,
    schema: StructType,
    expected: DataType,
    functions: Mapping[str, Function],
) -> Expression:
    what = f"{part.capitalize()} of column {schema.names[0]!r}"
    try:
        bound = bind_rule(rule.feature, _HOOK, what, expression, schema, functions, expected)
    except ColumnNotFoundError as e:
        what = f"uses another column than the one it is for: {e.message}"
        raise contract_error(rule.feature, _HOOK, f"ColumnEncoding.{part}", what) from e
    if not leaves(bound) or not all(isinstance(leaf, Column) for leaf in leaves(bound)):
        what = f"is not an expression over the column {schema.names[0]!r} alone"
        raise contract_error(rule.feature, _HOOK, f"ColumnEncoding.{part}", what)
    return bound


# --- the columns of files --------------------------------------------------------------------


def encoded_names(table: TableState, *, with_bounds: bool = True) -> frozenset[str]:
    """Return the physical names of the columns that files store in another form.

    Parameters
    ----------
    table : TableState
        The table.
    with_bounds : bool
        Whether those are among them whose values have bounds in the log.
    """
    return frozenset(
        table.column_map.physical_path(table.schema, (name,))[0]
        for name, rule in table.encodings.items()
        if with_bounds or not rule.statistics
    )


def stored_columns(table: TableState) -> tuple[Field, ...]:
    """Return the columns of files under their physical names, in the types that are stored."""
    members: tuple[Field, ...] = tuple(table.column_map.physical.members)
    if not table.encodings:
        return members
    pairs = zip(table.schema.names, members, strict=True)
    return tuple(
        Field(p.name, table.encodings[n].stored, p.nullable, p.metadata) if n in table.encodings else p
        for n, p in pairs
    )


def checked_decode(rule: ColumnEncoding) -> Expression:
    """Return the values of a column; evaluation fails if they are null in other rows than what files store.

    Parameters
    ----------
    rule : ColumnEncoding
        The encoding, bound to a table.
    """
    (stored,) = leaves(rule.decode)
    if rule.decode == stored:
        return stored
    names = (Literal(text, _STRING) for text in (rule.feature, rule.column[0]))
    return Call(SAME_NULLS, (rule.decode, stored, *names))


# --- changes ---------------------------------------------------------------------------------


def why_stored_otherwise(previous: TableState, table: TableState) -> str | None:
    """Return why files of an older definition can't be read by a newer one, None if columns are stored in one form.

    Columns are the same if files hold them under one physical name.

    Parameters
    ----------
    previous, table : TableState
        The older definition and the newer one.
    """
    old, new = _forms(previous), _forms(table)
    if not old and not new:
        return None
    names = {p.name: f.name for f, p in zip(previous.schema, previous.column_map.physical, strict=True)}
    for physical in table.column_map.physical.names:
        if physical in names and _form(old.get(physical)) != _form(new.get(physical)):
            rule = new.get(physical) or old[physical]
            return f"column {names[physical]} is stored in another form ({rule.feature})"
    return None


def check_encodings(
    previous: TableState | None, table: TableState, rules: Iterable[WriteRule], has_files: Callable[[], bool]
) -> None:
    """Reject encodings under which files that stay can't be read, or that leave a feature without statistics.

    Parameters
    ----------
    previous : TableState or None
        The definition of the files that stay; None if none does.
    table : TableState
        The definition after the change.
    rules : iterable of WriteRule
        The answers of the hook ``write_rules`` for it.
    has_files : function() -> bool
        Whether the table has files; called if they could not be read.

    Raises
    ------
    SchemaError
        For a column that files store in another form.
    InvalidArgumentError
        For an encoded column whose bounds a feature requires.
    """
    why = None if previous is None else why_stored_otherwise(previous, table)
    if why is not None and has_files():
        raise SchemaError(
            f"The definition of the table would change how files are read: {why}, and files stay that store it as "
            "before. Overwrite table and schema, or add a new column that is encoded."
        )
    for rule in rules:
        for path in rule.statistics_columns if isinstance(rule, FileRequirement) else ():
            _check_bounds(table, rule.feature, path)


def _check_bounds(table: TableState, feature: str, path: Path) -> None:
    for name, rule in table.encodings.items():
        if path[0].lower() in (name.lower(), table.column_map.physical_path(table.schema, (name,))[0].lower()):
            raise InvalidArgumentError(
                f"{feature} requires statistics of column {name!r}, which {rule.feature} encodes: files have no bounds "
                f"of its values. Use other columns for {feature}, or leave this one as it is.",
                column=name,
                feature=feature,
            )


def _forms(table: TableState) -> dict[str, ColumnEncoding]:
    """Return the encodings by the physical names of their columns."""
    return {table.column_map.physical_path(table.schema, (n,))[0]: rule for n, rule in table.encodings.items()}


def _form(rule: ColumnEncoding | None) -> tuple[DataType, Expression] | None:
    """Return what decides how files are read; another way to encode the same form changes nothing for them."""
    return None if rule is None else (rule.stored, rule.decode)


def check_not_encoded(table: TableState, what: str, remedy: str) -> None:
    """Reject an operation on files as they are, if they store columns in another form than the table's.

    Parameters
    ----------
    table : TableState
        The table.
    what : str
        The operation that is rejected, as the beginning of a sentence: ``The table can't have manifests``.
    remedy : str
        Advice for the caller, as a sentence.

    Raises
    ------
    UnsupportedOperationError
        The message names a column and the feature that encodes it.
    """
    for name, rule in table.encodings.items():
        raise UnsupportedOperationError(
            f"{what}: files store column {name!r} in another form ({rule.feature}). {remedy}",
            column=name,
            feature=rule.feature,
        )
