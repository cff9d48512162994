"""From protocol and metadata to a TableState and the plugins that serve it; nothing here depends on a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from delta_core.errors import LogError, SchemaError, UnsupportedFeatureError
from delta_core.kernel import plugins as late
from delta_core.kernel.plugins.features import SupportedFeatures
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Metadata, Protocol
from delta_core.runtime.plugin_errors import contract_error, plugin_errors
from delta_core.schema.fields import Schema, check_types, format_path, unknown_types, with_custom_types
from delta_core.schema.types import KNOWN_TYPES

__all__ = ["active_features", "declared_domains", "define_table", "resolve_plugins"]


def resolve_plugins(supported: SupportedFeatures, metadata: Metadata, registry: PluginRegistry) -> PluginSet:
    """Return the plugins that serve a table of these features.

    Raises
    ------
    UnsupportedFeatureError
        For a reader feature that no plugin provides, naming the columns whose types it would provide.
    """
    try:
        return registry.resolve(supported)
    except UnsupportedFeatureError as e:
        raise _naming_types(e, metadata) from None


def define_table(
    protocol: Protocol,
    metadata: Metadata,
    version: int,
    supported: SupportedFeatures,
    plugins: PluginSet,
    domains: Callable[[], Mapping[str, str]],
    prepared: bool = True,
) -> TableState:
    """Build a state from protocol and metadata: what the features specify for types, activity and columns.

    Parameters
    ----------
    protocol : Protocol
        The table's protocol.
    metadata : Metadata
        The table's metadata.
    version : int
        The version that the state is of.
    supported : SupportedFeatures
        Those of the protocol.
    plugins : PluginSet
        As `resolve_plugins` returns them.
    domains : function()
        Returns the configuration of every domain; called if a feature declares one.
    prepared : bool
        Whether features have prepared the metadata. Else it can't be read with: its columns have no physical names.

    Raises
    ------
    UnsupportedFeatureError
        The data files are not in Parquet, or what a feature's ``check_read`` raises.
    LogError
        The schema is missing or can't be read, or lacks a partition column.
    """
    _check_format(metadata)
    schema = _parse_schema(metadata, version, plugins)
    state = TableState(
        version,
        protocol,
        metadata,
        schema,
        features=plugins.canonical(supported.all),
        reader_features=plugins.canonical(supported.reader),
        types=plugins.types,
        domains=declared_domains(plugins, domains),
        functions=plugins.stored_functions,
    )
    active = active_features(plugins, state)
    state = replace(state, active=active | plugins.unknown)
    if not prepared:
        return state
    plugins.check("check_read", table=state)
    column_map = plugins.single("column_map", table=state)
    if column_map is not None:
        state = replace(state, column_map=column_map)
    encodings = plugins.collect("column_encodings", table=state)
    if not encodings:
        return state
    return replace(state, encodings=late.bind_encodings(state, encodings, plugins.stored_functions))


def active_features(plugins: PluginSet, state: TableState) -> frozenset[str]:
    """Return the features that metadata enables.

    Parameters
    ----------
    plugins : PluginSet
        Those of the table.
    state : TableState
        The table, without this set.

    Raises
    ------
    HookContractError
        If ``FEATURE.active`` of a plugin returns anything but True and False.
    """
    found = set[str]()
    for name, feature in plugins.features.items():
        with plugin_errors(name, "FEATURE.active", "active"):
            is_active = feature.active(state)
        if not isinstance(is_active, bool):
            raise contract_error(name, "active", "FEATURE", f"returned {is_active!r}; expected True or False")
        if is_active:
            found.add(name)
    return frozenset(found)


def declared_domains(plugins: PluginSet, domains: Callable[[], Mapping[str, str]]) -> dict[str, str]:
    """Return the domains that features declare; ``domains`` is called if there are any."""
    declared = {d for f in plugins.features.values() for d in f.domains}
    return {d: c for d, c in domains().items() if d in declared} if declared else {}


def _naming_types(error: UnsupportedFeatureError, metadata: Metadata) -> UnsupportedFeatureError:
    """Return the error with the columns whose types the missing feature would provide."""
    try:
        found = [f"{format_path(p)} has type {t!r}" for p, t in unknown_types(metadata.schema, KNOWN_TYPES)]
    except (ValueError, SchemaError):
        found = []
    note = f" Columns of unknown type: {', '.join(found[:5])}." if found else ""
    return UnsupportedFeatureError(error.message + note, **error.facts)


def _check_format(metadata: Metadata) -> None:
    provider = metadata.format.provider
    if provider.lower() != "parquet":
        raise UnsupportedFeatureError(
            f"The table's data files are in format {provider!r}; only parquet is defined for Delta tables.",
            format=provider,
        )


def _parse_schema(metadata: Metadata, version: int, plugins: PluginSet) -> Schema:
    if not metadata.schema_string:
        raise LogError(
            f"The metaData in force at version {version} has no schemaString: the log is not whole.", version=version
        )
    try:
        schema = metadata.schema
    except (ValueError, SchemaError) as e:
        raise LogError(f"The schemaString of version {version} can't be read: {e}", version=version) from e
    check_types(schema, plugins.types)
    missing = [c for c in metadata.partition_columns if schema.get(c) is None]
    if missing:
        raise LogError(
            f"Partition column {missing[0]!r} of version {version} is not in the schema "
            f"({', '.join(schema.names[:20])}).",
            version=version,
            column=missing[0],
        )
    # most tables have none, and a large schema takes long to walk
    return schema if plugins.types.keys() <= KNOWN_TYPES.keys() else with_custom_types(schema, plugins.types)
