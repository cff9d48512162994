"""Requested columns, and the files of a fragment that have them."""

from __future__ import annotations

import pytest

from delta_core.errors import ColumnNotFoundError, CorruptTableError, InvalidArgumentError
from delta_plugins.lance.fragments import Layout
from delta_plugins.lance.projection import plan_shape, select_fields
from delta_plugins.lance.schema import LanceField, field_tree

FIELDS = field_tree(
    [
        LanceField(0, -1, "id", "int64"),
        LanceField(1, -1, "s", "struct"),
        LanceField(2, 1, "x", "int64"),
        LanceField(3, 1, "t", "struct"),
        LanceField(4, 3, "y", "string"),
        LanceField(5, 3, "z", "string"),
        LanceField(6, -1, "Name", "string"),
        LanceField(7, -1, "a.b", "string"),
        LanceField(8, -1, "p", "struct", metadata={"packed": b"true"}),
        LanceField(9, 8, "q", "int64"),
        LanceField(10, -1, "v", "int8"),
        LanceField(11, -1, "V", "int8"),
        LanceField(12, -1, "l", "list.struct"),
        LanceField(13, 12, "item", "struct"),
        LanceField(14, 13, "m", "int64"),
        LanceField(15, 13, "n", "int64"),
    ]
)


def shown(field: LanceField) -> str:
    return field.name + (f"({', '.join(map(shown, field.children))})" if field.children else "")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["Name", "id"], ["Name", "id"]),
        (["ID", "name"], ["id", "Name"]),
        (["s"], ["s(x, t(y, z))"]),
        (["s.t.z"], ["s(t(z))"]),
        (["s.t.z", "id", "s.x"], ["s(t(z), x)", "id"]),
        (["s.t.z", "s.t.y"], ["s(t(z, y))"]),
        (["a.b"], ["a.b"]),
        (["p.q"], ["p(q)"]),
        (["V", "v"], ["V", "v"]),
        ([], []),
    ],
)
def test_names_select_fields(columns: list[str], expected: list[str]) -> None:
    assert list(map(shown, select_fields(FIELDS, columns))) == expected


def test_no_names_select_all_fields() -> None:
    assert select_fields(FIELDS, None) == FIELDS


@pytest.mark.parametrize("name", ["no", "s.no", "id.x", "l.m", "l.item.m", "", "s.", "_rowid"])
def test_unknown_column_is_rejected(name: str) -> None:
    with pytest.raises(ColumnNotFoundError):
        select_fields(FIELDS, [name])


def test_name_that_fits_two_columns_in_other_cases_is_rejected() -> None:
    fields = field_tree([LanceField(0, -1, "aB", "int8"), LanceField(1, -1, "Ab", "int8")])
    with pytest.raises(ColumnNotFoundError, match="may be 'aB' and 'Ab'"):
        select_fields(fields, ["ab"])


@pytest.mark.parametrize("columns", [["id", "ID"], ["s", "s.x"], ["s.x", "s"], ["s.t", "s.t.y"], ["s.x", "s.x"]])
def test_column_that_is_requested_twice_is_rejected(columns: list[str]) -> None:
    with pytest.raises(InvalidArgumentError, match="twice"):
        select_fields(FIELDS, columns)


def test_text_instead_of_names_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="'id'"):
        select_fields(FIELDS, "id")
    with pytest.raises(InvalidArgumentError, match="1"):
        select_fields(FIELDS, [1])  # type: ignore[list-item]


def layout(*fields: int) -> Layout:
    return Layout(fields, tuple(range(len(fields))), 2, 2)


def test_fields_are_found_in_several_files() -> None:
    fields = select_fields(FIELDS, ["Name", "s", "id", "v"])
    plan = plan_shape([layout(0, -2, 6), layout(-2, 2), layout(4, 7)], fields, "m")
    assert [(p.file, [shown(f) for f in p.fields]) for p in plan.parts] == [
        (0, ["Name", "id"]),
        (1, ["s(x)"]),
        (2, ["s(t(y))"]),
    ]
    assert plan.sources == (((0, 0),), ((1, 0), (2, 0)), ((0, 1),), ())
    assert plan.parts[0].column_of == {0: 0, 6: 2}


def test_fields_that_a_file_lacks_are_left_to_its_reader() -> None:
    plan = plan_shape([layout(0, 2)], select_fields(FIELDS, ["s"]), "m")
    assert [shown(f) for f in plan.parts[0].fields] == ["s(x, t(y, z))"]


def test_parents_may_be_listed_in_every_file() -> None:
    plan = plan_shape([layout(1, 2), layout(1, 3, 4)], select_fields(FIELDS, ["s"]), "m")
    assert plan.sources == (((0, 0), (1, 0)),)


def test_field_that_two_files_have_is_rejected_unless_ids_were_used_again() -> None:
    fields, layouts = select_fields(FIELDS, ["s", "id"]), [layout(0, 2), layout(2)]
    with pytest.raises(CorruptTableError, match=r"field 'x' \(id 2\)"):
        plan_shape(layouts, fields, "m")
    assert plan_shape(layouts, fields, "m", ids_are_unique=False).sources == (((0, 0),), ((0, 1),))


def test_field_that_a_file_has_twice_is_rejected() -> None:
    with pytest.raises(CorruptTableError, match="field 2 twice"):
        plan_shape([layout(2, 0, 2)], FIELDS, "m")
    assert plan_shape([layout(-2, 0, -2)], FIELDS[:1], "m").parts[0].column_of == {0: 1}


def test_files_of_version_0_1_have_columns_by_field() -> None:
    plan = plan_shape([Layout((0, 1, 2, 6), (), 0, 2)], select_fields(FIELDS, ["Name", "id"]), "m")
    assert plan.parts[0].column_of == {0: 0, 1: 1, 2: 2, 6: 6}


def test_fields_without_a_column_are_null() -> None:
    plan = plan_shape([Layout((0, 6), (0, -1), 2, 2)], select_fields(FIELDS, ["Name"]), "m")
    assert plan.sources == ((),)
