"""plan_write: what the features' rules and the table's properties specify for a write, composed into one WritePlan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import (
    ColumnNotFoundError,
    HookContractError,
    InvalidArgumentError,
    PluginConflictError,
    SchemaMismatchError,
)
from delta_core.expressions.ast import Cast, Column, Expression, Literal as Constant, PhysicalColumn, leaves
from delta_core.expressions.binding import bind_rule, bind_typed
from delta_core.expressions.coercion import same_type
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.log.indexed_columns import statistics_leaves
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import (
    ChangeCapture,
    FileRequirement,
    FillColumn,
    HiddenColumn,
    MetadataColumn,
    ReadRule,
    RemoveRows,
    RowCheck,
    RowSelector,
    WriteRule,
)
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.write.names import is_folder
from delta_core.runtime.plugin_errors import contract_error
from delta_core.runtime.processes import cached_property
from delta_core.schema.fields import Path, find, format_path, walk
from delta_core.schema.types import DataType, PrimitiveType, UserDefinedType, spark_name

__all__ = ["Origin", "WritePlan", "plan_write"]

#: Where written rows come from. ``new``: from the user, so that columns are filled and rows checked. ``moved``: rows of
#: the table for other files, neither filled nor checked again. ``updated``: rows of the table with new values in some
#: columns; checked like new ones, but the table's own values are accepted in columns that only the table may fill.
#: ``changes``: rows for change files, which were filled and checked when they were written.
Origin = Literal["new", "moved", "updated", "changes"]

_NOTHING = FileRequirement("")
R = TypeVar("R")


class WritePlan(Struct, frozen=True, dict=True):
    """How rows become files of a table. Expressions are bound to the table's schema.

    Parameters
    ----------
    table : TableState
        The target state.
    fills : tuple of FillColumn
        In an order in which each finds the columns that it needs.
    requirements : FileRequirement
        The requirements of all features, united.
    statistics : tuple of Path
        The physical leaves to measure.
    functions : Mapping
        Plugins' functions for the expressions.
    rules : tuple
        The answers of the features.

    """

    table: TableState
    operation: str
    fills: tuple[FillColumn, ...] = ()
    hidden: tuple[HiddenColumn, ...] = ()
    checks: tuple[RowCheck, ...] = ()
    requirements: FileRequirement = _NOTHING
    remove_rows: RemoveRows | None = None
    capture: ChangeCapture | None = None
    statistics: tuple[Path, ...] = ()
    functions: Mapping[str, Function] = {}
    rules: tuple[WriteRule, ...] = ()

    @cached_property
    def compiled(self) -> dict[Any, Any]:
        """The parts that writes compiled, for later writes; no other plan has them, nor does a pickled one."""
        return {}

    @cached_property
    def computed(self) -> tuple[str, ...]:
        """The columns that are computed from others: updated rows leave them out unless they are assigned."""
        return tuple(r.column[0] for r in self.fills if any(isinstance(leaf, Column) for leaf in leaves(r.expression)))

    def check_assigned(self, columns: Iterable[str]) -> None:
        """Reject new values for columns that only the table may fill.

        Raises
        ------
        SchemaMismatchError
            The message names the column and the feature.
        """
        exclusive = {r.column[0]: r.feature for r in self.fills if r.exclusive}
        for name in columns:
            if name in exclusive:
                raise SchemaMismatchError(
                    f"Column {name} can't be assigned: its values come from the table alone ({exclusive[name]}). Leave "
                    "it out of the assignments.",
                    column=name,
                    feature=exclusive[name],
                )

    def default_of(self, path: Path, *, updates: bool) -> Expression | None:
        """Return what ``DEFAULT`` represents as a column's value; None: the column is filled if it is left out.

        Parameters
        ----------
        path : Path
            The column, as the schema spells it.
        updates : bool
            Whether the value is for rows of the table, not for new ones.

        Raises
        ------
        InvalidArgumentError
            For a part of a column; for a column named ``default``; and, of rows of the table, for a column whose values
            are made for new rows only.
        """
        name = format_path(path)
        if len(path) > 1:
            raise InvalidArgumentError(f"Found DEFAULT for {name}; only whole columns have defaults.", column=name)
        if self.table.schema.get("default") is not None:
            raise InvalidArgumentError(
                f"Found DEFAULT for {name}, and the table has a column of this name. Put the column in backticks, "
                "or write the default out.",
                column=name,
            )
        rule = next((r for r in self.fills if r.column == path), None)
        if rule is None:
            return Constant(None, find(self.table.schema, path)[1].type)
        if rule.when == "absent" and not leaves(rule.expression):
            return rule.expression
        if updates and name not in self.computed:
            raise InvalidArgumentError(
                f"Found DEFAULT for {name}, whose values are made for new rows only ({rule.feature}). Leave it out.",
                column=name,
                feature=rule.feature,
            )
        return None

    def carried(self, origin: Origin) -> tuple[HiddenColumn, ...]:
        """Return the hidden columns that rows of an origin contain."""
        on_move = tuple(r for r in self.hidden if r.on_rewrite == "carry")
        return tuple(r for r in on_move if r.on_update == "carry") if origin == "updated" else on_move

    def serves(self, table: TableState, operation: str, rules: Sequence[WriteRule]) -> bool:
        """Whether this is the plan of a later version too: nothing changed that it is made of.

        Never if it holds expressions: those that request the time were bound to that of this plan.
        """
        own = self.table
        return (
            operation == self.operation
            and not (self.fills or self.hidden or self.checks)
            and table.metadata is own.metadata
            and table.schema is own.schema
            and table.column_map is own.column_map
            and table.types is own.types
            and table.encodings == own.encodings
            and tuple(rules) == self.rules
        )


def plan_write(table: TableState, plugins: PluginSet, operation: str, known: WritePlan | None = None) -> WritePlan:
    """Query the features what a write needs, once, and compose their answers.

    Parameters
    ----------
    table : TableState
        The table as the write finds or makes it.
    plugins : PluginSet
        The features of the table.
    operation : str
        The operation that the commit names, for the features' rules.
    known : WritePlan, optional
        The plan of an earlier version; it is returned if it serves this one.

    Raises
    ------
    PluginConflictError
        Two rules claim one column, or columns are filled from each other in a circle.
    ExpressionError, UnsupportedExpressionError
        An expression of a rule does not fit the table, or can't be evaluated here.
    """
    rules: list[WriteRule] = plugins.collect("write_rules", table=table, operation=operation)
    if known is not None and known.serves(table, operation, rules):
        return known
    functions = plugins.functions
    requirements = _united([r for r in rules if isinstance(r, FileRequirement)], table)
    if read_property(table.configuration, "delta.randomizeFilePrefixes"):
        requirements = replace(requirements, random_prefix=True)
    if read_property(table.configuration, "delta.writePartitionColumnsToParquet"):
        requirements = replace(requirements, materialize_partition_columns=True)
    return WritePlan(
        table,
        operation,
        _ordered([_bound_fill(r, table, functions) for r in rules if isinstance(r, FillColumn)]),
        _hidden([r for r in rules if isinstance(r, HiddenColumn)], table, plugins),
        tuple(replace(r, expression=_condition(r, table, functions)) for r in rules if isinstance(r, RowCheck)),
        requirements,
        _sole([r for r in rules if isinstance(r, RemoveRows)]),
        _sole([r for r in rules if isinstance(r, ChangeCapture)]),
        tuple(
            path
            for path, t in statistics_leaves(table, requirements.statistics_columns)
            if not isinstance(t, UserDefinedType)  # the order of what is stored is no order of the values
        ),
        functions,
        tuple(rules),
    )


def _condition(rule: RowCheck, table: TableState, functions: Mapping[str, Function]) -> Expression:
    what = f"RowCheck {rule.name!r}"
    return bind_rule(
        rule.feature, "write_rules", what, rule.expression, table.schema, functions, PrimitiveType("boolean")
    )


def _sole(rules: Sequence[R]) -> R | None:
    if len(rules) > 1:
        names = " and ".join(r.feature for r in rules)  # type: ignore[attr-defined]  # R is a rule
        raise PluginConflictError(f"Features {names} both pass the rule {type(rules[0]).__name__}; one is allowed.")
    return rules[0] if rules else None


def _united(given: Sequence[FileRequirement], table: TableState) -> FileRequirement:
    _check_statistics_columns(given, table)

    def whether(asked: Callable[[FileRequirement], bool]) -> bool:
        return any(asked(r) for r in given)

    return FileRequirement(
        ", ".join(dict.fromkeys(r.feature for r in given)),
        tuple(dict.fromkeys(path for r in given for path in r.statistics_columns)),
        whether(lambda r: r.materialize_partition_columns),
        whether(lambda r: r.num_records),
        whether(lambda r: r.random_prefix),
        whether(lambda r: r.field_ids),
        _folder(given),
    )


def _check_statistics_columns(requirements: Sequence[FileRequirement], table: TableState) -> None:
    """Reject a column that is to have statistics and that the table does not have, by logical or physical name."""
    if not any(r.statistics_columns for r in requirements):
        return
    there = {tuple(n.lower() for n in p) for s in (table.schema, table.column_map.physical) for p, _ in walk(s)}
    for r in requirements:
        for path in r.statistics_columns:
            if tuple(n.lower() for n in path) not in there:
                what = f"names the column {format_path(path)}; the table's are {', '.join(table.schema.names[:20])}"
                raise contract_error(r.feature, "write_rules", "FileRequirement.statistics_columns", what)


def _folder(requirements: Iterable[FileRequirement]) -> str:
    """Return the folder of new files; names that readers take for hidden, or for other places, are rejected."""
    given = [r for r in requirements if r.folder]
    for r in given:
        if not is_folder(r.folder):
            what = (
                f"returned {r.folder!r}; expected a relative path whose parts begin with a letter or digit and have "
                "only letters, digits and ._=@+- (at most 200, without a point at the end)"
            )
            raise contract_error(r.feature, "write_rules", "FileRequirement.folder", what)
        if r.folder != given[0].folder:
            raise PluginConflictError(
                f"Features {given[0].feature} and {r.feature} name different folders for new data files: "
                f"{given[0].folder!r} and {r.folder!r}. Disable one of them."
            )
    return given[0].folder if given else ""


# --- filled and hidden columns -------------------------------------------------------------


def _bound_fill(rule: FillColumn, table: TableState, functions: Mapping[str, Function]) -> FillColumn:
    if len(rule.column) != 1:
        raise HookContractError(
            f"Feature {rule.feature} fills {format_path(rule.column)}; only whole columns can be filled.",
            feature=rule.feature,
        )
    try:
        path, found = find(table.schema, rule.column)
    except ColumnNotFoundError as e:
        raise HookContractError(
            f"FillColumn of hook write_rules of plugin {rule.feature!r} fills a column that is not there: {e.message}",
            plugin=rule.feature,
            hook="write_rules",
            column=format_path(rule.column),
        ) from e
    return replace(rule, column=path, expression=_of_type(rule, found.type, table, functions))


def _of_type(
    rule: FillColumn | HiddenColumn, wanted: DataType, table: TableState, functions: Mapping[str, Function]
) -> Expression:
    name = rule.name if isinstance(rule, HiddenColumn) else format_path(rule.column)
    what = f"{type(rule).__name__} {name!r}"
    bound = bind_rule(rule.feature, "write_rules", what, rule.expression, table.schema, functions)
    found = bind_typed(bound, table.schema, functions).type
    if same_type(found, wanted):
        return bound
    return bind_rule(rule.feature, "write_rules", what, Cast(rule.expression, wanted), table.schema, functions)


def _hidden(rules: Sequence[HiddenColumn], table: TableState, plugins: PluginSet) -> tuple[HiddenColumn, ...]:
    taken = {f.name.lower(): "the table's schema" for f in table.column_map.physical}
    for rule in rules:
        other = taken.get(rule.name.lower())
        if other is not None:
            raise PluginConflictError(
                f"Column {rule.name!r} of feature {rule.feature} is claimed by {other} too.", column=rule.name
            )
        taken[rule.name.lower()] = rule.feature
    if rules:
        request = ReadRequest(metadata=tuple(r.carries for r in rules if r.carries))
        readers = plugins.collect("read_rules", table=table, request=request)
        for rule in rules:
            _check_carried(rule, readers)
            _check_readers(rule, readers)
    return tuple(replace(r, expression=_of_type(r, r.type, table, plugins.functions)) for r in rules)


def _check_carried(rule: HiddenColumn, readers: Sequence[ReadRule]) -> None:
    """Reject a rule under which rows that only move would lose their values."""
    if rule.on_rewrite not in ("carry", "recompute"):
        raise _broken(rule, f"has on_rewrite={rule.on_rewrite!r}, expected 'carry' or 'recompute'")
    if rule.on_update not in ("carry", "clear"):
        raise _broken(rule, f"has on_update={rule.on_update!r}, expected 'carry' or 'clear'")
    if (rule.on_rewrite == "carry") != bool(rule.carries):
        raise _broken(
            rule,
            f"has on_rewrite={rule.on_rewrite!r} and carries={rule.carries!r}: 'carry' needs the metadata column that "
            "passes the values of rows that move, 'recompute' takes none",
        )
    if rule.carries:
        offered = {r.name: r.type for r in readers if isinstance(r, MetadataColumn)}
        if rule.carries not in offered:
            names = ", ".join(offered) or "none"
            raise _broken(
                rule, f"carries {rule.carries!r}, which no read rule returns as a metadata column; there are: {names}"
            )
        if not same_type(offered[rule.carries], rule.type):
            found = spark_name(offered[rule.carries])
            raise _broken(
                rule, f"is of type {spark_name(rule.type)} and carries {rule.carries!r}, which is of type {found}"
            )


def _check_readers(rule: HiddenColumn, readers: Sequence[ReadRule]) -> None:
    """Reject a column that its readers take for one of another type: what is written could not be read."""
    for reader in readers:
        if isinstance(reader, RowSelector):
            continue
        for leaf in leaves(reader.expression):
            of_this = isinstance(leaf, PhysicalColumn) and leaf.name.lower() == rule.name.lower()
            if isinstance(leaf, PhysicalColumn) and of_this and not same_type(leaf.type, rule.type):
                read = f"a read rule of {reader.feature} reads it as {spark_name(leaf.type)}"
                raise _broken(rule, f"is of type {spark_name(rule.type)}, but {read}")


def _broken(rule: HiddenColumn, what: str) -> HookContractError:
    return HookContractError(
        f"Hidden column {rule.name!r} of feature {rule.feature} {what}.",
        hook="write_rules",
        feature=rule.feature,
        column=rule.name,
    )


def _ordered(fills: Sequence[FillColumn]) -> tuple[FillColumn, ...]:
    """Sort fills so that each follows those whose columns it needs."""
    by_name: dict[str, FillColumn] = {}
    for rule in fills:
        other = by_name.setdefault(rule.column[0], rule)
        if other is not rule:
            raise PluginConflictError(
                f"Features {other.feature} and {rule.feature} both fill column {rule.column[0]!r}.",
                column=rule.column[0],
            )
    done: dict[str, FillColumn] = {}

    def visit(rule: FillColumn, chain: tuple[str, ...]) -> None:
        name = rule.column[0]
        if name in chain:
            raise PluginConflictError(
                f"Columns are computed from each other: {' -> '.join((*chain, name))}.", column=name
            )
        if name not in done:
            for leaf in leaves(rule.expression):
                if isinstance(leaf, Column) and leaf.path[0] in by_name:
                    visit(by_name[leaf.path[0]], (*chain, name))
            done[name] = rule

    for rule in fills:
        visit(rule, ())
    return tuple(done.values())
