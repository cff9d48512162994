"""Convert tables between formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from delta_core import formats, operations
from delta_core.engines.opening import make_engine
from delta_core.errors import InvalidArgumentError, TableNotFoundError, did_you_mean
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.snapshot import open_context
from delta_core.runtime.arguments import path_text
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType
from delta_core.table.delta_table import DeltaTable

if TYPE_CHECKING:
    from delta_core.operations import Conversion, OperationProgress

__all__ = ["convert"]


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    to: str,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    tag: str | None = None,
    branch: str | None = None,
    columns: Sequence[str] | None = None,
    row_ids: bool | None = None,
    without: str | Sequence[str] = (),
    dry_run: bool = False,
    folder_partitions: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    destination_storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
    progress: Callable[[OperationProgress], None] | None = None,
    **options: Any,
) -> Conversion:
    """Write the rows of one version of a table, or of a folder of Parquet files, to a new table of another format.

    Parameters
    ----------
    source : str or path
        A table of any installed format, or a folder of Parquet files.
    destination : str or path
        The place of the new table, where no table is.
    to : str
        Its format: ``delta``, or the name of an installed one, such as ``lance``.
    version, timestamp, tag, branch : optional
        The version of the source, as `open_table` takes them; the latest unless given.
    columns : sequence of str, optional
        The columns that are converted; all unless given.
    row_ids : bool, optional
        Whether rows have stable ids, and keep those that they have: if the source has some, unless given. False: no
        ids. True: new ones if the source has none.
    without : str or sequence of str
        The parts that the new table may lack, by the names that the error lists; ``all`` for everything.
    dry_run : bool
        Whether everything but the values is checked, and nothing written.
    folder_partitions : Schema, optional
        The partition columns of a folder of Parquet files, in folders named ``column=value``.
    storage_options, destination_storage_options : Mapping, optional
        Options of the stores; those of the source are used for both unless given.
    allow_external : sequence of str or False, optional
        As of `DeltaTable`, of the source.
    progress : function(OperationProgress), optional
        Called while rows are written.
    **options
        Of the new table: ``partition_by`` and ``properties`` for Delta; ``file_version``, ``max_rows_per_file`` and
        ``max_bytes_per_file`` for Lance.

    Returns
    -------
    Conversion
        The new table, the number of rows, the change of each column, and of the other parts of
        the source.

    Raises
    ------
    TableNotFoundError
        If the source is neither a table nor a folder of Parquet files.
    TableExistsError
        If there is a table at the destination.
    UnsupportedFeatureError
        For parts that the new table would lack and ``without`` does not name.
    SchemaError
        For a column whose type has no counterpart.
    SchemaMismatchError
        For a value that does not fit the new type; nothing remains of what was written.
    InvalidArgumentError
        For arguments that contradict each other or are not known.

    Notes
    -----
    Rows are streamed, in bounded memory. The destination can't be opened as a table before all rows are written.

    Examples
    --------
    >>> done = convert("table", "copy", "delta", version=0)
    >>> done.num_rows, done.columns[1].becomes
    (2, 'STRING')
    """
    if to not in formats.format_names():
        raise InvalidArgumentError(
            f"Found the format {to!r}; installed are: {', '.join(formats.format_names())}."
            f"{did_you_mean(str(to), formats.format_names())}"
        )
    place, target = path_text(source), path_text(destination)
    chosen = {"version": version, "timestamp": timestamp, "tag": tag, "branch": branch}
    given = operations.ConversionOptions(
        columns, row_ids, [without] if isinstance(without, str) else list(without), dry_run, options, progress
    )
    own = storage_options if destination_storage_options is None else destination_storage_options
    engine, origin = make_engine("arrow", target, own, None), make_engine("arrow", place, storage_options, None)
    kept = {n: v for n, v in chosen.items() if v is not None}
    with _opened(place, kept, storage_options, allow_external, folder_partitions) as table:
        return operations.convert_table(table, origin, engine, target, to, given)


@contextmanager
def _opened(
    place: str, chosen: Mapping[str, Any], storage_options: Any, allow_external: Any, partitions: Any
) -> Iterator[Any]:
    """Open the source."""
    if partitions is None and DeltaTable.is_deltatable(place, storage_options):
        strange = [n for n in chosen if n in ("tag", "branch")]
        if strange:
            raise InvalidArgumentError(f"A Delta table has no {strange[0]}: pass version or timestamp.")
        table = DeltaTable(place, storage_options=storage_options, allow_external=allow_external)
        yield table.snapshot(**chosen)
        return
    found = None
    if partitions is None:
        found = formats.open_formatted(place, storage_options=storage_options, allow_external=allow_external, **chosen)
    if found is not None:
        yield found
        return
    if chosen:
        raise TableNotFoundError(
            f"No table at {shown_uri(place)}, so that {next(iter(chosen))} has no meaning; formats tried: "
            f"{', '.join(formats.format_names())}.",
            path=place,
        )
    by = partitions if partitions is None or isinstance(partitions, StructType) else Schema.from_arrow(partitions)
    context = open_context(place, storage_options)
    options = operations.ConvertOptions(by, None if by is None else "hive", statistics=False)
    with operations.folder_snapshot(context, options) as snapshot:
        yield snapshot
