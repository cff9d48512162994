"""Options that several commands share, and opening the table that they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Literal

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from msgspec import UNSET, Struct, UnsetType

from delta_core import operations
from delta_core.catalogs import NameCatalog, open_catalog
from delta_core.cli.output import confirm, print_facts, print_json
from delta_core.errors import (
    CatalogRequiredError,
    DeltaError,
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from delta_core.formats import FormatTable, open_formatted
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.partition_values import time_zone
from delta_core.kernel.log.timestamps import parse_ms
from delta_core.kernel.plugins.features import SupportedFeatures
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.protocol.actions import Protocol
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.table.delta_table import DeltaTable

__all__ = [
    "CommandGroup",
    "KnownFeatures",
    "Number",
    "Target",
    "WholeNumber",
    "as_json",
    "catalog_option",
    "named_table",
    "opening_options",
    "pairs",
    "selection",
    "table_command",
]

Command = Callable[..., Any]


class WholeNumber(click.IntRange):
    """A whole number, which messages and help call so."""

    name = "whole number"


class Number(click.FloatRange):
    """A number, which messages and help call so."""

    name = "number"


class CommandGroup(click.Group):
    """Commands whose help lists the whole first sentence of each, where click cuts it to a line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, c.get_short_help_str(1_000)) for name, c in found if c is not None])


class Target(Struct):
    """The table that a command names, and which version of it."""

    uri: str
    version: int | None = None
    timestamp: str | None = None
    storage_options: dict[str, str] = {}
    timezone: str = "UTC"
    allow_external: list[str] | Literal[False] | None = None
    #: The command that names it.
    command: str = ""
    #: The table of another format there; unset until it is looked for.
    other: FormatTable | UnsetType | None = UNSET

    def table(self) -> DeltaTable:
        """Open the latest version."""
        return self._open(None)

    def readable(self) -> Snapshot | FormatTable:
        """Open the version that is requested, of a table of any installed format."""
        try:
            return self.snapshot()
        except TableNotFoundError as e:
            return self.instead_of_delta(e)

    def instead_of_delta(self, error: TableNotFoundError) -> FormatTable:
        """Open the requested version of the table of another installed format that is there.

        Raises
        ------
        TableNotFoundError
            ``error``, if there is none.
        UnsupportedOperationError
            If the command does not work on tables of the format.
        """
        found = self.other_table()
        if found is None:
            raise error
        if self.command not in found.commands:
            raise UnsupportedOperationError(
                f"{shown_uri(found.uri)} is a table of the format {found.format_name}, on which {self.command} does "
                f"not work. Commands that do: {', '.join(sorted(found.commands))}.",
                operation=self.command,
                format=found.format_name,
            )
        return found

    def other_table(self) -> FormatTable | None:
        """Open the requested version of a table of another installed format; None if there is none."""
        if isinstance(self.other, UnsetType):
            at = self.timestamp
            self.other = open_formatted(
                self.uri,
                storage_options=self.storage_options or None,
                allow_external=self.allow_external,
                version=self.version,
                timestamp=None if at is None else datetime.fromtimestamp(parse_ms(at, self.timezone) / 1000, UTC),
            )
        return self.other

    def snapshot(self) -> Snapshot:
        """Open the version that is requested."""
        if self.timestamp is not None:
            return self.table().snapshot(timestamp=self.timestamp)
        return self._open(self.version).snapshot()

    def _open(self, version: int | None) -> DeltaTable:
        return DeltaTable(
            self.uri, version, self.storage_options or None, timezone=self.timezone, allow_external=self.allow_external
        )

    def described(self) -> tuple[Snapshot | FormatTable, str | None]:
        """Open the requested version for its log alone: its rows may need features that are not installed.

        Returns the version, and why its rows can't be read; None if they can.
        """
        try:
            return self.readable(), None
        except (UnsupportedFeatureError, UnsupportedVersionError) as e:
            # a catalog decides the versions; features decide when a version was committed
            if isinstance(e, CatalogRequiredError) or self.timestamp is not None:
                raise
            try:
                found = open_snapshot(
                    self.uri,
                    self.version,
                    storage_options=self.storage_options or None,
                    plugins=KnownFeatures(),
                    timezone=self.timezone,
                    allow_external=self.allow_external,
                )
                return found, str(e)
            except DeltaError:
                raise e from None


class KnownFeatures(PluginRegistry):
    """The installed plugins; a table may need more, and versions of the protocol that are unknown yet."""

    def supported(self, protocol: Protocol) -> SupportedFeatures:
        """Return the features; of an unknown version those that the protocol lists."""
        try:
            return super().supported(protocol)
        except UnsupportedVersionError:
            return SupportedFeatures(
                frozenset(protocol.reader_features or ()), frozenset(protocol.writer_features or ())
            )

    def resolve(self, features: SupportedFeatures) -> PluginSet:
        """Return the plugins of the features that are known."""
        known = frozenset(n for n in features.reader if self.load(n) is not None)
        return super().resolve(SupportedFeatures(known, features.all))


def pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return the values of a repeated option KEY=VALUE; spaces around the key do not count.

    Raises
    ------
    click.BadParameter
        If a value has no ``=``, or no key before it.
    """
    found = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{value!r} is not KEY=VALUE.", context, parameter)
        found[key.strip()] = text
    return found


def _prefixes(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> list[str] | Literal[False] | None:
    if "none" in values and len(values) > 1:
        raise click.BadParameter("'none' and prefixes exclude each other.", context, parameter)
    return False if values == ("none",) else list(values) or None


def _zone(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        time_zone(value)
    except InvalidArgumentError as e:
        raise click.BadParameter(str(e), context, parameter) from e
    return value


def _directories(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def opening_options(command: Command) -> Command:
    """Add to a command the options that tables are opened with."""
    command = click.option(
        "--timezone",
        default="UTC",
        metavar="ZONE",
        show_default=True,
        callback=_zone,
        help="Zone of times that name none: --timestamp, and partition values of other writers.",
    )(command)
    command = click.option(
        "--storage-option",
        "storage_options",
        multiple=True,
        metavar="KEY=VALUE",
        callback=pairs,
        help="Pass an option to the file system (fsspec's names); repeatable. Credentials of the environment are used.",
    )(command)
    return click.option(
        "--allow-external",
        multiple=True,
        metavar="PREFIX",
        callback=_prefixes,
        help="Read files that the table names outside its folder, below this URI; repeatable. By default those on "
        "its own kind of store are read; 'none' reads none.",
    )(command)


def catalog_option(use: str) -> Callable[[Command], Command]:
    """Return a decorator that adds to a command ``--catalog``, whose help begins with its use."""
    return click.option(
        "--catalog", metavar="CATALOG", help=f"{use}: a file *.db or *.sqlite, unity, or unity+https://host."
    )


def named_table(catalog: NameCatalog, name: str) -> tuple[str, dict[str, Any]]:
    """Return the URI of a table by its name in a catalog, and the options that open it."""
    found = catalog.table(name)
    return found.uri, dict(found.storage_options or {})


def table_command(
    required: bool = True,
    versioned: bool = True,
    rows: Callable[[dict[str, Any], FormatTable], Any] | None = None,
    named: bool = True,
) -> Callable[[Command], Command]:
    """Add to a command the argument TABLE and the options that open it; it gets them as one `Target`.

    ``named``: whether TABLE may be a name in a catalog.
    ``rows`` takes the arguments that specify the rows of files, and returns the rows, for a table of another format.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(
            uri: str | None,
            storage_options: dict[str, str],
            timezone: str,
            allow_external: Any,
            catalog: str | None = None,
            version: int | None = None,
            timestamp: str | None = None,
            **kwargs: Any,
        ) -> Any:
            if version is not None and timestamp is not None:
                raise click.UsageError("--version and --timestamp exclude each other.")
            if uri is None:
                return command(None, **kwargs)
            name = command.__name__.replace("_", "-")
            if catalog is not None:
                uri, storage_options = named_table(open_catalog(catalog, storage_options), uri)
            target = Target(uri, version, timestamp, storage_options, timezone, allow_external, name)
            try:
                return command(target, **kwargs)
            except TableNotFoundError as e:
                found = target.instead_of_delta(e)
                if name not in found.changes:
                    raise
                run_on(found, name, kwargs, rows)
                return None

        decorated = opening_options(run)
        if named:
            decorated = catalog_option("Find TABLE by its name in a catalog")(decorated)
        if versioned:
            decorated = click.option("--timestamp", metavar="TIME", help="Read as of a time (ISO 8601).")(decorated)
            number = WholeNumber(min=0)
            decorated = click.option("--version", type=number, metavar="N", help="Read this version.")(decorated)
        name = "TABLE" if required else "[TABLE]"
        return click.argument("uri", metavar=name, required=required, shell_complete=_directories)(decorated)

    return decorate


def run_on(
    table: FormatTable,
    command: str,
    arguments: Mapping[str, Any],
    rows: Callable[[dict[str, Any], FormatTable], Any] | None = None,
) -> None:
    """Run a command on a table of another format, with the options that were passed, and print what it did."""
    context = click.get_current_context()
    passed = {n: v for n, v in arguments.items() if context.get_parameter_source(n) is not ParameterSource.DEFAULT}
    is_json = bool(passed.pop("json_output", False))
    if rows is not None:
        passed["rows"] = rows(passed, table)
    with operations.progress_bar() as advance:
        facts = table.run_command(command, passed, confirm, advance)
    print_json(facts) if is_json else print_facts(facts)


def as_json(command: Command) -> Command:
    """Add to a command ``--json``."""
    return click.option("--json", "json_output", is_flag=True, help="Print JSON instead of text.")(command)


def selection(command: Command) -> Command:
    """Add to a command the options that choose columns and rows."""
    command = click.option("--where", metavar="SQL", help="Keep rows for which a predicate is true (Spark's SQL).")(
        command
    )
    return click.option(
        "--columns", metavar="A,B,C", callback=_names, help="Read these columns only; a.b reaches into structs."
    )(command)


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    names: list[str] = []
    quoted = False
    current = ""
    for char in value:
        quoted ^= char == "`"
        if char == "," and not quoted:
            names.append(current.strip())
            current = ""
        else:
            current += char
    names.append(current.strip())
    if not all(names):
        raise click.BadParameter(f"{value!r} holds an empty name.", context, parameter)
    return names
