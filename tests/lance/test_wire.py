"""The codec of Lance's protobuf messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from delta_core.errors import CorruptTableError, DataFileError, InvalidArgumentError
from delta_plugins.lance import wire

NAMES = [
    "Manifest", "Transaction", "PageLayout", "ArrayEncoding", "ColumnMetadata", "RowIdSequence",
]  # fmt: skip


def _scalars(kind: str) -> st.SearchStrategy[Any]:
    bits = int(kind[1:]) if kind[1:].isdigit() else 0
    if bits:
        low, high = (0, (1 << bits) - 1) if kind[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return st.integers(low, high)
    return {
        "bool": st.booleans(),
        "string": st.text(max_size=5),
        "bytes": st.binary(max_size=5),
        "double": st.floats(allow_nan=False),
    }[kind]


def _messages(name: str, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for f in wire.message_table(name).values():
        is_scalar = f.kind in wire._KINDS
        if depth == 4 and not is_scalar:
            fields[f.name] = st.just([] if f.form == "*" else {} if f.form == "map" else None)
            continue
        values = _scalars(f.kind) if is_scalar else st.deferred(lambda k=f.kind: _messages(k, depth + 1))  # type: ignore[misc]
        if f.form == "*":
            fields[f.name] = st.lists(values, max_size=2)
        elif f.form == "map":
            fields[f.name] = st.dictionaries(_scalars(f.key), values, max_size=2)
        else:
            fields[f.name] = st.none() | values if f.form == "?" else values
    return st.fixed_dictionaries(fields)


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_decoded_as_it_was_encoded(name: str) -> None:
    @settings(max_examples=8, deadline=None)
    @given(_messages(name))
    def check(message: dict[str, Any]) -> None:
        assert wire.decode(name, wire.encode(name, message), "bytes") == message

    check()


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes_are_a_message_or_one_typed_error(name: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.binary(max_size=40))
    def check(data: bytes) -> None:
        try:
            found = wire.decode(name, data, "bytes")
        except CorruptTableError:
            return
        assert wire.decode(name, wire.encode(name, found), "bytes") == _without_unknown(found)

    check()


def _without_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_unknown(v) for k, v in value.items() if k != wire.UNKNOWN}
    return [_without_unknown(v) for v in value] if isinstance(value, list) else value


def test_an_absent_field_is_its_default() -> None:
    found = wire.decode("Manifest", b"", "bytes")
    assert found["version"] == 0
    assert found["max_fragment_id"] is None
    assert found["timestamp"] is None
    assert found["fields"] == []
    assert found["config"] == {}


def test_an_optional_zero_is_encoded_and_a_plain_zero_is_not() -> None:
    assert wire.encode("Manifest", {"version": 0, "max_fragment_id": 0}) == bytes.fromhex("5800")


def test_a_negative_number_takes_ten_bytes() -> None:
    data = wire.encode("Field", {"parent_id": -1})
    assert data == bytes.fromhex("20ffffffffffffffffff01")
    assert wire.decode("Field", data, "bytes")["parent_id"] == -1


def test_unpacked_and_packed_numbers_are_equal() -> None:
    assert wire.decode("DataFile", bytes.fromhex("10011003"), "bytes")["fields"] == [1, 3]
    assert wire.decode("DataFile", bytes.fromhex("12020103"), "bytes")["fields"] == [1, 3]


def test_unknown_fields_are_counted_and_not_encoded() -> None:
    found = wire.decode("Range", bytes.fromhex("0801f2c10102abcdf8c10107"), "bytes")
    assert found[wire.UNKNOWN] == [(3102, 2, b"\xab\xcd"), (3103, 0, 7)]
    assert wire.encode("Range", found) == bytes.fromhex("0801")


def test_a_message_that_occurs_twice_is_merged() -> None:
    found = wire.decode("Manifest", bytes.fromhex("3a02080a3a02100b"), "bytes")
    assert found["timestamp"] == {"seconds": 10, "nanos": 11}


def test_the_layout_of_the_example_is_decoded() -> None:
    """List<int32> of [[1, 2], null, [], [3]] in version 2.2."""
    data = bytes.fromhex("0a1e0a040a0208101204 0a0208101a04 0a020820320201063801400148035001".replace(" ", ""))
    layout = wire.decode("PageLayout", data, "bytes")
    assert wire.chosen(layout) == "mini_block"
    page = layout["mini_block"]
    assert page["rep_compression"]["flat"]["bits_per_value"] == 16
    assert page["value_compression"]["flat"]["bits_per_value"] == 32
    assert (page["layers"], page["num_buffers"], page["num_items"], page["has_large_chunk"]) == ([1, 6], 1, 3, True)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("18", "no number"),
        ("18ffffffffffffffffffff01", "no number"),
        ("18ffffffffffffffffff02", "no number"),
        ("1a05", "5 bytes"),
        ("1a0100", "expected wire type 0, found 2"),
        ("0b", "wire type 3"),
        ("0001", "field number 0"),
        ("58ffffffffffffffff01", "more than 32 bits"),
        ("4201ff", "UTF-8"),
        ("0a0118", "fields: no number"),
    ],
)
def test_damaged_bytes_are_reported_with_their_place(data: str, found: str) -> None:
    with pytest.raises(DataFileError, match=found) as e:
        wire.decode("Manifest", bytes.fromhex(data), "manifest 3", DataFileError)
    assert "manifest 3 is damaged" in str(e.value)


def test_nesting_beyond_the_limit_is_rejected() -> None:
    data = b""
    for _ in range(300):
        data = wire.encode("NoNulls", {}) + b"\x0a" + _length(b"\x12" + _length(b"\x0a" + _length(data)))
    with pytest.raises(CorruptTableError, match="nested"):
        wire.decode("NoNulls", data, "bytes")


def _length(data: bytes) -> bytes:
    out, n = bytearray(), len(data)
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n]) + data


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_a_number_that_its_kind_does_not_hold_is_not_encoded(value: int) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a number"):
        wire.encode("Manifest", {"max_fragment_id": value})


def test_a_field_that_a_message_lacks_is_not_encoded() -> None:
    with pytest.raises(InvalidArgumentError, match="no field 'versoin'"):
        wire.encode("Manifest", {"versoin": 1})
