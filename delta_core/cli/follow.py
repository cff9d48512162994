"""The command that prints rows as they are appended, and the waiting of ``changes --follow``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from delta_core.cli.json_values import values_as_json
from delta_core.cli.options import Number, Target, WholeNumber, selection, table_command
from delta_core.cli.sinks import export
from delta_core.table.delta_table import DeltaTable
from delta_core.table.interop import ChangeFeed

__all__ = ["follow", "followed_changes"]


def _start(context: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
    if value is None or value == "latest":
        return value
    if not value.isdecimal():
        raise click.BadParameter(f"Found {value!r}, expected a version or latest.")
    return int(value)


@click.command()
@table_command(versioned=False)
@click.option("--start", metavar="VERSION", callback=_start, help="First version, or latest for what comes next.")
@click.option("--start-timestamp", metavar="TIME", help="Begin with the first commit at or after a time (ISO 8601).")
@click.option(
    "--position-file", metavar="FILE", type=click.Path(dir_okay=False), help="Keep the position from run to run."
)
@click.option("--stop-at", type=WholeNumber(min=0), metavar="VERSION", help="Last version, inclusive.")
@click.option("--once", is_flag=True, help="Stop after the latest version that there is.")
@click.option("--timeout", type=Number(min=0), metavar="SECONDS", help="Stop after so long without new rows.")
@click.option("--interval", type=Number(min=0), default=1.0, show_default=True, help="Seconds between looks.")
@click.option("--max-files", type=WholeNumber(min=1), default=1000, show_default=True, help="Files of a step.")
@click.option("--max-bytes", type=WholeNumber(min=1), help="Bytes of the files of a step.")
@click.option("--skip-change-commits", is_flag=True, help="Leave out commits that delete or change rows.")
@click.option("--ignore-deletes", is_flag=True, help="Ignore commits that only remove whole files.")
@click.option("--ignore-changes", is_flag=True, help="Print all rows of files that any commit adds.")
@selection
def follow(
    target: Target,
    start: Any,
    start_timestamp: str | None,
    once: bool,
    interval: float,
    columns: list[str] | None,
    where: str | None,
    **options: Any,
) -> None:
    """Print the rows of a table as JSON lines, then those that commits append, as they arrive.

    Without --start, all rows that the table has come first. A commit that deletes or changes rows ends the command with
    an error, unless an option permits it. With --position-file a later run goes on where this one ends; a step that was
    interrupted is printed again.

    \b
    Examples:
      delta-core follow sales --start latest | jq .amount
      delta-core follow sales --once --position-file sales.position >> sales.jsonl
      delta-core follow sales --start 3 --skip-change-commits --where "amount > 100"
    """
    table = target.table()
    stream = table.follow(
        start,
        start_timestamp=start_timestamp,
        available_now=once,
        poll_interval=interval,
        columns=columns,
        predicate=where,
        **options,
    )
    state = table.snapshot().state
    texts = partial(values_as_json, schema=state.schema, types=state.types)
    for batch in stream:
        export(texts(batch.to_reader()), "json", None)


def followed_changes(table: DeltaTable, interval: float, timeout: float | None, **options: Any) -> Iterator[ChangeFeed]:
    """Yield the steps of a change feed, then those of later versions as they are committed."""
    feed = table.changes(**options)
    idle_since = time.monotonic()
    while True:
        for step in feed.steps():
            feed = step
            if step.versions:
                yield step
                idle_since = time.monotonic()
        left = interval if timeout is None else min(interval, timeout - (time.monotonic() - idle_since))
        if left < 0 or (timeout is not None and left == 0):
            return
        time.sleep(left)
        table.update_incremental()
        more = {k: v for k, v in options.items() if k in ("columns", "predicate", "max_files", "max_bytes")}
        feed = table.changes(position=feed.position, **more)
