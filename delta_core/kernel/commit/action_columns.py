"""Fields of file actions of features: set again in each attempt, and over the values of commits that won a race."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from delta_core.errors import PluginConflictError, did_you_mean
from delta_core.kernel.commit.intents import REMOVED_FILE, Intents
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import ActionColumn, CommitRule
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import ADDED_FILE, FILE_COLUMNS
from delta_core.runtime.plugin_errors import contract_error

__all__ = ["rebase_files", "with_action_columns", "with_declared_fields"]


def with_declared_fields(schema: pa.Schema, plugins: PluginSet, action: str) -> pa.Schema:
    """Return the columns of an action with the fields that features add to it."""
    types = _declared_types(plugins, action)
    further = [pa.field(name, t) for name, t in types.items() if name not in schema.names]
    return pa.schema([*schema, *further]) if further else schema


def _declared_types(plugins: PluginSet, action: str) -> dict[str, pa.DataType]:
    return {f.name: f.type for feature in plugins.features.values() for f in feature.fields if f.action == action}


def rebase_files(intents: Intents, winner: pa.Table, table: TableState, plugins: PluginSet) -> None:
    """Let features carry their values of staged files over a commit that won the race.

    Parameters
    ----------
    intents : Intents
        The staged intents of the transaction; their tables of files are replaced.
    winner : pyarrow.Table
        The adds of the commit.
    table : TableState
        The latest version, which has the commit.
    plugins : PluginSet
        The features of the table.
    """
    adds = intents.table(intents.adds, with_declared_fields(ADDED_FILE, plugins, "add"))
    removes = intents.table(intents.removes, with_declared_fields(REMOVED_FILE, plugins, "remove"))
    rules = plugins.collect("rebase_files", table=table, adds=adds, removes=removes, winner=winner)
    if any(r.action == "add" for r in rules):
        intents.adds = [with_action_columns(adds, "add", rules, plugins, "rebase_files")]
    if any(r.action == "remove" for r in rules):
        intents.removes = [with_action_columns(removes, "remove", rules, plugins, "rebase_files")]


def with_action_columns(
    files: pa.Table, action: str, rules: Iterable[CommitRule], plugins: PluginSet, hook: str
) -> pa.Table:
    """Return files with the columns that rules of a hook set.

    Raises
    ------
    PluginConflictError
        If two features set one field.
    HookContractError
        For values of another number or type than the field needs.
    """
    types = _declared_types(plugins, action)
    claimed: dict[str, str] = {}
    for rule in rules:
        if not isinstance(rule, ActionColumn) or rule.action != action:
            continue
        other = claimed.setdefault(rule.field, rule.feature)
        if other != rule.feature:
            raise PluginConflictError(f"Features {other} and {rule.feature} both set {action}.{rule.field}.")
        wrong = _wrong_column(rule, types, files.num_rows)
        if wrong:
            raise contract_error(rule.feature, hook, "ActionColumn", wrong, field=rule.field)
        index = files.schema.get_field_index(rule.field)
        column = rule.values if isinstance(rule.values, pa.ChunkedArray) else pa.chunked_array([rule.values])
        files = files.append_column(rule.field, column) if index < 0 else files.set_column(index, rule.field, column)
    return files


def _wrong_column(rule: ActionColumn, types: Mapping[str, pa.DataType], num_files: int) -> str:
    """Return what is wrong with a column for a number of files, empty if nothing is."""
    name = f"{rule.action}.{rule.field}"
    expected = types.get(rule.field, FILE_COLUMNS.get(rule.field))
    if expected is None:
        return f"sets {name}, which FEATURE.fields does not declare.{did_you_mean(rule.field, types)}"
    if len(rule.values) != num_files:
        return f"has {len(rule.values)} values for {name}; expected {num_files}"
    # without files there may be no values to derive a type from
    if num_files and rule.values.type != expected:
        return f"has values of {rule.values.type} for {name}; expected {expected}"
    return ""
