"""Reports of tables: figures against those of snapshots, checks at their limits, and the page in a browser."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from delta_core import DeltaTable, write_deltalake
from delta_core.operations.report.facts import (
    ColumnOrder,
    Compaction,
    LogUpkeep,
    PartitionSize,
    ServedFeature,
    histogram,
    table_checks,
)
from delta_core.operations.report.table_report import TableReport
from delta_core.runtime.sizes import size_text
from delta_core.table.reporting import order_of, partition_sizes

EMPTY = TableReport("t", "Delta", 0, None, {}, 0, 0, 0, 0, (), None, ())
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def changed_table(path: Path) -> DeltaTable:
    """Return a table with partitions, deleted rows, statistics that were written again, and an optimize."""
    vectors = {"delta.enableDeletionVectors": "true"}
    for i in range(12):
        rows = pa.table(
            {"i": np.arange(100) + 100 * i, "s": [f"<{i}&{j}>" for j in range(100)], "p": ["ab"[i % 2]] * 100}
        )
        write_deltalake(path, rows, mode="append", partition_by=["p"], configuration=vectors if not i else None)
    table = DeltaTable(path)
    table.delete("i % 3 = 0")
    table.compute_statistics(every=True)
    table.update({"s": "'new'"}, predicate="i < 10")
    table.optimize.compact()
    write_deltalake(path, rows, mode="append")
    return DeltaTable(path)


def test_versions_have_the_files_and_bytes_of_their_snapshots(tmp_path: Path) -> None:
    table = changed_table(tmp_path)
    found = table.report().versions
    assert [v.version for v in found] == list(range(table.version() + 1))
    for v in found:
        files = DeltaTable(tmp_path, version=v.version).snapshot().files
        assert (v.files, v.size_bytes) == (files.count, sum(files.columns(["size"]).column(0).to_pylist())), v
    assert {v.operation for v in found} >= {"WRITE", "DELETE", "UPDATE", "OPTIMIZE"}


def test_versions_before_a_cleaned_log_are_unknown(tmp_path: Path) -> None:
    table = changed_table(tmp_path)
    (tmp_path / "_delta_log" / f"{3:020}.json").unlink()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    found = {v.version: v for v in DeltaTable(tmp_path).report().versions}
    assert found[table.version()].files == table.snapshot().files.count
    assert 3 not in found
    assert found[2].files is None


def test_figures_are_those_of_the_table(tmp_path: Path) -> None:
    table = changed_table(tmp_path)
    report = table.report()
    assert report.rows == table.count() == table.to_pyarrow_table().num_rows
    sizes = [f.stat().st_size for f in map(Path, table.file_uris())]
    assert (report.files, report.size_bytes) == (len(sizes), sum(sizes))
    assert sum(s.files for s in report.sizes) == report.files
    assert sum(s.size_bytes for s in report.sizes) == report.size_bytes
    assert {p.partition for p in report.partitions} == {"p=a", "p=b"}
    assert sum(p.size_bytes for p in report.partitions) == report.size_bytes
    assert {c.column for c in report.coverage} == {"i", "s"}
    assert all(c.with_bounds == c.with_nulls == report.files for c in report.coverage)
    assert {f.name for f in report.features} >= {"deletionVectors"}
    assert all(f.plugin for f in report.features)
    assert report.log is not None
    assert report.log.checkpoint == 10


def test_compaction_is_what_optimize_does(tmp_path: Path) -> None:
    for i in range(7):
        write_deltalake(tmp_path, pa.table({"i": [i]}), mode="append")
    table = DeltaTable(tmp_path)
    planned = table.report().compaction
    assert planned is not None
    done = table.optimize.compact()
    assert (planned.files, planned.files_after) == (done["numFilesRemoved"], done["numFilesAdded"]) == (7, 1)


def test_unused_files_are_those_of_a_vacuum(tmp_path: Path) -> None:
    write_deltalake(
        tmp_path, pa.table({"i": [1]}), configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"}
    )
    table = DeltaTable(tmp_path)
    size = Path(table.file_uris()[0]).stat().st_size
    write_deltalake(tmp_path, pa.table({"i": [2]}), mode="overwrite")
    report = DeltaTable(tmp_path).report()
    assert report.unused == (1, size)
    assert DeltaTable(tmp_path).report(store=False).unused is None
    assert state_of(report, "unused files") == "attention"


def test_missing_file_is_an_error_with_its_advice(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"i": [1]}))
    Path(DeltaTable(tmp_path).file_uris()[0]).unlink()
    report = DeltaTable(tmp_path).report()
    assert (report.state, state_of(report, "soundness")) == ("bad", "bad")
    assert "data-file-missing" in str(report)
    assert DeltaTable(tmp_path).report(store=False).state == "good"


def test_checksum_that_does_not_fit_the_log_is_a_finding(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"i": [1]}))
    checksum = tmp_path / "_delta_log" / f"{0:020}.crc"
    numbers = json.loads(checksum.read_text())
    kept = {k: v for k, v in numbers.items() if k not in ("allFiles", "fileSizeHistogram", "histogramOpt")}
    checksum.write_text(json.dumps(kept | {"numFiles": 7, "tableSizeBytes": numbers["tableSizeBytes"] + 6}))
    report = DeltaTable(tmp_path).report()
    assert (report.state, report.unused) == ("bad", None)
    assert any("checksum" in f["rule"] for f in report.findings)


def test_report_of_an_empty_table(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, pa.schema([("i", pa.int64())]))
    report = DeltaTable(tmp_path).report()
    assert (report.rows, report.files, report.sizes, report.state) == (0, 0, (), "good")
    check_page(report.to_html())


def test_clustered_table(tmp_path: Path) -> None:
    values = np.random.default_rng(3).permutation(12_000)
    DeltaTable.create(tmp_path, pa.schema([("i", pa.int64()), ("r", pa.int64())]), cluster_by=["i"])
    for i in range(12):
        write_deltalake(
            tmp_path, pa.table({"i": values[i::12], "r": np.sort(values)[i * 1000 : i * 1000 + 1000]}), mode="append"
        )
    orders = {o.column: o for o in DeltaTable(tmp_path).report().orders}
    assert list(orders) == ["i", "r"]
    assert orders["i"].is_clustered
    assert orders["i"].overlap > 0.9
    assert orders["r"].overlap == pytest.approx(1 / 12)
    assert state_of(DeltaTable(tmp_path).report(), "order") == "attention"


def state_of(report: TableReport, name: str) -> str:
    return next(c.state for c in report.checks if c.name == name)


def state(report: TableReport, name: str) -> str:
    return next(c.state for c in table_checks(report) if c.name == name)


@pytest.mark.parametrize(
    ("name", "good", "attention"),
    [
        ("rows", {"rows": 901, "deleted_rows": 99}, {"rows": 900, "deleted_rows": 100}),
        ("files", {"files": 9, "compaction": Compaction(9, 9, 1)}, {"files": 20, "compaction": Compaction(10, 9, 5)}),
        ("unused files", {"size_bytes": 100, "unused": (1, 50)}, {"size_bytes": 100, "unused": (1, 51)}),
        ("log", {"log": LogUpkeep(0, 30, 10, {})}, {"log": LogUpkeep(0, 31, 10, {})}),
        (
            "partitions",
            {"skew": 10.0, "num_partitions": 3, "partitions": (PartitionSize("p=1", 1, 10),)},
            {"skew": 10.1, "num_partitions": 3, "partitions": (PartitionSize("p=1", 1, 10),)},
        ),
        (
            "order",
            {"orders": (ColumnOrder("c", True, 10, 0.25, ()), ColumnOrder("d", False, 10, 1.0, ()))},
            {"orders": (ColumnOrder("c", True, 10, 0.26, ()),)},
        ),
    ],
)
def test_limits_of_checks(name: str, good: dict[str, Any], attention: dict[str, Any]) -> None:
    assert state(replace(EMPTY, **good), name) == "good"
    assert state(replace(EMPTY, **attention), name) == "attention"


def test_statistics_line_of_tables_without_bounds_or_files(tmp_path: Path) -> None:
    rows = pa.table({"i": [1, 2]})
    write_deltalake(tmp_path / "none", rows, configuration={"delta.dataSkippingNumIndexedCols": "0"})
    found = {c.name: c for c in DeltaTable(tmp_path / "none").report().checks}
    assert found["statistics"].found.startswith("No column has bounds")
    write_deltalake(tmp_path / "empty", rows.slice(0, 0))
    assert "statistics" not in {c.name for c in DeltaTable(tmp_path / "empty").report().checks}


def test_soundness_names_the_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"i": [1]}))
    (lost,) = tmp_path.glob("*.parquet")
    lost.unlink()
    (found,) = (c for c in DeltaTable(tmp_path).report().checks if c.name == "soundness")
    assert lost.name in found.advice


def test_feature_without_plugin_is_bad() -> None:
    served = ServedFeature("a", "delta-core-lake", True, "")
    assert state(replace(EMPTY, features=(served,)), "features") == "good"
    report = replace(EMPTY, features=(served, ServedFeature("b", None, None, "")))
    assert state(report, "features") == "bad"
    assert "b" in next(c.found for c in table_checks(report) if c.name == "features")


@given(st.lists(st.integers(0, 1 << 45), max_size=60))
def test_histogram_counts_each_file_once_in_its_range(sizes: list[int]) -> None:
    found = histogram(np.array(sizes, np.int64))
    for s in found:
        within = [n for n in sizes if s.least <= n < s.most]
        assert (s.files, s.size_bytes) == (len(within), sum(within))
    assert sum(s.files for s in found) == len(sizes)
    assert all(a.most == b.least for a, b in pairwise(found))


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 40)), min_size=1, max_size=40))
def test_overlap_against_every_pair(ranges: list[tuple[int, int]]) -> None:
    low, high = [a for a, _ in ranges], [a + n for a, n in ranges]
    found = order_of("c", pa.chunked_array([low]), pa.chunked_array([high]))
    pairs = [a <= d and c <= b for a, b in zip(low, high, strict=True) for c, d in zip(low, high, strict=True)]
    assert found is not None
    assert found.overlap == pytest.approx(sum(pairs) / len(ranges) ** 2)
    assert all(0 <= a <= b <= 1 for a, b in found.spans)


def test_order_of_texts_and_of_files_without_bounds() -> None:
    low, high = pa.chunked_array([["a", None, "c"]]), pa.chunked_array([["b", None, "d"]])
    found = order_of("s", low, high)
    assert found is not None
    assert (found.files, found.overlap) == (2, 0.5)
    assert order_of("s", low.slice(1, 1), high.slice(1, 1)) is None


def test_skew_compares_with_the_partition_in_the_middle() -> None:
    found, skew = partition_sizes(pa.chunked_array([["a", "a", "b", "c"]]), np.array([6, 6, 4, 2]))
    assert found == (PartitionSize("a", 2, 12), PartitionSize("b", 1, 4), PartitionSize("c", 1, 2))
    assert skew == 3
    assert partition_sizes(None, np.array([1])) == ((), None)


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 40, "3.0 TiB")])
def test_size_text(size: int, text: str) -> None:
    assert size_text(size) == text


class _Tags(html.parser.HTMLParser):
    """Checks that tags are closed in their order, and collects texts and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.links += [v for k, v in attrs if k in ("src", "href")]
        if tag not in ("meta", "rect", "path", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.links += [v for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            assert tag in ("rect", "circle"), (tag, self.open)

    def handle_data(self, data: str) -> None:
        self.text += data


def check_page(page: str) -> str:
    """Check that a page is whole and needs nothing else; return its text."""
    tags = _Tags()
    tags.feed(page)
    tags.close()
    assert (tags.open, tags.links) == ([], [])
    assert not re.search(r"https?://|@import|url\(|<script", page)
    return tags.text


def test_page_is_whole_and_shows_every_part(tmp_path: Path) -> None:
    table = changed_table(tmp_path)
    report = table.report()
    text = check_page(report.to_html())
    for title in (
        "Health",
        "Versions",
        "Sizes of files",
        "Order of columns",
        "Partitions",
        "Statistics",
        "Log and",
        "Features",
    ):
        assert title in text
    assert f"{report.rows:,}" in text
    assert check_page(report._repr_html_()) in text
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.to_html()
    assert json.loads(json.dumps(report.to_dict()))["state"] == report.state


def test_names_and_values_are_escaped(tmp_path: Path) -> None:
    rows = pa.table({"<b>&\"'": [1], "p": ["<script>alert(1)</script>"]})
    write_deltalake(tmp_path, rows, partition_by=["p"], name="<i>", configuration={"delta.columnMapping.mode": "name"})
    page = DeltaTable(tmp_path).report().to_html()
    assert "<script" not in page
    assert "p=<script>alert(1)</script>" in check_page(page.replace("&lt;script&gt;", "&lt;script&gt;"))
    assert "<i>" not in page


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("looks at the page in a browser: install Chromium")
    return found


_LOOK = """<script>
const boxes = s => [...document.querySelectorAll(s)].map(e => e.getBoundingClientRect());
document.title = JSON.stringify({
  wide: document.documentElement.scrollWidth > innerWidth,
  cut: [...document.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth + 1).length,
  marks: boxes("svg .mark, svg circle").length,
  hidden: boxes("svg .mark, svg circle, .tiles div, tbody tr").filter(b => b.width < 0.2 || b.height < 0.2).length,
  outside: [...document.querySelectorAll("svg")].filter(s => { const o = s.getBoundingClientRect();
    return [...s.querySelectorAll("rect, circle, text")].some(e => { const b = e.getBoundingClientRect();
      return b.left < o.left - 1 || b.right > o.right + 1 || b.top < o.top - 1 || b.bottom > o.bottom + 1; })}).length,
  colours: ["color", "backgroundColor"].map(p => getComputedStyle(document.querySelector(".delta-report"))[p])});
</script></body>"""


def look(browser: str, page: str, folder: Path, width: int, is_dark: bool) -> dict[str, Any]:
    """Return what a browser of a width makes of a page."""
    (folder / "page.html").write_text(page.replace("</body>", _LOOK), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--disable-component-update", "--disable-sync", "--disable-quic", f"--user-data-dir={folder}/browser"]
    options += [f"--window-size={width},900", f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"]
    command = [browser, *options, "--dump-dom", f"file://{folder / 'page.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title is not None
    found: dict[str, Any] = json.loads(html.unescape(title[1]))
    return found


def brightness(colour: str) -> float:
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 765


@pytest.mark.parametrize("width", [500, 1200])
@pytest.mark.parametrize("is_dark", [False, True])
def test_page_in_a_browser(browser: str, tmp_path: Path, width: int, is_dark: bool) -> None:
    table = changed_table(tmp_path / "table")
    report = table.report()
    found = look(browser, report.to_html(), tmp_path, width, is_dark)
    assert not found["wide"]
    assert found["outside"] == 0
    assert found["hidden"] == 0
    spans = sum(len(o.spans) for o in report.orders)
    assert found["marks"] == 2 * len(report.versions) + sum(s.files > 0 for s in report.sizes) + spans
    ink, paper = map(brightness, found["colours"])
    assert (ink > 0.8 and paper < 0.2) if is_dark else (ink < 0.3 and paper > 0.9)


def test_page_with_long_names_is_no_wider_than_the_browser(browser: str, tmp_path: Path) -> None:
    names = [f"{'a_very_long_column_name_' * 6}{i}" for i in range(3)]
    rows = pa.table({**{n: range(4) for n in names}, "part": [f"{'v' * 80}{i}" for i in range(4)]})
    write_deltalake(tmp_path / "table", rows, partition_by=["part"])
    report = replace(DeltaTable(tmp_path / "table").report(), sizes=histogram(np.array([1, 600 << 10, 3 << 20])))
    found = look(browser, report.to_html(), tmp_path, 500, False)
    assert not found["wide"]
    assert found["cut"] == 0
    assert found["outside"] == 0
