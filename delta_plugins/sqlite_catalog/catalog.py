"""Names of tables in a file of SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from delta_core.api import (
    CatalogError,
    CatalogNameNotFoundError,
    CatalogTable,
    CatalogUnavailableError,
    InvalidArgumentError,
    Schema,
    StructType,
    TableExistsError,
    TableNotFoundError,
    create_table,
    format_of,
    make_engine,
    open_context,
    path_text,
    scheme_of,
    split_name,
)

__all__ = ["SqliteCatalog", "open_names"]

#: In the header of a catalog's file, so that no file of another program is changed.
_APPLICATION = int.from_bytes(b"dnam")
_LAYOUT = 1
#: How long a call waits for the transactions of others, in s.
PATIENCE_S = 60.0
#: The kinds of SQLite's errors that a damaged file has; the others are of the disk, of locks and of permissions.
_DAMAGED = frozenset({
    sqlite3.SQLITE_ERROR, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_EMPTY, sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOTADB,
})  # fmt: skip
_TABLES = """
CREATE TABLE tables (
    schema_name TEXT NOT NULL COLLATE NOCASE, table_name TEXT NOT NULL COLLATE NOCASE, location TEXT NOT NULL,
    format TEXT NOT NULL, PRIMARY KEY (schema_name, table_name)
)
"""


def open_names(place: str, options: Mapping[str, Any]) -> SqliteCatalog:
    """Open the catalog in a file, an entry point of the group ``delta_core.catalogs``; does no I/O.

    Parameters
    ----------
    place : str
        The path of a file, also as ``sqlite:path``.
    options : Mapping
        The storage options of the tables.

    Raises
    ------
    InvalidArgumentError
        Without a path.
    """
    path = place.removeprefix("sqlite:")
    if not path or path == "sqlite" or "://" in path:
        raise InvalidArgumentError(f"Found the catalog {place!r}, expected the path of a file, such as names.db.")
    return SqliteCatalog(path, options)


class SqliteCatalog:
    """A `NameCatalog` of names ``schema.table`` in a file of SQLite.

    Names that differ in the case of ASCII letters only are the same. The file is made by the first change. It has
    locations only: no storage options, and thus no secrets.

    Parameters
    ----------
    path : str or path
        The file, on a disk of this machine.
    storage_options : Mapping, optional
        The options that open the tables.
    """

    depth = 2

    def __init__(self, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> None:
        self._path = Path(path).expanduser().absolute()
        self._options = dict(storage_options or {})

    def __repr__(self) -> str:
        return f"SqliteCatalog({str(self._path)!r})"

    def schemas(self) -> list[str]:
        """Return the names of all schemas that have tables, sorted."""
        return [name for (name,) in self._read("SELECT DISTINCT schema_name FROM tables ORDER BY schema_name")]

    def tables(self, schema: str) -> list[str]:
        """Return the full names of all tables of a schema, sorted.

        Parameters
        ----------
        schema : str
            The name of the schema.

        Raises
        ------
        CatalogNameNotFoundError
            It has no tables.
        """
        (name,) = split_name(schema, 1, "schema")
        query = "SELECT schema_name, table_name FROM tables WHERE schema_name = ? ORDER BY table_name"
        found = [_joined(*row) for row in self._read(query, (name,))]
        if not found:
            raise self._missing(f"schema {schema}", "Schemas are there as long as they have tables.")
        return found

    def table(self, name: str) -> CatalogTable:
        """Return the table of a name.

        Parameters
        ----------
        name : str
            ``schema.table``.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such name.
        """
        query = "SELECT schema_name, table_name, location, format FROM tables WHERE schema_name = ? AND table_name = ?"
        rows = self._read(query, split_name(name, 2))
        if not rows:
            raise self._missing(f"table {name}", "Register it with register().")
        schema, table, location, kind = rows[0]
        return self._named(_joined(schema, table), location, kind)

    def _named(self, name: str, location: str, kind: str) -> CatalogTable:
        return CatalogTable(name, location, location, kind, dict(self._options) or None)

    def create(
        self,
        name: str,
        schema: Any,
        location: str | os.PathLike[str] | None = None,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> CatalogTable:
        """Create an empty Delta table, and its name.

        Other changes of the catalog wait meanwhile. If the process dies before the name is there, the table remains:
        `register` it.

        Parameters
        ----------
        name : str
            ``schema.table``.
        schema : Schema or anything with ``__arrow_c_schema__``
            The table's columns.
        location : str or path, optional
            Where the table is created; by default the folder ``schema/table`` beside the catalog's file.
        partition_by : sequence of str
            The columns that partition the table.
        properties : Mapping of str to str, optional
            Table properties.

        Raises
        ------
        TableExistsError
            The name is taken, or there is a table at the location.
        InvalidArgumentError
            Without a location, for a name that is no name of a folder.
        """
        parts = split_name(name, 2)
        place = self._own_place(parts) if location is None else _absolute(location)
        columns = schema if isinstance(schema, StructType) else Schema.from_arrow(schema)
        with self._change() as connection:
            self._insert(connection, parts, place, "delta")
            context = open_context(place, self._options or None)
            if (found := context.find()) is not None:
                raise TableExistsError(
                    f"There is a table at {place} already (version {found.version}). Register it with register().",
                    path=place,
                )
            create_table(context, columns, partition_by=partition_by, properties=properties)
        return self._named(_joined(*parts), place, "delta")

    def _own_place(self, parts: tuple[str, ...]) -> str:
        for part in parts:
            if part in (".", "..") or not part.isprintable() or set(part) & set('/\\:*?"<>|%#'):
                raise InvalidArgumentError(f"Found {part!r} in a name, which is no name of a folder. Pass a location.")
        return str(self._path.parent.joinpath(*parts))

    def register(self, name: str, location: str | os.PathLike[str]) -> CatalogTable:
        """Register a table of any installed format under a name.

        Parameters
        ----------
        name : str
            ``schema.table``.
        location : str or path
            The table's place; a relative path is recorded as an absolute one.

        Raises
        ------
        TableExistsError
            The name is taken.
        TableNotFoundError
            There is no table at the place.
        """
        parts = split_name(name, 2)
        place = _absolute(location)
        kind = self._format(place)
        with self._change() as connection:
            self._insert(connection, parts, place, kind)
        return self._named(_joined(*parts), place, kind)

    def _format(self, place: str) -> str:
        engine = make_engine("arrow", place, self._options or None)
        if open_context(place, self._options or None, engine).find() is not None:
            return "delta"
        found = format_of(engine)
        if found is None:
            raise TableNotFoundError(f"There is no table at {place}. Create it, or check the place.", path=place)
        return found.name

    def _insert(self, connection: sqlite3.Connection, parts: tuple[str, ...], place: str, kind: str) -> None:
        try:
            connection.execute("INSERT INTO tables VALUES (?, ?, ?, ?)", (*parts, place, kind))
        except sqlite3.IntegrityError as e:
            raise self._taken(_joined(*parts)) from e

    def drop(self, name: str) -> None:
        """Remove a name; the files of the table remain.

        Parameters
        ----------
        name : str
            ``schema.table``.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such name.
        """
        parts = split_name(name, 2)
        with self._change() as connection:
            query = "DELETE FROM tables WHERE schema_name = ? AND table_name = ?"
            if not connection.execute(query, parts).rowcount:
                raise self._missing(f"table {name}", "Nothing was changed.")

    def rename(self, name: str, new_name: str) -> CatalogTable:
        """Rename a table, also into another schema; its files stay where they are.

        Parameters
        ----------
        name, new_name : str
            ``schema.table``.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such name.
        TableExistsError
            The new name is taken.
        """
        parts, new_parts = split_name(name, 2), split_name(new_name, 2)
        query = "UPDATE tables SET schema_name = ?, table_name = ? WHERE schema_name = ? AND table_name = ?"
        with self._change() as connection:
            try:
                changed = connection.execute(query, (*new_parts, *parts)).rowcount
            except sqlite3.IntegrityError as e:
                raise self._taken(_joined(*new_parts)) from e
            if not changed:
                raise self._missing(f"table {name}", "Nothing was changed.")
        return self.table(_joined(*new_parts))

    # --- the file ---

    def _read(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        if not self._path.exists():
            return []
        with self._errors(), closing(self._connect("rw")) as connection:
            if not self._check(connection):
                return []
            rows = connection.execute(query, values).fetchall()
            if not rows and (found := connection.execute("PRAGMA integrity_check(1)").fetchall()) != [("ok",)]:
                # a name that an index lacks, or a table that was cut, is not a missing name
                raise self._damaged(str(found[0][0]) if found else "it can't be checked")
            if not all(isinstance(value, str) for row in rows for value in row):
                raise self._damaged("it has values that are no texts")
            return rows

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """Run the block in a transaction, which holds off those of all others; nothing is changed if it raises."""
        with self._errors(), closing(self._connect("rwc")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not self._check(connection):
                    connection.execute(_TABLES)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {_LAYOUT}")
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _connect(self, mode: str) -> sqlite3.Connection:
        # "rw" for reads too: after a crash, the first connection completes or undoes the last change. Transactions are
        # begun here, not by the module; a machine that loses power loses no change that was reported
        uri = f"{self._path.as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, timeout=PATIENCE_S, isolation_level=None, uri=True)
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection

    def _check(self, connection: sqlite3.Connection) -> bool:
        """Return whether the file has a catalog, False if it is empty; reject any other file."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if application == _APPLICATION and layout == _LAYOUT:
            return True
        if application == _APPLICATION:
            raise CatalogError(
                f"The catalog {self._path} has the layout {layout}, expected {_LAYOUT}: a newer version of this "
                "library wrote it. Update the library.",
                endpoint=str(self._path),
            )
        if application or connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None:
            raise CatalogError(
                f"{self._path} is a database of another program, expected a catalog of names. Choose another file.",
                endpoint=str(self._path),
            )
        return False

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as e:
            # the low byte is the kind of the error, the others specify it further
            if getattr(e, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGED:
                raise CatalogUnavailableError(
                    f"The catalog {self._path} can't be used now: {e}. Check that the folder exists and is writable, "
                    "that the disk has room, and that no process holds the file locked.",
                    endpoint=str(self._path),
                ) from e
            raise self._damaged(str(e)) from e
        except UnicodeDecodeError as e:  # of a message of SQLite, which repeats what it found in the file
            raise self._damaged("it has texts that are no UTF-8") from e

    def _damaged(self, why: str) -> CatalogError:
        return CatalogError(
            f"{self._path} is no catalog of names, or is damaged: {why}. Restore it from a backup, or choose another "
            "file.",
            endpoint=str(self._path),
        )

    def _missing(self, what: str, remedy: str) -> CatalogNameNotFoundError:
        return CatalogNameNotFoundError(
            f"The catalog {self._path} has no {what}. {remedy}", endpoint=str(self._path), name=what
        )

    def _taken(self, name: str) -> TableExistsError:
        return TableExistsError(
            f"The catalog {self._path} has a table {name} already. Choose another name, or drop() that one.", name=name
        )


def _joined(*parts: str) -> str:
    """Return a full name; a part that is not plain is quoted."""
    return ".".join(part if not set(part) & set('.`"/') else _quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return f'"{part}"' if "`" in part else f"`{part}`"


def _absolute(location: str | os.PathLike[str]) -> str:
    place = path_text(location)
    return place if scheme_of(place) else str(Path(place).expanduser().absolute())
