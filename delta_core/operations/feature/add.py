"""Add table features, and enable those that the table's files have to follow first.

A series of commits, after each of which the table reads as before. An operation that was interrupted is finished by
calling it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_core.errors import InvalidArgumentError
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.commit.upgrade import upgrade_protocol
from delta_core.kernel.plugins.features import READER_VERSIONS, WRITER_VERSIONS, supported_features
from delta_core.kernel.plugins.steps import FeatureStep
from delta_core.kernel.protocol.actions import Metadata, Protocol
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.feature.steps import StepRunner
from delta_core.runtime.json_text import compact_json

__all__ = ["add_features", "enabled_features", "list_features", "protocol_with", "run_enabling_steps"]


def add_features(
    base: Snapshot, names: Sequence[str], commit: Mapping[str, Any], *, allow_higher_versions: bool = True
) -> Snapshot:
    """Add table features, with those that they need; the features that old protocol versions implied are listed too.

    Raises
    ------
    UnsupportedFeatureError
        For a feature that no installed plugin provides.
    InvalidArgumentError
        If the protocol's versions would rise and ``allow_higher_versions`` is not set.
    """
    latest = base.latest()
    before, protocol = latest.protocol, protocol_with(latest, names)
    if protocol == before:
        return latest
    rises = (
        protocol.min_reader_version > before.min_reader_version
        or protocol.min_writer_version > before.min_writer_version
    )
    if rises and not allow_higher_versions:
        raise InvalidArgumentError(
            f"The table has reader version {before.min_reader_version} and writer version {before.min_writer_version}; "
            f"{', '.join(names)} would raise them to {protocol.min_reader_version} and {protocol.min_writer_version}, "
            "which older programs can't read or write. Pass allow_protocol_versions_increase=True to raise them.",
            min_reader_version=protocol.min_reader_version,
            min_writer_version=protocol.min_writer_version,
        )
    return _add(latest, names, commit)


def list_features(base: Snapshot, reader: int, commit: Mapping[str, Any]) -> Snapshot:
    """Raise the protocol to versions that list features, with the features that the table has already and no other.

    Parameters
    ----------
    base : Snapshot
        The table.
    reader : int
        The least reader version: 3 lists the features that readers need too, 1 and 2 stay below that.
    commit : Mapping
        Arguments of `Transaction.commit`.

    Raises
    ------
    CommitConflictError
        Another writer changed the table's definition.
    """
    latest = base.latest()
    before = latest.protocol
    version = max(reader, before.min_reader_version)
    have = supported_features(before)
    readers = tuple(sorted(have.reader)) if version >= READER_VERSIONS[-1] else None
    protocol = Protocol(version, max(WRITER_VERSIONS[-1], before.min_writer_version), readers, tuple(sorted(have.all)))
    if (version, protocol.min_writer_version) == (before.min_reader_version, before.min_writer_version):
        return latest
    transaction = Transaction(latest.context, latest, "UPGRADE PROTOCOL")
    transaction.set_metadata(latest.metadata, (), protocol=protocol)
    transaction.parameters["newProtocol"] = _protocol_text(transaction.table.protocol)
    return transaction.commit(**commit).snapshot


def protocol_with(base: Snapshot, names: Sequence[str]) -> Protocol:
    """Return the protocol that a table would have with further features.

    Raises
    ------
    UnsupportedFeatureError
        For a feature that no installed plugin provides.
    FeatureRequirementError
        For features that exclude each other.
    """
    return upgrade_protocol(base.protocol, names, base.context.registry)


def _add(latest: Snapshot, names: Sequence[str], commit: Mapping[str, Any]) -> Snapshot:
    transaction = Transaction(latest.context, latest, "ADD FEATURE")
    transaction.set_metadata(latest.metadata, names)
    transaction.parameters["newProtocol"] = _protocol_text(transaction.table.protocol)
    return transaction.commit(**commit).snapshot


def _protocol_text(protocol: Protocol) -> str:
    shown: dict[str, Any] = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    if protocol.reader_features is not None:
        shown["readerFeatures"] = list(protocol.reader_features)
    if protocol.writer_features is not None:
        shown["writerFeatures"] = list(protocol.writer_features)
    return compact_json(shown)


def enabled_features(latest: Snapshot, metadata: Metadata) -> list[str]:
    """Return the features that new metadata switches on, and that the table's files have to follow first."""
    registry = latest.context.registry
    everything = registry.everything
    old, new = (set(everything.collect("required_features", metadata=m)) for m in (latest.metadata, metadata))
    return [n for n in sorted(new - old) if _enabling_steps(latest, n)]


def _enabling_steps(latest: Snapshot, name: str) -> list[FeatureStep]:
    plugins = latest.context.registry.plugin_of(name)
    return list(plugins.collect("feature_steps", table=latest.state, change="enable"))


def run_enabling_steps(latest: Snapshot, name: str, commit: Mapping[str, Any]) -> Snapshot:
    """Add a feature, and make the table's files follow it; the caller switches it on then.

    Raises
    ------
    CommitConflictError
        If other writers committed at each attempt. Call it again.
    """
    before = {k: v for k, v in commit.items() if k != "transactions"}
    registry = latest.context.registry
    if upgrade_protocol(latest.protocol, [name], registry) != latest.protocol:
        latest = _add(latest, [name], before)
    runner = StepRunner(before, lambda text: None)
    try:
        return runner.run(latest, lambda snapshot: _enabling_steps(snapshot, name))[0]
    finally:
        runner.close()
