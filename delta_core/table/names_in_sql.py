"""The names of a catalog in a query: found by position, and replaced by names that an engine has registered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

__all__ = ["quoted_name", "replace_names"]

#: Schemas of an engine's own.
_OWN = frozenset({"information_schema", "pg_catalog"})
#: The dialects of the engines, as sqlglot names them.
_DIALECTS = {"datafusion": "postgres", "duckdb": "duckdb"}

Parts = tuple[str, ...]


def replace_names(sql: str, engine: str, depth: int) -> tuple[str, dict[str, str]]:
    """Replace the names of tables that have ``depth`` parts.

    ``FROM sales.cities`` becomes ``FROM "sales.cities" AS cities``, and the column ``sales.cities.id`` becomes
    ``cities.id``. A query that can't be parsed is returned as it is: the engine reports what is wrong with it.

    Parameters
    ----------
    sql : str
        The query.
    engine : str
        ``datafusion`` or ``duckdb``.
    depth : int
        How many parts the names have.

    Returns
    -------
    tuple of str and dict of str to str
        The query, and the full names in the catalog by the names to register.
    """
    import sqlglot
    from sqlglot import expressions as exp

    try:
        trees = sqlglot.parse(sql, read=_DIALECTS[engine])
    except (sqlglot.errors.SqlglotError, RecursionError):
        return sql, {}
    tables = [t for tree in trees if tree is not None for t in tree.find_all(exp.Table)]
    named = [t for t in tables if len(t.parts) == depth and _positions(t) is not None and not _is_own(t)]
    aliases = _aliases(named)
    edits = [edit for t in named for edit in _table_edits(t, sql, aliases)]
    for tree in trees:
        for column in tree.find_all(exp.Column) if tree is not None else ():
            qualifier = column.parts[:-1]
            if len(qualifier) == depth and (alias := aliases.get(_key(qualifier))) is not None:
                edits.append((qualifier[0].meta["start"], qualifier[-1].meta["end"] + 1, alias))
    for start, end, text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql, {name: name for name in (_registered(t.parts) for t in named)}


def _positions(table: Any) -> tuple[int, int] | None:
    first, last = table.parts[0].meta, table.parts[-1].meta
    return (first["start"], last["end"] + 1) if "start" in first and "end" in last else None


def _is_own(table: Any) -> bool:
    return any(p.name.lower() in _OWN for p in table.parts[:-1])


def _key(parts: Any) -> Parts:
    return tuple(p.name.lower() for p in parts)


def _registered(parts: Any) -> str:
    # the full name: two names whose parts have dots may have the same characters without quotes
    return ".".join(_part(p.name) for p in parts)


def _aliases(tables: list[Any]) -> dict[Parts, str]:
    """Return by which name columns of each table are qualified: its last part, unless several tables have that."""
    keys: dict[str, set[Parts]] = defaultdict(set)
    for t in tables:
        keys[_last(t)].add(_key(t.parts))
    return {
        _key(t.parts): quoted_name(t.parts[-1].name if len(keys[_last(t)]) == 1 else _registered(t.parts))
        for t in tables
    }


def _last(table: Any) -> str:
    """Return what DataFusion compares of an alias: it takes what precedes a dot in it for a schema."""
    return str(table.parts[-1].name.lower().rpartition(".")[2])


def _table_edits(table: Any, sql: str, aliases: dict[Parts, str]) -> Iterator[tuple[int, int, str]]:
    start, end = _positions(table) or (0, 0)
    text = quoted_name(_registered(table.parts))
    yield start, end, text if table.alias else f"{text} AS {aliases[_key(table.parts)]}"


def quoted_name(name: str) -> str:
    """Return a name as SQL of DataFusion and DuckDB quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _part(name: str) -> str:
    """Return a part of a name as `split_name` reads it."""
    if not set(name) & set('.`"/'):
        return name
    return f'"{name}"' if "`" in name else f"`{name}`"
