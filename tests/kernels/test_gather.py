import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.errors import DataFileError, InvalidArgumentError
from delta_core.kernels import _gather
from delta_core.kernels.gather import gather

TYPES = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.UTC)),
    pa.decimal128(38, 4): st.integers(-(10**30), 10**30).map(lambda i: decimal.Decimal(i).scaleb(-4)),
    pa.string(): st.text(max_size=40),
    pa.binary(): st.binary(max_size=40),
    pa.list_(pa.int32()): st.lists(st.integers(0, 9), max_size=3),
    pa.struct([("a", pa.int32())]): st.fixed_dictionaries({"a": st.integers(0, 9)}),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["", "sixteen letters.", "more than sixteen of them", "é"]),
}


@st.composite
def batches(draw):
    n = draw(st.integers(0, 30))
    columns = []
    for t in draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4)):
        padding = draw(st.integers(0, 9))
        values = draw(st.lists(st.one_of(st.none(), TYPES[t]), min_size=n + padding, max_size=n + padding))
        array = pa.array(values, t.value_type if pa.types.is_dictionary(t) else t)
        if pa.types.is_dictionary(t):
            array = array.dictionary_encode()
        columns.append(array.slice(padding))
    batch = pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])
    rows = draw(st.none() | st.lists(st.integers(0, n - 1), max_size=40)) if n else draw(st.sampled_from([None, []]))
    return batch, None if rows is None else np.array(rows, np.int32)


@given(batches())
def test_gather_equals_take_of_decoded_columns(case):
    batch, rows = case
    found = gather(batch, rows)
    found.validate(full=True)
    plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    expected = plain if rows is None else [c.take(pa.array(rows)) for c in plain]
    assert [c.to_pylist() for c in found.columns] == [c.to_pylist() for c in expected]
    assert found.schema.types == [c.type for c in plain]
    assert found.num_rows == (batch.num_rows if rows is None else len(rows))


@given(st.lists(st.text(max_size=20), min_size=1, max_size=300), st.data())
def test_dictionary_of_many_strings_decodes(values, data):
    codes = data.draw(st.lists(st.integers(0, len(values) - 1) | st.none(), max_size=600))
    array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))
    found = gather(pa.RecordBatch.from_arrays([array], ["x"]), None).column(0)
    assert found.to_pylist() == [None if c is None else values[c] for c in codes]


def test_batch_without_columns_keeps_its_count():
    batch = pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), 5, [None]))
    assert gather(batch, np.array([0, 4], np.int32)).num_rows == 2


@pytest.mark.parametrize("rows", [[5], [-1], [2**31 - 1]])
def test_index_beyond_the_batch_is_refused(rows):
    batch = pa.RecordBatch.from_arrays([pa.array(range(5))], ["x"])
    with pytest.raises(InvalidArgumentError, match="0 and 4"):
        gather(batch, np.array(rows, np.int32))


@pytest.mark.parametrize("code", [2, -1, 2**31 - 1])
def test_code_beyond_the_dictionary_is_refused(code):
    codes = pa.Array.from_buffers(pa.int32(), 2, [None, pa.py_buffer(np.array([0, code], np.int32))])
    array = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    for rows in (None, np.array([1], np.int32)):
        with pytest.raises(DataFileError, match="codes"):
            gather(pa.RecordBatch.from_arrays([array], ["x"]), rows)


@pytest.mark.parametrize("offsets", [[0, 9, 3], [0, 2, 1]])
def test_string_offsets_beyond_the_data_are_refused(offsets):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"abc")]
    array = pa.Array.from_buffers(pa.string(), 2, buffers)
    with pytest.raises(DataFileError, match="offsets"):
        gather(pa.RecordBatch.from_arrays([array], ["x"]), np.array([0, 1], np.int32))


def test_short_buffers_are_refused():
    rows = np.array([0], np.int32)
    with pytest.raises(InvalidArgumentError, match="data"):
        _gather.fixed(b"1234567", 0, 1, 8, rows, bytearray(8))
    with pytest.raises(InvalidArgumentError, match="output"):
        _gather.fixed(b"12345678", 0, 1, 8, rows, bytearray(7))
    with pytest.raises(InvalidArgumentError, match="validity"):
        _gather.bits(b"\1", 7, 2, None, bytearray(1))
    with pytest.raises(InvalidArgumentError, match="offsets"):
        _gather.text(b"\0" * 4, b"", 0, 1, None, 0, None, 0, 1, None)
    with pytest.raises(InvalidArgumentError, match="codes"):
        _gather.text(b"\0" * 8, b"", 0, 1, b"\0" * 4, 0, None, 0, 2, None)
