import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import DataFileError, InvalidArgumentError
from delta_core.kernels import _gather
from delta_core.kernels.gather import SelectionVector, as_views, gather, gather_column

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
    pa.map_(pa.string(), pa.int32()): st.dictionaries(
        st.text(max_size=3), st.none() | st.integers(0, 9), max_size=3
    ).map(lambda d: list(d.items())),
    pa.struct([("a", pa.int32())]): st.fixed_dictionaries({"a": st.integers(0, 9)}),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["", "sixteen letters.", "more than sixteen of them", "é"]),
}


#: Types with views; Arrow picks no rows of them.
TEXT = st.none() | st.text(max_size=20)
VIEWS = {
    pa.string_view(): TEXT,
    pa.binary_view(): st.none() | st.binary(max_size=20),
    pa.list_(pa.string_view()): st.none() | st.lists(TEXT, max_size=3),
    pa.large_list(pa.binary_view()): st.none() | st.lists(st.binary(max_size=20), max_size=3),
    pa.struct([("a", pa.string_view()), ("b", pa.int32())]): st.none()
    | st.fixed_dictionaries({"a": TEXT, "b": st.integers(0, 9)}),
    pa.map_(pa.string_view(), pa.struct([("a", pa.string_view())])): st.none()
    | st.lists(st.tuples(st.text(max_size=20), st.fixed_dictionaries({"a": TEXT})), max_size=3),
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


@st.composite
def kept_batches(draw):
    """Batches of several words of a mask, with whole words kept and dropped."""
    n = draw(st.integers(0, 400))
    start = draw(st.integers(0, 70))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    columns = []
    for t in draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3)):
        few = draw(st.lists(st.one_of(st.none(), TYPES[t]), min_size=1, max_size=12))
        values = [few[i] for i in random.integers(0, len(few), n + start)]
        array = pa.array(values, t.value_type if pa.types.is_dictionary(t) else t)
        columns.append((array.dictionary_encode() if pa.types.is_dictionary(t) else array).slice(start))
    flags = random.random(n) < draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99, 1.0]))
    for word in draw(st.lists(st.integers(0, 6), max_size=3)):
        flags[64 * word : 64 * word + 64] = draw(st.booleans())
    return pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))]), flags


@pytest.mark.parametrize("t", VIEWS, ids=str)
@given(data=st.data())
def test_rows_of_views_are_picked_at_any_depth(t, data):
    values = data.draw(st.lists(VIEWS[t], min_size=1, max_size=20))
    array = pa.array(values, t)
    rows = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=30)), np.int32)
    flags = np.isin(np.arange(len(values)), rows)
    expected = array.to_pylist()
    assert gather_column(array, rows).to_pylist() == [expected[i] for i in rows]
    kept = gather_column(array, SelectionVector.of_flags(flags))
    kept.validate(full=True)
    assert kept.to_pylist() == [v for v, keep in zip(expected, flags, strict=True) if keep]


@given(batches())
def test_gather_equals_take_of_decoded_columns(case):
    batch, rows = case
    found = gather(batch, None if rows is None else SelectionVector.of_indices(rows, batch.num_rows))
    found.validate(full=True)
    plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    expected = plain if rows is None else [c.take(pa.array(rows)) for c in plain]
    assert [c.to_pylist() for c in found.columns] == [c.to_pylist() for c in expected]
    assert found.schema.types == [c.type for c in plain]
    assert found.num_rows == (batch.num_rows if rows is None else len(rows))


def _as_views(array):
    """Return what becomes of an array that is long enough to be worth it: of its rows, over and over."""
    rows = pa.array(np.arange(9_000) % max(len(array), 1), pa.int32())
    batch = pa.record_batch({"x": array.take(rows) if len(array) else array, "n": rows if len(array) else rows[:0]})
    found = as_views(batch)
    found.validate(full=True)
    assert found.column("n").equals(batch.column("n"))
    assert found.column("x").to_pylist() == batch.column("x").to_pylist()
    assert found.schema.field("x").type == found.column("x").type
    return found.column("x")


@given(
    values=st.lists(st.none() | st.sampled_from(["", "n7", "twelve bytes", "thirteen byte", "é" * 20]), max_size=60),
    start=st.integers(0, 20),
    dictionary_start=st.integers(0, 1),
    is_coded=st.booleans(),
)
def test_strings_as_views_have_the_values(values, start, dictionary_start, is_coded):
    array = pa.array(values, pa.string())
    if is_coded:
        array = array.dictionary_encode()
        if dictionary_start:
            longer = pa.concat_arrays([pa.array(["before"]), array.dictionary])
            array = pa.DictionaryArray.from_arrays(array.indices, longer.slice(1))
    array = array.slice(start)
    assert _as_views(array).type == (pa.string_view() if len(array) else pa.string())
    assert gather(pa.record_batch({"x": array}), None, decode=False).column(0).equals(array)


def test_few_strings_stay_plain():
    for array in (pa.array(["x", None]), pa.array(["x", None]).dictionary_encode()):
        assert as_views(pa.record_batch({"x": array})).column("x").equals(pa.array(["x", None]))


def test_views_keep_no_large_dictionary():
    texts = pa.array([f"{i:>200}" for i in range(50_000)])
    few = pa.DictionaryArray.from_arrays(pa.array(np.arange(9_000) * 5, pa.int32()), texts)
    views = as_views(pa.record_batch({"x": few})).column("x")
    assert views.equals(few.cast(pa.string()).cast(pa.string_view()))
    assert sum(b.size for b in views.buffers() if b is not None) < texts.nbytes / 4
    assert _as_views(pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["x", None]))).null_count


def test_views_reject_codes_outside_the_dictionary():
    codes = np.arange(9_000, dtype=np.int32) % 2
    for code in (2, -1, 2**31 - 1):
        codes[77] = code
        array = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["x", "y"]), safe=False)
        with pytest.raises((InvalidArgumentError, DataFileError)):
            as_views(pa.record_batch({"x": array}))
    codes[77] = 99
    valid = np.ones(9_000, np.bool_)
    valid[77] = False  # a null's code means nothing
    nulls = pa.Array.from_buffers(
        pa.int32(), 9_000, [pa.py_buffer(np.packbits(valid, bitorder="little")), pa.py_buffer(codes)]
    )
    array = pa.DictionaryArray.from_arrays(nulls, pa.array(["x", "y"]), safe=False)
    assert as_views(pa.record_batch({"x": array})).column("x").to_pylist()[76:79] == ["x", None, "x"]


@given(kept_batches())
def test_masks_keep_what_their_indices_take(case):
    batch, flags = case
    picks = SelectionVector.of_flags(flags)
    assert np.array_equal(picks.indices, np.flatnonzero(flags))
    found = gather(batch, picks)
    found.validate(full=True)
    plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    assert [c.to_pylist() for c in found.columns] == [c.filter(pa.array(flags)).to_pylist() for c in plain]
    assert len(picks) == found.num_rows == np.count_nonzero(flags)


def test_mask_states_nothing_behind_the_last_row():
    mask = np.array([2**64 - 1, 2**64 - 1], np.uint64)
    for n in (0, 1, 63, 64, 65, 127, 128):
        batch = pa.RecordBatch.from_arrays(
            [pa.array(range(n), pa.int64()), pa.array([True] * n, pa.bool_())], ["x", "y"]
        )
        assert gather(batch, SelectionVector.of_mask(mask, n)).equals(batch)
    with pytest.raises(InvalidArgumentError, match="mask"):
        SelectionVector.of_mask(mask, 129)


def test_kept_strings_may_stay_encoded():
    array = pa.array(["a", None, "b", "a"]).dictionary_encode()
    found = gather_column(array, SelectionVector.of_flags(np.array([True, True, False, True])), decode=False)
    assert pa.types.is_dictionary(found.type)
    assert found.to_pylist() == ["a", None, "a"]


@given(st.lists(st.text(max_size=20), min_size=1, max_size=300), st.data())
def test_dictionary_of_many_strings_decodes(values, data):
    codes = data.draw(st.lists(st.integers(0, len(values) - 1) | st.none(), max_size=600))
    array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))
    found = gather(pa.RecordBatch.from_arrays([array], ["x"]), None).column(0)
    assert found.to_pylist() == [None if c is None else values[c] for c in codes]


@pytest.mark.parametrize(
    "sizes", [(0, 0), (1, 1), (0, 8), (8, 8), (9, 9), (3, 16), (17, 17), (20, 32), (32, 32), (3, 33)]
)
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("picked", [False, True])
def test_repeated_strings_of_any_length_decode(sizes, share, picked):
    random = np.random.default_rng(7)
    least, most = sizes
    texts = ["".join(random.choice(list("abc"), random.integers(least, most + 1))) for _ in range(9)]
    codes = pa.array(random.integers(0, 9, 1_500).astype(np.int32), mask=random.random(1_500) < share)
    array = pa.DictionaryArray.from_arrays(codes, pa.array(texts)).slice(11)
    rows = np.sort(random.choice(len(array), 400)).astype(np.int32) if picked else None
    found = gather_column(array, rows)
    found.validate(full=True)
    expected = [None if code is None else texts[code] for code in codes.slice(11).to_pylist()]
    assert found.to_pylist() == (expected if rows is None else [expected[row] for row in rows])


@pytest.mark.parametrize("size", [2, 20, 40])
@pytest.mark.parametrize("code", [3, -1, 2**31 - 1])
@pytest.mark.parametrize("picked", [False, True])
def test_codes_beyond_the_dictionary_are_rejected_but_those_of_nulls(size, code, picked):
    codes = np.where(np.arange(600) == 512, code, 2).astype(np.int32)
    rows = np.arange(600, dtype=np.int32) if picked else None
    for null in (None, 0, 512):
        mask = None if null is None else np.arange(600) == null
        indices = pa.Array.from_buffers(
            pa.int32(), 600, [None if mask is None else pa.array(~mask).buffers()[1], pa.py_buffer(codes)]
        )
        array = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * size] * 3), safe=False)
        if null == 512:
            assert gather_column(array, rows).to_pylist() == [None if i == 512 else "x" * size for i in range(600)]
        else:
            with pytest.raises(DataFileError):
                gather_column(array, rows)


def test_batch_without_columns_keeps_its_count():
    batch = pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), 5, [None]))
    assert gather(batch, SelectionVector.of_indices(np.array([0, 4], np.int32), 5)).num_rows == 2


@pytest.mark.parametrize("rows", [[5], [-1], [2**31 - 1]])
def test_index_beyond_the_batch_is_rejected(rows):
    with pytest.raises(InvalidArgumentError, match="0 and 4"):
        SelectionVector.of_indices(np.array(rows, np.int32), 5)


@pytest.mark.parametrize("code", [2, -1, 2**31 - 1])
def test_code_beyond_the_dictionary_is_rejected(code):
    codes = pa.Array.from_buffers(pa.int32(), 2, [None, pa.py_buffer(np.array([0, code], np.int32))])
    array = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    for picks in (
        None,
        SelectionVector.of_indices(np.array([1], np.int32), 2),
        SelectionVector.of_flags(np.array([False, True])),
    ):
        with pytest.raises(DataFileError, match="codes"):
            gather(pa.RecordBatch.from_arrays([array], ["x"]), picks)


@pytest.mark.parametrize("offsets", [[0, 9, 3], [0, 2, 1]])
def test_string_offsets_beyond_the_data_are_rejected(offsets):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"abc")]
    array = pa.Array.from_buffers(pa.string(), 2, buffers)
    with pytest.raises(DataFileError, match="offsets"):
        gather(pa.RecordBatch.from_arrays([array], ["x"]), SelectionVector.of_indices(np.array([0, 1], np.int32), 2))


@pytest.mark.parametrize(("start", "end"), [(7, 3), (-1, 3), (3, 101), (2**31 - 1, -(2**31))])
def test_string_offsets_of_few_rows_beyond_the_data_are_rejected(start, end):
    offsets = np.arange(101, dtype=np.int32)
    offsets[50:52] = start, end
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"x" * 100)]
    array = pa.Array.from_buffers(pa.string(), 100, buffers)
    with pytest.raises(DataFileError, match="offsets"):
        gather_column(array, np.array([3, 50], np.int32))
    # of rows that are not requested nothing is read
    assert gather_column(array, np.array([3, 48], np.int32)).to_pylist() == ["x", "x"]
    with pytest.raises(DataFileError, match="offsets"):
        _gather.text(offsets, b"x" * 100, 0, 100, None, 0, None, 0, 100, np.array([100], np.int32))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 500, 2000])
def test_strings_in_any_order(size):
    dice = np.random.default_rng(size)
    texts = [None if dice.random() < 0.1 else chr(97 + i % 26) * int(dice.integers(size + 1)) for i in range(300)]
    array = pa.array(["", *texts]).slice(1)
    for count in (1, 7, 8, 9, 100, 300):
        rows = dice.choice(300, count).astype(np.int32)
        assert gather_column(array, rows).to_pylist() == [texts[i] for i in rows]


def test_short_buffers_are_rejected():
    rows = np.array([0], np.int32)
    with pytest.raises(InvalidArgumentError, match="data"):
        _gather.fixed(b"1234567", 0, 1, 8, rows, bytearray(8))
    with pytest.raises(InvalidArgumentError, match="output"):
        _gather.fixed(b"12345678", 0, 1, 8, rows, bytearray(7))
    with pytest.raises(InvalidArgumentError, match="validity"):
        _gather.bits(b"\1", 7, 2, None, bytearray(1))
    with pytest.raises(InvalidArgumentError, match="offsets"):
        _gather.text(b"\0" * 4, b"", 0, 1, None, 0, None, 0, 1, None)
    mask = np.array([3], np.uint64)
    with pytest.raises(InvalidArgumentError, match="data"):
        _gather.kept_fixed(b"1234567", 0, 1, 8, mask, bytearray(8))
    with pytest.raises(InvalidArgumentError, match="output"):
        _gather.kept_fixed(b"1" * 16, 0, 2, 8, mask, bytearray(15))
    with pytest.raises(InvalidArgumentError, match="mask"):
        _gather.kept_fixed(b"1" * 65, 0, 65, 1, mask, bytearray(65))
    with pytest.raises(InvalidArgumentError, match="mask"):
        _gather.kept_indices(mask, -1)
    with pytest.raises(InvalidArgumentError, match="validity"):
        _gather.kept_bits(b"\1", 7, 2, mask, bytearray(16))
    with pytest.raises(InvalidArgumentError, match="output"):
        _gather.kept_bits(b"\1", 0, 2, mask, bytearray(8))
    with pytest.raises(InvalidArgumentError, match="codes"):
        _gather.text(b"\0" * 8, b"", 0, 1, b"\0" * 4, 0, None, 0, 2, None)
