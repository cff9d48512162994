"""Feature variantShredding: shredded columns come back as the variants that they were."""

import decimal
import json
import uuid
from datetime import date, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import DataFileError
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import VARIANT
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder
from delta_core.testing.variant_bytes import encode_metadata, encode_value, names_of
from delta_plugins.variant_type.logic import unshred, variant_to_json

GROUP = [pa.field("value", pa.binary())]


class TestVariantShredding(FeatureContract):
    name = "variantShredding"

    def states(self) -> list[TableState]:
        on = {"delta.enableVariantShredding": "true"}
        return [table_state([self.name]), table_state([self.name, "variantType"], properties=on)]

    def test_property_switches_it_on(self) -> None:
        off, on = self.states()
        assert on.is_active(self.name)
        assert not off.is_active(self.name)


def group(typed: pa.DataType) -> pa.DataType:
    return pa.struct([*GROUP, pa.field("typed_value", typed)])


def stored(rows: list[dict[str, Any] | None], typed: pa.DataType) -> pa.StructArray:
    return pa.array(rows, pa.struct([("metadata", pa.binary()), *group(typed)]))


def texts(array: pa.StructArray) -> list[Any]:
    found = unshred(array)
    assert found.type == VARIANT.arrow
    found.validate(full=True)
    return [None if t is None else json.loads(t) for t in variant_to_json(found).to_pylist()]


NO_NAMES = encode_metadata([])
TYPED = [
    (pa.bool_(), True, True),
    (pa.int8(), -3, -3),
    (pa.int16(), 300, 300),
    (pa.int32(), 70000, 70000),
    (pa.int64(), 2**40, 2**40),
    (pa.float32(), 0.5, 0.5),
    (pa.float64(), 1e300, 1e300),
    (pa.string(), "x" * 70, "x" * 70),
    (pa.string(), "", ""),
    (pa.large_string(), "é", "é"),
    (pa.binary(), b"\xff", "/w=="),
    (pa.date32(), date(2024, 2, 29), "2024-02-29"),
    (pa.timestamp("us", "UTC"), 0, "1970-01-01 00:00:00+00:00"),
    (pa.timestamp("us"), 1, "1970-01-01 00:00:00.000001"),
    (pa.timestamp("ns"), 1, "1970-01-01 00:00:00.000000001"),
    (pa.time64("us"), time(1, 2, 3), "01:02:03"),
    (pa.decimal128(9, 2), decimal.Decimal("-1.50"), -1.5),
    (pa.decimal128(18, 4), decimal.Decimal("12345678901.5"), 12345678901.5),
    (pa.decimal128(38, 0), decimal.Decimal(10**37), 10**37),
    (pa.binary(16), uuid.UUID(int=7).bytes, str(uuid.UUID(int=7))),
]


@pytest.mark.parametrize(("typed", "value", "wanted"), TYPED, ids=[str(t) for t, _, _ in TYPED])
def test_typed_and_untyped_rows_are_in_one_column(typed: pa.DataType, value: Any, wanted: Any) -> None:
    rows = [
        {"metadata": NO_NAMES, "value": None, "typed_value": value},
        None,
        {"metadata": NO_NAMES, "value": encode_value("other", []), "typed_value": None},
        {"metadata": NO_NAMES, "value": None, "typed_value": None},
    ]
    array = stored(rows, typed)
    assert texts(array) == [wanted, None, "other", None]
    assert unshred(array).is_valid().to_pylist() == [True, False, True, True]
    assert texts(array.slice(1, 2)) == [None, "other"]


def test_decimals_take_the_bytes_of_their_precision() -> None:
    sizes = {}
    for precision in (9, 18, 38):
        row = {"metadata": NO_NAMES, "value": None, "typed_value": decimal.Decimal(1)}
        (found,) = unshred(stored([row], pa.decimal128(precision, 0))).to_pylist()
        sizes[precision] = len(found["value"])
    assert sizes == {9: 6, 18: 10, 38: 18}


FIELDS = pa.struct([("b", group(pa.int64())), ("a", group(pa.string()))])


def test_fields_without_a_column_are_merged_in_order_of_names() -> None:
    names = ["z", "a", "b", "aa"]
    rest = encode_value({"aa": 1, "z": [True]}, names)
    row = {
        "metadata": encode_metadata(names),
        "value": rest,
        "typed_value": {"a": {"typed_value": "x"}, "b": {"value": encode_value("no number", names)}},
    }
    (found,) = variant_to_json(unshred(stored([row], FIELDS))).to_pylist()
    assert found == '{"a":"x","aa":1,"b":"no number","z":[true]}'


def test_missing_field_is_left_out_and_a_null_one_is_not() -> None:
    metadata = encode_metadata(["a", "b"])
    missing: dict[str, Any] = {"value": None, "typed_value": None}
    rows = [
        {"metadata": metadata, "typed_value": {"a": missing, "b": {"typed_value": 1}}},
        {"metadata": metadata, "typed_value": {"a": {"value": b"\x00"}, "b": missing}},
        {"metadata": metadata, "typed_value": {"a": None, "b": None}},
        {"metadata": metadata, "value": encode_value([1], [])},
    ]
    assert texts(stored(rows, FIELDS)) == [{"b": 1}, {"a": None}, {}, [1]]


def test_field_with_a_column_wins_over_the_rest() -> None:
    names = ["a", "b"]
    row = {
        "metadata": encode_metadata(names),
        "value": encode_value({"a": "old"}, names),
        "typed_value": {"a": {"typed_value": "new"}, "b": None},
    }
    assert texts(stored([row], FIELDS)) == [{"a": "new"}]


def test_each_row_has_its_own_dictionary() -> None:
    rows = [
        {"metadata": encode_metadata(names), "typed_value": {"a": {"typed_value": "x"}, "b": {"typed_value": 1}}}
        for names in (["a", "b"], ["b", "a"], ["b", "c", "a"], ["a", "b"])
    ]
    assert texts(stored(rows, FIELDS)) == [{"a": "x", "b": 1}] * 4


def test_lists_of_typed_untyped_and_missing_elements() -> None:
    elements = [{"typed_value": 1}, {"value": encode_value("x", [])}, {"value": None}]
    rows = [
        {"metadata": NO_NAMES, "typed_value": elements},
        {"metadata": NO_NAMES, "typed_value": []},
        {"metadata": NO_NAMES, "value": encode_value(2, [])},
        {"metadata": NO_NAMES, "typed_value": [{"typed_value": 5}] * 300},
    ]
    array = stored(rows, pa.list_(group(pa.int64())))
    assert texts(array) == [[1, "x", None], [], 2, [5] * 300]
    assert texts(array.slice(2)) == [2, [5] * 300]


SCHEMA = pa.struct(
    [
        ("n", group(pa.int64())),
        ("s", group(pa.string())),
        ("o", group(pa.struct([("x", group(pa.float64()))]))),
        ("l", group(pa.list_(group(pa.bool_())))),
    ]
)
ANYTHING = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3) | st.floats(-2, 2)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "n": ANYTHING | st.integers(-(2**60), 2**60),
        "s": ANYTHING,
        "o": ANYTHING | st.dictionaries(st.sampled_from("xyz"), ANYTHING),
        "l": st.lists(ANYTHING, max_size=3),
        "extra": st.lists(ANYTHING, max_size=2),
    },
)


def shred(value: Any, t: pa.DataType, names: list[str]) -> dict[str, Any]:
    """Shred as far as the type goes; the rest stays a value."""
    if pa.types.is_struct(t) and isinstance(value, dict):
        typed = {f.name: shred(value[f.name], f.type.field("typed_value").type, names) for f in t if f.name in value}
        rest = {k: v for k, v in value.items() if k not in typed}
        empty = {f.name: {"value": None, "typed_value": None} for f in t}
        return {"value": encode_value(rest, names) if rest else None, "typed_value": empty | typed}
    if pa.types.is_list(t) and isinstance(value, list):
        return {"value": None, "typed_value": [shred(v, t.value_type.field("typed_value").type, names) for v in value]}
    kinds = {pa.int64(): int, pa.string(): str, pa.float64(): float, pa.bool_(): bool}
    if type(value) is kinds.get(t):
        return {"value": None, "typed_value": value}
    return {"value": encode_value(value, names), "typed_value": None}


@given(st.lists(OBJECTS | ANYTHING, max_size=6))
def test_whatever_was_shredded_comes_back(values: list[Any]) -> None:
    rows = []
    for value in values:
        names = sorted(names_of(value), reverse=True)
        rows.append({"metadata": encode_metadata(names), **shred(value, SCHEMA, names)})
    assert texts(stored(rows, SCHEMA)) == values


@pytest.mark.parametrize(
    ("row", "typed", "what"),
    [
        ({"metadata": NO_NAMES, "typed_value": {"a": {"typed_value": "x"}}}, FIELDS, "'a' is not in the metadata"),
        ({"metadata": NO_NAMES, "value": b"\x00", "typed_value": 1}, pa.int64(), "stored twice"),
        ({"metadata": NO_NAMES, "value": b"\x00", "typed_value": {"a": None}}, FIELDS, "not an object"),
        ({"metadata": NO_NAMES, "value": b"\x0c"}, pa.int64(), "beyond the end"),
        ({"metadata": b"\x02\x00\x00", "typed_value": {"a": {"typed_value": "x"}}}, FIELDS, "version 2"),
        ({"metadata": None, "typed_value": 1}, pa.int64(), "without metadata"),
        ({"metadata": NO_NAMES, "typed_value": 1}, pa.uint32(), "type uint32"),
        ({"metadata": NO_NAMES, "typed_value": [1]}, pa.list_(pa.int64()), "expected a struct"),
        ({"metadata": NO_NAMES, "typed_value": [{}]}, pa.list_(pa.struct([])), "expected a value or typed_value"),
    ],
)
def test_column_that_does_not_fit_together_is_rejected(row: dict[str, Any], typed: pa.DataType, what: str) -> None:
    with pytest.raises(DataFileError, match=what):
        unshred(stored([row], typed))


def test_files_of_every_layout_make_one_column_at_any_depth(tmp_path: Path) -> None:
    field = {"type": "struct", "fields": [{"name": "v", "type": "variant", "nullable": True, "metadata": {}}]}
    many = {"type": "array", "elementType": "variant", "containsNull": True}
    table = TableBuilder(tmp_path / "t")
    table.create({"v": "variant", "s": field, "l": many}, features=["variantType", "variantShredding"])
    names = ["a", "b"]
    metadata = encode_metadata(names)
    plain = {"metadata": metadata, "value": encode_value({"a": "p"}, names)}
    shredded = {"metadata": metadata, "typed_value": {"a": {"typed_value": "s"}, "b": {"typed_value": 1}}}
    for one, typed in ((plain, None), (shredded, FIELDS)):
        t = VARIANT.arrow if typed is None else pa.struct([("metadata", pa.binary()), *group(typed)])
        rows = {
            "v": pa.array([one, None], t),
            "s": pa.array([{"v": one}, {"v": None}], pa.struct([("v", t)])),
            "l": pa.array([[one, None], None], pa.list_(t)),
        }
        table.append(pa.table(rows), statistics=False)
    found = open_snapshot(table.uri).scan().to_table().combine_chunks()
    top, inner, elements = found["v"], pa.chunked_array([c.field("v") for c in found["s"].chunks]), found["l"]
    wanted = [{"a": "s", "b": 1}, None, {"a": "p"}, None]
    for column in (top, inner, pa.chunked_array([c.flatten() for c in elements.chunks])):
        texts_found = variant_to_json(column.combine_chunks()).to_pylist()
        decoded = [None if t is None else json.loads(t) for t in texts_found]
        assert sorted(map(str, decoded)) == sorted(map(str, wanted))
