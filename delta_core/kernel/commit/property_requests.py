"""Table properties that callers pass: declared names, checked values, requests distinguished from properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from delta_core.errors import InvalidArgumentError, UnsupportedVersionError, did_you_mean
from delta_core.kernel.plugins.features import READER_VERSIONS, WRITER_VERSIONS, supported_features
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.protocol.actions import Protocol
from delta_core.kernel.protocol.properties import PROPERTIES, normalize_properties

__all__ = ["PropertyRequests", "declared_properties", "parse_property_requests", "reserved_properties"]

#: ``delta.feature.X=supported`` requires the feature X and is never stored; so are protocol versions.
_FEATURE = "delta.feature."
_WORDS = ("supported", "enabled")
_VERSIONS = ("delta.minReaderVersion", "delta.minWriterVersion")
#: Prefixes of names that are known whatever follows; features declare more, as ``delta.family.<name>``.
_FAMILIES = (_FEATURE,)


class PropertyRequests(Struct, frozen=True):
    """The requests of properties.

    Parameters
    ----------
    features : sequence of str
        The features that they name.
    configuration : Mapping of str to str
        The properties that are to be stored.
    lists : bool
        Whether they name versions with lists of features, which provide none by themselves.
    """

    features: Sequence[str]
    configuration: Mapping[str, str]
    lists: bool = False


def parse_property_requests(
    configuration: Mapping[str, str],
    known: Iterable[Mapping[str, str]],
    registry: PluginRegistry,
    allow_unknown: bool = False,
) -> PropertyRequests:
    """Return what a change of metadata requires.

    Parameters
    ----------
    configuration : Mapping of str to str
        The table's properties as they are to be.
    known : iterable of Mapping
        Properties that the table has, before or in this transaction: they stay as they are, whatever they hold.
    registry : PluginRegistry
        The features that are installed, which declare properties.
    allow_unknown : bool
        Whether a property whose name begins with ``delta.`` may be one that neither the core nor a feature declares.

    Raises
    ------
    InvalidArgumentError
        For a value that a property can't have, a property that is given twice in two spellings, one that its feature
        keeps, and an unknown one, which is most often a misspelt one.

    Protocol
    --------
    Table Features, Supported Features
    """
    have = list(known)
    old = {k: v for k, v in configuration.items() if any(t.get(k) == v for t in have)}
    new = {k: v for k, v in configuration.items() if k not in old}
    plugins = registry.everything
    found = normalize_properties(new, declared_properties(plugins))
    for name in found.keys() & old.keys():
        if found[name] != old[name]:
            raise InvalidArgumentError(
                f"Table property {name} is given twice: {old[name]!r} and {found[name]!r}.", property=name
            )
    _check_flags(found, plugins)
    _check_kept(found, have, plugins)
    if not allow_unknown:
        _check_known(found, registry)
    stored = {k: v for k, v in {**old, **found}.items() if not k.lower().startswith(_FEATURE) and k not in _VERSIONS}
    features = {k: v for k, v in new.items() if k.lower().startswith(_FEATURE)}
    for name, text in features.items():
        if text.lower() not in _WORDS:
            raise InvalidArgumentError(
                f"Table property {name} is {text!r}, expected 'supported'. Leave it out for a table without the "
                "feature.",
                property=name,
                value=text,
            )
    asked = [_spelled(k[len(_FEATURE) :], registry) for k in features]
    lists = any(
        found.get(n) == str(of[-1]) for n, of in zip(_VERSIONS, (READER_VERSIONS, WRITER_VERSIONS), strict=True)
    )
    return PropertyRequests([*asked, *_features_of_versions(found)], stored, lists)


def _features_of_versions(properties: Mapping[str, str]) -> list[str]:
    """Return what the least versions that are requested provide; versions with lists provide nothing by themselves."""
    if not any(name in properties for name in _VERSIONS):
        return []
    reader, writer = (int(properties.get(name, least)) for name, least in zip(_VERSIONS, ("1", "2"), strict=True))
    if writer > WRITER_VERSIONS[-1] or reader > READER_VERSIONS[-1]:
        raise UnsupportedVersionError(
            f"The properties request reader version {reader} and writer version {writer}; this release supports them "
            f"up to {READER_VERSIONS[-1]} and {WRITER_VERSIONS[-1]}.",
            min_reader_version=reader,
            min_writer_version=writer,
        )
    if writer == WRITER_VERSIONS[-1] or reader == READER_VERSIONS[-1]:
        return []
    return sorted(supported_features(Protocol(reader, writer)).writer)


def declared_properties(plugins: PluginSet) -> list[str]:
    """Return the names of properties that features declare; those that represent many begin with a prefix only."""
    names = {name for feature in plugins.features.values() for name in (*feature.properties, *feature.reserved)}
    return sorted(n for n in names - PROPERTIES.keys() if "<" not in n)


def _check_flags(found: Mapping[str, str], plugins: PluginSet) -> None:
    flags = {name for feature in plugins.features.values() for name in feature.flags}
    for name in found.keys() & flags:
        if found[name].strip().lower() not in ("true", "false"):
            raise InvalidArgumentError(
                f"Table property {name} is {found[name]!r}; expected true or false.", property=name, value=found[name]
            )


def reserved_properties(plugins: PluginSet) -> dict[str, str]:
    """Return the properties that only features set, each with its feature."""
    return {name: feature.name for feature in plugins.features.values() for name in feature.reserved}


def _check_kept(found: Mapping[str, str], known: Sequence[Mapping[str, str]], plugins: PluginSet) -> None:
    keepers = reserved_properties(plugins)
    for name, text in found.items():
        if name in keepers and not any(t.get(name) == text for t in known):
            raise InvalidArgumentError(
                f"Table property {name} is kept by the feature {keepers[name]} and can't be set; found {text!r}. Leave "
                "it out.",
                property=name,
                value=text,
                feature=keepers[name],
            )


def _check_known(names: Iterable[str], registry: PluginRegistry) -> None:
    """Reject a property in the protocol's own name space that neither the core nor a feature declares."""
    features = registry.everything.features.values()
    declared = {
        *declared_properties(registry.everything),
        *PROPERTIES,
        *(n for f in features for n in f.requests.values()),
    }
    prefixes = (*_FAMILIES, *(n.partition("<")[0] for f in features for n in f.properties if "<" in n))
    families = tuple(prefix.lower() for prefix in prefixes)
    for name in names:
        lowered = name.strip().lower()
        if lowered.startswith("delta.") and name not in declared and not lowered.startswith(families):
            broken = "".join(f" {error.message}" for error in registry.unusable.values())
            raise InvalidArgumentError(
                f"Table property {name!r} is not known.{did_you_mean(name, declared)}{broken} Properties of your own "
                "have another prefix. To set it nevertheless, for another program that reads it, pass "
                "raise_if_not_exists=False to table.alter.set_table_properties, raise_if_key_not_exists=False to "
                "DeltaTable.create, --allow-unknown on the command line.",
                property=name,
            )


def _spelled(name: str, registry: PluginRegistry) -> str:
    """Return a feature's name as it is declared, whatever its case."""
    names = registry.names()
    return name if name in names else next((n for n in names if n.lower() == name.lower()), name)
