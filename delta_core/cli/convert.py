"""The command that converts tables between formats, and makes a Delta table of a folder of Parquet files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from delta_core.cli.change import report
from delta_core.cli.options import Target, as_json, pairs, table_command
from delta_core.cli.output import print_facts, print_json, print_rows
from delta_core.kernel.log.timestamps import parse_ms
from delta_core.schema.fields import Schema
from delta_core.schema.type_text import parse_type_text
from delta_core.schema.types import Field
from delta_core.table import conversion as tables
from delta_core.table.delta_table import DeltaTable
from delta_core.table.writer import convert_to_deltalake

__all__ = ["convert"]


#: Options of one form of the command alone, as click names them.
_IN_PLACE = ("strategy", "mode", "no_statistics", "no_sink_log", "null_on_failed_cast", "name", "description")
_TO_ANOTHER = ("tag", "branch", "columns", "partition_by", "row_ids", "without", "file_version")


@click.command()
@table_command()
@click.argument("destination", required=False)
@click.option(
    "--to", metavar="FORMAT", help="The format of DESTINATION: delta, or that of an installed package, such as lance."
)
@click.option("--tag", help="The version of the source that a tag names, in formats with tags.")
@click.option("--branch", help="The branch of the source, in formats with branches.")
@click.option("--columns", metavar="A,B", help="The columns that are converted; all unless given.")
@click.option("--partition-by", metavar="A,B", help="Partition columns of the new table, in formats with partitions.")
@click.option(
    "--row-ids/--no-row-ids",
    default=None,
    help="Whether rows of the new table have stable ids, and keep those that they have; if the source has some.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    help="Allow that the new table lacks this, by the name in the error; all for everything; repeatable.",
)
@click.option("--file-version", help="The version of data files, in formats with several.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="COLUMN=TYPE",
    callback=pairs,
    help="A partition column of a folder of Parquet files and its type; repeatable, in the order of the folders.",
)
@click.option(
    "--partition-strategy",
    "strategy",
    type=click.Choice(["hive", "directory"]),
    help="How the folders of partitions are named: column=value (the default), or by the value alone.",
)
@click.option(
    "--mode",
    type=click.Choice(["error", "ignore", "append"]),
    help="The treatment of a folder that is a table already; append adds files that are new since it was converted.",
)
@click.option("--no-statistics", is_flag=True, help="Record the number of rows only, no bounds and counts of nulls.")
@click.option(
    "--no-sink-log",
    is_flag=True,
    help="Take all files, also those that the log of a streaming query of Spark (_spark_metadata) does not name.",
)
@click.option(
    "--null-on-failed-cast", is_flag=True, help="Make a value of a partition null that is none of its column's type."
)
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", callback=pairs, help="A table property; repeatable."
)
@click.option("--name", help="The name of the table.")
@click.option("--description", help="The description of the table.")
@click.option("--dry-run", is_flag=True, help="Check everything, show what would be done, and write nothing.")
@as_json
def convert(
    target: Target,
    destination: str | None,
    to: str | None,
    partitions: dict[str, str],
    properties: dict[str, str],
    dry_run: bool,
    json_output: bool,
    **options: Any,
) -> None:
    """Write a table to a new one of another format, or make a Delta table of a folder of Parquet files in place.

    With DESTINATION and --to, the rows of TABLE, a table of any installed format or a folder of Parquet files, are
    written to a new table. Without, TABLE is a folder of Parquet files that becomes a Delta table: no data is written.

    \b
    Examples:
      delta-core convert sales --dry-run
      delta-core convert sales --partition year=integer --partition day=date
      delta-core convert sales --mode append
      delta-core convert sales sales.lance --to lance --without partitions
      delta-core convert sales.lance sales-2 --to delta --tag release --partition-by year
    """
    by = Schema([Field(column, parse_type_text(text), True, {}) for column, text in partitions.items()])
    if destination is None:
        _check_form({**options, "to": to}, ("to", *_TO_ANOTHER), "with DESTINATION")
        if target.version is not None or target.timestamp is not None:
            raise click.UsageError("A folder of Parquet files has no versions: --version needs DESTINATION.")
        _in_place(target, by, properties, dry_run, json_output, options)
        return
    if to is None:
        raise click.UsageError("DESTINATION needs --to FORMAT.")
    _check_form(options, _IN_PLACE, "without DESTINATION")
    _to_another(target, destination, to, by, properties, dry_run, json_output, options)


def _check_form(options: dict[str, Any], others: tuple[str, ...], form: str) -> None:
    """Reject options of the other form of the command."""
    strange = next((n for n in others if options.get(n) not in (None, False, ())), None)
    if strange is not None:
        shown = "partition-strategy" if strange == "strategy" else strange.replace("_", "-")
        raise click.UsageError(f"--{shown} works {form} only.")


def _in_place(
    target: Target, by: Schema, properties: dict[str, str], dry_run: bool, json_output: bool, options: dict[str, Any]
) -> None:
    done = convert_to_deltalake(
        target.uri,
        options["mode"] or "error",
        by if by.members else None,
        (options["strategy"] or "hive") if by.members else None,
        options["name"],
        options["description"],
        properties,
        target.storage_options or None,
        collect_stats=not options["no_statistics"],
        dry_run=dry_run,
        null_on_failed_cast=options["null_on_failed_cast"],
        use_sink_log=not options["no_sink_log"],
    )
    if done is not None:
        facts = {"files": done["num_files"]}
        print_json(facts) if json_output else print_facts(facts)
        return
    report(DeltaTable(target.uri, storage_options=target.storage_options or None), json_output)


def _to_another(
    target: Target,
    destination: str,
    to: str,
    by: Schema,
    properties: dict[str, str],
    dry_run: bool,
    json_output: bool,
    options: dict[str, Any],
) -> None:
    own: dict[str, Any] = {"properties": properties or None, "file_version": options["file_version"]}
    own["partition_by"] = _names(options["partition_by"])
    done = tables.convert(
        target.uri,
        destination,
        to,
        version=target.version,
        timestamp=_time(target),
        tag=options["tag"],
        branch=options["branch"],
        columns=_names(options["columns"]),
        row_ids=options["row_ids"],
        without=options["without"],
        dry_run=dry_run,
        folder_partitions=by if by.members else None,
        storage_options=target.storage_options or None,
        allow_external=target.allow_external,
        **{n: v for n, v in own.items() if v is not None},
    )
    if json_output:
        print_json(done.to_dict())
        return
    print_facts({"rows": "none, nothing was written" if dry_run else done.num_rows, "format": to})
    types = [(c.column, c.found, c.becomes, ", ".join(c.losses)) for c in done.columns]
    print_rows(["column", "type", "becomes", "lost"], types)
    print_rows(["of the source", "outcome", "detail"], [(f.name, f.outcome, f.detail) for f in done.facets])


def _time(target: Target) -> datetime | None:
    at = target.timestamp
    return None if at is None else datetime.fromtimestamp(parse_ms(at, target.timezone) / 1000, UTC)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [n.strip() for n in text.split(",")]
