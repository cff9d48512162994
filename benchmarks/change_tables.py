"""Tables whose rows the cases change, written by deltalake, as its users have them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.sizes import Sizes

__all__ = ["CHANGE_GENERATORS", "FEED_COMMITS", "SOURCES", "num_rows", "scale_of"]

FEED_COMMITS = 100
WIDE_COLUMNS = 100
#: By table: how many files it has, and how many ids each of them has at scale 1.
KEYS = {"narrow-rows": (10, 1_000_000), "hundred-million": (100, 1_000_000), "wide-rows": (20, 100_000)}
NUM_NAMES = 1_000


def table_rows(ids: np.ndarray, seed: int) -> pa.Table:
    """Return rows of an id, a double and a short string."""
    random = np.random.default_rng(seed)
    numbers, texts = random.integers(0, NUM_NAMES, len(ids), np.int32), [f"name {i}" for i in range(NUM_NAMES)]
    names = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(texts))
    return pa.table({"id": ids, "amount": random.random(len(ids)), "name": names.cast(pa.string())})


def wide_rows(ids: np.ndarray, seed: int) -> pa.Table:
    """Return rows of an id and 100 doubles."""
    random = np.random.default_rng(seed)
    return pa.table({"id": ids} | {f"c{i}": random.random(len(ids)) for i in range(WIDE_COLUMNS)})


def scale_of(table: Path) -> float:
    """Return the scale of a table or of its copy, from its name."""
    return float(table.name.partition("-copy-")[0].rpartition("-")[2])


def num_rows(table: Path) -> int:
    """Return the number of rows of a table or of its copy, from its name."""
    files, most = KEYS[table.name.partition("-copy-")[0].rpartition("-")[0]]
    return files * max(100, int(most * scale_of(table)))


def merged(table: Path) -> pa.Table:
    """Return a hundredth of the table's rows, and a tenth of that number that are new."""
    last = num_rows(table)
    random = np.random.default_rng(99)
    ids = np.concatenate([random.choice(last, last // 100, replace=False), np.arange(last, last + last // 1_000)])
    return table_rows(random.permutation(ids), 99)


def upserted(table: Path) -> pa.Table:
    """Return a hundred new rows, and a hundred that are in the table, some of them in each file."""
    last = num_rows(table)
    ids = np.concatenate([np.arange(0, last, last // 100)[:100] + 3, np.arange(last, last + 100)])
    return wide_rows(ids, 99)


def _append(table: Path, name: str, sizes: Sizes, rows: Callable[[np.ndarray, int], pa.Table]) -> None:
    from deltalake import write_deltalake

    files, most = KEYS[name]
    count = sizes.of(most, 100)
    for i in range(files):
        write_deltalake(str(table), rows(np.arange(i * count, (i + 1) * count), i), mode="append")


def make_narrow_rows(table: Path, sizes: Sizes) -> None:
    """10 files of 1,000,000 rows."""
    _append(table, "narrow-rows", sizes, table_rows)


def make_hundred_million(table: Path, sizes: Sizes) -> None:
    """100 files of 1,000,000 rows."""
    _append(table, "hundred-million", sizes, table_rows)


def make_wide_rows(table: Path, sizes: Sizes) -> None:
    """20 files of 100,000 rows of an id and 100 doubles."""
    _append(table, "wide-rows", sizes, wide_rows)


def make_change_feed(table: Path, sizes: Sizes) -> None:
    """100 commits that append, update, delete and merge rows in turn, recorded in change files where they need them."""
    from deltalake import DeltaTable, write_deltalake

    count = sizes.of(20_000, 1_000)
    configuration = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(table), table_rows(np.arange(count), 0), configuration=configuration)
    opened = DeltaTable(str(table))
    for i in range(FEED_COMMITS):
        new = np.arange(count + 200 * i, count + 200 * i + 100)
        if i % 4 == 0:
            write_deltalake(opened, table_rows(new, i), mode="append")
        elif i % 4 == 1:
            opened.update({"amount": "amount + 1"}, predicate=f"id % 50 = {i % 50}")
        elif i % 4 == 2:
            opened.delete(f"id % 200 = {i}")
        else:
            matching = np.arange(0, count, count // 100) + i % 7
            merge = opened.merge(
                table_rows(np.concatenate([matching, new]), i), "t.id = s.id", source_alias="s", target_alias="t"
            )
            merge.when_matched_update_all().when_not_matched_insert_all().execute()


CHANGE_GENERATORS: Mapping[str, Callable[[Path, Sizes], None]] = {
    "narrow-rows": make_narrow_rows,
    "hundred-million": make_hundred_million,
    "wide-rows": make_wide_rows,
    "change-feed": make_change_feed,
}
#: The rows that are merged into a table.
SOURCES: Mapping[str, Callable[[Path], pa.Table]] = {"merged": merged, "upserted": upserted}


if __name__ == "__main__":
    rows = SOURCES[sys.argv[1]](Path(sys.argv[2]))
    with pa.OSFile(sys.argv[3], "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
