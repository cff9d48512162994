"""Manifests: the container, fragments as columns, flags, and damaged bytes."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delta_core.errors import CorruptTableError, DeltaError, UnsupportedFeatureError
from delta_plugins.lance.flags import FLAGS, check_readable, check_writable
from delta_plugins.lance.fragments import AS_COLUMN, EXTERNAL, INLINE, NOWHERE, Fragments, Layout
from delta_plugins.lance.manifest import Manifest, parse_manifest, read_section
from delta_plugins.lance.wire import encode
from tests.example_counts import examples
from tests.lance.manifests import container, data_file, field, fragment, manifest


def parsed(**more: Any) -> Manifest:
    return parse_manifest(container(manifest(**more)), "_versions/1.manifest")


def test_facts_of_a_version_are_read() -> None:
    found = parsed(version=7, base_paths=[{"id": 3, "path": "/else", "is_dataset_root": True}], config={"k": "v"})
    assert (found.version, found.timestamp_us, found.file_version) == (7, 1_700_000_000_000_005, (2, 2))
    assert found.base_paths[3].path == "/else"
    assert found.message["config"] == {"k": "v"}
    assert [f.name for f in found.fields] == ["a"]
    assert found.rows_are_known


def test_fragments_are_columns() -> None:
    first = fragment(
        5,
        10,
        files=[data_file("x", [0, -2]), data_file("y", [1], base_id=2, file_size_bytes=0)],
        deletion_file={"file_type": 1, "read_version": 8, "id": (1 << 64) - 1, "num_deleted_rows": 4, "base_id": 2},
    )
    second = fragment(2, 0, deletion_file={"read_version": 9}, inline_row_ids=b"\x0a\x00")
    third = fragment(9, 3, external_row_ids={"path": "p", "offset": 1, "size": 2}, column_created_at_versions={})
    found = parsed(
        fields=[field(0, "a"), field(1, "b")], fragments=[first, second, third], base_paths=[{"id": 2, "path": "/b"}]
    ).fragments
    assert found.id.tolist() == [5, 2, 9]
    assert found.physical_rows.tolist() == [10, -1, 3]
    assert found.num_deleted.tolist() == [4, -1, 0]
    assert found.deletion_kind.tolist() == [1, 0, -1]
    assert found.deletion_id.tolist() == [(1 << 64) - 1, 0, 0]
    assert found.first_file.tolist() == [0, 2, 3, 4]
    assert found.paths.to_pylist() == ["x", "y", "2.lance", "9.lance"]
    assert found.file_size.tolist() == [100, 0, 100, 100]
    assert found.file_base.tolist() == [-1, 2, -1, -1]
    assert [found.layouts[i] for i in found.shapes[int(found.shape[0])]] == [
        Layout((0, -2), (0, 1), 2, 2),
        Layout((1,), (0,), 2, 2),
    ]
    assert found.shape[1] == found.shape[2]
    assert found.row_ids.place.tolist() == [NOWHERE, INLINE, EXTERNAL]
    assert found.created.place.tolist() == [NOWHERE, NOWHERE, AS_COLUMN]
    assert found.find(np.array([9, 1, 5])).tolist() == [2, -1, 0]
    table = found.table()
    table.validate(full=True)
    assert table["physical_rows"].to_pylist() == [10, None, 3]
    assert table["files"].to_pylist()[0][1] == {
        "path": "y", "fields": [1], "column_indices": [0], "major_version": 2, "minor_version": 2, "size_bytes": None,
        "base_id": 2,
    }  # fmt: skip


def test_dataset_without_fragments_has_empty_columns() -> None:
    found = parsed(fragments=[], max_fragment_id=None).fragments
    assert len(found) == found.num_files == 0
    assert found.find(np.array([1])).tolist() == [-1]
    assert found.table().num_rows == 0


def calls(act: Callable[[], object]) -> int:
    """Return how many Python functions are called."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    # finalizers of other objects are not counted
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def test_number_of_calls_does_not_depend_on_the_number_of_fragments() -> None:
    def of(n: int) -> int:
        data = container(
            manifest(fragments=[fragment(i, inline_row_ids=b"\x0a\x04\x0a\x02\x10\x0a") for i in range(n)])
        )
        return calls(lambda: parse_manifest(data, "m").fragments.table())

    of(1)
    assert of(10) == of(10_000)


@pytest.mark.parametrize(
    ("files", "data_format", "expected"),
    [
        ((0, 0), None, (0, 1)),
        ((0, 2), "0.1", (0, 1)),
        ((0, 3), None, (2, 0)),
        ((0, 3), "0.1", (2, 0)),  # of 0.16, which stored the wrong format
        ((2, 1), "2.1", (2, 1)),
        (None, None, (0, 1)),
        (None, "2.1", (2, 1)),
    ],
)
def test_version_of_data_files(
    files: tuple[int, int] | None, data_format: str | None, expected: tuple[int, int]
) -> None:
    listed = [] if files is None else [data_file("x", [0], file_major_version=files[0], file_minor_version=files[1])]
    found = parsed(
        fragments=[fragment(0, files=listed)],
        data_format=data_format and {"file_format": "lance", "version": data_format},
    )
    assert found.file_version == expected


def test_sizes_of_files_of_version_0_1_are_not_used() -> None:
    early = data_file("x", [0], file_major_version=0, file_minor_version=2, column_indices=[])
    assert parsed(fragments=[fragment(0, files=[early])], data_format=None).fragments.file_size.tolist() == [0]
    current = data_file("x", [0], file_major_version=0, file_minor_version=3)
    assert parsed(fragments=[fragment(0, files=[current])], data_format=None).fragments.file_size.tolist() == [100]


def test_no_fragments_and_the_earlier_mark_are_version_2_0() -> None:
    found = parsed(fragments=[], data_format=None, writer_feature_flags=4)
    assert found.file_version == (2, 0)


def mixed(flags: int) -> Manifest:
    files = [data_file("x", [0]), data_file("y", [1], file_minor_version=1)]
    return parsed(
        fields=[field(0, "a"), field(1, "b")],
        fragments=[fragment(0, files=files)],
        reader_feature_flags=flags,
        writer_feature_flags=flags,
    )


def test_files_of_different_versions_need_a_flag() -> None:
    assert mixed(256).file_version == (2, 2)
    with pytest.raises(CorruptTableError, match=r"versions 2\.2 and 2\.1, but feature flag 256 is not set"):
        mixed(0)


@pytest.mark.parametrize(("writer", "expected"), [(None, False), ("0.8.0", False), ("0.8.14", True), ("14.0.2", True)])
def test_numbers_of_rows_of_early_writers_are_not_used(writer: str | None, expected: bool) -> None:
    found = parsed(writer_version=writer and {"library": "lance", "version": writer})
    assert found.rows_are_known is expected


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"fragments": [fragment(3), fragment(1), fragment(3)]}, "fragment 3 is listed twice"),
        ({"fragments": [fragment(1 << 32)]}, "the id is 4294967296"),
        ({"fragments": [fragment(0, (1 << 32) + 1)]}, "the number of rows is 4294967297"),
        ({"fragments": [fragment(0, 3, deletion_file={"num_deleted_rows": 4})]}, "4 deleted rows of 3"),
        ({"fragments": [fragment(0, overlays=[b""])]}, "overlay files, but feature flag 64"),
        ({"fragments": [fragment(0, files=[data_file("x", [0], column_indices=[])])]}, "1 fields, but 0 indices"),
        ({"fragments": [fragment(0, files=[data_file("x", [0], base_id=4)])]}, "base path 4"),
        ({"fragments": [fragment(0, deletion_file={"base_id": 5})]}, "base path 5"),
        ({"fields": [field(0, "a"), field(0, "b")]}, "id 0 of field 'b' belongs to two fields"),
        ({"reader_feature_flags": 2, "writer_feature_flags": 2}, "fragment 0 has no row ids"),
    ],
)
def test_contradiction_is_rejected(more: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptTableError, match=message) as e:
        parsed(**more)
    assert "_versions/1.manifest" in e.value.message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"fragments": [fragment(0, files=[data_file("x", [0], file_minor_version=3)])]}, r"version 2\.3"),
        ({"fragments": [], "data_format": {"file_format": "lance", "version": "2.3"}}, r"'2\.3'"),
        ({"fragments": [], "data_format": {"file_format": "lance", "version": "stable"}}, "'stable'"),
        ({"data_format": {"file_format": "parquet", "version": "1"}}, "'parquet'"),
    ],
)
def test_unknown_version_of_data_files_is_rejected(more: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=message):
        parsed(**more)


# --- flags ---------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", FLAGS, ids=lambda f: str(f.bit))
def test_flag_is_honoured_or_rejected_by_name(flag: Any) -> None:
    words = (flag.bit, flag.bit) if flag.is_paired else (0, flag.bit)
    if flag.use == "reject":
        with pytest.raises(UnsupportedFeatureError, match=rf"flag {flag.bit} \({flag.meaning}\)"):
            check_readable(*words, "m")
        return
    check_readable(*words, "m")
    if flag.use == "read":
        with pytest.raises(UnsupportedFeatureError, match=rf"flag {flag.bit} \({flag.meaning}\).*written"):
            check_writable(*words, "m")
    else:
        check_writable(*words, "m")


@pytest.mark.parametrize("bit", [1 << 18, 1 << 40, 1 << 63])
def test_unknown_flag_of_readers_is_rejected_and_that_of_writers_prevents_writing(bit: int) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"flag {bit}"):
        check_readable(bit | 1, 1, "m")
    check_readable(1, bit | 1, "m")
    with pytest.raises(UnsupportedFeatureError, match=f"flag {bit}"):
        check_writable(1, bit | 1, "m")


@pytest.mark.parametrize("bit", [1, 2, 16, 256, 2048])
def test_flag_in_one_word_alone_is_damage(bit: int) -> None:
    with pytest.raises(CorruptTableError, match=f"flag {bit} .* for readers alone"):
        check_readable(bit, 0, "m")
    with pytest.raises(CorruptTableError, match=f"flag {bit} .* for writers alone"):
        check_readable(0, bit, "m")


# --- bytes ---------------------------------------------------------------------------------


def test_sections_before_the_message_are_read() -> None:
    data = container(manifest(), b"indices", b"transaction")
    assert parse_manifest(data, "m").version == 1
    assert bytes(read_section(data, 0, "m", "index section")) == b"indices"
    assert bytes(read_section(data, 11, "m", "transaction")) == b"transaction"
    for position in (5, len(data), 1 << 63):
        with pytest.raises(CorruptTableError, match="index section"):
            read_section(data, position, "m", "index section")


def test_transaction_is_at_either_field() -> None:
    assert parsed().transaction_position is None
    assert parsed(earlier_transaction_section=0).transaction_position == 0
    assert parsed(transaction_section=9).transaction_position == 9


def test_fields_that_occur_twice_count_once() -> None:
    once = encode("Manifest", manifest(fragments=[]))
    deletion = encode("DeletionFile", {"read_version": 3}), encode("DeletionFile", {"file_type": 1})
    parts = [encode("DataFragment", {"id": 4, "physical_rows": 5})]
    parts += [bytes([3 << 3 | 2, len(d)]) + d for d in deletion]
    listed = b"".join(parts)
    found = parse_manifest(container(once + bytes([2 << 3 | 2, len(listed)]) + listed), "m").fragments
    assert (found.deletion_version.tolist(), found.deletion_kind.tolist()) == ([3], [1])


def full() -> bytes:
    """Return a manifest with something in every field that the kernel reads."""
    parts = [
        fragment(
            i,
            10 + i,
            deletion_file={"file_type": i % 2, "read_version": 1, "id": 2, "num_deleted_rows": 3, "base_id": 2},
            inline_row_ids=bytes.fromhex("0a040a02100a"),
            external_last_updated_at_versions={"path": "a/b", "offset": 5, "size": 6},
            column_created_at_versions={},
            files=[data_file(f"{i}é.lance", [0, -2, 1]), data_file("x", [-3], base_id=2)],
        )
        for i in range(3)
    ]
    more = {"fields": [field(0, "a"), field(1, "b", "string")], "fragments": parts, "config": {"k": "v"}}
    bases = [{"id": 2, "path": "/p", "is_dataset_root": True}]
    return container(manifest(**more, base_paths=bases), b"section")


def check_any(data: bytes) -> None:
    """Check that bytes are read or rejected with a typed error."""
    try:
        found = parse_manifest(data, "m")
    except DeltaError:
        return
    assert isinstance(found.fragments, Fragments)
    found.fragments.table().validate(full=True)


def test_damaged_bytes_are_read_or_rejected() -> None:
    data, chance = full(), random.Random(0)
    check_any(data)
    for size in range(len(data)):
        check_any(data[:size])
        check_any(data[size:])
    for _ in range(examples(2000)):
        copy = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(copy))
            kind = chance.randrange(4)
            if kind == 0:
                copy[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                copy[at] = chance.choice([0, 1, 127, 128, 255])
            elif kind == 2:
                del copy[at : at + chance.randint(1, 9)]
            else:
                other = chance.randrange(len(data))
                copy[at:at] = data[other : other + chance.randint(1, 9)]
            if not copy:
                break
        check_any(bytes(copy))


def test_lengths_at_their_ends_are_read_or_rejected() -> None:
    message = encode("Manifest", manifest())
    ends = (0x7F, 0x80, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
    for position in range(0, len(container(message)) - 16, 3):
        for number in ends:
            data = bytearray(container(message))
            data[position : position + 8] = number.to_bytes(8, "little")
            check_any(bytes(data))
    for number in ends:
        tail = number.to_bytes(8, "little") + b"\0\0\2\0LANC"
        check_any(container(message)[:-16] + tail)
