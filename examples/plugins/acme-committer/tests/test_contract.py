"""The committer passes its contract, and commits to tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from acme_committer import OPTION, committer

from delta_core import DeltaTable, write_deltalake
from delta_core.api import Committer, open_storage
from delta_core.testing.committer_contract import CommitterContract, MakeCommitter, ReadCommit


class TestCommitter(CommitterContract):
    @pytest.fixture
    def make_committer(self, tmp_path: Path) -> MakeCommitter:
        (tmp_path / "t" / "_delta_log").mkdir(parents=True)

        def make() -> Committer:
            found = committer(open_storage(str(tmp_path / "t")), {OPTION: str(tmp_path / "versions.db")})
            assert found is not None
            return found

        return make

    @pytest.fixture
    def read_commit(self, tmp_path: Path) -> ReadCommit:
        def read(version: int) -> bytes | None:
            path = tmp_path / "t" / "_delta_log" / f"{version:020}.json"
            return path.read_bytes() if path.exists() else None

        return read


def test_table_is_written_by_the_committer(tmp_path: Path) -> None:
    options = {OPTION: str(tmp_path / "versions.db")}
    for _ in range(3):
        write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}), mode="append", storage_options=options)
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().num_rows == 3
    assert (tmp_path / "versions.db").exists()
