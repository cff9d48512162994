import pyarrow as pa
from hypothesis import given, strategies as st

from delta_core.kernels.nested import empty_rows, narrow, reach, rebuild_list, rebuild_map, rebuild_struct, relabel

LEAF = pa.struct([("a", pa.int32()), ("b", pa.string())])
TYPE = pa.struct([("s", LEAF), ("l", pa.list_(LEAF)), ("m", pa.map_(pa.string(), LEAF))])
leaves = st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": st.none() | st.text(max_size=3)})
values = st.none() | st.fixed_dictionaries(
    {
        "s": leaves,
        "l": st.none() | st.lists(leaves, max_size=3),
        "m": st.none() | st.dictionaries(st.text(max_size=2), leaves, max_size=2).map(lambda d: list(d.items())),
    }
)


@st.composite
def slices(draw):
    """An array of nested values that may begin and end within its buffers."""
    array = pa.array(draw(st.lists(values, max_size=20)), TYPE)
    start = draw(st.integers(0, len(array)))
    return array.slice(start, draw(st.integers(0, len(array) - start)))


def sound(array):
    array.validate(full=True)
    return array.to_pylist()


@given(slices())
def test_relabel_changes_names_only(array):
    renamed = pa.struct([("x", LEAF), ("y", pa.list_(pa.field("other", LEAF))), ("z", pa.map_(pa.string(), LEAF))])
    batch = pa.RecordBatch.from_arrays([array], ["old"])
    found = relabel(batch, pa.schema([pa.field("new", renamed)]))
    expected = [v and {"x": v["s"], "y": v["l"], "z": v["m"]} for v in array.to_pylist()]
    assert found.schema.field("new").type == renamed
    assert sound(found.column(0)) == expected
    if len(array):
        assert [b and b.address for b in found.column(0).buffers()] == [b and b.address for b in array.buffers()]


@given(slices())
def test_narrow_keeps_the_named_fields_at_every_depth(array):
    part = pa.struct([("b", pa.string())])
    wanted = pa.struct([("m", pa.map_(pa.string(), part)), ("l", pa.list_(part)), ("s", LEAF)])

    def cut(v):
        return v and {"b": v["b"]}

    expected = [
        v and {"m": v["m"] and [(k, cut(x)) for k, x in v["m"]], "l": v["l"] and [cut(x) for x in v["l"]], "s": v["s"]}
        for v in array.to_pylist()
    ]
    assert sound(narrow(array, wanted)) == expected


@given(slices())
def test_reach_is_null_where_a_struct_on_the_way_is(array):
    assert sound(reach(array, (0, 1))) == [v and v["s"] and v["s"]["b"] for v in array.to_pylist()]
    assert sound(reach(array, (1,))) == [v and v["l"] for v in array.to_pylist()]
    assert reach(array, ()) is array


@given(slices())
def test_rebuilt_arrays_equal_the_original(array):
    again = rebuild_struct(array, [f.name for f in TYPE], [array.field(i) for i in range(3)])
    assert sound(again) == array.to_pylist()
    lists, maps = array.field(1), array.field(2)
    assert sound(rebuild_list(lists, lists.values)) == lists.to_pylist()
    assert sound(rebuild_map(maps, maps.keys, maps.items)) == maps.to_pylist()


def test_batch_without_columns_counts_its_rows_through_relabel():
    assert relabel(empty_rows(7), pa.schema([])).num_rows == 7
