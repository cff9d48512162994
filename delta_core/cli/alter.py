"""The command that changes a table's definition: alter, with a subcommand for each change."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from delta_core.cli.options import CommandGroup, Target, as_json, pairs, run_on, table_command
from delta_core.cli.output import print_facts, print_json
from delta_core.errors import TableNotFoundError
from delta_core.table.alterer import TableAlterer

__all__ = ["alter"]

Change = Callable[[TableAlterer], None]


@click.group(cls=CommandGroup)
@table_command(versioned=False)
@click.pass_context
def alter(context: click.Context, target: Target) -> None:
    """Change a table's definition: columns, constraints, properties, features.

    Each change is one commit. Options of the table are before TABLE.

    Columns of structs are named with dots (address.city), names that contain a dot in backticks.

    \b
    Examples:
      delta-core alter sales add-column discount "decimal(10,2)"
      delta-core alter sales rename-column day sale_day
      delta-core alter sales set-property delta.appendOnly=true
    """
    context.obj = target


def _change(name: str) -> Callable[[Callable[..., Change]], click.Command]:
    """Add a subcommand: a function of its arguments that returns what to do with the table."""

    def decorate(command: Callable[..., Change]) -> click.Command:
        @wraps(command)
        def run(context: click.Context, json_output: bool, **arguments: Any) -> None:
            target: Target = context.obj
            try:
                table = target.table()
            except TableNotFoundError as e:
                run_on(target.instead_of_delta(e), "alter", {"change": name, **arguments, "json_output": json_output})
                return
            before = table.version()
            command(**arguments)(table.alter)
            operation = table.history(1)[0].get("operation") if table.version() > before else None
            facts = {"version": table.version(), "operation": operation}
            print_json(facts) if json_output else print_facts(facts)

        return alter.command(name)(as_json(click.pass_context(run)))

    return decorate


@_change("add-column")
@click.argument("column")
@click.argument("data_type", metavar="TYPE")
@click.option("--comment", help="A comment of the column.")
def add_column(column: str, data_type: str, comment: str | None) -> Change:
    """Add a column of a TYPE such as bigint, decimal(10,2) or array<string>; rows that are there have null in it."""
    return lambda alterer: alterer.add_column(column, data_type, comment=comment)


@_change("rename-column")
@click.argument("column")
@click.argument("name")
def rename_column(column: str, name: str) -> Change:
    """Rename a column to NAME, which is passed without the path to it; needs column mapping."""
    return lambda alterer: alterer.rename_column(column, name)


@_change("drop-column")
@click.argument("columns", nargs=-1, required=True, metavar="COLUMN...")
def drop_column(columns: tuple[str, ...]) -> Change:
    """Drop columns; needs column mapping. Files keep the values, which no later version returns."""
    return lambda alterer: alterer.drop_column(columns)


@_change("move-column")
@click.argument("column")
@click.option("--first", is_flag=True, help="Move it to the front.")
@click.option("--after", metavar="NAME", help="Move it after this column.")
def move_column(column: str, first: bool, after: str | None) -> Change:
    """Move a column among those beside it."""
    return lambda alterer: alterer.move_column(column, first=first, after=after)


@_change("widen-type")
@click.argument("column")
@click.argument("data_type", metavar="TYPE")
def widen_type(column: str, data_type: str) -> Change:
    """Change the type of a column to one that contains all its values; needs type widening."""
    return lambda alterer: alterer.widen_type(column, data_type)


@_change("set-comment")
@click.argument("column")
@click.argument("comment", required=False)
def set_comment(column: str, comment: str | None) -> Change:
    """Set the comment of a column; without COMMENT, remove it."""
    return lambda alterer: alterer.set_column_comment(column, comment)


@_change("set-not-null")
@click.argument("column")
def set_not_null(column: str) -> Change:
    """Make a column NOT NULL, once every row was checked to have a value in it."""
    return lambda alterer: alterer.set_column_not_null(column)


@_change("drop-not-null")
@click.argument("column")
def drop_not_null(column: str) -> Change:
    """Let a column be null."""
    return lambda alterer: alterer.drop_column_not_null(column)


@_change("set-default")
@click.argument("column")
@click.argument("expression", metavar="SQL")
def set_default(column: str, expression: str) -> Change:
    """Set the value of a column for later writes that leave the column out."""
    return lambda alterer: alterer.set_default(column, expression)


@_change("drop-default")
@click.argument("column")
def drop_default(column: str) -> Change:
    """Drop the default of a column."""
    return lambda alterer: alterer.drop_default(column)


@_change("add-constraint")
@click.argument("name")
@click.argument("expression", metavar="SQL")
def add_constraint(name: str, expression: str) -> Change:
    """Add a CHECK constraint, once every row was checked to fulfil it."""
    return lambda alterer: alterer.add_constraint({name: expression})


@_change("drop-constraint")
@click.argument("name")
def drop_constraint(name: str) -> Change:
    """Drop a CHECK constraint."""
    return lambda alterer: alterer.drop_constraint(name)


@_change("cluster-by")
@click.argument("columns", nargs=-1, metavar="[COLUMN...]")
def cluster_by(columns: tuple[str, ...]) -> Change:
    """Set the clustering columns; none ends clustering."""
    return lambda alterer: alterer.cluster_by(list(columns))


@_change("set-property")
@click.argument("properties", nargs=-1, required=True, metavar="KEY=VALUE...", callback=pairs)
@click.option("--allow-unknown", is_flag=True, help="Also names that begin with delta. and are not known.")
def set_property(properties: dict[str, str], allow_unknown: bool) -> Change:
    """Set table properties, and add the features that they need."""
    return lambda alterer: alterer.set_table_properties(properties, not allow_unknown)


@_change("unset-property")
@click.argument("names", nargs=-1, required=True, metavar="KEY...")
def unset_property(names: tuple[str, ...]) -> Change:
    """Remove table properties."""
    return lambda alterer: alterer.unset_table_properties(names)


@_change("set-name")
@click.argument("name")
def set_name(name: str) -> Change:
    """Set the name of the table."""
    return lambda alterer: alterer.set_table_name(name)


@_change("set-description")
@click.argument("description")
def set_description(description: str) -> Change:
    """Set the description of the table."""
    return lambda alterer: alterer.set_table_description(description)


@_change("add-feature")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def add_feature(names: tuple[str, ...]) -> Change:
    """Add table features; the protocol's versions rise if they need it, which locks out older programs."""
    return lambda alterer: alterer.add_feature(names, allow_protocol_versions_increase=True)
