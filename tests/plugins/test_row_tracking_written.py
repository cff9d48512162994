"""Feature rowTracking, written: fresh ids after the mark, rebased when a race is lost, carried when rows move."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from delta_core.errors import CorruptTableError, InvalidArgumentError, SchemaError, UnsupportedOperationError
from delta_core.kernel.commit.intents import READ_FILE
from delta_core.kernel.commit.transaction import CommitResult
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.rules import ActionColumn, ExtraAction, HiddenColumn
from delta_core.kernel.protocol.actions import ADDED_FILE
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernel.write.files import write_files
from delta_core.kernels.row_set import RowSet
from delta_core.testing.feature_contract import attempt_view, table_state
from delta_plugins.row_tracking.write import commit_rules
from tests.plugins.written import append, begin, create, overwrite

ID = [{"name": "id", "type": "long"}]
SWITCH = "delta.enableRowTracking"
ON = {SWITCH: "true"}
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
MARK = '{{"rowIdHighWaterMark":{}}}'


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return create(tmp_path / "t", ID, properties=ON)


def ids(uri: str) -> dict[int, tuple[int, int]]:
    """Row id and row commit version of every row by its value."""
    found = open_snapshot(uri).scan(metadata=["_row_id", "_row_commit_version"]).to_table().to_pylist()
    return {r["id"]: (r["_row_id"], r["_row_commit_version"]) for r in found}


def actions(uri: str, version: int, kind: str) -> list[dict[str, Any]]:
    text = (Path(uri) / "_delta_log" / f"{version:020d}.json").read_text()
    return [found[kind] for line in text.splitlines() if kind in (found := json.loads(line))]


def set_properties(uri: str, properties: Mapping[str, str], operation: str = "SET TBLPROPERTIES") -> CommitResult:
    transaction = begin(uri, operation)
    metadata = transaction.table.metadata
    transaction.set_metadata(replace(metadata, configuration={**metadata.configuration, **properties}))
    return transaction.commit()


# --- assignment ----------------------------------------------------------------------------


def added(*counts: int | None, fresh: Iterable[bool | None] = (), base: Iterable[int | None] = ()) -> pa.Table:
    columns = {f.name: pa.nulls(len(counts), f.type) for f in ADDED_FILE}
    columns["path"] = pa.array([f"f{i}" for i in range(len(counts))])
    columns["numRecords"] = pa.array(counts, pa.int64())
    columns["fresh"] = pa.array(list(fresh) or [True] * len(counts), pa.bool_())
    columns["baseRowId"] = pa.array(list(base) or [None] * len(counts), pa.int64())
    return pa.table(columns)


def assigned(
    adds: pa.Table, mark: int | None = None, properties: Mapping[str, str] = ON
) -> tuple[list[Any], int | None]:
    """The base row ids that an attempt returns, and the mark that it writes."""
    domains = {} if mark is None else {"delta.rowTracking": MARK.format(mark)}
    state = table_state(["rowTracking"], properties=properties, domains=domains)
    rules = list(commit_rules(attempt_view(state, adds=adds)))
    columns = {r.field: r.values.to_pylist() for r in rules if isinstance(r, ActionColumn)}
    marks = [json.loads(r.value["configuration"])["rowIdHighWaterMark"] for r in rules if isinstance(r, ExtraAction)]
    return columns.get("baseRowId", adds.column("baseRowId").to_pylist()), marks[0] if marks else None


def test_ids_begin_at_zero_and_go_on_behind_the_mark() -> None:
    assert assigned(added(3, 2)) == ([0, 3], 4)
    assert assigned(added(3, 2), mark=9) == ([10, 13], 14)


def test_file_that_is_added_again_keeps_its_id_and_the_mark_stays() -> None:
    assert assigned(added(3, fresh=[False], base=[7]), mark=9) == ([7], None)


def test_file_that_is_added_again_without_an_id_gets_one() -> None:
    assert assigned(added(3, fresh=[False]), mark=9) == ([10], 12)


def test_new_file_gets_an_id_of_its_own_whatever_it_provides() -> None:
    assert assigned(added(3, base=[0]), mark=9) == ([10], 12)


def test_ids_are_given_where_the_feature_is_supported_and_off() -> None:
    assert assigned(added(3), properties={}) == ([0], 2)


def test_ids_that_files_provide_along_are_not_given_again() -> None:
    assert assigned(added(3, 2, fresh=[False, True], base=[40, None]), mark=9) == ([40, 43], 44)
    assert assigned(added(3, fresh=[False], base=[40]), mark=9) == ([40], 42)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", MARK.format("true"), MARK.format(-2), MARK.format(2**63)])
def test_no_ids_are_given_after_a_mark_that_is_damaged(text: str) -> None:
    state = table_state(["rowTracking"], properties=ON, domains={"delta.rowTracking": text})
    with pytest.raises(CorruptTableError, match=r"Domain delta\.rowTracking"):
        list(commit_rules(attempt_view(state, adds=added(3))))


def test_suspended_table_returns_none() -> None:
    assert assigned(added(3), properties={"delta.rowTrackingSuspended": "true"}) == ([None], None)


def test_rows_that_are_not_counted_get_no_ids() -> None:
    with pytest.raises(InvalidArgumentError, match="f1"):
        assigned(added(3, None))


@given(st.lists(st.tuples(st.integers(0, 1000), st.booleans()), max_size=20), st.integers(2000, 10**6))
def test_fresh_ranges_never_overlap_and_end_at_the_mark(files: list[tuple[int, bool]], mark: int) -> None:
    table = added(*[n for n, _ in files], fresh=[f for _, f in files], base=[None if f else 5 for _, f in files])
    base, new = assigned(table, mark=mark)
    given_ids = [i for (n, fresh), b in zip(files, base, strict=True) if fresh for i in range(b, b + n)]
    assert len(set(given_ids)) == len(given_ids)
    assert not given_ids or (min(given_ids) == mark + 1 and max(given_ids) == new)
    assert given_ids or new is None
    assert [b for (_, fresh), b in zip(files, base, strict=True) if not fresh] == [5] * sum(not f for _, f in files)


# --- tables --------------------------------------------------------------------------------


def test_rows_have_ids_and_the_version_that_provided_them(uri: str) -> None:
    append(uri, {"id": [10, 11]})
    append(uri, {"id": [12]})
    assert ids(uri) == {10: (0, 1), 11: (1, 1), 12: (2, 2)}
    assert open_snapshot(uri).domains() == {"delta.rowTracking": MARK.format(2)}
    (info,) = actions(uri, 2, "commitInfo")
    assert info["tags"] == {"delta.rowTracking.preserved": "true"}


def test_names_of_hidden_columns_are_given_once(uri: str) -> None:
    first = open_snapshot(uri).metadata.configuration
    assert first[ROW_ID_COLUMN].startswith("_row-id-col-")
    set_properties(uri, {"a": "b"})
    assert open_snapshot(uri).metadata.configuration == {**first, "a": "b"}
    overwrite(uri, {"id": pa.array(["now text"])}, schema_mode="overwrite")
    assert open_snapshot(uri).metadata.configuration[ROW_ID_COLUMN] == first[ROW_ID_COLUMN]


def test_new_rows_have_no_hidden_columns_in_their_files(uri: str) -> None:
    append(uri, {"id": [10]})
    (path,) = Path(uri).glob("*.parquet")
    assert pq.read_schema(path).names == ["id"]


def test_loser_of_a_race_has_its_ids_behind_the_winners(uri: str) -> None:
    slow = begin(uri)
    slow.add_files(write_files(slow.context.log.engine, slow.plan, pa.table({"id": [1, 2, 3]})).files)
    append(uri, {"id": [10, 11]})
    append(uri, {"id": [12]})
    result = slow.commit()
    assert (result.version, result.attempts) == (3, 2)
    assert ids(uri) == {10: (0, 1), 11: (1, 1), 12: (2, 2), 1: (3, 3), 2: (4, 3), 3: (5, 3)}
    assert open_snapshot(uri).domains() == {"delta.rowTracking": MARK.format(5)}


def test_ids_are_not_given_again_after_their_rows_are_gone(uri: str) -> None:
    append(uri, {"id": [10, 11]})
    overwrite(uri, {"id": [12]})
    assert ids(uri) == {12: (2, 2)}


def test_rows_that_stay_beside_replaced_ones_keep_id_and_version(uri: str) -> None:
    append(uri, {"id": [10, 11, 12]})
    overwrite(uri, {"id": [11]}, replace_where="id = 11")
    assert ids(uri) == {10: (0, 1), 12: (2, 1), 11: (ids(uri)[11][0], 2)}
    assert ids(uri)[11][0] > 2
    assert open_snapshot(uri).scan().to_table().schema.names == ["id"]


def test_ids_stay_through_vectors_and_moves(tmp_path: Path) -> None:
    uri = create(tmp_path / "v", ID, properties={**ON, "delta.enableDeletionVectors": "true"})
    append(uri, {"id": [10, 11, 12]})
    transaction = begin(uri, "DELETE")
    assert transaction.base is not None
    transaction.remove_rows(transaction.base.scan().files(), RowSet.from_positions([1]))
    transaction.commit()
    assert ids(uri) == {10: (0, 1), 12: (2, 1)}
    (add,), (remove,) = actions(uri, 2, "add"), actions(uri, 2, "remove")
    assert (add["baseRowId"], remove["baseRowId"], add["defaultRowCommitVersion"]) == (0, 0, 1)
    assert actions(uri, 2, "domainMetadata") == []
    overwrite(uri, {"id": [10]}, replace_where="id = 10")
    assert ids(uri)[12] == (2, 1)


def test_moving_rows_without_their_ids_is_rejected(uri: str) -> None:
    append(uri, {"id": [10]})
    transaction = begin(uri, "OPTIMIZE")
    with pytest.raises(InvalidArgumentError, match="without _row_id"):
        write_files(transaction.context.log.engine, transaction.plan, pa.table({"id": [10]}), data_change=False)


# --- switching it on -----------------------------------------------------------------------


def test_table_with_rows_that_have_no_ids_is_not_switched_on(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", ID)
    append(uri, {"id": [1]})
    append(uri, {"id": [2]})
    with pytest.raises(UnsupportedOperationError, match="2 files of the table have no row ids"):
        set_properties(uri, ON)
    assert open_snapshot(uri).version == 2


def test_empty_table_is_switched_on(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", ID)
    set_properties(uri, ON)
    append(uri, {"id": [1]})
    assert ids(uri) == {1: (0, 2)}


def test_table_is_switched_on_once_every_file_has_ids(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", ID)
    append(uri, {"id": [1, 2]})
    upgrade = begin(uri, "UPGRADE")
    upgrade.set_metadata(upgrade.table.metadata, features=["rowTracking"])
    upgrade.commit()
    append(uri, {"id": [3]})
    with pytest.raises(UnsupportedOperationError, match="1 file of the table have no row ids"):
        set_properties(uri, ON)
    backfill = begin(uri, "ROW TRACKING BACKFILL")
    assert backfill.base is not None
    old = backfill.base.scan(predicate="id < 3").files(READ_FILE)
    kept = pa.repeat(pa.scalar(False), old.num_rows)
    old = old.drop_columns([c for c in ("dataChange", "dvId") if c in old.column_names])
    backfill.add_files(old.append_column("dataChange", kept).append_column("fresh", kept))
    backfill.commit()
    set_properties(uri, ON)
    assert ids(uri) == {3: (0, 3), 1: (1, 4), 2: (2, 4)}


def test_loser_takes_the_ids_that_a_backfill_returned(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", ID, properties={"delta.enableDeletionVectors": "true"})
    append(uri, {"id": [1, 2, 3]})
    upgrade = begin(uri, "UPGRADE")
    upgrade.set_metadata(upgrade.table.metadata, features=["rowTracking"])
    upgrade.commit()
    drops, backfill = begin(uri, "DELETE"), begin(uri, "ROW TRACKING BACKFILL")
    assert drops.base is not None
    files = drops.base.files.columns(READ_FILE)
    drops.remove_rows(files, RowSet.from_positions([0]))
    plain = files.drop_columns([c for c in ("dataChange", "dvId") if c in files.column_names])
    backfill.add_files(plain.append_column("dataChange", pa.array([False])).append_column("fresh", pa.array([False])))
    backfill.commit()
    drops.commit()
    (add,), (remove,) = actions(uri, 4, "add"), actions(uri, 4, "remove")
    assert (add["baseRowId"], remove["baseRowId"], add["defaultRowCommitVersion"]) == (0, 0, 3)


def test_ids_on_and_suspended_at_once_are_rejected(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="at most one of the two"):
        set_properties(uri, {"delta.rowTrackingSuspended": "true"})


def test_suspended_table_gets_rows_without_ids(uri: str) -> None:
    append(uri, {"id": [1]})
    set_properties(uri, {SWITCH: "false", "delta.rowTrackingSuspended": "true"})
    append(uri, {"id": [2]})
    assert ids(uri) == {1: (0, 1), 2: (None, None)}
    set_properties(uri, {"delta.rowTrackingSuspended": "false"})
    append(uri, {"id": [3]})
    assert ids(uri)[3] == (1, 5)


def test_hidden_columns_may_not_be_named_like_columns_nor_change(uri: str) -> None:
    name = open_snapshot(uri).metadata.configuration[ROW_ID_COLUMN]
    with pytest.raises(InvalidArgumentError, match="is kept by the feature rowTracking"):
        set_properties(uri, {ROW_ID_COLUMN: "other"})
    with pytest.raises(SchemaError, match="a column's name too"):
        append(uri, {"id": [1], name: [1]}, schema_mode="merge")


def test_iceberg_3_has_hidden_columns_by_their_ids() -> None:
    properties = {**ON, ROW_ID_COLUMN: "_a", "delta.rowTracking.materializedRowCommitVersionColumnName": "_b"}
    for more, wanted in (({}, [None, None]), ({"delta.enableIcebergCompatV3": "true"}, [2147483540, 2147483539])):
        state = table_state(["rowTracking", "icebergCompatV3"], properties={**properties, **more})
        plugin = PluginRegistry().load("rowTracking")
        rules = list(plugin.write_rules(state))
        assert all(isinstance(r, HiddenColumn) for r in rules)
        assert [(r.name, r.field_id, r.carries) for r in rules] == [
            ("_a", wanted[0], "_row_id"),
            ("_b", wanted[1], "_row_commit_version"),
        ]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_ids_of_concurrent_appends_are_all_different(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    uri = create(tmp_path_factory.mktemp("t") / "t", ID, properties=ON)
    waiting = []
    for number, size in enumerate(sizes):
        transaction = begin(uri)
        values = pa.table({"id": [100 * number + i for i in range(size)]})
        transaction.add_files(write_files(transaction.context.log.engine, transaction.plan, values).files)
        waiting.append(transaction)
    for transaction in waiting:
        transaction.commit()
    found = ids(uri)
    assert sorted(i for i, _ in found.values()) == list(range(sum(sizes)))
