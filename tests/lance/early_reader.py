"""Reads datasets with the pylance of the interpreter that runs this file, and compares the rows with those expected.

``python early_reader.py JOB``: a JSON list of objects with ``name``, ``uri`` and ``expected``, an Arrow file with the
rows in order of the column ``id``. Prints a JSON object: the version of pylance, and the failures by name and action.
It imports nothing of this project.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance  # type: ignore[import-not-found,unused-ignore]
import pyarrow as pa

Found = Callable[[], Any]


def _rows(table: Any) -> str:
    return repr(table.sort_by("id").to_pylist())


def _actions(uri: str, expected: Any) -> dict[str, tuple[Found, str]]:
    """Return what is read, and what it has to be."""
    ids = expected.column("id").to_pylist()
    columns = expected.column_names
    last = columns[-1]

    def some(keep: Callable[[Any], bool]) -> str:
        return repr([r for r in expected.to_pylist() if keep(r)])

    def compacted() -> str:
        copy = f"{uri}-copy"
        shutil.copytree(uri, copy)
        try:
            lance.dataset(copy).optimize.compact_files(materialize_deletions_threshold=0.0)
            found = lance.dataset(copy)
            found.validate()  # type: ignore[no-untyped-call,unused-ignore]
            return _rows(found.to_table(columns=columns))
        finally:
            shutil.rmtree(copy)

    def taken() -> str:
        table = lance.dataset(uri).to_table(columns=["id"], with_row_id=True).sort_by("id")
        positions = lance.dataset(uri).take(range(min(7, len(ids))), columns=columns).num_rows
        chosen = table.column("_rowid").to_pylist()[::7]
        return f"{positions} " + _rows(lance.dataset(uri)._take_rows(chosen, columns=columns))

    middle = ids[len(ids) // 2]
    return {
        "to_table": (lambda: _rows(lance.dataset(uri).to_table(columns=columns)), some(lambda r: True)),
        "filter": (
            lambda: _rows(lance.dataset(uri).to_table(columns=columns, filter=f"id >= {middle}")),
            some(lambda r: r["id"] >= middle),
        ),
        "is null": (
            lambda: _rows(lance.dataset(uri).to_table(columns=columns, filter=f"{last} IS NULL")),
            some(lambda r: r[last] is None),
        ),
        "count": (lambda: str(lance.dataset(uri).count_rows()), str(len(ids))),
        "take": (taken, f"{min(7, len(ids))} " + repr(expected.to_pylist()[::7])),
        "compact": (compacted, some(lambda r: True)),
    }


def _main(path: str) -> None:
    failures: dict[str, dict[str, str]] = {}
    for job in json.loads(Path(path).read_text()):
        expected = pa.ipc.open_file(job["expected"]).read_all()
        for action, (run, wanted) in _actions(job["uri"], expected).items():
            try:
                found = run()
            except BaseException as e:  # noqa: BLE001  # panics of pylance are no Exception
                failures.setdefault(job["name"], {})[action] = f"{type(e).__name__}: {e}"[:300]
                continue
            if found != wanted:
                failures.setdefault(job["name"], {})[action] = f"found {found[:200]}, expected {wanted[:200]}"
    print(json.dumps({"version": lance.__version__, "failures": failures}))


if __name__ == "__main__":
    _main(sys.argv[1])
