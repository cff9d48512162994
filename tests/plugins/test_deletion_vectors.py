"""Feature deletionVectors: where vectors lie, and their bytes to rows."""

import struct
import uuid
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import CorruptTableError
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import VECTOR_LOCATION, RowSelector
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import DELETION_VECTOR
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_core.testing.vector_bytes import encode_vector, encode_vector_file, encode_z85
from delta_plugins.deletion_vectors import DeletionVectorError
from delta_plugins.deletion_vectors.logic import decode, locate

UUID_TEXT = "^-aqEH.-t@S}K{vb[*k^"
UUID_FILE = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def vector(kind: str, text: str, offset: int | None = None, size: int = 10, cardinality: int = 2) -> dict[str, Any]:
    return {
        "storageType": kind,
        "pathOrInlineDv": text,
        "offset": offset,
        "sizeInBytes": size,
        "cardinality": cardinality,
    }


def files(*vectors: dict[str, Any] | None) -> pa.Table:
    return pa.table({"deletionVector": pa.array(vectors, DELETION_VECTOR)})


def location(*vectors: dict[str, Any] | None) -> list[dict[str, Any]]:
    found = locate(files(*vectors))
    assert found.schema == VECTOR_LOCATION
    return found.to_pylist()


class TestDeletionVectors(FeatureContract):
    name = "deletionVectors"

    def tables(self) -> list[ExampleTable]:
        on = {"delta.enableDeletionVectors": "true"}
        return [ExampleTable(properties=on), ExampleTable(properties=on, partition_by=["name"])]

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties={"delta.enableDeletionVectors": "true"})]

    def test_vectors_count_even_where_no_new_ones_may_be_written(self) -> None:
        off, on = self.states()
        assert not off.is_active(self.name)
        assert on.is_active(self.name)
        for state in (off, on):
            (rule,) = self.alone().collect("read_rules", table=state, request=ReadRequest())
            assert isinstance(rule, RowSelector)
            assert rule.columns == ("deletionVector",)


# --- if ---


def test_vector_file_is_named_by_the_last_20_letters_under_the_prefix() -> None:
    (found,) = location(vector("u", "ab" + UUID_TEXT, offset=4, size=40, cardinality=6))
    assert found == {"file": 0, "path": f"ab/{UUID_FILE}", "offset": 4, "length": 48, "data": None, "cardinality": 6}


def test_prefix_that_looks_percent_encoded_is_taken_as_it_is() -> None:
    (found,) = location(vector("u", "a%20b" + UUID_TEXT, offset=1))
    assert found["path"] == f"a%20b/{UUID_FILE}"


def test_vector_file_without_prefix_lies_in_the_root() -> None:
    (found,) = location(vector("u", UUID_TEXT, offset=1))
    assert found["path"] == UUID_FILE


def test_absolute_path_is_percent_decoded_once() -> None:
    found = location(vector("p", "s3://b/a%2520b%2Bc+d.bin", 1), vector("p", "/t/x.bin", 5), vector("p", "/t/x.bin", 9))
    assert [f["path"] for f in found] == ["s3://b/a%20b+c+d.bin", "/t/x.bin", "/t/x.bin"]


def test_inline_vector_provides_its_bytes_cut_to_its_size() -> None:
    payload = encode_vector([3, 4, 7, 11, 18, 29])
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    assert encode_z85(payload) == text
    (found,) = location(vector("i", text, size=44, cardinality=6))
    assert found == {"file": 0, "path": None, "offset": None, "length": None, "data": payload, "cardinality": 6}
    (padded,) = location(vector("i", encode_z85(b"abcde"), size=5))
    assert padded["data"] == b"abcde"


@pytest.mark.parametrize(("tail", "data"), [("##093", b"\x03\x00"), ("###02", b"\x02"), ("#0001", b"\x00\x00\x01")])
def test_text_of_a_writer_that_does_not_pad_is_read(tail: str, data: bytes) -> None:
    found = location(vector("i", "00001" + tail, size=4 + len(data)), vector("i", "00002", size=4))
    assert [f["data"] for f in found] == [b"\x00\x00\x00\x01" + data, b"\x00\x00\x00\x02"]


def test_files_without_a_vector_have_no_row() -> None:
    found = location(
        None, vector("u", UUID_TEXT, 1), None, vector("i", encode_z85(b"wxyz"), size=4), vector("p", "/x", 1)
    )
    assert [f["file"] for f in found] == [1, 3, 4]
    assert location(None, None) == []
    assert locate(files()).num_rows == 0


def test_missing_offset_requires_one_byte_more() -> None:
    (found,) = location(vector("u", UUID_TEXT, offset=None, size=40))
    assert (found["offset"], found["length"]) == (0, 49)


def test_chunked_and_sliced_columns_are_located_alike() -> None:
    table = pa.concat_tables([files(None, vector("u", UUID_TEXT, 1)), files(vector("i", encode_z85(b"wxyz"), size=4))])
    assert [f["file"] for f in locate(table).to_pylist()] == [1, 2]
    sliced = files(vector("i", encode_z85(b"aaaa"), size=4), vector("i", encode_z85(b"bbbbcc"), size=6)).slice(1)
    assert [f["data"] for f in locate(sliced).to_pylist()] == [b"bbbbcc"]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=40), st.uuids()), max_size=12))
def test_any_mix_of_vectors_is_located(parts: list[bytes | uuid.UUID | None]) -> None:
    described = [
        None
        if p is None
        else vector("i", encode_z85(p), size=len(p))
        if isinstance(p, bytes)
        else vector("u", encode_z85(p.bytes), 1)
        for p in parts
    ]
    found = location(*described)
    assert [f["file"] for f in found] == [i for i, p in enumerate(parts) if p is not None]
    for f in found:
        part = parts[f["file"]]
        assert f["data"] == part if isinstance(part, bytes) else f["path"] == f"deletion_vector_{part}.bin"


@pytest.mark.parametrize(
    "bad",
    [
        vector("r", "x.bin"),
        vector("u", "short"),
        vector("u", '"' * 20),
        vector("i", "abcdef"),
        vector("i", "abcde", size=9),
        vector("i", "####1", size=1),
        vector("i", "###$1", size=1),
        vector("i", "abcde", size=0),
        vector("i", '""""" ', size=4),
        vector("u", UUID_TEXT, size=-1),
        vector("u", UUID_TEXT, offset=-5),
        {**vector("u", UUID_TEXT), "pathOrInlineDv": None},
        {**vector("p", "/x"), "sizeInBytes": None},
    ],
)
def test_descriptor_that_leads_nowhere_is_rejected(bad: dict[str, Any]) -> None:
    with pytest.raises(CorruptTableError, match=r"[Vv]ector"):
        locate(files(None, bad))


# --- what ---


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


def block(rows: list[int]) -> bytes:
    whole, (offset,) = encode_vector_file([encode_vector(rows)])
    return whole[offset:]


@given(st.sets(st.integers(0, 2**40), max_size=50))
def test_inline_and_stored_bytes_return_the_rows(rows: set[int]) -> None:
    ordered = sorted(rows)
    for data in (encode_vector(ordered), block(ordered), memoryview(block(ordered))):
        assert decode(data, len(ordered), "here").positions().tolist() == ordered


def test_vector_without_offset_is_found_behind_the_version_and_at_0() -> None:
    payload = encode_vector([1, 5])
    whole, _ = encode_vector_file([payload, encode_vector([9])])
    size = len(payload)
    assert decode(whole[: size + 9], 2, "here").positions().tolist() == [1, 5]
    at_0 = whole[1:]
    assert decode(at_0[: size + 9], 2, "here").positions().tolist() == [1, 5]
    assert decode(at_0[: size + 8], 2, "here").positions().tolist() == [1, 5]


@pytest.mark.parametrize("position", range(len(block([1, 5]))))
def test_any_byte_that_changed_is_noticed(position: int) -> None:
    data = bytearray(block([1, 5]))
    data[position] ^= 0x41
    with pytest.raises(DeletionVectorError, match=r"at x\.bin can't be read") as caught:
        decode(bytes(data), 2, "x.bin")
    assert caught.value.path == "x.bin"


@pytest.mark.parametrize("length", range(len(block([1, 5]))))
def test_bytes_cut_off_are_noticed(length: int) -> None:
    with pytest.raises(DeletionVectorError):
        decode(block([1, 5])[:length], 2, "x.bin")


@given(st.binary(max_size=60))
def test_arbitrary_bytes_never_pass_unseen(data: bytes) -> None:
    for hostile in (data, framed(data)):
        try:
            decode(hostile, 10**9, "x.bin")
        except DeletionVectorError:
            continue
        pytest.fail("no vector of so few bytes deletes so many rows")


def test_wrong_cardinality_is_rejected_and_an_unknown_one_is_not() -> None:
    with pytest.raises(DeletionVectorError, match="deletes 2 rows, its descriptor specifies 3"):
        decode(block([1, 5]), 3, "x.bin")
    assert len(decode(block([1, 5]), None, "x.bin")) == 2


def test_obsolete_encoding_is_rejected_by_its_magic() -> None:
    with pytest.raises(DeletionVectorError, match="obsolete"):
        decode(framed(struct.pack(">Ii", 1681511376, 0)), 0, "x.bin")
