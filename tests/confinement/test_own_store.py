"""Paths on the table's own kind of store: followed as shallow clones need it, or not at all if so requested."""

from __future__ import annotations

import uuid
from pathlib import Path
from urllib.parse import unquote

import fsspec
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.records import RangeRequest
from delta_core.errors import CorruptTableError, EngineError, ExternalPathError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.storage.stores import open_storage
from tests.confinement.hostile import IDS, STOLEN, Spies, files_below, hostile, parquet

PATHS = {
    "dots": "../victim/f.parquet",
    "encoded dots": "%2e%2e/victim/f.parquet",
    "half encoded dots": ".%2E/victim/f.parquet",
    "dots in the middle": "a/../../victim/f.parquet",
    "absolute": "{victim}/f.parquet",
    "encoded absolute": "%2F{victim}/f.parquet",
    "two slashes": "/{victim}/f.parquet",
    "URI": "file://{victim}/f.parquet",
    "short URI": "file:{victim}/f.parquet",
    "URI with host": "file://localhost{victim}/f.parquet",
    "URI with dots": "file://{victim}/../victim/f.parquet",
    "URI that leaves the root": "file://{root}/../victim/f.parquet",
    "upper case": "FILE://{victim}/f.parquet",
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "f.parquet").write_bytes(parquet(STOLEN))
    return folder


@pytest.mark.parametrize("what", PATHS)
def test_local_path_out_of_the_root_is_followed_unless_the_caller_forbids_it(
    tmp_path: Path, victim: Path, what: str
) -> None:
    path = PATHS[what].format(victim=victim, root=tmp_path / "t")
    table = hostile(tmp_path / "t", path)
    found = DeltaTable(table.uri)
    assert sorted(found.to_pyarrow_table().column("id").to_pylist()) == [*IDS, *STOLEN]
    assert {Path(u).resolve() for u in found.file_uris()} >= {victim / "f.parquet"}
    confined = DeltaTable(table.uri, allow_external=False)
    with pytest.raises(ExternalPathError, match="only files below the root are read"):
        confined.to_pyarrow_table()
    assert len(confined.file_uris()) == 2


@pytest.mark.parametrize(
    "path", ["a/../own.parquet", "%61/%2e%2e/own.parquet", "{root}/own.parquet", "file://{root}/own.parquet"]
)
def test_path_that_comes_back_to_the_root_is_read_whatever_is_forbidden(tmp_path: Path, path: str) -> None:
    table = hostile(tmp_path / "t", path.format(root=tmp_path / "t"))
    table.write("own.parquet", parquet([4]))
    assert sorted(DeltaTable(table.uri, allow_external=False).to_pyarrow_table().column("id").to_pylist()) == [*IDS, 4]


@pytest.mark.parametrize("name", ["..f.parquet", "f..parquet", "%252e%252e", "a%3Ab", "file%3A%2F%2Fx", "..."])
def test_names_that_only_look_like_ways_out_are_names(tmp_path: Path, name: str) -> None:
    for place in (str(tmp_path / "t"), f"memory://{uuid.uuid4().hex}/t"):
        table = hostile(place, name)
        table.write(unquote(name), parquet([4]))
        assert sorted(DeltaTable(place, allow_external=False).to_pyarrow_table().column("id").to_pylist()) == [*IDS, 4]


@pytest.mark.parametrize("path", ["own.parquet%00", "own.parquet%00/x", "%00own.parquet", "own.parquet\0"])
def test_null_character_does_not_end_a_name(tmp_path: Path, path: str) -> None:
    for place in (str(tmp_path / "t"), f"memory://{uuid.uuid4().hex}/t"):
        table = hostile(place, path)
        table.write("own.parquet", parquet([4]))
        with pytest.raises(EngineError, match="null character"):
            DeltaTable(place).to_pyarrow_table()


def test_link_in_the_root_is_followed(tmp_path: Path, victim: Path) -> None:
    table = hostile(tmp_path / "t", "linked/f.parquet")
    (tmp_path / "t" / "linked").symlink_to(victim)
    assert sorted(DeltaTable(table.uri, allow_external=False).to_pyarrow_table().column("id").to_pylist()) == [
        *IDS,
        *STOLEN,
    ]


@pytest.mark.parametrize(
    "path", ["../../../f.parquet", "memory://own/../../f.parquet", "%2e%2e/%2e%2e/%2e%2e/f.parquet"]
)
def test_path_that_climbs_out_of_its_bucket_is_rejected(spies: Spies, path: str) -> None:
    table = hostile(f"memory://own/{uuid.uuid4().hex}", path)
    with pytest.raises(ExternalPathError, match="climbs above the root of its store"):
        DeltaTable(table.uri).to_pyarrow_table()
    assert spies.seen == []


@pytest.mark.parametrize(
    "path", ["%252e%252e/secret.parquet", "a/.%252E/%252e./secret.parquet", "foreign://host/t/%252e%252e/secret"]
)
def test_dots_that_a_server_would_decode_are_rejected(spies: Spies, path: str) -> None:
    table = hostile("foreign://host/t", path)
    spies_before = len(spies.seen)
    with pytest.raises(ExternalPathError, match="encoded dots"):
        DeltaTable(table.uri).to_pyarrow_table()
    assert not any("secret" in str(call) for call in spies.seen[spies_before:])


def test_other_hosts_of_an_unknown_kind_of_store_are_rejected(spies: Spies) -> None:
    table = hostile("foreign://own/t", "foreign://host/f.parquet")
    with pytest.raises(ExternalPathError, match="is not sent the table's credentials"):
        DeltaTable(table.uri).to_pyarrow_table()
    assert "/host/f.parquet" not in spies.seen
    found = DeltaTable(table.uri, allow_external=["foreign://host"]).to_pyarrow_table()
    assert sorted(found.column("id").to_pylist()) == [*IDS, *STOLEN]


def test_clone_within_a_store_is_read(spies: Spies) -> None:
    own = uuid.uuid4().hex
    fsspec.filesystem("memory").pipe_file(f"/{own}/other/f.parquet", parquet(STOLEN))
    for path in (
        f"memory://{own}/other/f.parquet",
        "/other/f.parquet",
        "../other/f.parquet",
        "memory://victim/f.parquet",
    ):
        table = hostile(f"memory://{own}/t", path)
        assert sorted(DeltaTable(table.uri).to_pyarrow_table().column("id").to_pylist()) == [*IDS, *STOLEN]
        if path != "../other/f.parquet":
            with pytest.raises(ExternalPathError):
                DeltaTable(table.uri, allow_external=False).to_pyarrow_table()


# --- writing and deleting ------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["../victim/f.parquet", "{victim}/f.parquet", "file://{victim}/f.parquet", "a/../../victim/f.parquet"]
)
def test_nothing_outside_the_root_is_deleted_or_written(tmp_path: Path, victim: Path, path: str) -> None:
    before = files_below(victim)
    path = path.format(victim=victim)
    storage = open_storage(str(tmp_path / "t"), None, [str(victim)])
    assert len(storage.read([RangeRequest(path)])[0]) == len(before["f.parquet"])
    for call in (
        lambda: storage.delete([path]),
        lambda: storage.put(path, b""),
        lambda: storage.put_if_absent(path + "2", b""),
        lambda: storage.create(path),
        lambda: storage.delete(["a", path]),
    ):
        with pytest.raises(ExternalPathError, match="written or deleted"):
            call()
    assert files_below(victim) == before


def test_deleting_a_link_spares_what_it_leads_to(tmp_path: Path, victim: Path) -> None:
    root = tmp_path / "t"
    root.mkdir()
    (root / "link").symlink_to(victim / "f.parquet")
    (root / "folder").symlink_to(victim)
    (root / "inside").symlink_to(root)
    (root / "f").write_bytes(b"1")
    storage = open_storage(str(root))
    storage.delete(["link"])
    assert not (root / "link").is_symlink()
    with pytest.raises(ExternalPathError, match="symbolic link"):
        storage.delete(["folder/f.parquet"])
    assert (victim / "f.parquet").exists()
    storage.delete(["inside/f"])
    assert not (root / "f").exists()


def test_root_that_is_a_link_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "t").symlink_to(tmp_path / "real")
    storage = open_storage(str(tmp_path / "t"))
    storage.put("dir/f", b"1")
    storage.delete(["dir/f"])
    assert files_below(tmp_path / "real") == {}


@pytest.mark.parametrize("path", ["../victim/f.parquet", "file://{victim}/f.parquet", "linked/f.parquet"])
@pytest.mark.parametrize("mode", ["all", "predicate"])
def test_overwrite_leaves_files_outside_the_root_alone(tmp_path: Path, victim: Path, path: str, mode: str) -> None:
    before = files_below(victim)
    table = hostile(tmp_path / "t", path.format(victim=victim))
    (tmp_path / "t" / "linked").symlink_to(victim)
    predicate = None if mode == "all" else f"id = {STOLEN[0]}"
    write_deltalake(table.uri, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", predicate=predicate)
    left = [] if mode == "all" else IDS
    assert sorted(DeltaTable(table.uri).to_pyarrow_table().column("id").to_pylist()) == left
    assert files_below(victim) == before


@pytest.mark.parametrize(
    "value", ["../../evil", "/evil", "..", ".", "file:///evil", "%2e%2e/%2e%2e/evil", "a/../../../evil"]
)
def test_partition_values_write_below_the_root(tmp_path: Path, value: str) -> None:
    root = tmp_path / "deep" / "t"
    rows = pa.table({"id": pa.array([1], pa.int64()), "p": [value]})
    write_deltalake(str(root), rows, partition_by=["p"])
    written = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert all(p.is_relative_to(root) for p in written)
    found = open_snapshot(str(root), allow_external=False).scan().to_table()
    assert found.to_pylist() == [{"id": 1, "p": value}]


@pytest.mark.parametrize(
    "path",
    [
        "../../../victim/f.parquet",
        "{victim}/f.parquet",
        "file://{victim}/f.parquet",
        "http://127.0.0.1:1/f",
        "..%2F..%2F..%2Fvictim%2Ff.parquet",
        "{victim}/_sidecars/f.parquet",
    ],
)
def test_sidecar_outside_the_log_is_not_read(tmp_path: Path, victim: Path, spies: Spies, path: str) -> None:
    (victim / "_sidecars").mkdir()
    (victim / "_sidecars" / "f.parquet").write_bytes(parquet(STOLEN))
    table = hostile(tmp_path / "t", "own.parquet").checkpoint(kind="v2-json", sidecars=1)
    log = tmp_path / "t" / "_delta_log"
    (sidecar,) = (log / "_sidecars").iterdir()
    (checkpoint,) = log.glob("*.checkpoint.*.json")
    checkpoint.write_text(checkpoint.read_text().replace(sidecar.name, path.format(victim=victim)))
    for other in [*log.glob("*.json"), *log.glob("_last_checkpoint")]:
        if other != checkpoint:
            other.unlink()
    with pytest.raises(CorruptTableError):
        DeltaTable(table.uri).to_pyarrow_table()
    assert spies.seen == []
