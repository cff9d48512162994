"""Changes of rows from a client of Spark Connect, as statements that the server runs.

A Column of a client is a tree of the client's own classes, from which the server makes an expression. Its SQL calls the
same functions: Spark's operators are functions too, as in ```==`(id, 1)``.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from delta_core.engines.spark.sql_text import tokenize
from delta_core.errors import InvalidArgumentError, UnsupportedExpressionError
from delta_core.expressions.ast import literal
from delta_core.expressions.printing import format_sql, quote_name
from delta_core.operations.merge.builder import MergeClause

__all__ = ["delete_statement", "merge_on_server", "update_statement"]

#: The types of constants whose values are Python's own, with what follows the number.
_NUMBERS = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_KINDS = {"matched": "MATCHED", "not_matched": "NOT MATCHED", "not_matched_by_source": "NOT MATCHED BY SOURCE"}
#: The parts of a column's name: quoted in backticks, or up to a dot.
_PARTS = re.compile(r"(?:^|\.)(?:`((?:[^`]|``)+)`|([^`.]+))")


def delete_statement(path: str, alias: str | None, condition: str | Column | None) -> str:
    """Return DELETE for a table.

    Raises
    ------
    UnsupportedExpressionError
        The condition is a Column whose SQL is not available.
    InvalidArgumentError
        It is a text that is no expression.
    """
    return f"DELETE FROM {_target(path, alias)}{_where(condition)}"  # noqa: S608 (rendered)


def truncate_statement(path: str) -> str:
    """Return TRUNCATE TABLE for a table."""
    return f"TRUNCATE TABLE {_target(path, None)}"


def update_statement(
    path: str, alias: str | None, condition: str | Column | None, updates: Mapping[str, str | Column]
) -> str:
    """Return UPDATE for a table; raises what `delete_statement` raises."""
    return f"UPDATE {_target(path, alias)} SET {_assignments(updates)}{_where(condition)}"  # noqa: S608 (rendered)


def merge_on_server(
    path: str,
    alias: str | None,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[MergeClause],
    is_evolving: bool,
) -> DataFrame:
    """Run MERGE with a DataFrame as its source, which is a temporary view meanwhile; raises as `delete_statement`."""
    view, plan = f"delta_core_{uuid.uuid4().hex}", getattr(source, "_plan", None)
    name = getattr(plan, "_alias", None) if type(plan).__name__ == "SubqueryAlias" else None
    evolving = "WITH SCHEMA EVOLUTION " if is_evolving else ""
    lines = [
        f"MERGE {evolving}INTO {_target(path, alias or 'target')}",
        f"USING {view} AS {quote_name(name or 'source')} ON {_rendered(condition)}",
        *map(_clause, clauses),
    ]
    source.createOrReplaceTempView(view)
    try:
        return source.sparkSession.sql("\n".join(lines))
    finally:
        source.sparkSession.catalog.dropTempView(view)


def _target(path: str, alias: str | None) -> str:
    place = path.replace("`", "``")
    return f"delta.`{place}`" + ("" if alias is None else f" AS {quote_name(alias)}")


def _where(condition: str | Column | None) -> str:
    return "" if condition is None else f" WHERE {_rendered(condition)}"


def _assignments(updates: Mapping[str, str | Column]) -> str:
    return ", ".join(f"{_name(n)} = {_rendered(v)}" for n, v in updates.items())


def _clause(clause: MergeClause) -> str:
    condition = "" if clause.predicate is None else f" AND {_rendered(clause.predicate)}"
    when = f"WHEN {_KINDS[clause.kind]}{condition} THEN"
    if clause.action == "delete":
        return f"{when} DELETE"
    if clause.updates is None:
        return f"{when} {'UPDATE SET *' if clause.action == 'update' else 'INSERT *'}"
    if clause.action == "update":
        return f"{when} UPDATE SET {_assignments(clause.updates)}"
    names, values = ", ".join(map(_name, clause.updates)), ", ".join(map(_rendered, clause.updates.values()))
    return f"{when} INSERT ({names}) VALUES ({values})"  # noqa: S608 (rendered)


def _rendered(given: str | Column) -> str:
    """Return a condition or value as a part of a statement."""
    if not isinstance(given, str):
        return _sql(given._expr)
    if given.strip().lower() == "default":
        return given
    depth = 0
    for token in tokenize(given):
        depth += 0 if token.kind else {"(": 1, ")": -1}.get(token.value, 0)
        if depth < 0:
            break
    if depth or not given.strip():
        raise InvalidArgumentError(f"Found {given!r}, expected an expression in SQL.")
    return f"({given}\n)"  # the line ends a comment


def _name(text: str) -> str:
    """Return the name of a column, or of a field, with quotes where SQL needs them."""
    parts = list(_PARTS.finditer(text))
    if not parts or sum(len(p[0]) for p in parts) != len(text):
        raise InvalidArgumentError(f"Found {text!r}, expected the name of a column.")
    return ".".join(quote_name(p[1].replace("``", "`") if p[1] else p[2]) for p in parts)


def _sql(node: Any) -> str:
    render = _RENDERERS.get(type(node).__name__)
    if render is None:
        raise _unknown(type(node).__name__)
    return render(node)


def _unknown(what: str) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"Found {what} in a Column, whose SQL is not available to a client of Spark Connect. Pass the condition or "
        "value as SQL text.",
        feature="",
    )


def _function(node: Any) -> str:
    if getattr(node, "_is_distinct", False):
        raise _unknown(f"{node._name} of distinct values")
    name = str(node._name).replace("`", "``")
    return f"`{name}`({', '.join(map(_sql, node._args))})"


def _constant(node: Any) -> str:
    value, kind = node._value, node._dataType.simpleString()
    if value is None:
        return "NULL" if kind == "void" else f"CAST(NULL AS {kind})"
    if kind in _NUMBERS:
        return f"({value}{_NUMBERS[kind]})" if value > -(2**63) else "(-9223372036854775807L - 1L)"
    if kind == "string":
        return _text(value)
    if kind == "date":
        return f"date_from_unix_date({value})"
    if kind == "timestamp":
        return f"timestamp_micros({value})"
    if kind in ("boolean", "double", "binary") or kind.startswith("decimal"):
        found = format_sql(literal(bytes(value) if kind == "binary" else value))
        return f"CAST({found} AS {kind})" if kind.startswith("decimal") else found
    raise _unknown(f"a constant of type {kind}")


def _text(value: str) -> str:
    if re.search(r"[\\'\x00-\x1f]", value) is None:
        return f"'{value}'"
    return f"decode(X'{value.encode().hex()}', 'UTF-8')"  # whether a backslash is an escape depends on the session


def _cast(node: Any) -> str:
    kind = node._data_type
    text = kind if isinstance(kind, str) else kind.simpleString()
    if node._eval_mode in ("legacy", "ansi"):
        raise _unknown(f"a cast of mode {node._eval_mode}")
    return f"{'TRY_CAST' if node._eval_mode == 'try' else 'CAST'}({_sql(node._expr)} AS {text})"


def _case(node: Any) -> str:
    branches = "".join(f" WHEN {_sql(when)} THEN {_sql(then)}" for when, then in node._branches)
    end = "" if node._else_value is None else f" ELSE {_sql(node._else_value)}"
    return f"CASE{branches}{end} END"


def _reference(node: Any) -> str:
    if node._plan_id is not None:
        raise _unknown(f"{node._unparsed_identifier} of a DataFrame (use functions.col with an alias)")
    return _name(node._unparsed_identifier)


def _lambda(node: Any) -> str:
    names = ", ".join(map(_sql, node._arguments))
    return f"{names if len(node._arguments) == 1 else f'({names})'} -> {_sql(node._function)}"


#: By the names of PySpark's classes.
_RENDERERS: dict[str, Callable[[Any], str]] = {
    "ColumnReference": _reference,
    "LiteralExpression": _constant,
    "UnresolvedFunction": _function,
    "CallFunction": _function,
    "SQLExpression": lambda node: _rendered(node._expr),
    "CastExpression": _cast,
    "CaseWhen": _case,
    "ColumnAlias": lambda node: _sql(node._child),
    "UnresolvedExtractValue": lambda node: f"({_sql(node._child)})[{_sql(node._extraction)}]",
    "LambdaFunction": _lambda,
    "UnresolvedNamedLambdaVariable": lambda node: ".".join(map(quote_name, node._name_parts)),
}
