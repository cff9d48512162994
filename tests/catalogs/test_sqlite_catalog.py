"""The catalog in a file of SQLite: names, concurrent processes, crashes, and files that are none."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.catalogs import NameCatalog, open_catalog, split_name
from delta_core.errors import (
    CatalogError,
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    InvalidArgumentError,
    MissingDependencyError,
    TableExistsError,
    TableNotFoundError,
)
from delta_plugins.sqlite_catalog import catalog as sqlite_catalog

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def names(tmp_path: Path) -> NameCatalog:
    return open_catalog(tmp_path / "names.db")


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    write_deltalake(str(tmp_path / "cities"), ROWS)
    return tmp_path / "cities"


def test_opening_and_reading_make_no_file(names: NameCatalog, tmp_path: Path) -> None:
    assert isinstance(names, NameCatalog)
    assert names.schemas() == []
    with pytest.raises(CatalogNameNotFoundError, match="register"):
        names.table("sales.cities")
    assert list(tmp_path.iterdir()) == []


def test_registered_name_leads_to_the_table(names: NameCatalog, cities: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cities.parent)
    names.register("sales.cities", "cities")
    monkeypatch.chdir("/")
    found = names.table("SALES.Cities")
    assert (found.name, found.location, found.format) == ("sales.cities", str(cities), "delta")
    assert DeltaTable(found.uri, storage_options=found.storage_options).count() == 3
    assert (names.schemas(), names.tables("sales")) == (["sales"], ["sales.cities"])
    with pytest.raises(TableExistsError, match="drop"):
        names.register("Sales.CITIES", cities)


def test_place_without_a_table_gets_no_name(names: NameCatalog, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="no table at"):
        names.register("sales.none", tmp_path / "none")
    assert names.schemas() == []


def test_table_of_another_format_has_its_format(names: NameCatalog, tmp_path: Path) -> None:
    from delta_plugins.lance import write_lance

    write_lance(str(tmp_path / "people"), ROWS)
    assert names.register("sales.people", tmp_path / "people").format == "lance"


def test_created_table_lies_beside_the_catalog(names: NameCatalog, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    found = names.create("sales.new", schema, partition_by=["day"], properties={"delta.appendOnly": "true"})
    assert found.location == str(tmp_path / "sales" / "new")
    metadata = DeltaTable(found.uri).metadata()
    assert (metadata.partition_columns, metadata.configuration["delta.appendOnly"]) == (["day"], "true")
    elsewhere = names.create("sales.other", ROWS.schema, tmp_path / "elsewhere")
    assert elsewhere.location == str(tmp_path / "elsewhere")
    with pytest.raises(InvalidArgumentError, match="no name of a folder"):
        names.create("sales.`..`", ROWS.schema)


def test_failed_creation_leaves_no_name(names: NameCatalog, cities: Path) -> None:
    with pytest.raises(TableExistsError, match=r"register\(\)"):
        names.create("sales.cities", ROWS.schema, cities)
    assert names.schemas() == []
    names.register("sales.cities", cities)
    with pytest.raises(TableExistsError, match="already"):
        names.create("sales.cities", ROWS.schema, cities.parent / "unused")
    assert not (cities.parent / "unused").exists()


def test_drop_and_rename_change_names_only(names: NameCatalog, cities: Path) -> None:
    names.register("sales.cities", cities)
    names.register("sales.towns", cities)
    with pytest.raises(TableExistsError):
        names.rename("sales.cities", "sales.towns")
    assert names.rename("sales.cities", "archive.`old.cities`").name == "archive.`old.cities`"
    assert names.tables("archive") == ["archive.`old.cities`"]
    assert names.table("archive.`old.cities`").location == str(cities)
    names.drop("sales.towns")
    for change in (lambda: names.drop("sales.towns"), lambda: names.rename("sales.towns", "a.b")):
        with pytest.raises(CatalogNameNotFoundError, match="Nothing was changed"):
            change()
    assert names.schemas() == ["archive"]
    assert DeltaTable(str(cities)).count() == 3


def test_catalog_has_no_options_of_its_tables(tmp_path: Path, cities: Path) -> None:
    path = tmp_path / "names.sqlite"
    names = open_catalog(f"sqlite:{path}", {"secret": "xyzzy"})
    found = names.register("a.b", cities)
    assert found.storage_options == {"secret": "xyzzy"}
    assert "xyzzy" not in repr(found) + repr(names)
    assert b"xyzzy" not in path.read_bytes()


_RACE = """
import sys
from delta_core.catalogs import open_catalog
from delta_core.errors import TableExistsError
names, won = open_catalog(sys.argv[1]), []
for i in range(20):
    try:
        names.register(f"race.t{i}", sys.argv[2])
        won.append(i)
    except TableExistsError:
        pass
print(*won)
"""


def test_one_of_several_processes_gets_each_name(names: NameCatalog, cities: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _RACE, str(tmp_path / "names.db"), str(cities)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    won = [p.communicate(timeout=120)[0].split() for p in running]
    assert [p.returncode for p in running] == [0, 0, 0]
    assert sorted(int(i) for found in won for i in found) == list(range(20))
    assert len(names.tables("race")) == 20


def test_one_of_several_threads_creates_a_table(names: NameCatalog) -> None:
    outcomes: list[str] = []

    def create() -> None:
        try:
            outcomes.append(names.create("a.b", ROWS.schema).name)
        except TableExistsError:
            outcomes.append("exists")

    threads = [threading.Thread(target=create) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(outcomes) == ["a.b", "exists", "exists", "exists"]


_CRASH = """
import os, signal, sys
from delta_plugins.sqlite_catalog import catalog
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
made = catalog.create_table
def crash(*args, **kwargs):
    made(*args, **kwargs)
    die()
catalog.create_table = crash
import pyarrow as pa
catalog.open_names(sys.argv[1], {}).create("a.b", pa.schema([("id", pa.int64())]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_process_that_is_killed_leaves_the_catalog_as_it_was(names: NameCatalog, cities: Path, tmp_path: Path) -> None:
    names.register("sales.cities", cities)
    done = subprocess.run([sys.executable, "-c", _CRASH, str(tmp_path / "names.db")], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert names.schemas() == ["sales"]
    with pytest.raises(TableExistsError, match="register"):
        names.create("a.b", ROWS.schema)
    assert names.register("a.b", tmp_path / "a" / "b").name == "a.b"


def test_locked_file_is_reported(
    names: NameCatalog, cities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.register("a.b", cities)
    monkeypatch.setattr(sqlite_catalog, "PATIENCE_S", 0.05)
    other = sqlite3.connect(tmp_path / "names.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogUnavailableError, match="locked"):
            names.register("a.c", cities)
        assert names.tables("a") == ["a.b"]
    finally:
        other.close()


def test_file_that_is_no_catalog_is_left_alone(tmp_path: Path, cities: Path) -> None:
    (tmp_path / "text.db").write_text("no database, but text" * 100)
    with pytest.raises(CatalogError, match="no catalog of names"):
        open_catalog(tmp_path / "text.db").register("a.b", cities)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE tables (x)")
    other.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(CatalogError, match="another program"):
        open_catalog(tmp_path / "other.db").register("a.b", cities)
    assert (tmp_path / "other.db").read_bytes() == before


def test_newer_layout_is_rejected(names: NameCatalog, cities: Path, tmp_path: Path) -> None:
    names.register("a.b", cities)
    with sqlite3.connect(tmp_path / "names.db") as other:
        other.execute("PRAGMA user_version = 2")
    other.close()
    with pytest.raises(CatalogError, match="layout 2, expected 1"):
        names.schemas()


def test_folder_that_is_missing_is_reported(tmp_path: Path, cities: Path) -> None:
    with pytest.raises(CatalogUnavailableError, match="the folder exists"):
        open_catalog(tmp_path / "none" / "names.db").register("a.b", cities)


@pytest.mark.parametrize("place", ["names", "data/names", "", ":x", "https://host"])
def test_place_that_is_no_catalog_is_rejected(place: str) -> None:
    with pytest.raises((InvalidArgumentError, MissingDependencyError), match=r"as a catalog|Known schemes: .*sqlite"):
        open_catalog(place)


@pytest.mark.parametrize(
    ("name", "parts"), [("a.b", ("a", "b")), ("`a.x`.b", ("a.x", "b")), ('a."b c"', ("a", "b c")), ("a.é", ("a", "é"))]
)
def test_name_has_its_parts(name: str, parts: tuple[str, ...]) -> None:
    assert split_name(name, 2) == parts


@pytest.mark.parametrize("name", ["", "a", "a.", ".b", "a.b.c", "a..b", "`a.b", "a/b.c", "`a`b.c", "a. "])
def test_name_of_other_parts_is_rejected(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected schema\.table"):
        split_name(name, 2)


_FORK = """
import os, sys
from delta_core.catalogs import open_catalog
names = open_catalog(sys.argv[1])
names.schemas()
pid = os.fork()
if not pid:
    names.rename("a.b", "a.c")
    os._exit(0)
os.waitpid(pid, 0)
print(names.tables("a"))
"""


def test_forked_process_uses_the_catalog(names: NameCatalog, cities: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system can't fork")
    names.register("a.b", cities)
    command = [sys.executable, "-c", _FORK, str(cities.parent / "names.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "['a.c']"


def test_no_damaged_byte_changes_a_name(names: NameCatalog, cities: Path, tmp_path: Path) -> None:
    for name in ("sales.cities", "sales.towns", "archive.cities"):
        names.register(name, cities)
    file = tmp_path / "names.db"
    sound = file.read_bytes()
    expected = _locations(names)
    found = set()
    # every byte that is not zero, and some of the others, which are free space
    for at in [i for i, byte in enumerate(sound) if byte or i % 97 == 0]:
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 0xFF]) + sound[at + 1 :])
        try:
            assert _locations(names) == expected, at
        except CatalogError as e:
            found.add(type(e))
    assert found == {CatalogError}, "no name is missing, and no lock or disk is to blame"


def _locations(names: NameCatalog) -> dict[str, str]:
    listed = [name for schema in names.schemas() for name in names.tables(schema)]
    return {name: names.table(name).location for name in [*listed, "sales.cities"]}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9])
def test_file_that_was_cut_is_damaged(names: NameCatalog, cities: Path, tmp_path: Path, share: float) -> None:
    names.register("sales.cities", cities)
    file = tmp_path / "names.db"
    sound = file.read_bytes()
    file.write_bytes(sound[: int(len(sound) * share)])
    if not share:
        assert names.schemas() == []  # an empty file has no catalog yet
        return
    with pytest.raises(CatalogError, match="is damaged"):
        names.table("sales.cities")
