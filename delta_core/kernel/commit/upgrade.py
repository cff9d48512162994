"""Protocol upgrades: the weakest protocol that supports a set of features. Protocol: Protocol Evolution."""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.errors import FeatureRequirementError, UnsupportedFeatureError, UnsupportedVersionError, did_you_mean
from delta_core.kernel.plugins.features import TableFeature, supported_features
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import DOMAIN_METADATA, Protocol
from delta_core.kernel.protocol.legacy_versions import IMPLIED_BY_READER, implied_by

__all__ = [
    "check_requirements",
    "check_writable",
    "downgrade_protocol",
    "features_for_domains",
    "new_table_protocol",
    "permits_domains",
    "upgrade_protocol",
]

#: The writer version from which protocols list features, and the last one before whose features need no reader.
_WITH_LISTS, _MOST_WITHOUT_READERS = 7, 4
#: The protocol of a new table when nothing requires more, as other writers create it.
_NEW_TABLE = Protocol(1, 2)


def new_table_protocol(registry: PluginRegistry) -> Protocol:
    """Return what a table is created with when nothing requires more.

    An installation that lacks a plugin of the usual versions creates tables that it can write: without any feature.
    """
    served = all(registry.load(name) is not None for name in supported_features(_NEW_TABLE).all)
    return _NEW_TABLE if served else Protocol(1, 1)


def upgrade_protocol(protocol: Protocol, wanted: Iterable[str], registry: PluginRegistry) -> Protocol:
    """Return the protocol with further features, in its weakest equal form.

    Every feature that the old versions implied is named if lists are needed; what a feature requires comes with it.

    Raises
    ------
    UnsupportedFeatureError
        For a feature that no plugin provides.
    FeatureRequirementError
        For features that exclude each other.
    """
    have = supported_features(protocol)
    names = dict.fromkeys(sorted(have.all))
    for name in _with_requirements(wanted, registry):
        if not _is_present(name, names, registry):
            names[name] = None
    if set(names) == have.all:
        return protocol
    features = {n: _feature(n, registry) for n in names if registry.load(n) is not None}
    _check_exclusions(features)
    reader = {n for n in names if n in have.reader or (n in features and features[n].kind == "reader+writer")}
    if protocol.min_writer_version < _WITH_LISTS and not reader:
        older = _version_with(set(names), registry)
        if older is not None:
            return older
    return _normalised(reader, set(names), registry)


def _version_with(names: set[str], registry: PluginRegistry) -> Protocol | None:
    """Return the least version before the lists of features that implies all of these and no reader's feature.

    More writers support such a version than lists of features, so that a table of one stays at one.
    """
    for version in range(1, _MOST_WITHOUT_READERS + 1):
        implied = supported_features(Protocol(1, version)).writer
        if names <= set(implied) and all(registry.load(n) is not None for n in implied):
            return Protocol(1, version)
    return None


def downgrade_protocol(protocol: Protocol, feature: TableFeature, registry: PluginRegistry) -> Protocol:
    """Return the protocol without a feature, in its weakest equal form: with lists only if they are needed."""
    have = supported_features(protocol)
    gone = {feature.name, *feature.aliases}
    return _normalised(set(have.reader) - gone, set(have.all) - gone, registry)


def permits_domains(protocol: Protocol, registry: PluginRegistry) -> bool:
    """Return whether commits of a table of this protocol may have domains."""
    have = supported_features(protocol)
    present = [plugin.FEATURE for n in have.all if (plugin := registry.load(n)) is not None]
    return any(DOMAIN_METADATA.name in f.permits for f in present)


def features_for_domains(domains: Iterable[str], protocol: Protocol, registry: PluginRegistry) -> list[str]:
    """Return the features to add to a table before its commits can have these domains; none if they can already.

    A domain that an installed feature declares gets that feature, if it permits domains itself. All others get the
    feature that has the action's own name: a caller that names a domain does not request any other feature.
    """
    if permits_domains(protocol, registry):
        return []
    kind = DOMAIN_METADATA.name
    permitting = {n: f for n, f in registry.everything.features.items() if kind in f.permits}
    owners = {d: n for n, f in permitting.items() for d in f.domains}
    return sorted({owners.get(domain, kind) for domain in domains})


def _is_present(name: str, names: Iterable[str], registry: PluginRegistry) -> bool:
    aliases = {name, *_feature(name, registry).aliases, _feature(name, registry).name}
    return any(n in aliases for n in names)


def _with_requirements(wanted: Iterable[str], registry: PluginRegistry) -> list[str]:
    out: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in out:
            out[name] = None
            for other in _feature(name, registry).requires:
                add(other)

    for name in wanted:
        add(name)
    return list(out)


def _feature(name: str, registry: PluginRegistry) -> TableFeature:
    plugin = registry.load(name)
    if plugin is None:
        raise UnsupportedFeatureError(
            f"Feature {name!r} can't be added: no installed plugin provides it.{did_you_mean(name, registry.names())} "
            f"Installed: {', '.join(registry.names())}.",
            feature=name,
        )
    feature: TableFeature = plugin.FEATURE
    return feature


def _check_exclusions(features: dict[str, TableFeature]) -> None:
    for f in features.values():
        for other in f.excludes:
            if other in features:
                raise FeatureRequirementError(f"Features {f.name} and {other} exclude each other.", feature=f.name)


def _normalised(reader: set[str], names: set[str], registry: PluginRegistry) -> Protocol:
    """Return the weakest versions: (2,3) becomes (1,3) if nothing of reader version 2 is there."""
    for version in range(1, 7):
        plain = Protocol(1, version)
        implied = supported_features(plain)
        if implied.writer == names and not reader:
            return plain
    mapped = set(implied_by(2, IMPLIED_BY_READER))
    for version in range(1, 7):
        plain = Protocol(2, version)
        implied = supported_features(plain)
        # the writer's list reports all: reader version 2 does not specify the features of writers
        if implied.writer == names and set(implied.reader) == reader:
            return plain
    writers = tuple(sorted(names))
    if not reader:
        return Protocol(1, 7, None, writers)
    if reader == mapped:
        return Protocol(2, 7, None, writers)
    return Protocol(3, 7, tuple(sorted(reader)), writers)


def check_writable(protocol: Protocol, registry: PluginRegistry) -> None:
    """Reject to write a table whose protocol requires more than the installed plugins support.

    Raises
    ------
    UnsupportedVersionError, UnsupportedFeatureError
        For a version above the known ones, or a feature that no plugin provides.
    """
    if protocol.min_writer_version > 7 or protocol.min_writer_version < 1:
        raise UnsupportedVersionError(
            f"The table needs writer version {protocol.min_writer_version}; this release writes 1 to 7. Upgrade "
            "delta_core.",
            min_writer_version=protocol.min_writer_version,
        )
    features = supported_features(protocol)
    unknown = sorted(n for n in features.writer if registry.load(n) is None)
    if unknown:
        raise UnsupportedFeatureError(
            f"The table needs the writer feature{'s' * (len(unknown) > 1)} {', '.join(unknown)}, which no installed "
            "plugin provides: it can be read, not written. Install a package that provides it, or upgrade "
            "delta-core-lake.",
            feature=unknown[0],
            features=tuple(unknown),
        )


def check_requirements(table: TableState, plugins: PluginSet) -> None:
    """Reject to write a table that supports a feature without those that it requires.

    Reading stays allowed: requirements bind writers, and other readers do not check them.

    Raises
    ------
    FeatureRequirementError
        The message names the features that are missing.
    """
    for feature in plugins.features.values():
        missing = [name for name in feature.requires if name not in table.features]
        if missing:
            raise FeatureRequirementError(
                f"The table supports the feature {feature.name} without {', '.join(missing)}, which it requires: it "
                f"can be read, not written. Add what is missing first: begin('UPGRADE PROTOCOL') on the snapshot, then "
                f"set_metadata(snapshot.metadata, features={missing}), then commit().",
                feature=feature.name,
                missing=tuple(missing),
            )
