"""Upkeep of tables: a rerun finishes what was killed at any write; histories leave nothing to find; damage is found."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import DeltaError
from delta_core.kernel.snapshot import open_context
from delta_core.operations import VacuumOptions, VerifyOptions, clean_log, plan_vacuum, run_vacuum, verify_table
from tests.operations import row_operations as steps
from tests.operations.killing import KilledError, Killer, killing
from tests.operations.row_tables import FEED, ROW_IDS, TABLES, VECTORS, Row, rows_of, table_of

#: How many random histories each kind of table gets; more on request.
HISTORIES = int(os.environ.get("DELTA_CORE_HISTORIES", "1"))
ROWS: list[Row] = [(i, "ab"[i % 2], i / 2) for i in range(8)]
DAY = 86_400_000
_RETENTION = {"delta.deletedFileRetentionDuration": "interval 1 hours", "delta.logRetentionDuration": "interval 1 days"}


def rows(folder: Path) -> list[Row]:
    return rows_of(DeltaTable(str(folder)).to_pyarrow_table())


# --- killed --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Upkeep:
    """An operation, the rows after it, and a check that nothing is left to do."""

    run: Callable[[Path], object]
    after: list[Row]
    is_done: Callable[[Path], bool]
    make: Callable[[Path], None]


def _changed(folder: Path) -> None:
    """Make a table whose versions 0 to 4 have vectors, change files and removed files."""
    uri = str(folder)
    write_deltalake(uri, table_of(ROWS), configuration={**VECTORS, **FEED, **ROW_IDS, **_RETENTION})
    table = DeltaTable(uri)
    table.delete("id = 3")
    table.update({"x": "x + 1"}, predicate="id = 1")
    table.create_checkpoint()
    write_deltalake(table, table_of([(50, "c", None)]), mode="append")
    table.optimize.compact()


def _old(folder: Path) -> None:
    _changed(folder)
    for file in (folder / "_delta_log").iterdir():
        age = 30 if file.name[:20].isdecimal() and int(file.name[:20]) < 4 else 1
        os.utime(file, (time.time() - age * 86_400,) * 2)


def _damaged(folder: Path) -> None:
    _changed(folder)
    log = folder / "_delta_log"
    (log / "_last_checkpoint").write_text("{")
    (log / f"{4:020}.crc").write_text('{"numFiles":9}')
    (log / f"{1:020}.{2:020}.compacted.json").write_text('{"commitInfo":{}}\n')


def _parquet(folder: Path) -> None:
    for i, part in enumerate("ab"):
        (folder / f"p={part}").mkdir(parents=True)
        mine = [r for r in ROWS if r[1] == part]
        pq.write_table(table_of(mine).drop_columns(["p"]), folder / f"p={part}" / f"{i}.parquet")


def _opened(change: Callable[[DeltaTable], object]) -> Callable[[Path], object]:
    return lambda folder: change(DeltaTable(str(folder)))


def _vacuum(folder: Path, dry_run: bool = False) -> list[str]:
    table = DeltaTable(str(folder))
    return table.vacuum(retention_hours=0, enforce_retention_duration=False, full=True, dry_run=dry_run)


def _is_vacuumed(folder: Path) -> bool:
    """Whether no file is left to delete; a folder that became empty goes with the next vacuum."""
    return all(name.endswith("/") for name in _vacuum(folder, dry_run=True))


def _convert(folder: Path) -> None:
    from delta_core import Field, PrimitiveType, Schema

    by = Schema([Field("p", PrimitiveType("string"))])
    convert_to_deltalake(str(folder), mode="ignore", partition_by=by, partition_strategy="hive")


def _latest(folder: Path) -> list[Row]:
    """Return the rows that `_changed` leaves."""
    return sorted([(i, p, 1.5 if i == 1 else x) for i, p, x in ROWS if i != 3] + [(50, "c", None)], key=repr)


LATEST = _latest(Path())
UPKEEP = {
    "vacuum": Upkeep(_vacuum, LATEST, _is_vacuumed, _changed),
    "cleanup": Upkeep(
        _opened(lambda t: t.cleanup_metadata()),
        LATEST,
        lambda f: not clean_log(DeltaTable(f).snapshot(), dry_run=True),
        _old,
    ),
    "compact logs": Upkeep(
        _opened(lambda t: t.compact_logs(1, 4)),
        LATEST,
        lambda f: any((f / "_delta_log").glob("*.compacted.json")),
        _changed,
    ),
    "restore": Upkeep(
        _opened(lambda t: t.restore(1)),
        [r for r in ROWS if r[0] != 3],
        lambda f: DeltaTable(f).version() >= 5,
        _changed,
    ),
    "repair": Upkeep(
        _opened(lambda t: t.repair()), LATEST, lambda f: not DeltaTable(f).repair(dry_run=True)["steps"], _damaged
    ),
    "convert": Upkeep(_convert, ROWS, lambda f: DeltaTable(f).version() == 0, _parquet),
}


@pytest.mark.parametrize("name", UPKEEP)
def test_killed_at_every_write_it_is_finished_by_a_rerun(tmp_path: Path, name: str) -> None:
    upkeep = UPKEEP[name]
    original = tmp_path / "original"
    upkeep.make(original)
    before = [] if name == "convert" else rows(original)
    after = sorted(upkeep.after, key=repr)
    at, is_whole = 0, False
    while not is_whole:
        for is_after in (False, True):
            folder = tmp_path / f"{at}-{is_after}"
            shutil.copytree(original, folder)
            killer = Killer(at, is_after)
            try:
                with killing(killer):
                    upkeep.run(folder)
            except KilledError:
                pass
            is_whole = not killer.is_dead
            if DeltaTable.is_deltatable(str(folder)):
                assert rows(folder) in (before, after), (at, is_after)
            upkeep.run(folder)
            assert rows(folder) == after, (at, is_after)
            assert upkeep.is_done(folder), (at, is_after)
            report = DeltaTable(str(folder)).verify(deep="rows")
            assert report.ok, report.to_text()
            shutil.rmtree(folder)
        at += 1
    assert at > 1


# --- histories -----------------------------------------------------------------------------


class History:
    """A table, what its versions are to contain, and which of them can still be read."""

    def __init__(self, folder: Path, kind: str, random: Random) -> None:
        self.folder, self.random, self.kind = folder, random, kind
        write_deltalake(str(folder), table_of(ROWS), configuration={**TABLES[kind], **_RETENTION}, partition_by=["p"])
        self.table = DeltaTable(str(folder))
        self.versions = {0: sorted(ROWS, key=repr)}
        self.first = 0
        self.done: list[str] = []

    def step(self) -> None:
        """Run something, and check the rows."""
        names = ("vacuum", "clean", "compact_log", "restore", "checkpoint", "constraint", "repair")
        if self.random.random() < 0.5:
            step = self.random.choice(steps.STEPS)(self.random)
            self.done.append(step.name)
            step.run(self.table)
            self.note(step.apply(self.versions[max(self.versions)]))
        else:
            name = self.random.choice(names)
            self.done.append(name)
            getattr(self, name)()
        found = rows(self.folder)
        assert found == self.versions[max(self.versions)], self.done

    def note(self, now: list[Row]) -> None:
        self.table = DeltaTable(str(self.folder))
        for version in range(max(self.versions) + 1, self.table.version() + 1):
            self.versions[version] = sorted(now, key=repr)

    def same(self) -> None:
        self.note(self.versions[max(self.versions)])

    def cutoff(self) -> int:
        """Return a time between two commits; versions that were made after it are those to keep."""
        version = self.random.randint(self.first, self.table.version())
        (commit,) = self.table.snapshot().commits(version, version)
        assert commit.timestamp_ms is not None
        self.first = version
        return commit.timestamp_ms

    def vacuum(self) -> None:
        cutoff = self.cutoff()
        options = VacuumOptions(lite=self.random.random() < 0.3, clock=lambda: cutoff + DAY // 24)
        try:
            run_vacuum(self.table.snapshot(), plan_vacuum(self.table.snapshot(), options), options)
        except DeltaError:
            if not options.lite:  # which needs the log since the last vacuum
                raise
        self.same()

    def clean(self) -> None:
        # commits are made within one day: let those below the first version that can be read be older
        log = self.folder / "_delta_log"
        now = int(time.time())
        for file in log.iterdir():
            if file.name[:20].isdecimal() and int(file.name[:20]) < self.first:
                os.utime(file, (now - 9 * 86_400,) * 2)
        clean_log(self.table.snapshot())
        self.table = DeltaTable(str(self.folder))

    def compact_log(self) -> None:
        last = self.table.version()
        there = {int(f.name[:20]) for f in (self.folder / "_delta_log").glob("*.json") if f.name[20:] == ".json"}
        start = self.random.randint(0, last)
        if start < last and all(v in there for v in range(start, last)):
            self.table.compact_logs(start, last)

    def restore(self) -> None:
        version = self.random.randint(self.first, self.table.version())
        self.table.restore(version)
        self.note(self.versions[version])

    def checkpoint(self) -> None:
        self.table.create_checkpoint()

    def constraint(self) -> None:
        if self.table.metadata().configuration.get("delta.constraints.c"):
            self.table.alter.drop_constraint("c")
        else:
            self.table.alter.add_constraint({"c": "id >= 0"})
        self.same()

    def repair(self) -> None:
        assert not self.table.repair()["steps"], self.done

    def check(self) -> None:
        """Check every version that can be read, and that nothing is wrong with the table."""
        for version, expected in self.versions.items():
            if version >= self.first:
                found = rows_of(DeltaTable(str(self.folder), version=version).to_pyarrow_table())
                assert found == expected, (version, self.done)
        report = DeltaTable(str(self.folder)).verify(deep="rows")
        assert report.ok, (self.done, report.to_text())


def _flip(random: Random, root: Path) -> None:
    """Flip a bit where a reader looks: at the ends of a Parquet file, or in a vector."""
    file = random.choice(_live(root))
    data = bytearray(file.read_bytes())
    places = range(len(data)) if file.suffix == ".bin" else [*range(len(data) - 8, len(data))]
    data[random.choice(places)] ^= 1 << random.randrange(8)
    file.write_bytes(data)


def _delete(random: Random, root: Path) -> None:
    random.choice(_live(root)).unlink()


def _cut(random: Random, root: Path) -> None:
    file = random.choice([f for f in _live(root) if f.suffix != ".bin"])
    data = file.read_bytes()
    file.write_bytes(data[: random.randrange(len(data) - 1)])


def _tear(random: Random, root: Path) -> None:
    """Cut the last line of the newest commit."""
    file = _newest(root)
    data = file.read_bytes().rstrip()
    file.write_bytes(data[: random.randrange(data.rfind(b"\n") + 2, len(data))])


def _repeat(random: Random, root: Path) -> None:
    """Let the newest commit have an action twice."""
    file = _newest(root)
    lines = [
        line for line in file.read_bytes().splitlines() if line.startswith((b'{"add"', b'{"remove"', b'{"metaData"'))
    ]
    again = random.choice(lines) if lines else b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'
    file.write_bytes(file.read_bytes().rstrip() + b"\n" + again + b"\n" + (b"" if lines else again + b"\n"))


def _newest(root: Path) -> Path:
    return root / "_delta_log" / f"{DeltaTable(str(root)).version():020}.json"


def _live(root: Path) -> list[Path]:
    return [Path(uri) for uri in DeltaTable(str(root)).file_uris()]


DAMAGES = (_flip, _delete, _cut, _tear, _repeat)


@pytest.mark.parametrize("kind", TABLES)
def test_history_of_writes_and_upkeep_leaves_nothing_to_find_and_damage_is_found(tmp_path: Path, kind: str) -> None:
    for seed in range(HISTORIES):
        random = Random(f"{kind} {seed}")
        history = History(tmp_path / str(seed), kind, random)
        for _ in range(10):
            history.step()
        history.check()
        for damage in DAMAGES if history.versions[max(history.versions)] else (_tear, _repeat):
            copy = tmp_path / f"{seed}-{damage.__name__}"
            shutil.copytree(history.folder, copy)
            damage(random, copy)
            report = verify_table(open_context(str(copy)), None, VerifyOptions(deep="rows"))
            assert not report.ok, (seed, damage.__name__, history.done)
            shutil.rmtree(copy)
        shutil.rmtree(history.folder)
