"""Any life of a table, in any layout of its log, reads the same: fresh, at each version, and refreshed step by step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings, strategies as st

from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder

FEATURES = ["deletionVectors", "domainMetadata", "v2Checkpoint"]
CHECKPOINTS: list[tuple[Any, dict[str, Any]]] = [
    ("v1", {}),
    ("v1-multipart", {"parts": 3}),
    ("v2-json", {"sidecars": 1}),
    ("v2-parquet", {}),
    ("v2-parquet", {"sidecars": 2, "embed": True}),
    ("v2-classic", {"sidecars": 1}),
    ("v1", {"row_group_size": 3, "statistics": "struct"}),
]
number = st.integers(0, 1000)


def domain(name: str, removed: bool) -> dict[str, Any]:
    return {"domainMetadata": {"domain": name, "configuration": name, "removed": removed}}


def pick(table: TableBuilder, n: int) -> list[str]:
    paths = table.paths()
    return [paths[n % len(paths)]] if paths else []


def remove(table: TableBuilder, n: int) -> None:
    table.commit(*(table.remove_actions(*pick(table, n)) if pick(table, n) else ()))


def rewrite(table: TableBuilder, n: int) -> None:
    chosen = pick(table, n)
    removed = table.remove_actions(*chosen) if chosen else []
    table.commit(*removed, *table.add_actions([{"id": n, "p": n % 3}, {"id": n + 1, "p": n % 3}]))


def bring_back(table: TableBuilder, n: int) -> None:
    """Undo a commit, as RESTORE does: what it removed is added, what it added is removed."""
    old, now = table.state_at(n % (table.version + 1)).files, table.state.files
    gone = [path for path, vector in now if (path, vector) not in old]
    removed = table.remove_actions(*gone) if gone else []
    table.commit(*removed, *({"add": add} for key, add in old.items() if key not in now))


STEPS: dict[str, Callable[[TableBuilder, int], Any]] = {
    "append": lambda t, n: t.append([{"id": n + i, "p": (n + i) % 3 or None} for i in range(n % 7 + 1)]),
    "remove": remove,
    "rewrite": rewrite,
    "delete rows": lambda t, n: t.delete_rows(lambda row: row["id"] % 5 == n % 5, storage="upi"[n % 3]),
    "bring back": bring_back,
    "txn": lambda t, n: t.commit({"txn": {"appId": f"a{n % 2}", "version": n}}),
    "domain": lambda t, n: t.commit(domain(f"d{n % 2}", n % 3 == 0)),
    "property": lambda t, n: t.alter(properties={"k": str(n)}),
    "column": lambda t, n: t.alter({"id": "long", "p": "integer", f"c{n % 2}": "string"}),
    "nothing": lambda t, n: t.commit(),
}
SIDE_STEPS: dict[str, Callable[[TableBuilder, int], Any]] = {
    "checkpoint": lambda t, n: t.checkpoint(CHECKPOINTS[n % 7][0], **CHECKPOINTS[n % 7][1]),
    "old checkpoint": lambda t, n: t.checkpoint("v1", version=n % (t.version + 1), hint=n % 2 == 0),
    "compact": lambda t, n: t.compact(n % t.version, t.version) if t.version > 1 else t,
    "checksum": lambda t, n: t.checksum(),
    "torn hint": lambda t, n: t.last_checkpoint('{"version":'),
}
step = st.tuples(st.sampled_from(sorted(STEPS) * 3 + sorted(SIDE_STEPS)), number)


def assert_is_version(snapshot: Snapshot, table: TableBuilder, version: int) -> None:
    state = table.state_at(version)
    assert snapshot.version == version
    assert_same_rows(snapshot.scan().to_table(), table.expected(version))
    found = snapshot.files.columns(["path", "dvId"]).to_pydict()
    assert sorted(zip(found["path"], map(str, found["dvId"]), strict=True)) == sorted(
        (p, str(v)) for p, v in state.files
    )
    assert {a: t.version for a, t in snapshot.transactions().items()} == {
        a: t["version"] for a, t in state.txns.items()
    }
    assert snapshot.domains() == {d: v["configuration"] for d, v in state.domains.items() if not v["removed"]}
    assert dict(snapshot.metadata.configuration) == state.metadata["configuration"]


@settings(max_examples=25)
@given(steps=st.lists(step, min_size=1, max_size=14), hold=st.integers(0, 6), loads=st.booleans())
def test_every_life_reads_the_same_fresh_and_refreshed(steps: list[tuple[str, int]], hold: int, loads: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        table = TableBuilder(place).create({"id": "long", "p": "integer"}, partition_by=["p"], features=FEATURES)
        held: Snapshot | None = None
        for at, (name, n) in enumerate(steps):
            {**STEPS, **SIDE_STEPS}[name](table, n)
            if held is not None:
                held = held.update()
                if loads:
                    assert_is_version(held, table, table.version)
            elif at >= hold:
                held = open_snapshot(place)
        if held is not None:
            assert_is_version(held, table, table.version)
        for version in table.commits:
            assert_is_version(open_snapshot(place, version), table, version)
