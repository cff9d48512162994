"""The commands on saved runs: compare, history, plot, profile; and workloads of one's own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import __main__ as main, plot, report
from benchmarks.cases import Case
from benchmarks.compare import format_comparison, verdict
from benchmarks.profile import counters, format_counters
from benchmarks.report import format_markdown
from benchmarks.run import ROOT, Result, Side
from benchmarks.saved import Figure, SavedRun, find_run, find_runs, load, save
from benchmarks.sizes import Sizes
from benchmarks.workloads import format_workload, load_workload, run_workload
from delta_core import DeltaTable, write_deltalake


def figure(*cpu: float, case: str = "open", side: str = "ours") -> Figure:
    return Figure(case, side, [2 * c for c in cpu], cpu, 10.0)


def run(commit: str, *figures: Figure, time: str = "2026-01-01T00:00:00Z", scale: float = 1) -> SavedRun:
    return SavedRun(commit, time, "a machine", scale, "run", list(figures))


def written(tables: Path, made: SavedRun) -> Path:
    path = tables / "results" / f"{made.name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(made)))
    return path


# --- saved runs ----------------------------------------------------------------------------


def test_a_saved_run_has_the_commit_the_machine_the_scale_and_each_time(tmp_path: Path) -> None:
    path = save(tmp_path, 0.5, [figure(1.0, 1.5)])
    found = load(path)
    assert (found.scale, found.machine) == (0.5, report.machine())
    assert found.commit
    assert found.of("open") == replace(figure(1.0, 1.5), seconds=[2.0, 3.0], cpu=[1.0, 1.5])
    assert [r.name for r in find_runs(tmp_path)] == [path.stem]


@pytest.mark.parametrize("text", ["", "[]", '{"commit": "a"}', "no JSON"])
def test_a_file_that_is_no_saved_run_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(SystemExit, match=r"x\.json is no file of saved results"):
        load(tmp_path / "x.json")


def test_runs_are_found_by_place_commit_and_file(tmp_path: Path) -> None:
    first = run("aaa1", figure(1, 1), time="2026-01-01T00:00:00Z")
    second = run("bbb2", figure(2, 2), time="2026-01-02T00:00:00Z")
    path = written(tmp_path, first)
    written(tmp_path, second)
    assert find_run(tmp_path, "latest").commit == find_run(tmp_path, "bbb").commit == "bbb2"
    assert find_run(tmp_path, "previous").commit == find_run(tmp_path, str(path)).commit == "aaa1"
    with pytest.raises(SystemExit, match=r"no saved run 'ccc'.*-aaa1, .*-bbb2"):
        find_run(tmp_path, "ccc")
    with pytest.raises(SystemExit, match="there is no latest run in"):
        find_run(tmp_path / "other", "latest")


def test_runs_of_other_commits_and_scales_are_not_mixed(tmp_path: Path) -> None:
    written(tmp_path, run("aaa1", figure(1, 1), figure(9, 9, case="large"), time="2026-01-01T00:00:00Z", scale=10))
    written(tmp_path, run("aaa1", figure(2, 2), time="2026-01-02T00:00:00Z"))
    written(tmp_path, run("aaa1+", figure(3, 3), time="2026-01-03T00:00:00Z"))
    found = find_run(tmp_path, "aaa1")
    assert [(f.case, f.median()) for f in found.figures] == [("open", 2)]
    with pytest.raises(SystemExit, match=r"'aaa' begins several saved runs, of aaa1, aaa1\+"):
        find_run(tmp_path, "aaa")


def test_several_runs_of_a_commit_are_one_with_the_latest_figures(tmp_path: Path) -> None:
    written(tmp_path, run("aaa1", figure(1, 1), figure(5, 5, case="list"), time="2026-01-01T00:00:00Z"))
    written(tmp_path, run("aaa1", figure(3, 3), time="2026-01-02T00:00:00Z"))
    found = find_run(tmp_path, "aaa")
    assert [(f.case, f.median()) for f in found.figures] == [("open", 3), ("list", 5)]


# --- comparison ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1.0, 1.0, 1.0), (1.5, 1.5, 1.5), "slower"),
        ((1.0, 1.0, 1.0), (0.5, 0.5, 0.5), "faster"),
        ((1.0, 1.0, 1.0), (1.01, 1.01, 1.01), "no change"),
        ((0.8, 1.0, 1.2), (1.0, 1.15, 1.3), "no change"),
        ((1.0,), (9.0, 9.0), "one run"),
    ],
)
def test_a_case_is_slower_only_beyond_the_noise(
    before: tuple[float, ...], after: tuple[float, ...], expected: str
) -> None:
    assert verdict(figure(*before), figure(*after))[2] == expected


def test_a_comparison_names_both_commits_and_the_cases_of_one_alone() -> None:
    before = run("aaa1", figure(1, 1), figure(1, 1, case="gone"))
    after = run("bbb2", figure(2, 2.2), figure(1, 1, case="new"))
    text, is_slower = format_comparison(before, after)
    assert is_slower
    assert "before: aaa1" in text
    assert "after: bbb2" in text
    assert "In one of the runs only: gone, new." in text
    assert text.splitlines()[-1] == "| open | 1 s | 2.1 s | 2.10 | 5% | slower |"
    assert "| open | 2 s | 4.2 s | 2.10 |" in format_comparison(before, after, wall=True)[0]


def test_runs_of_other_scales_are_not_compared() -> None:
    with pytest.raises(SystemExit, match=r"scale 1 and 0\.1"):
        format_comparison(run("a", figure(1)), run("b", figure(1), scale=0.1))


def test_other_machines_are_reported() -> None:
    other = replace(run("b", figure(1, 1)), machine="another one")
    assert "not the same: a machine; another one" in format_comparison(run("a", figure(1, 1)), other)[0]


def test_a_case_that_a_commit_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise subprocess.CalledProcessError(1, ["python"], stderr="Traceback\nImportError: no SnapshotCache\n")

    monkeypatch.setattr(main, "built_commit", lambda *_: tmp_path)
    monkeypatch.setattr(main, "run_both", fail)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "compare", "older", "--measure", "list-files-cached"])
    with pytest.raises(SystemExit, match="list-files-cached can't be measured: ImportError: no SnapshotCache"):
        main.main()


def test_the_commands_compare_and_list_what_is_saved(tmp_path: Path) -> None:
    written(tmp_path, run("aaa1", figure(1, 1), figure(4, 4, side="deltalake"), time="2026-01-01T00:00:00Z"))
    written(tmp_path, run("bbb2", figure(2, 2), time="2026-01-02T00:00:00Z"))

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "benchmarks", "--tables", str(tmp_path), *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    compared = command("compare", "previous", "--check")
    assert compared.returncode == 1
    assert "| open | 1 s | 2 s | 2.00 | 0% | slower |" in compared.stdout
    listed = command("history").stdout.splitlines()
    assert listed[0] == "open"
    assert "aaa1" in listed[1]
    assert "0.25 of deltalake" in listed[1]
    assert "2,000 ms" in listed[2]
    both = command("compare", "previous", "latest", "--measure", "open-table")
    assert "leave out AFTER" in both.stderr
    assert "--check is for the cases of the project" in command("run", "my.toml", "--check").stderr
    unknown = command("compare", "nothing", "--measure", "open-table")
    assert unknown.returncode == 1
    assert "has no commit 'nothing'" in unknown.stderr


# --- the table of results ------------------------------------------------------------------


def test_rows_have_processor_time_and_titles_the_scale() -> None:
    case = Case("open_table", "open a table", "million-json")
    result = Result(case, Side(1.0, 10.0, 1, 0.5), Side(2.0, 20.0, 1, 3.0))
    (row,) = format_markdown([result], "today", 0.01).splitlines()[2:]
    assert row.startswith("| at scale 0.01: open a table | 2 s | 1 s | 2x | 3 / 0.5 s | 20 / 10 |")
    assert format_markdown([result], "today").splitlines()[2].startswith("| open a table |")


def test_rows_without_a_new_column_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "README.md"
    copy.write_text("<!-- results: begin -->\n| work | ours |\n| --- | --- |\n| a | 1 |\n<!-- results: end -->\n")
    monkeypatch.setattr(report, "README", copy)
    report.write_readme("| work | CPU | ours |\n| --- | --- | --- |\n| b | 2 | 3 |", "note")
    rows = [line for line in copy.read_text().splitlines() if line.startswith("|")]
    assert rows == ["| work | CPU | ours |", "| --- | --- | --- |", "| a |  | 1 |", "| b | 2 | 3 |"]


# --- figures -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", plot.FIGURES)
def test_published_ratios_are_those_of_the_page(place: str) -> None:
    found = dict(plot.published_ratios(place))
    assert len(found) > 15
    assert all(0.01 < ratio < 1_000 for ratio in found.values())


def test_figures_of_lance_have_the_peer_over_ours() -> None:
    assert plot.published_ratios("lance")
    titles = [line for line in report.README.read_text().splitlines() if line.startswith("| stream all rows, 2.2 |")]
    ratio = float(titles[0].split("|")[4])
    assert dict(plot.published_ratios("lance"))["stream all rows, 2.2"] == pytest.approx(1 / ratio)


def test_figures_of_the_guide_are_those_of_the_page() -> None:
    """If it fails: python -m benchmarks plot."""
    for place, (name, *_) in plot.FIGURES.items():
        drawn = (ROOT / "docs" / "figures" / name).read_text(encoding="utf-8")
        missing = [title for title, ratio in plot.published_ratios(place) if f">{ratio:.3g}<" not in drawn]
        assert missing == []


def test_drawn_figures_have_each_case_and_are_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    first, second = plot.plot_published(tmp_path / "a"), plot.plot_published(tmp_path / "b")
    assert [p.name for p in first] == ["delta.svg", "lance.svg", "spark.svg"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert "take 10,000 random rows, 2.2" in first[1].read_text()
    drawn = plot.plot_history(tmp_path, "open", [run("aaa1", figure(1, 2)), run("bbb2", figure(2, 2))])
    assert drawn.name == "history-open.svg"
    assert "aaa1" in drawn.read_text()


# --- profile -------------------------------------------------------------------------------


def test_counters_are_those_of_the_work(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": list(range(100))}))
    found = counters(lambda: DeltaTable(tmp_path / "t").scan(predicate="id < 10").to_table())
    assert found["scans"][0]["rows"] == 10
    assert found["scans"][0]["files"] == 1
    assert found["hooks"]["read_rules"] == 1
    assert sum(found["storage"].values()) >= 1
    again = counters(lambda: None)  # what counts is taken away afterwards
    assert (again["hooks"], again["storage"], again["scans"]) == ({}, {}, [])
    text = format_counters(found)
    assert "read_rules 1" in text
    assert "rows 10" in text


def test_profile_draws_native_frames(made: Callable[[str], Path], tmp_path: Path) -> None:
    if shutil.which("py-spy", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("py-spy is not installed")
    table = made("three-commits")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "--tables", table.parent, "--scale", "0.01"),
            *("profile", "open-table", "-o", tmp_path / "x.svg", "--json", tmp_path / "x.json"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "Permission denied" in done.stderr or "ptrace" in done.stderr:
        pytest.skip("this system does not let processes be sampled")
    assert done.returncode == 0, done.stderr
    assert "benchmarks/child.py" in (tmp_path / "x.svg").read_text()
    assert json.loads((tmp_path / "x.json").read_text())["storage"]


# --- workloads -----------------------------------------------------------------------------

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "amount": [i / 4 for i in range(100)], "day": ["a", "b"] * 50})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "events", ROWS, partition_by=["day"])
    pq.write_table(ROWS.slice(0, 10), tmp_path / "new.parquet")
    return tmp_path


def loaded(folder: Path, text: str, table: str = 'table = "events"') -> object:
    (folder / "my.toml").write_text(f"{table}\n{text}\n")
    return load_workload(folder / "my.toml", folder, Sizes(0.01), with_peers=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[case]]\nname = "x"', "case 'x': has no operation; expected a read"),
        ('[[case]]\nname = "x"\nsql = "s"\ndelete = "p"', "case 'x': has sql and delete; expected one operation"),
        ('[[case]]\nname = "x"\nlimit = 1\nlimits = 2', "case 'x': unknown key limits"),
        ('[[case]]\nname = "x"\nsql = "s"\npredicate = "p"', "case 'x': unknown key predicate"),
        ('[[case]]\nname = "x"\ncall = "close"', "call is 'close'; expected one of open, files, count"),
        ('[[case]]\nname = "x"\nmerge = "new.parquet"', "merge needs on ="),
        ('[[case]]\nname = "x"\nappend = "old.parquet"', "there is no file"),
        ('[[case]]\nname = "x"\nlimit = 1\npeers = ["spark"]', "unknown peer spark; expected some of deltalake"),
        ('[[case]]\nname = "x"\noptimize = false', "optimize is False; expected true"),
        ("[[case]]\nlimit = 1", "case None: expected a name"),
        ('[[case]]\nname = "x"\nlimit = 1\n[[case]]\nname = "x"\nlimit = 2', "two cases have the same name"),
        ('[[case]]\nname = "x"\ncolumns = "id"', "case 'x': columns is 'id'; expected a list of names"),
        ('[[case]]\nname = "x"\ncolumns = [1]', r"case 'x': columns is \[1\]; expected a list of names"),
        ('[[case]]\nname = "x"\nlimit = true', "case 'x': limit is True; expected a whole number"),
        ('[[case]]\nname = "x"\nsql = 1', "case 'x': sql is 1; expected a text"),
        ('[[case]]\nname = "x"\nupdate = "a = 1"', "update is 'a = 1'; expected a table of columns"),
        ('[case]\nname = "x"\nlimit = 1', r"expected \[\[case\]\] above each case"),
        ("x = 1", "unknown key x; expected table and"),
        ("", "at least one"),
        ("[[", "is no TOML file of cases"),
    ],
)
def test_a_mistake_in_a_workload_is_named(folder: Path, text: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        loaded(folder, text)


def test_a_table_that_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"there is no table .*nowhere"):
        loaded(folder, '[[case]]\nname = "x"\nlimit = 1', 'table = "nowhere"')


def test_a_peer_that_is_not_installed_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.workloads.find_spec", lambda name: None)
    text = '[[case]]\nname = "x"\nlimit = 1\npeers = ["pylance"]'
    assert loaded(folder, text)
    with pytest.raises(SystemExit, match="case 'x': pylance is not installed"):
        load_workload(folder / "my.toml", folder, Sizes(0.01))


def test_a_table_that_is_not_generated_is_named(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"no table 'nothing' is generated; expected one of .*million-json"):
        loaded(folder, '[[case]]\nname = "x"\nlimit = 1', 'table = {generate = "nothing"}')


def test_sides_of_a_workload_return_the_same(folder: Path) -> None:
    pytest.importorskip("deltalake")
    workload = loaded(
        folder,
        """
[[case]]
name = "read"
columns = ["id"]
predicate = "day = 'a' AND id < 50"
peers = ["deltalake", "polars", "duckdb"]
[[case]]
name = "sql"
sql = "SELECT day, sum(amount) AS amount FROM t GROUP BY day"
[[case]]
name = "files"
call = "files"
peers = []
[[case]]
name = "delete"
delete = "id < 10"
[[case]]
name = "update"
update = {amount = "amount + 1"}
predicate = "id = 3"
peers = []
[[case]]
name = "append"
append = "new.parquet"
peers = []
[[case]]
name = "merge"
merge = "new.parquet"
on = "t.id = s.id"
peers = []
[[case]]
name = "optimize"
optimize = true
peers = []
""",
    )
    figures, errors = run_workload(workload, 1, True, lambda text: None)  # type: ignore[arg-type]
    assert errors == {}
    answers = {(f.case, f.side): f.answer for f in figures}
    assert answers["read", "ours"] == [25, float(sum(range(0, 50, 2)))]
    assert answers["files", "ours"] == 2
    assert answers["delete", "ours"][0] == 90
    assert answers["append", "ours"][0] == 110
    text = format_workload(figures, errors)
    assert "differs" not in text
    assert text.count("| same |") == len(figures) == 13
    assert len(ROWS) == DeltaTable(folder / "events").count(), "changes run on copies"


def test_a_side_that_fails_is_reported_and_the_others_stay(folder: Path) -> None:
    workload = loaded(
        folder, '[[case]]\nname = "x"\ndelete = "nothing = 1"\npeers = []\n[[case]]\nname = "y"\nlimit = 3'
    )
    figures, errors = run_workload(workload, 1, False, lambda text: None)  # type: ignore[arg-type]
    assert [f.case for f in figures] == ["y"]
    assert "nothing" in errors["x: ours"]
    assert "| x | delta_core |  |  |  |  | failed: " in format_workload(figures, errors)


def test_another_answer_is_shown() -> None:
    text = format_workload([figure(1.0), replace(figure(2.0, side="polars"), answer=3)], {})
    assert "differs: 3, ours None" in text
    assert "| 0.50 |" in text


def test_the_workload_of_the_project_can_be_loaded(tmp_path: Path) -> None:
    workload = load_workload(ROOT / "benchmarks" / "workloads" / "reads.toml", tmp_path, Sizes(0.001), with_peers=False)
    assert workload.cases[0]["name"] == "two columns of all rows"
    assert DeltaTable(workload.table).version() >= 0
