"""Formats of tables: how installed ones are found, recognise a place and open it.

A format is an entry point of the group ``delta_core.formats``: an object with the members of `TableFormat`. Delta is
built in, and is tried first.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from delta_core.engines.opening import make_engine
from delta_core.errors import PluginError, TableExistsError
from delta_core.handles.secrets import shown_uri
from delta_core.runtime.arguments import path_text
from delta_core.runtime.entry_points import entry_points
from delta_core.scan.rows import PlannedRows, Scannable
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_core.engines.engine import Engine
    from delta_core.expressions.filters import PredicateLike
    from delta_core.scan.exchange import Incoming, Outgoing

__all__ = [
    "FORMATS_GROUP",
    "ChangedTable",
    "ExchangeFormat",
    "FormatTable",
    "SplitTable",
    "SpreadFormat",
    "SpreadPart",
    "SpreadWrite",
    "TableFormat",
    "check_place_is_free",
    "format_named",
    "format_names",
    "format_of",
    "installed_formats",
    "open_formatted",
]

FORMATS_GROUP = "delta_core.formats"
#: The members of `TableFormat`, which every object of the group must have.
_MEMBERS = ("name", "recognise", "open")


class FormatTable(Scannable, Protocol):
    """One version of a table of another format, as `open_table` returns it.

    Attributes
    ----------
    commands : frozenset of str
        The commands of the command line that work on it; all others are rejected by name.
    changes : frozenset of str
        Those of ``commands`` that `run_command` runs, as they change the table.
    """

    commands: frozenset[str]
    changes: frozenset[str]

    def describe(self) -> Mapping[str, Any]:
        """Return what the table is, as JSON values by title: for ``delta-core info``."""
        ...

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the versions, newest first, with the keys of `DeltaTable.history`.

        Parameters
        ----------
        limit : int, optional
            The most versions; all unless given.
        """
        ...

    def file_table(self, predicate: PredicateLike | None = None) -> pa.Table:
        """Return the data files, or their units (fragments), that may hold a row for a predicate: one row each.

        Parameters
        ----------
        predicate : str, filters or Expression, optional
            The condition; all files unless given.
        """
        ...

    def version_files(self) -> pa.Table:
        """Return the files of metadata that the version consists of: ``file``, ``kind``, ``size`` in bytes."""
        ...

    def run_command(
        self,
        command: str,
        options: Mapping[str, Any],
        confirm: Callable[[str], None],
        progress: Callable[[Any], None] | None,
    ) -> Mapping[str, Any]:
        """Run one of ``changes``, and return what it did as JSON values by title.

        Parameters
        ----------
        command : str
            The command.
        options : Mapping of str to object
            Those that were passed to it, by the names of the command's parameters.
        confirm : function(str)
            Requires a yes to a question before something that can't be undone; raises without it.
        progress : function(OperationProgress), optional
            Called as the command proceeds.

        Raises
        ------
        UnsupportedOperationError
            For an option that the format does not honour.
        """
        ...

    def verify(self) -> Any:
        """Return a VerifyReport of the version; called only if ``commands`` has ``verify``."""
        ...

    def report(self, *, store: bool = True) -> Any:
        """Return a TableReport of the version; called only if ``commands`` has ``report``.

        Parameters
        ----------
        store : bool
            Whether to list the store for files that are missing, or in no version.
        """
        ...


class ChangedTable(FormatTable, Protocol):
    """A table whose rows can be changed: what Spark's DELETE, UPDATE and MERGE call, in the driver's process.

    The methods are those of `DeltaTable`, and the object then has the new version.
    """

    def delete(self, predicate: PredicateLike | None = None, *, commit_properties: Any = None) -> Mapping[str, int]:
        """Delete rows; return ``num_deleted_rows``.

        Parameters
        ----------
        predicate : str or Expression, optional
            Which rows; all unless given.
        commit_properties : delta_core.CommitProperties, optional
            Of the commit; what the format does not record is rejected.
        """
        ...

    def update(
        self, updates: Mapping[str, Any], *, predicate: PredicateLike | None = None, commit_properties: Any = None
    ) -> Mapping[str, int]:
        """Assign new values; return ``num_updated_rows``.

        Parameters
        ----------
        updates : Mapping of str to (str or Expression)
            By column.
        predicate, commit_properties
            As of `delete`.
        """
        ...

    def merge(
        self,
        source: Any,
        predicate: PredicateLike,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        max_spill_size: int | None = None,
        commit_properties: Any = None,
    ) -> Any:
        """Begin a merge, as `DeltaTable.merge` does; return its TableMerger.

        Parameters
        ----------
        source : object with the Arrow PyCapsule interface
            The rows; each attempt requests a stream of them.
        predicate : str or Expression
            Which rows match.
        source_alias, target_alias : str, optional
            Qualifiers of columns.
        max_spill_size : int, optional
            Bytes of the source in memory.
        commit_properties : delta_core.CommitProperties, optional
            As of `delete`.
        """
        ...


class SplitTable(FormatTable, Protocol):
    """A version of a table that several processes read together, as Spark's executors do.

    A format offers this part with `TableFormat.split_options`. The driver calls `plan_splits`; each executor opens the
    version with the options in ``pinned``, and calls `scan_split`.
    """

    @property
    def pinned(self) -> Mapping[str, Any]:
        """The options of `TableFormat.open` with which any process opens this version, also after later commits."""
        ...

    def plan_splits(self, split_bytes: int, predicate: PredicateLike | None = None) -> pa.Table:
        """Return the parts in which the rows are read: one row each, no row of the version in two of them.

        There is no Python object per file: the splits are columns.

        Parameters
        ----------
        split_bytes : int
            The bytes of files that a split should have, about.
        predicate : Expression, optional
            Parts without a row for which it is true may be left out.

        Returns
        -------
        pyarrow.Table
            ``size_bytes``, int64, about the bytes of files that are read; and columns of the format's own, whose values
            are numbers or texts.
        """
        ...

    def scan_split(
        self,
        split: Mapping[str, Any],
        columns: Sequence[str | Path] | None = None,
        *,
        metadata: Sequence[str] = (),
        predicate: PredicateLike | None = None,
    ) -> PlannedRows:
        """Plan a read of the rows of one part; the schema is that of a scan with the same arguments.

        Parameters
        ----------
        split : Mapping
            A row that `plan_splits` returned, by column.
        columns, metadata, predicate
            As of `Scannable.scan`.
        """
        ...


class TableFormat(Protocol):
    """A format of tables.

    A format whose tables are `SplitTable` has the attribute ``split_options`` too; Spark reads its tables then. It is
    a Mapping of str to type (int or str): the options of `open` that select a version, such as
    ``{"version": int, "tag": str}``, as readers that have only texts, such as ``spark.read.option``, offer them. The
    object of such a format can be pickled, and its name is an identifier.

    A format may have the method ``open_if_there(engine, uri, **options)``, which returns the table as `open` does, or
    None if the place has none: `recognise` and `open` with the requests of one of them.

    Attributes
    ----------
    name : str
        In lower case: ``lance``.
    """

    name: str

    def recognise(self, engine: Engine) -> bool:
        """Whether the engine's place holds a table of the format: at most one listing, and no error if not.

        Parameters
        ----------
        engine : Engine
            The engine of the place.
        """
        ...

    def open(self, engine: Engine, uri: str, **options: Any) -> FormatTable:
        """Open the table.

        Parameters
        ----------
        engine : Engine
            Of the place.
        uri : str
            As the caller wrote it.
        **options
            Such as ``version`` and ``timestamp``; an unknown one is a TypeError, as of any function.
        """
        ...


class ExchangeFormat(Protocol):
    """A format that takes part in conversions: the part of `TableFormat` that `delta_core.convert` uses.

    A format offers both methods, or neither. Delta has them too.
    """

    def outgoing(self, table: Any, columns: Sequence[str] | None, row_ids: bool) -> Outgoing:
        """Return a version of a table for another format: rows, columns, and the names of all else that it has.

        Parameters
        ----------
        table : FormatTable
            The version, as `TableFormat.open` returned it.
        columns : sequence of str, optional
            The columns; all unless given.
        row_ids : bool
            Whether stable ids of rows are requested, if the table has some.

        Raises
        ------
        SchemaError
            For a column whose values only the format itself interprets; the message names it and what to do.
        """
        ...

    def incoming(self, engine: Engine, uri: str, outgoing: Outgoing, options: Mapping[str, Any]) -> Incoming:
        """Prepare a new table for the rows of another one: nothing is written.

        Parameters
        ----------
        engine : Engine
            Of the place, where no table is.
        uri : str
            As the caller wrote it.
        outgoing : Outgoing
            The source.
        options : Mapping
            ``row_ids``, whether the table is to have stable ids of rows; and options of the format's own. Unknown
            ones are rejected by name.

        Raises
        ------
        SchemaError
            For a column whose type has no counterpart; the message names it and what to do.
        """
        ...


class SpreadPart(Protocol):
    """The part of a `SpreadWrite` that writes the rows of one task; it can be pickled."""

    def write(self, engine: Engine, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> str:
        """Write rows to files that no version has yet, and return a text of them for `SpreadWrite.commit`.

        Parameters
        ----------
        engine : Engine
            Of the table's place.
        schema : pyarrow.Schema
            Of the rows.
        rows : iterator of pyarrow.RecordBatch
            The rows.
        """
        ...


class SpreadWrite(Protocol):
    """A write of one version whose rows several processes write.

    Attributes
    ----------
    part : SpreadPart
        Writes the rows of a task.
    """

    @property
    def part(self) -> SpreadPart:
        """Writes the rows of a task."""
        ...

    def commit(self, parts: Sequence[str]) -> int:
        """Commit the files of all tasks as one version, and return its number.

        Parameters
        ----------
        parts : sequence of str
            The texts that `SpreadPart.write` returned, of the tasks that count.
        """
        ...

    def abandon(self, parts: Sequence[str]) -> None:
        """Delete the files of tasks.

        Parameters
        ----------
        parts : sequence of str
            The texts of these tasks.
        """
        ...


class SpreadFormat(Protocol):
    """A format that Spark writes: the part of `TableFormat` for it.

    Attributes
    ----------
    write_options : Mapping of str to type
        The options of writes: int, str or bool.
    """

    write_options: Mapping[str, type[int | str | bool]]

    def begin_spread_write(
        self, engine: Engine, uri: str, schema: pa.Schema, mode: str, options: Mapping[str, Any]
    ) -> SpreadWrite:
        """Begin a write; nothing is written yet.

        Parameters
        ----------
        engine : Engine
            Of the place.
        uri : str
            As the caller wrote it.
        schema : pyarrow.Schema
            Of the rows.
        mode : "create", "append" or "overwrite"
            The treatment of a table that is there; ``append`` creates one that is not.
        options : Mapping
            Those of ``write_options``.

        Raises
        ------
        TableExistsError
            With ``create``, if there is a table.
        """
        ...


def installed_formats() -> Iterator[TableFormat]:
    """Yield the formats of installed packages.

    Raises
    ------
    PluginError
        An object of the group lacks a member; the message names the entry point.
    """
    for point in entry_points(FORMATS_GROUP):
        try:
            found = point.load()
        except Exception as e:  # noqa: BLE001  # a package that is broken must not keep tables of other formats closed
            warnings.warn(
                f"The format {point.name} = {point.value} can't be used: {type(e).__name__}: {e}",
                RuntimeWarning,
                stacklevel=2,
            )
            continue
        missing = [name for name in _MEMBERS if not hasattr(found, name)]
        if missing:
            raise PluginError(
                f"The entry point {point.name} = {point.value} of the group {FORMATS_GROUP} has no "
                f"{', '.join(missing)}; expected an object with the members of delta_core.api.TableFormat."
            )
        yield found


def format_names() -> list[str]:
    """Return the names of all formats that can be opened."""
    return ["delta", *sorted(p.name for p in entry_points(FORMATS_GROUP))]


def format_named(name: str) -> TableFormat:
    """Return the installed format of a name.

    Parameters
    ----------
    name : str
        The name, such as ``lance``.

    Raises
    ------
    PluginError
        If no installed package has it.
    """
    found = next((f for f in installed_formats() if f.name == name), None)
    if found is None:
        raise PluginError(
            f"No installed package has the format {name!r}; there are: {', '.join(format_names())}. Install its "
            "package."
        )
    return found


def format_of(engine: Engine) -> TableFormat | None:
    """Return the installed format, other than Delta, that recognises the engine's place; None if none does.

    Parameters
    ----------
    engine : Engine
        The engine of the place.
    """
    return next((found for found in installed_formats() if found.recognise(engine)), None)


def check_place_is_free(engine: Engine) -> None:
    """Check that no table of another format is at the place where a Delta table is to be created.

    Raises
    ------
    TableExistsError
        If there is one: the two would share a folder, and whatever cleans up one could delete files of the other.
    """
    found = format_of(engine) if entry_points(FORMATS_GROUP) else None
    if found is not None:
        place = shown_uri(engine.storage.uri("")).rstrip("/")
        raise TableExistsError(
            f"There is a table of the format {found.name!r} at {place}; a new table needs a place of its own. Choose "
            "another one, or open the table there with open_table.",
            path=place,
            format=found.name,
        )


def open_formatted(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
    **options: Any,
) -> FormatTable | None:
    """Open a table of an installed format other than Delta; None if none recognises the place.

    Options that are None are left out.
    """
    if not entry_points(FORMATS_GROUP):
        return None
    place = path_text(uri)
    engine = make_engine("arrow", place, storage_options, allow_external)
    given = {name: value for name, value in options.items() if value is not None}
    for found in installed_formats():
        open_if_there = getattr(found, "open_if_there", None)
        if open_if_there is not None:
            table: FormatTable | None = open_if_there(engine, place, **given)
        else:
            table = found.open(engine, place, **given) if found.recognise(engine) else None
        if table is not None:
            return table
    return None
