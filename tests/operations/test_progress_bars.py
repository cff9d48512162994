"""Bars of long operations: where they are drawn, when they are not, and their texts."""

from __future__ import annotations

import inspect
import io
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_type_hints

import msgspec
import pyarrow as pa
import pytest

from delta_core import DeltaTable, open_table, operations, write_deltalake
from delta_core.errors import DataFileError, InvalidArgumentError
from delta_core.operations import OperationProgress
from delta_core.runtime import progress_bars
from delta_plugins.lance import write_lance
from tests.operations.row_tables import made, table_of

SCRIPT = """
import sys, time
import pyarrow as pa
from delta_core import write_deltalake
from delta_core.runtime import progress_bars
progress_bars.DELAY_SECONDS = float(sys.argv[3])

def batches():
    for i in range(int(sys.argv[2])):
        time.sleep(0.1)
        yield pa.record_batch({"id": [2 * i, 2 * i + 1]})

write_deltalake(sys.argv[1], pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches()))
"""


def run_on_terminal(folder: Path, batches: int, delay: float = 0.05, **environment: str) -> tuple[bytes, bytes]:
    """Run the script with stderr on a terminal; return what it wrote to stdout and to the terminal."""
    master, slave = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(master, 65536):
                shown.append(part)
        except OSError:
            return  # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    try:
        command = [sys.executable, "-c", SCRIPT, str(folder), str(batches), str(delay)]
        variables = {**os.environ, "TERM": "xterm", **environment}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, env=variables, check=True, timeout=120)
    finally:
        os.close(slave)
        reader.join()
        os.close(master)
    return done.stdout, b"".join(shown)


def test_a_terminal_shows_a_bar_for_long_work_and_removes_it(tmp_path: Path) -> None:
    out, shown = run_on_terminal(tmp_path / "t", 8)
    assert out == b""
    assert b"write: " in shown
    assert b" rows" in shown
    # the last thing that is written removes the line
    assert shown.rstrip().endswith((b"\x1b[2K", b"\x1b[?25h"))
    assert DeltaTable(tmp_path / "t").count() == 16


def test_a_terminal_shows_nothing_of_short_work(tmp_path: Path) -> None:
    assert run_on_terminal(tmp_path / "t", 2, delay=60) == (b"", b"")


def test_a_terminal_shows_nothing_if_bars_are_off(tmp_path: Path) -> None:
    assert run_on_terminal(tmp_path / "t", 8, DELTA_CORE_PROGRESS="off") == (b"", b"")


def test_another_value_of_the_setting_is_rejected_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTA_CORE_PROGRESS", "no")
    with pytest.raises(InvalidArgumentError, match=r"DELTA_CORE_PROGRESS is 'no', expected on or off"):
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    assert not (tmp_path / "t" / "_delta_log").exists()


class Notebook:
    """Takes the place of IPython in a kernel; keeps what was drawn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.drawn: list[dict[str, str]] = []
        package, display = ModuleType("IPython"), ModuleType("IPython.display")
        vars(package)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
        vars(display)["display"] = self.display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        monkeypatch.setattr(progress_bars, "DELAY_SECONDS", 0.0)
        monkeypatch.setattr(progress_bars, "_DRAWN_EVERY_SECONDS", 0.0)

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.drawn.append(bundle)
        return SimpleNamespace(update=self.update)

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.drawn.append(bundle)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    return Notebook(monkeypatch)


def until_drawn(notebook: Notebook) -> None:
    for _ in range(1000):
        if notebook.drawn:
            return
        threading.Event().wait(0.01)
    raise AssertionError("no bar was drawn in ten seconds")


def test_a_notebook_shows_a_bar_that_goes_away(notebook: Notebook) -> None:
    with operations.progress_bar() as advance:
        assert advance is not None
        until_drawn(notebook)
        advance(OperationProgress(1, 4, 10, 512, 2048, "find"))
        advance("<footers>", 3, 9)
    assert [d.get("text/plain") for d in notebook.drawn[-3:]] == [
        "find: 1 of 4 files, 10 rows, 512 B",
        "<footers>: 3 of 9",
        "",
    ]
    assert 'value="512" max="2048"' in notebook.drawn[-3]["text/html"]
    assert "&lt;footers>" in notebook.drawn[-2]["text/html"]
    assert notebook.drawn[-1]["text/html"] == ""


def test_work_within_watched_work_has_no_bar_of_its_own(notebook: Notebook) -> None:
    with operations.progress_bar(), operations.progress_bar() as inner:
        assert inner is None
    with operations.progress_bar(lambda now: None), operations.progress_bar() as inner:
        assert inner is None
    with operations.progress_bar() as again:
        assert again is not None


def test_a_function_of_the_user_is_called_and_nothing_is_drawn(tmp_path: Path, notebook: Notebook) -> None:
    seen: list[OperationProgress] = []
    table = made(tmp_path, {})
    notebook.drawn.clear()
    table.delete("id % 2 = 0", progress=seen.append)
    assert {p.step for p in seen} == {"find", "write"}
    assert notebook.drawn == []


def test_an_error_of_the_operation_removes_the_bar(tmp_path: Path, notebook: Notebook) -> None:
    table = made(tmp_path, {})

    def fail() -> None:
        with operations.progress_bar():
            until_drawn(notebook)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert notebook.drawn[-1] == {"text/plain": "", "text/html": ""}
    write_deltalake(table, table_of([(7, "c", 0.5)]), mode="append")


class _Recorder:
    """Takes the place of a bar; keeps the texts that it was to show."""

    texts: list[str]

    def __init__(self, display: Any) -> None:
        type(self).texts = []

    def advance(self, *now: Any) -> None:
        self.texts.append(progress_bars._state(*now)[0])

    def close(self) -> None:
        self.texts.append("closed")


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, notebook: Notebook) -> type[_Recorder]:
    monkeypatch.setattr(progress_bars, "_Bar", _Recorder)
    return _Recorder


@pytest.mark.parametrize("is_lance", [False, True])
def test_reads_show_how_many_rows_they_have(tmp_path: Path, recorder: type[_Recorder], is_lance: bool) -> None:
    rows = pa.table({"id": range(10)})
    for mode in ("append", "append"):
        if is_lance:
            write_lance(tmp_path / "t", rows, mode="append" if (tmp_path / "t").exists() else "create")
        else:
            write_deltalake(tmp_path / "t", rows, mode=mode)
        assert recorder.texts == [f"write: 10 rows, {rows.nbytes} B", "closed"]
    table = open_table(tmp_path / "t")
    for read in (table.to_pyarrow_table, table.scan().to_table, table.to_pandas):
        recorder.texts.clear()
        assert len(read()) == 20
        assert recorder.texts[-2:] == ["read: 20 rows", "closed"]


def test_a_read_that_fails_removes_its_bar(tmp_path: Path, recorder: type[_Recorder]) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": range(10)}))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    with pytest.raises(DataFileError):
        DeltaTable(tmp_path / "t").to_pyarrow_table()
    assert recorder.texts == ["closed"]


def test_reads_load_no_bars_without_a_terminal(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    code = (
        "import sys; from delta_core import DeltaTable; DeltaTable(sys.argv[1]).to_pyarrow_table(); "
        "assert 'delta_core.runtime.progress_bars' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "t")], check=True, stderr=subprocess.PIPE)


LANCE_WORK: dict[str, Callable[[Any], Any]] = {
    "add_columns": lambda d: d.add_columns({"twice": "id * 2"}),
    "cast_column": lambda d: d.cast_column("id", pa.int32()),
    "create_index": lambda d: d.create_index("id"),
    "cleanup": lambda d: d.cleanup(),
    "repair": lambda d: d.repair(deep=True),
    "verify": lambda d: d.verify(),
    "compact": lambda d: d.compact(),
    "delete": lambda d: d.delete("id = 1"),
}


@pytest.mark.parametrize("name", LANCE_WORK)
def test_lasting_work_on_datasets_shows_a_bar(tmp_path: Path, recorder: type[_Recorder], name: str) -> None:
    dataset = write_lance(tmp_path / "t", pa.table({"id": range(10)}))
    recorder.texts = ["none"]
    LANCE_WORK[name](dataset)
    assert recorder.texts[-1] == "closed"


def test_every_operation_with_options_for_progress_shows_a_bar() -> None:
    found = {}
    for name in dir(operations):
        function = getattr(operations, name)
        if not inspect.isfunction(function) or name.startswith(("plan_", "begin_", "count_")):
            continue
        *_, last = [*get_type_hints(inspect.unwrap(function), _names(function)).values()][:-1] or [None]
        if inspect.isclass(last) and issubclass(last, msgspec.Struct) and "progress" in last.__struct_fields__:
            found[name] = hasattr(function, "__wrapped__")
    assert len(found) > 8
    assert [n for n, shows in found.items() if not shows] == []


def _names(function: Any) -> dict[str, Any]:
    """Return the names that a function's annotations may use, those imported for checkers alone too."""
    return {**{n: getattr(operations, n, Any) for n in dir(operations)}, **inspect.unwrap(function).__globals__}


class _Gone(io.StringIO):
    """A terminal that is gone once it was written to."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.tell():
            raise self._error
        return super().write(text)


@pytest.mark.parametrize("error", [BrokenPipeError(), ValueError("I/O operation on closed file"), OSError(5, "EIO")])
def test_work_goes_on_without_its_terminal(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(progress_bars, "DELAY_SECONDS", 0.01)
    stream = _Gone(error)
    monkeypatch.setattr(sys, "stderr", stream)
    before = set(threading.enumerate())
    with operations.progress_bar() as advance:
        assert advance is not None
        end = time.monotonic() + 30
        while not stream.tell() and time.monotonic() < end:
            time.sleep(0.01)
        advance("read", 1, 2)
        time.sleep(0.2)  # several drawings
    assert stream.getvalue(), "the bar was drawn"
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_work_goes_on_without_a_bar_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bars, "DELAY_SECONDS", 0.01)
    tried = threading.Event()

    def failing() -> Any:
        tried.set()
        raise RuntimeError("no display")

    failures: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    monkeypatch.setattr(progress_bars, "_find_display", lambda: failing)
    with operations.progress_bar() as advance:
        assert tried.wait(30)
        assert advance is not None
        advance("read", 1, 2)
    assert not failures


def test_streams_that_are_closed_or_only_write_are_no_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (closed, SimpleNamespace(write=lambda text: None, flush=lambda: None), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with operations.progress_bar() as advance:
            assert advance is None
