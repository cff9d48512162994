"""Commands that maintain the files of a table's log, and the manifests beside it."""

from __future__ import annotations

from collections.abc import Callable

import click

from delta_core import operations
from delta_core.cli.options import Target, WholeNumber, as_json, table_command
from delta_core.cli.output import confirm, print_facts, print_json

__all__ = ["cleanup", "compact_log", "generate"]


@click.command("compact-log")
@table_command(versioned=False)
@click.argument("first", type=WholeNumber(min=0))
@click.argument("last", type=WholeNumber(min=0))
@click.option("--dry-run", is_flag=True, help="Look for the commits, show the name of the file, and write nothing.")
@as_json
def compact_log(target: Target, first: int, last: int, dry_run: bool, json_output: bool) -> None:
    """Write the actions of the commits FIRST to LAST into one file of the log.

    \b
    Examples:
      delta-core compact-log sales 0 99
    """
    with operations.progress_bar() as advance:
        name = operations.compact_log(target.snapshot(), first, last, dry_run=dry_run, progress=advance)
    facts = {"file": name}
    print_json(facts) if json_output else print_facts(facts)


@click.command()
@table_command(versioned=False)
@click.option("--dry-run", is_flag=True, help="Show the files, and delete nothing.")
@click.option("--yes", is_flag=True, help="Delete without a question.")
@as_json
def cleanup(target: Target, dry_run: bool, yes: bool, json_output: bool) -> None:
    """Delete files of the log that are older than the table's log retention.

    \b
    Examples:
      delta-core cleanup sales --dry-run
      delta-core cleanup sales --yes
    """
    snapshot = target.snapshot()
    files = operations.clean_log(snapshot, dry_run=True)
    if not dry_run and files:
        if not yes:
            question = f"Delete {len(files):,} files of the log of {target.uri}? Versions that need them are lost."
            confirm(question)
        with operations.progress_bar() as advance:
            files = operations.clean_log(snapshot, progress=None if advance is None else _counted(advance))
    print_json({"files": files}) if json_output else click.echo("".join(f"{name}\n" for name in files), nl=False)


def _counted(advance: Callable[[operations.OperationProgress], None]) -> Callable[[int, int], None]:
    return lambda done, total: advance(operations.OperationProgress(done, total, 0, 0, 0, "delete"))


@click.command()
@table_command(versioned=False)
@as_json
def generate(target: Target, json_output: bool) -> None:
    """Write symlink manifests: lists of the table's files for engines that can't read the log.

    \b
    Examples:
      delta-core generate sales
    """
    files = operations.write_manifests(target.snapshot())
    print_json({"files": files}) if json_output else click.echo("".join(f"{name}\n" for name in files), nl=False)
