"""Operators of other languages: what to write in their place is part of the error."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ExpressionError
from delta_core.expressions import to_expression
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, PrimitiveType

SCHEMA = Schema([Field("id", PrimitiveType("long")), Field("kind", PrimitiveType("string"))])


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("id = 1 && kind = 'a'", "Found &&: write AND."),
        ("id > 1 || id < 0", r"Found \|\|: write OR"),
        ("id = 1 || kind = 'a'", r"Found \|\|: write OR"),
        ("kind || kind", r"Found \|\|: write OR"),
        ("id === 1", "Found ===: write =."),
        ("id => 1", "Found =>: write >=."),
        ("id =< 1", "Found =<: write <=."),
        ("id := 1", "Found :=: write =."),
        ("kind !~ 'a'", "Found !~: write NOT ... RLIKE."),
    ],
)
def test_error_contains_the_operator_of_sql(text: str, hint: str) -> None:
    with pytest.raises(ExpressionError, match=hint):
        to_expression(text, SCHEMA)


@pytest.mark.parametrize(
    "text", ["kind = '&&' AND", "`a&&b` = 1 AND", "id = 1 -- &&\n AND", "id + kind AND /* || */ 1"]
)
def test_operators_within_texts_names_and_comments_are_no_reason(text: str) -> None:
    with pytest.raises(ExpressionError) as e:
        to_expression(text, SCHEMA)
    assert "Found &&" not in str(e.value)
    assert "Found ||" not in str(e.value)


def test_equals_signs_and_concatenation_keep_their_meaning() -> None:
    assert to_expression("id == 1", SCHEMA) is not None
    assert to_expression("kind || 'x' = 'ax'", SCHEMA) is not None


def test_updates_and_merges_have_the_hint_once(tmp_path: object) -> None:
    uri = f"{tmp_path}/t"
    write_deltalake(uri, pa.table({"id": [1], "kind": ["a"]}))
    table = DeltaTable(uri)
    merger = table.merge(pa.table({"id": [1]}), "t.id = s.id || t.id > 1", source_alias="s", target_alias="t")
    for call in (
        lambda: table.update({"id": "1 && 2"}),
        lambda: table.delete("id = 1 && id = 2"),
        merger.when_matched_delete().execute,
    ):
        with pytest.raises(ExpressionError) as e:
            call()
        assert str(e.value).count(": write ") == 1
