"""The clauses of a MERGE: which side a column name belongs to, what each clause assigns, how the schema evolves.

Expressions are bound to one schema of two structs, ``target`` and ``source``, whatever their aliases are: the first
part of a bound column's path is its side.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import (
    ArgumentTypeError,
    ColumnNotFoundError,
    ExpressionError,
    InvalidArgumentError,
    SchemaMismatchError,
    did_you_mean,
)
from delta_core.expressions.ast import (
    Call,
    Column,
    Expression,
    Leaf,
    Literal as Constant,
    all_of,
    column,
    conjuncts,
    leaves,
    transform,
)
from delta_core.expressions.binding import ResultOf, bind_typed, text_hint
from delta_core.expressions.coercion import VOID
from delta_core.expressions.printing import format_sql
from delta_core.expressions.sql import is_default, operator_hint, parse_sql, portable_sql
from delta_core.expressions.typing_rules import Typed
from delta_core.operations.merge.builder import Action, Kind, MergeClause
from delta_core.operations.merge.value_fitting import DEFAULT_RULES, Fitting, FittingRules
from delta_core.runtime.json_text import compact_json
from delta_core.schema.evolution import Accept, merge_rows_schema
from delta_core.schema.fields import Path, Schema, find, format_path
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, spark_name

__all__ = [
    "SOURCE",
    "TARGET",
    "Assignment",
    "BoundClause",
    "MatchCondition",
    "Key",
    "describe_clauses",
    "MergeNames",
    "evolve_schema",
    "on_target",
    "split_condition",
    "sql_text",
]

TARGET, SOURCE = "target", "source"
_BOOLEAN = PrimitiveType("boolean")
#: The sides whose columns a clause may read.
_SIDES: Mapping[str, tuple[str, ...]] = {
    "matched": (TARGET, SOURCE),
    "not_matched": (SOURCE,),
    "not_matched_by_source": (TARGET,),
}
_WHEN = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}
_NOW = ("current_timestamp", "current_date", "localtimestamp", "now", "curdate")


class Assignment(Struct, frozen=True):
    """A value for a column of the table, or for a field within it.

    Parameters
    ----------
    path : Path
        As the table spells it.
    value : Expression
        Of the column's type, unless that is nested.
    """

    path: Path
    value: Expression


class BoundClause(Struct, frozen=True):
    """A clause whose expressions are bound."""

    kind: Kind
    action: Action
    condition: Expression | None
    assignments: tuple[Assignment, ...] = ()

    @property
    def assigned(self) -> frozenset[str]:
        """The columns of the table that it assigns, in part at least."""
        return frozenset(a.path[0] for a in self.assignments)


class Key(Struct, frozen=True):
    """An equality of the condition: rows match only if both sides have the same value.

    Parameters
    ----------
    matches_null : bool
        Whether null equals null (``<=>``).
    """

    target: Expression
    source: Expression
    matches_null: bool

    def as_test(self) -> Expression:
        """Return the equality itself."""
        return Call("<=>" if self.matches_null else "=", (self.target, self.source))


class MatchCondition(Struct, frozen=True):
    """A merge condition by what its parts read.

    Parameters
    ----------
    target_only, source_only, rest : Expression or None
        The other parts that read columns of one side, and of both.
    """

    keys: tuple[Key, ...]
    target_only: Expression | None
    source_only: Expression | None
    rest: Expression | None


class MergeNames:
    """Binds the expressions of one merge.

    Parameters
    ----------
    target, source : StructType
        The columns of both sides.
    is_safe : bool
        Whether an assigned value that does not cast to the column's type becomes null instead of an error.
    default_of : function(Path, updates=bool) -> Expression, optional
        `WritePlan.default_of`, for merges with clauses.
    is_evolving : bool
        Whether a struct may lack fields of the column that it is assigned to.
    unusable : Mapping of str to str
        Further columns of the source, with the reason why no expression can read them.
    rules : FittingRules
        How values become those of structs.

    Raises
    ------
    InvalidArgumentError
        If both sides have the same alias.
    """

    def __init__(
        self,
        target: StructType,
        source: StructType,
        target_alias: str | None,
        source_alias: str | None,
        functions: Mapping[str, ResultOf],
        is_safe: bool = False,
        default_of: Callable[..., Expression | None] | None = None,
        is_evolving: bool = False,
        unusable: Mapping[str, str] = {},
        rules: FittingRules = DEFAULT_RULES,
    ) -> None:
        self._sides = {TARGET: target, SOURCE: source}
        self._aliases = {TARGET: (target_alias or TARGET).lower(), SOURCE: (source_alias or SOURCE).lower()}
        if self._aliases[TARGET] == self._aliases[SOURCE]:
            raise InvalidArgumentError(
                f"Found the alias {target_alias or source_alias!r} for both sides of the merge; each needs its own."
            )
        self._schema = StructType([Field(side, fields, False) for side, fields in self._sides.items()])
        self._functions = functions
        self._default_of = default_of
        self._fitting = Fitting(self._schema, functions, is_safe, is_evolving, rules)
        self._unusable = {name.lower(): why for name, why in unusable.items()}

    def condition(self, predicate: Any) -> Expression:
        """Return the merge condition, bound.

        Raises
        ------
        ColumnNotFoundError, ExpressionError
            A column is on neither side or, without an alias, on both; or the condition is not BOOLEAN.
        """
        return self._boolean(predicate, (TARGET, SOURCE), "The merge condition")

    def clause(self, given: MergeClause) -> BoundClause:
        """Return a clause, bound.

        Raises
        ------
        ExpressionError, ColumnNotFoundError
            As `condition`; and for a column that is assigned twice, or in part by an insert.
        SchemaMismatchError
            If it assigns a column that the table does not have.
        """
        sides, what = _SIDES[given.kind], f"{_WHEN[given.kind]} THEN {given.action.upper()}"
        condition = None if given.predicate is None else self._boolean(given.predicate, sides, what)
        if given.action == "delete":
            return BoundClause(given.kind, given.action, condition)
        assignments = self._star(given, what) if given.updates is None else self._assigned(given, sides, what)
        _check_once(assignments, what)
        if given.action == "insert":
            nested = next((a for a in assignments if len(a.path) > 1), None)
            if nested is not None:
                raise ExpressionError(
                    f"{what} assigns {format_path(nested.path)}; an insert assigns whole columns. Build the struct "
                    "with named_struct, or take it from the source."
                )
        return BoundClause(given.kind, given.action, condition, tuple(assignments))

    def bound(self, given: Any, kind: Kind, name: str | None = None) -> Expression:
        """Return an expression of a clause of a kind, bound; with a name, as the new value of this column.

        Raises
        ------
        ColumnNotFoundError, ExpressionError, SchemaMismatchError
            As of `clause`.
        """
        value = self._bind(given, _SIDES[kind], "The expression")
        try:
            wanted = None if name is None else self.assigned_type(name)
        except ColumnNotFoundError:  # the merge adds it
            wanted = None
        if wanted is None or isinstance(wanted, (StructType, ArrayType, MapType)):
            return value.expression
        return self._fitting.fit(self._own_path(name or ""), value, wanted, None)

    def assigned_type(self, name: str) -> DataType:
        """Return the type of the column, or the field within one, that an assignment names.

        Raises
        ------
        ColumnNotFoundError
            The table does not have it.
        """
        return find(self._sides[TARGET], self._own_path(name))[1].type

    def _own_path(self, name: str) -> Path:
        """Return the path of the column that an assignment names, without the alias of the table."""
        path = _path(name, self._sides[TARGET])
        has_alias = len(path) > 1 and path[0].lower() == self._aliases[TARGET]
        return path[1:] if has_alias and self._sides[TARGET].get(path[1]) is not None else path

    def _boolean(self, given: Any, sides: Sequence[str], what: str) -> Expression:
        try:
            bound = self._bind(given, sides, what)
        except ExpressionError as e:
            hint = operator_hint(given)
            if not hint or hint in e.message:
                raise
            raise type(e)(f"{e.message}{hint}", **e.facts) from e
        if bound.type not in (_BOOLEAN, VOID):
            raise ExpressionError(
                f"{what} needs a BOOLEAN condition, found {spark_name(bound.type)}: {given!r}.{operator_hint(given)}"
            )
        return bound.expression

    def _bind(self, given: Any, sides: Sequence[str], what: str) -> Typed:
        if isinstance(given, str):
            parsed = parse_sql(given, "name")
        elif isinstance(given, get_args(Expression)):
            parsed = given
        else:
            raise ArgumentTypeError(
                f"{what} has an expression of type {type(given).__name__}; expected Spark SQL text or an expression of "
                "delta_core."
            )
        qualified = transform(parsed, lambda leaf: self._qualified(leaf, sides, what))
        return bind_typed(qualified, self._schema, self._functions)

    def _qualified(self, leaf: Leaf, sides: Sequence[str], what: str) -> Expression:
        if not isinstance(leaf, Column):
            return leaf
        path = leaf.path
        if len(path) > 1:
            for side, alias in self._aliases.items():
                if path[0].lower() == alias and self._sides[side].get(path[1]) is not None:
                    if side not in sides:
                        raise ExpressionError(
                            f"{what} reads {format_path(path)}; it has no rows of the {side} to read columns of.",
                            column=format_path(path),
                        )
                    return Column((side, *path[1:]))
        owners = [side for side in sides if self._sides[side].get(path[0]) is not None]
        if len(owners) > 1:
            raise ExpressionError(
                f"{what} reads {format_path(path)}, a column of the table and of the source. Write "
                f"{self._aliases[TARGET]}.{format_path(path)} or {self._aliases[SOURCE]}.{format_path(path)}.",
                column=format_path(path),
            )
        if owners:
            return Column((owners[0], *path))
        if len(path) == 1 and path[0].lower() in _NOW:
            return leaf
        known = [f"{self._aliases[side]}.{f.name}" for side in sides for f in self._sides[side].members]
        why = self._unusable.get(path[-1 if path[0].lower() == self._aliases[SOURCE] else 0].lower())
        if why is not None and SOURCE in sides:
            raise SchemaMismatchError(
                f"{what} reads {format_path(path)} of the source. {why}", column=format_path(path)
            )
        raise ColumnNotFoundError(
            f"{what} reads {format_path(path)}, which is no column; there are: {', '.join(known[:40])}."
            f"{did_you_mean(format_path(path), known)}{text_hint(format_path(path))}",
            column=format_path(path),
        )

    def _star(self, given: MergeClause, what: str) -> list[Assignment]:
        """Return what a clause over all columns assigns: those of the source that the table has."""
        table, source = self._sides[TARGET], self._sides[SOURCE]
        for name in given.except_columns:
            if table.get(name) is None and source.get(name) is None and name.lower() not in self._unusable:
                raise ColumnNotFoundError(
                    f"{what} leaves out {name!r}, which is no column of the table or the source."
                    f"{did_you_mean(name, source.names)}",
                    column=name,
                )
        excluded = {n.lower() for n in given.except_columns}
        chosen = [f for f in source.members if f.name.lower() not in excluded and table.get(f.name) is not None]
        if not chosen:
            raise SchemaMismatchError(
                f"{what} for all columns assigns nothing: none of the source's columns {', '.join(source.names[:20])} "
                f"is one of the table's, {', '.join(table.names[:20])}. Rename them, name the columns and their "
                "values, or add the columns to the table (merge_schema=True)."
            )
        is_update = given.action == "update"
        return [self._assignment((f.name,), Typed(Column((SOURCE, f.name)), f.type), is_update) for f in chosen]

    def _assigned(self, given: MergeClause, sides: Sequence[str], what: str) -> list[Assignment]:
        made = []
        for name, value in (given.updates or {}).items():
            own = self._own_path(name)
            if is_default(value) and self._default_of is not None:
                spelled = self._assignment(own, Typed(Constant(None), VOID)).path
                default = self._default_of(spelled, updates=given.action == "update")
                # what is filled if it is left out is left out
                made += [] if default is None else [Assignment(spelled, default)]
                continue
            made.append(self._assignment(own, self._bind(value, sides, f"The value of {name} in {what}")))
        return made

    def _assignment(self, path: Path, value: Typed, keeps: bool = False) -> Assignment:
        try:
            own, found = find(self._sides[TARGET], path)
        except ColumnNotFoundError as e:
            raise SchemaMismatchError(
                f"The merge assigns {format_path(path)}, which the table does not have: {e.message} Leave it out, or "
                "add it to the table with merge_schema=True.",
                column=format_path(path),
            ) from e
        kept = Typed(Column((TARGET, *own)), found.type) if keeps else None
        return Assignment(own, self._fitting.fit(own, value, found.type, kept))


def _check_once(assignments: Sequence[Assignment], what: str) -> None:
    """Reject two values for one column, or for a struct and a field of it."""
    paths = sorted(a.path for a in assignments)
    for first, second in itertools.pairwise(paths):
        if second[: len(first)] == first:
            raise ExpressionError(f"{what} assigns {format_path(first)} twice (also as {format_path(second)}).")


def evolve_schema(table: Schema, source: StructType, clauses: Sequence[MergeClause], accept: Accept) -> Schema:
    """Return the table's schema with the columns that the clauses assign and only the source has.

    Clauses over all columns add and widen every column of the source; those that name columns add and widen the ones
    that they name, if the source has columns of these names, and fields within them.

    Raises
    ------
    SchemaMismatchError
        If a column is a struct, list or map on one side only.
    """
    added: set[str] = set()
    paths: list[Path] = []
    for clause in clauses:
        if clause.is_star:
            added |= {f.name.lower() for f in source.members} - {n.lower() for n in clause.except_columns}
        elif clause.updates is not None:
            paths += [_without_alias(_path(n, table, source), table, source) for n in clause.updates]
    chosen = [f for f in source.members if f.name.lower() in added]
    for path in paths:
        found = _named(StructType(list(table.members)), StructType(list(source.members)), path)
        if found is not None and path[0].lower() not in added:
            table = merge_rows_schema(table, Schema([found]), accept)
    return merge_rows_schema(table, Schema(chosen), accept) if chosen else table


def _path(name: str, *sides: StructType) -> Path:
    """Return the path that an assignment names; a column whose own name has dots or quotes wins."""
    return column(name).path if all(side.get(name) is None for side in sides) else (name,)


def _without_alias(path: Path, table: Schema, source: StructType) -> Path:
    names = {f.name.lower() for f in (*table.members, *source.members)}
    return path[1:] if len(path) > 1 and path[0].lower() not in names else path


def _named(table: StructType, source: StructType, path: Path) -> Field | None:
    """Return the source's column that an assignment names, with the fields on its path; None if it changes nothing."""
    own, found = ({f.name.lower(): f for f in t.members}.get(path[0].lower()) for t in (table, source))
    if found is None:
        return None
    if len(path) == 1:
        is_value = own is not None and isinstance(own.type, PrimitiveType)
        return None if is_value and not isinstance(found.type, PrimitiveType) else found
    if own is None or not isinstance(own.type, StructType) or not isinstance(found.type, StructType):
        return None
    inner = _named(own.type, found.type, path[1:])
    return None if inner is None else replace(found, type=StructType([inner]))


def split_condition(condition: Expression) -> MatchCondition:
    """Return the parts of a merge condition, which all have to be true."""
    keys: list[Key] = []
    parts: dict[str, list[Expression]] = {TARGET: [], SOURCE: [], "": []}
    for part in conjuncts(condition):
        key = _key(part)
        sides = _sides_of(part)
        if key is not None:
            keys.append(key)
        else:
            parts[next(iter(sides)) if len(sides) == 1 else ""].append(part)
    return MatchCondition(tuple(keys), all_of(parts[TARGET]), all_of(parts[SOURCE]), all_of(parts[""]))


def _key(part: Expression) -> Key | None:
    if not isinstance(part, Call) or part.function not in ("=", "<=>") or len(part.args) != 2:
        return None
    a, b = part.args
    if (_sides_of(a), _sides_of(b)) == ({SOURCE}, {TARGET}):
        a, b = b, a
    if (_sides_of(a), _sides_of(b)) != ({TARGET}, {SOURCE}):
        return None
    return Key(a, b, part.function == "<=>")


def _sides_of(expression: Expression) -> set[str]:
    return {leaf.path[0] for leaf in leaves(expression) if isinstance(leaf, Column)}


def on_target(expression: Expression) -> Expression:
    """Return an expression over columns of the target as one over the table's own columns."""

    def own(leaf: Leaf) -> Expression:
        return Column(leaf.path[1:]) if isinstance(leaf, Column) else leaf

    return transform(expression, own)


def describe_clauses(clauses: Sequence[MergeClause], kind: Kind) -> str:
    """Return the clauses of a kind as delta-spark writes them into a commit."""

    def shown(clause: MergeClause) -> dict[str, str]:
        condition = {} if clause.predicate is None else {"predicate": sql_text(clause.predicate)}
        return {**condition, "actionType": clause.action}

    return compact_json([shown(c) for c in clauses if c.kind == kind])


def sql_text(given: Any) -> str:
    """Return an expression as text."""
    return portable_sql(given, "name") if isinstance(given, str) else format_sql(given)
