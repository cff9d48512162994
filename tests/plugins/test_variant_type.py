"""Feature variantType: variants as they are, and as JSON text."""

import contextlib
import json
import math
import struct
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import DataFileError, ExpressionError, UnsupportedFeatureError
from delta_core.expressions.ast import Call, Column
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import check_types
from delta_core.schema.types import VARIANT, PrimitiveType
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder
from delta_core.testing.variant_bytes import encode_metadata, encode_value, names_of, variants
from delta_plugins.variant_type.logic import json_type, unshred, variant_to_json

NO_NAMES = encode_metadata([])


def variant_array(*pairs: tuple[bytes, bytes] | None) -> pa.StructArray:
    filled = [p or (b"", b"") for p in pairs]
    return pa.StructArray.from_arrays(
        [pa.array([m for m, _ in filled], pa.binary()), pa.array([v for _, v in filled], pa.binary())],
        fields=list(VARIANT.arrow),
        mask=pa.array([p is None for p in pairs], pa.bool_()),
    )


def text(value: bytes, metadata: bytes = NO_NAMES) -> str:
    return variant_to_json(variant_array((metadata, value))).to_pylist()[0]


def primitive(header: int, code: str, *values: Any) -> bytes:
    return bytes([header << 2]) + struct.pack("<" + code, *values)


class TestVariantType(FeatureContract):
    name = "variantType"
    uncompared = ("variant_json",)  # its argument is a variant: test_variant_type_on_spark compares its texts

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], fields=[{"name": "v", "type": "variant"}])]

    def test_type_is_known_and_makes_it_active(self) -> None:
        plain, used = self.states()
        check_types(used.schema, used.types)
        assert used.is_active(self.name)
        assert not plain.is_active(self.name)

    def test_type_is_rejected_where_the_table_lacks_the_feature(self) -> None:
        state = table_state([], fields=[{"name": "v", "type": "variant"}])
        with pytest.raises(UnsupportedFeatureError, match="Column v has type 'variant'"):
            check_types(state.schema, state.types)

    def test_function_takes_one_variant(self) -> None:
        (function,) = self.alone().functions.values()
        assert function.name == "variant_json"
        assert function.result([VARIANT.arrow]) == pa.string()
        assert function.arrays(variants([{"a": [1, None]}])).to_pylist() == ['{"a":[1,null]}']
        for wrong in ([], [pa.string()], [VARIANT.arrow, VARIANT.arrow]):
            with pytest.raises(ExpressionError, match="variant_json takes one variant"):
                json_type(wrong)


# --- JSON text ---

PRIMITIVES = [
    (bytes([0]), "null"), (bytes([1 << 2]), "true"), (bytes([2 << 2]), "false"),
    (primitive(3, "b", -128), "-128"), (primitive(4, "h", -32768), "-32768"), (primitive(5, "i", 2**31 - 1),
                                                                               "2147483647"),
    (primitive(6, "q", -(2**63)), "-9223372036854775808"),
    (primitive(7, "d", 0.0), "0.0"), (primitive(7, "d", -0.0), "-0.0"), (primitive(7, "d", 1.0), "1.0"),
    (primitive(7, "d", 0.001), "0.001"), (primitive(7, "d", 9.99e-4), "9.99E-4"), (primitive(7, "d", 1e7), "1.0E7"),
    (primitive(7, "d", 9999999.5), "9999999.5"), (primitive(7, "d", 5e-324), "5.0E-324"),
    (primitive(7, "d", -1e300), "-1.0E300"),
    (primitive(7, "d", math.nan), '"NaN"'), (primitive(7, "d", -math.inf), '"-Infinity"'),
    (primitive(14, "f", 0.1), "0.1"), (primitive(14, "f", 1e10), "1.0E10"), (primitive(14, "f", math.inf),
                                                                             '"Infinity"'),
    (primitive(8, "Bi", 2, 12345), "123.45"), (primitive(8, "Bi", 2, 12300), "123"),
    (primitive(8, "Bi", 3, -5), "-0.005"),
    (primitive(8, "Bi", 0, 1200), "1200"), (primitive(8, "Bi", 2, 0), "0"),
    (primitive(9, "Bq", 4, 2**53), "900719925474.0992"),
    (bytes([10 << 2, 38]) + (-(10**37) - 1).to_bytes(16, "little", signed=True), f"-0.1{'0' * 36}1"),
    (bytes([10 << 2, 0]) + (-(2**127)).to_bytes(16, "little", signed=True), str(-(2**127))),
    (primitive(11, "i", 0), '"1970-01-01"'), (primitive(11, "i", -719528), '"0000-01-01"'),
    (primitive(11, "i", 19782), '"2024-02-29"'),
    (primitive(11, "i", -719529), '"-0001-12-31"'), (primitive(11, "i", 2932897), '"+10000-01-01"'),
    (primitive(12, "q", 0), '"1970-01-01 00:00:00+00:00"'), (primitive(12, "q", -1),
                                                             '"1969-12-31 23:59:59.999999+00:00"'),
    (primitive(13, "q", 1_700_000_000_120_000), '"2023-11-14 22:13:20.12"'),
    (primitive(17, "q", 86_399_999_999), '"23:59:59.999999"'),
    (primitive(18, "q", -1), '"1969-12-31 23:59:59.999999999+00:00"'),
    (primitive(19, "q", 1), '"1970-01-01 00:00:00.000000001"'),
    (primitive(15, "I", 2) + b"\x00\xff", '"AP8="'), (primitive(15, "I", 0), '""'),
    (primitive(16, "I", 3) + "é!".encode(), '"é!"'), (bytes([3 << 2 | 1]) + b'a"\\', '"a\\"\\\\"'),
    (bytes([6 << 2 | 1]) + b"\b\t\n\f\r\x1f", '"\\b\\t\\n\\f\\r\\u001F"'),
    (bytes([20 << 2]) + uuid.UUID(int=1 << 120).bytes, '"01000000-0000-0000-0000-000000000000"'),
]  # fmt: skip


@pytest.mark.parametrize(("value", "wanted"), PRIMITIVES, ids=[w for _, w in PRIMITIVES])
def test_primitive_as_spark_writes_it(value: bytes, wanted: str) -> None:
    assert text(value) == wanted


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=80),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(st.lists(JSON_VALUES, max_size=5), st.integers(2, 4))
def test_json_text_means_the_value(values: list[Any], width: int) -> None:
    found = variant_to_json(variants(values, width)).to_pylist()
    assert [json.loads(t) for t in found] == values


def test_large_containers_have_wide_counts() -> None:
    value = {f"k{i:03}": [i] for i in range(300)}
    assert json.loads(variant_to_json(variants([value, list(range(300))])).to_pylist()[0]) == value


def test_null_rows_stay_null_and_slices_count_from_their_start() -> None:
    array = variant_array((NO_NAMES, b"\x04"), None, (NO_NAMES, b"\x08"))
    assert variant_to_json(array).to_pylist() == ["true", None, "false"]
    assert variant_to_json(array.slice(1)).to_pylist() == [None, "false"]
    assert variant_to_json(array.slice(0, 0)).to_pylist() == []


SAMPLE = {"a": [1, "x", None], "b": {"c": 1.5}}
NAMES = sorted(names_of(SAMPLE))


@pytest.mark.parametrize("length", range(len(encode_value(SAMPLE, NAMES))))
def test_value_cut_off_is_rejected(length: int) -> None:
    with pytest.raises(DataFileError, match="not a variant"):
        text(encode_value(SAMPLE, NAMES)[:length], encode_metadata(NAMES))


@pytest.mark.parametrize("length", range(len(encode_metadata(NAMES))))
def test_metadata_cut_off_is_rejected(length: int) -> None:
    with pytest.raises(DataFileError, match="not a variant"):
        text(encode_value(SAMPLE, NAMES), encode_metadata(NAMES)[:length])


@given(st.binary(max_size=40), st.binary(max_size=30))
def test_arbitrary_bytes_return_text_or_an_error(value: bytes, names: bytes) -> None:
    for metadata in (NO_NAMES, b"\x01" + names, encode_metadata(NAMES)):
        try:
            found = text(value, metadata)
        except DataFileError:
            continue
        assert found


@given(st.integers(0, 200), st.integers(0, 255))
def test_changed_byte_returns_text_or_an_error(at: int, byte: int) -> None:
    data = bytearray(encode_value(SAMPLE, NAMES))
    data[at % len(data)] = byte
    with contextlib.suppress(DataFileError):
        json.loads(text(bytes(data), encode_metadata(NAMES)))


def test_parts_that_share_bytes_are_rejected_before_they_multiply() -> None:
    value = b"\x00"
    for _ in range(40):  # arrays of two elements, both at offset 0
        value = bytes([3 << 2 | 3, 2]) + struct.pack("<3I", 0, 0, len(value)) + value
    with pytest.raises(DataFileError, match="overlap"):
        text(value)


def test_nesting_without_end_is_rejected() -> None:
    value = b"\x00"
    for _ in range(600):
        value = bytes([1 << 2 | 3, 1]) + struct.pack("<2H", 0, len(value)) + value
    with pytest.raises(DataFileError, match="nested more than"):
        text(value)


def test_text_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(DataFileError, match="not a variant"):
        text(b"\x05\xff")


# --- layouts of one value column ---


def test_order_and_binary_kind_of_a_file_do_not_matter() -> None:
    stored = pa.StructArray.from_arrays(
        [pa.array([b"\x04", None], pa.large_binary()), pa.array([NO_NAMES, None], pa.binary_view())],
        fields=[pa.field("value", pa.large_binary()), pa.field("metadata", pa.binary_view())],
        mask=pa.array([False, True]),
    )
    found = unshred(stored)
    assert found.type == VARIANT.arrow
    found.validate(full=True)
    assert found.to_pylist() == [{"metadata": NO_NAMES, "value": b"\x04"}, None]


@pytest.mark.parametrize(
    "stored",
    [
        pa.array([b"a"]),
        pa.array([{"value": b"\x04"}]),
        pa.array([{"metadata": NO_NAMES}]),
        pa.array([{"metadata": NO_NAMES, "value": None}]),
        pa.array([{"metadata": None, "value": b"\x04"}]),
    ],
)
def test_layout_that_is_no_variant_is_rejected(stored: pa.Array) -> None:
    with pytest.raises(DataFileError, match="variant column"):
        unshred(stored)


# --- in tables ---


def test_json_text_is_requested_in_predicates_and_as_a_column(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long", "v": "variant"}, features=["variantType"])
    table.append(pa.table({"id": [1, 2], "v": variants([{"a": 1}, [2]])}), statistics=False)
    snapshot = open_snapshot(table.uri)
    assert snapshot.scan(["id"], predicate="variant_json(v) = '[2]'").to_table().to_pylist() == [{"id": 2}]
    text = {"text": (Call("variant_json", (Column(("v",)),)), PrimitiveType("string"))}
    found = snapshot.scan(["id"], constants=text).to_table()
    assert found.to_pylist() == [{"id": 1, "text": '{"a":1}'}, {"id": 2, "text": "[2]"}]
