"""Assign new values to columns of the rows that a predicate selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from delta_core.errors import InvalidArgumentError
from delta_core.expressions import parse_sql, to_condition
from delta_core.expressions.ast import Call, Cast, Column, Expression, Literal, leaves
from delta_core.expressions.binding import bind_typed
from delta_core.expressions.coercion import canonical, same_type
from delta_core.expressions.sql import is_default
from delta_core.kernel.scan.plan import resolve_columns
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.changes import ChangeBase, Changed, ChangeOptions, ChangeTarget, Timing
from delta_core.operations.merge.value_fitting import DEFAULT_RULES, Fitting, FittingRules
from delta_core.operations.row_changes import begin_changes, has_applied, predicate_text
from delta_core.runtime.progress_bars import shows_progress
from delta_core.schema.fields import Path, find, format_path
from delta_core.schema.types import DataType, PrimitiveType, StructType

__all__ = ["UpdateOptions", "assigned_columns", "update_rows"]

_STRING = PrimitiveType("string")


class UpdateOptions(ChangeOptions, frozen=True):
    """How rows are updated.

    Parameters
    ----------
    updates : Mapping of str to str or Expression
        By column, or by a dotted path to a field of a struct: Spark SQL over the row as it was, or ``DEFAULT``.
    new_values : Mapping of str to object
        Likewise, with constants.
    null_on_failed_cast : bool
        Whether a value that does not fit its column's type becomes null instead of an error.
    fitting : FittingRules
        How values become those of structs.
    """

    updates: Mapping[str, Any] = {}
    new_values: Mapping[str, Any] = {}
    null_on_failed_cast: bool = False
    fitting: FittingRules = FittingRules()


@shows_progress
def update_rows(base: Snapshot | ChangeTarget, options: UpdateOptions) -> Changed:
    """Update rows and commit.

    First only the columns of the predicate are read, then the others of the selected rows alone. These rows are written
    to new files; in their old files they are dropped as `delete_rows` drops rows. No selected row: no commit.

    Parameters
    ----------
    base : Snapshot or ChangeTarget
        The latest version that the caller has; a newer one is looked for.
    options : UpdateOptions
        Which rows, and their new values.

    Raises
    ------
    ExpressionError, ColumnNotFoundError
        The predicate or an assignment does not fit the table.
    InvalidArgumentError
        Nothing is assigned, or a column twice.
    SchemaMismatchError, ConstraintViolationError
        The new values don't fit the table.
    UnsupportedOperationError
        The table is append-only.
    CommitConflictError
        Another writer's commit contradicts this one. Files that were written are deleted again.
    """
    latest = base.latest()
    update = _Update(latest, options)
    if has_applied(latest, options.transactions):
        return Changed(latest, update.metrics())
    with update.changes:
        return update.run()


class _Update:
    """One update: which rows, their new values, and the commit."""

    def __init__(self, base: Snapshot | ChangeTarget, options: UpdateOptions) -> None:
        self.timing = Timing()
        self.base = base
        self.options = options
        self.predicate = to_condition(options.predicate, base.schema, functions=base.functions)
        parameters = {"predicate": predicate_text(options.predicate, self.predicate)}
        self.changes = begin_changes(base, "UPDATE", parameters, options)
        given = self._given(options.updates)
        values = {name: Literal(value) for name, value in options.new_values.items()}
        self.assigned = assigned_columns(base, {**given, **values}, options.null_on_failed_cast, options.fitting)
        self.changes.check_assigned(self.assigned, set().union(*(_used(e, (n,)) for n, e in self.assigned.items())))

    def _given(self, updates: Mapping[str, Any]) -> dict[str, Expression]:
        """Return the new values; a column whose default is computed from the new row is left out."""
        found: dict[str, Expression] = {}
        for name, value in updates.items():
            if is_default(value):
                (path,) = resolve_columns(self.base.schema, [name])
                default = self.changes.default_of(path, updates=True)
                found |= {} if default is None else {name: default}
            else:
                found[name] = _parsed(name, value)
        return found

    def run(self) -> Changed:
        changes = self.changes
        whole = changes.whole_units(self.predicate, to_remove=False)
        files, rows = changes.find(self.predicate) if whole is None else (whole[0], None)
        self.timing.scanned()
        if not files.num_rows and not self.options.commits_empty:
            return Changed(self.base, self.metrics())
        if rows is None:
            changes.drop_files(files, updated=True)
        else:
            changes.drop(files, updated=rows)
        self._write(files, rows)
        changes.write_changes()
        return changes.commit(self.options, self.metrics())

    def _write(self, files: Any, rows: Any) -> None:
        """Write the rows with their new values; columns that no value needs are not read."""
        computed = self.changes.computed - set(self.assigned)
        written = [f.name for f in self.base.schema if f.name not in computed]
        used = {leaf.path[0] for e in self.assigned.values() for leaf in leaves(e) if isinstance(leaf, Column)}
        read: list[str | Path] = [(n,) for n in written if n not in self.assigned or n in used]
        read += [(n,) for n in used - set(written)]
        carried = self.changes.carried
        relations = self.changes.relations
        columns = [(n, self.assigned.get(n, Column((n,)))) for n in written]
        columns += [(hidden, Column((n,))) for n, hidden in carried.items()]
        found = relations.scan(self.changes.rows(files, rows, read))
        self.changes.write_updated(relations.select(found, columns, self.base.functions))

    def metrics(self) -> dict[str, int]:
        """Return what was done so far."""
        return {**self.changes.metrics(), "numUpdatedRows": self.changes.num_updated, **self.timing.metrics()}


def assigned_columns(
    base: ChangeBase,
    given: Mapping[str, Expression],
    null_on_failed_cast: bool = False,
    fitting: FittingRules = DEFAULT_RULES,
) -> dict[str, Expression]:
    """Return the new values of whole columns from assignments, bound to the table and cast to the columns' types.

    Parameters
    ----------
    base : ChangeBase
        The version whose columns the assignments name.
    given : Mapping of str to Expression
        By column, or by a dotted path to a field of a struct.
    null_on_failed_cast : bool
        Whether a value that can't be cast becomes null, instead of an error when the rows are read.
    fitting : FittingRules
        How values become those of structs.

    Raises
    ------
    ColumnNotFoundError, ExpressionError
        An assignment does not fit the table.
    InvalidArgumentError
        Nothing is assigned, a column twice, or a struct and a field of it.
    """
    if not given:
        raise InvalidArgumentError("Nothing is assigned: found no column with a new value, expected at least one.")
    paths = resolve_columns(base.schema, given)
    for path in paths:
        other = next((p for p in paths if p != path and p[: len(path)] == path), None)
        if other is not None:
            raise InvalidArgumentError(
                f"Both {format_path(path)} and {format_path(other)} within it are assigned; assign one of the two.",
                column=format_path(path),
            )
    rules = null_on_failed_cast, fitting
    values = {path: _cast(base, path, e, *rules) for path, e in zip(paths, given.values(), strict=True)}
    return {p[0]: _built(base.schema, (p[0],), values) for p in paths}


def _used(value: Expression, path: Path) -> set[Path]:
    """Return the columns that the value at a path is computed of; one that stays where it is is none."""
    if isinstance(value, Column):
        return set() if value.path == path else {value.path}
    if isinstance(value, Call) and value.function == "named_struct":
        pairs = zip(value.args[::2], value.args[1::2], strict=True)
        return set().union(*(_used(v, (*path, n.value)) for n, v in pairs if isinstance(n, Literal)))
    return {leaf.path for leaf in leaves(value) if isinstance(leaf, Column)}


def _parsed(name: str, given: Any) -> Expression:
    if isinstance(given, str):
        return parse_sql(given, "name")
    if isinstance(given, get_args(Expression)):
        return given  # type: ignore[no-any-return]  # just tested
    raise InvalidArgumentError(
        f"Found the new value of {name!r} as {type(given).__name__}; expected SQL text or an Expression. Pass Python "
        "values in new_values.",
        column=name,
    )


def _cast(base: ChangeBase, path: Path, value: Expression, is_safe: bool, rules: FittingRules) -> Expression:
    wanted = find(base.schema, path)[1].type
    if isinstance(value, Literal) and (value.value is None or isinstance(value.value, (list, tuple, dict))):
        return Literal(value.value, wanted)
    bound = bind_typed(value, base.schema, base.functions)
    if same_type(bound.type, canonical(wanted)):
        return bound.expression
    if isinstance(wanted, StructType) and (rules != DEFAULT_RULES or _has_same_fields(bound.type, wanted)):
        return Fitting(base.schema, base.functions, is_safe, False, rules).fit(path, bound, wanted)
    return bind_typed(Cast(bound.expression, wanted, is_safe), base.schema, base.functions).expression


def _has_same_fields(found: DataType, wanted: StructType) -> bool:
    """Whether a type is a struct with fields of the same names, in any order."""
    names = [sorted(f.name.lower() for f in t.members) for t in (found, wanted) if isinstance(t, StructType)]
    return len(names) == 2 and names[0] == names[1]


def _built(schema: StructType, path: Path, values: Mapping[Path, Expression]) -> Expression:
    """Return the value at a path: a new one, or a struct made again with new fields."""
    if path in values:
        return values[path]
    if not any(p[: len(path)] == path for p in values):
        return Column(path)
    struct: DataType = find(schema, path)[1].type
    assert isinstance(struct, StructType)
    parts: Sequence[tuple[Expression, Expression]] = [
        (Literal(f.name, _STRING), _built(schema, (*path, f.name), values)) for f in struct.members
    ]
    return Call("named_struct", tuple(e for pair in parts for e in pair))
