"""Schemas with types that are not known: unsupported, and not taken for damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable, Schema
from delta_core.errors import SchemaError, UnsupportedFeatureError
from delta_core.testing.table_builder import TableBuilder

VARIANTS = {"type": "udt", "class": "my.Json", "pyClass": None, "sqlType": "variant"}
TYPES: dict[str, tuple[Any, str]] = {
    "user-defined, stored as a feature's type": (VARIANTS, r"udt\(my.Json\).*'variant'"),
    "user-defined, stored as a type that is not known": ({**VARIANTS, "sqlType": "strin"}, "strin"),
    "composed": ({"type": "tuple", "of": []}, "tuple"),
    "in an array": ({"type": "array", "elementType": VARIANTS, "containsNull": True}, "my.Json"),
    "named": ("interval year", "interval year"),
    "with parameters": ("geometry(4326)", r"geometry\(4326\)"),
}


@pytest.mark.parametrize("name", TYPES)
def test_type_that_is_not_known_is_unsupported_by_name(tmp_path: Path, name: str) -> None:
    kind, said = TYPES[name]
    table = TableBuilder(tmp_path / "t").create({"id": "long"})
    place = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in place.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            field = {"name": "x", "type": kind, "nullable": True, "metadata": {}}
            action["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": [field]})
    place.write_text("".join(json.dumps(a) + "\n" for a in actions))
    with pytest.raises(UnsupportedFeatureError, match=said):
        DeltaTable(table.uri).to_pyarrow_table()


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "udt", "sqlType": "string"},
        {"type": "udt", "class": 1, "sqlType": "string"},
        {"type": "udt", "class": None, "pyClass": None, "sqlType": "string"},
        {"type": "udt", "class": "my.Point"},
    ],
)
def test_user_defined_type_without_class_or_stored_type_is_no_type(kind: Any) -> None:
    with pytest.raises(SchemaError, match=r"class|sqlType"):
        Schema.from_json(
            json.dumps({"type": "struct", "fields": [{"name": "x", "type": kind, "nullable": True, "metadata": {}}]})
        )
