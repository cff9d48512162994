"""Commands on catalogs of names: list, show, create, register, rename, drop."""

from __future__ import annotations

from typing import Any

import click

from delta_core.catalogs import CatalogTable, NameCatalog, open_catalog
from delta_core.cli.options import CommandGroup, as_json, pairs
from delta_core.cli.output import print_facts, print_json, print_note
from delta_core.cli.sources import read_schema
from delta_core.handles.secrets import shown_uri
from delta_core.schema.fields import Schema

__all__ = ["catalog"]


@click.group(cls=CommandGroup)
def catalog() -> None:
    """List, create, register, rename and drop the names of a catalog.

    CATALOG is a file *.db or *.sqlite, unity (the server that options or the environment name) or unity+https://host.

    \b
    Examples:
      delta-core catalog register names.db sales.cities data/cities
      delta-core catalog list names.db sales
      delta-core head sales.cities --catalog names.db
    """


def _options(command: Any) -> Any:
    command = click.option(
        "--storage-option",
        "storage_options",
        multiple=True,
        metavar="KEY=VALUE",
        callback=pairs,
        help="Pass an option to the catalog and to the stores of its tables; repeatable.",
    )(command)
    return click.argument("place", metavar="CATALOG")(command)


@catalog.command("list")
@_options
@click.argument("schema", required=False)
@as_json
def list_names(place: str, schema: str | None, storage_options: dict[str, str], json_output: bool) -> None:
    """List the names of the schemas, or of the tables of SCHEMA.

    \b
    Examples:
      delta-core catalog list names.db
      delta-core catalog list unity main.sales --json
    """
    found = _opened(place, storage_options)
    names = found.schemas() if schema is None else found.tables(schema)
    if json_output:
        print_json(names)
        return
    for name in names:
        click.echo(name)


@catalog.command()
@_options
@click.argument("name")
@as_json
def show(place: str, name: str, storage_options: dict[str, str], json_output: bool) -> None:
    """Show the place and the format of the table NAME.

    \b
    Examples:
      delta-core catalog show names.db sales.cities
    """
    _print(_opened(place, storage_options).table(name), json_output)


@catalog.command()
@_options
@click.argument("name")
@click.argument("table")
@as_json
def register(place: str, name: str, table: str, storage_options: dict[str, str], json_output: bool) -> None:
    """Register the table at the path or URI TABLE under NAME.

    \b
    Examples:
      delta-core catalog register names.db sales.cities data/cities
    """
    _print(_opened(place, storage_options).register(name, table), json_output)


@catalog.command()
@_options
@click.argument("name")
@click.argument("location", required=False)
@click.option(
    "--schema",
    "schema_file",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="A Delta schema as JSON, or a data file whose columns the table gets.",
)
@click.option("--partition-by", metavar="A,B", help="Partition columns.")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", callback=pairs, help="A table property; repeatable."
)
@as_json
def create(
    place: str,
    name: str,
    location: str | None,
    schema_file: str,
    partition_by: str | None,
    properties: dict[str, str],
    storage_options: dict[str, str],
    json_output: bool,
) -> None:
    """Create a table without rows at LOCATION, or where the catalog keeps its own, and its NAME.

    \b
    Examples:
      delta-core catalog create names.db sales.cities --schema first.parquet
    """
    found = read_schema(schema_file)
    made = _opened(place, storage_options).create(
        name,
        Schema.from_json(found) if isinstance(found, str) else Schema.from_arrow(found),
        location,
        partition_by=[part.strip() for part in (partition_by or "").split(",") if part.strip()],
        properties=properties or None,
    )
    _print(made, json_output)


@catalog.command()
@_options
@click.argument("name")
@click.argument("new_name")
@as_json
def rename(place: str, name: str, new_name: str, storage_options: dict[str, str], json_output: bool) -> None:
    """Rename the table NAME to NEW_NAME; its files stay where they are.

    \b
    Examples:
      delta-core catalog rename names.db sales.cities archive.cities
    """
    _print(_opened(place, storage_options).rename(name, new_name), json_output)


@catalog.command()
@_options
@click.argument("name")
def drop(place: str, name: str, storage_options: dict[str, str]) -> None:
    """Remove NAME; the files remain, unless the table is a managed one of Unity Catalog.

    \b
    Examples:
      delta-core catalog drop names.db sales.cities
    """
    _opened(place, storage_options).drop(name)
    print_note(f"Dropped {name}.")


def _opened(place: str, storage_options: dict[str, str]) -> NameCatalog:
    return open_catalog(place, storage_options or None)


def _print(table: CatalogTable, json_output: bool) -> None:
    facts = {"name": table.name, "location": shown_uri(table.location), "format": table.format}
    print_json(facts) if json_output else print_facts(facts)
