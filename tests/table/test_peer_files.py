"""Add actions, file URIs, partitions and keep masks are the ones that deltalake returns, on real tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core import DeltaTable
from delta_core.errors import DataFileNotFoundError
from delta_core.table.interop.file_tables import file_table
from delta_core.testing.table_builder import TableBuilder
from tests.corpus.records import OWN, path_of, present, records, root_of

deltalake = pytest.importorskip("deltalake")
pytestmark = [pytest.mark.peer, pytest.mark.golden]

#: If the peer has of a column what we do not.
PEER_KNOWS_MORE = {
    "trino/databricks153__type_widening": "reads the text of a date as a bound of the timestamp that its column became"
}
#: What the peer can't open, as its error states.
_NO_CHECKPOINT = "Had a _last_checkpoint hint but didn't find any checkpoints"
PEER_REFUSES = {
    "spark/last_checkpoint_of_a_missing_file": _NO_CHECKPOINT,
    "spark/multipart_checkpoint_incomplete": _NO_CHECKPOINT,
    "spark/multipart_checkpoint_incomplete_after_another": _NO_CHECKPOINT,
    "spark/widened_partition_column": "Failed to parse value '2020-01-01' as 'timestamp_ntz'",
    "trino/databricks153__type_widening_partition": "Failed to parse value '1' as 'decimal",
    "trino/databricks154__clone_v2_checkpoint__shallow_cloned_table": "Invalid Parquet file",
}
#: Columns that the peer lists although the protocol has no statistics of them.
PEER_LISTS_MORE = {"kernel-rs/void-column": ["null_count.void_col"], "spark/void_column": ["null_count.v"]}


#: If the peer puts the table's folder before an absolute path.
PEER_MISPLACES = {"spark/clone"}
#: Tables without a history in the peer: "Invalid JSON in file stats: invalid value: integer `-1`".
PEER_HAS_NO_HISTORY = {"spark/clone", "spark/clone_emptied_and_filled", "spark/converted_from_parquet"}


def _tables(step: int = 1, but: Iterable[str] = ()) -> list[str]:
    """Return the tables that the peer opens: all of this project but some, and every ``step``-th of the others."""
    found = [r for r in records() if r["expect"]["read"] in ("rows", "state-only") and r["column_mapping"] == "none"]
    opened = [r for r in found if r["id"] not in PEER_REFUSES]
    own = [r["id"] for r in opened if root_of(r) == OWN and r["id"] not in but]
    return [*own, *[r["id"] for r in opened if root_of(r) != OWN][::step]]


def _open(name: str) -> tuple[DeltaTable, Any]:
    path = str(path_of(name))
    return DeltaTable(path), deltalake.DeltaTable(path)


def _known(table: pa.Table) -> Iterator[tuple[str, str, Any]]:
    """Yield (path, column, value) of every value that is known."""
    paths = table.column("path").to_pylist()
    for name in table.column_names:
        for path, value in zip(paths, table.column(name).to_pylist(), strict=True):
            if value is not None and not (isinstance(value, float) and math.isnan(value)):
                yield path, name, value


@pytest.mark.parametrize("name", present(*PEER_REFUSES))
def test_table_that_the_peer_rejects_is_opened(name: str) -> None:
    path = path_of(name)
    assert DeltaTable(path).file_uris()
    with pytest.raises(deltalake.exceptions.DeltaError, match=PEER_REFUSES[name]):
        deltalake.DeltaTable(path)


@pytest.mark.parametrize("name", _tables())
def test_add_actions_have_the_peers_columns_and_values(name: str) -> None:
    ours, theirs = _open(name)
    found, expected = ours.get_add_actions(flatten=True), pa.table(theirs.get_add_actions(flatten=True))
    expected = expected.drop_columns(PEER_LISTS_MORE.get(name, []))
    assert [(f.name, f.type) for f in found.schema] == [(f.name, f.type) for f in expected.schema]
    missing = set(_known(expected)) - set(_known(found))
    assert bool(missing) == (name in PEER_KNOWS_MORE), missing
    assert {(p, "path", p) for p in found.column("path").to_pylist()} == {k for k in _known(expected) if k[1] == "path"}


@pytest.mark.parametrize("name", _tables(6))
def test_nested_add_actions_have_the_peers_types(name: str) -> None:
    ours, theirs = _open(name)
    found, expected = ours.get_add_actions().schema, pa.schema(pa.table(theirs.get_add_actions()).schema)
    more = PEER_LISTS_MORE.get(name, ())
    assert [f.name for f in found] == [f.name for f in expected]
    for mine, other in zip(found, expected, strict=True):
        assert _names(mine) == _names(other, more)


def _names(field: pa.Field, left_out: Sequence[str] = (), parents: str = "") -> Any:
    """Return a field's type without nullability and metadata, and without the fields of some paths."""
    path = parents + field.name
    if path in left_out or not pa.types.is_struct(field.type):
        return None if path in left_out else field.type
    fields = [(f.name, _names(f, left_out, f"{path}.")) for f in field.type]
    return [(name, kind) for name, kind in fields if kind is not None]


@pytest.mark.parametrize("name", _tables(3, PEER_MISPLACES))
def test_files_partitions_and_counts_are_the_peers(name: str) -> None:
    ours, theirs = _open(name)
    assert sorted(ours.file_uris()) == sorted(theirs.file_uris())
    assert sorted(map(_sorted, ours.partitions())) == sorted(map(_sorted, theirs.partitions()))
    deleted = pc.sum(file_table(ours.snapshot()).column("numDeleted")).as_py() or 0
    try:
        # the peer sees neither deleted rows nor statistics that checkpoints keep as structs
        assert ours.count() + deleted >= theirs.count()
    except DataFileNotFoundError:
        assert not all(Path(p.removeprefix("file://")).exists() for p in ours.file_uris())
    assert ours.table_uri == theirs.table_uri
    assert pa.schema(ours.schema()).equals(pa.schema(theirs.schema()), check_metadata=False)
    assert tuple(ours.protocol()) == tuple(theirs.protocol())
    assert json.loads(ours.schema().to_json()) == json.loads(theirs.schema().to_json())
    assert (ours.metadata().id, ours.metadata().created_time) == (theirs.metadata().id, theirs.metadata().created_time)
    assert ours.metadata().configuration == theirs.metadata().configuration


def _sorted(partition: dict[str, Any]) -> str:
    return str(sorted(partition.items()))


@pytest.mark.parametrize("name", _tables(10, PEER_HAS_NO_HISTORY))
def test_history_holds_what_the_peer_states(name: str) -> None:
    ours, theirs = _open(name)
    mine = {h["version"]: h for h in ours.history()}
    for entry in theirs.history():
        del entry["timestamp"]  # the peer shows the writer's time, not the one by which it selects versions
        assert {k: v for k, v in mine[entry["version"]].items() if k in entry} == entry


@pytest.mark.parametrize(
    "name",
    present(
        "spark/vectors_in_one_file",
        "spark/vector_in_the_log",
        "spark/vectors_checkpoint",
        "spark/vectors_of_many_rows",
        "delta/kernel__basic-dv-no-checkpoint",
        "delta/kernel__basic-dv-with-checkpoint",
    ),
)
def test_keep_masks_are_the_peers(name: str) -> None:
    ours, theirs = _open(name)
    found, expected = ours.deletion_vectors().read_all(), pa.table(theirs.deletion_vectors())
    assert found.schema.names == expected.schema.names
    assert found.num_rows
    key = "filepath"
    assert sorted(found.to_pylist(), key=lambda r: r[key]) == sorted(expected.to_pylist(), key=lambda r: r[key])


def test_statistics_under_column_mapping_have_logical_names(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "p": "string"}, partition_by=["p"], column_mapping="name")
    made.append([{"id": 3, "p": "a"}])
    (row,) = DeltaTable(made.uri).get_add_actions(flatten=True).to_pylist()
    assert (row["min.id"], row["max.id"], row["null_count.id"], row["partition.p"]) == (3, 3, 0, "a")


@pytest.mark.parametrize(
    ("properties", "columns"),
    [
        ({}, ["a", "s.x", "s.y", "b"]),
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["a", "s.x"]),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, ["a", "s.x", "s.y", "b"]),
        ({"delta.dataSkippingStatsColumns": "S, `b`"}, ["s.x", "s.y", "b"]),
        ({"delta.dataSkippingStatsColumns": "s.y", "delta.dataSkippingNumIndexedCols": "0"}, ["s.y"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
    ],
)
def test_statistics_columns_are_those_of_the_tables_properties(
    tmp_path: Path, properties: dict[str, str], columns: list[str]
) -> None:
    schema = pa.schema(
        [("a", pa.int64()), ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])), ("b", pa.string())]
    )
    made = TableBuilder(tmp_path / "t").create(schema, properties=properties)
    made.append([{"a": 1, "s": {"x": 2, "y": "z"}, "b": "c"}])
    found = DeltaTable(made.uri).get_add_actions(flatten=True).column_names
    assert [n.removeprefix("min.") for n in found if n.startswith("min.")] == columns


def test_nested_statistics_of_a_file_that_has_none_are_null_as_the_peers(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long", "s": "string"})
    made.append([{"id": 1, "s": "a"}]).append([{"id": 2, "s": None}], statistics=False)
    ours, theirs = (pa.table(t(made.uri).get_add_actions()).sort_by("path") for t in (DeltaTable, deltalake.DeltaTable))
    for name in ("null_count", "min", "max"):
        assert ours.column(name).to_pylist() == theirs.column(name).to_pylist()
        assert ours.column(name).null_count == 1
