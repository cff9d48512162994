"""A predicate, and the columns requested, on the rows of a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.chars import has_chars
from delta_core.engines.spark.expressions import to_column
from delta_core.engines.spark.plan.frame import is_indexed
from delta_core.engines.spark.types import reshape
from delta_core.errors import DeltaError, ExpressionError
from delta_core.expressions.ast import Call, all_parts
from delta_core.expressions.filters import to_expression
from delta_core.expressions.functions import is_builtin
from delta_core.expressions.printing import quote_name
from delta_core.expressions.sql import parse_sql
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.scan.plan import resolve_columns
from delta_core.kernel.snapshot import Snapshot
from delta_core.scan.projection import Tree, add_path, prune

__all__ = ["condition", "files_for", "selected"]


def condition(snapshot: Snapshot, predicate: Any) -> Column:
    """Return a predicate as Spark's: text as it was written, unless it calls a plugin's function."""
    functions = snapshot.plugins.functions
    if isinstance(predicate, str) and not _calls(predicate, set(functions)):
        return F.expr(predicate)
    bound = to_expression(predicate, snapshot.schema, functions)
    return F.lit(True) if bound is None else to_column(bound, lambda leaf: leaf, functions)


def _calls(text: str, names: set[str]) -> bool:
    """Whether SQL calls one of these functions; False for text that only Spark can parse."""
    try:
        parts = all_parts(parse_sql(text)) if names else ()
        return any(isinstance(e, Call) and e.function in names and not is_builtin(e.function) for e in parts)
    except ExpressionError:
        return False


def files_for(spark: Any, snapshot: Snapshot, predicate: Any, route: str) -> FileSet | None:
    """Return the files that a predicate needs, None if Spark's planner will choose them.

    In another zone than UTC, text that Spark reads as a time may mean another instant than here, and texts of the type
    ``char(n)`` are padded before they are compared: nothing is skipped then.
    """
    if (
        is_indexed(spark, route)
        or has_chars(snapshot.schema)
        or str(spark.conf.get("spark.sql.session.timeZone")).upper() not in ("UTC", "ETC/UTC")
    ):
        return None
    try:
        return snapshot.scan((), predicate=predicate).file_set
    except DeltaError:  # a predicate that only Spark understands
        return None


def selected(rows: DataFrame, snapshot: Snapshot, columns: Sequence[str], metadata: Sequence[str]) -> DataFrame:
    """Return the columns of a table's rows that were requested, structs with only the fields that were."""
    trees: dict[str, Tree] = {}
    for path in resolve_columns(snapshot.schema, columns):
        trees[path[0]] = add_path(trees.get(path[0], {}), path[1:])
    out = []
    for name, tree in trees.items():
        whole = next(f.type for f in snapshot.schema.members if f.name == name)
        part = prune(whole, whole, tree)[0]
        out.append(reshape(F.col(quote_name(name)), whole, part, snapshot.state.types).alias(name))
    return rows.select(*out, *[F.col(quote_name(name)) for name in metadata])
