"""Names and directories of data files."""

from __future__ import annotations

import uuid
from urllib.parse import unquote

from hypothesis import given, strategies as st

from delta_core.kernel.write.names import encode_path, file_name, partition_directory, random_prefix


def test_directory_is_escaped_as_hive_does_and_then_as_a_uri() -> None:
    directory = partition_directory(["p"], ["a b/c%"])
    assert directory == "p=a b%2Fc%25"
    assert encode_path(directory) == "p=a%20b%252Fc%2525"


def test_null_and_empty_text_share_the_default_directory() -> None:
    assert partition_directory(["a", "b"], [None, ""]) == "a=__HIVE_DEFAULT_PARTITION__/b=__HIVE_DEFAULT_PARTITION__"


def test_value_too_long_for_a_name_is_cut() -> None:
    directory = partition_directory(["p"], ["é" * 500])
    assert len(directory.encode()) <= 200


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_encoded_path_decodes_to_itself(path: str) -> None:
    assert unquote(encode_path(path)) == path
    assert not set(encode_path(path)) & set(' %"<>?#') - {"%"}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_directory_is_one_name_that_disks_take(value: str) -> None:
    directory = partition_directory(["p"], [value])
    assert "/" not in directory
    assert "\0" not in directory


def test_file_names_are_unique_and_report_the_codec() -> None:
    names = {file_name(0, "SNAPPY") for _ in range(100)}
    assert len(names) == 100
    assert {uuid.UUID(n.removeprefix("part-00000-")[:36]).version for n in names} == {4}
    assert all(n.startswith("part-00000-") and n.endswith("-c000.snappy.parquet") for n in names)
    assert file_name(3, "NONE").endswith("-c000.parquet")


def test_random_prefix_reports_nothing() -> None:
    found = {random_prefix() for _ in range(200)}
    assert {len(p) for p in found} == {2}
    assert len(found) > 20
    assert all(p.isalnum() for p in found)
