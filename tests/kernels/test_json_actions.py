"""Commits to columns, against Python's own JSON parser and against hostile bytes."""

import json
import os
import pickle
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import InvalidArgumentError, LogError
from delta_core.kernels.json_actions import ActionParser, ParsedActions
from tests.corpus.records import GOLDEN, OWN


def parse(data: bytes | str, version: int = 7, **options) -> ParsedActions:
    parser = ActionParser(**options)
    parser.feed(version, data.encode() if isinstance(data, str) else data)
    parsed = parser.finish()
    for table in (parsed.adds, parsed.removes, parsed.cdcs, parsed.other_actions):
        table.validate(full=True)
    return parsed


def add(**fields) -> str:
    return json.dumps({"add": {"path": "p", **fields}})


def only(table: pa.Table) -> dict:
    (row,) = table.to_pylist()
    return row


# --- what comes out ------------------------------------------------------------------------


def test_every_field_of_an_add_becomes_a_column():
    row = only(
        parse(
            add(
                partitionValues={"a": "1", "b": None, "c": ""},
                size=5,
                modificationTime=-6,
                dataChange=True,
                stats='{"numRecords":1}',
                tags={"t": "x"},
                baseRowId=0,
                defaultRowCommitVersion=3,
                clusteringProvider="liquid",
                deletionVector={
                    "storageType": "u",
                    "pathOrInlineDv": "ab\\",
                    "offset": 4,
                    "sizeInBytes": 40,
                    "cardinality": 6,
                },
            )
        ).adds
    )
    assert row == {
        "version": 7,
        "line": 0,
        "path": "p",
        "partitionValues": [("a", "1"), ("b", None), ("c", "")],
        "size": 5,
        "modificationTime": -6,
        "dataChange": True,
        "stats": '{"numRecords":1}',
        "tags": [("t", "x")],
        "dvStorageType": "u",
        "dvPathOrInline": "ab\\",
        "dvOffset": 4,
        "dvSizeInBytes": 40,
        "dvCardinality": 6,
        "dvId": "uab\\@4",
        "baseRowId": 0,
        "defaultRowCommitVersion": 3,
        "clusteringProvider": "liquid",
    }


def test_absent_and_null_fields_are_null():
    nulls = add(partitionValues=None, size=None, dataChange=None, stats=None, tags=None, deletionVector=None)
    for text in (add(), nulls):
        row = only(parse(text).adds)
        assert {k for k, v in row.items() if v is not None} == {"version", "line", "path"}


def test_removes_and_cdcs_have_fields_of_their_own():
    parsed = parse(
        '{"remove":{"path":"r","deletionTimestamp":9,"extendedFileMetadata":true,"dataChange":false}}\n'
        '{"cdc":{"path":"c","size":3,"partitionValues":{},"dataChange":false}}\n'
    )
    remove, cdc = only(parsed.removes), only(parsed.cdcs)
    assert (remove["deletionTimestamp"], remove["extendedFileMetadata"], remove["dataChange"]) == (9, True, False)
    assert (cdc["line"], cdc["path"], cdc["size"], cdc["partitionValues"]) == (1, "c", 3, [])


def test_vector_id_without_offset_has_no_at_sign():
    vector = {"storageType": "i", "pathOrInlineDv": "wi5b=", "sizeInBytes": 4, "cardinality": 1}
    assert only(parse(add(deletionVector=vector)).adds)["dvId"] == "iwi5b="


def test_vector_comes_as_a_struct_when_requested():
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 2, "cardinality": 3}
    text = add() + add(deletionVector=vector) + add()
    table = parse(text, columns={"deletionVector"}).adds
    assert table.column_names == ["version", "line", "path", "dvId", "deletionVector"]
    assert table["deletionVector"].to_pylist() == [None, vector, None]
    assert table["dvId"].to_pylist() == [None, "ux@1", None]
    assert parse("", columns={"deletionVector"}).adds.schema == table.schema


def test_other_kinds_keep_their_text_and_line():
    parsed = parse('{"commitInfo":{"a": [1]}}\n{"add":{"path":"p"}}\n{"stranger" : 7.50 }\n{"txn":null}')
    assert parsed.other_actions.to_pylist() == [
        {"version": 7, "line": 0, "kind": "commitInfo", "json": '{"a": [1]}'},
        {"version": 7, "line": 2, "kind": "stranger", "json": "7.50"},
    ]
    assert only(parsed.adds)["line"] == 1


def test_statistics_written_as_an_object_keep_their_text():
    assert only(parse('{"add":{"path":"p","stats":{"numRecords" :1}}}').adds)["stats"] == '{"numRecords" :1}'


def test_rows_come_in_the_order_fed():
    parser = ActionParser(columns=())
    for version in (5, 3, 4):
        parser.feed(version, (add() + "\n" + add(path=f"q{version}")).encode())
    table = parser.finish().adds
    assert table["version"].to_pylist() == [5, 5, 3, 3, 4, 4]
    assert table["line"].to_pylist() == [0, 1] * 3
    assert table["path"].to_pylist() == ["p", "q5", "p", "q3", "p", "q4"]


def test_finish_starts_again():
    parser = ActionParser()
    parser.feed(1, add().encode())
    assert parser.finish().adds.num_rows == 1
    assert parser.finish().adds.num_rows == 0


# --- what is requested ---------------------------------------------------------------------


def test_only_requested_columns_and_identity_are_kept():
    table = parse(add(size=1, stats="{}"), columns={"size"}).adds
    assert table.column_names == ["version", "line", "path", "size", "dvId"]


def test_unknown_column_is_rejected_by_name():
    with pytest.raises(InvalidArgumentError, match="sizes"):
        ActionParser(columns={"sizes"})


def test_kinds_narrow_what_is_kept():
    text = add() + '{"remove":{"path":"r"}}{"protocol":{}}{"metaData":{}}'
    parsed = parse(text, kinds={"protocol", "remove"})
    assert (parsed.adds.num_rows, parsed.removes.num_rows) == (0, 1)
    assert parsed.other_actions["kind"].to_pylist() == ["protocol"]
    assert parsed.other_actions["line"].to_pylist() == [2]


def test_skipped_kinds_are_not_kept():
    parsed = parse('{"commitInfo":{}}' + add() + '{"txn":{}}', skip_kinds={"commitInfo", "add"})
    assert parsed.adds.num_rows == 0
    assert parsed.other_actions["kind"].to_pylist() == ["txn"]


def test_a_skipped_torn_action_still_raises():
    with pytest.raises(LogError):
        parse('{"add":{"path":"p"', kinds={"protocol"})


def test_partition_keys_become_columns():
    text = "".join(add(partitionValues=v) for v in ({"a": "x", "b": "1"}, {"a": None}, {}, {"a": "é\n"}, {"a": "x"}))
    table = parse(text, columns=(), partition_keys=["a", "b"]).adds
    assert table.column_names[3:5] == ["partition:a", "partition:b"]
    assert table["partition:a"].to_pylist() == ["x", None, None, "é\n", "x"]
    assert table["partition:b"].to_pylist() == ["1", None, None, None, None]
    assert len(table["partition:a"].chunk(0).dictionary) == 2


def test_add_without_partition_values_is_rejected_where_their_keys_are_requested():
    for text in (add(), add(partitionValues=None)):
        with pytest.raises(LogError, match="expected 'partitionValues' in add"):
            parse(text, partition_keys=["a"])
        assert parse(text).adds.num_rows == 1


def test_many_distinct_partition_values_keep_their_rows():
    values = [f"value {i * 7 % 1000}" for i in range(3000)]
    table = parse("".join(add(partitionValues={"k": v}) for v in values), partition_keys=["k"]).adds
    assert table["partition:k"].to_pylist() == values
    assert len(table["partition:k"].chunk(0).dictionary) == 1000


def test_extra_fields_keep_their_raw_text():
    text = add(mine={"a": [1, "x"]}) + add() + add(mine=None)
    table = parse(text, columns=(), extra_fields={"add": ["mine"]}).adds
    assert table["extra:mine"].to_pylist() == ['{"a": [1, "x"]}', None, None]


def test_extra_fields_may_not_shadow_the_protocols():
    with pytest.raises(InvalidArgumentError, match="size"):
        ActionParser(extra_fields={"add": ["size"]})
    with pytest.raises(InvalidArgumentError, match="txn"):
        ActionParser(extra_fields={"txn": ["x"]})


# --- forms of JSON -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "\n \r\n", "\ufeff", "{}", '{"add":null}', "\ufeff{}\n"])
def test_commit_without_actions_is_empty(text):
    parsed = parse(text)
    assert parsed.adds.num_rows == parsed.other_actions.num_rows == 0


@pytest.mark.parametrize("joint", ["\n", "\r\n", "x\n", "x \r\n", "\n\n", "", " ", ",\n", "é\n", "\t"])
def test_actions_may_be_joined_in_many_ways(joint):
    table = parse(joint.join(add(path=f"p{i}") for i in range(3)) + joint).adds
    assert table["path"].to_pylist() == ["p0", "p1", "p2"]


@pytest.mark.parametrize("joint", ["}", "xx\n", "x{", '"', "]\n", "x y\n", "\x00\n", "\nx\n"])
def test_more_than_a_stray_character_is_a_damaged_commit(joint):
    with pytest.raises(LogError):
        parse(add() + joint + add())


def test_action_may_spread_over_lines():
    text = json.dumps({"add": {"path": "a b", "partitionValues": {"k": "v"}, "size": 3}}, indent=2)
    assert only(parse(text.replace("\n", "\r\n")).adds)["size"] == 3


def test_object_with_several_actions_returns_each():
    parsed = parse('{"commitInfo":{"x":1},"add":{"path":"p"},"remove":{"path":"r"},"txn":null}')
    assert only(parsed.adds)["line"] == 1
    assert only(parsed.removes)["line"] == 2
    assert only(parsed.other_actions)["json"] == '{"x":1}'


def test_last_of_equal_keys_counts():
    assert only(parse('{"add":{"path":"a","path":"b","size":1,"size":null}}').adds)["path"] == "b"
    assert only(parse('{"add":{"path":"a","size":1,"size":null}}').adds)["size"] is None
    assert only(parse('{"add":{"path":"a"},"\\u0061dd":{"path":"b"}}').adds)["path"] == "b"
    vector = '"deletionVector":{"storageType":"u","pathOrInlineDv":"x"}'
    assert only(parse('{"add":{"path":"a",' + vector + ',"deletionVector":null}}').adds)["dvId"] is None
    maps = only(parse('{"add":{"path":"a","tags":{"k":"1","l":"2","\\u006b":"3"}}}').adds)["tags"]
    assert maps == [("k", "3"), ("l", "2")]


def test_last_of_equal_keys_counts_in_big_maps():
    keys = [f"k{i % 40}" for i in range(100)]
    text = ",".join(f'"{key}":"{i}"' for i, key in enumerate(keys))
    row = only(parse('{"add":{"path":"a","tags":{' + text + "}}}").adds)
    assert row["tags"] == list({key: str(i) for i, key in enumerate(keys)}.items())


def test_keys_are_case_sensitive_and_may_be_escaped():
    row = only(parse('{"\\u0061dd":{"\\u0070ath":"a","Size":1,"s\\u0069ze":2}}').adds)
    assert (row["path"], row["size"]) == ("a", 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1.0", 1),
        ("1e3", 1000),
        ("12.50e1", 125),
        ('"123"', 123),
        ("-0", 0),
        ("0e99999999999", 0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1" + "0" * 18, 10**18),
        ("0.5e1", 5),
        ('"1.0"', 1),
        ("100e-2", 1),
    ],
)
def test_whole_numbers_are_read_in_any_notation(text, value):
    assert only(parse('{"add":{"path":"p","size":' + text + "}}").adds)["size"] == value


@pytest.mark.parametrize(
    "text",
    ["1.5", "9223372036854775808", "1e19", '"x"', '""', '"-"', "true", "[1]", "01", "1.", "-", "+1", ".5",
     "1e", "NaN", "1e-1",
     "1" * 60, "1e99999999999999999999"],
)  # fmt: skip
def test_what_is_no_whole_number_is_rejected(text):
    with pytest.raises(LogError):
        parse('{"add":{"path":"p","size":' + text + "}}")


def test_narrow_integers_are_checked():
    def vector(offset: int) -> str:
        return add(deletionVector={"storageType": "u", "pathOrInlineDv": "x", "offset": offset})

    assert only(parse(vector(2**31 - 1)).adds)["dvOffset"] == 2**31 - 1
    with pytest.raises(LogError, match="32 bits"):
        parse(vector(2**31))


def test_scalar_map_values_are_kept_as_text():
    row = only(parse('{"add":{"path":"p","partitionValues":{"y":2020,"b":true,"f":1.50}}}').adds)
    assert row["partitionValues"] == [("y", "2020"), ("b", "true"), ("f", "1.50")]


@pytest.mark.parametrize("text", ['"\\u00e9\\ud83d\\ude00\\t\\/\\"\\\\\\b\\f\\n\\r"', '"é😀\\t/\\"\\\\\\b\\f\\n\\r"'])
def test_escapes_become_utf8(text):
    assert only(parse('{"add":{"path":' + text + "}}").adds)["path"] == 'é😀\t/"\\\b\f\n\r'


@pytest.mark.parametrize(
    "text",
    [
        '"\\ud83d"',
        '"\\ude00"',
        '"\\ud83dx"',
        '"\\ud83d\\u0041"',
        '"\\x"',
        '"\\u12g4"',
        '"\\u12"',
        '"a\nb"',
        '"a\x00b"',
        '"\\',
        '"abc',
    ],
)
def test_broken_strings_are_rejected(text):
    with pytest.raises(LogError):
        parse('{"add":{"path":' + text + "}}")


@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\xf8\x88\x80\x80\x80"]
)
@pytest.mark.parametrize("before", [0, 100])
def test_invalid_utf8_is_rejected_where_it_is(bad, before):
    text = b'{"add":{"path":"' + b"x" * before + bad + b'"}}'
    with pytest.raises(LogError, match="UTF-8") as caught:
        parse(text)
    assert caught.value.offset == 16 + before


def test_long_runs_of_backslashes_are_resolved():
    for n in range(200):
        path = "\\" * n + '"' + "x" * (n % 70) + '\\"'
        assert only(parse(add(path=path)).adds)["path"] == path


def test_deep_nesting_is_rejected_not_followed():
    assert parse('{"x":' + "[" * 900 + "]" * 900 + "}").other_actions.num_rows == 1
    with pytest.raises(LogError, match="nested"):
        parse('{"x":' + "[" * 100_000)


# --- damage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"add":{"size":1}}', "'path' in add"),
        ('{"remove":{"path":null}}', "'path' in remove"),
        ('{"cdc":{}}', "'path' in cdc"),
        ('{"add":{"path":"p","deletionVector":{"storageType":"u"}}}', "'pathOrInlineDv'"),
        ('{"add":5}', "'{'"),
        ("[1]", "JSON object"),
        ("null", "JSON object"),
        ('{"add":{"path":5}}', "a string"),
        ('{"add":{"path":"p","dataChange":"true"}}', "true or false"),
        ('{"add":{"path":"p","tags":{"a":{}}}}', "string or null"),
        ('{"add":{"path":"p","stats":[]}}', "a string"),
        ('{"add":{"path":"p",}}', "a key"),
        ('{"a":tru}', "JSON value"),
        ('{"a":1 "b":2}', "','"),
    ],
)
def test_damage_states_what_was_expected(text, found):
    with pytest.raises(LogError) as caught:
        parse(text)
    assert found in str(caught.value)


def test_log_error_names_file_version_and_place():
    parser = ActionParser()
    with pytest.raises(LogError) as caught:
        parser.feed(12, b'{"txn":{}}\n{"add":{"path":7}}', "s3://t/_delta_log/12.json")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.path, error.version, error.offset) == ("s3://t/_delta_log/12.json", 12, 26)
    assert "found '7}}'" in str(error)
    with pytest.raises(ValueError, match="fault"):
        parser.feed(13, b"")


@given(st.data())
def test_a_torn_commit_is_never_accepted(data):
    text = "\n".join(
        [add(path='a"\\', stats='{"a":"b\\"c"}', tags={"x": "y"}), '{"commitInfo":{"a":[1,{}],"b":-1.5e3}}']
    ).encode()
    cut = data.draw(st.integers(1, len(text) - 1).filter(lambda n: n not in (text.index(b"\n"), text.index(b"\n") + 1)))
    with pytest.raises(LogError):
        parse(text[:cut])


SEQUENCE = (
    '{"commitInfo":{"a":[1,-0.5e+3,true,null,{"b":"\\u00e9\\\\"}]}}\n'
    '{"add":{"path":"p\\"q","partitionValues":{"a":"1","b":null},"size":12,"stats":"{\\"n\\":\\"\\\\\\"\\"}"}}x\n'
    '{"remove":{"path":"é","dataChange":true}}{"other":"x"}\r\n'
).encode()


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SEQUENCE) - 1), st.one_of(st.sampled_from(b'{}[]",:\\ \n0eu\xff'), st.integers(0, 255))
        ),
        max_size=4,
    )
)
def test_flipped_bytes_are_rejected_or_read_as_json(flips):
    text = bytearray(SEQUENCE)
    for at, byte in flips:
        text[at] = byte
    try:
        parsed = parse(bytes(text))
    except LogError:
        assert text != SEQUENCE
        return
    expected = []
    rest = text.decode()
    while rest := rest.lstrip(" \t\r\n"):
        value, end = json.JSONDecoder().raw_decode(rest)
        expected += [(k, v) for k, v in value.items() if v is not None]
        rest = rest[end:]
        stray = rest.lstrip(" \t\r")
        if stray and stray[0] not in "{\n":
            rest = stray[1:]
    others = [(r["kind"], json.loads(r["json"])) for r in parsed.other_actions.to_pylist()]
    assert others == [(k, v) for k, v in expected if k not in ("add", "remove", "cdc")]
    assert parsed.adds["path"].to_pylist() == [v["path"] for k, v in expected if k == "add"]
    assert parsed.removes["path"].to_pylist() == [v["path"] for k, v in expected if k == "remove"]


@given(st.binary(max_size=60))
def test_hostile_bytes_never_crash(data):
    for text in (data, b'{"add":{"path":"' + data, b'{"x":' + data + b"}"):
        with suppress(LogError):
            parse(text)


# --- against Python's parser ---------------------------------------------------------------

text = st.text(max_size=40)
integers = st.integers(-(2**63), 2**63 - 1)
strings = st.dictionaries(text, st.none() | text, max_size=5)
anything = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
vectors = st.fixed_dictionaries(
    {"storageType": text, "pathOrInlineDv": text},
    optional={"offset": st.none() | st.integers(-(2**31), 2**31 - 1), "cardinality": integers, "more": anything},
)
adds = st.fixed_dictionaries(
    {"path": text},
    optional={
        "partitionValues": st.none() | strings,
        "size": st.none() | integers,
        "dataChange": st.booleans(),
        "stats": st.none() | text,
        "tags": strings,
        "deletionVector": st.none() | vectors,
        "unknown": anything,
        "baseRowId": integers,
    },
)


@given(st.lists(adds, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_adds_are_read_as_python_reads_them(actions, ascii_only, indent):
    encoded = "\n".join(json.dumps({"add": a}, ensure_ascii=ascii_only, indent=indent) for a in actions)
    # keys may be requested if every add has the map
    keys = ["a"] if all(a.get("partitionValues") is not None for a in actions) else []
    table = parse(encoded.encode(), extra_fields={"add": ["unknown"]}, partition_keys=keys).adds
    assert table.num_rows == len(actions)
    for row, action in zip(table.to_pylist(), actions, strict=True):
        for name in ("path", "size", "dataChange", "stats", "baseRowId"):
            assert row[name] == action.get(name)
        for name in ("partitionValues", "tags"):
            entries = action.get(name)
            assert row[name] == (None if entries is None else list(entries.items()))
        vector = action.get("deletionVector") or {}
        assert row["dvPathOrInline"] == vector.get("pathOrInlineDv")
        offset = vector.get("offset")
        suffix = "" if offset is None else f"@{offset}"
        assert row["dvId"] == (vector["storageType"] + vector["pathOrInlineDv"] + suffix if vector else None)
        unknown = row["extra:unknown"]
        assert (None if unknown is None else json.loads(unknown)) == action.get("unknown")
        assert row.get("partition:a") == (action["partitionValues"].get("a") if keys else None)


# --- files ---------------------------------------------------------------------------------


def write(folder: Path, texts: list[str]) -> list[str]:
    paths = [str(folder / f"{i:020d}.json") for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        Path(path).write_bytes(text.encode())
    return paths


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_files_are_read_in_the_order_given(tmp_path, threads):
    paths = write(tmp_path, ["\n".join(add(path=f"{v}-{i}") for i in range(v % 4)) for v in range(50)])
    parser = ActionParser()
    parser.feed(1000, add().encode())
    parser.feed_files([paths[0], os.fsencode(paths[1]), *paths[2:]][::-1], range(49, -1, -1), threads=threads)
    parser.feed(1001, add().encode())
    table = parser.finish().adds
    assert table["path"].to_pylist() == ["p", *(f"{v}-{i}" for v in range(49, -1, -1) for i in range(v % 4)), "p"]
    assert table["version"].to_pylist() == [1000, *(v for v in range(49, -1, -1) for _ in range(v % 4)), 1001]


def test_files_larger_than_the_read_buffer_are_read_whole(tmp_path):
    paths = write(tmp_path, ["\n".join(add(path="x" * 1000 + str(i)) for i in range(500)), add()])
    parser = ActionParser()
    parser.feed_files(paths, [0, 1])
    assert parser.finish().adds["path"].to_pylist() == ["x" * 1000 + str(i) for i in range(500)] + ["p"]


@pytest.mark.parametrize("threads", [1, 2])
def test_missing_file_is_named(tmp_path, threads):
    paths = write(tmp_path, [add()] * 20)
    Path(paths[13]).unlink()
    with pytest.raises(FileNotFoundError) as caught:
        ActionParser().feed_files(paths, range(20), threads=threads)
    assert caught.value.filename == paths[13]


def test_a_directory_is_no_commit(tmp_path):
    with pytest.raises(IsADirectoryError):
        ActionParser().feed_files([str(tmp_path)], [0])


@pytest.mark.parametrize("threads", [1, 2])
def test_first_of_several_damaged_files_is_reported(tmp_path, threads):
    texts = [add()] * 40
    texts[9] = texts[11] = texts[35] = '{"add":'
    paths = write(tmp_path, texts)
    with pytest.raises(LogError) as caught:
        ActionParser().feed_files(paths, range(100, 140), threads=threads)
    assert (caught.value.path, caught.value.version, caught.value.offset) == (paths[9], 109, 7)
    assert "end of the file" in str(caught.value)


def test_paths_and_versions_must_match():
    with pytest.raises(ValueError, match="1 paths with 2 versions"):
        ActionParser().feed_files(["a"], [1, 2])
    ActionParser().feed_files([], [])


def test_recorded_commits_are_read_as_python_reads_them():
    found = (f for root in (OWN, GOLDEN) for f in root.glob("tables/**/_delta_log/[0-9]*.json"))
    files = sorted(
        f for f in found if f.stem.isdigit() and f.parts[-3] not in ("damaged_commit_cut_off", "damaged_commit_no_json")
    )
    if not files:
        pytest.skip(f"no tables at {OWN} or {GOLDEN}")
    for file in files:
        data = file.read_bytes()
        parsed = parse(data)
        expected = {"add": [], "remove": [], "cdc": [], "other": []}
        rest = data.decode()
        while rest := rest.lstrip("x \r\n"):
            value, end = json.JSONDecoder().raw_decode(rest)
            rest = rest[end:]
            for kind, action in value.items():
                expected[kind if kind in expected else "other"].append(action)
        assert [json.loads(t) for t in parsed.other_actions["json"].to_pylist()] == expected["other"], file
        for kind, table in (("add", parsed.adds), ("remove", parsed.removes), ("cdc", parsed.cdcs)):
            for row, action in zip(table.to_pylist(), expected[kind], strict=True):
                for name in {"path", "size", "dataChange", "stats", "deletionTimestamp", "baseRowId"} & row.keys():
                    assert row[name] == action.get(name), file
                if action.get("partitionValues") is not None:
                    assert dict(row["partitionValues"]) == action["partitionValues"]
