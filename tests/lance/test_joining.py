"""Fields whose children lie in different files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from delta_core.errors import DataFileError
from delta_plugins.lance.joining import join_parts
from delta_plugins.lance.schema import LanceField, arrow_field, field_tree, walk_fields

SCHEMA = [
    LanceField(0, -1, "s", "struct"),
    LanceField(1, 0, "x", "int64"),
    LanceField(2, 0, "t", "struct"),
    LanceField(3, 2, "y", "string"),
    LanceField(4, 2, "z", "string"),
    LanceField(5, 0, "l", "list.struct"),
    LanceField(6, 5, "item", "struct"),
    LanceField(7, 6, "m", "int64"),
    LanceField(8, 6, "n", "int64"),
    LanceField(9, 0, "f", "fixed_size_list:struct:2"),
    LanceField(10, 9, "item", "struct"),
    LanceField(11, 10, "o", "int64"),
    LanceField(12, 10, "p", "int64"),
]
(FIELD,) = field_tree(SCHEMA)
ROWS: list[Any] = [
    {
        "x": 1,
        "t": {"y": "a", "z": "b"},
        "l": [{"m": 1, "n": 2}, {"m": 3, "n": None}, None],
        "f": [{"o": 1, "p": 2}, {"o": 3, "p": 4}],
    },
    None,
    {"x": None, "t": None, "l": [], "f": None},
    {"x": 4, "t": {"y": None, "z": "d"}, "l": None, "f": [{"o": 5, "p": 6}, None]},
    {"x": 5, "t": {"y": "e", "z": "f"}, "l": [{"m": 7, "n": 8}], "f": [None, {"o": 7, "p": 8}]},
]


def pruned(field: LanceField, ids: set[int]) -> LanceField:
    children = tuple(pruned(c, ids) for c in field.children if ids & {f.id for f in walk_fields([c])})
    return structs.replace(field, children=children)


def only(value: Any, field: LanceField) -> Any:
    """Return a value without the fields that a pruned field lacks."""
    if value is None or not field.children:
        return value
    if isinstance(value, list):
        return [only(v, field.children[0]) for v in value]
    return {c.name: only(value[c.name], c) for c in field.children}


def part(ids: set[int], rows: list[Any] = ROWS) -> tuple[LanceField, pa.Array]:
    field = pruned(FIELD, ids)
    return field, pa.array([only(r, field) for r in rows], arrow_field(field).type)


@pytest.mark.parametrize(
    "parts", [[{1, 3, 7, 11}, {4, 8, 12}], [{1}, {3}, {4, 8}, {7, 12}, {11}], [{4}, {1, 3, 7, 8, 11, 12}]]
)
@pytest.mark.parametrize("start", [0, 1, 4])
def test_parts_are_the_whole(parts: list[set[int]], start: int) -> None:
    arrays = [(f, a[start:]) for f, a in map(part, parts)]
    found = join_parts(FIELD, arrays, "'a' and 'b'")
    found.validate(full=True)
    assert found.type == arrow_field(FIELD).type
    assert found.to_pylist() == ROWS[start:]


def test_fields_that_no_part_has_are_null() -> None:
    found = join_parts(FIELD, [part({1, 7, 11}), part({3, 12})], "'a' and 'b'")
    found.validate(full=True)
    rows = found.to_pylist()
    assert rows[0] == {
        "x": 1,
        "t": {"y": "a", "z": None},
        "l": [{"m": 1, "n": None}, {"m": 3, "n": None}, None],
        "f": [{"o": 1, "p": 2}, {"o": 3, "p": 4}],
    }
    assert rows[1] is None


@pytest.mark.parametrize(
    ("ids", "index", "change"),
    [
        ({4, 8, 12}, 1, {"t": None, "l": None, "f": None}),
        ({4, 8, 12}, 0, None),
        ({4, 8, 12}, 3, {"t": None, "l": None, "f": [{"p": 6}, None]}),
        ({8}, 4, {"l": [{"n": 8}, {"n": 9}]}),
        ({8}, 4, {"l": [None]}),
        ({12}, 2, {"f": [{"p": 1}, {"p": 2}]}),
    ],
)
def test_files_that_contradict_each_other_are_rejected(ids: set[int], index: int, change: Any) -> None:
    field, array = part(ids)
    rows = array.to_pylist()
    rows[index] = change
    first = part({1, 3, 7, 11})
    with pytest.raises(DataFileError, match="'a' and 'b' contradict each other"):
        join_parts(FIELD, [first, (field, pa.array(rows, array.type))], "'a' and 'b'")
