"""The command that merges files into a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from delta_core.cli.change import report
from delta_core.cli.options import Target, as_json, pairs, table_command
from delta_core.cli.output import print_facts, print_json, print_note
from delta_core.cli.sinks import FORMATS
from delta_core.cli.sources import open_rows
from delta_core.formats import FormatTable

__all__ = ["merge"]


def _assignments(name: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(name, multiple=True, metavar="COLUMN=SQL", callback=pairs, help=f"{what}; repeatable.")


def _rows(arguments: dict[str, Any], table: FormatTable) -> Any:
    return open_rows(arguments.pop("sources"), arguments.pop("kind", None))


@click.command()
@table_command(versioned=False, rows=_rows)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--on", required=True, metavar="SQL", help="Which row of the source matches which row of the table.")
@click.option(
    "--format", "-f", "kind", type=click.Choice(FORMATS), help="The sources' format; else their ending specifies it."
)
@click.option("--matched-delete", metavar="SQL", help="Delete matching rows for which this is true; 'true' for all.")
@_assignments("--matched-update", "Set a column of matching rows")
@click.option("--matched-update-all", is_flag=True, help="Set matching rows to those of the source.")
@_assignments("--not-matched-insert", "Insert rows of the source without a match, with this column")
@click.option("--not-matched-insert-all", is_flag=True, help="Insert rows of the source without a match.")
@click.option(
    "--not-matched-by-source-delete", metavar="SQL", help="Delete rows without a match for which this is true."
)
@_assignments("--not-matched-by-source-update", "Set a column of rows of the table without a match")
@click.option("--merge-schema", is_flag=True, help="Add the columns that only the source has to the table.")
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
@as_json
def merge(
    target: Target,
    sources: tuple[str, ...],
    on: str,
    kind: str | None,
    matched_delete: str | None,
    matched_update: dict[str, str],
    matched_update_all: bool,
    not_matched_insert: dict[str, str],
    not_matched_insert_all: bool,
    not_matched_by_source_delete: str | None,
    not_matched_by_source_update: dict[str, str],
    merge_schema: bool,
    dry_run: bool,
    json_output: bool,
) -> None:
    """Update, delete and insert rows by comparing the table with rows of files; - reads standard input.

    Columns are target.x and source.x. A row is deleted if it is to be deleted and updated.

    \b
    Examples:
      delta-core merge sales new.parquet --on "target.id = source.id" --matched-update-all --not-matched-insert-all
      delta-core merge sales gone.csv --on "target.id = source.id" --matched-delete true --dry-run
    """
    if matched_update and matched_update_all or not_matched_insert and not_matched_insert_all:
        raise click.UsageError("Pass either single columns, or all of them.")
    clauses = (
        matched_update, matched_update_all, not_matched_insert, not_matched_insert_all, not_matched_by_source_update
    )  # fmt: skip
    if not any(clauses) and matched_delete is None and not_matched_by_source_delete is None:
        raise click.UsageError("Pass what to do with rows, such as --matched-update-all and --not-matched-insert-all.")
    table = target.table()
    before = table.version()
    merger = table.merge(open_rows(sources, kind), on, merge_schema=merge_schema, dry_run=dry_run)
    if matched_delete is not None:
        merger.when_matched_delete(matched_delete)
    if matched_update or matched_update_all:
        merger.when_matched_update(matched_update) if matched_update else merger.when_matched_update_all()
    if not_matched_insert or not_matched_insert_all:
        merger.when_not_matched_insert(
            not_matched_insert
        ) if not_matched_insert else merger.when_not_matched_insert_all()
    if not_matched_by_source_delete is not None:
        merger.when_not_matched_by_source_delete(not_matched_by_source_delete)
    if not_matched_by_source_update:
        merger.when_not_matched_by_source_update(not_matched_by_source_update)
    metrics = merger.execute()
    if dry_run:
        shown = (
            "source_rows",
            "target_rows_updated",
            "target_rows_deleted",
            "target_rows_inserted",
            "target_files_scanned",
        )
        facts = {"version": before, **{name: metrics[f"num_{name}"] for name in shown}}
        print_json(facts) if json_output else print_facts(facts)
    elif table.version() == before:
        nothing: dict[str, Any] = {"version": before, "operation": None, "metrics": {}}
        print_json(nothing) if json_output else print_note("No row changes.")
    else:
        report(table, json_output)
