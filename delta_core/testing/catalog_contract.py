"""CatalogContract: the promises of every catalog of names. Subclass it in the catalog's tests."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

from delta_core.catalogs import CatalogTable, NameCatalog
from delta_core.errors import (
    CatalogNameNotFoundError,
    InvalidArgumentError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.table.delta_table import DeltaTable
from delta_core.table.writer import write_deltalake

__all__ = ["CatalogContract"]

RACERS = 4
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["a", "b", None]})

MakeCatalog = Callable[[], NameCatalog]


def _opened(table: CatalogTable) -> DeltaTable:
    return DeltaTable(table.uri, storage_options=table.storage_options)


class CatalogContract:
    """Tests that a catalog resolves each name to one table, and leaves the files of tables alone.

    A subclass has a fixture ``make_catalog``, which opens independent clients of one catalog, as several processes
    would have, and a fixture ``schema``, which returns the full name of a schema in which the tests create names. The
    tables are on this machine's disk. ``renames`` is False for a catalog that rejects `NameCatalog.rename`.
    """

    renames = True

    @pytest.fixture
    def name(self, schema: str) -> str:
        """Return a name that is not taken."""
        return f"{schema}.t{uuid.uuid4().hex[:12]}"

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        """Return the place of a table of three rows."""
        write_deltalake(str(tmp_path / "table"), ROWS)
        return tmp_path / "table"

    def test_catalog_has_the_members(self, make_catalog: MakeCatalog, name: str) -> None:
        catalog = make_catalog()
        assert isinstance(catalog, NameCatalog)
        assert name.count(".") == catalog.depth - 1

    def test_registered_table_opens_by_its_name(
        self, make_catalog: MakeCatalog, name: str, schema: str, place: Path
    ) -> None:
        made = make_catalog().register(name, place)
        found = make_catalog().table(name)
        assert (found.name, found.format) == (made.name, made.format) == (name, "delta")
        assert _opened(found).to_pyarrow_table().sort_by("id") == ROWS
        write_deltalake(found.uri, ROWS, mode="append", storage_options=found.storage_options)
        assert DeltaTable(str(place)).count() == 6
        assert schema in make_catalog().schemas()
        assert name in make_catalog().tables(schema)

    def test_created_table_is_empty(self, make_catalog: MakeCatalog, name: str, tmp_path: Path) -> None:
        properties = {"delta.appendOnly": "true"}
        made = make_catalog().create(name, ROWS.schema, tmp_path / "new", partition_by=["day"], properties=properties)
        for table in (_opened(made), DeltaTable(str(tmp_path / "new"))):
            assert (table.count(), table.schema().names) == (0, ["id", "day"])
            assert table.metadata().partition_columns == ["day"]
            assert table.metadata().configuration["delta.appendOnly"] == "true"

    def test_place_without_a_location_is_the_catalogs_own(self, make_catalog: MakeCatalog, name: str) -> None:
        made = make_catalog().create(name, ROWS.schema)
        write_deltalake(made.uri, ROWS, mode="append", storage_options=made.storage_options)
        assert _opened(make_catalog().table(name)).count() == 3

    def test_taken_name_is_rejected_and_stays(
        self, make_catalog: MakeCatalog, name: str, place: Path, tmp_path: Path
    ) -> None:
        make_catalog().register(name, place)
        write_deltalake(str(tmp_path / "other"), ROWS.slice(0, 1))
        with pytest.raises(TableExistsError):
            make_catalog().register(name, tmp_path / "other")
        with pytest.raises(TableExistsError):
            make_catalog().create(name, ROWS.schema, tmp_path / "new")
        assert not (tmp_path / "new").exists()
        assert _opened(make_catalog().table(name)).count() == 3

    def test_one_of_several_clients_gets_a_name(self, make_catalog: MakeCatalog, name: str, tmp_path: Path) -> None:
        barrier = Barrier(RACERS)

        def race(number: int) -> int | None:
            write_deltalake(str(tmp_path / str(number)), pa.table({"id": [number]}))
            catalog = make_catalog()
            barrier.wait()
            try:
                catalog.register(name, tmp_path / str(number))
            except TableExistsError:
                return None
            return number

        with ThreadPoolExecutor(RACERS) as threads:
            won = [n for n in threads.map(race, range(RACERS)) if n is not None]
        assert len(won) == 1
        assert _opened(make_catalog().table(name)).to_pyarrow_table()["id"].to_pylist() == won

    def test_place_without_a_table_gets_no_name(self, make_catalog: MakeCatalog, name: str, tmp_path: Path) -> None:
        with pytest.raises(TableNotFoundError):
            make_catalog().register(name, tmp_path / "none")
        with pytest.raises(CatalogNameNotFoundError):
            make_catalog().table(name)

    def test_place_of_a_table_is_not_created_over(self, make_catalog: MakeCatalog, name: str, place: Path) -> None:
        with pytest.raises(TableExistsError):
            make_catalog().create(name, ROWS.schema, place)
        assert DeltaTable(str(place)).count() == 3
        with pytest.raises(CatalogNameNotFoundError):
            make_catalog().table(name)

    def test_dropped_name_is_gone_and_the_files_stay(self, make_catalog: MakeCatalog, name: str, place: Path) -> None:
        make_catalog().register(name, place)
        make_catalog().drop(name)
        for call in (make_catalog().table, make_catalog().drop):
            with pytest.raises(CatalogNameNotFoundError) as e:
                call(name)
            assert isinstance(e.value, TableNotFoundError)
        assert DeltaTable(str(place)).count() == 3
        make_catalog().register(name, place)

    def test_rename_leaves_one_name(self, make_catalog: MakeCatalog, name: str, place: Path) -> None:
        make_catalog().register(name, place)
        if not self.renames:
            with pytest.raises(UnsupportedOperationError):
                make_catalog().rename(name, f"{name}_new")
            assert _opened(make_catalog().table(name)).count() == 3
            return
        assert make_catalog().rename(name, f"{name}_new").name == f"{name}_new"
        with pytest.raises(CatalogNameNotFoundError):
            make_catalog().table(name)
        assert _opened(make_catalog().table(f"{name}_new")).count() == 3
        make_catalog().register(name, place)
        with pytest.raises(TableExistsError):
            make_catalog().rename(name, f"{name}_new")
        with pytest.raises(CatalogNameNotFoundError):
            make_catalog().rename(f"{name}_none", f"{name}_more")

    def test_schema_that_is_missing_is_not_found(self, make_catalog: MakeCatalog, schema: str) -> None:
        with pytest.raises(CatalogNameNotFoundError):
            make_catalog().tables(f"{schema}_none")

    def test_name_of_other_parts_is_rejected(self, make_catalog: MakeCatalog, name: str) -> None:
        for wrong in ("", "table", f"more.{name}", f"{name}."):
            with pytest.raises(InvalidArgumentError):
                make_catalog().table(wrong)
