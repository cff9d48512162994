"""`Scan.explain` reports the files that each step leaves, where predicates are tested, and what a run took."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.cli.app import main
from delta_core.engines.records import FileRead
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.parquet import columns as parquet_columns
from delta_core.parquet.data_files import ArrowDataFiles
from delta_core.parquet.filtered_groups import FilteredGroups
from delta_core.testing.table_builder import TableBuilder
from tests.bundled import needs, skip_without
from tests.testing.honest_plugin import LIMIT, NAME, ON, Plugin

ROOT = Path(__file__).parents[2]
ARRAY = {"type": "array", "elementType": "long", "containsNull": True}
WHERE = "kind = 'a' AND id > 210"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of three files in two partitions; one of them has a deletion vector."""
    skip_without("deletionVectors")
    builder = TableBuilder(tmp_path).create(
        {"id": "long", "kind": "string"}, partition_by=["kind"], features=["deletionVectors"]
    )
    for kind, first in (("a", 0), ("b", 0), ("a", 200)):
        builder.append([{"id": i, "kind": kind} for i in range(first, first + 100)])
    builder.delete_rows(lambda row: row["id"] == 250)
    return str(tmp_path)


def masked(text: str) -> list[str]:
    """Return lines without the numbers and names that differ from run to run."""
    plain = re.sub(r"Snapshot\(.*?,", "Snapshot(...,", text)
    return [re.sub(r"\d[\d,.]*", "#", " ".join(line.split())) for line in plain.strip().splitlines()]


def test_each_step_reports_the_files_and_bytes_that_it_leaves(uri: str) -> None:
    report = DeltaTable(uri).scan(["id"], WHERE).explain()
    sizes = {kind: [f.stat().st_size for f in sorted(Path(uri).glob(f"kind={kind}/*"))] for kind in "ab"}
    steps = {step.step: (step.files, step.size_bytes) for step in report.files}
    assert steps["table"] == (3, sum(sizes["a"]) + sum(sizes["b"]))
    assert steps["partition values"] == (2, sum(sizes["a"]))
    assert steps["statistics"][0] == 1
    assert steps["statistics"][1] in sizes["a"]


@pytest.mark.parametrize(
    ("where", "flags"),
    [
        ("kind = 'a'", (True, False, False, False, False)),
        ("id > 5", (False, True, True, True, True)),
        ("id % 2 = 0", (False, False, False, False, True)),
        ("kind = 'a' OR id > 5", (False, True, True, False, True)),
        ("(kind = 'a' AND id > 5) OR (kind = 'b' AND id > 7)", (True, True, True, False, True)),
    ],
)
def test_part_is_reported_where_it_is_tested(uri: str, where: str, flags: tuple[bool, ...]) -> None:
    (part,) = DeltaTable(uri).scan(predicate=where).explain().predicate
    tested = (part.partition_values, part.statistics, part.row_groups, part.decoder, part.rows)
    assert tested == flags


def test_predicate_without_a_test_of_files_reports_the_table_alone(uri: str) -> None:
    assert [s.step for s in DeltaTable(uri).scan().explain().files] == ["table"]


def test_run_counts_rows_groups_and_bytes(tmp_path: Path) -> None:
    rows = [{"id": i, "text": "x" * 50} for i in range(10_000)]
    TableBuilder(tmp_path).create({"id": "long", "text": "string"}).append(
        rows, parquet={"row_group_size": 1_000, "compression": "none", "use_dictionary": False}
    )
    narrow = DeltaTable(tmp_path).scan(["id"], "id >= 8500").explain(run=True).run
    wide = DeltaTable(tmp_path).scan(None, "id >= 8500").explain(run=True).run
    assert narrow is not None
    assert wide is not None
    assert (narrow.rows, narrow.files, narrow.row_groups, narrow.row_groups_left) == (1_500, 1, 10, 2)
    assert narrow.rows_examined == 2_000
    assert 2_000 * 8 <= narrow.size_bytes < 2_000 * 8 * 1.1
    assert wide.size_bytes > narrow.size_bytes + 2_000 * 50


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize(
    ("columns", "where", "num_pages", "with_index", "without"),
    [
        (["id"], None, 20, 20, 20),
        (["id"], "id BETWEEN 3200 AND 3300", 20, 1, 20),  # the values are kept as they are tested
        (["text"], "id BETWEEN 3200 AND 3300", 40, 2, 21),  # pages of text without a row are always skipped
        (["items"], "id BETWEEN 3200 AND 3300", 41, 2, 21),  # PyArrow puts the last list in a page of its own
        (["id"], "id = -5", 0, 0, 0),  # no row group is left
        (["id"], "text = 't30'", 20, 0, 0),  # nor a value of the dictionary
    ],
)
def test_run_counts_pages(
    tmp_path: Path,
    has_index: bool,
    columns: list[str],
    where: str | None,
    num_pages: int,
    with_index: int,
    without: int,
) -> None:
    rows = [{"id": i, "text": f"t{i % 7}", "items": [i]} for i in range(10_000)]
    TableBuilder(tmp_path).create({"id": "long", "text": "string", "items": ARRAY}).append(
        rows,
        parquet={
            "write_page_index": has_index,
            "use_dictionary": ["text"],
            "data_page_size": 1,
            "write_batch_size": 500,
        },
    )
    run = DeltaTable(tmp_path).scan(columns, where).explain(run=True).run
    assert run is not None
    assert (run.pages, run.pages_decoded) == (num_pages, with_index if has_index else without)


def test_run_counts_a_page_once_that_is_read_in_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_columns, "GROUP_BYTES", 1_000)
    monkeypatch.setattr(parquet_columns, "WHOLE_BYTES", 1_000)
    monkeypatch.setattr(parquet_columns, "STRETCH_BYTES", 1_000)
    monkeypatch.setattr(parquet_columns, "NESTED_STRETCH_BYTES", 1_000)
    rows = [{"id": i, "items": [i]} for i in range(10_000)]
    TableBuilder(tmp_path).create({"id": "long", "items": ARRAY}).append(
        rows, parquet={"use_dictionary": False, "data_page_size": 1, "write_batch_size": 500}
    )
    run = DeltaTable(tmp_path).scan().explain(run=True).run
    assert run is not None
    assert (run.rows, run.pages, run.pages_decoded) == (10_000, 41, 41)


@pytest.mark.parametrize("where", [None, "id > 20"])
def test_run_counts_small_files_that_are_read_together(tmp_path: Path, where: str | None) -> None:
    builder = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": i} for i in range(100)], files=50)
    scan = DeltaTable(tmp_path).scan(predicate=where)
    run = scan.explain(run=True).run
    assert run is not None
    assert run.rows == scan.to_table().num_rows
    assert run.files == scan.files().num_rows
    assert run.whole_files >= run.files - 2
    assert run.rows_examined == run.files * 2
    assert len(builder.paths()) == 50


def test_run_reads_as_a_scan_does_that_is_not_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"id": range(300_000), "value": np.random.default_rng(0).random(300_000)}
    write_deltalake(tmp_path, pa.table({name: np.asarray(values) for name, values in rows.items()}))
    tested: list[list[bool]] = []
    passing = FilteredGroups._passing

    def noted(self: FilteredGroups, *arguments: Any) -> Any:
        found = passing(self, *arguments)
        tested[-1].append(found is not None)
        return found

    monkeypatch.setattr(FilteredGroups, "_passing", noted)
    scan = DeltaTable(tmp_path).scan(["id"], "value < 0.001 AND id % 2 = 0")
    tested.append([])
    count = scan.to_table().num_rows
    tested.append([])
    run = scan.explain(run=True).run
    assert run is not None
    assert tested[0] == tested[1] != []
    assert (run.rows, run.rows_examined) == (count, 300_000)
    assert run.filter_ms > 0


def test_run_reads_up_to_the_limit(uri: str) -> None:
    report = DeltaTable(uri).scan(limit=3).explain(run=True)
    assert report.run is not None
    assert (report.limit, report.run.rows, report.run.files) == (3, 3, 1)


def test_explanation_without_a_run_opens_no_data_file(uri: str) -> None:
    for path in Path(uri).glob("kind=*/*"):
        path.unlink()
    report = DeltaTable(uri).scan(["id"], WHERE).explain()
    assert report.run is None
    assert report.files[-1].files == 1


def test_scan_that_is_not_explained_has_no_counters(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[FileRead] = []
    original = ArrowDataFiles.read

    def note(self: ArrowDataFiles, read: FileRead, apply: Any) -> Any:
        reads.append(read)
        return original(self, read, apply)

    monkeypatch.setattr(ArrowDataFiles, "read", note)
    scan = DeltaTable(uri).scan(["id"], WHERE)
    expected = scan.to_table()
    assert scan.explain(run=True).run is not None
    assert scan.to_table() == expected
    assert [r.observer is None for r in reads] == [True, False, True]


@needs("columnMapping")
def test_features_are_named_with_what_they_do(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create(
        {"id": "long"}, features=[NAME], properties={ON: "true", LIMIT: "100"}, column_mapping="id"
    ).append([{"id": 1}])
    table = DeltaTable(tmp_path, plugins=PluginRegistry([Plugin()]))
    report = table.scan(["id"], "id > 0", metadata=["_stamp"]).explain()
    assert dict(report.effects)["column names"] == "columns are found in files by field id"
    own = [effect for feature, effect in report.effects if feature == NAME]
    assert own == [
        "drops rows of 0 of 1 files",
        "adds _stamp",
        "checks 'stamp fits' on each row: no row group is left out",
        "hides rows by a filter",
    ]
    predicate, hidden = report.predicate
    assert (predicate.origin, predicate.row_groups) == ("predicate", False)
    assert (hidden.origin, hidden.rows, hidden.statistics) == (NAME, True, True)


def test_text_is_the_one_of_the_documentation(uri: str) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```output\n(.*?)```", page, re.DOTALL)
    assert masked(str(DeltaTable(uri).scan(["id"], WHERE).explain(run=True))) == masked(example)


def test_notebooks_show_text_escaped(uri: str) -> None:
    found = DeltaTable(uri).scan(predicate="id < 5 AND kind = '<b>'").explain()._repr_html_()
    assert "id &lt; 5" in found
    assert "<b>&" not in found.replace("<b>Scan", "")
    assert found.count("<table>") == found.count("</table>") == 4


def test_long_predicates_are_cut(uri: str) -> None:
    where = " OR ".join(f"id = {i}" for i in range(1_000))
    assert max(map(len, str(DeltaTable(uri).scan(predicate=where).explain()).splitlines())) < 200


def test_command_prints_the_text(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", uri, "--columns", "id", "--where", WHERE]) == 0
    assert masked(capsys.readouterr().out) == masked(str(DeltaTable(uri).scan(["id"], WHERE).explain()))


def test_command_prints_json(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", uri, "--where", WHERE, "--limit", "5", "--run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [step["files"] for step in found["files"]] == [3, 2, 1]
    assert (found["limit"], found["run"]["rows"]) == (5, 5)
    assert found["effects"] == [{"feature": "deletionVectors", "effect": "drops rows of 1 of 1 files"}]
