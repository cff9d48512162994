"""The command that makes a table of a folder of Parquet files."""

from __future__ import annotations

from typing import Any

import click

from delta_core.cli.change import report
from delta_core.cli.options import Target, as_json, pairs, table_command
from delta_core.cli.output import print_facts, print_json
from delta_core.cli.progress import shown_progress
from delta_core.schema.fields import Schema
from delta_core.schema.type_text import parse_type_text
from delta_core.schema.types import Field
from delta_core.table.delta_table import DeltaTable
from delta_core.table.writer import convert_to_deltalake

__all__ = ["convert"]


@click.command()
@table_command(versioned=False)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="COLUMN=TYPE",
    callback=pairs,
    help="A partition column and its type; repeatable, in the order of the folders.",
)
@click.option(
    "--partition-strategy",
    "strategy",
    type=click.Choice(["hive", "directory"]),
    default="hive",
    show_default=True,
    help="How the folders of partitions are named: column=value, or by the value alone.",
)
@click.option(
    "--mode",
    type=click.Choice(["error", "ignore", "append"]),
    default="error",
    show_default=True,
    help="The treatment of a folder that is a table already; append adds files that are new since it was converted.",
)
@click.option("--no-statistics", is_flag=True, help="Record the number of rows only, no bounds and counts of nulls.")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", callback=pairs, help="A table property; repeatable."
)
@click.option("--name", help="The name of the table.")
@click.option("--description", help="The description of the table.")
@click.option(
    "--dry-run", is_flag=True, help="Read the footers, show how many files the table would get, and commit nothing."
)
@as_json
def convert(
    target: Target,
    partitions: dict[str, str],
    strategy: Any,
    mode: Any,
    no_statistics: bool,
    properties: dict[str, str],
    name: str | None,
    description: str | None,
    dry_run: bool,
    json_output: bool,
) -> None:
    """Make a table of a folder of Parquet files, in place; no data is written.

    \b
    Examples:
      delta-core convert sales --dry-run
      delta-core convert sales
      delta-core convert sales --partition year=integer --partition day=date
      delta-core convert sales --mode append
    """
    by = Schema([Field(column, parse_type_text(text), True, {}) for column, text in partitions.items()])
    with shown_progress() as advance:
        done = convert_to_deltalake(
            target.uri,
            mode,
            by if partitions else None,
            strategy if partitions else None,
            name,
            description,
            properties,
            target.storage_options or None,
            collect_stats=not no_statistics,
            dry_run=dry_run,
            progress=advance,
        )
    if dry_run:
        facts = {"files": done["num_files"]}
        print_json(facts) if json_output else print_facts(facts)
        return
    report(DeltaTable(target.uri, storage_options=target.storage_options or None), json_output)
