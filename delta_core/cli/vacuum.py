"""The command that deletes files which no version of a table needs."""

from __future__ import annotations

import sys

import click
import pyarrow as pa

from delta_core import operations
from delta_core.cli.options import Target, WholeNumber, as_json, table_command
from delta_core.cli.output import confirm, print_facts, print_json, print_note, quantity
from delta_core.cli.sources import open_rows

__all__ = ["vacuum"]


@click.command()
@table_command(versioned=False)
@click.option(
    "--retention-hours",
    type=float,
    metavar="H",
    help="Keep files that are younger; the table's own retention unless given.",
)
@click.option("--no-retention-check", is_flag=True, help="Allow a retention that is shorter than the table's.")
@click.option(
    "--full/--lite", default=True, help="List the table's folders (default), or take removed files from the log."
)
@click.option("--dry-run", is_flag=True, help="Show the files, and delete nothing.")
@click.option("--yes", is_flag=True, help="Delete without a question.")
@click.option(
    "--keep-version", type=WholeNumber(min=0), multiple=True, metavar="N", help="Keep the files of a version."
)
@click.option("--keep-for", multiple=True, metavar="TABLE", help="Keep files that another table uses, such as a clone.")
@click.option(
    "--inventory",
    type=click.Path(exists=True),
    metavar="FILE",
    help="A file with path, size and modification_time of all files.",
)
@click.option(
    "--plan",
    type=click.Path(),
    metavar="FILE",
    help="Write the plan there with --dry-run; otherwise run the plan that is there.",
)
@as_json
def vacuum(
    target: Target,
    retention_hours: float | None,
    no_retention_check: bool,
    full: bool,
    dry_run: bool,
    yes: bool,
    keep_version: tuple[int, ...],
    keep_for: tuple[str, ...],
    inventory: str | None,
    plan: str | None,
    json_output: bool,
) -> None:
    """Delete files that no version within the retention needs.

    \b
    Examples:
      delta-core vacuum sales --dry-run
      delta-core vacuum sales --retention-hours 240 --keep-version 7 --yes
      delta-core vacuum sales --dry-run --plan sales.plan
      delta-core vacuum sales --plan sales.plan
    """
    table = target.table()
    if plan is not None and not dry_run:
        found = operations.VacuumPlan.load(plan)
    else:
        found = table.plan_vacuum(
            retention_hours,
            not no_retention_check,
            full=full,
            keep_versions=keep_version,
            keep_for=keep_for,
            inventory=None if inventory is None else pa.table(open_rows([inventory], None)),
        )
    facts = {"version": table.version(), "files": found.num_files, "size_bytes": found.num_bytes}
    if dry_run:
        if plan is not None:
            found.save(plan)
        _show(found, facts, json_output)
        return
    if found.num_files and not yes:
        question = (
            f"Delete {found.num_files:,} files ({quantity(found.num_bytes)}) of {target.uri}? This can't be undone."
        )
        confirm(question)
    table.vacuum(plan=found, dry_run=False)
    facts["version"] = table.version()
    print_json(facts) if json_output else print_facts(facts)


def _show(plan: operations.VacuumPlan, facts: dict[str, int], json_output: bool) -> None:
    if json_output:
        print_json({**facts, "paths": plan.paths()})
        return
    print_note(f"{plan.num_files:,} files ({quantity(plan.num_bytes)}) would be deleted.")
    for batch in plan.batches():
        sys.stdout.write("".join(f"{path}\n" for path in batch.column("path").to_pylist()))
    sys.stdout.write("".join(f"{folder}/\n" for folder in plan.empty_folders))
