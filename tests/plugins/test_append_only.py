"""Feature appendOnly: readers ignore it; writers reject commits that remove rows while a property is on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.errors import UnsupportedOperationError
from delta_core.kernel.commit.intents import REMOVED_FILE
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.feature_contract import FeatureContract, attempt_view, table_state
from tests.plugins.written import append, begin, create, overwrite, peer_rows, rows

NAME = "appendOnly"
ON = {"delta.appendOnly": "true"}
ID = [{"name": "id", "type": "long"}]


class TestAppendOnly(FeatureContract):
    name = NAME

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties=ON)]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties=ON).is_active(self.name)
        assert not table_state([self.name], properties={"delta.appendOnly": "false"}).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    @pytest.mark.parametrize(("value", "wanted"), [("true", [NAME]), ("TRUE", [NAME]), ("false", [])])
    def test_property_requires_the_feature(self, value: str, wanted: list[str]) -> None:
        metadata = Metadata("a", "", configuration={"delta.appendOnly": value})
        assert self.alone().collect("required_features", metadata=metadata) == wanted

    @pytest.mark.parametrize("before", [{}, ON])
    def test_property_before_the_commit_counts(self, before: dict[str, str]) -> None:
        after = table_state([NAME], properties={} if before else ON)
        removes = pa.table({"path": ["f"], "dataChange": [True]})
        attempt = attempt_view(after, previous=table_state([NAME], properties=before), removes=removes)
        if not before:
            self.alone().check("check_commit", attempt=attempt)
            return
        with pytest.raises(UnsupportedOperationError, match="append-only"):
            self.alone().check("check_commit", attempt=attempt)

    def test_first_commit_has_nothing_to_protect(self) -> None:
        attempt = attempt_view(table_state([NAME], properties=ON), previous=None, removes=REMOVED_FILE.empty_table())
        self.alone().check("check_commit", attempt=attempt)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = create(tmp_path / "t", ID, properties=ON)
    append(made, {"id": [1, 2]})
    return made


def test_rows_are_appended_and_a_peer_reads_them(uri: str) -> None:
    append(uri, {"id": [3]})
    assert rows(uri) == [1, 2, 3]
    assert peer_rows(uri) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("options", [{}, {"replace_where": "id = 1"}])
def test_overwriting_is_rejected_and_leaves_the_table_as_it_was(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedOperationError, match="append-only"):
        overwrite(uri, {"id": [1]}, **options)
    assert open_snapshot(uri).version == 1
    assert rows(uri) == [1, 2]


def test_rows_may_be_rearranged(uri: str) -> None:
    transaction = begin(uri, "OPTIMIZE")
    files = open_snapshot(uri).scan().files()
    kept = pa.repeat(pa.scalar(False), files.num_rows)
    transaction.remove_files(files.set_column(files.schema.get_field_index("dataChange"), "dataChange", kept))
    moved = files.set_column(files.schema.get_field_index("dataChange"), "dataChange", kept)
    moved = moved.set_column(0, "path", pa.array(["elsewhere.parquet"]))
    transaction.add_files(
        moved.append_column("numRecords", pa.array([2], pa.int64())).append_column("fresh", pa.array([True]))
    )
    assert transaction.commit().version == 2
