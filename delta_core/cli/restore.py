"""The command that restores a table to an older version."""

from __future__ import annotations

import click

from delta_core.cli.options import Target, WholeNumber, as_json, table_command
from delta_core.cli.output import print_facts, print_json

__all__ = ["restore"]


@click.command()
@table_command(versioned=False)
@click.option("--to-version", type=WholeNumber(min=0), metavar="N", help="The version to restore.")
@click.option("--to-timestamp", metavar="TIME", help="Restore the last version at this time (ISO 8601).")
@click.option("--ignore-missing-files", is_flag=True, help="Leave out files that are gone, with their rows.")
@click.option(
    "--allow-protocol-downgrade", is_flag=True, help="Restore the protocol of the version too; otherwise it stays."
)
@click.option("--dry-run", is_flag=True, help="Show how many files would change, and commit nothing.")
@as_json
def restore(
    target: Target,
    to_version: int | None,
    to_timestamp: str | None,
    ignore_missing_files: bool,
    allow_protocol_downgrade: bool,
    dry_run: bool,
    json_output: bool,
) -> None:
    """Restore a table to an older version, in a new commit.

    \b
    Examples:
      delta-core restore sales --to-version 12
      delta-core restore sales --to-timestamp 2024-05-01T06:00:00Z --dry-run
    """
    wanted = to_version if to_timestamp is None else to_timestamp
    if wanted is None or to_version is not None and to_timestamp is not None:
        raise click.UsageError("Pass either --to-version or --to-timestamp.")
    table = target.table()
    metrics = table.restore(
        wanted,
        ignore_missing_files=ignore_missing_files,
        protocol_downgrade_allowed=allow_protocol_downgrade,
        dry_run=dry_run,
    )
    facts = {
        "version": table.version(),
        "files_removed": metrics["numRemovedFile"],
        "files_restored": metrics["numRestoredFile"],
    }
    print_json(facts) if json_output else print_facts(facts)
