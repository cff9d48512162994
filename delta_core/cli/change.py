"""Commands that change a table: create, write, delete, update, checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pyarrow as pa

import delta_core
from delta_core import operations
from delta_core.cli.options import Target, WholeNumber, as_json, pairs, table_command
from delta_core.cli.output import print_facts, print_json, print_note, quantity
from delta_core.cli.sinks import FORMATS
from delta_core.cli.sources import open_rows, read_schema
from delta_core.formats import FormatTable
from delta_core.schema.fields import Schema, arrow_schema
from delta_core.table.delta_table import DeltaTable

__all__ = ["checkpoint", "create", "delete", "report", "update", "write"]


def _list(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()] if value else []


def _definition(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--property",
            "properties",
            multiple=True,
            metavar="KEY=VALUE",
            callback=pairs,
            help="A table property of a new table; repeatable.",
        ),
        click.option("--cluster-by", metavar="A,B", callback=_list, help="Clustering columns of a new table."),
        click.option("--partition-by", metavar="A,B", callback=_list, help="Partition columns of a new table."),
        click.option("--name", help="The name of a new table."),
        click.option("--description", help="The description of a new table."),
    ):
        command = option(command)
    return command


@click.command()
@table_command(versioned=False, named=False)
@click.option(
    "--schema",
    "schema_file",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="A Delta schema as JSON, or a data file whose columns the table gets.",
)
@click.option("--feature", "features", multiple=True, metavar="NAME", help="A table feature to switch on; repeatable.")
@click.option(
    "--mode",
    type=click.Choice(["error", "ignore", "overwrite"]),
    default="error",
    show_default=True,
    help="The treatment of a table that exists.",
)
@_definition
@as_json
def create(
    target: Target,
    schema_file: str,
    features: tuple[str, ...],
    mode: Any,
    properties: dict[str, str],
    cluster_by: list[str],
    partition_by: list[str],
    name: str | None,
    description: str | None,
    json_output: bool,
) -> None:
    """Create a table without rows.

    \b
    Examples:
      delta-core create sales --schema schema.json --partition-by day
      delta-core create sales --schema first.parquet --property delta.enableDeletionVectors=true
    """
    found = read_schema(schema_file)
    schema = Schema.from_json(found) if isinstance(found, str) else Schema.from_arrow(found)
    table = DeltaTable.create(
        target.uri,
        schema,
        mode,
        partition_by or None,
        name,
        description,
        properties or None,
        target.storage_options or None,
        cluster_by=cluster_by,
        features=features,
        timezone=target.timezone,
        allow_external=target.allow_external,
    )
    report(table, json_output)


def _rows(arguments: dict[str, Any], table: FormatTable) -> pa.RecordBatchReader:
    """Return the rows of files for a table of another format; CSV and JSON are read as its types."""
    schema = pa.schema(table.scan().schema)
    return open_rows(arguments.pop("sources"), arguments.pop("kind", None), schema)


@click.command()
@table_command(versioned=False, rows=_rows)
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--mode",
    type=click.Choice(["error", "append", "overwrite", "ignore"]),
    default="append",
    show_default=True,
    help="The treatment of a table that exists.",
)
@click.option(
    "--format", "-f", "kind", type=click.Choice(FORMATS), help="The sources' format; else their ending specifies it."
)
@click.option(
    "--replace-where", metavar="SQL", help="With --mode overwrite: replace only the rows that a predicate selects."
)
@click.option(
    "--replace-using",
    metavar="A,B",
    help="With --mode overwrite: replace only the rows that are equal to a new row in these columns.",
)
@click.option(
    "--replace-on",
    metavar="SQL",
    help="With --mode overwrite: replace only the rows (t) for which this is true with a new row (s).",
)
@click.option(
    "--replace-partitions", is_flag=True, help="With --mode overwrite: replace only the partitions that are written."
)
@click.option(
    "--schema-mode", type=click.Choice(["merge", "overwrite"]), help="Let the rows extend or replace the schema."
)
@click.option("--target-file-size", type=WholeNumber(min=1), metavar="BYTES", help="The size that files should have.")
@_definition
@as_json
def write(
    target: Target,
    sources: tuple[str, ...],
    mode: Any,
    kind: str | None,
    replace_where: str | None,
    replace_using: str | None,
    replace_on: str | None,
    replace_partitions: bool,
    schema_mode: Any,
    target_file_size: int | None,
    properties: dict[str, str],
    cluster_by: list[str],
    partition_by: list[str],
    name: str | None,
    description: str | None,
    json_output: bool,
) -> None:
    """Write rows of Parquet, CSV, JSON lines or Arrow files into a table; - reads standard input.

    The table is created if there is none. CSV and JSON are read as the table's types if it exists.

    \b
    Examples:
      delta-core write sales day1.parquet day2.parquet
      delta-core write sales new.csv --mode overwrite --replace-where "day = '2024-05-01'"
      delta-core write sales corrected.csv --mode overwrite --replace-using customer,day
      delta-core cat other -f arrow | delta-core write sales -
    """
    exists = DeltaTable.is_deltatable(target.uri, target.storage_options or None)
    if not exists and target.other_table() is not None:
        target.table()  # is not there: the write of the other format runs
    columns, filled = None, frozenset[str]()
    if exists and mode in ("append", "overwrite") and schema_mode is None:
        snapshot = target.snapshot()
        columns = arrow_schema(snapshot.schema, snapshot.state.types)
        filled = frozenset(rule.column[0] for rule in snapshot.begin("WRITE").plan.fills)
    delta_core.write_deltalake(
        target.uri,
        open_rows(sources, kind, columns, filled),
        mode=mode,
        partition_by=partition_by or None,
        name=name,
        description=description,
        configuration=properties or None,
        schema_mode=schema_mode,
        storage_options=target.storage_options or None,
        predicate=replace_where,
        replace_using=[name.strip() for name in (replace_using or "").split(",") if name.strip()],
        replace_on=replace_on,
        target_file_size=target_file_size,
        partition_overwrite="dynamic" if replace_partitions else "static",
        cluster_by=cluster_by,
        allow_external=target.allow_external,
    )
    report(target.table(), json_output)


def _row_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        as_json,
        click.option("--dry-run", is_flag=True, help="Show how many files and rows that would be, and change nothing."),
        click.option("--all", "every", is_flag=True, help="All rows, in place of --where."),
        click.option("--where", metavar="SQL", help="Which rows: those for which this predicate is true."),
    ):
        command = option(command)
    return command


def _change_rows(
    target: Target,
    where: str | None,
    every: bool,
    dry_run: bool,
    json_output: bool,
    change: Callable[[DeltaTable], Any],
) -> None:
    """Change the selected rows and report the commit; a dry run reports the files and rows instead."""
    if (where is not None) == every:
        raise click.UsageError("Pass either --where with a predicate, or --all.")
    table = target.table()
    if dry_run:
        num_files, num_rows = operations.count_selected(table.snapshot(), where)
        facts = {"version": table.version(), "files": num_files, "rows": num_rows}
        print_json(facts) if json_output else print_facts(facts)
        return
    before = table.version()
    change(table)
    if table.version() == before:
        print_json({"version": before, "operation": None, "metrics": {}}) if json_output else print_note(
            "No row matches."
        )
        return
    report(table, json_output)


@click.command()
@table_command(versioned=False)
@_row_options
def delete(target: Target, where: str | None, every: bool, dry_run: bool, json_output: bool) -> None:
    """Delete the rows for which a predicate is true.

    \b
    Examples:
      delta-core delete sales --where "day < '2024-01-01'"
      delta-core delete sales --where "id = 7" --dry-run
      delta-core delete sales --all
    """
    _change_rows(target, where, every, dry_run, json_output, lambda table: table.delete(where))


@click.command()
@table_command(versioned=False)
@click.option(
    "--set",
    "updates",
    multiple=True,
    required=True,
    metavar="COLUMN=SQL",
    callback=pairs,
    help="A column, or a field of a struct, and its new value; repeatable.",
)
@_row_options
def update(
    target: Target, updates: dict[str, str], where: str | None, every: bool, dry_run: bool, json_output: bool
) -> None:
    """Assign new values to columns of the rows for which a predicate is true.

    \b
    Examples:
      delta-core update sales --set "amount=amount * 1.1" --where "day = '2024-05-06'"
      delta-core update sales --set "address.city=upper(address.city)" --all --dry-run
    """
    _change_rows(target, where, every, dry_run, json_output, lambda table: table.update(updates, predicate=where))


@click.command()
@table_command(versioned=False)
@as_json
def checkpoint(target: Target, json_output: bool) -> None:
    """Write a checkpoint of the latest version.

    \b
    Examples:
      delta-core checkpoint sales
    """
    result = operations.write_checkpoint(target.snapshot())
    facts = {
        "version": result.version,
        "path": result.path,
        "size_bytes": result.size_bytes,
        "num_actions": result.num_actions,
        "num_adds": result.num_adds,
        "sidecars_written": list(result.written),
        "sidecars_reused": list(result.reused),
    }
    if json_output:
        print_json(facts)
        return
    print_note(
        f"Checkpoint of version {result.version}: {result.num_adds:,} files, {quantity(result.size_bytes)}, "
        f"{result.path}"
    )


def report(table: DeltaTable, json_output: bool) -> None:
    """Print the commit that the table's latest version is."""
    last = table.history(1)[0]
    facts = {
        "version": table.version(),
        "operation": last.get("operation"),
        "metrics": last.get("operationMetrics") or {},
    }
    if json_output:
        print_json(facts)
    else:
        print_facts(facts)
