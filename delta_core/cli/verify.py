"""The commands that verify and repair a table."""

from __future__ import annotations

from typing import Any

import click

from delta_core.cli.options import Target, as_json, table_command
from delta_core.cli.output import confirm, print_json, print_note, print_table
from delta_core.errors import CatalogRequiredError, CorruptTableError, VersionNotFoundError
from delta_core.kernel.snapshot import Snapshot, open_context
from delta_core.operations.verify.operation import VerifyOptions, VerifyReport, verify_table

__all__ = ["repair", "verify"]

FINDINGS, UNREADABLE = 1, 2
#: The question before each kind of step.
_QUESTIONS = {
    "write-checkpoint": "Write the checkpoint again from the commits?",
    "delete-compacted": "Delete the compacted file?",
    "write-hint": "Write the hint again?",
    "delete-hint": "Delete the hint?",
    "delete-checksum": "Delete the checksum?",
    "write-checksum": "Write the checksum of the latest version again?",
    "remove-files": "Remove the entries of these files from the table, and with them their rows?",
    "replace-statistics": "Replace the statistics of these files?",
}


@click.command()
@table_command()
@click.option("--deep", is_flag=True, help="Compare the statistics with the footers of the data files too.")
@click.option(
    "--rows", is_flag=True, help="Compare the statistics with the rows, and check constraints: reads all data."
)
@click.option("--log-only", is_flag=True, help="Don't look for data files, and read no deletion vectors.")
@as_json
def verify(target: Target, deep: bool, rows: bool, log_only: bool, json_output: bool) -> None:
    """Check a table's log, definition and files against the rules of the protocol; nothing is changed.

    Exit code 0: sound. 1: there are errors or warnings. 2: the table can't be read.

    \b
    Examples:
      delta-core verify sales
      delta-core verify sales --deep --json
    """
    if log_only and (deep or rows):
        raise click.UsageError("--log-only excludes --deep and --rows.")
    report, is_readable = _verified(target, VerifyOptions("rows" if rows else deep, not log_only))
    if json_output:
        print_json(report.to_dict())
    else:
        click.echo(report.to_text())
    if not is_readable:
        raise click.exceptions.Exit(UNREADABLE)
    if not report.ok:
        raise click.exceptions.Exit(FINDINGS)


def _verified(target: Target, options: VerifyOptions) -> tuple[VerifyReport, bool]:
    """Return the report, and whether the table can be opened: of one that can't the log is verified nevertheless."""
    try:
        table = target.readable()
    except CatalogRequiredError:
        raise
    except (CorruptTableError, VersionNotFoundError):
        context = open_context(
            target.uri, target.storage_options or None, timezone=target.timezone, allow_external=target.allow_external
        )
        if not context.log.listed():
            raise
        return verify_table(context, None, options), False
    if isinstance(table, Snapshot):
        return verify_table(table.context, table, options), True
    if options != VerifyOptions(False, True):
        raise click.UsageError("--deep, --rows and --log-only are options for Delta tables only.")
    return table.verify(), True


@click.command()
@table_command(versioned=False)
@click.option(
    "--deep", is_flag=True, help="Read the footers of the data files too, and replace statistics that are wrong."
)
@click.option("--dry-run", is_flag=True, help="Show the steps, and change nothing.")
@click.option("--yes", is_flag=True, help="Do every step without a confirmation.")
@as_json
def repair(target: Target, deep: bool, dry_run: bool, yes: bool, json_output: bool) -> None:
    """Remove the entries of data files that are not there, and mend the log where that is certain.

    Each step that changes something has to be confirmed. Replaced files are kept below _delta_log/_replaced.

    \b
    Examples:
      delta-core repair sales --dry-run
      delta-core repair sales --yes
    """
    table = target.table()
    result = table.repair(dry_run, deep=deep, confirm=None if yes or dry_run else _confirmed)
    if json_output:
        print_json(result)
        return
    if not result["steps"]:
        print_note("Nothing to repair.")
        return
    columns = ("step", "file", "reason", "kept")
    print_table(columns, [tuple(s[c] for c in columns) for s in result["steps"]])
    for path in result["files_removed"]:
        click.echo(path)


def _confirmed(step: dict[str, Any]) -> bool:
    """Require a confirmation of a step; ends the program if there is none."""
    print_note(f"{step['step']}{': ' + step['file'] if step['file'] else ''}: {step['reason']}.")
    confirm(_QUESTIONS[step["step"]])
    return True
