"""The command convert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake


def test_command_converts_and_reports_the_commit(run: Any, tmp_path: Path) -> None:
    (tmp_path / "year=2026").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "year=2026" / "a.parquet")
    found = run("convert", str(tmp_path), "--partition", "year=integer", "--json").json
    assert (found["version"], found["operation"]) == (0, "CONVERT")
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist() == [{"id": 1, "year": 2026}]


def test_dry_run_counts_the_files_and_commits_nothing(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2]}), tmp_path / "b.parquet")
    assert run("convert", tmp_path, "--dry-run", "--json").json == {"files": 2}
    assert not (tmp_path / "_delta_log").exists()
    run("convert", tmp_path)
    assert run("convert", tmp_path, "--mode", "append", "--dry-run", "--json").json == {"files": 0}


def test_folder_that_is_not_there_is_distinguished_from_one_without_files(run: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.csv").touch()
    ends = {n: run("convert", tmp_path / n).err.partition(".pq.")[2].strip() for n in ("nope", "empty", "texts")}
    assert ends == {"nope": "There is no folder of this name.", "empty": "The folder is empty.", "texts": ""}


def test_table_is_converted_to_another_format_and_back(run: Any, tmp_path: Path) -> None:
    source, lance, back = (str(tmp_path / n) for n in "slb")
    write_deltalake(source, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    rejected = run("convert", source, lance, "--to", "lance")
    assert rejected.code == 1
    assert "partitions: partitioned by p" in rejected.err
    assert "--without" in rejected.err
    found = run("convert", source, lance, "--to", "lance", "--without", "partitions", "--json").json
    assert (found["rows"], [c["becomes"] for c in found["columns"]]) == (2, ["int64", "string"])
    assert {f["name"]: f["outcome"] for f in found["facets"]}["partitions"] == "lost"
    text = run("convert", lance, back, "--to", "delta", "--partition-by", "p", "--columns", "id,p").out
    assert "BIGINT" in text
    assert DeltaTable(back).metadata().partition_columns == ["p"]
    assert run("count", back).out.strip() == "2"


def test_version_and_tag_of_the_source_are_chosen(run: Any, tmp_path: Path) -> None:
    source = str(tmp_path / "s")
    write_deltalake(source, pa.table({"id": [1]}))
    write_deltalake(source, pa.table({"id": [2]}), mode="append")
    first = run("convert", source, str(tmp_path / "a"), "--to", "lance", "--version", "0", "--json").json
    assert first["rows"] == 1
    rejected = run("convert", source, str(tmp_path / "b"), "--to", "lance", "--tag", "x")
    assert (rejected.code, "no tag" in rejected.err) == (2, True)


def test_dry_run_of_a_conversion_writes_nothing(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    target = tmp_path.parent / f"{tmp_path.name}-target"
    assert run("convert", tmp_path, target, "--to", "lance", "--dry-run", "--json").json["rows"] == 0
    assert not target.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--to", "lance"],
        ["--without", "all"],
        ["--row-ids"],
        ["--version", "1"],
        ["DESTINATION"],
        ["DESTINATION", "--to", "lance", "--mode", "append"],
        ["DESTINATION", "--to", "lance", "--no-statistics"],
        ["DESTINATION", "--to", "lance", "--partition-strategy", "hive"],
    ],
    ids=" ".join,
)
def test_options_of_the_other_form_are_rejected_by_name(run: Any, tmp_path: Path, words: list[str]) -> None:
    places = {"DESTINATION": str(tmp_path / "t")}
    found = run("convert", tmp_path, *(places.get(w, w) for w in words))
    named = next((w for w in reversed(words) if w.startswith("--") and w != "lance"), "--to")
    assert found.code == 2
    assert named in found.err
    assert not (tmp_path / "t").exists()


def test_files_that_no_batch_of_a_streaming_query_named_are_taken_on_request(run: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"{name}.parquet")
    (tmp_path / "_spark_metadata").mkdir()
    entry = {
        "path": (tmp_path / "a.parquet").as_uri(),
        "size": 1,
        "isDir": False,
        "modificationTime": 1,
        "action": "add",
    }
    (tmp_path / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps(entry)}")
    assert run("convert", tmp_path, "--dry-run", "--json").json == {"files": 1}
    assert run("convert", tmp_path, "--no-sink-log", "--dry-run", "--json").json == {"files": 2}


def test_value_of_another_type_becomes_null_on_request(run: Any, tmp_path: Path) -> None:
    for year in ("2026", "unknown"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"year={year}" / "a.parquet")
    assert "unknown" in run("convert", tmp_path, "--partition", "year=integer").err
    run("convert", tmp_path, "--partition", "year=integer", "--null-on-failed-cast")
    years = DeltaTable(str(tmp_path)).to_pyarrow_table()["year"].to_pylist()
    assert sorted(years, key=str) == [2026, None]


@pytest.mark.parametrize("option", ["--no-sink-log", "--null-on-failed-cast"])
def test_options_of_conversions_in_place_are_rejected_with_a_destination(run: Any, tmp_path: Path, option: str) -> None:
    found = run("convert", tmp_path, tmp_path / "x", "--to", "lance", option)
    assert f"{option} works without DESTINATION only" in found.err
