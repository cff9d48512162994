"""Z85: the ZeroMQ vector, the protocol's names, round trips and rejections."""

from __future__ import annotations

import string
import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import CorruptTableError, InvalidArgumentError
from delta_core.kernels import roaring
from delta_plugins.deletion_vectors import z85

# kernel-rs's inline vector and its rows.
INLINE_VECTOR, INLINE_ROWS = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", [3, 4, 7, 11, 18, 29]
PREFIXED, UUID = "ab^-aqEH.-t@S}K{vb[*k^", "d2c639aa-8816-431a-aaf6-d3fe2512ff61"


def test_vector_of_the_z85_rfc() -> None:
    assert z85.encode(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"
    assert z85.decode("HelloWorld") == z85.decode(b"HelloWorld") == bytes.fromhex("864fd26fb559f75b")
    assert (z85.encode(b""), z85.decode("")) == ("", b"")


@given(st.binary(max_size=80))
def test_bytes_come_back(data: bytes) -> None:
    text = z85.encode(data, pad=True)
    assert len(text) == (len(data) + 3) // 4 * 5
    assert z85.decode(text, len(data)) == data


def test_highest_group_is_read_and_the_next_rejected() -> None:
    assert z85.encode(b"\xff\xff\xff\xff") == "%nSc0"
    assert z85.decode("%nSc0") == b"\xff\xff\xff\xff"
    with pytest.raises(CorruptTableError, match="letters 5 to 9"):
        z85.decode("00000%nSc1")


@pytest.mark.parametrize("text", ["0000", "000000", '0000"', "0000 ", "0000~", "0000é", "0000\0", b"0000\xff"])
def test_other_text_is_rejected(text: str | bytes) -> None:
    with pytest.raises(CorruptTableError):
        z85.decode(text)


def test_every_letter_outside_the_alphabet_is_rejected() -> None:
    allowed = [code for code in range(256) if _is_decoded(bytes([48, 48, 48, 48, code]))]
    assert bytes(allowed) == bytes(sorted(f"{string.digits}{string.ascii_letters}.-:+=^!/*?&<>()[]{{}}@%$#".encode()))


def _is_decoded(text: bytes) -> bool:
    try:
        return bool(z85.decode(text))
    except CorruptTableError:
        return False


def test_size_must_lie_in_the_last_group() -> None:
    assert z85.decode("HelloWorld", 5) == bytes.fromhex("864fd26fb5")
    for size in (4, 9, -1):
        with pytest.raises(CorruptTableError, match="expected"):
            z85.decode("HelloWorld", size)


def test_unpadded_bytes_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError):
        z85.encode(b"12345")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_names_of_vector_files_with_and_without_prefix(kind: pa.DataType) -> None:
    texts = pa.array(["junk", PREFIXED, None, PREFIXED[2:], "éé" + PREFIXED], pa.string()).cast(kind)[1:]
    assert z85.vector_file_names(texts).to_pylist() == [
        f"ab/deletion_vector_{UUID}.bin",
        None,
        f"deletion_vector_{UUID}.bin",
        f"ééab/deletion_vector_{UUID}.bin",
    ]
    raw = z85.decode_uuids(texts)
    assert raw.shape == (4, 16)
    assert uuid.UUID(bytes=raw[0].tobytes()) == uuid.UUID(UUID)
    assert not raw[1].any()


def test_names_of_no_files() -> None:
    assert z85.vector_file_names(pa.array([], pa.string())).to_pylist() == []
    assert z85.vector_file_names(pa.nulls(2)).to_pylist() == [None, None]
    assert z85.decode_uuids(pa.nulls(2)).shape == (2, 16)
    assert z85.decode_uuids(pa.array([None], pa.string())).dtype == np.uint8


@pytest.mark.parametrize("text", ["", PREFIXED[3:], PREFIXED[:-1] + "~"])
def test_name_without_a_uuid_is_named(text: str) -> None:
    with pytest.raises(CorruptTableError) as caught:
        z85.vector_file_names(pa.array([PREFIXED, text]))
    assert repr(text) in str(caught.value)


def test_inline_vector_of_kernel_rs_is_read_and_written() -> None:
    payload = z85.decode(INLINE_VECTOR, 44)
    rows = roaring.decode_dv_payload(payload)
    assert rows.positions().tolist() == INLINE_ROWS
    assert roaring.encode_dv_payload(rows) == payload
    assert z85.encode(payload) == INLINE_VECTOR
    assert np.flatnonzero(np.unpackbits(roaring.decode_dv_bits(payload, 30), bitorder="little")).tolist() == INLINE_ROWS


def test_obsolete_inline_vector_of_the_protocol_text_is_rejected() -> None:
    with pytest.raises(CorruptTableError, match="obsolete"):
        roaring.decode_dv_payload(z85.decode("wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40))
