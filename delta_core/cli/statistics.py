"""The command that adds statistics to files."""

from __future__ import annotations

import click

from delta_core.cli.options import Target, as_json, table_command
from delta_core.cli.output import print_facts, print_json

__all__ = ["statistics"]


@click.command()
@table_command(versioned=False)
@click.option("--where", "predicate", metavar="SQL", help="Only files of these partitions: SQL on partition columns.")
@click.option("--every", is_flag=True, help="Also files that have statistics.")
@click.option("--dry-run", is_flag=True, help="Show how many files would be looked at, and change nothing.")
@as_json
def statistics(target: Target, predicate: str | None, every: bool, dry_run: bool, json_output: bool) -> None:
    """Add statistics to files that lack them, from their footers.

    \b
    Examples:
      delta-core statistics sales
      delta-core statistics sales --where "day = '2024-05-01'" --every
    """
    table = target.table()
    done = table.compute_statistics(predicate, every=every, dry_run=dry_run)
    facts = {"version": table.version(), "files": done["num_files"]}
    print_json(facts) if json_output else print_facts(facts)
