"""Commands that write files again without changing rows: optimize, purge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from delta_core import operations
from delta_core.cli.change import report
from delta_core.cli.options import Target, WholeNumber, as_json, table_command
from delta_core.cli.output import print_facts, print_json, print_note
from delta_core.table import interop

__all__ = ["optimize", "purge"]


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [part.strip() for part in value.split(",") if part.strip()]


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would be written again, and change nothing."),
        click.option(
            "--target-size", type=WholeNumber(min=1), metavar="BYTES", help="The size that files should have."
        ),
        click.option("--where", metavar="SQL", help="Only partitions for which this predicate is true."),
    ):
        command = option(command)
    return command


@click.command()
@table_command(versioned=False)
@click.option("--z-order", metavar="A,B", callback=_names, help="Order rows along a Z-order curve through columns.")
@click.option("--hilbert", metavar="A,B", callback=_names, help="Order rows along a Hilbert curve through columns.")
@click.option("--sort", metavar="A,B", callback=_names, help="Sort rows by columns.")
@_options
@as_json
def optimize(
    target: Target,
    z_order: list[str] | None,
    hilbert: list[str] | None,
    sort: list[str] | None,
    where: str | None,
    target_size: int | None,
    dry_run: bool,
    json_output: bool,
) -> None:
    """Join small files and leave out many deleted rows, or write all rows again in another order.

    \b
    Examples:
      delta-core optimize sales
      delta-core optimize sales --where "day = '2024-05-01'" --target-size 67108864
      delta-core optimize sales --hilbert customer,amount
      delta-core optimize sales --dry-run
    """
    orders = {"zorder": z_order, "hilbert": hilbert, "linear": sort}
    given = {order: columns for order, columns in orders.items() if columns is not None}
    if len(given) > 1:
        raise click.UsageError("Pass at most one of --z-order, --hilbert and --sort.")
    order, columns = next(iter(given.items()), (None, ()))
    _run(target, where, dry_run, json_output, target_size=target_size, order=order, order_by=tuple(columns))


@click.command()
@table_command(versioned=False)
@_options
@as_json
def purge(target: Target, where: str | None, target_size: int | None, dry_run: bool, json_output: bool) -> None:
    """Write files with deleted rows again without these, so that no deletion vector is left.

    \b
    Examples:
      delta-core purge sales
      delta-core purge sales --where "day < '2024-01-01'" --dry-run
    """
    _run(target, where, dry_run, json_output, target_size=target_size, purge=True)


def _run(target: Target, where: str | None, dry_run: bool, json_output: bool, **options: Any) -> None:
    table = target.table()
    snapshot = table.snapshot()
    predicate = interop.file_filter(snapshot, where)
    if dry_run:
        planned = operations.plan_optimize(snapshot, operations.OptimizeOptions(predicate=predicate, **options)).groups
        facts = {
            "version": table.version(),
            "files": sum(group.files.num_rows for group in planned),
            "size_bytes": sum(sum(group.files.column("size").to_pylist()) for group in planned),
        }
        print_json(facts) if json_output else print_facts(facts)
        return
    wanted = operations.OptimizeOptions(predicate=predicate, **options)
    done = operations.optimize_table(snapshot, wanted)
    if done.snapshot.version == table.version():
        nothing: dict[str, Any] = {"version": table.version(), "operation": None, "metrics": {}}
        print_json(nothing) if json_output else print_note("No file needs to be written again.")
        return
    table.adopt(done.snapshot)
    report(table, json_output)
