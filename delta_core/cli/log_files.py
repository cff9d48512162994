"""Commands that maintain the files of a table's log."""

from __future__ import annotations

import click

from delta_core import operations
from delta_core.cli.options import Target, as_json, table_command
from delta_core.cli.output import print_facts, print_json

__all__ = ["compact_log"]


@click.command("compact-log")
@table_command(versioned=False)
@click.argument("first", type=click.IntRange(min=0))
@click.argument("last", type=click.IntRange(min=0))
@as_json
def compact_log(target: Target, first: int, last: int, json_output: bool) -> None:
    """Write the actions of the commits FIRST to LAST into one file of the log.

    \b
    Examples:
      delta-core compact-log sales 0 99
    """
    facts = {"file": operations.compact_log(target.snapshot(), first, last)}
    print_json(facts) if json_output else print_facts(facts)
