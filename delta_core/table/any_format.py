"""Tables of every format that is installed."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from typing import Any

from delta_core import formats
from delta_core.engines.opening import make_engine
from delta_core.errors import InvalidArgumentError, TableNotFoundError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.runtime.arguments import path_text
from delta_core.table import format_parts

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
    place = path_text(table_uri)
    if _may_have_log(place, options.get("storage_options")):
        with contextlib.suppress(TableNotFoundError):
            return _delta_table(table_uri, **options)
    found = formats.open_formatted(place, **options)
    if found is not None:
        return found
    tried = ", ".join(formats.format_names())
    raise TableNotFoundError(f"No table at {shown_uri(place)}; formats tried: {tried}.", path=place)


def _delta_table(
    table_uri: str | os.PathLike[str], timestamp: str | datetime | None = None, **options: Any
) -> format_parts.DeltaTable:
    named = [n for n in ("tag", "branch") if options.pop(n, None) is not None]
    if named:
        raise InvalidArgumentError(
            f"Found {' and '.join(named)} for a Delta table, which has only versions. Pass version or timestamp."
        )
    if timestamp is None:
        return format_parts.DeltaTable(table_uri, **options)
    if options.get("version") is not None:
        raise InvalidArgumentError("Found version and timestamp. Pass one of them.")
    if not isinstance(timestamp, (str, datetime)):
        raise InvalidArgumentError(f"Found {timestamp!r} as a timestamp, expected a text or a datetime.")
    table = format_parts.DeltaTable(table_uri, **options)
    table.load_as_version(timestamp)
    return table


def _may_have_log(place: str, storage_options: Any) -> bool:
    """Whether a Delta table may be there; a folder on this machine answers without the modules of Delta's log."""
    log = make_engine("arrow", place, storage_options).storage.local_path(LOG_DIRECTORY)
    if log is None:
        return format_parts.DeltaTable.is_deltatable(place, storage_options)
    try:
        with os.scandir(log) as found:
            return next(found, None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # opening it reports why it can't be read
