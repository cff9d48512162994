"""The client: names of tables, and the records that Unity Catalog has of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from delta_core.api import (
    CatalogConflictError,
    CatalogNameNotFoundError,
    CatalogTable,
    InvalidArgumentError,
    Protocol,
    Schema,
    Snapshot,
    Storage,
    StructType,
    TableExistsError,
    UnsupportedOperationError,
    create_table,
    open_context,
    open_storage,
    path_text,
    scheme_of,
    split_name,
)
from delta_plugins.unity_catalog.columns import column_infos
from delta_plugins.unity_catalog.commits import FirstCommit, UnityCommits
from delta_plugins.unity_catalog.credentials import (
    Request,
    StoreCredentials,
    has_credentials,
    path_request,
    table_request,
)
from delta_plugins.unity_catalog.options import Settings, read_settings
from delta_plugins.unity_catalog.rest import Api, quoted

__all__ = ["TableRecord", "UnityCatalog", "full_name", "open_table_storage", "open_unity"]

_MOST = 50  # tables of a page, the most that servers send
#: Types of entries that have a location of Delta files.
_TABLES = frozenset({"MANAGED", "EXTERNAL"})

#: Properties of a table whose versions the catalog decides: its features, and its id as writers record it.
_MANAGED = frozenset({
    "delta.feature.catalogManaged", "delta.feature.catalogOwned", "delta.feature.catalogOwned-preview",
    "io.unitycatalog.tableId", "ucTableId",
})  # fmt: skip
#: The definition of a table whose versions the catalog decides, as the catalog requires it.
_FEATURES = ("catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "inCommitTimestamp")
_PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.enableDeletionVectors": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}


class TableRecord(Struct, frozen=True):
    """The record that the catalog has of a table. Unity Catalog: TableInfo.

    Parameters
    ----------
    name : str
        The full name.
    table_id : str
        The id, a UUID.
    table_type : str
        ``MANAGED`` or ``EXTERNAL``; views and others have their own.
    format : str
        The format, in upper case.
    location : str
        The URI of the table's root, without a slash at its end; empty if it has none.
    properties : Mapping of str to str
        The recorded properties.
    """

    name: str
    table_id: str
    table_type: str
    format: str
    location: str
    properties: Mapping[str, str]

    @property
    def is_catalog_managed(self) -> bool:
        """Whether the catalog decides the versions."""
        return self.table_type == "MANAGED" and not _MANAGED.isdisjoint(self.properties)

    def check_readable(self, endpoint: str) -> None:
        """Reject an entry without Delta files.

        Parameters
        ----------
        endpoint : str
            The catalog's address.

        Raises
        ------
        UnsupportedOperationError
            For a view, and a table of another format.
        """
        if self.table_type not in _TABLES or not self.location:
            raise UnsupportedOperationError(
                f"{self.name} in Unity Catalog at {endpoint} is of the type {self.table_type}, expected a table with "
                "files of its own: MANAGED or EXTERNAL. Query it where it is defined.",
                name=self.name,
                endpoint=endpoint,
            )
        if self.format != "DELTA":
            raise UnsupportedOperationError(
                f"{self.name} in Unity Catalog at {endpoint} has the format {self.format}, expected DELTA. Read the "
                f"files at {self.location} with a reader of that format.",
                name=self.name,
                endpoint=endpoint,
            )


def open_unity(place: str, options: Mapping[str, Any]) -> UnityCatalog:
    """Open ``unity``, or ``unity+https://host``: an entry point of the group ``delta_core.catalogs``; does no I/O.

    Parameters
    ----------
    place : str
        ``unity`` for the server that options or the environment name, else its address after ``unity+``.
    options : Mapping
        See `options.read_settings`.

    Raises
    ------
    InvalidArgumentError
        For another place, and see `options.read_settings`.
    """
    head, plus, url = place.partition("+")
    if head.lower() != "unity" or (plus and not url):
        raise InvalidArgumentError(f"Found the catalog {place!r}, expected unity or unity+https://host.")
    return UnityCatalog(read_settings({**options, "unity_catalog_url": url} if url else options))


class UnityCatalog:
    """A client of Unity Catalog, a `NameCatalog` of names ``catalog.schema.table``.

    Parameters
    ----------
    settings : Settings
        The result of `options.read_settings`.
    """

    depth = 3

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._api = Api(settings)

    def __repr__(self) -> str:
        return f"UnityCatalog({self._settings.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._settings,)

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self._settings

    @property
    def api(self) -> Api:
        """The REST API."""
        return self._api

    # --- names ---

    def catalogs(self) -> list[str]:
        """Return the names of all catalogs, sorted."""
        return self._names("/catalogs", "the list of catalogs", "catalogs", {})

    def schemas(self) -> list[str]:
        """Return the full names of the schemas of all catalogs, sorted."""
        return [s for c in self.catalogs() for s in self.schemas_of(c)]

    def schemas_of(self, catalog: str) -> list[str]:
        """Return the full names ``catalog.schema`` of the schemas of a catalog, sorted.

        Parameters
        ----------
        catalog : str
            The name of the catalog.
        """
        found = self._names("/schemas", f"catalog {catalog}", "schemas", {"catalog_name": catalog})
        return [f"{catalog}.{name}" for name in found]

    def tables(self, schema: str) -> list[str]:
        """Return the full names of all tables and views of a schema, sorted.

        Parameters
        ----------
        schema : str
            ``catalog.schema``.
        """
        catalog, name = split_name(schema, 2, "schema")
        query = {"catalog_name": catalog, "schema_name": name, "max_results": _MOST}
        return [f"{catalog}.{name}.{t}" for t in self._names("/tables", f"schema {schema}", "tables", query)]

    def _names(self, path: str, subject: str, items: str, query: Mapping[str, Any]) -> list[str]:
        out = []
        for found in self._api.pages(path, subject, items, query):
            name = found.get("name")
            if not isinstance(name, str):
                self._api.malformed(subject, f"an object of {items!r} has no name")
            out.append(name)
        return sorted(out)

    def record(self, name: str) -> TableRecord:
        """Return the record that the catalog has of a table.

        Parameters
        ----------
        name : str
            ``catalog.schema.table``.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such table.
        """
        full = full_name(name)
        return self._record(full, self._api.get(f"/tables/{quoted(full)}", f"table {full}"))

    def _record(self, name: str, found: Mapping[str, Any]) -> TableRecord:
        def text(field: str, default: str | None = None) -> str:
            value = found.get(field)
            if value is None and default is not None:
                return default
            if not isinstance(value, str):
                self._api.malformed(f"table {name}", f"{field} is no text")
            return value

        properties = found.get("properties") or {}
        if not isinstance(properties, dict):
            self._api.malformed(f"table {name}", "properties is no object")
        return TableRecord(
            name,
            text("table_id"),
            text("table_type").upper(),
            text("data_source_format", "").upper(),
            text("storage_location", "").rstrip("/"),
            {str(k): str(v) for k, v in properties.items()},
        )

    def table(self, name: str) -> CatalogTable:
        """Return the table of a name; ``uri`` is ``uc://catalog.schema.table``, which each opening resolves again.

        Parameters
        ----------
        name : str
            ``catalog.schema.table``.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such table.
        UnsupportedOperationError
            It is a view, or of another format than Delta.
        """
        found = self.record(name)
        found.check_readable(self._settings.url)
        return self._named(found)

    def _named(self, found: TableRecord) -> CatalogTable:
        s = self._settings
        token = {} if s.token is None else {"unity_catalog_token": s.token, "unity_allow_http_url": "true"}
        options = {**s.storage, "unity_catalog_url": s.url, **token}
        uri = "uc://" + ".".join(quoted(part) for part in found.name.split("."))
        return CatalogTable(found.name, uri, found.location, found.format.lower(), options, found.properties)

    # --- changes of names ---

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

        With a location the table is external: its log decides the versions. Without one it is managed: the catalog
        allocates a place, and decides the versions.

        Parameters
        ----------
        name : str
            ``catalog.schema.table``.
        schema : Schema or anything with ``__arrow_c_schema__``
            The table's columns.
        location : str or path, optional
            Where the table is created; where the catalog keeps tables of its own unless given.
        partition_by : sequence of str
            The columns that partition the table.
        properties : Mapping of str to str, optional
            Table properties.

        Raises
        ------
        TableExistsError
            The name is taken, or there is a table at the location.
        """
        full = full_name(name)
        self._check_free(full)
        columns = schema if isinstance(schema, StructType) else Schema.from_arrow(schema)
        if location is None:
            return self._create_managed(full, columns, partition_by, properties or {})
        place = _absolute(path_text(location))
        context = open_context(place, self._issued(place, path_request(place, "PATH_CREATE_TABLE")))
        if (found := context.find()) is not None:
            raise TableExistsError(
                f"There is a table at {place} already (version {found.version}). Register it with register().",
                path=place,
            )
        made = create_table(context, columns, partition_by=partition_by, properties=properties)
        return self._registered(full, place, made.snapshot)

    def _create_managed(
        self, full: str, columns: StructType, partition_by: Sequence[str], properties: Mapping[str, str]
    ) -> CatalogTable:
        """Create version 0 at a place that the catalog allocates, then the name: readers see both or none."""
        catalog, schema, name = full.split(".")
        body = {"name": name, "catalog_name": catalog, "schema_name": schema}
        subject = f"the place of table {full}"
        found = self._api.post("/staging-tables", subject, body)
        table_id, location = found.get("id"), found.get("staging_location")
        if not isinstance(table_id, str) or not isinstance(location, str) or not location:
            self._api.malformed(subject, "id or staging_location is no text")
        place = location.rstrip("/")
        options = self._issued(place, table_request(table_id))
        context = open_context(place, options, commits=FirstCommit(open_storage(place, options)))
        given = {**_PROPERTIES, **properties, "io.unitycatalog.tableId": table_id}
        made = create_table(
            context, columns, partition_by=partition_by, properties=given, features=_FEATURES, allow_unknown=False
        )
        return self._registered(full, place, made.snapshot, "MANAGED")

    def register(self, name: str, location: str | os.PathLike[str]) -> CatalogTable:
        """Register a Delta table that exists under a name: an external table.

        Parameters
        ----------
        name : str
            ``catalog.schema.table``.
        location : str or path
            The table's place.

        Raises
        ------
        TableExistsError
            The name is taken.
        TableNotFoundError
            There is no table at the place, or no such schema.
        """
        full = full_name(name)
        place = _absolute(path_text(location))
        snapshot = open_context(place, self._issued(place, path_request(place, "PATH_READ"))).read(None)
        return self._registered(full, place, snapshot)

    def _check_free(self, full: str) -> None:
        try:
            self.record(full)
        except CatalogNameNotFoundError:
            return
        raise TableExistsError(f"Unity Catalog at {self._settings.url} has a table {full} already.", name=full)

    def _issued(self, place: str, request: Request) -> Mapping[str, Any]:
        """Return the storage options of a place, with credentials if its store needs them."""
        scheme = scheme_of(place)
        if not has_credentials(scheme):
            return self._settings.storage
        return StoreCredentials(self._settings, request, scheme, f"the place {place}")()

    def _registered(self, full: str, place: str, snapshot: Snapshot, table_type: str = "EXTERNAL") -> CatalogTable:
        catalog, schema, name = full.split(".")
        metadata = snapshot.metadata
        body = {
            "name": name,
            "catalog_name": catalog,
            "schema_name": schema,
            "table_type": table_type,
            "data_source_format": "DELTA",
            "columns": column_infos(snapshot.schema, metadata.partition_columns),
            "storage_location": place,
            "properties": {**_protocol_properties(snapshot.protocol), **metadata.configuration},
        }
        if metadata.description:
            body["comment"] = metadata.description
        try:
            found = self._record(full, self._api.post("/tables", f"table {full}", body))
        except CatalogConflictError as e:
            raise TableExistsError(f"{e} The files at {place} are as they were.", **e.facts) from e
        return self._named(found)

    def drop(self, name: str) -> None:
        """Remove a name. The files of an external table remain; the server deletes those of a managed one.

        Parameters
        ----------
        name : str
            ``catalog.schema.table``.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such table.
        """
        full = full_name(name)
        self._api.delete(f"/tables/{quoted(full)}", f"table {full}")

    def rename(self, name: str, new_name: str) -> CatalogTable:
        """Reject to rename a table: the API of Unity Catalog has no such request.

        Parameters
        ----------
        name, new_name : str
            Full names.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise UnsupportedOperationError(
            f"Unity Catalog can't rename {name}: its API has no such request. For an external table, "
            f"register({new_name!r}, location) and drop({name!r}).",
            name=name,
        )


def open_table_storage(
    catalog: UnityCatalog, record: TableRecord, allow_external: Sequence[str] | Literal[False] | None = None
) -> Storage:
    """Return the storage of a table's location, with credentials that the catalog issues if its store needs them.

    Its attribute ``commits`` is the `CommitSource` of a table whose versions the catalog decides.

    Parameters
    ----------
    catalog : UnityCatalog
        The client.
    record : TableRecord
        The table.
    allow_external : sequence of str, False or None
        As of `open_storage`.
    """
    settings = catalog.settings
    scheme = scheme_of(record.location)
    if has_credentials(scheme):
        renewal = StoreCredentials(settings, table_request(record.table_id), scheme, f"table {record.name}")
        storage = open_storage(record.location, renewal(), allow_external, renewal=renewal)
    else:
        storage = open_storage(record.location, settings.storage, allow_external)
    if record.is_catalog_managed:
        storage.commits = UnityCommits(
            catalog.api, record.name, record.table_id, record.location, record.properties, storage
        )
    return storage


def _protocol_properties(protocol: Protocol) -> dict[str, str]:
    """Return a protocol as properties, which is how the catalog records one."""
    features = dict.fromkeys([*(protocol.reader_features or ()), *(protocol.writer_features or ())])
    versions = {
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
    }
    return {**versions, **{f"delta.feature.{name}": "supported" for name in features}}


def full_name(name: str) -> str:
    """Return the name of a table without quotes.

    Parameters
    ----------
    name : str
        ``catalog.schema.table``.

    Raises
    ------
    InvalidArgumentError
        It does not have three parts, or a part has a dot, which no name in Unity Catalog has.
    """
    parts = split_name(name, 3)
    if any("." in part for part in parts):
        raise InvalidArgumentError(
            f"Found a dot within a part of the name {name!r}, which Unity Catalog does not allow."
        )
    return ".".join(parts)


def _absolute(place: str) -> str:
    """Return a place as the catalog records it: the path of this machine as a URI."""
    if scheme_of(place):
        return place.rstrip("/")
    from pathlib import Path

    return Path(place).expanduser().absolute().as_uri()
