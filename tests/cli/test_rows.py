"""Rows on the screen and in files: head, cat, changes."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import ArrayType, DeltaTable, Field, MapType, PrimitiveType, Schema, StructType, write_deltalake
from delta_core.cli import output
from delta_core.cli.output import print_table, values
from delta_core.testing.table_builder import TableBuilder
from delta_core.testing.variant_bytes import variants
from tests.example_counts import examples


def test_head_shows_rows_with_numbers_to_the_right(run: Any, table: TableBuilder) -> None:
    lines = run("head", table.uri, "--columns", "kind,id,price", "--where", "id >= 1").lines
    assert lines[0].split() == ["kind", "id", "price"]
    assert sorted(line.split() for line in lines[2:]) == [["b", "1", "1.00"], ["b", "3", "NULL"]]


def test_head_stops_at_its_limit(run: Any, table: TableBuilder) -> None:
    assert len(run("head", table.uri, "-n", 1, "--json").json) == 1


def test_head_as_json_keeps_values_that_json_lacks(run: Any, table: TableBuilder) -> None:
    found = run("head", table.uri, "--where", "id = 1", "--metadata", "_file_row_index", "--json").json
    assert found == [{"id": 1, "kind": "b", "day": "2024-05-01", "price": "1.00", "_file_row_index": 0}]


def test_columns_reach_into_structs_and_keep_quoted_commas(run: Any, tmp_path: Path) -> None:
    schema = pa.schema([("s", pa.struct([("x", pa.int32()), ("y", pa.int32())])), ("a,b", pa.int32())])
    made = TableBuilder(tmp_path / "t").create(schema).append([{"s": {"x": 1, "y": 2}, "a,b": 3}])
    found = run("head", made.uri, "--columns", "s.x, `a,b`", "--json")
    assert found.json == [{"s": {"x": 1}, "a,b": 3}]


def test_cat_writes_csv_by_default(run: Any, table: TableBuilder) -> None:
    rows = list(csv.DictReader(io.StringIO(run("cat", table.uri).out)))
    assert sorted(r["id"] for r in rows) == ["0", "1", "3"]
    assert {r["price"] for r in rows} == {"0.00", "1.00", ""}


def test_cat_json_is_one_object_a_line(run: Any, table: TableBuilder) -> None:
    lines = run("cat", table.uri, "--format", "json", "--columns", "id", "--limit", 2).lines
    assert len(lines) == 2
    assert all(set(json.loads(line)) == {"id"} for line in lines)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out.arrow", "out.feather"])
def test_output_files_ending_states_the_format(run: Any, table: TableBuilder, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    result = run("cat", table.uri, "-o", target)
    assert (result.code, result.out) == (0, "")
    assert f"3 rows written to {target}" in result.err
    if name.endswith("parquet"):
        assert pq.read_table(target).sort_by("id").equals(table.expected().sort_by("id"))
    elif name.endswith(("arrow", "feather")):
        assert pa.ipc.open_file(target).read_all().num_rows == 3
    else:
        assert target.read_text().count("\n") == (4 if name.endswith("csv") else 3)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("output", [None, "out"])
def test_failure_on_the_way_shows_one_line_and_leaves_nothing_that_looks_whole(
    table: TableBuilder, tmp_path: Path, kind: str, output: str | None
) -> None:
    Path(table.location(table.paths()[-1])).unlink()
    code = "import sys; from delta_core.cli import main; sys.exit(main())"
    arguments = ["cat", table.uri, "-f", kind, *(["-o", str(tmp_path / output)] if output else [])]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(b"delta-core: Data file")
    assert done.stderr.count(b"\n") == 1
    assert not done.stdout.endswith((b"PAR1", b"\xff\xff\xff\xff\0\0\0\0")) or len(done.stdout) == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_binary_formats_stream_to_a_pipe(run: Any, table: TableBuilder, kind: str) -> None:
    data = run("cat", table.uri, "--format", kind).data
    read = pq.read_table(io.BytesIO(data)) if kind == "parquet" else pa.ipc.open_stream(data).read_all()
    assert sorted(read.column("id").to_pylist()) == [0, 1, 3]


def test_nested_and_binary_values_fit_into_csv(run: Any, tmp_path: Path) -> None:
    kinds = {"b": pa.binary(), "l": pa.list_(pa.int32()), "m": pa.map_(pa.string(), pa.int32()), "n": pa.null()}
    made = TableBuilder(tmp_path / "t").create(pa.schema(list(kinds.items())))
    made.append([{"b": b"\x00\xff", "l": [1, None], "m": {"k": 1}}, {"b": None, "l": None, "m": None}])
    rows = list(csv.reader(io.StringIO(run("cat", made.uri).out)))
    assert rows == [["b", "l", "m", "n"], ["AP8=", "[1, null]", '{"k": 1}', ""], ["", "", "", ""]]


def test_maps_with_nested_keys_are_lists_of_pairs_and_others_objects(run: Any, tmp_path: Path) -> None:
    inner = pa.map_(pa.string(), pa.int32())
    kinds = {
        "m": pa.map_(pa.list_(pa.int32()), inner),
        "l": pa.list_(pa.struct([("n", inner)])),
        "t": pa.timestamp("us", "UTC"),
    }
    made = TableBuilder(tmp_path / "t").create(pa.schema(list(kinds.items())))
    row = {"m": [([1, 2], [("a", 1)])], "l": [{"n": [("b", 2)]}, None], "t": None}
    made.append(pa.Table.from_pylist([row, {"m": None}], pa.schema(list(kinds.items()))), statistics=False)
    expected = {"m": [{"key": [1, 2], "value": {"a": 1}}], "l": [{"n": {"b": 2}}, None], "t": None}
    assert run("head", made.uri, "--json").json == [expected, dict.fromkeys(kinds)]
    assert json.loads(run("cat", made.uri, "-f", "json").lines[0]) == expected
    assert json.loads(list(csv.reader(io.StringIO(run("cat", made.uri).out)))[1][0]) == expected["m"]
    assert '[{"key": [1, 2], "value": {"a": 1}}]' in run("head", made.uri).out


def test_floats_that_json_lacks_become_text(run: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"x": "double"})
    made.append([{"x": v} for v in (float("nan"), float("inf"), float("-inf"), 0.1)])
    lines = run("cat", made.uri, "-f", "json").lines
    assert [json.loads(line)["x"] for line in lines] == ["NaN", "Infinity", "-Infinity", 0.1]


def test_timestamps_that_python_has_no_date_for_are_written(run: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"t": "timestamp"})
    made.append(pa.table({"t": pa.array([2**62, 0], pa.timestamp("us", "UTC"))}), statistics=False)
    for arguments in (("head", made.uri), ("head", made.uri, "--json"), ("cat", made.uri, "-f", "json")):
        result = run(*arguments)
        assert result.code == 0, result.err
        assert str(2**62) in result.out
        assert "1970-01-01T00:00:00Z" in result.out
    result = run("cat", made.uri)
    assert (result.code, "Column t" in result.err) == (1, True)


def test_failed_export_leaves_no_file_and_keeps_the_older(run: Any, table: TableBuilder, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("older")
    for path in table.paths():
        Path(table.location(path)).unlink()
    assert run("cat", table.uri, "-o", target).code == 1
    assert target.read_text() == "older"
    assert [p.name for p in tmp_path.iterdir() if p.name != "sales"] == ["out.csv"]


def test_changes_shows_the_feed_and_cuts_it_with_a_note(run: Any, table: TableBuilder) -> None:
    result = run("changes", table.uri, "--start", 1, "--where", "_change_type = 'delete'")
    assert result.lines[2].split()[:5] == ["2", "a", "2024-05-01", "2.00", "delete"]
    assert len(result.lines) == 3
    cut = run("changes", table.uri, "--start", 1, "--limit", 2)
    assert len(cut.lines) == 4
    assert "first 2 rows" in cut.err


def test_diff_shows_the_rows_in_which_versions_differ(run: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "tracked")
    write_deltalake(uri, pa.table({"id": [1, 2, 3]}), configuration={"delta.enableRowTracking": "true"})
    DeltaTable(uri).delete("id = 2")
    rows = run("diff", uri, 0, "--json").json
    assert rows == [{"id": 2, "_change_type": "delete", "_row_id": 1, "_row_commit_version": 0}]
    assert run("diff", uri, 0, 1, "--where", "id > 2", "--json").json == []


def test_changes_takes_times_and_formats(run: Any, table: TableBuilder) -> None:
    found = run("changes", table.uri, "--start-timestamp", "2023-11-14T22:13:22Z", "-f", "json")
    assert [json.loads(line)["_commit_version"] for line in found.lines] == [2]
    found = run("changes", table.uri, "--end", 1, "-f", "json", "--columns", "id,_change_type", "-n", 3)
    assert [set(json.loads(line)) for line in found.lines] == [{"id", "_change_type"}] * 3


def test_reader_that_closes_the_pipe_is_no_error(table: TableBuilder) -> None:
    table.append([{"id": i, "kind": "c", "day": None, "price": None} for i in range(50_000)])
    command = [sys.executable, "-c", "import sys; from delta_core.cli import main; sys.exit(main())", "cat", table.uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b'"id"')
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_wide_rows_on_a_terminal_are_shown_field_by_field(table: TableBuilder) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    code = "import sys; from delta_core.cli import main; sys.exit(main())"
    environment = {**os.environ, "COLUMNS": "30", "TERM": "xterm", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, "head", table.uri, "-n", "1"],
        stdout=theirs,
        env=environment,
        check=True,
        timeout=60,
    )
    os.close(theirs)
    text = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "row 1" in text
    assert "kind" in text


def test_dash_as_output_is_standard_output(run: Any, table: TableBuilder) -> None:
    for arguments in (("cat",), ("changes",)):
        result = run(*arguments, table.uri, "-o", "-", "--columns", "id")
        assert result.code == 0
        assert result.err == ""
        assert result.lines[0] == '"id"'
    assert pa.ipc.open_stream(run("cat", table.uri, "-o", "-", "-f", "arrow").data).read_all().num_rows == 3


def test_count_is_exact(run: Any, table: TableBuilder) -> None:
    assert run("count", table.uri).out == "3\n"
    assert run("count", table.uri, "--where", "id > 0").out == "2\n"
    assert run("count", table.uri, "--version", 1, "--json").json == {"count": 4}


@pytest.fixture
def spoken(tmp_path: Path) -> str:
    """Return a table of variants at several depths."""
    found = pa.array(variants([{"a": [1, "x", 2.5]}, "text"]))
    variant = PrimitiveType("variant")
    fields = {
        "v": variant,
        "s": StructType([Field("v", variant)]),
        "l": ArrayType(variant),
        "m": MapType("string", variant),
    }
    schema = Schema([Field("id", "long"), *(Field(n, t) for n, t in fields.items())])
    uri = str(tmp_path / "spoken")
    DeltaTable.create(uri, schema, configuration={"delta.enableChangeDataFeed": "true"})
    rows = pa.table(
        {
            "id": [1, 2],
            "v": found,
            "s": pa.StructArray.from_arrays([found], ["v"]),
            "l": pa.ListArray.from_arrays([0, 1, 2], found),
            "m": pa.MapArray.from_arrays([0, 1, 2], ["k", "k"], found),
        }
    )
    write_deltalake(uri, rows, mode="append")
    write_deltalake(uri, pa.table({"id": [3]}), mode="append")
    return uri


FIRST = {"a": [1, "x", 2.5]}
SPOKEN = [
    {"id": 1, "v": FIRST, "s": {"v": FIRST}, "l": [FIRST], "m": {"k": FIRST}},
    {"id": 2, "v": "text", "s": {"v": "text"}, "l": ["text"], "m": {"k": "text"}},
    {"id": 3, "v": None, "s": None, "l": None, "m": None},
]


def test_variants_are_json(run: Any, spoken: str) -> None:
    key = lambda r: r["id"]  # noqa: E731
    assert sorted(run("head", spoken, "--json").json, key=key) == SPOKEN
    assert sorted(map(json.loads, run("cat", spoken, "-f", "json").lines), key=key) == SPOKEN
    feed = run("changes", spoken, "--json", "--columns", "id,v,s,l,m").json
    assert sorted(feed, key=key) == SPOKEN
    assert run("sql", "SELECT v FROM spoken WHERE id = 2", spoken, "--json").json == [{"v": "text"}]
    assert '{"a": [1, "x", 2.5]}' in run("head", spoken).out
    assert run("head", spoken, "--columns", "s.v", "--where", "id = 2", "--json").json == [{"s": {"v": "text"}}]
    rows = list(csv.DictReader(io.StringIO(run("cat", spoken, "--where", "id = 1").out)))
    assert [json.loads(rows[0][c]) for c in ("v", "s", "l", "m")] == [FIRST, {"v": FIRST}, [FIRST], {"k": FIRST}]


def test_variants_stay_variants_in_binary_formats(run: Any, spoken: str, tmp_path: Path) -> None:
    run("cat", spoken, "-o", tmp_path / "v.parquet")
    assert pq.read_table(tmp_path / "v.parquet").schema.field("v").type.num_fields == 2


def test_number_of_a_variant_that_no_double_holds_is_text() -> None:
    found = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["[1.5, 12345678901234567.89, 12345678901234567890]"]))
    assert values(found) == [[1.5, "12345678901234567.89", 12345678901234567890]]


def test_times_of_day_keep_their_nanoseconds() -> None:
    times = pa.array([1, None, 3_600_000_000_001], pa.time64("ns"))
    expected = ["00:00:00.000000001", None, "01:00:00.000000001"]
    assert values(times) == expected
    assert values(pa.chunked_array([times, times])) == expected * 2
    assert values(pa.StructArray.from_arrays([times], ["t"])) == [{"t": t} for t in expected]
    assert values(pa.FixedSizeListArray.from_arrays(times, 3)) == [expected]
    assert values(pa.LargeListArray.from_arrays([0, 1, 3], times)) == [expected[:1], expected[1:]]


@pytest.mark.parametrize("kind", [pa.list_(pa.date32(), 1), pa.large_list(pa.date32())])
def test_dates_in_lists_beyond_those_of_python_are_numbers(kind: pa.DataType) -> None:
    dates = pa.array([[10**8], [0]], pa.list_(pa.int32())).cast(pa.list_(pa.date32())).cast(kind)
    assert values(dates)[0] == [10**8]


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_sql_queries_tables_by_their_names(run: Any, table: TableBuilder, tmp_path: Path, engine: str) -> None:
    write_deltalake(tmp_path / "kinds-2", pa.table({"kind": ["a", "b"], "name": ["first", "second"]}))
    query = (
        "SELECT k.name AS n, count(*) AS c FROM sales s JOIN kinds_2 k ON s.kind = k.kind GROUP BY k.name ORDER BY 1"
    )
    result = run("sql", query, table.uri, tmp_path / "kinds-2", "--engine", engine, "--json")
    assert result.json == [{"n": "first", "c": 1}, {"n": "second", "c": 2}]
    assert (
        run("sql", "SELECT id FROM t WHERE id = 1", f"t={table.uri}", "--engine", engine, "-o", "-").out == '"id"\n1\n'
    )
    assert "first 2 rows" in run("sql", "SELECT id FROM sales", table.uri, "-n", 2, "--engine", engine).err


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
@pytest.mark.parametrize(
    ("query", "code"), [("selec", 2), ("SELECT * FROM salse", 2), ("SELECT CAST(kind AS INT) FROM sales", 1)]
)
def test_fault_of_a_query_is_one_line(run: Any, table: TableBuilder, engine: str, query: str, code: int) -> None:
    result = run("sql", query, table.uri, "--engine", engine)
    assert result.code == code or (engine, code) == ("duckdb", 1)  # DuckDB may run a query while it is prepared
    assert "internal error" not in result.err
    assert result.err.count("\n") == 1


def test_tables_of_a_query_have_names_of_their_own(run: Any, table: TableBuilder) -> None:
    result = run("sql", "SELECT 1", f"sales={table.uri}", table.uri)
    assert result.code == 2
    assert "Two tables are named 'sales'" in result.err


@given(
    names=st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True),
    rows=st.lists(st.lists(st.none() | st.text(max_size=9) | st.integers(), min_size=4, max_size=4), max_size=4),
    numeric=st.sets(st.integers(0, 3)),
)
@settings(max_examples=examples(50))
def test_table_in_a_pipe_is_printed_as_rich_prints_it(
    names: list[str], rows: list[list[Any]], numeric: set[int]
) -> None:
    printed = []
    for plain in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(output, "_is_plain", lambda plain=plain: plain)
            patch.setattr(sys, "stdout", io.StringIO())
            chosen = [name for i, name in enumerate(names) if i in numeric]
            print_table(names, [row[: len(names)] for row in rows], chosen, null="NULL")
            printed.append(sys.stdout.getvalue())  # type: ignore[attr-defined]  # it is a StringIO
    assert printed[0] == printed[1]
