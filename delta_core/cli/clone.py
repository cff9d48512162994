"""The command that clones a table."""

from __future__ import annotations

import click

from delta_core import operations
from delta_core.cli.options import Target, as_json, pairs, table_command
from delta_core.cli.output import confirm, print_facts, print_json
from delta_core.errors import TableNotFoundError
from delta_core.kernel.snapshot import open_context

__all__ = ["clone"]


@click.command()
@table_command()
@click.argument("clone_uri", metavar="CLONE")
@click.option("--deep", is_flag=True, help="Copy the files; otherwise the clone names those of TABLE.")
@click.option("--replace", is_flag=True, help="Replace the rows and the definition of a table that is there.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    callback=pairs,
    help="A table property of the clone; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Show how many files would be copied and removed, and change nothing.")
@click.option("--yes", is_flag=True, help="Replace a table without a question.")
@as_json
def clone(
    target: Target,
    clone_uri: str,
    deep: bool,
    replace: bool,
    properties: dict[str, str],
    dry_run: bool,
    yes: bool,
    json_output: bool,
) -> None:
    """Make the table CLONE, with the files of a version of TABLE.

    \b
    Examples:
      delta-core clone sales sales-test
      delta-core clone sales s3://backup/sales --deep --replace
      delta-core clone sales sales-2024 --version 12 --property delta.appendOnly=true
    """
    context = open_context(clone_uri, target.storage_options or None, allow_external=target.allow_external)
    if replace and not dry_run and not yes:
        try:
            found = context.read(None).version
        except TableNotFoundError:
            found = None
        if found is not None:
            confirm(f"Replace the rows and the definition of {clone_uri} (version {found})?")
    options = operations.CloneOptions(deep, replace, properties, dry_run)
    done = operations.clone_table(target.snapshot(), context, options)
    metrics = done.metrics
    facts = {
        "version": None if done.snapshot is None else done.snapshot.version,
        "files": metrics["sourceNumOfFiles"],
        "files_copied": metrics["numCopiedFiles"],
        "bytes_copied": metrics["copiedFilesSize"],
        "files_removed": metrics["numRemovedFiles"],
    }
    if dry_run:
        del facts["version"]
    print_json(facts) if json_output else print_facts(facts)
