"""The format passes its contract, and its tables are opened by what they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from acme_format import FORMAT

from delta_core import open_table
from delta_core.api import TableFormat
from delta_core.testing.format_contract import FormatContract, FormatExample

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})


def write(folder: Path, version: int, rows: pa.Table) -> None:
    with pa.ipc.new_file(str(folder / f"version-{version}.arrow"), rows.schema) as file:
        file.write_table(rows)


class TestFormat(FormatContract):
    @pytest.fixture
    def table_format(self) -> TableFormat:
        return FORMAT

    @pytest.fixture
    def example(self, tmp_path: Path) -> FormatExample:
        folder = tmp_path / "t"
        folder.mkdir()
        write(folder, 0, ROWS.slice(0, 1))
        write(folder, 1, ROWS)
        return FormatExample(str(folder), ROWS, "id > 1", ROWS.slice(1))


def test_folder_is_opened_as_a_table(tmp_path: Path) -> None:
    write(tmp_path, 0, ROWS)
    assert open_table(str(tmp_path)).scan(["id"], predicate="name IS NULL").to_table().to_pydict() == {"id": [2]}
