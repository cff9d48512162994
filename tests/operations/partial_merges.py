"""Merges whose source has other fields than the table: generated cases, a model in Python, what delta-spark does.

``python -m tests.operations.partial_merges`` records the rows that delta-spark leaves, in an environment that has it.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

__all__ = [
    "FAILED",
    "NUM_RECORDED",
    "RECORDED",
    "REJECTED",
    "UNRESOLVED",
    "Case",
    "Clause",
    "RejectedError",
    "generated",
    "model",
    "named_cases",
    "shown",
    "statement",
]

#: What delta-spark 4.4.0 leaves: by case, without and with schema evolution, columns and rows, or the error's class.
RECORDED = Path(__file__).with_name("partial_merges.json")
#: The error of values whose fields differ from those of the column.
REJECTED = "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"
#: The error of clauses for all columns, without schema evolution, of a source that lacks a column: on Spark alone.
UNRESOLVED = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
#: What is no error on Arrow: these; and lists and maps within one another whose structs differ in their fields, which
#: delta-spark looks for by name in one level.
FAILED = (UNRESOLVED, "DATATYPE_MISMATCH")
#: How many generated cases are recorded.
NUM_RECORDED = 60
_WHEN = {"matched": "MATCHED", "not_matched": "NOT MATCHED", "not_matched_by_source": "NOT MATCHED BY SOURCE"}
Row = dict[str, Any]


class Clause(NamedTuple):
    """A clause; ``updates`` None: all columns."""

    kind: str
    updates: Mapping[str, str] | None = None


class Case(NamedTuple):
    """A merge on ``id``."""

    name: str
    table: pa.Table
    source: pa.Table
    clauses: Sequence[Clause]


class RejectedError(Exception):
    """The model rejects the merge."""


# --- cases -----------------------------------------------------------------------------------


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


_I, _L, _S = pa.int32(), pa.int64(), pa.string()
_AB, _A, _ABC, _AC = _struct(a=_I, b=_S), _struct(a=_I), _struct(a=_I, b=_S, c=_I), _struct(a=_I, c=_I)
_DEEP, _SHALLOW = _struct(a=_I, n=_struct(x=_I, y=_I)), _struct(n=_struct(x=_I))
#: Type of the table's column, type of the source's.
_PAIRS: Mapping[str, tuple[pa.DataType, pa.DataType]] = {
    "lacks": (_AB, _A),
    "adds": (_AB, _ABC),
    "both": (_AB, _AC),
    "none-common": (_AB, _struct(c=_I)),
    "other-order": (_AB, _struct(b=_S, a=_I)),
    "other-case": (_AB, _struct(A=_I, B=_S)),
    "lacks-other-case": (_AB, _struct(B=_S)),
    "other-types": (_AB, _struct(b=_S, a=_L)),
    "lacks-other-types": (_struct(a=_I, b=_L), _struct(b=_I)),
    "same": (_AB, _AB),
    "deep": (_DEEP, _SHALLOW),
    "deep-inner-full": (_DEEP, _struct(n=_struct(x=_I, y=_I))),
    "deep-outer-full": (_DEEP, _struct(a=_I, n=_struct(y=_I))),
    "deep-adds": (_DEEP, _struct(n=_struct(y=_I, z=_I))),
    "array": (pa.list_(_AB), pa.list_(_A)),
    "array-adds": (pa.list_(_AB), pa.list_(_AC)),
    "array-order": (pa.list_(_AB), pa.list_(_struct(b=_S, a=_I))),
    "map": (pa.map_(_S, _AB), pa.map_(_S, _A)),
    "map-adds": (pa.map_(_S, _AB), pa.map_(_S, _ABC)),
    "array-in-struct": (_struct(p=_I, q=pa.list_(_AB)), _struct(q=pa.list_(_A))),
    "array-in-full-struct": (_struct(p=_I, q=pa.list_(_AB)), _struct(p=_I, q=pa.list_(_A))),
    "array-left-out": (_struct(p=_I, q=pa.list_(_AB)), _struct(p=_I)),
    "map-in-struct": (_struct(p=_I, m=pa.map_(_S, _AB)), _struct(m=pa.map_(_S, _A))),
    "struct-in-map-in-array": (pa.list_(pa.map_(_S, _AB)), pa.list_(pa.map_(_S, _A))),
}
_NAMED_CLAUSES: Mapping[str, Sequence[Clause]] = {
    "all": (Clause("matched"), Clause("not_matched")),
    "update": (Clause("matched", {"s": "source.s"}),),
    "insert": (Clause("not_matched", {"id": "source.id", "s": "source.s"}),),
}


def named_cases() -> Iterator[Case]:
    """Yield each pair of types with each kind of clause, on rows with nulls at every level."""
    for name, (wanted, found) in _PAIRS.items():
        rows = [{"id": i, "s": v} for i, v in enumerate(_values(wanted, 1)[:6])]
        news = _values(found, 5)
        source = [{"id": i, "s": news[(i * 2 + shift) % len(news)]} for shift in (0,) for i in range(8)]
        for kind, clauses in _NAMED_CLAUSES.items():
            table = pa.Table.from_pylist(rows, pa.schema([("id", _L), ("s", wanted)]))
            new = pa.Table.from_pylist(source, pa.schema([("id", _L), ("s", found)]))
            yield Case(f"{name}-{kind}", table, new, clauses)
    table = pa.table({"id": pa.array([1, 2], _L), "v": pa.array([10, 20], _I)})
    for name, columns in {
        "extra-column": {"id": [1, 3], "v": [5, 6], "w": ["x", "y"]},
        "extra-column-other-case": {"ID": [1, 3], "V": [5, 6], "W": ["x", "y"]},
        "extra-struct": {"id": [1, 3], "v": [5, 6], "w": [{"a": 1}, None]},
    }.items():
        for kind, clauses in {
            "all": _NAMED_CLAUSES["all"],
            "named": (Clause("matched", {"v": "source.v"}), Clause("not_matched", {"id": "source.id"})),
        }.items():
            yield Case(f"{name}-{kind}", table, pa.table(columns), clauses)


def _values(t: pa.DataType, number: int) -> list[Any]:
    """Return values of a type with null at each level."""
    if pa.types.is_struct(t):
        parts = [_values(f.type, number + i) for i, f in enumerate(t)]
        most = max(map(len, parts))
        return [
            *(
                {f.name: p[(i + j) % len(p)] for j, (f, p) in enumerate(zip(t, parts, strict=True))}
                for i in range(most)
            ),
            None,
            dict.fromkeys((f.name for f in t), None),
        ]
    if pa.types.is_map(t):
        inner = _values(t.item_type, number)
        return [[("k", v)] for v in inner] + [None, [], [("k", inner[0]), ("l", inner[-1])]]
    if pa.types.is_list(t):
        inner = _values(t.value_type, number)
        return [[v] for v in inner] + [None, [], inner[:2]]
    return [str(number), None] if pa.types.is_string(t) else [number, None, number + 10]


def generated(seed: int) -> Case:
    """Return a case with a random schema, a random part of it as the source's, and random rows and clauses."""
    chance = random.Random(seed)
    wanted = {name: _random_type(chance, 3) for name in ("s", "t")}
    found = {name: _changed(chance, t) for name, t in wanted.items() if chance.random() < 0.8}
    if chance.random() < 0.3:
        found["w"] = _random_type(chance, 2)
    table = _random_rows(chance, {"id": _L, **wanted})
    source = _random_rows(chance, {"id": _L, **found})
    both = [n for n in found if n in wanted]
    named = chance.sample(both, chance.randrange(len(both) + 1)) or ["id"]
    updates = {n: f"source.{n}" for n in named}
    clauses = [Clause("matched", chance.choice([None, None, updates]))]
    clauses.append(Clause("not_matched", chance.choice([None, {"id": "source.id"} | updates])))
    if chance.random() < 0.2:
        clauses.append(Clause("not_matched_by_source", {"id": "target.id"}))
    return Case(f"generated-{seed}", table, source, clauses)


def _random_type(chance: random.Random, levels: int) -> pa.DataType:
    kind = chance.choice(["struct", "struct", "list", "map", "value"]) if levels else "value"
    if kind == "struct":
        names = chance.sample("abcd", chance.randrange(1, 4))
        return pa.struct([(n, _random_type(chance, levels - 1)) for n in names])
    if kind == "list":
        return pa.list_(_random_type(chance, levels - 1))
    return pa.map_(_S, _random_type(chance, levels - 1)) if kind == "map" else chance.choice([_I, _L, _S])


def _changed(chance: random.Random, t: pa.DataType) -> pa.DataType:
    """Return a type with fewer, further, reordered or respelt fields in some of its structs."""
    if pa.types.is_struct(t):
        fields = [(f.name, _changed(chance, f.type)) for f in t if chance.random() < 0.75]
        if chance.random() < 0.2 or not fields:
            fields.append((chance.choice("ef"), chance.choice([_I, _S])))
        if chance.random() < 0.3:
            chance.shuffle(fields)
        return pa.struct([(n.upper() if chance.random() < 0.1 else n, f) for n, f in fields])
    if pa.types.is_map(t):
        return pa.map_(_S, _changed(chance, t.item_type))
    if pa.types.is_list(t):
        return pa.list_(_changed(chance, t.value_type))
    return _L if pa.types.is_int32(t) and chance.random() < 0.1 else t


def _random_rows(chance: random.Random, columns: Mapping[str, pa.DataType]) -> pa.Table:
    ids = chance.sample(range(7), chance.randrange(1, 6))
    rows = [{n: i if n == "id" else _random_value(chance, t) for n, t in columns.items()} for i in ids]
    return pa.Table.from_pylist(rows, pa.schema(list(columns.items())))


def _random_value(chance: random.Random, t: pa.DataType) -> Any:
    if chance.random() < 0.2:
        return None
    if pa.types.is_struct(t):
        return {f.name: _random_value(chance, f.type) for f in t}
    if pa.types.is_map(t):
        return [(k, _random_value(chance, t.item_type)) for k in chance.sample("kl", chance.randrange(3))]
    if pa.types.is_list(t):
        return [_random_value(chance, t.value_type) for _ in range(chance.randrange(3))]
    return chance.choice("xyz") if pa.types.is_string(t) else chance.randrange(9)


# --- the model -------------------------------------------------------------------------------


def model(case: Case, is_evolving: bool) -> tuple[pa.Schema, list[Row]]:
    """Return the table after the merge.

    Raises
    ------
    RejectedError
        Types do not fit.
    """
    source = case.source.schema
    schema = _evolved(case.table.schema, source, case.clauses) if is_evolving else case.table.schema
    assigned = [(c, _assigned(c, schema, source)) for c in case.clauses]
    for _, names in assigned:
        for name, given in names.items():
            _check(source.field(given).type, schema.field(name).type, is_evolving)
    id_name = next(n for n in source.names if n.lower() == "id")
    news = {r[id_name]: r for r in case.source.to_pylist()}
    olds = [_fitted(r, _as_struct(case.table.schema), _as_struct(schema)) for r in case.table.to_pylist()]
    out = []
    for old in olds:
        new = news.pop(old["id"], None)
        found = next((names for c, names in assigned if c.kind == "matched"), None)
        if new is not None and found is not None:
            is_star = next(c for c in case.clauses if c.kind == "matched").updates is None
            old = old | {
                name: (_kept if is_star and is_evolving else _replaced)(
                    old[name], new[given], source.field(given).type, schema.field(name).type
                )
                for name, given in found.items()
            }
        out.append(old)
    inserted = next((names for c, names in assigned if c.kind == "not_matched"), None)
    for new in news.values() if inserted is not None else ():
        row = dict.fromkeys(schema.names)
        for name, given in inserted.items():
            row[name] = _fitted(new[given], source.field(given).type, schema.field(name).type)
        out.append(row)
    return schema, out


def _as_struct(schema: pa.Schema) -> pa.DataType:
    return pa.struct(list(schema))


def _assigned(clause: Clause, schema: pa.Schema, source: pa.Schema) -> dict[str, str]:
    """Return the columns of the table that a clause assigns, with the source's."""
    if clause.kind == "not_matched_by_source":
        return {}
    lower = {n.lower(): n for n in schema.names}
    given = source.names if clause.updates is None else [v.removeprefix("source.") for v in clause.updates.values()]
    spelled = {n.lower(): n for n in source.names}
    return {lower[n.lower()]: spelled[n.lower()] for n in given if n.lower() in lower}


def _evolved(table: pa.Schema, source: pa.Schema, clauses: Sequence[Clause]) -> pa.Schema:
    names: set[str] = set()
    for clause in clauses:
        if clause.kind != "not_matched_by_source":
            names |= {n.lower() for n in (source.names if clause.updates is None else clause.updates)}
    chosen = [f for f in source if f.name.lower() in names]
    return pa.schema(list(_merged(_as_struct(table), pa.struct(chosen))))


def _merged(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        given = {f.name.lower(): f for f in new}
        fields = [(f.name, _merged(f.type, given.pop(f.name.lower(), f).type)) for f in old]
        return pa.struct([*fields, *((f.name, f.type) for f in given.values())])
    if pa.types.is_map(old) and pa.types.is_map(new):
        return pa.map_(old.key_type, _merged(old.item_type, new.item_type))
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(_merged(old.value_type, new.value_type))
    return old


def _check(found: pa.DataType, wanted: pa.DataType, is_evolving: bool) -> None:
    if pa.types.is_struct(wanted):
        have, want = ({f.name.lower(): f.type for f in t} for t in (found, wanted))
        if have.keys() - want.keys() or (want.keys() - have.keys() and not is_evolving):
            raise RejectedError(found, wanted)
        for name, t in have.items():
            _check(t, want[name], is_evolving)
    elif pa.types.is_map(wanted):
        _check(found.item_type, wanted.item_type, is_evolving)
    elif pa.types.is_list(wanted):
        _check(found.value_type, wanted.value_type, is_evolving)


def _replaced(old: Any, new: Any, found: pa.DataType, wanted: pa.DataType) -> Any:
    return _fitted(new, found, wanted)


def _fitted(value: Any, found: pa.DataType, wanted: pa.DataType) -> Any:
    """Return a value with all fields of a type, null for those that it lacks."""
    if value is None:
        return None
    if pa.types.is_struct(wanted):
        given = {f.name.lower(): f for f in found}
        return {
            f.name: _fitted(value[given[f.name.lower()].name], given[f.name.lower()].type, f.type)
            if f.name.lower() in given
            else None
            for f in wanted
        }
    if pa.types.is_map(wanted):
        return [(k, _fitted(v, found.item_type, wanted.item_type)) for k, v in value]
    if pa.types.is_list(wanted):
        return [_fitted(v, found.value_type, wanted.value_type) for v in value]
    return value


def _lacks(found: pa.DataType, wanted: pa.DataType) -> bool:
    if not pa.types.is_struct(wanted):
        return False
    given = {f.name.lower(): f.type for f in found}
    return any(f.name.lower() not in given or _lacks(given[f.name.lower()], f.type) for f in wanted)


def _kept(old: Any, new: Any, found: pa.DataType, wanted: pa.DataType) -> Any:
    """Return what UPDATE SET * makes of a value with schema evolution: fields that the source lacks stay."""
    if not _lacks(found, wanted):
        return _fitted(new, found, wanted)
    if old is None and new is None:
        return None
    given = {f.name.lower(): f for f in found}
    before, after = old or {}, new or {}
    return {
        f.name: _kept(before.get(f.name), after.get(given[f.name.lower()].name), given[f.name.lower()].type, f.type)
        if f.name.lower() in given
        else before.get(f.name)
        for f in wanted
    }


# --- comparison and record -------------------------------------------------------------------


def shown(schema: pa.Schema, rows: Sequence[Row]) -> list[Any]:
    """Return a table as JSON can hold it: names in the order of the columns, rows by id."""
    return [_names(_as_struct(schema)), sorted((_plain(r) for r in rows), key=repr)]


def _names(t: pa.DataType) -> Any:
    if pa.types.is_struct(t):
        return [[f.name, _names(f.type)] for f in t]
    if pa.types.is_map(t):
        return ["map", _names(t.item_type)]
    return ["list", _names(t.value_type)] if pa.types.is_list(t) else str(t)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return [[k, _plain(v)] for k, v in value.items()]
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, list):
        items = [_plain(v) for v in value]
        return sorted(items, key=repr) if value and isinstance(value[0], tuple) else items
    return value


def statement(case: Case, table: str, source: str, is_evolving: bool) -> str:
    """Return the merge as SQL."""
    text = f"MERGE {'WITH SCHEMA EVOLUTION ' if is_evolving else ''}INTO {table} AS target USING {source} AS source "
    text += "ON target.id = source.id"
    for clause in case.clauses:
        text += f" WHEN {_WHEN[clause.kind]} THEN "
        if clause.kind == "not_matched":
            given = clause.updates
            text += "INSERT *" if given is None else f"INSERT ({', '.join(given)}) VALUES ({', '.join(given.values())})"
        elif clause.updates is None:
            text += "UPDATE SET *"
        else:
            text += "UPDATE SET " + ", ".join(f"{name} = {value}" for name, value in clause.updates.items())
    return text


def record(spark: Any, folder: Path) -> None:
    """Run the named cases and the first generated ones with delta-spark, and write what they leave."""
    found: dict[str, list[Any]] = {}
    for case in [*named_cases(), *map(generated, range(NUM_RECORDED))]:
        spark.createDataFrame(case.source).createOrReplaceTempView("new_rows")
        found[case.name] = []
        for is_evolving in (False, True):
            path = str(folder / f"{case.name}-{is_evolving}")
            spark.createDataFrame(case.table).write.format("delta").save(path)
            try:
                spark.sql(statement(case, f"delta.`{path}`", "new_rows", is_evolving)).collect()
            except Exception as e:  # noqa: BLE001  (an error of Java)
                found[case.name].append(next(name for name in (REJECTED, *FAILED) if name in str(e)))
                continue
            left = spark.read.format("delta").load(path).toArrow()
            found[case.name].append(shown(left.schema, left.to_pylist()))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")


def _main() -> None:
    from delta import configure_spark_with_delta_pip  # of the recorder's environment
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    spark = configure_spark_with_delta_pip(builder.config("spark.sql.catalog.spark_catalog", catalog)).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        record(spark, Path(folder))


if __name__ == "__main__":
    _main()
