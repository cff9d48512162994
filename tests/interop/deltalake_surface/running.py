"""Running scripts: each on a copy of its table, in processes that may die."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import multiprocessing
import os
import select
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.interop.deltalake_surface.answers import commits_of, describe, describe_error, describe_table
from tests.interop.deltalake_surface.cells import Cell
from tests.interop.deltalake_surface.tables import KINDS, build_all

__all__ = ["answers", "use_this_library"]

_SECONDS = 60.0


def use_this_library() -> None:
    """Let this process, which has not imported the real package, find this library as ``deltalake``."""
    importlib.import_module("delta_core.as_deltalake")


def answers(cells: Sequence[Cell], *, batch: int, workers: int) -> dict[str, Any]:
    """Run scripts, ``batch`` of them in each process, and return their answers by name."""
    _import_libraries()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="surface-") as folder:
        root = Path(folder).resolve()
        (root / "kinds").mkdir()
        _in_process(lambda: build_all(root / "kinds"))
        parts = [cells[at : at + batch] for at in range(0, len(cells), batch)]
        with ThreadPoolExecutor(workers) as pool:
            for done in pool.map(lambda part: _run_part(part, root), parts):
                found.update(done)
    return found


def _in_process(function: Any) -> None:
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    child.join()
    assert child.exitcode == 0, "the tables can't be built"


def _import_libraries() -> None:
    for name in (
        "deltalake",
        "deltalake.exceptions",
        "pandas",
        "polars",
        "arro3.core",
        "pyarrow.dataset",
        "delta_core.testing.table_builder",
    ):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)


def _run_part(cells: Sequence[Cell], root: Path) -> dict[str, Any]:
    """Run scripts in one process; those after the one that it dies of run in another."""
    found: dict[str, Any] = {}
    left = list(cells)
    while left:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                with os.fdopen(writing, "w", encoding="utf-8") as out:
                    for cell in left:
                        out.write(json.dumps([cell.name, _answer(cell, root)]) + "\n")
                        out.flush()
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(writing)
        found.update(_received(reading, child))
        rest = [cell for cell in left if cell.name not in found]
        if rest:
            found[rest[0].name] = {"raises": ["death of the process"], "message": ""}
        left = rest[1:]
    return found


def _received(reading: int, child: int) -> Iterator[tuple[str, Any]]:
    buffer = b""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], _SECONDS)
            if not ready:
                os.kill(child, 9)
                break
            data = pipe.read(1 << 16)
            if not data:
                break
            buffer += data
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                name, answer = json.loads(line)
                yield name, answer
    os.waitpid(child, 0)


def _answer(cell: Cell, root: Path) -> Any:
    place = Path(tempfile.mkdtemp(dir=root))
    try:
        table = place / "table"
        if cell.kind != "missing":
            shutil.copytree(root / "kinds" / cell.kind, table)
        os.chdir(place)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            answer, before = _run(cell, table, place)
            after = describe_table(table, place, before)
        return {**answer, "table": after} if after else answer
    finally:
        os.chdir(root)
        shutil.rmtree(place, ignore_errors=True)


def _run(cell: Cell, table: Path, place: Path) -> tuple[dict[str, Any], str]:
    """Return the answer of the last line, and the table's last commit before it."""
    before = _last_commit(table)
    names = _names(cell, table)
    *first, last = cell.script.split("\n")
    errors = importlib.import_module("deltalake.exceptions")
    try:
        for line in first:
            exec(line, names)
            before = _last_commit(table)
        return {"value": describe(eval(last, names), place)}, before
    except BaseException as error:  # noqa: BLE001
        return describe_error(error, errors, place), before


def _last_commit(table: Path) -> str:
    commits = commits_of(table)
    return commits[-1].name if commits else ""


class _Names(dict[str, Any]):
    """Names of scripts: `table` is opened at its first use."""

    def __init__(self, uri: str, start: dict[str, Any]) -> None:
        super().__init__(start)
        self["uri"] = uri

    def __missing__(self, name: str) -> Any:
        if name == "table":
            self["table"] = self["DeltaTable"](self["uri"])
            return self["table"]
        raise KeyError(name)


def _names(cell: Cell, table: Path) -> dict[str, Any]:
    import datetime as dt
    import decimal

    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, Any] = {"pa": pa, "pc": pc, "Path": Path, "dt": dt, "Decimal": decimal.Decimal, "json": json}
    for module in ("", "schema", "exceptions", "query", "table", "transaction", "writer", "writer.properties", "fs"):
        try:
            loaded = importlib.import_module(f"deltalake.{module}" if module else "deltalake")
        except ModuleNotFoundError:
            continue
        found.update({n: v for n, v in vars(loaded).items() if not n.startswith("_") and not inspect.ismodule(v)})
    found.update({n: sys.modules.get(m) for n, m in (("pd", "pandas"), ("pl", "polars"), ("arro3", "arro3.core"))})
    kind = KINDS.get(cell.kind, KINDS["plain"])
    found["rows"] = kind.more
    return _Names(str(table), found)
