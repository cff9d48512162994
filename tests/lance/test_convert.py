"""Conversions between Delta and Lance, and from folders of Parquet files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import DeltaTable, convert, open_table, write_deltalake
from delta_core.errors import (
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    SchemaError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from delta_core.kernel.snapshot import open_snapshot
from delta_plugins.lance import write_lance
from tests.corpus.records import path_of, records
from tests.corpus.rows import canonical_rows
from tests.example_counts import chosen, examples

TRACKED = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}


def places(folder: Path) -> Iterator[str]:
    return (str(folder / f"t{n}") for n in range(100))


def ids(table: Any, name: str) -> dict[Any, int]:
    found = table.scan(metadata=[name]).to_table().to_pydict()
    return dict(zip(found["id"], found[name], strict=True))


# --- recorded tables -----------------------------------------------------------------------


def _cases() -> list[Any]:
    found = [r for r in records() if r["expect"]["read"] == "rows"]
    return [pytest.param(r, id=r["id"]) for r in chosen(found, found[::6])]


@pytest.mark.golden
@pytest.mark.parametrize("record", _cases())
def test_recorded_table_comes_back_with_its_schema_and_rows(record: dict[str, Any], tmp_path: Path) -> None:
    source, lance, delta = str(path_of(record)), str(tmp_path / "l"), str(tmp_path / "d")
    before = open_snapshot(source)
    if any("variant" in str(f.type) for f in before.schema.fields):
        with pytest.raises(SchemaError, match=r"VARIANT.*columns="):
            convert(source, lance, "lance", without="all")
        assert not os.path.exists(lance)
        return
    done = convert(source, lance, "lance", without="all")
    names = {"delta.columnMapping.mode": "name"} if any(not n.isalnum() for n in before.schema.names) else {}
    convert(lance, delta, "delta", properties=names)
    after = DeltaTable(delta).snapshot()
    found, expected = after.scan().to_table(), before.scan().to_table()
    assert found.schema.equals(expected.schema)
    types = json.loads(before.metadata.schema_string)
    rows = canonical_rows(expected, types)
    assert canonical_rows(found, types) == rows
    assert canonical_rows(done.table.to_pyarrow_table(), types) == rows


@pytest.mark.golden
def test_recorded_tables_keep_row_ids_if_they_have_them(tmp_path: Path) -> None:
    with_ids = 0
    for number, record in enumerate(records()):
        if record["expect"]["read"] != "rows" or not any("rowTracking" in f for f in record["features"]):
            continue
        before = open_snapshot(str(path_of(record)))
        if not before.state.is_active("rowTracking"):
            continue
        with_ids += 1
        lance, delta = str(tmp_path / f"l{number}"), str(tmp_path / f"d{number}")
        convert(str(path_of(record)), lance, "lance", without="all")
        convert(lance, delta, "delta")
        found = [s.scan(metadata=["_row_id"]).to_table() for s in (before, DeltaTable(delta).snapshot())]
        assert found[0].sort_by("_row_id").equals(found[1].sort_by("_row_id"))
    if not with_ids:
        pytest.skip("no recorded table has row ids")


# --- row ids -------------------------------------------------------------------------------


def test_row_ids_are_kept_both_ways_and_never_given_again(tmp_path: Path) -> None:
    first, lance, back = (str(tmp_path / n) for n in ("a", "b", "c"))
    write_deltalake(first, pa.table({"id": [1, 2, 3, 4]}), configuration=TRACKED)
    table = DeltaTable(first)
    table.delete("id = 2")
    table.update({"id": "40"}, predicate="id = 4")
    write_deltalake(first, pa.table({"id": [5]}), mode="append")
    expected = ids(open_snapshot(first), "_row_id")
    dataset = convert(first, lance, "lance").table
    assert ids(dataset, "_rowid") == expected
    convert(lance, back, "delta")
    assert ids(open_snapshot(back), "_row_id") == expected
    # rows that are written later have new ids in both
    write_lance(lance, pa.table({"id": [6, 7]}), "append")
    write_deltalake(back, pa.table({"id": [6, 7]}), mode="append")
    for found in (ids(open_table(lance), "_rowid"), ids(open_snapshot(back), "_row_id")):
        assert len(set(found.values())) == 6
        assert min(found[6], found[7]) > max(expected.values())
        assert {k: v for k, v in found.items() if k < 6 or k == 40} == expected
    assert not DeltaTable(back).verify().findings.num_rows


def test_updated_rows_of_a_dataset_keep_their_ids_in_delta(tmp_path: Path) -> None:
    lance, delta = str(tmp_path / "l"), str(tmp_path / "d")
    dataset = write_lance(lance, pa.table({"id": [1, 2, 3, 4]}), stable_row_ids=True)
    dataset.update({"id": "20"}, predicate="id = 2")
    dataset.delete("id = 1")
    convert(lance, delta, "delta")
    assert ids(open_snapshot(delta), "_row_id") == ids(open_table(lance), "_rowid") == {3: 2, 4: 3, 20: 1}


def test_row_ids_can_be_left_behind_and_can_begin_anew(tmp_path: Path) -> None:
    plain, tracked, a, b = (str(tmp_path / n) for n in "ptab")
    write_deltalake(plain, pa.table({"id": [7, 8]}))
    write_deltalake(tracked, pa.table({"id": [7, 8]}), configuration=TRACKED)
    done = convert(tracked, a, "lance", row_ids=False, without="rowTracking")
    assert not done.table.manifest.has_stable_row_ids
    with pytest.raises(UnsupportedFeatureError, match="rowTracking"):
        convert(tracked, str(tmp_path / "x"), "lance", row_ids=False)
    assert convert(plain, b, "lance", row_ids=True).table.manifest.has_stable_row_ids
    assert not convert(plain, str(tmp_path / "y"), "lance").table.manifest.has_stable_row_ids


# --- what is lost --------------------------------------------------------------------------


def _constraint(place: str) -> None:
    write_deltalake(place, pa.table({"id": [1]}))
    DeltaTable(place).alter.add_constraint({"positive": "id > 0"})


def _feed(place: str) -> None:
    write_deltalake(place, pa.table({"id": [1]}), configuration={"delta.enableChangeDataFeed": "true"})


def _append_only(place: str) -> None:
    write_deltalake(place, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})


def _partitions(place: str) -> None:
    write_deltalake(place, pa.table({"id": [1], "p": ["x"]}), partition_by=["p"])


def _clusters(place: str) -> None:
    write_deltalake(place, pa.table({"id": [1]}), cluster_by=["id"])


def _vectors(place: str) -> None:
    write_lance(place, pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))}))


def _dictionaries(place: str) -> None:
    write_lance(place, pa.table({"d": pa.array(["a", "b"]).dictionary_encode()}))


def _types(place: str) -> None:
    write_lance(place, pa.table({"u": pa.array([1], pa.uint32())}))


def _nested(place: str) -> None:
    rows = pa.array(
        [[{"a": 1, "b": [1.0]}]], pa.list_(pa.struct([("a", pa.uint8()), ("b", pa.list_(pa.float16(), 1))]))
    )
    write_lance(place, pa.table({"x": rows}))


def _extension(place: str) -> None:
    write_lance(place, pa.table({"j": pa.array([b"0123456789abcdef"], pa.uuid())}))


LOST: list[tuple[Callable[[str], None], str, set[str]]] = [
    (_constraint, "lance", {"checkConstraints"}),
    (_feed, "lance", {"changeDataFeed"}),
    (_append_only, "lance", {"appendOnly"}),
    (_partitions, "lance", {"partitions"}),
    (_clusters, "lance", {"clustering"}),
    (_vectors, "delta", {"vectors"}),
    (_dictionaries, "delta", {"dictionaries"}),
    (_types, "delta", {"types"}),
    (_nested, "delta", {"types", "vectors"}),
    (_extension, "delta", {"extensions", "types"}),
]


@pytest.mark.parametrize(("make", "to", "lost"), LOST, ids=[c[0].__name__.strip("_") for c in LOST])
def test_what_is_lost_has_to_be_allowed_by_name(
    tmp_path: Path, make: Callable[[str], None], to: str, lost: set[str]
) -> None:
    source, target = str(tmp_path / "s"), str(tmp_path / "t")
    make(source)
    with pytest.raises(UnsupportedFeatureError, match="Nothing was written") as caught:
        convert(source, target, to)
    assert set(caught.value.features) == lost
    assert not os.path.exists(target)
    with pytest.raises(UnsupportedFeatureError):
        convert(source, target, to, without=sorted(lost)[1:])
    done = convert(source, target, to, without=sorted(lost))
    named = {f.name for f in done.facets if f.outcome == "lost"} | {n for c in done.columns for n in c.losses}
    assert named == lost
    assert open_table(target).scan().to_table().num_rows == done.num_rows > 0


def test_tags_branches_and_indices_of_a_dataset_are_named(tmp_path: Path) -> None:
    source = str(Path(__file__).parent / "fixtures" / "stable")
    with pytest.raises(UnsupportedFeatureError) as caught:
        convert(source, str(tmp_path / "t"), "delta")
    assert {"tags", "branches"} <= set(caught.value.features)
    done = convert(source, str(tmp_path / "t"), "delta", tag="deleted", without="all")
    assert done.num_rows == open_table(source, tag="deleted").count()
    done = convert(source, str(tmp_path / "u"), "delta", branch="dev/one", without="all")
    assert done.num_rows == open_table(source, branch="dev/one").count()


def test_name_that_may_be_lost_is_checked(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "s"), pa.table({"id": [1]}))
    with pytest.raises(InvalidArgumentError, match=r"'partition'.*would lose"):
        convert(str(tmp_path / "s"), str(tmp_path / "t"), "lance", without="partition")


def test_texts_and_properties_are_kept(tmp_path: Path) -> None:
    first, lance, back = (str(tmp_path / n) for n in "abc")
    schema = pa.schema([pa.field("id", pa.int64(), False, {"comment": "the key"}), pa.field("x", pa.string())])
    rows = pa.table({"id": [1], "x": ["a"]}, schema)
    write_deltalake(first, rows, name="N", description="about", configuration={"owner": "me"})
    convert(first, lance, "lance")
    assert open_table(lance).schema().field("id").metadata == {b"comment": b"the key"}
    assert not open_table(lance).schema().field("id").nullable
    convert(lance, back, "delta")
    found = open_snapshot(back)
    assert (found.metadata.name, found.metadata.description) == ("N", "about")
    assert found.metadata.configuration["owner"] == "me"
    field = found.schema.fields[0]
    assert (field.nullable, field.metadata.get("comment")) == (False, "the key")


# --- types ---------------------------------------------------------------------------------

_LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint8(), st.integers(0, 255)),
    (pa.uint16(), st.integers(0, 2**16 - 1)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float16(), st.floats(width=16, allow_nan=False)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=4)),
    (pa.large_string(), st.text(max_size=4)),
    (pa.binary(), st.binary(max_size=4)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.date32(), st.dates(date(1600, 1, 1), date(2400, 1, 1))),
    (pa.date64(), st.dates(date(1600, 1, 1), date(2400, 1, 1))),
    (pa.timestamp("us"), st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1))),
    (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    (pa.decimal256(38, 3), st.decimals(-1000, 1000, places=3)),
]


@st.composite
def columns(draw: Any, level: int = 0) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    kind = draw(st.integers(0, 4 if level < 2 else 0))
    if kind in (0, 1):
        return draw(st.sampled_from(_LEAVES))  # type: ignore[no-any-return]
    inner, values = draw(columns(level + 1))
    optional = st.none() | values
    if kind == 2:
        return pa.list_(inner), st.lists(optional, max_size=3)
    if kind == 3 and _has_width(inner):
        return pa.list_(inner, 2), st.lists(values, min_size=2, max_size=2)
    other, others = draw(columns(level + 1))
    return pa.struct([("p", inner), ("q", other)]), st.fixed_dictionaries({"p": optional, "q": st.none() | others})


def _has_width(of: pa.DataType) -> bool:
    try:
        return of.num_fields == 0 and of.bit_width >= 8
    except ValueError:
        return False


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_values_of_any_type_are_the_same_in_delta_and_again_in_lance(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    of, values = data.draw(columns())
    rows = pa.table({"c": pa.array(data.draw(st.lists(st.none() | values, min_size=1, max_size=5)), of)})
    folder = places(tmp_path_factory.mktemp("types"))
    first, delta, second = next(folder), next(folder), next(folder)
    write_lance(first, rows)
    convert(first, delta, "delta", without="all")
    convert(delta, second, "lance")
    expected = rows.column("c").to_pylist()
    assert plain(DeltaTable(delta).to_pyarrow_table().column("c").to_pylist()) == plain(expected)
    assert plain(open_table(second).to_pyarrow_table().column("c").to_pylist()) == plain(expected)


def plain(value: Any) -> Any:
    """Return a value with one spelling of numbers, since unsigned ones become decimals."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize(
    "of",
    [
        pa.time64("us"),
        pa.duration("s"),
        pa.decimal256(60, 2),
        pa.list_(pa.time32("s")),
        pa.struct([("t", pa.time32("ms"))]),
    ],
    ids=str,
)
def test_type_without_a_counterpart_is_rejected_by_column(tmp_path: Path, of: pa.DataType) -> None:
    source, target = str(tmp_path / "s"), str(tmp_path / "t")
    write_lance(source, pa.table({"id": [1], "odd": pa.array([None], of)}))
    with pytest.raises(SchemaError, match=r"odd.*columns="):
        convert(source, target, "delta", without="all")
    assert not os.path.exists(target)
    assert convert(source, target, "delta", columns=["id"]).num_rows == 1


def test_value_that_does_not_fit_is_an_error_and_leaves_no_table(tmp_path: Path) -> None:
    source, target = str(tmp_path / "s"), tmp_path / "t"
    write_lance(source, pa.table({"at": pa.array([1000, 1001], pa.timestamp("ns"))}))
    with pytest.raises(SchemaMismatchError, match="at"):
        convert(source, str(target), "delta", without="types")
    assert not [p for p in target.rglob("*") if p.is_file()]


def test_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    source, target = str(tmp_path / "s"), str(tmp_path / "t")
    write_lance(source, pa.table({"id": [1]}))
    with pytest.raises(ColumnNotFoundError, match="'ix'"):
        convert(source, target, "delta", columns=["ix"])
    convert(source, target, "delta")
    with pytest.raises(ColumnNotFoundError, match="'ix'"):
        convert(target, str(tmp_path / "u"), "lance", columns=["ix"])


# --- folders and places --------------------------------------------------------------------


def test_folder_of_parquet_files_becomes_a_dataset(tmp_path: Path) -> None:
    for year in (2025, 2026):
        (tmp_path / f"f/year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [year], "v": [[1, None]]}), tmp_path / f"f/year={year}/a.parquet")
    source, target = str(tmp_path / "f"), str(tmp_path / "t")
    by = pa.schema([("year", pa.int32())])
    with pytest.raises(UnsupportedFeatureError, match="partitions"):
        convert(source, target, "lance", folder_partitions=by)
    convert(source, target, "lance", folder_partitions=by, without="partitions")
    rows = open_table(target).to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == [{"id": y, "v": [1, None], "year": y} for y in (2025, 2026)]
    assert not (tmp_path / "f/_delta_log").exists()
    with pytest.raises(TableNotFoundError, match="version"):
        convert(source, str(tmp_path / "u"), "lance", version=1)


@pytest.mark.parametrize("to", ["delta", "lance"])
def test_destination_has_to_be_a_place_of_its_own(tmp_path: Path, to: str) -> None:
    source, delta, lance = (str(tmp_path / n) for n in "sdl")
    write_deltalake(source, pa.table({"id": [1]}))
    write_deltalake(delta, pa.table({"id": [1]}))
    write_lance(lance, pa.table({"id": [1]}))
    for place in (delta, lance, source):
        with pytest.raises(TableExistsError):
            convert(source, place, to)
    with pytest.raises(InvalidArgumentError, match="share a folder"):
        convert(source, f"{source}/sub", to)
    with pytest.raises(InvalidArgumentError, match=r"installed are: delta, lance"):
        convert(source, str(tmp_path / "x"), "lanse")
    with pytest.raises(InvalidArgumentError, match="max_rows"):
        convert(source, str(tmp_path / "x"), to, max_rows=3)


def test_dry_run_reports_and_writes_nothing(tmp_path: Path) -> None:
    source, target = str(tmp_path / "s"), tmp_path / "t"
    write_deltalake(source, pa.table({"id": [1]}))
    done = convert(source, str(target), "lance", dry_run=True)
    assert (done.table, done.num_rows, done.columns[0].becomes) == (None, 0, "int64")
    assert not target.exists()


def test_earlier_version_is_converted(tmp_path: Path) -> None:
    source = str(tmp_path / "s")
    write_deltalake(source, pa.table({"id": [1]}))
    write_deltalake(source, pa.table({"id": [2]}), mode="append")
    assert convert(source, str(tmp_path / "t"), "lance", version=0).num_rows == 1
    with pytest.raises(InvalidArgumentError, match="tag"):
        convert(source, str(tmp_path / "u"), "lance", tag="x")


def test_stores_other_than_disks_are_converted(tmp_path: Path) -> None:
    write_deltalake("memory://convert/d", pa.table({"id": [1, 2]}))
    assert convert("memory://convert/d", "memory://convert/l", "lance").num_rows == 2
    assert convert("memory://convert/l", str(tmp_path / "t"), "delta").num_rows == 2
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().num_rows == 2


# --- interruptions -------------------------------------------------------------------------

_KILLED = """
import os, sys
import delta_plugins.lance.write.write_lance as writing
from delta_core import convert
from delta_core.kernel.commit.transaction import Transaction

def stop(*args, **options):
    os._exit(9)

Transaction.commit = stop
writing.commit_operation = stop
convert(sys.argv[1], sys.argv[2], sys.argv[3])
"""


@pytest.mark.parametrize("to", ["delta", "lance"])
def test_process_that_ends_before_the_commit_leaves_no_table(tmp_path: Path, to: str) -> None:
    source, target = str(tmp_path / "s"), str(tmp_path / "t")
    write_deltalake(source, pa.table({"id": list(range(1000))}))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(_KILLED), source, target, to], check=False)
    assert done.returncode == 9
    assert any(p.is_file() for p in Path(target).rglob("*"))
    with pytest.raises(TableNotFoundError):
        open_table(target)
    # and the conversion can run again
    assert convert(source, target, to).num_rows == 1000
    assert open_table(target).scan().count() == 1000


@pytest.mark.parametrize("to", ["delta", "lance"])
def test_source_that_fails_leaves_no_file(tmp_path: Path, to: str) -> None:
    source, target = str(tmp_path / "s"), tmp_path / "t"
    for _ in range(3):
        write_deltalake(source, pa.table({"id": list(range(1000))}), mode="append")
    last = DeltaTable(source).file_uris()[-1]
    with open(last.removeprefix("file://"), "r+b") as f:
        f.truncate(60)
    with pytest.raises(DeltaError):
        convert(source, str(target), to)
    assert not [p for p in target.rglob("*") if p.is_file()]


@pytest.mark.peer
def test_pylance_reads_what_is_converted(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    source, target = str(tmp_path / "s"), str(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3], "x": [["a"], None, []], "s": [{"a": 1}, None, {"a": None}]})
    write_deltalake(source, rows, configuration=TRACKED)
    DeltaTable(source).delete("id = 1")
    convert(source, target, "lance")
    found = lance.dataset(target).to_table(with_row_id=True)
    assert found.to_pydict() == {"id": [2, 3], "x": [None, []], "s": [None, {"a": None}], "_rowid": [1, 2]}
    assert lance.dataset(target).to_table(filter="id = 3").num_rows == 1
