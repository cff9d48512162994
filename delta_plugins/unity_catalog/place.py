"""Tables as ``uc://catalog.schema.table``: the storage of a name, with credentials that the catalog issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import unquote

from delta_core.api import InvalidPlaceError, Storage
from delta_plugins.unity_catalog.catalog import UnityCatalog, open_table_storage
from delta_plugins.unity_catalog.options import read_settings

__all__ = ["open_place"]


def open_place(uri: str, options: Mapping[str, Any], allow_external: Sequence[str] | Literal[False] | None) -> Storage:
    """Return the storage of a table by its name, an entry point of ``delta_core.stores``; queries the catalog.

    Parameters
    ----------
    uri : str
        ``uc://catalog.schema.table``; characters of URIs in names are percent-encoded.
    options : Mapping
        Those of the catalog, see `options.read_settings`; others are handed to the table's store.
    allow_external : sequence of str, False or None
        As of `open_storage`.

    Raises
    ------
    InvalidPlaceError
        The URI does not have three names.
    CatalogNameNotFoundError
        There is no such table.
    UnsupportedOperationError
        It is a view, or of another format than Delta.
    """
    encoded = uri.partition("://")[2].rstrip("/").split(".")
    if len(encoded) != 3 or not all(encoded) or any(c in part for part in encoded for c in "/?#"):
        raise InvalidPlaceError(f"Found the table {uri!r}, expected uc://catalog.schema.table.", path=uri)
    name = ".".join(f"`{unquote(part)}`" for part in encoded)
    catalog = UnityCatalog(read_settings(options))
    found = catalog.record(name)
    found.check_readable(catalog.settings.url)
    return open_table_storage(catalog, found, allow_external)
