"""Every table of the conformance corpus: rows, schema, protocol, files, change feed, and the errors."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.errors import (
    CatalogRequiredError,
    CheckpointError,
    CorruptTableError,
    DeltaError,
    LogError,
    SchemaError,
    TableNotFoundError,
    UnsupportedFeatureError,
    UnsupportedVersionError,
    VersionNotFoundError,
)
from delta_core.expressions.ast import FileStatistic
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_plugins.variant_type.logic import variant_to_json
from tests.corpus.records import GOLDEN, recorded_path
from tests.golden.conftest import is_opened

pytestmark = pytest.mark.golden

Case = tuple[Any, ...]
#: Which error a rejection must be, by the manifest's ``error_kind``.
ERRORS: dict[str, tuple[type[DeltaError], ...]] = {
    "unsupported-reader-version": (UnsupportedVersionError,),
    "no-commits": (TableNotFoundError,),
    "missing-commit": (LogError,),
    "missing-first-commit": (VersionNotFoundError,),
    "corrupt-commit-json": (LogError,),
    "no-protocol": (LogError,),
    "no-metadata": (LogError,),
    "metadata-without-schema": (LogError,),
    "checkpoint-unreadable": (CheckpointError,),
    "catalog-managed": (CatalogRequiredError, UnsupportedFeatureError, SchemaError),
    "unsupported-type": (UnsupportedFeatureError, SchemaError),
    "unsupported-feature": (UnsupportedFeatureError,),
    "missing-data-file": (CorruptTableError,),
    "missing-dv-file": (CorruptTableError,),
}
CHANGE_FIELDS = [
    {"name": "_change_type", "type": "string", "nullable": True, "metadata": {}},
    {"name": "_commit_version", "type": "long", "nullable": True, "metadata": {}},
]


def test_corpus_of_other_projects_is_present() -> None:
    """The tables of this project are read by each test; those of others are an extra."""
    if not (GOLDEN / "manifest.json").exists():
        pytest.skip(f"no corpus of other projects at {GOLDEN}: its tables are left out")
    assert (GOLDEN / "tables").is_dir()


# --- which cases ---------------------------------------------------------------------------


def _read(record: dict[str, Any]) -> str:
    return str(record["expect"]["read"])


def readable_versions(record: dict[str, Any]) -> list[Case]:
    found = record["versions"].items() if _read(record) in ("rows", "state-only") else ()
    return [(record, int(v)) for v, expected in found if "rows" in expected and "ambiguous" not in expected]


def unreadable_versions(record: dict[str, Any]) -> list[Case]:
    found = record["versions"].items() if _read(record) in ("rows", "state-only") else ()
    return [(record, int(v)) for v, expected in found if "error" in expected]


def states(record: dict[str, Any]) -> list[Case]:
    return [(record,)] if _read(record) in ("rows", "state-only") else []


def rejections(record: dict[str, Any]) -> list[Case]:
    return [(record,)] if _read(record) == "error" else []


def either(record: dict[str, Any]) -> list[Case]:
    return [(record,)] if _read(record) == "error-or-rows" else []


def cleaned_versions(record: dict[str, Any]) -> list[Case]:
    return [(record, v) for v in record.get("versions_that_must_raise", ())]


def feeds(record: dict[str, Any]) -> list[Case]:
    return [(record,)] if "cdf" in record else []


# --- the latest state ----------------------------------------------------------------------


@pytest.mark.corpus.with_args(states)
def test_state_is_the_recorded_one(case: Case, corpus: Any) -> None:
    record = case[0]
    snapshot = open_snapshot(corpus.uri(record))
    protocol, expected = snapshot.protocol, record["protocol"]
    assert snapshot.version == record["latest_version"]
    assert (protocol.min_reader_version, protocol.min_writer_version) == (
        expected["min_reader"],
        expected["min_writer"],
    )
    assert _sorted(protocol.reader_features) == _sorted(expected["reader_features"])
    assert _sorted(protocol.writer_features) == _sorted(expected["writer_features"])
    assert list(snapshot.metadata.partition_columns) == record["partition_columns"]
    assert snapshot.metadata.configuration.get("delta.columnMapping.mode", "none") == record["column_mapping"]
    assert {app: txn.version for app, txn in snapshot.transactions().items()} == record.get("txns", {})
    assert snapshot.domains() == record.get("domain_metadata", {})
    if "schema" in record:
        assert json.loads(snapshot.metadata.schema_string) == record["schema"]
        assert snapshot.schema.names == [f["name"] for f in record["schema"]["fields"]]


@pytest.mark.corpus.with_args(states)
def test_live_files_are_the_recorded_ones(case: Case, corpus: Any) -> None:
    record = case[0]
    snapshot = open_snapshot(corpus.uri(record))
    files = snapshot.files.columns(["path", "dvId"]).to_pydict()
    paths = [recorded_path(record, unquote(path)) for path in files["path"]]
    lines = sorted(f"{path}\t{vector or ''}" for path, vector in zip(paths, files["dvId"], strict=True))
    assert snapshot.files.count == len(lines) == record["live_files"]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == record["live_files_digest"]
    counts = snapshot.files.statistics([FileStatistic("numRecords", (), PrimitiveType("long"))]).column(0)
    if "num_records_in_stats" in record:
        assert counts.null_count == 0
        assert sum(counts.to_pylist()) == record["num_records_in_stats"]


def _sorted(names: Any) -> list[str] | None:
    return None if names is None else sorted(names)


# --- rows ----------------------------------------------------------------------------------


@pytest.mark.corpus.with_args(readable_versions)
def test_rows_are_the_recorded_ones(case: Case, corpus: Any) -> None:
    record, version = case
    expected = record["versions"][str(version)]
    scan = open_snapshot(corpus.uri(record), version).scan()
    table = scan.to_table()
    assert table.schema == scan.schema
    assert table.num_rows == expected["rows"]
    if "rows_json" in expected:
        recorded = json.loads(corpus.file(record, expected["rows_json"]).read_text(encoding="utf-8"))
        assert _plain_rows(corpus.uri(record), version) == sorted(json.dumps(row, sort_keys=True) for row in recorded)
    else:
        schema = json.loads(open_snapshot(corpus.uri(record), version).metadata.schema_string)
        corpus.assert_matches(record, table, schema, expected)


def _plain_rows(uri: str, version: int) -> list[str]:
    """Return rows as JSON text, a variant as ``{"variant": what it holds}``."""
    snapshot = open_snapshot(uri, version)
    table = snapshot.scan().to_table()
    columns = {}
    for field in snapshot.schema:
        column = table.column(field.name).combine_chunks()
        values = column.to_pylist()
        if field.type == PrimitiveType("variant"):
            texts = variant_to_json(column).to_pylist()
            values = [None if text is None else {"variant": json.loads(text)} for text in texts]
        columns[field.name] = values
    rows = zip(*columns.values(), strict=True)
    return sorted(json.dumps(dict(zip(columns, row, strict=True)), sort_keys=True) for row in rows)


@pytest.mark.corpus.with_args(unreadable_versions)
def test_version_whose_files_are_gone_is_rejected(case: Case, corpus: Any) -> None:
    record, version = case
    with pytest.raises(CorruptTableError) as caught:
        open_snapshot(corpus.uri(record), version).scan().to_table()
    if "missing" in record["versions"][str(version)]["error"]:
        assert isinstance(caught.value, FileNotFoundError)


# --- rejections ------------------------------------------------------------------------------


@pytest.mark.corpus.with_args(rejections)
def test_broken_table_is_rejected_with_its_error(case: Case, corpus: Any) -> None:
    record = case[0]
    with pytest.raises(ERRORS[record["expect"]["error_kind"]]):
        open_snapshot(corpus.uri(record)).scan().to_table()


@pytest.mark.corpus.with_args(either)
def test_doubtful_table_is_rejected_clearly_or_read_right(case: Case, corpus: Any) -> None:
    record = case[0]
    expected = record["versions"].get(str(record["latest_version"]), {})
    try:
        snapshot = open_snapshot(corpus.uri(record))
    except ERRORS[record["expect"]["error_kind"]]:
        assert not is_opened(record)
        return
    scan = snapshot.scan()
    if "error" in expected:  # the files that the log names are missing too
        with pytest.raises(CorruptTableError):
            scan.to_table()
        return
    table = scan.to_table()
    assert table.num_rows == expected["rows"]
    corpus.assert_matches(record, table, record["schema"], expected)


@pytest.mark.corpus.with_args(cleaned_versions)
def test_version_whose_commits_are_gone_is_rejected(case: Case, corpus: Any) -> None:
    record, version = case
    with pytest.raises((LookupError, CorruptTableError)) as caught:
        open_snapshot(corpus.uri(record), version)
    assert isinstance(caught.value, DeltaError)


# --- change feed ---------------------------------------------------------------------------


@pytest.mark.corpus.with_args(feeds)
def test_change_feed_is_the_recorded_one(case: Case, corpus: Any) -> None:
    record = case[0]
    feed = record["cdf"]
    table = DeltaTable(corpus.uri(record))
    if "rows" not in feed:
        with pytest.raises(SchemaError):
            pa.table(table.load_cdf(feed["start"], feed["end"]))
        return
    found = pa.table(table.load_cdf(feed["start"], feed["end"]))
    assert "_commit_timestamp" in found.column_names
    assert found.num_rows == feed["rows"]
    schema = {"type": "struct", "fields": [*record["schema"]["fields"], *CHANGE_FIELDS]}
    assert corpus.digest(found, schema) == feed["hash"]


@pytest.mark.corpus.with_args(feeds)
def test_change_feed_in_steps_is_the_feed_at_once(case: Case, corpus: Any) -> None:
    record = case[0]
    start, end = record["cdf"]["start"], record["cdf"]["end"]
    if "rows" not in record["cdf"]:
        with pytest.raises(SchemaError):
            DeltaTable(corpus.uri(record)).changes(start, end, max_bytes=1)
        return
    table = DeltaTable(corpus.uri(record))
    steps = [step.to_table() for step in table.changes(start, end, max_bytes=1).steps()]
    assert pa.concat_tables(steps).equals(table.changes(start, end).to_table())
