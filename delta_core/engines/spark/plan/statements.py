"""Statements that change rows, as Spark's parser reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from pyspark.sql import Column, DataFrame

from delta_core.errors import UnsupportedExpressionError, UnsupportedOperationError
from delta_core.schema.fields import Path

__all__ = [
    "Delete",
    "Insert",
    "Merge",
    "MergePart",
    "NamedRelation",
    "ParsedStatement",
    "Statement",
    "Update",
    "class_name",
    "elements",
    "items",
    "named_relations",
    "parse_statement",
    "read_statement",
    "run_query",
    "texts",
]

#: Values by the parts of a column's name.
Assignments: TypeAlias = Sequence[tuple[Path, str]]


class Delete(Struct, frozen=True, kw_only=True):
    """DELETE FROM; a condition is SQL text, None for all rows."""

    target: Path
    alias: str | None = None
    condition: str | None = None


class Update(Delete, frozen=True, kw_only=True):
    """UPDATE ... SET."""

    values: Assignments


class MergePart(Struct, frozen=True):
    """A WHEN clause; ``values`` None for ``*``."""

    kind: Literal["matched", "not_matched", "not_matched_by_source"]
    action: Literal["update", "delete", "insert"]
    condition: str | None
    values: Assignments | None


class Merge(Struct, frozen=True, kw_only=True):
    """MERGE INTO; ``source`` is a plan of Spark that is not analysed."""

    target: Path
    alias: str | None
    source: Any
    condition: str
    parts: Sequence[MergePart]
    is_evolving: bool


class Insert(Struct, frozen=True, kw_only=True):
    """INSERT.

    Parameters
    ----------
    target : Path
        The table.
    query : object
        A plan of Spark that is not analysed.
    columns : sequence of str
        Of the table, by the places of those of the query; empty: all.
    partition : Mapping of str to (str or None)
        Values of partition columns; None: the query has it.
    is_overwrite, is_by_name, is_evolving : bool
        OVERWRITE; whether columns are matched by name; WITH SCHEMA EVOLUTION.
    replace_where : str or Column, optional
        The rows that are replaced, as SQL text or as a Column of the table; None: all.
    replace_using : sequence of str
        The columns whose equal values choose the rows that are replaced.
    is_dynamic : bool, optional
        Whether an overwrite replaces the partitions of its rows; what the session specifies if None.
    arguments : Mapping
        Further arguments of `write`.
    """

    target: Path
    query: Any
    columns: Sequence[str] = ()
    partition: Mapping[str, str | None] = field(default_factory=dict)
    is_overwrite: bool = False
    is_by_name: bool = False
    is_frame: bool = False
    is_evolving: bool = False
    replace_where: str | Column | None = None
    replace_using: Sequence[str] = ()
    is_dynamic: bool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


Statement: TypeAlias = Delete | Update | Merge | Insert


class ParsedStatement(Struct, frozen=True):
    """A statement whose parts are not yet read, since only the tables of this library limit what they may contain.

    Parameters
    ----------
    target : Path
        The table that it changes.
    read : function() -> Statement
        Returns the parts; UnsupportedOperationError for what is not possible on the tables of this library,
        UnsupportedExpressionError if it contains a parameter, or a subquery outside of the values of an UPDATE.
    """

    target: Path
    read: Callable[[], Statement]


def parse_statement(spark: Any, text: str) -> ParsedStatement | None:
    """Parse a statement that changes rows of one table; None for any other statement.

    Raises
    ------
    ParseException
        Spark can't parse it.
    """
    parsing = _Parsing(spark, spark._jsparkSession.sessionState().sqlParser().parsePlan(text), text)
    plan = parsing.plan
    inner = plan.child() if class_name(plan) == "UnresolvedWith" else plan
    table = _TABLES.get(class_name(inner))
    found = None if table is None else _target(getattr(inner, table)())
    return None if found is None else ParsedStatement(found[0], lambda: parsing.statement(inner, found[0], found[1]))


def read_statement(spark: Any, node: Any, target: Path) -> tuple[Statement, Mapping[str, str]]:
    """Return a statement of a plan that Spark has not analysed yet, and the options of its rows' writer.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    node : object
        A node that changes rows, from a statement or made by Spark's writers.
    target : Path
        The table that it changes.

    Raises
    ------
    UnsupportedOperationError, UnsupportedExpressionError
        As of `ParsedStatement.read`.
    """
    text = node.origin().sqlText()
    table = _target(getattr(node, _TABLES[class_name(node)])())
    alias = None if table is None else table[1] or table[0][-1]
    found = _Parsing(spark, node, str(text.get()) if text.isDefined() else "").statement(node, target, alias)
    return found, _options(node)


def _options(node: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    if "writeOptions" in elements(node):
        found = texts(node.writeOptions())
    relation = node.table() if class_name(node) == "InsertIntoStatement" else None
    if relation is not None and class_name(relation) == "UnresolvedRelation":
        own = relation.options()
        # a mark of Spark's, of what the statement may do
        found |= {str(name): str(own.get(name)) for name in own.keySet() if not str(name).startswith("__required")}
    return found


def texts(found: Any) -> dict[str, str]:
    """Return a map of Scala from text to text."""
    return {str(pair._1()): str(pair._2()) for pair in items(found.toSeq())}


def run_query(spark: Any, plan: Any) -> DataFrame:
    """Return the rows of a plan that is not analysed."""
    return DataFrame(spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


#: Words before or after a name that can't have an alias there.
_TABLE, _SAMPLE = re.compile(r"\btable\s+\Z", re.IGNORECASE), re.compile(r"\s+tablesample\b", re.IGNORECASE)


class NamedRelation(Struct, frozen=True):
    """A name in the query part of a statement, which may be that of a table, a view or a common table expression.

    Parameters
    ----------
    parts : Path
        The parts of the name.
    start, stop : int
        Its place in the text.
    end : int
        Where the clause of a version ends that follows it, or the name itself.
    has_alias : bool
        Whether it has an alias, or is at a place where it can't have one.
    """

    parts: Path
    start: int
    stop: int
    end: int
    has_alias: bool


def named_relations(spark: Any, text: str) -> list[NamedRelation]:
    """Return the names that a statement reads, but for common table expressions; in the order of the text.

    The table that a statement changes is not among them. A text that Spark can't parse has none.
    """
    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except Exception:  # noqa: BLE001 (Spark reports it when the statement runs)
        return []
    found: list[NamedRelation] = []
    expressions: set[str] = set()
    _collect(plan, text, found, expressions, has_alias=False)
    names = {r.start: r for r in found if len(r.parts) > 1 or r.parts[0].lower() not in expressions}
    return [names[start] for start in sorted(names)]


def _collect(node: Any, text: str, found: list[NamedRelation], expressions: set[str], has_alias: bool) -> None:
    kind = class_name(node)
    if kind in ("UnresolvedRelation", "RelationTimeTravel"):
        _add_relation(node, text, found, has_alias)
        return
    children = list(items(node.children()))
    if kind in _TABLES and kind not in _INSERTS:
        children = children[1:]  # the first one is the table that the statement changes
    if kind == "UnresolvedWith":
        queries = [pair._2() for pair in items(node.cteRelations())]
        expressions.update(str(q.alias()).lower() for q in queries)
        children += queries
    for child in (*children, *items(node.subqueries())):
        _collect(child, text, found, expressions, kind == "SubqueryAlias" or (has_alias and kind == "Sample"))


def _add_relation(node: Any, text: str, found: list[NamedRelation], has_alias: bool) -> None:
    relation = node if class_name(node) == "UnresolvedRelation" else node.relation()
    if class_name(relation) != "UnresolvedRelation":
        return
    start, stop = relation.origin().startIndex(), relation.origin().stopIndex()
    end = node.origin().stopIndex()
    if start.isDefined() and stop.isDefined() and end.isDefined():
        first, last, after = int(start.get()), int(stop.get()) + 1, int(end.get()) + 1
        no_alias = _TABLE.search(text[:first]) or _SAMPLE.match(text[after:])
        parts = tuple(str(p) for p in items(relation.multipartIdentifier()))
        found.append(NamedRelation(parts, first, last, after, has_alias or no_alias is not None))


class _Parsing:
    def __init__(self, spark: Any, plan: Any, statement: str) -> None:
        self._spark, self._statement, self.plan = spark, statement, plan
        self._parser = spark._jsparkSession.sessionState().sqlParser()

    def statement(self, node: Any, target: Path, alias: str | None) -> Statement:
        name = class_name(node)
        if name in _INSERTS:
            return self._insert(node, target)
        if class_name(self.plan) == "UnresolvedWith":
            raise UnsupportedOperationError(
                "WITH before DELETE, UPDATE or MERGE is not possible on a Delta table. Write its queries after USING."
            )
        if node.subqueries().size() and name != "UpdateTable":
            raise UnsupportedExpressionError(
                "A condition of a statement that changes a Delta table, or a value of MERGE, can't contain a subquery. "
                "Join its rows with MERGE.",
                feature="",
            )
        if name == "MergeIntoTable":
            return self._merge(node, target, alias)
        if name == "UpdateTable":
            values = self._assignments(node.assignments())
            return Update(target=target, alias=alias, condition=self._optional(node.condition()), values=values)
        condition = node.condition()
        is_all = class_name(condition) == "Literal" and str(condition.sql()) == "true"
        return Delete(target=target, alias=alias, condition=None if is_all else self._text(condition))

    def _merge(self, plan: Any, target: Path, alias: str | None) -> Merge:
        parts = [
            self._part(action, kind)
            for actions, kind in (
                (plan.matchedActions(), "matched"),
                (plan.notMatchedActions(), "not_matched"),
                (plan.notMatchedBySourceActions(), "not_matched_by_source"),
            )
            for action in items(actions)
        ]
        return Merge(
            target=target,
            alias=alias,
            source=plan.sourceTable(),
            condition=self._text(plan.mergeCondition()),
            parts=parts,
            is_evolving=bool(plan.withSchemaEvolution()),
        )

    def _part(self, action: Any, kind: Any) -> MergePart:
        name, condition = class_name(action), self._optional(action.condition())
        if name == "DeleteAction":
            return MergePart(kind, "delete", condition, None)
        verb: Any = {"U": "update", "I": "insert"}[name[0]]
        is_star = name in ("UpdateStarAction", "InsertStarAction")
        return MergePart(kind, verb, condition, None if is_star else self._assignments(action.assignments()))

    def _insert(self, plan: Any, target: Path) -> Insert:
        query = plan.query()
        if class_name(self.plan) == "UnresolvedWith":
            query = self.plan.withNewChildren(self._spark._jvm.PythonUtils.toSeq([query]))
        is_evolving = "withSchemaEvolution" in elements(plan) and bool(plan.withSchemaEvolution())
        if class_name(plan) != "InsertIntoStatement":
            kind = class_name(plan)
            condition = self._condition(plan.deleteExpr()) if kind == "OverwriteByExpression" else None
            return Insert(
                target=target,
                query=query,
                is_overwrite=kind != "AppendData",
                is_by_name=bool(plan.isByName()),
                is_frame=bool(plan.isByName()) and not self._statement,
                is_evolving=is_evolving,
                replace_where=condition,
                is_dynamic=kind == "OverwritePartitionsDynamic",
            )
        if plan.ifPartitionNotExists():
            raise UnsupportedOperationError("INSERT with IF NOT EXISTS is not possible on a Delta table.")
        criteria = _criteria(plan)
        where = None if class_name(criteria) != "InsertReplaceWhere" else self._condition(criteria.cond())
        return Insert(
            target=target,
            query=query,
            columns=[str(c) for c in items(plan.userSpecifiedCols())],
            partition=_partition(plan),
            is_overwrite=bool(plan.overwrite()) or where is not None,
            is_by_name=bool(plan.byName()),
            is_evolving=is_evolving,
            replace_where=where,
            replace_using=_replaced(criteria),
        )

    # --- expressions ---

    def _assignments(self, found: Any) -> Assignments:
        return [(tuple(str(p) for p in items(a.key().nameParts())), self._text(a.value())) for a in items(found)]

    def _condition(self, found: Any) -> str | Column | None:
        """Return which rows are overwritten: as text if the statement has it, else as a Column; None for all."""
        if str(found.sql()) == "true":
            return None
        if self._statement:
            return self._text(found)
        return column_of(self._spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(found))

    def _optional(self, found: Any) -> str | None:
        return self._text(found.get()) if found.isDefined() else None

    def _text(self, expression: Any) -> str:
        """Return an expression as it was written, or as Spark prints it if the text has it in parts."""
        printed = str(expression.sql())
        if any(f"{kind}parameter()" in printed for kind in ("named", "pos")):
            raise UnsupportedExpressionError(
                "A statement that changes a Delta table can't contain parameters. Write their values out.", feature=""
            )
        for find in (_span, _whole_span):  # the second one calls the driver for each part
            span = find(expression)
            text = self._enclosed(*span) if span else ""
            if text and self._printed(text) == printed:
                return text
        # as functions, for example, Spark prints operators that are none
        if self._is_read_as(printed, expression):
            return printed
        raise UnsupportedExpressionError(
            f"The expression {printed} is another one when it is read again. Write it in another way.", feature=""
        )

    def _enclosed(self, start: int, stop: int) -> str:
        """Return a part of the statement, from the parentheses on that it ends: ``(s) LIKE ANY (...)``."""
        text = self._statement[start:stop]
        while start and text.count(")") > text.count("("):
            start = self._statement.rfind("(", 0, start)
            text = self._statement[max(start, 0) : stop]
        return text

    def _printed(self, text: str) -> str | None:
        try:
            return str(self._parser.parseExpression(text).sql())
        except Exception:  # noqa: BLE001 (a part of the statement that is no expression)
            return None

    def _is_read_as(self, text: str, expression: Any) -> bool:
        try:
            return bool(self._parser.parseExpression(text).equals(expression))
        except Exception:  # noqa: BLE001 (Spark prints some expressions in no form that it reads)
            return False


def _span(expression: Any) -> tuple[int, int] | None:
    """Return where an expression is in its statement, as Spark has it."""
    origin = expression.origin()
    start, stop = origin.startIndex(), origin.stopIndex()
    return (int(start.get()), int(stop.get()) + 1) if start.isDefined() and stop.isDefined() else None


def _whole_span(expression: Any) -> tuple[int, int] | None:
    """Return from where to where an expression and its parts are: of ``s LIKE ANY (...)``, Spark leaves ``s`` out."""
    spans = [_span(expression), *(_whole_span(part) for part in items(expression.children()))]
    known = [span for span in spans if span is not None]
    return (min(start for start, _ in known), max(stop for _, stop in known)) if known else None


#: Which part of a plan is the table that it changes.
_TABLES = {
    "DeleteFromTable": "table",
    "UpdateTable": "table",
    "MergeIntoTable": "targetTable",
    "InsertIntoStatement": "table",
    "OverwriteByExpression": "table",
    "OverwritePartitionsDynamic": "table",
    "AppendData": "table",
}
#: Those of them whose rows come from a query, and whose table is not among their children.
_INSERTS = ("InsertIntoStatement", "OverwriteByExpression", "OverwritePartitionsDynamic", "AppendData")


def _target(plan: Any) -> tuple[Path, str | None] | None:
    alias = None
    if class_name(plan) == "SubqueryAlias":
        alias, plan = str(plan.alias()), plan.child()
    if class_name(plan) != "UnresolvedRelation":
        return None
    return tuple(str(p) for p in items(plan.multipartIdentifier())), alias


def _partition(plan: Any) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for pair in items(plan.partitionSpec().toSeq()):
        name, value = str(pair._1()), pair._2()
        found[name] = str(value.get()) if value.isDefined() else None
        if value.isDefined() and value.get() is None:
            raise UnsupportedOperationError(
                f"PARTITION ({name} = NULL) is not possible. Leave {name} out of PARTITION, and select NULL for it; to "
                f"replace the rows of this partition, use REPLACE WHERE {name} IS NULL."
            )
    return found


def _criteria(plan: Any) -> Any:
    """Return which rows an INSERT replaces: REPLACE USING, ON, or, from Spark 4.3 on, WHERE; None if it has none."""
    found = plan.replaceCriteriaOpt() if "replaceCriteriaOpt" in elements(plan) else None
    return found.get() if found is not None and found.isDefined() else None


def _replaced(criteria: Any) -> Sequence[str]:
    """Return the columns of REPLACE USING."""
    kind = class_name(criteria)
    if kind == "InsertReplaceOn":
        raise UnsupportedOperationError(
            "INSERT with REPLACE ON is not possible; call delta_core.spark.write(rows, path, 'overwrite', "
            "replace_on='t.id <=> s.id')."
        )
    return [str(c) for c in items(criteria.cols())] if kind == "InsertReplaceUsing" else ()


def items(found: Any) -> Iterator[Any]:
    """Yield what a sequence of Scala contains."""
    return (found.apply(i) for i in range(found.size()))


def column_of(found: Any) -> Column:
    """Return a Column of the driver's."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(found)


def class_name(node: Any) -> str:
    """Return the name of a node's class; an empty text for no node."""
    return "" if node is None else str(node.getClass().getSimpleName())


def elements(node: Any) -> list[str]:
    """Return the names of what a node consists of: they differ between versions of Spark."""
    return str(node.productElementNames().mkString(",")).split(",")
