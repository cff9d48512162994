"""The commands that judge a table: report, health."""

from __future__ import annotations

from pathlib import Path

import click

from delta_core.cli.options import Target, as_json, table_command
from delta_core.cli.output import print_json, print_note
from delta_core.errors import DeltaError, InvalidArgumentError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.snapshot import Snapshot
from delta_core.table.parts import TableReport, report_of

__all__ = ["health", "report"]

#: The exit codes of monitors: 1 warns, 2 is an error, as is what `app` reports.
EXIT = {"good": 0, "attention": 1, "bad": 2}


def _reported(target: Target, log_only: bool) -> TableReport:
    table = target.readable()
    return report_of(table, store=not log_only) if isinstance(table, Snapshot) else table.report(store=not log_only)


@click.command()
@table_command()
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="The file; without it, the page is printed."
)
@click.option("--log-only", is_flag=True, help="Don't list the store for files that are missing or not needed.")
@as_json
def report(target: Target, output: Path | None, log_only: bool, json_output: bool) -> None:
    """Write a page about a table: its sizes, versions, order, statistics, upkeep and findings.

    The page needs no other file and no network. No data file is read.

    \b
    Examples:
      delta-core report sales -o sales.html
      delta-core report sales --json
    """
    found = _reported(target, log_only)
    if json_output:
        if output is not None:
            raise click.UsageError("--json excludes --output: it prints the report.")
        print_json(found.to_dict())
    elif output is None:
        click.echo(found.to_html(), nl=False)
    else:
        found.save(output)
        print_note(f"Wrote {output}.")


@click.command()
@table_command()
@click.option("--log-only", is_flag=True, help="Don't list the store for files that are missing or not needed.")
@as_json
def health(target: Target, log_only: bool, json_output: bool) -> None:
    """Show in ten lines whether a table is well, and what to do if not.

    Exit code 0: well. 1: it needs attention. 2: it has errors, or can't be read.

    \b
    Examples:
      delta-core health sales
      delta-core health s3://bucket/sales --json
    """
    try:
        found = _reported(target, log_only)
    except InvalidArgumentError:
        raise
    except DeltaError as e:
        shown = shown_uri(target.uri)
        if json_output:
            check = {"name": "reading", "state": "bad", "found": e.message, "advice": ""}
            print_json({"uri": shown, "state": "bad", "checks": [check]})
        else:
            click.echo(f"{shown}: bad\nBAD   reading  {e.message}")
        raise click.exceptions.Exit(EXIT["bad"]) from None
    if json_output:
        whole = found.to_dict()
        print_json({name: whole[name] for name in ("uri", "format", "version", "timestamp", "state", "checks")})
    else:
        click.echo(str(found))
    if found.state != "good":
        raise click.exceptions.Exit(EXIT[found.state])
