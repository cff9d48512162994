"""Tables of every format that is installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from delta_core import formats
from delta_core.errors import TableNotFoundError
from delta_core.handles.secrets import shown_uri
from delta_core.runtime.arguments import path_text
from delta_core.table.delta_table import DeltaTable

if TYPE_CHECKING:
    pass

__all__ = ["open_table"]


def open_table(table_uri: str | os.PathLike[str], **options: Any) -> Any:
    """Open whatever table lies at a place and return the class of its format.

    Parameters
    ----------
    table_uri : str or path
        The place.
    **options
        Those of `DeltaTable`, or of the other format: ``version``, ``timestamp``, ``storage_options``,
        ``allow_external`` have the same meaning in all.

    Returns
    -------
    DeltaTable or delta_core.api.FormatTable
        A Delta table, which is looked for first; else the table of an installed format (entry points of the group
        ``delta_core.formats``, see `delta_core.api.TableFormat`).

    Raises
    ------
    TableNotFoundError
        If no format has it; the message names the formats that were tried.

    Examples
    --------
    >>> open_table("table").version()
    1
    """
    storage_options, place = options.get("storage_options"), path_text(table_uri)
    if DeltaTable.is_deltatable(place, storage_options):
        return DeltaTable(table_uri, **options)
    found = formats.open_formatted(place, **options)
    if found is not None:
        return found
    tried = ", ".join(formats.format_names())
    raise TableNotFoundError(f"No table at {shown_uri(place)}; formats tried: {tried}.", path=place)
