"""Table properties: known ones are checked and typed, all others kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import write_deltalake
from delta_core.engines.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_core.errors import ArgumentTypeError, InvalidArgumentError
from delta_core.kernel.protocol.properties import (
    normalize_properties,
    parse_columns,
    parse_duration_ms,
    parse_size,
    read_property,
)
from delta_core.kernel.write.properties import target_file_size, writer_properties
from delta_core.testing.feature_contract import table_state


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("128mb", 128 << 20), ("1G", 1 << 30), (" 2 kb ", 2048), ("100b", 100), ("1tb", 1 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5mb", "mb", "1 parsec"])
def test_text_that_is_no_size_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("interval 1 week", 604_800_000),
        ("INTERVAL 2 DAYS 12 hours", 216_000_000),
        ("30 days", 2_592_000_000),
        ("interval 0 seconds", 0),
        ("interval 1 millisecond", 1),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["interval 1 month", "7", "interval", "1 year 2 days", "interval -1 day"])
def test_text_that_is_no_duration_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="interval"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", ()),
        ("a", (("a",),)),
        ("a, b.c", (("a",), ("b", "c"))),
        ("`a.b`.c,`d,e`", (("a.b", "c"), ("d,e",))),
        ("`a``b`", (("a`b",),)),
        ("a b", (("a b",),)),
    ],
)
def test_column_lists(text: str, paths: Any) -> None:
    assert parse_columns(text) == paths


@pytest.mark.parametrize("text", ["a..b", "`a", "a.", ",a", "`a`b"])
def test_broken_column_lists_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="backticks"):
        parse_columns(text)


def test_known_names_are_spelled_as_the_protocol_does_and_others_kept() -> None:
    found = normalize_properties({"DELTA.RandomizeFileprefixes": "true", "my.own": "x", "delta.future": "?"})
    assert found == {"delta.randomizeFilePrefixes": "true", "my.own": "x", "delta.future": "?"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delta.randomizeFilePrefixes", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.logRetentionDuration", "30"),
        ("delta.enableSomething", "1"),
        ("delta.targetFileSize", "big"),
        ("delta.parquet.compression.codec", "lzo"),
        ("delta.minReaderVersion", "0"),
        ("delta.dataSkippingStatsColumns", "a..b"),
    ],
)
def test_value_that_a_known_property_can_not_have_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        normalize_properties({name: text})
    assert caught.value.property == name
    assert text in str(caught.value)


def test_property_given_twice_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="twice"):
        normalize_properties({"delta.randomizeFilePrefixes": "true", "delta.randomizefileprefixes": "false"})


def test_default_is_where_the_table_is_silent() -> None:
    assert read_property({}, "delta.checkpointInterval") == 10
    assert read_property({"delta.checkpointInterval": " 20 "}, "delta.checkpointInterval") == 20


def test_caller_goes_before_the_table_and_the_table_before_the_default() -> None:
    given = {
        "delta.parquet.compression.codec": "zstd",
        "delta.targetFileSize": "1mb",
        "delta.parquet.format.version": "2.12.0",
    }
    table = table_state([], properties=given)
    assert writer_properties(table).compression == "ZSTD"
    assert writer_properties(table).data_page_version == "2.0"
    assert writer_properties(table, WriterProperties(compression="GZIP")).compression == "GZIP"
    assert writer_properties(table_state([])).compression == "SNAPPY"
    assert target_file_size(table) == 1 << 20
    assert target_file_size(table, 5) == 5


@pytest.mark.parametrize(("version", "page"), [("1.0.0", "1.0"), ("2.6.0", "2.0"), ("2.4.0", "2.0"), ("2.12.0", "2.0")])
def test_any_version_of_parquet_chooses_the_version_of_pages(version: str, page: str) -> None:
    table = table_state([], properties={"delta.parquet.format.version": version})
    assert writer_properties(table).data_page_version == page


@pytest.mark.parametrize("version", ["2", "2.6", "3.0.0", "0.1.0", "2.x.0", "v2.6.0", ""])
def test_text_that_is_no_version_of_parquet_is_rejected(version: str) -> None:
    with pytest.raises(InvalidArgumentError, match="a version of Parquet"):
        read_property({"delta.parquet.format.version": version}, "delta.parquet.format.version")


@pytest.mark.parametrize(
    "broken", [lambda: WriterProperties(compression="ZIP"), lambda: BloomFilterProperties(True, fpp=1.5)]
)
def test_writer_properties_that_contradict_themselves_are_rejected_when_made(broken: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        broken()


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        (WriterProperties(max_row_group_size=0), InvalidArgumentError),
        (WriterProperties(max_row_group_size="9"), ArgumentTypeError),
        (WriterProperties(column_properties=3), ArgumentTypeError),
        (WriterProperties(default_column_properties=3), ArgumentTypeError),
        (WriterProperties(column_properties={"id": {"encoding": "PLAIN"}}), ArgumentTypeError),
        (WriterProperties(default_column_properties=ColumnProperties(encoding="FANCY")), InvalidArgumentError),
        (WriterProperties(default_column_properties=ColumnProperties(dictionary_enabled="no")), ArgumentTypeError),
        (WriterProperties(data_page_version="3"), InvalidArgumentError),
        (
            WriterProperties(
                column_properties={"id": ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, ndv=0))}
            ),
            InvalidArgumentError,
        ),
    ],
)
def test_writer_properties_are_checked_when_they_are_used(
    properties: WriterProperties, error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error):
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}), writer_properties=properties)
    assert not (tmp_path / "t").exists()
