"""StorageContract: the promises of every storage. Subclass it in the storage's tests."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import pyarrow as pa
import pytest

from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.errors import EngineError

__all__ = ["StorageContract", "race"]

RACERS = 16
#: Paths that lead to no storage that this contract is for.
FOREIGN = (
    "http://127.0.0.1:1/f",
    "github://org:repo@main/f",
    "data:text/plain,x",
    "ftp://host/f",
    "simplecache::http://127.0.0.1:1/f",
    "zip://f::http://127.0.0.1:1/f.zip",
    "file://other-host/f",
    "http:f",
    "HTTP://127.0.0.1:1/f",
)


class StorageContract:
    """Tests that a storage does what `delta_core.engines.interface.Storage` specifies.

    A subclass has a fixture ``storage`` that returns an empty one, and may have one ``failing_storage``, which returns
    one whose every call fails for another reason than a missing file.
    """

    # --- listing ---

    def test_names_are_listed_in_byte_order_without_folders(self, storage: Storage) -> None:
        for name in ("b", "a.json", "B", "_x", "10", "2", "sub/inner", "sub2/deep/er"):
            storage.put(f"dir/{name}", b"1")
        assert storage.list_from("dir").names == ["10", "2", "B", "_x", "a.json", "b"]

    def test_listing_begins_at_its_start(self, storage: Storage) -> None:
        names = [f"{v:020d}.json" for v in range(12)] + [f"{5:020d}.checkpoint.parquet", "_last_checkpoint"]
        for name in names:
            storage.put(f"_delta_log/{name}", b"1")
        for start in (f"{5:020d}.", f"{5:020d}.json", f"{5:020d}.k", "_", "", "z"):
            assert storage.list_from("_delta_log", start).names == sorted(n for n in names if n >= start), start

    def test_limited_listing_has_the_first_names(self, storage: Storage) -> None:
        names = [f"{v:020d}.json" for v in range(12)] + ["_last_checkpoint"]
        for name in reversed(names):
            storage.put(f"_delta_log/{name}", b"1")
        for start in ("", f"{5:020d}.json", "z"):
            expected = [n for n in names if n >= start]
            for limit in (1, 3, len(expected), 100):
                found = storage.list_from("_delta_log", start, limit)
                assert len(found.names) >= min(limit, len(expected)), (start, limit)
                assert found.names == expected[: len(found.names)], (start, limit)
                assert found.is_complete == (found.names == expected), (start, limit)
        assert storage.list_from("_delta_log").is_complete

    def test_listing_reports_sizes_and_times_truly_where_it_reports_them(self, storage: Storage) -> None:
        for i in range(3):
            storage.put(f"dir/{i}", b"x" * i)
        found = storage.list_from("dir")
        assert found.sizes in (None, [0, 1, 2])
        assert found.modified_ms is None or all(abs(m - time.time() * 1000) < 600_000 for m in found.modified_ms)

    def test_missing_directory_lists_nothing(self, storage: Storage) -> None:
        assert storage.list_from("no/such/dir").names == []
        assert storage.list_from("no/such/dir", "0").names == []

    def test_listing_sees_what_was_just_written_and_deleted(self, storage: Storage) -> None:
        storage.list_from("dir")
        storage.put("dir/a", b"1")
        assert storage.list_from("dir").names == ["a"]
        storage.put_if_absent("dir/b", b"1")
        assert storage.list_from("dir").names == ["a", "b"]
        storage.delete(["dir/a"])
        assert storage.list_from("dir").names == ["b"]

    # --- reading ---

    def test_ranges_come_in_the_order_requested(self, storage: Storage) -> None:
        data = bytes(range(256)) * 8
        storage.put("f", data)
        storage.put("g", data[::-1])
        ranges = [
            ("g", 5, 3),
            ("f", 2000, 48),
            ("f", 0, 1),
            ("f", 7, None),
            ("g", 0, None),
            ("f", 1, 0),
            ("f", 500, 600),
        ]
        found = storage.read([RangeRequest(*a) for a in ranges])
        files = {"f": data, "g": data[::-1]}
        assert [bytes(b) for b in found] == [files[p][o : None if n is None else o + n] for p, o, n in ranges]

    def test_range_past_the_end_comes_back_short(self, storage: Storage) -> None:
        storage.put("f", b"0123456789")
        assert [bytes(b) for b in storage.read([RangeRequest("f", 8, 100)])] == [b"89"]
        assert [bytes(b) for b in storage.read([RangeRequest("f", 20, 10)])] == [b""]

    def test_empty_file_is_read_whole(self, storage: Storage) -> None:
        storage.put("f", b"")
        assert bytes(storage.read([RangeRequest("f")])[0]) == b""
        assert storage.stat(["f"])[0][0] == 0

    def test_many_reads_at_once_do_not_mix(self, storage: Storage) -> None:
        for i in range(20):
            storage.put(f"f{i}", bytes([i]) * 1000)

        def work(number: int) -> bool:
            order = [(number + i) % 20 for i in range(20)]
            found = storage.read([RangeRequest(f"f{i}", 10, 500) for i in order])
            return [bytes(b) for b in found] == [bytes([i]) * 500 for i in order]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(16)))

    def test_open_reads_at_random(self, storage: Storage) -> None:
        data = bytes(range(256)) * 16
        storage.put("f", data)
        for size in (None, len(data)):
            with storage.open("f", size) as file:
                assert file.size() == len(data)
                file.seek(1000)
                assert file.read(10) == data[1000:1010]
                file.seek(-5, io.SEEK_END)
                assert file.read() == data[-5:]

    def test_identity_changes_with_the_content_and_not_otherwise(self, storage: Storage) -> None:
        storage.put("a", b"123")
        first = storage.identify(["a"])
        assert [identity.size for identity in first] == [3]
        storage.put("b", b"1")
        storage.read([RangeRequest("a")])
        assert storage.identify(["a"]) == first
        time.sleep(0.01)  # the clocks of disks are coarse
        storage.put("a", b"456")
        assert storage.identify(["b", "a"])[1] != first[0]
        storage.delete(["a"])
        with _raises(FileNotFoundError):
            storage.identify(["a"])

    def test_stream_that_replaces_nothing_leaves_the_file_that_is_there(self, storage: Storage) -> None:
        with storage.put_stream("dir/f", replace=False) as file:
            file.write(b"first")
        with _raises(FileExistsError), storage.put_stream("dir/f", replace=False) as file:
            file.write(b"second")
        assert bytes(storage.read([RangeRequest("dir/f")])[0]) == b"first"
        assert storage.list_from("dir").names == ["f"]

    def test_stat_reports_size_and_time(self, storage: Storage) -> None:
        storage.put("a", b"123")
        storage.put("b", b"")
        found = storage.stat(["b", "a"])
        assert [size for size, _ in found] == [0, 3]
        assert all(abs(modified - time.time() * 1000) < 600_000 for _, modified in found)

    def test_missing_file_is_a_file_not_found_error(self, storage: Storage) -> None:
        storage.put("dir/a", b"1")
        for path in ("nothing", "dir/nothing", "no/such/dir/file"):
            with _raises(FileNotFoundError):
                storage.read([RangeRequest(path)])
            with _raises(FileNotFoundError):
                storage.read([RangeRequest("dir/a"), RangeRequest(path, 1, 2)])
            with _raises(FileNotFoundError):
                storage.stat([path])
            with _raises(FileNotFoundError), storage.open(path) as file:
                file.read(1)

    def test_failure_of_the_backend_is_an_engine_error_with_its_cause(self, failing_storage: Storage) -> None:
        calls: list[Callable[[], object]] = [
            lambda: failing_storage.read([RangeRequest("f")]),
            lambda: failing_storage.put("f", b"1"),
            lambda: failing_storage.put_if_absent("f", b"1"),
            lambda: failing_storage.list_from("_delta_log", "0"),
        ]
        for call in calls:
            with _raises(EngineError) as caught:
                call()
            assert caught[0].__cause__ is not None

    # --- names ---

    def test_odd_names_are_kept(self, storage: Storage) -> None:
        names = ["a b", "p=1%2F2", "ü-日本", "x+y&z", "q?a", "h#a", "k=it's", "per%cent"]
        for name in names:
            storage.put(f"dir/{name}", name.encode())
        assert sorted(storage.list_from("dir").names, key=str) == sorted(names)
        found = storage.read([RangeRequest(f"dir/{name}") for name in names])
        assert [bytes(b).decode() for b in found] == names

    def test_uri_leads_to_the_same_file(self, storage: Storage) -> None:
        storage.put("dir/f", b"here")
        uri = storage.uri("dir/f")
        assert uri.endswith("dir/f") and len(uri) > len("dir/f")
        assert bytes(storage.read([RangeRequest(uri)])[0]) == b"here"
        assert storage.uri(uri) == uri
        local = storage.local_path("dir/f")
        assert local is None or bytes(storage.read([RangeRequest(local)])[0]) == b"here"

    # --- the root's boundary ---

    @pytest.mark.parametrize("path", FOREIGN)
    def test_path_to_another_kind_of_store_is_rejected_before_any_call(self, storage: Storage, path: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: storage.read([RangeRequest(path)]),
            lambda: storage.open(path),
            lambda: storage.stat([path]),
            lambda: storage.list_from(path),
            lambda: storage.local_path(path),
            lambda: storage.uri(path),
            lambda: storage.uri_for_engine(path),
        ]
        for call in [*calls, *_writes(storage, path)]:
            with _raises(EngineError):
                call()

    def test_dots_below_the_root_are_resolved(self, storage: Storage) -> None:
        storage.put("dir/f", b"here")
        for path in ("dir/../dir/f", "x/../dir/f", "dir/x/y/../../f", storage.uri("dir") + "/../dir/f"):
            assert bytes(storage.read([RangeRequest(path)])[0]) == b"here"
            assert storage.uri(path) == storage.uri("dir/f")
        storage.put("dir/a..b", b"dots")
        assert bytes(storage.read([RangeRequest("dir/a..b")])[0]) == b"dots"
        storage.delete(["x/../dir/f"])
        assert storage.list_from("dir").names == ["a..b"]

    def test_nothing_outside_the_root_is_written_or_deleted(self, storage: Storage) -> None:
        storage.put("f", b"1")
        outside = storage.uri("f").removesuffix("/f") + "-other/f"
        for path in ("../f", "a/../../f", "/f", outside, storage.uri("f") + "/../../f"):
            for call in _writes(storage, path):
                with _raises(EngineError):
                    call()

    # --- writing ---

    def test_second_put_if_absent_is_rejected_and_changes_nothing(self, storage: Storage) -> None:
        assert storage.put_if_absent("_delta_log/0.json", b"first") == "created"
        assert storage.put_if_absent("_delta_log/0.json", b"second") == "exists"
        assert storage.put_if_absent("_delta_log/0.json", b"third", durable=False) == "exists"
        assert bytes(storage.read([RangeRequest("_delta_log/0.json")])[0]) == b"first"
        assert storage.list_from("_delta_log").names == ["0.json"]

    def test_put_if_absent_takes_pieces(self, storage: Storage) -> None:
        pieces = [b"first", b"", b"second" * 50_000]
        assert storage.put_if_absent("_delta_log/0.json", iter(pieces)) == "created"
        assert storage.put_if_absent("_delta_log/0.json", [b"third"]) == "exists"
        assert bytes(storage.read([RangeRequest("_delta_log/0.json")])[0]) == b"".join(pieces)

    @pytest.mark.parametrize("error", [ValueError("no such text"), OSError("full"), KeyboardInterrupt()])
    def test_put_if_absent_of_pieces_that_fail_leaves_nothing(self, storage: Storage, error: BaseException) -> None:
        def pieces() -> Iterator[bytes]:
            yield b"first"
            raise error

        storage.put("_delta_log/x", b"")
        with pytest.raises(BaseException) as raised:  # an error of the disk may be wrapped
            storage.put_if_absent("_delta_log/0.json", pieces())
        assert error in (raised.value, raised.value.__cause__)
        assert storage.list_from("_delta_log").names == ["x"]
        assert storage.put_if_absent("_delta_log/0.json", b"again") == "created"

    def test_put_if_absent_calls_ready_before_the_file_is_there(self, storage: Storage) -> None:
        storage.put("_delta_log/x", b"")
        seen: list[list[str]] = []
        path = "_delta_log/0.json"
        ready = lambda: seen.append([n for n in storage.list_from("_delta_log").names if n[0] != "."])  # noqa: E731
        assert storage.put_if_absent(path, b"first", ready=ready) == "created"
        assert seen == [["x"]]
        assert bytes(storage.read([RangeRequest(path)])[0]) == b"first"

    @pytest.mark.parametrize("error", [EngineError("not synced"), KeyboardInterrupt()])
    def test_put_if_absent_that_is_not_ready_creates_nothing(self, storage: Storage, error: BaseException) -> None:
        def fail() -> None:
            raise error

        storage.put("_delta_log/x", b"")
        with pytest.raises(type(error)) as raised:
            storage.put_if_absent("_delta_log/0.json", b"first", ready=fail)
        assert raised.value is error
        assert storage.list_from("_delta_log").names == ["x"]
        assert storage.put_if_absent("_delta_log/0.json", b"again") == "created"

    def test_race_for_a_name_is_won_by_exactly_one(self, storage: Storage) -> None:
        storage.put("_delta_log/x", b"")  # the folder is there: the race is for the name alone
        for round_ in range(3):
            path = f"_delta_log/{round_}.json"
            assert race(storage, path, RACERS) == [True], "one winner, whose bytes lie there"
        assert storage.list_from("_delta_log").names == ["0.json", "1.json", "2.json", "x"]

    def test_put_if_absent_is_seen_whole(self, storage: Storage) -> None:
        data = b"0123456789" * 30_000
        stop, seen = [False], set()

        def watch() -> None:
            while not stop[0]:
                try:
                    seen.add(len(storage.read([RangeRequest("_delta_log/big")])[0]))
                except FileNotFoundError:
                    continue

        with ThreadPoolExecutor(2) as pool:
            tasks = [pool.submit(watch) for _ in range(2)]
            try:
                assert storage.put_if_absent("_delta_log/big", data) == "created"
                storage.put("_delta_log/big", data)
                time.sleep(0.01)
            finally:
                stop[0] = True
            for task in tasks:
                task.result()
        assert seen <= {len(data)}

    def test_put_replaces(self, storage: Storage) -> None:
        for data in (b"one", b"two and more", b""):
            storage.put("a/b/c", data)
            assert bytes(storage.read([RangeRequest("a/b/c")])[0]) == data
        assert storage.list_from("a/b").names == ["c"]

    def test_created_file_is_whole_once_closed(self, storage: Storage) -> None:
        with storage.create("new/dir/file") as file:
            for i in range(100):
                file.write(bytes([i]) * 1000)
            assert file.tell() == 100_000
        assert bytes(storage.read([RangeRequest("new/dir/file", 50_000, 1)])[0]) == bytes([50])
        assert storage.stat(["new/dir/file"])[0][0] == 100_000

    def test_stream_replaces_when_it_ends(self, storage: Storage) -> None:
        storage.put("dir/f", b"old")
        with storage.put_stream("dir/f") as file:
            file.write(b"ne")
            assert bytes(storage.read([RangeRequest("dir/f")])[0]) == b"old"
            file.write(b"w")
        assert bytes(storage.read([RangeRequest("dir/f")])[0]) == b"new"
        assert storage.list_from("dir").names == ["f"]

    def test_stream_that_breaks_off_leaves_nothing(self, storage: Storage) -> None:
        storage.put("dir/old", b"old")
        for name in ("old", "new"):
            with _raises(KeyError), storage.put_stream(f"dir/{name}") as file:
                file.write(b"half")
                raise KeyError(name)
        assert storage.list_from("dir").names == ["old"]
        assert bytes(storage.read([RangeRequest("dir/old")])[0]) == b"old"

    def test_delete_takes_missing_files(self, storage: Storage) -> None:
        for i in range(5):
            storage.put(f"dir/{i}", b"1")
        storage.delete([f"dir/{i}" for i in range(8)] + ["no/such/file"])
        storage.delete([])
        assert storage.list_from("dir").names == []

    # --- many files at once ---

    def test_walk_returns_the_files_of_all_folders_that_are_not_skipped(self, storage: Storage) -> None:
        names = ["a", "p=1/b", "p=1/q=x y/c%20d", "_skipped/e", "p=1/_skipped/f", "ü/#?*[0]"]
        for name in names:
            storage.put(name, name.encode())
        asked: list[str] = []

        def skip(folder: str) -> bool:
            asked.append(folder)
            return folder.endswith("_skipped")

        parts = [part.files for part in storage.walk(skip)]
        found = [row for part in parts for row in part.to_pylist()]
        assert sorted(row["path"] for row in found) == sorted(n for n in names if "_skipped" not in n)
        assert all(row["size"] == len(row["path"].encode()) for row in found)
        assert all(abs(row["modified_ms"] - time.time() * 1000) < 600_000 for row in found)
        assert set(asked) == {"p=1", "p=1/q=x y", "_skipped", "p=1/_skipped", "ü"}

    def test_walk_of_some_folders_returns_the_files_below_them_alone(self, storage: Storage) -> None:
        names = ["a", "p=1/b", "p=1/q=x y/c", "p=1/_skipped/d", "p=12/e", "p=2/f", "r/s/t/g"]
        for name in names:
            storage.put(name, b"1")
        asked: list[str] = []

        def skip(folder: str) -> bool:
            asked.append(folder)
            return folder.endswith("_skipped")

        parts = list(storage.walk(skip, ["p=1", "r/s"]))
        found = [path for part in parts for path in part.files.column("path").to_pylist()]
        assert sorted(found) == ["p=1/b", "p=1/q=x y/c", "r/s/t/g"]
        assert set(asked) == {"p=1/q=x y", "p=1/_skipped", "r/s/t"}
        files, folders = storage.list_folders(["", "p=1"])
        assert sorted(files.files.column("path").to_pylist()) == ["a", "p=1/b"]
        assert sorted(folders) == ["p=1", "p=1/_skipped", "p=1/q=x y", "p=12", "p=2", "r"]
        assert files.num_folders == 2

    def test_walk_of_nothing_returns_nothing(self, storage: Storage) -> None:
        assert sum(part.files.num_rows for part in storage.walk(lambda folder: False)) == 0

    def test_files_are_found_and_deleted_many_at_a_time(self, storage: Storage) -> None:
        names = [f"d{i % 7}/f *{i}" for i in range(40)]
        for name in names[:30]:
            storage.put(name, b"12")
        sizes, times = storage.find(pa.array(names, pa.string()))
        assert sizes.tolist() == [2] * 30 + [-1] * 10
        assert [t > 0 for t in times.tolist()] == [True] * 30 + [False] * 10
        storage.delete_files(pa.array(names[:10] + names[35:], pa.string()))
        left, _ = storage.find(pa.array(names, pa.string()))
        assert left.tolist() == [-1] * 10 + [2] * 20 + [-1] * 10
        storage.delete_files(pa.array([], pa.string()))

    def test_folder_with_files_is_not_deleted(self, storage: Storage) -> None:
        storage.put("d/f", b"1")
        storage.delete_folders(["d", "no/such/folder"])
        assert storage.list_from("d").names == ["f"]

    @pytest.mark.parametrize("path", ["../x", "a/../../x", "/x"])
    def test_nothing_outside_the_root_is_deleted(self, storage: Storage, path: str) -> None:
        with _raises(EngineError):
            storage.delete_files(pa.array(["a", path]))


def race(storage: Storage, path: str, racers: int) -> list[bool]:
    """Let threads claim one name at once.

    Returns one entry a winner: whether what lies there then is what it put.
    """
    barrier = Barrier(racers)

    def claim(number: int) -> bool:
        barrier.wait()
        return storage.put_if_absent(path, b"%d" % number) == "created"

    with ThreadPoolExecutor(racers) as pool:
        won = list(pool.map(claim, range(racers)))
    (found,) = storage.read([RangeRequest(path)])
    return [int(bytes(found)) == number for number, is_winner in enumerate(won) if is_winner]


def _writes(storage: Storage, path: str) -> list[Callable[[], object]]:
    """Return every call that writes or deletes."""
    return [
        lambda: storage.put(path, b"1"),
        lambda: storage.put_if_absent(path, b"1"),
        lambda: storage.create(path),
        lambda: storage.delete([path]),
        lambda: _put_stream(storage, path),
    ]


def _put_stream(storage: Storage, path: str) -> None:
    with storage.put_stream(path) as file:
        file.write(b"1")


@contextmanager
def _raises(kind: type[BaseException]) -> Iterator[list[BaseException]]:
    caught: list[BaseException] = []
    try:
        yield caught
    except kind as e:
        caught.append(e)
    else:
        raise AssertionError(f"expected {kind.__name__}, nothing was raised")
