"""What a predicate says of rows, and of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delta_core.expressions.ast import Expression
from delta_core.expressions.binding import bind
from delta_core.expressions.sql import parse_sql
from delta_core.state import TableState

__all__ = ["Skipping", "plan_pruning", "read_predicate"]


@dataclass(frozen=True)
class Skipping:
    partitions: Expression | None = None
    statistics: Expression | None = None


def read_predicate(predicate: Any, table: TableState, functions: Mapping[str, Any]) -> Expression:
    return bind(parse_sql(predicate) if isinstance(predicate, str) else predicate, table.schema, functions)


def plan_pruning(condition: Expression, table: TableState) -> Skipping:
    return Skipping()
