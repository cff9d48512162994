"""One measurement in a fresh process: ``python -m benchmarks.lance_child SIDE WORK TABLE SMALL``.

Prints ``{cpu, peak_mb, num_bytes, answer}`` as JSON. The processor time is that of all threads, ``num_bytes`` is the
size of a new table's files.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

START = time.process_time()

from collections.abc import Iterable  # noqa: E402
from typing import Any  # noqa: E402

TAKEN, FEW, VECTORS = 10_000, 100, 1_000
#: Rows of a merge that are in the dataset, and new ones.
MERGED, INSERTED, APPENDS = 100_000, 10_000, 200
#: What is changed in a copy of the dataset, and what is written to a new place.
CHANGES = ("compact", "delete", "update", "merge", "appends")
NEW = ("append_2.2", "append_2.0", "to_delta", "to_lance")
ONE_PERCENT = "i % 100 = 7"


class _Ours:
    """Reads, writes and changes with this project."""

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

    def append(self, place: str, rows: Any, version: str) -> None:
        from delta_plugins.lance import write_lance

        write_lance(place, rows, file_version=version)

    def appends(self, place: str, rows: Any) -> None:
        from delta_plugins.lance import write_lance

        for _ in range(APPENDS):
            write_lance(place, rows, "append")

    def delete(self, place: str) -> None:
        self.open(place).delete(ONE_PERCENT)

    def update(self, place: str) -> None:
        self.open(place).update({"d": "d + 1"}, predicate=ONE_PERCENT)

    def merge(self, place: str, rows: Any) -> None:
        merge = self.open(place).merge(rows, "target.i = source.i")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def convert(self, place: str, target: str, to: str) -> None:
        from delta_core import convert

        convert(place, target, to)


class _Peer:
    """Reads, writes and changes with pylance; converts with our reader and our writer."""

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

    def append(self, place: str, rows: Any, version: str) -> None:
        import lance

        lance.write_dataset(rows, place, data_storage_version=version)

    def appends(self, place: str, rows: Any) -> None:
        import lance

        for _ in range(APPENDS):
            lance.write_dataset(rows, place, mode="append")

    def delete(self, place: str) -> None:
        self.open(place).delete(ONE_PERCENT)

    def update(self, place: str) -> None:
        self.open(place).update({"d": "d + 1"}, where=ONE_PERCENT)

    def merge(self, place: str, rows: Any) -> None:
        merge = self.open(place).merge_insert("i")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def convert(self, place: str, target: str, to: str) -> None:
        from delta_core import open_table, write_deltalake
        from delta_plugins.lance import write_lance

        rows = open_table(place).scan().to_reader()
        if to == "delta":
            write_deltalake(target, rows)
        else:
            write_lance(target, rows)


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
    if work in CHANGES or work in NEW:
        return _write(side, work, place, seen)
    if work == "fresh":
        seen["table"] = side.head(place)
    elif work == "table":
        seen["table"] = side.table(place)
    else:
        seen["table"] = side.take(place, seen["rows"])
    return seen["table"].num_rows


def _write(side: Any, work: str, place: str, seen: dict[str, Any]) -> int:
    """Change the copy of a dataset, or write a new table."""
    if work in ("merge", "appends"):
        getattr(side, work)(seen["copy"], seen["source"])
    elif work in CHANGES:
        getattr(side, work)(seen["copy"])
    elif work.startswith("append"):
        side.append(seen["copy"], seen["source"], work.removeprefix("append_"))
    else:
        side.convert(place, seen["copy"], work.removeprefix("to_"))
    return 0


def _source(work: str, place: str, total: int) -> Any:
    """Return the rows that are written."""
    import numpy as np
    import pyarrow as pa

    if work.startswith("append_"):
        return pa.ipc.open_stream(pa.OSFile(f"{place}/rows.arrows"))
    ids = np.arange(3)
    if work == "merge":
        old = np.random.default_rng(6).choice(total, min(MERGED, total // 2), replace=False)
        ids = np.concatenate([old, np.arange(total, total + min(INSERTED, total))])
    return pa.table({"i": ids, "d": ids / 2, "s": [f"{i % 10_000_000:07}" for i in ids.tolist()]})


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
    if work in CHANGES or work in NEW:
        # the copy goes with the process
        folder = tempfile.TemporaryDirectory()
        found = {"folder": folder, "copy": f"{folder.name}/copy"}
        if work in CHANGES:
            shutil.copytree(place, found["copy"])
        total = side.count(place) if work == "merge" else 0
        return found if work.startswith("to_") else {**found, "source": _source(work, place, total)}
    return {"where": "s = '0123456'"} if work == "equals" else {}


def _answer(side: Any, work: str, place: str, found: Any, seen: dict[str, Any]) -> list[Any]:
    """Return what both sides must agree on: the rows, and sums over their values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "copy" in seen:
        from delta_core import open_table

        table = open_table(seen["copy"]).to_pyarrow_table(columns=["i", "d"])
        return [table.num_rows, *(round(pc.sum(c).as_py()) for c in table.columns)]
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
    if work in NEW:
        figures["num_bytes"] = sum(p.stat().st_size for p in Path(seen["copy"]).rglob("*") if p.is_file())
    print(json.dumps(figures | {"answer": _answer(side, work, place, found, seen)}))


if __name__ == "__main__":
    main()
