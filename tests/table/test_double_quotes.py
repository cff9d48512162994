"""Double-quoted names in SQL that a person passes, through every function and command that takes SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.cli import main
from delta_core.errors import ColumnNotFoundError, ConstraintViolationError, ExpressionError
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, PrimitiveType
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples

STRING = PrimitiveType("string")
NAMES = st.text(st.sampled_from(list("ab'\"`\\-/*.%_é")), min_size=1, max_size=6).filter(
    lambda name: not re.fullmatch(r"[\W_]*", name) and name.lower() not in ("a", "b", "n")
)
TEXTS = st.text(st.sampled_from(list("ab'\"`\\-/*. %_é")), max_size=5)


def quoted(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _scan(table: DeltaTable, name: str, text: str) -> None:
    rows = table.scan(predicate=f"{quoted(name)} = {literal(text)}").to_table()
    assert rows.column(name).to_pylist() == [text] * rows.num_rows
    table.delete([(name, "=", text)])


def _delete(table: DeltaTable, name: str, text: str) -> None:
    table.delete(f"{quoted(name)} = {literal(text)}")


def _delete_by_command(table: DeltaTable, name: str, text: str) -> None:
    assert main(["delete", table.table_uri, f"--where={quoted(name)} = {literal(text)}"]) == 0


def _update_then_delete(table: DeltaTable, name: str, text: str) -> None:
    table.update({"n": f'CASE WHEN {quoted(name)} = {literal(text)} THEN -1 ELSE "n" END'})
    table.delete('"n" = -1')


def _update_where(table: DeltaTable, name: str, text: str) -> None:
    table.update({'"n"': "-1"}, predicate=f"{quoted(name)} = {literal(text)}")
    table.delete("n = -1")


def _merge(table: DeltaTable, name: str, text: str) -> None:
    source = pa.table({name: [text]})
    merger = table.merge(source, f'"s".{quoted(name)} = "t".{quoted(name)}', source_alias="s", target_alias="t")
    merger.when_matched_delete(f'"t".{quoted(name)} = {literal(text)}').execute()


def _merge_values(table: DeltaTable, name: str, text: str) -> None:
    source = pa.table({name: [text], "m": [-1]})
    merger = table.merge(source, f"s.{quoted(name)} = t.{quoted(name)}", source_alias="s", target_alias="t")
    merger.when_matched_update({'"t"."n"': '"s"."m"'}).execute()
    table.delete("n = -1")


def _replace_where(table: DeltaTable, name: str, text: str) -> None:
    rows = table.to_pyarrow_table().schema.empty_table()
    write_deltalake(table, rows, mode="overwrite", predicate=f"{quoted(name)} = {literal(text)}")


def _constraint(table: DeltaTable, name: str, text: str) -> None:
    table.delete([(name, "=", text)])
    table.alter.add_constraint({"c": f"{quoted(name)} <> {literal(text)}"})
    stored = table.metadata().configuration["delta.constraints.c"]
    assert re.sub(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`", "", stored) == " <> "


ENTRIES: dict[str, Callable[[DeltaTable, str, str], None]] = {
    f.__name__.strip("_"): f
    for f in (
        _scan, _delete, _delete_by_command, _update_then_delete, _update_where, _merge, _merge_values, _replace_where,
        _constraint,
    )
}  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES)
def test_quoted_names_and_texts_select_the_same_rows_through_every_entry(
    entry: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    @settings(max_examples=examples(5))
    @given(NAMES, st.lists(TEXTS, min_size=1, max_size=4, unique=True), st.data())
    def check(name: str, texts: list[str], data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(texts))
        uri = str(tmp_path_factory.mktemp("t"))
        write_deltalake(uri, pa.table({name: texts, "n": pa.array(range(len(texts)), pa.int64())}))
        ENTRIES[entry](DeltaTable(uri), name, chosen)
        left = DeltaTable(uri).to_pyarrow_table().sort_by("n").column(name).to_pylist()
        assert left == [t for t in texts if t != chosen]

    check()


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Return a table with a column whose name is a value of another one."""
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 2, 3], "kind": ["a", "b", "c"], "a": ["a", "x", "y"]}))
    return DeltaTable(str(tmp_path / "t"))


def test_double_quoted_name_is_no_text(table: DeltaTable) -> None:
    table.delete('"kind" <> "a"')
    assert table.to_pyarrow_table().column("id").to_pylist() == [1]
    table.update({"kind": '"id"'})
    assert table.to_pyarrow_table().column("kind").to_pylist() == ["1"]


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete('kind = "hello"'),
        lambda t: t.update({"kind": '"hello"'}),
        lambda t: t.update({"kind": "hello"}),
        lambda t: t.update({"id": "1"}, predicate='"hello" = kind'),
        lambda t: (
            t.merge(pa.table({"id": [1]}), 's.id = t.id AND kind = "hello"', source_alias="s", target_alias="t")
            .when_matched_delete()
            .execute()
        ),
        lambda t: (
            t.merge(pa.table({"id": [1]}), "s.id = t.id", source_alias="s", target_alias="t")
            .when_matched_update({"kind": "hello"})
            .execute()
        ),
        lambda t: write_deltalake(t, t.to_pyarrow_table(), mode="overwrite", predicate='kind = "hello"'),
        lambda t: t.scan(predicate='kind = "hello"').count(),
        lambda t: t.alter.add_constraint({"c": 'kind <> "hello"'}),
        lambda t: t.optimize.compact('"hello" = 1'),
        lambda t: t.alter.set_table_properties({"delta.constraints.c": 'kind <> "hello"'}),
        lambda t: DeltaTable.create(
            t.table_uri + "2",
            Schema([Field("x", STRING), Field("y", STRING, metadata={"delta.generationExpression": 'upper("hello")'})]),
        ),
    ],
)
def test_unknown_name_is_rejected_with_the_quotes_of_texts_and_nothing_changes(
    table: DeltaTable, call: Callable[[DeltaTable], Any]
) -> None:
    with pytest.raises(ColumnNotFoundError, match="in single quotes: 'hello'"):
        call(table)
    assert DeltaTable(table.table_uri).version() == 0
    assert not DeltaTable.is_deltatable(table.table_uri + "2")


def test_new_expressions_of_the_metadata_are_stored_without_double_quotes(tmp_path: Path) -> None:
    fields = [
        Field("x y", STRING),
        Field("up", STRING, metadata={"delta.generationExpression": 'concat(upper("x y"), \'"\')'}),
        Field("d", STRING, metadata={"CURRENT_DEFAULT": "'\"'"}),
        Field("i", STRING, metadata={"delta.invariants": json.dumps({"expression": {"expression": "\"i\" <> 'z'"}})}),
    ]
    configuration = {"delta.columnMapping.mode": "name", "delta.constraints.c": '"x y" <> \'"\''}
    table = DeltaTable.create(str(tmp_path), Schema(fields), configuration=configuration)
    stored = {f.name: f.metadata for f in table.schema().fields}
    assert stored["up"]["delta.generationExpression"] == "concat(upper(`x y`), '\"')"
    assert stored["d"]["CURRENT_DEFAULT"] == "'\"'"
    assert json.loads(stored["i"]["delta.invariants"]) == {"expression": {"expression": "`i` <> 'z'"}}
    assert table.metadata().configuration["delta.constraints.c"] == "`x y` <> '\"'"
    write_deltalake(table, pa.table({"x y": ["q"], "i": ["k"]}), mode="append")
    assert table.to_pyarrow_table().to_pylist() == [{"x y": "q", "up": 'Q"', "d": '"', "i": "k"}]
    table.operation("set_default")("d", "concat('a', 'b')")
    with pytest.raises(ExpressionError, match="can't use columns"):
        table.operation("set_default")("d", '"i"')


def test_expressions_of_a_log_keep_the_reading_of_spark(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t").create(
        {"kind": "string", "hello": "string"},
        features=["checkConstraints"],
        properties={"delta.constraints.c": 'kind <> "hello"'},
    )
    table = DeltaTable(builder.uri)
    write_deltalake(table, pa.table({"kind": ["x", "y"], "hello": ["x", "z"]}), mode="append")
    with pytest.raises(ConstraintViolationError):
        write_deltalake(table, pa.table({"kind": ["hello"], "hello": ["z"]}), mode="append")
    table.alter.add_constraint({"d": "\"kind\" <> 'other'"})
    table.alter.set_table_properties({"my.note": "x"})
    assert table.metadata().configuration["delta.constraints.c"] == 'kind <> "hello"'
    table.restore(1)
    assert table.to_pyarrow_table().num_rows == 2


def test_restored_and_cloned_expressions_keep_the_reading_of_spark(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t").create(
        {"kind": "string", "hello": "string"},
        features=["checkConstraints"],
        properties={"delta.constraints.c": 'kind <> "hello"'},
    )
    table = DeltaTable(builder.uri)
    table.alter.drop_constraint("c")
    table.restore(0)
    copy = table.clone(str(tmp_path / "copy"))
    for uri in (table.table_uri, DeltaTable(str(tmp_path / "copy")).table_uri):
        write_deltalake(uri, pa.table({"kind": ["x"], "hello": ["x"]}), mode="append")
        with pytest.raises(ConstraintViolationError):
            write_deltalake(uri, pa.table({"kind": ["hello"], "hello": ["z"]}), mode="append")
    assert copy is not None


def test_commits_contain_predicates_without_double_quotes(table: DeltaTable) -> None:
    table.update({"id": "9"}, predicate="\"kind\" = 'b'")
    table.delete("\"kind\" = 'a'")
    texts = [h["operationParameters"]["predicate"] for h in table.history(2)]
    assert texts == ["[\"`kind` = 'a'\"]", "[\"`kind` = 'b'\"]"]
