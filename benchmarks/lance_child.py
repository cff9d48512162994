"""One measurement in a fresh process: ``python -m benchmarks.lance_child SIDE WORK TABLE SMALL``.

Prints ``{cpu, peak_mb, answer}`` as JSON. The processor time is that of all threads.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time

START = time.process_time()

from collections.abc import Iterable  # noqa: E402
from typing import Any  # noqa: E402

TAKEN, FEW, VECTORS = 10_000, 100, 1_000


class _Ours:
    """Reads with this project."""

    def __init__(self) -> None:
        from delta_core import open_table

        self.open = open_table

    def batches(self, place: str, columns: list[str] | None = None, where: str | None = None) -> Iterable[Any]:
        return self.open(place).scan(columns, where).batches()

    def table(self, place: str) -> Any:
        return self.open(place).to_pyarrow_table()

    def take(self, place: str, rows: list[int]) -> Any:
        return self.open(place).take(rows)

    def head(self, place: str) -> Any:
        return self.open(place).head(1)

    def count(self, place: str) -> int:
        found: int = self.open(place).count()
        return found

    def version(self, place: str) -> int:
        found: int = self.open(place).version
        return found

    def compact(self, place: str) -> None:
        self.open(place).compact()


class _Peer:
    """Reads with pylance."""

    def __init__(self) -> None:
        import lance

        self.open = lance.dataset

    def batches(self, place: str, columns: list[str] | None = None, where: str | None = None) -> Iterable[Any]:
        return self.open(place).to_batches(columns=columns, filter=where)

    def table(self, place: str) -> Any:
        return self.open(place).to_table()

    def take(self, place: str, rows: list[int]) -> Any:
        return self.open(place).take(rows)

    def head(self, place: str) -> Any:
        return self.open(place).head(1)

    def count(self, place: str) -> int:
        return int(self.open(place).count_rows())

    def version(self, place: str) -> int:
        return int(self.open(place).version)

    def compact(self, place: str) -> None:
        self.open(place).optimize.compact_files()


def _run(side: Any, work: str, place: str, seen: dict[str, Any]) -> Any:
    """Do the work; what is summed afterwards is kept in ``seen``."""
    if work in ("stream", "ints", "texts", "some", "equals", "one_of_many"):
        num_rows, total = 0, 0
        columns = {"ints": ["i"], "texts": ["s"], "one_of_many": ["c501"]}.get(work)
        for batch in side.batches(place, columns, seen.get("where")):
            num_rows += batch.num_rows
            total += batch.nbytes if work == "some" else 0
        return num_rows
    if work == "open":
        return side.version(place)
    if work == "compact":
        side.compact(seen["copy"])
        return side.count(seen["copy"])
    if work == "fresh":
        seen["table"] = side.head(place)
    elif work == "table":
        seen["table"] = side.table(place)
    else:
        seen["table"] = side.take(place, seen["rows"])
    return seen["table"].num_rows


def _seen(side: Any, work: str, place: str) -> dict[str, Any]:
    """Return the rows and the condition of a case."""
    if work in ("take", "take_few", "take_vectors"):
        import numpy as np

        count = {"take": TAKEN, "take_few": FEW, "take_vectors": VECTORS}[work]
        total = side.count(place)
        return {"rows": np.random.default_rng(5).integers(0, total, min(count, total)).tolist()}
    if work == "some":
        total = side.count(place)
        first = total // 3
        return {"where": f"i >= {first} and i < {first + max(total // 10_000, 1)}"}
    if work == "compact":
        # the copy goes with the process
        folder = tempfile.TemporaryDirectory()
        return {"folder": folder, "copy": shutil.copytree(place, f"{folder.name}/copy")}
    return {"where": "s = '0123456'"} if work == "equals" else {}


def _answer(side: Any, work: str, place: str, found: Any, seen: dict[str, Any]) -> list[Any]:
    """Return what both sides must agree on: the rows, and sums over their values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = seen.get("table")
    if table is None and work in ("some", "equals"):
        batches = list(side.batches(place, None, seen["where"]))
        table = pa.Table.from_batches(batches) if batches else None
    if table is None:
        return [found]
    sums = [pc.sum(c).as_py() for n, c in zip(table.column_names, table.columns, strict=True) if n in ("i", "c1")]
    texts = [sorted(table["s"].to_pylist())[:10]] if "s" in table.column_names else []
    return [found, *sums, *texts]


def main() -> None:
    """Run one case's work and print its figures as JSON."""
    name, work, place, small = sys.argv[1:]
    if work == "fresh":
        side: Any = _Ours() if name == "ours" else _Peer()
        seen: dict[str, Any] = {}
        start = START
    else:
        side = _Ours() if name == "ours" else _Peer()
        _run(side, work, small, _seen(side, work, small))
        seen = _seen(side, work, place)
        start = time.process_time()
    found = _run(side, work, place, seen)
    cpu = time.process_time() - start
    import json

    from benchmarks.child import peak_mb

    figures = {"cpu": cpu, "peak_mb": peak_mb()}
    print(json.dumps(figures | {"answer": _answer(side, work, place, found, seen)}))


if __name__ == "__main__":
    main()
