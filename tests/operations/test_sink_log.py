"""Folders that a streaming query of Spark wrote: its log decides which files a conversion takes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake
from delta_core.errors import InvalidArgumentError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"part-{number} a.parquet")
    (tmp_path / "_spark_metadata").mkdir()
    return tmp_path


def _log(folder: Path, name: str, *actions: tuple[str, int]) -> None:
    lines = [
        json.dumps({"path": f"file:///elsewhere/{folder.name}/part-{n}%20a.parquet", "size": 1, "action": action})
        for action, n in actions
    ]
    (folder / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))


def _ids(folder: Path) -> list[int]:
    return sorted(DeltaTable(folder).to_pyarrow_table()["id"].to_pylist())


def test_files_that_the_log_does_not_name_are_left_out(folder: Path) -> None:
    _log(folder, "0", ("add", 0))
    _log(folder, "1", ("add", 2))
    convert_to_deltalake(folder)
    assert _ids(folder) == [0, 2]


def test_files_from_the_last_compacted_batch_on_are_taken(folder: Path) -> None:
    _log(folder, "8", ("add", 3))
    _log(folder, "9.compact", ("add", 0), ("add", 1))
    _log(folder, "10", ("add", 2), ("delete", 1))
    convert_to_deltalake(folder)
    assert _ids(folder) == [0, 2]


def test_all_files_are_taken_if_the_log_is_not_requested_or_empty(folder: Path) -> None:
    assert convert_to_deltalake(folder, dry_run=True) == {"num_files": 4}
    _log(folder, "0", ("add", 0))
    convert_to_deltalake(folder, use_sink_log=False)
    assert _ids(folder) == [0, 1, 2, 3]


def test_a_file_of_the_log_that_is_gone_is_named(folder: Path) -> None:
    _log(folder, "0", ("add", 0), ("add", 7))
    with pytest.raises(InvalidArgumentError, match=r"part-7 a\.parquet, which is not there"):
        convert_to_deltalake(folder)
    assert not DeltaTable.is_deltatable(folder)


def test_a_log_that_can_not_be_read_is_named(folder: Path) -> None:
    (folder / "_spark_metadata" / "0").write_text("v1\nnone")
    with pytest.raises(InvalidArgumentError, match="_spark_metadata/0 is no log"):
        convert_to_deltalake(folder)


@pytest.mark.parametrize("text", ["", "v2\n", '{"path": "x", "action": "add"}', "\xff\xfe"])
def test_a_log_of_another_version_is_named(folder: Path, text: str) -> None:
    (folder / "_spark_metadata" / "0").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidArgumentError, match=r"_spark_metadata/0 .* expected v1\. Restore"):
        convert_to_deltalake(folder)


@pytest.mark.parametrize("line", ['{"path": "x"}', '{"path": "x", "action": "move"}', '{"path": 1, "action": "add"}'])
def test_an_action_that_is_not_known_is_named(folder: Path, line: str) -> None:
    (folder / "_spark_metadata" / "0").write_text(f"v1\n{line}")
    with pytest.raises(InvalidArgumentError, match="_spark_metadata/0 is no log"):
        convert_to_deltalake(folder)


@pytest.mark.parametrize(("names", "lacks"), [(["1", "2"], 0), (["0", "2"], 1), (["9.compact", "11"], 10)])
def test_a_batch_that_is_gone_is_named(folder: Path, names: list[str], lacks: int) -> None:
    for number, name in enumerate(names):
        _log(folder, name, ("add", number))
    with pytest.raises(InvalidArgumentError, match=f"lacks batch {lacks}, before {names[-1]}"):
        convert_to_deltalake(folder)
    assert not DeltaTable.is_deltatable(folder)
