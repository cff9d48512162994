"""The command that adds, drops and lists table features."""

from __future__ import annotations

from typing import Any

import click

from delta_core import operations
from delta_core.cli.inspect import features
from delta_core.cli.options import CommandGroup, Target, as_json, table_command
from delta_core.cli.output import confirm, print_facts, print_json, print_note

__all__ = ["feature"]


@click.group(cls=CommandGroup)
def feature() -> None:
    """Add table features, drop them, and list them.

    \b
    Examples:
      delta-core feature list sales
      delta-core feature add sales rowTracking v2Checkpoint
      delta-core feature drop sales deletionVectors --dry-run
    """


feature.add_command(features, "list")


@feature.command()
@table_command(versioned=False)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--dry-run", is_flag=True, help="Show the protocol that the table would have, and commit nothing.")
@as_json
def add(target: Target, names: tuple[str, ...], dry_run: bool, json_output: bool) -> None:
    """Add features, with those that they require.

    The protocol's versions rise if the features need it, which locks out older programs. A feature that a table
    property switches on is added by setting the property, too (alter set-property).

    \b
    Examples:
      delta-core feature add sales rowTracking
      delta-core feature add sales v2Checkpoint --dry-run
    """
    table = target.table()
    protocol = operations.protocol_with(table.snapshot(), names)
    if not dry_run:
        table.alter.add_feature(names, allow_protocol_versions_increase=True)
    facts: dict[str, Any] = {"version": table.version(), **protocol.to_json()}
    print_json(facts) if json_output else print_facts(facts)


@feature.command()
@table_command(versioned=False)
@click.argument("name")
@click.option(
    "--truncate-history",
    is_flag=True,
    help="Remove the versions that use the feature from the log, in place of protecting the checkpoints after them.",
)
@click.option("--dry-run", is_flag=True, help="Show the steps, and commit nothing.")
@click.option("--yes", is_flag=True, help="Drop the feature without a question.")
@as_json
def drop(target: Target, name: str, truncate_history: bool, dry_run: bool, yes: bool, json_output: bool) -> None:
    """Drop a feature: what metadata and files contain of it, then its name in the protocol.

    Rows stay as they are. If it is interrupted, or --truncate-history has to wait for versions to grow old, run it
    again.

    \b
    Examples:
      delta-core feature drop sales deletionVectors --dry-run
      delta-core feature drop sales deletionVectors --yes
      delta-core feature drop sales checkpointProtection --truncate-history
    """
    table = target.table()
    steps = table.alter.drop_feature(name, truncate_history=truncate_history, dry_run=True)
    if not dry_run:
        if not yes:
            for step in steps:
                print_note(step)
            confirm(f"Drop the feature {name} of {target.uri} in these steps? They can't be undone.")
        table.alter.drop_feature(name, truncate_history=truncate_history)
    facts = {"version": table.version(), "feature": name, "dropped": not dry_run, "steps": steps}
    if json_output:
        print_json(facts)
    elif dry_run:
        click.echo("\n".join(steps))
    else:
        print_facts({k: v for k, v in facts.items() if k != "steps"})
