"""Queries that an engine rejects: what is wrong, without the names of the engine's own types."""

from __future__ import annotations

import pytest

from delta_core import QueryBuilder
from delta_core.errors import EngineError
from delta_core.table.delta_table import DeltaTable
from delta_core.testing.table_builder import TableBuilder


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELEC 1", "Expected: an SQL statement, found: SELEC at Line: 1, Column: 1"),
        ("SELECT (1 FROM t", "Expected: ), found: FROM at Line: 1, Column: 11"),
        ("SELECT 'a FROM t", "Unterminated string literal"),
        ("SELECT nope FROM t", "No field named nope. Valid fields are t."),
        ("SELECT * FROM nope", "table 'nope' not found"),
        ("SELECT 1 / 0", "Divide by zero error"),
        ("", "No SQL statements were provided"),
    ],
)
def test_datafusion_reports_what_is_wrong_in_plain_words(builder: TableBuilder, sql: str, expected: str) -> None:
    pytest.importorskip("datafusion")
    query = QueryBuilder(engine="datafusion").register("t", DeltaTable(builder.uri))
    with pytest.raises(EngineError) as e:
        query.execute(sql).read_all()
    assert expected in str(e.value).replace(", t.kind, t.day", "") or expected.split(".", maxsplit=1)[0] in str(e.value)
    for word in ("ParserError(", "TokenizerError(", "SQL error", "Schema error", "DataFusion error", "External error"):
        assert word not in str(e.value)
    assert e.value.__cause__ is not None


def test_duckdb_reports_a_text_that_is_no_query(builder: TableBuilder) -> None:
    pytest.importorskip("duckdb")
    query = QueryBuilder(engine="duckdb").register("t", DeltaTable(builder.uri))
    with pytest.raises(EngineError, match="expected a query"):
        query.execute("")
