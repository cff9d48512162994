"""Schemas with types that are not known: unsupported, and not taken for damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable, Schema
from delta_core.errors import UnsupportedFeatureError
from delta_core.testing.table_builder import TableBuilder

VECTOR = {
    "type": "udt",
    "class": "org.apache.spark.ml.linalg.VectorUDT",
    "pyClass": "pyspark.ml.linalg.VectorUDT",
    "sqlType": {"type": "struct", "fields": []},
}
TYPES: dict[str, tuple[Any, str]] = {
    "user-defined": (VECTOR, "org.apache.spark.ml.linalg.VectorUDT"),
    "user-defined in Python": ({"type": "udt", "pyClass": "my.Point", "sqlType": "string"}, "my.Point"),
    "composed": ({"type": "tuple", "of": []}, "tuple"),
    "in an array": ({"type": "array", "elementType": VECTOR, "containsNull": True}, "VectorUDT"),
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


def test_schema_of_a_user_defined_type_is_rejected_by_its_class() -> None:
    field = {"name": "x", "type": VECTOR, "nullable": True, "metadata": {}}
    with pytest.raises(UnsupportedFeatureError, match="VectorUDT"):
        Schema.from_json(json.dumps({"type": "struct", "fields": [field]}))
