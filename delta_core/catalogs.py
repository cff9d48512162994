"""Catalogs of names: what resolves ``schema.table`` to a place, and how installed catalogs are opened.

An entry point of the group ``delta_core.catalogs`` is a function ``open(place, options)`` that returns a `NameCatalog`.
Its name is the scheme of the places that it opens: ``unity`` opens ``unity+https://host``, ``sqlite`` opens
``sqlite:names.db``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from delta_core.errors import InvalidArgumentError, MissingDependencyError, PluginConflictError
from delta_core.handles.secrets import shown_uri, without_secrets
from delta_core.runtime.arguments import check_options
from delta_core.runtime.entry_points import entry_points
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["CATALOGS_GROUP", "NameCatalog", "CatalogTable", "check_encodable", "open_catalog", "split_name"]

CATALOGS_GROUP = "delta_core.catalogs"


class CatalogTable(Struct, frozen=True):
    """The table of a name.

    Parameters
    ----------
    name : str
        The full name, its parts separated by dots.
    uri : str
        Its location, or a URI by which its catalog resolves the name at each opening.
    location : str
        Where the table's files are.
    format : str
        The table's format, in lower case, such as ``delta`` or ``lance``.
    storage_options : dict, optional
        The options that open ``uri``.
    properties : Mapping of str to str
        The properties that the catalog has recorded; a catalog may leave them out.
    """

    name: str
    uri: str
    location: str
    format: str = "delta"
    storage_options: dict[str, Any] | None = None
    properties: Mapping[str, str] = {}

    def __repr__(self) -> str:
        options = without_secrets(self.storage_options or {})
        return (
            f"CatalogTable({self.name!r}, {shown_uri(self.uri)!r}, format={self.format!r}, storage_options={options!r})"
        )


@runtime_checkable
class NameCatalog(Protocol):
    """A catalog of names of tables.

    A name has ``depth`` parts: 2 for ``schema.table``, 3 for ``catalog.schema.table``; that of a schema has one part
    less. All methods do I/O, and raise `CatalogError` or one of its kinds if the catalog fails. They may be called
    by several threads and processes at once: of two that create one name, one gets TableExistsError.

    Attributes
    ----------
    depth : int
        How many parts the name of a table has.
    """

    depth: int

    def schemas(self) -> list[str]:
        """Return the full names of all schemas, sorted."""
        ...

    def tables(self, schema: str) -> list[str]:
        """Return the full names of all tables of a schema, sorted.

        Parameters
        ----------
        schema : str
            The full name of the schema.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such schema.
        """
        ...

    def table(self, name: str) -> CatalogTable:
        """Return the table of a name.

        Parameters
        ----------
        name : str
            The full name.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such name.
        """
        ...

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

        Parameters
        ----------
        name : str
            The full name.
        schema : Schema or anything with ``__arrow_c_schema__``
            The table's columns.
        location : str or path, optional
            Where the table is created; by default where the catalog keeps tables of its own.
        partition_by : sequence of str
            The columns that partition the table.
        properties : Mapping of str to str, optional
            Table properties.

        Raises
        ------
        TableExistsError
            The name is taken, or there is a table at the location.
        """
        ...

    def register(self, name: str, location: str | os.PathLike[str]) -> CatalogTable:
        """Register a table that exists under a name.

        Parameters
        ----------
        name : str
            The full name.
        location : str or path
            The table's place.

        Raises
        ------
        TableExistsError
            The name is taken.
        TableNotFoundError
            There is no table at the place.
        """
        ...

    def drop(self, name: str) -> None:
        """Remove a name.

        The files of a table whose location the caller chose remain.

        Parameters
        ----------
        name : str
            The full name.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such name.
        """
        ...

    def rename(self, name: str, new_name: str) -> CatalogTable:
        """Rename a table; its files stay where they are.

        Parameters
        ----------
        name, new_name : str
            Full names.

        Raises
        ------
        CatalogNameNotFoundError
            There is no such name.
        TableExistsError
            The new name is taken.
        UnsupportedOperationError
            The catalog can't rename tables.
        """
        ...


def open_catalog(place: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> NameCatalog:
    """Open a catalog of names; does no I/O.

    Parameters
    ----------
    place : str or path
        ``unity`` (the server that options or the environment name), ``unity+https://host``, or the path of a file
        ``*.db`` or ``*.sqlite``, also as ``sqlite:path``; an installed catalog of another kind has its own scheme.
    storage_options : Mapping, optional
        Options of the catalog, such as its token, and of the stores of its tables.

    Returns
    -------
    NameCatalog
        The catalog.

    Raises
    ------
    InvalidArgumentError
        The place does not name a catalog.
    MissingDependencyError
        No installed package provides catalogs of the scheme.
    PluginConflictError
        Two packages provide them.

    Examples
    --------
    >>> names = open_catalog("names.db")
    >>> names.schemas()
    []
    """
    check_options(storage_options)
    text = os.fspath(place)
    kind = _kind(text)
    points = entry_points(CATALOGS_GROUP)
    offered = list({p.value: p for p in points if p.name.lower() == kind}.values())
    if len(offered) > 1:
        names = " and ".join(p.value for p in offered)
        raise PluginConflictError(
            f"{names} both provide catalogs of the scheme {kind!r}; remove one of their packages."
        )
    if not offered:
        known = ", ".join(sorted({p.name for p in points})) or "none"
        raise MissingDependencyError(
            f"No installed package provides catalogs of the scheme {kind!r}. Known schemes: {known}.", scheme=kind
        )
    made: NameCatalog = offered[0].load()(text, dict(storage_options or {}))
    return made


def _kind(place: str) -> str:
    if place.endswith((".db", ".sqlite")) and "://" not in place:
        return "sqlite"
    head = place.partition(":")[0].partition("+")[0].lower()
    if not head or not head.isidentifier() or (":" not in place and place != head):
        raise InvalidArgumentError(
            f"Found {shown_uri(place)!r} as a catalog, expected unity, unity+https://host, or the path of a file "
            "*.db or *.sqlite."
        )
    return head


def check_encodable(name: str) -> str:
    """Return a name, but reject one that UTF-8 can't encode.

    Parameters
    ----------
    name : str
        Of a catalog, schema or table.

    Raises
    ------
    InvalidArgumentError
        It has half of a surrogate pair, as text has that was decoded from damaged bytes.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"Found the name {name!a}, which has half of a surrogate pair, so that no catalog can store it. Pass the "
            "name as the catalog has it.",
            name=name,
        ) from None
    return name


def split_name(name: str, depth: int, what: str = "table") -> tuple[str, ...]:
    """Split a full name into its parts; those in backticks or double quotes may have dots.

    Parameters
    ----------
    name : str
        The full name.
    depth : int
        How many parts are expected.
    what : str
        ``table`` or ``schema``: the object of the name, for the error.

    Raises
    ------
    InvalidArgumentError
        For another number of parts, an empty part, a quote that does not end, or half of a surrogate pair.
    """
    check_encodable(name)
    parts: list[str] = []
    at = 0
    while (match := _PART.match(name, at)) is not None and match.end() > at:
        parts.append(next((g for g in match.groups()[:3] if g), ""))
        at = match.end()
        if not match[4]:
            break
        if at == len(name):
            parts.append("")
    if at != len(name) or len(parts) != depth or not all(p.strip() for p in parts):
        levels = ("catalog", "schema", "table")
        expected = ".".join(levels[-depth:] if what == "table" else levels[-1 - depth : -1])
        raise InvalidArgumentError(f"Found the name {name!r} of a {what}, expected {expected}.", name=name)
    return tuple(parts)


#: A part of a name: in backticks, in double quotes or plain, and the dot that follows.
_PART = lazy_pattern(r"(?:`([^`]+)`|\"([^\"]+)\"|([^.`\"/]+))(\.?)")
