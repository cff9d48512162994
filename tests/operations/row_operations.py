"""Operations on tables, and what each makes of the rows in memory: for histories, schedules and interrupted runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from delta_core import DeltaTable, Field, PrimitiveType, write_deltalake
from tests.operations.row_tables import PREDICATES, Row, table_of

PREDICATE_TEXTS = ("id % 3 = 0", "id < 7", "p = 'a'", "p is null", "x > 0.5", "x is null or id = 4")


@dataclass(frozen=True)
class Step:
    """One operation; ``apply`` returns the rows of the table after it, in any order."""

    name: str
    run: Callable[[DeltaTable], object]
    apply: Callable[[list[Row]], list[Row]]

    def __repr__(self) -> str:
        return self.name


def _rows(random: Random, count: int) -> list[Row]:
    ids = random.sample(range(12), count)
    return [(i, random.choice(["a", "b", None]), random.choice([0.0, 0.25, 0.75, None])) for i in ids]


def append(random: Random) -> Step:
    new = _rows(random, random.randint(1, 4))
    return Step(f"append {new}", lambda t: write_deltalake(t, table_of(new), mode="append"), lambda rows: [*rows, *new])


def delete(random: Random) -> Step:
    text = random.choice(PREDICATE_TEXTS)
    test = PREDICATES[text]
    return Step(f"delete {text}", lambda t: t.delete(text), lambda rows: [r for r in rows if not test(r)])


def update(random: Random) -> Step:
    text = random.choice(PREDICATE_TEXTS)
    test = PREDICATES[text]

    def apply(rows: list[Row]) -> list[Row]:
        return [(i, p, None if x is None else x + 1) if test((i, p, x)) else (i, p, x) for i, p, x in rows]

    return Step(f"update {text}", lambda t: t.update({"x": "x + 1"}, predicate=text), apply)


def move(random: Random) -> Step:
    """Return an update of the column that may be the partition column."""
    number = random.randrange(12)

    def apply(rows: list[Row]) -> list[Row]:
        return [(i, "m" if i == number else p, x) for i, p, x in rows]

    return Step(f"move {number}", lambda t: t.update({"p": "'m'"}, predicate=f"id = {number}"), apply)


def upsert(random: Random) -> Step:
    new = _rows(random, random.randint(1, 4))
    by_id = {r[0]: r for r in new}

    def run(table: DeltaTable) -> object:
        merge = table.merge(table_of(new), "target.id = source.id")
        return merge.when_matched_update({"x": "source.x"}).when_not_matched_insert_all().execute()

    def apply(rows: list[Row]) -> list[Row]:
        known = {r[0] for r in rows}
        kept = [(i, p, by_id[i][2]) if i in by_id else (i, p, x) for i, p, x in rows]
        return [*kept, *(r for r in new if r[0] not in known)]

    return Step(f"upsert {new}", run, apply)


def prune(random: Random) -> Step:
    """Return a merge that deletes what matches, and updates what does not."""
    ids = random.sample(range(12), 4)
    source = pa.table({"id": pa.array(ids, pa.int64())})

    def run(table: DeltaTable) -> object:
        merge = table.merge(source, "target.id = source.id").when_matched_delete()
        return merge.when_not_matched_by_source_update({"x": "0.5"}, "target.id > 5").execute()

    def apply(rows: list[Row]) -> list[Row]:
        return [(i, p, 0.5 if i > 5 else x) for i, p, x in rows if i not in ids]

    return Step(f"prune {ids}", run, apply)


def replace_using(random: Random) -> Step:
    new = _rows(random, random.randint(1, 3))
    ids = {r[0] for r in new}
    return Step(
        f"replace {new}",
        lambda t: write_deltalake(t, table_of(new), mode="overwrite", replace_using="id"),
        lambda rows: [*(r for r in rows if r[0] not in ids), *new],
    )


def replace_where(random: Random) -> Step:
    new: list[Row] = [(i, "a", x) for i, _, x in _rows(random, 2)]
    return Step(
        f"replace where {new}",
        lambda t: write_deltalake(t, table_of(new), mode="overwrite", predicate="p = 'a'"),
        lambda rows: [*(r for r in rows if r[1] != "a"), *new],
    )


def overwrite(random: Random) -> Step:
    new = _rows(random, 3)
    return Step(f"overwrite {new}", lambda t: write_deltalake(t, table_of(new), mode="overwrite"), lambda _: new)


def compact(random: Random) -> Step:
    del random
    return Step("compact", lambda t: t.optimize.compact(), lambda rows: rows)


def sort(random: Random) -> Step:
    del random
    return Step("sort", lambda t: t.optimize.sort(["id"]), lambda rows: rows)


def purge(random: Random) -> Step:
    del random
    return Step("purge", lambda t: t.optimize.purge(), lambda rows: rows)


def set_property(random: Random) -> Step:
    value = str(random.randrange(100))
    return Step(f"property {value}", lambda t: t.alter.set_table_properties({"a.b": value}), lambda rows: rows)


def add_column(random: Random) -> Step:
    name = f"c{random.randrange(1 << 30)}"
    column = Field(name, PrimitiveType("long"))
    return Step(f"add {name}", lambda t: t.alter.add_columns([column]), lambda rows: rows)


CHANGES = (append, delete, update, move, upsert, prune, replace_using, replace_where, overwrite)
KEEPS = (compact, sort, purge, set_property, add_column)
STEPS = (*CHANGES, *KEEPS)
