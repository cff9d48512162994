"""Files written piece by piece: whole, or nothing is to be seen of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_core.engines.records import RangeRequest
from delta_core.errors import EngineError
from delta_core.storage.stores import open_storage


@pytest.fixture(params=["disk", "memory"])
def storage(request: Any, tmp_path: Path) -> Any:
    return open_storage(str(tmp_path / "t") if request.param == "disk" else f"memory://put-stream-{tmp_path.name}")


def content(storage: Any, path: str) -> bytes:
    return bytes(storage.read([RangeRequest(path)])[0])


def test_pieces_make_the_file_and_its_directories(storage: Any) -> None:
    with storage.put_stream("_delta_log/_sidecars/a") as f:
        f.write(b"one,")
        f.write(b"two")
    assert content(storage, "_delta_log/_sidecars/a") == b"one,two"
    assert storage.list_from("_delta_log/_sidecars").names == ["a"]


def test_present_file_is_replaced_when_the_new_one_is_whole(storage: Any) -> None:
    storage.put("d/a", b"old")
    with storage.put_stream("d/a") as f:
        f.write(b"new")
        f.flush()
        assert content(storage, "d/a") == b"old"
    assert content(storage, "d/a") == b"new"


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_failure_leaves_what_was_there(storage: Any, error: BaseException) -> None:
    storage.put("d/a", b"old")

    def write() -> None:
        with storage.put_stream("d/a") as f:
            f.write(b"ne")
            raise error

    with pytest.raises(type(error)):
        write()
    assert content(storage, "d/a") == b"old"
    assert storage.list_from("d").names == ["a"]


def test_failing_disk_is_an_engine_error(storage: Any) -> None:
    def write() -> None:
        with storage.put_stream("d/a"):
            raise OSError(28, "No space left on device")

    with pytest.raises(EngineError, match="No space left"):
        write()
    assert storage.list_from("d").names == []
