"""The command statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core import write_deltalake


def test_statistics_are_added_and_counted(run: Any, tmp_path: Path) -> None:
    properties = {"delta.dataSkippingNumIndexedCols": "0"}
    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"], configuration=properties)
    run("alter", tmp_path, "set-property", "delta.dataSkippingNumIndexedCols=32")
    assert run("statistics", tmp_path, "--dry-run", "--json").json == {"version": 1, "files": 1}
    assert run("statistics", tmp_path, "--where", "p = 'b'", "--json").json == {"version": 1, "files": 0}
    assert run("statistics", tmp_path, "--json").json == {"version": 2, "files": 1}
    assert run("statistics", tmp_path, "--where", "id = 1").code == 2
