"""A process that changes its own rows of a dataset until it is killed, and notes each change before and after it.

``python -m tests.lance.racing_writer ours|pylance URI LOG NUMBER SEED``
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import pyarrow as pa

from delta_core.errors import CommitStateUnknownError, DeltaError
from delta_plugins.lance import open_dataset, write_lance


def _table(ids: list[int], value: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([value] * len(ids), pa.int64())})


def _change(ours: bool, uri: str, kind: str, chosen: list[int], source: pa.Table, value: int) -> None:
    condition = f"id in ({', '.join(map(str, chosen))})"
    if ours:
        dataset: Any = open_dataset(uri)
        merge = dataset.merge(source, "target.id = source.id")
        {
            "append": lambda: write_lance(uri, source, "append"),
            "update": lambda: dataset.update({"v": str(value)}, predicate=condition),
            "delete": lambda: dataset.delete(condition),
            "merge": lambda: merge.when_matched_update_all().when_not_matched_insert_all().execute(),
            "compact": lambda: dataset.compact(target_rows=100),
        }[kind]()
        return
    import lance

    theirs: Any = lance.dataset(uri)
    {
        "append": lambda: theirs.insert(source),
        "update": lambda: theirs.update({"v": str(value)}, where=condition),
        "delete": lambda: theirs.delete(condition),
        "merge": lambda: (
            theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
        ),
        "compact": lambda: theirs.optimize.compact_files(target_rows_per_fragment=100),
    }[kind]()


def _main(by: str, uri: str, log: str, number: int, seed: int) -> None:
    choice = random.Random(seed)
    mine: set[int] = set()
    following = number * 1_000_000
    with open(log, "a", encoding="utf-8") as file:

        def note(state: str, effect: dict[int, int | None]) -> None:
            file.write(json.dumps([state, list(effect.items())]) + "\n")
            file.flush()

        print("ready", flush=True)
        while True:
            kind = choice.choice(("append", "append", "update", "delete", "merge", "compact"))
            chosen = choice.sample(sorted(mine), min(len(mine), choice.choice((1, 5, 20))))
            new = list(range(following, following + choice.choice((1, 7, 40))))
            value = choice.randrange(1 << 40)
            if kind in ("update", "delete") and not chosen:
                continue
            ids = {"append": new, "merge": chosen + new, "compact": []}.get(kind, chosen)
            following += len(new) if kind in ("append", "merge") else 0
            effect = {i: None if kind == "delete" else value for i in ids}
            note("begun", effect)
            try:
                _change(by == "ours", uri, kind, chosen, _table(ids, value), value)
            except Exception as e:  # pylance has no class for its conflicts
                is_certain = isinstance(e, DeltaError) and not isinstance(e, CommitStateUnknownError)
                note("failed" if is_certain else "unknown", effect)
                if by == "ours" and not isinstance(e, DeltaError):
                    raise
                continue
            note("done", effect)
            mine = {*mine, *ids} if kind != "delete" else mine - {*ids}


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
