"""What notebooks show of tables, snapshots and scans, and what logs specify for reads and writes."""

from __future__ import annotations

import logging
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import ArrayType, DeltaTable, Field, Schema, open_table, write_deltalake
from delta_core.testing.table_builder import TableBuilder
from delta_plugins.lance import write_lance


class Page(HTMLParser):
    """Cells of a page's tables; fails if tags are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.titles: list[str] = []
        self._open: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self._open[-1] == "title":
            self.titles.append(data)


def test_table_shows_what_it_is(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("kind", pa.string())])
    DeltaTable.create(
        str(tmp_path),
        schema,
        partition_by="kind",
        name="sales",
        description="of 2024",
        configuration={"delta.appendOnly": "true"},
    )
    table = DeltaTable(tmp_path)
    rows = Page(table._repr_html_()).rows
    assert ["location", str(tmp_path)] in rows
    assert ["version", "0"] in rows
    assert ["name", "sales"] in rows
    assert ["partitioned by", "kind"] in rows
    assert ["properties", "delta.appendOnly = true"] in rows
    assert rows[-2:] == [["id", "BIGINT", "not null", ""], ["kind", "STRING", "partition", ""]]
    without = [row for row in rows if row[0] not in ("rows", "files", "size")]
    assert Page(table.snapshot()._repr_html_()).rows == without, "a snapshot shows what is known without a read"


def _many(folder: Path) -> DeltaTable:
    for n in range(3):
        rows = {"id": range(n * 10, n * 10 + 10), "text": ["<i>long</i>" * 20] * 10, "gone": [None] * 10}
        write_deltalake(folder, pa.table({k: list(v) for k, v in rows.items()}).cast(TEXTS), mode="append")
    table = DeltaTable(folder)
    table.delete("id < 5")
    return table


TEXTS = pa.schema([("id", pa.int64()), ("text", pa.string()), ("gone", pa.int64())])


def test_table_shows_its_size_its_first_rows_and_recent_versions(tmp_path: Path) -> None:
    page = Page(_many(tmp_path)._repr_html_())
    assert ["rows", "25"] in page.rows
    assert ["files", "3"] in page.rows
    assert any(row[0] == "size" and row[1].endswith("KiB") for row in page.rows)
    (shown,) = [row for row in page.rows if row[0] == "5"]
    assert shown[1:] == [("<i>long</i>" * 20)[:59] + "…", "null"]
    assert len([row for row in page.rows if row[1:] == shown[1:]]) == 5
    assert [text.split(",")[0] for text in page.titles] == ["version 0", "version 1", "version 2", "version 3"]
    assert page.titles[1].endswith("WRITE, 10 rows")
    assert page.titles[3].endswith("DELETE, 5 rows")


def test_a_view_leaves_out_what_cannot_be_read(tmp_path: Path) -> None:
    table = _many(tmp_path)
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    page = Page(table._repr_html_())
    assert ["rows", "25"] in page.rows
    assert not any(row[0] == "5" for row in page.rows)
    assert len(page.titles) == 4


def test_a_wide_table_shows_some_columns(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({f"c{n}": [n] for n in range(50)}))
    rows = Page(DeltaTable(tmp_path)._repr_html_()).rows
    assert [*map(str, range(20)), "..."] in rows


def test_a_dataset_of_lance_shows_the_same(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2]})
    write_lance(str(tmp_path / "d"), rows)
    write_lance(str(tmp_path / "d"), rows, mode="append")
    page = Page(open_table(tmp_path / "d")._repr_html_())
    assert ["rows", "4"] in page.rows
    assert ["id", "int64", "", ""] in page.rows
    assert page.rows.count(["1"]) == 2
    assert page.titles == [], "its history has no numbers of rows"


def test_a_schema_shows_its_columns() -> None:
    schema = Schema(
        [Field("id", "long", nullable=False), Field("tags", ArrayType("string"), metadata={"comment": "<b>"})]
    )
    assert Page(schema._repr_html_()).rows == [
        ["column", "type", "", "comment"],
        ["id", "BIGINT", "not null", ""],
        ["tags", "ARRAY<STRING>", "", "<b>"],
    ]


def test_scan_shows_its_plan_and_reads_nothing(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long", "s": {"type": "struct", "fields": []}}).append([{"id": 1}])
    scan = DeltaTable(table.uri).scan(["id"], "id > 3 and id < 5", limit=2)
    rows = Page(scan._repr_html_()).rows
    assert ["limit", "2"] in rows
    assert not any(row[0] == "files" for row in rows)
    assert next(row[1] for row in rows if row[0] == "where").count("id") == 2
    scan.files()
    assert ["files", "0"] in Page(scan._repr_html_()).rows


def test_texts_of_the_table_are_no_html(tmp_path: Path) -> None:
    text = "<script>alert(1)</script>&\"'\x00"
    builder = TableBuilder(tmp_path).create(
        {"type": "struct", "fields": [{"name": text, "type": "long", "nullable": True, "metadata": {"comment": text}}]},
        properties={text: text},
    )
    page = Page(DeltaTable(builder.uri)._repr_html_())
    assert page.tags <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert any(text.rstrip("\x00") in cell for row in page.rows for cell in row)


def test_merge_shows_its_clauses(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "kind": ["<a>"]}))
    merge = DeltaTable(tmp_path).merge(pa.table({"id": [1], "kind": ["b"]}), "target.id = source.id")
    merge.when_matched_update({"kind": "'<x>'"}, predicate="source.id > 0").when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete()
    assert Page(merge._repr_html_()).rows[1:] == [
        ["matched", "source.id > 0", "update", "kind = '<x>'"],
        ["not matched", "", "insert", "the columns of the source"],
        ["not matched by source", "", "delete", ""],
    ]
    assert "matched update, not matched insert, not matched by source delete" in repr(merge)


def test_vacuum_plan_shows_its_files(tmp_path: Path) -> None:
    for i in range(3):
        write_deltalake(tmp_path, pa.table({"id": [i]}), mode="overwrite")
    table = DeltaTable(tmp_path)
    plan = table.plan_vacuum(retention_hours=0, enforce_retention_duration=False)
    rows = Page(plan._repr_html_()).rows
    assert ["files", "2"] in rows
    assert sorted(rows[-2:]) == sorted([r["path"], f"{r['size']:,}"] for r in plan.to_table().to_pylist())


def test_no_object_shows_its_address(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    snapshot, merge = table.snapshot(), table.merge(pa.table({"id": [1]}), "target.id = source.id")
    shown: list[Any] = [table, table.optimize, table.alter, table.schema(), table.metadata(), table.protocol(), merge]
    shown += [table.scan(), table.dataset(), table.plan_vacuum(), table.verify(), table.report(), snapshot]
    shown += [snapshot.files, snapshot.state, snapshot.segment, snapshot.plugins, snapshot.registry]
    assert [repr(o) for o in shown if " object at 0x" in repr(o)] == []


def test_long_schema_is_cut(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).create({f"c{i}": "long" for i in range(1234)})
    assert Page(DeltaTable(builder.uri)._repr_html_()).rows[-1] == ["and 1,134 more"]


# --- logs ----------------------------------------------------------------------------------


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Return logger, level and text of each record, without times."""
    assert all(r.name.startswith("delta_core.") for r in caplog.records)
    return [(r.name, r.levelname, re.sub(r"\d+\.\d ms", "n ms", r.getMessage())) for r in caplog.records]


def test_writes_are_logged_at_info_and_reads_at_debug(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = str(tmp_path / "t")
    with caplog.at_level(logging.DEBUG, logger="delta_core"):
        write_deltalake(uri, pa.table({"id": [1, 2, 3]}))
        table = DeltaTable(uri)
        table.scan(predicate="id > 1").to_table()
        table.create_checkpoint()
    found = messages(caplog)
    assert ("delta_core.kernel.commit.transaction", "INFO", f"Committed version 0 of {uri}: WRITE (n ms)") in found
    assert (
        "delta_core.kernel.log.checkpoint_writer",
        "INFO",
        f"Wrote the checkpoint of version 0 of {uri} (n ms)",
    ) in found
    texts = [text for _, level, text in found if level == "DEBUG"]
    for expected in (
        r"Wrote 1 files: 3 rows, \d+ bytes, below .* \(n ms\)",
        r"Opened version 0 of .*: checkpoint None, 1 commits \(n ms\)",
        r"Planned a scan of Snapshot\(.*\): 1 of 1 files \(n ms\)",
        r"Read 2 rows, \d+ bytes, of Snapshot\(.*, version=0\) \(n ms\)",
    ):
        assert any(re.fullmatch(expected, text) for text in texts), (expected, texts)


def test_nothing_is_logged_below_warnings_unless_requested(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    DeltaTable(tmp_path).to_pyarrow_table()
    assert messages(caplog) == []
