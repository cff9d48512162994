"""plan_scan: what is requested and what the features' rules specify, composed into one ReadPlan.

Columns are looked up ignoring case. A dotted name reaches into structs and returns the struct with only the
fields that were queried, in the schema's order, as pyarrow's Parquet reader does: ``["a.b"]`` returns ``a: {b}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import ColumnNotFoundError, InvalidArgumentError, PluginConflictError, did_you_mean
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    Expression,
    FileConstant,
    Leaf,
    Literal as LiteralValue,
    PartitionValue,
    PhysicalColumn,
    RowPosition,
    all_of,
    column,
    conjuncts,
    leaves,
    transform,
)
from delta_core.expressions.binding import bind, bind_rule
from delta_core.expressions.coercion import canonical
from delta_core.expressions.functions import can_test_files
from delta_core.expressions.raising import may_raise, raising_last, types_in
from delta_core.expressions.skipping import SkippingPlan, implied_by, plan_skipping
from delta_core.kernel import plugins
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import MetadataColumn, ReadCheck, ReadRule, RowFilter, RowSelector
from delta_core.kernel.plugins.state import TableState
from delta_core.runtime.arguments import check_names
from delta_core.scan.projection import Tree, add_path, prune
from delta_core.scan.sources import ConstantSource, PhysicalSource, PositionSource, Source
from delta_core.schema.fields import FIELD_ID, ColumnMap, Path, arrow_schema, find, format_path, without_void
from delta_core.schema.types import DataType, Field, PrimitiveType, StructType

__all__ = [
    "FILE_PATH",
    "ROW_INDEX",
    "Output",
    "ReadPlan",
    "plan_row_groups",
    "plan_scan",
    "plan_table_skipping",
    "resolve_columns",
]

FILE_PATH = "_file_path"
ROW_INDEX = "_file_row_index"
#: The file constant of `FILE_PATH`: no column of the log, made if files are read.
LOCATION = FileConstant("_file_path", PrimitiveType("string"))
_VOID = PrimitiveType("void")
_BOOLEAN = PrimitiveType("boolean")
_NULL_TESTS = ("isnull", "isnotnull")


class Output(Struct, frozen=True, gc=False):
    """One column that is handed out: a source as it is, or an expression."""

    field: pa.Field
    value: Source | Expression


class ReadPlan(Struct, frozen=True):
    """How physical batches become the rows that were requested.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows handed out.
    outputs : tuple of Output
        Parallel to ``schema``.
    columns : StructType
        The physical columns to read; ``physical`` holds their Arrow types and ``logical`` their Arrow types under
        logical names, in the same order.
    match : "name" or "id"
    constants : tuple of FileConstant or PartitionValue
        The values per file that outputs and expressions need.
    selectors, checks, filter
        Run in this order: dropped rows are not checked, and every row that is left is checked before any filter.
    sources : Mapping of Leaf to Source
        Where each leaf of the expressions comes from; ``types`` holds its Arrow type.
    pruning : Expression or None
        The conditions of a row that is returned: predicate and row filters, for skipping files and row groups.
    limit : int or None
    condition : Expression or None
        ``filter`` over the columns of the table.
    decoded : tuple of str
        The columns of the table that ``outputs``, ``checks`` or ``filter`` use, and that files store in another form.
    """

    schema: pa.Schema
    outputs: tuple[Output, ...]
    columns: StructType
    physical: pa.Schema
    logical: pa.Schema
    match: Literal["name", "id"]
    constants: tuple[FileConstant | PartitionValue, ...]
    selectors: tuple[RowSelector, ...]
    checks: tuple[ReadCheck, ...]
    filter: Expression | None
    sources: Mapping[Leaf, Source]
    types: Mapping[Leaf, pa.DataType]
    pruning: Expression | None
    limit: int | None = None
    condition: Expression | None = None
    decoded: tuple[str, ...] = ()


def resolve_columns(schema: StructType, names: Iterable[str | Path]) -> tuple[Path, ...]:
    """Return the paths of column names, spelled as the schema does.

    A name is a column's, or dotted with backticks around parts that hold dots; a column whose own name holds the dots
    wins.

    Raises
    ------
    ColumnNotFoundError
        For a column that the table lacks.
    InvalidArgumentError
        For a column named twice.
    """
    check_names("columns", names)
    found: dict[Path, None] = {}
    for name in names:
        if isinstance(name, str):
            whole = schema.get(name)
            path = (whole.name,) if whole is not None else find(schema, column(name).path or (name,))[0]
        elif isinstance(name, (tuple, list)):
            path = find(schema, tuple(name))[0]
        else:
            raise InvalidArgumentError(f"Found {name!r} in columns, expected a name, or a tuple of names.")
        if path in found:
            raise InvalidArgumentError(f"Column {format_path(path)} is requested twice.", column=format_path(path))
        found[path] = None
    return tuple(found)


def plan_table_skipping(table: TableState, predicate: Expression | None) -> SkippingPlan:
    """Plan which files of a table a predicate needs.

    Parameters
    ----------
    table : TableState
        The table. Bounds of columns that files store in another form are ignored, unless the log has those of values.
    predicate : Expression or None
        Bound to the table's schema.
    """
    without_bounds = frozenset(name for name, rule in table.encodings.items() if not rule.statistics)
    return plan_skipping(predicate, table.schema, table.column_map, table.partition_columns, without_bounds)


def plan_row_groups(table: TableState, predicate: Expression | None, files: SkippingPlan) -> Expression | None:
    """Return the test of row groups; None if there is none.

    Parameters
    ----------
    table : TableState
        The table. Row groups have bounds of what is stored, also if the log has those of values.
    predicate : Expression or None
        Bound to the table's schema.
    files : SkippingPlan
        The result of `plan_table_skipping` for the predicate.
    """
    if not any(rule.statistics for rule in table.encodings.values()):
        return files.row_groups
    encoded = frozenset(table.encodings)
    return plan_skipping(predicate, table.schema, table.column_map, table.partition_columns, encoded).row_groups


def offered_metadata(rules: Iterable[ReadRule]) -> dict[str, MetadataColumn]:
    """Return the metadata columns that can be requested, by name.

    Raises
    ------
    PluginConflictError
        If two rules claim one name.
    """
    offered: dict[str, MetadataColumn] = {
        FILE_PATH: MetadataColumn("delta_core", FILE_PATH, LOCATION.type, LOCATION),
        ROW_INDEX: MetadataColumn("delta_core", ROW_INDEX, PrimitiveType("long"), RowPosition()),
    }
    for rule in rules:
        if isinstance(rule, MetadataColumn) and offered.setdefault(rule.name, rule) is not rule:
            raise PluginConflictError(
                f"The metadata column {rule.name!r} is claimed by {offered[rule.name].feature} and {rule.feature}.",
                column=rule.name,
            )
    return offered


def plan_scan(
    table: TableState,
    request: ReadRequest,
    rules: Sequence[ReadRule],
    *,
    functions: Mapping[str, object] | None = None,
    constants: Mapping[str, tuple[str | Expression, DataType]] | None = None,
    limit: int | None = None,
    prunes_files: bool = True,
) -> ReadPlan:
    """Compose a request with the features' rules.

    Parameters
    ----------
    table : TableState
        The table's schema and features.
    request : ReadRequest
        With paths as the schema spells them (`resolve_columns`) and a bound predicate.
    rules : sequence of ReadRule
        The answer of the hook ``read_rules``.
    functions : Mapping, optional
        Functions of plugins by lower-case name.
    constants : Mapping, optional
        Further output columns: name to (column of the file table or expression, type).
    limit : int, optional
        The most rows that are returned; all unless given.
    prunes_files : bool
        Whether the files are chosen by ``pruning`` before they are read, so that what partition values alone decide
        need not be evaluated for rows again.

    Raises
    ------
    ColumnNotFoundError
        A metadata column that no feature offers.
    InvalidArgumentError
        A metadata column whose name is a column of the table, which stays readable as such.
    PluginConflictError
        Two rules claim one metadata column.
    """
    return _Planner(table, request, rules, functions or {}).plan(constants or {}, limit, prunes_files)


class _Planner:
    def __init__(
        self, table: TableState, request: ReadRequest, rules: Sequence[ReadRule], functions: Mapping[str, object]
    ) -> None:
        self.table = table
        self.request = request
        self.map: ColumnMap = table.column_map
        self.partitions = {name.lower() for name in table.partition_columns}
        #: How columns that files store in another form are decoded, by logical and by physical name.
        self.decoded = {name: plugins.checked_decode(rule) for name, rule in table.encodings.items()}
        self.encoded = {self.map.physical_path(table.schema, (name,))[0]: e for name, e in self.decoded.items()}
        self.functions = functions
        self.type_of = types_in(table.schema)
        self.rules = [self._bound(r) for r in rules]
        self.trees: dict[str, Tree] = {}
        self.hidden: dict[str, PhysicalColumn] = {}
        self.constants: dict[FileConstant | PartitionValue, int] = {}
        self.nested: dict[str, StructType] = {}

    def _bound(self, rule: ReadRule) -> ReadRule:
        if isinstance(rule, RowSelector):
            return rule
        wanted = rule.type if isinstance(rule, MetadataColumn) else _BOOLEAN
        name = "" if isinstance(rule, RowFilter) else f" {rule.name!r}"
        expression = bind_rule(
            rule.feature,
            "read_rules",
            f"{type(rule).__name__}{name}",
            rule.expression,
            self.table.schema,
            self.functions,  # type: ignore[arg-type]  # a plan looks at no function, it only hands them on
            wanted,
        )
        return replace(rule, expression=expression)

    def _bind(self, expression: Expression) -> Expression:
        # a plan looks at no function, it only hands them on
        return bind(expression, self.table.schema, self.functions)  # type: ignore[arg-type]

    def plan(
        self, constants: Mapping[str, tuple[str | Expression, DataType]], limit: int | None, prunes_files: bool
    ) -> ReadPlan:
        checks = tuple(r for r in self.rules if isinstance(r, ReadCheck))
        filters = [r.expression for r in self.rules if isinstance(r, RowFilter)]
        pruning = all_of([*([self.request.predicate] if self.request.predicate is not None else []), *filters])
        condition = self._condition(raising_last(conjuncts(pruning), self.type_of), prunes_files)
        extra = {n: (FileConstant(v, t) if isinstance(v, str) else self._bind(v), t) for n, (v, t) in constants.items()}
        extra |= self._metadata()
        own_condition = condition
        if self.encoded:
            checks = tuple(replace(c, expression=self._decoded(c.expression)) for c in checks)
            condition = all_of([self._decoded(part) for part in conjuncts(condition)])
            extra = {n: (self._decoded(e), t) for n, (e, t) in extra.items()}
        wanted = self._output_columns()
        if self.request.columns is None:
            self._need_all()
        else:
            for path in wanted:
                self._need(path)
        expressions = [c.expression for c in checks] + ([condition] if condition is not None else [])
        expressions += [e for e, _ in extra.values()]
        if self.encoded:
            expressions += [self.decoded[p[0]] for p in wanted if p[0] in self.decoded]
        used = list(dict.fromkeys(leaf for e in expressions for leaf in leaves(e)))
        for leaf in used:
            self._need_leaf(leaf)
        columns, logical = self._physical_columns()
        sources = {leaf: self._source(leaf) for leaf in used}
        schema, outputs = self._outputs(wanted, extra)
        return ReadPlan(
            schema,
            tuple(outputs),
            columns,
            arrow_schema(columns, self.table.types),
            arrow_schema(logical, self.table.types),
            self.map.match,
            tuple(self.constants),
            tuple(r for r in self.rules if isinstance(r, RowSelector)),
            checks,
            condition,
            sources,
            {leaf: self._type(leaf) for leaf in used},
            pruning,
            limit,
            own_condition,
            tuple(name for name, e in self.decoded.items() if set(leaves(e)) & set(used)),
        )

    def _decoded(self, expression: Expression) -> Expression:
        """Return an expression over the columns of files: those that are encoded are decoded in it.

        Tests for null are over what files store, which is null in the same rows.
        """

        def change(leaf: Leaf) -> Expression:
            if isinstance(leaf, Column):
                return self.decoded.get(leaf.path[0], leaf)
            return self.encoded.get(leaf.name, leaf) if isinstance(leaf, PhysicalColumn) else leaf

        def null_test(call: Call) -> Expression | None:
            leaf = call.args[0] if call.function in _NULL_TESTS else None
            if not isinstance(leaf, (Column, PhysicalColumn)):
                return None
            decode = change(leaf)
            return None if decode is leaf else replace(call, args=leaves(decode), sql="")

        # an expression without encoded columns stays the same object, by which reports recognize it
        is_changed = any(change(leaf) is not leaf for leaf in leaves(expression))
        return transform(expression, change, null_test) if is_changed else expression

    def _condition(self, parts: Sequence[Expression], prunes_files: bool) -> Expression | None:
        """Return the condition on rows: what files are not chosen by, as `plan_skipping` chooses them."""
        is_exact = all(map(self._is_of_partitions, parts))
        left: list[Expression] = []
        for part in parts:
            raises = may_raise(part, self.type_of)
            if prunes_files and self._is_of_partitions(part) and (is_exact or not raises):
                continue
            left += [part] if raises else [*self._implied_by(part), part]
        return all_of(left)

    def _implied_by(self, part: Expression) -> list[Expression]:
        """Return comparisons that an engine can test while it decodes values, before it evaluates a part."""
        return [] if self._is_of_partitions(part) else implied_by(part, self._type_of)

    def _type_of(self, column: Column) -> DataType | None:
        if column.path[0].lower() in self.partitions or column.path[0] in self.table.encodings:
            return None
        return canonical(find(self.table.schema, column.path)[1].type)

    def _is_of_partitions(self, expression: Expression) -> bool:
        return can_test_files(expression) and all(
            isinstance(leaf, PartitionValue) or (isinstance(leaf, Column) and leaf.path[0].lower() in self.partitions)
            for leaf in leaves(expression)
        )

    # --- what is handed out ---

    def _output_columns(self) -> tuple[Path, ...]:
        if self.request.columns is not None:
            return self.request.columns
        return tuple((f.name,) for f in self.table.schema.members)

    def _metadata(self) -> dict[str, tuple[Expression, DataType]]:
        """Return the metadata columns requested, by the names that they are offered under."""
        offered = offered_metadata(self.rules)
        found = {}
        for name in self.request.metadata:
            own = self.table.schema.get(name)
            if own is not None:
                raise InvalidArgumentError(
                    f"The table has a column {own.name!r} of its own: request it in columns. The metadata column of "
                    "that name is not available.",
                    column=name,
                )
            if name not in offered:
                raise ColumnNotFoundError(
                    f"Metadata column {name!r} is not offered; this table has: {', '.join(sorted(offered))}."
                    f"{did_you_mean(name, offered)}",
                    column=name,
                )
            found[name] = (offered[name].expression, offered[name].type)
        return found

    def _outputs(
        self, wanted: Sequence[Path], extra: Mapping[str, tuple[Expression, DataType]]
    ) -> tuple[pa.Schema, list[Output]]:
        trees: dict[str, Tree] = {}
        struct: StructType = self.table.schema
        if self.request.columns is None:
            trees = dict.fromkeys(struct.names)
        else:
            for path in wanted:
                trees[path[0]] = add_path(trees.get(path[0], {}), path[1:])
            fields = []
            for name, tree in trees.items():
                logical = self._logical(name)
                own = prune(logical.type, logical.type, tree)[0]
                fields.append(logical if own is logical.type else Field(name, own, logical.nullable))
            struct = StructType(fields)
        schema = arrow_schema(struct, self.table.types)
        outputs = [Output(f, self._column_value(f.name)) for f in schema]
        if not extra:
            return schema, outputs
        for name, (expression, t) in extra.items():
            if name in trees:
                raise InvalidArgumentError(f"Two columns of the result are named {name!r}.", column=name)
            f = arrow_schema(StructType([Field(name, t)]), self.table.types).field(0)
            outputs.append(Output(f, self._value(expression)))
        return pa.schema([o.field for o in outputs]), outputs

    def _value(self, expression: Expression) -> Source | Expression:
        """Return the source of an expression that is a leaf, else the expression."""
        is_made = isinstance(expression, (Call, Cast, LiteralValue))
        return expression if is_made else self._source(expression)

    # --- what is read ---

    def _need(self, path: Path) -> None:
        name = path[0]
        if name.lower() in self.partitions:
            self._constant(self._partition(name))
        elif name in self.table.encodings:
            return  # the leaves of its decoding are needed
        elif self._logical(name).type != _VOID:
            self.trees[name] = add_path(self.trees.get(name, {}), self._stored(path)[1:])

    def _stored(self, path: Path) -> Path:
        """Return a path, or the first struct above it that files contain: it shows where a void within it is null."""
        while len(path) > 1 and without_void(find(self.table.schema, path)[1].type) is None:
            path = path[:-1]
        return path

    def _need_all(self) -> None:
        for f in self.table.schema.members:
            if self.partitions and f.name.lower() in self.partitions:
                self._constant(self._partition(f.name))
            elif f.type != _VOID and f.name not in self.table.encodings:
                self.trees[f.name] = None

    def _need_leaf(self, leaf: Leaf) -> None:
        if isinstance(leaf, Column):
            self._need(leaf.path)
        elif isinstance(leaf, PhysicalColumn):
            own = self._own_column(leaf)
            if own is None:
                self.hidden[leaf.name] = leaf
            else:
                self._need((own,))
        elif isinstance(leaf, (FileConstant, PartitionValue)):
            self._constant(leaf)
        elif not isinstance(leaf, RowPosition):
            raise InvalidArgumentError(f"A scan can't evaluate {leaf}: it represents what is written.")

    def _own_column(self, leaf: PhysicalColumn) -> str | None:
        """Return the name of the table's column that a rule reads under its physical name."""
        if leaf.name in self.encoded:
            return None
        pairs = zip(self.table.schema.members, self.map.physical.members, strict=True)
        return next((a.name for a, b in pairs if b.name == leaf.name and a.type == leaf.type != _VOID), None)

    def _constant(self, leaf: FileConstant | PartitionValue) -> int:
        return self.constants.setdefault(leaf, len(self.constants))

    def _logical(self, name: str) -> Field:
        found = self.table.schema.get(name)
        assert found is not None
        return found

    def _partition(self, name: str) -> PartitionValue:
        physical = self.map.physical_path(self.table.schema, (name,))
        return PartitionValue(physical[0], self._logical(name).type)

    def _physical_columns(self) -> tuple[StructType, StructType]:
        """Return the physical columns to read, and the same under logical names, in the table's order."""
        pairs = zip(self.table.schema.members, self.map.physical.members, strict=True)
        if (
            not self.hidden
            and len(self.trees) == len(self.table.schema)
            and all(tree is None for tree in self.trees.values())
            and all(own.nullable == stored.nullable for own, stored in pairs)
        ):
            self.positions = {name: i for i, name in enumerate(self.table.schema.names)}
            self.pruned: StructType = self.table.schema
            return self.map.physical, self.pruned
        physical: list[Field] = []
        logical: list[Field] = []
        for own, stored in zip(self.table.schema.members, self.map.physical.members, strict=True):
            if own.name in self.trees:
                own_type, stored_type = prune(own.type, stored.type, self.trees[own.name])
                logical.append(Field(own.name, own_type, own.nullable))
                physical.append(Field(stored.name, stored_type, own.nullable, stored.metadata))
        self.positions = {f.name: i for i, f in enumerate(logical)}
        self.pruned = StructType(logical)
        for leaf in self.hidden.values():
            metadata = {} if leaf.field_id is None else {FIELD_ID: leaf.field_id}
            physical.append(Field(leaf.name, leaf.type, True, metadata))
        hidden = [Field(leaf.name, leaf.type) for leaf in self.hidden.values()]
        return StructType(physical), StructType([*logical, *hidden])

    def _source(self, leaf: Expression) -> Source:
        if isinstance(leaf, Column):
            found = self._column_source(leaf.path[0])
            if len(leaf.path) > 1 and isinstance(found, PhysicalSource):
                return PhysicalSource(found.index, self._child_numbers(leaf.path))
            return found
        if isinstance(leaf, PhysicalColumn):
            own = self._own_column(leaf)
            if own is not None:
                return PhysicalSource(self.positions[own])
            return PhysicalSource(len(self.positions) + list(self.hidden).index(leaf.name))
        if isinstance(leaf, RowPosition):
            return PositionSource()
        assert isinstance(leaf, (FileConstant, PartitionValue))
        return ConstantSource(self.constants[leaf])

    def _column_value(self, name: str) -> Source | Expression:
        """Return where a column of the table comes from, or how it is decoded."""
        decode = self.decoded.get(name)
        return self._column_source(name) if decode is None else self._value(decode)

    def _column_source(self, name: str) -> Source:
        """Return where a column of the table that is not encoded comes from."""
        if self.partitions and name.lower() in self.partitions:
            return ConstantSource(self.constants[self._partition(name)])
        position = self.positions.get(name)
        return ConstantSource(None) if position is None else PhysicalSource(position)

    def _child_numbers(self, path: Path) -> tuple[int, ...]:
        numbers = []
        current: DataType = self.pruned.members[self.positions[path[0]]].type
        for part in path[1:]:
            if not isinstance(current, StructType):
                raise InvalidArgumentError(f"{format_path(path)} reaches into a list or map, which no expression can.")
            place = current.index(part)
            assert place is not None  # bound to the schema
            numbers.append(place)
            current = current.members[place].type
        return tuple(numbers)

    def _type(self, leaf: Leaf) -> pa.DataType:
        if isinstance(leaf, Column):
            t: DataType = (
                find(self.pruned, leaf.path)[1].type
                if leaf.path[0] in self.positions
                else find(self.table.schema, leaf.path)[1].type
            )
        else:
            t = PrimitiveType("long") if isinstance(leaf, RowPosition) else leaf.type  # type: ignore[union-attr]  # others are typed
        return arrow_schema(StructType([Field("x", t)]), self.table.types).field(0).type
