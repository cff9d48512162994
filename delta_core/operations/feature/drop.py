"""Drop a table feature: what it left in metadata and files goes first, then its name in the protocol.

A series of commits, after each of which the table reads as before. An operation that was interrupted is finished by
calling it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, field

from delta_core.errors import (
    CommitConflictError,
    DeltaError,
    FeatureRequirementError,
    HookContractError,
    InvalidArgumentError,
    TooManyAttemptsError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.commit.upgrade import downgrade_protocol
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.steps import ChangeSchema, FeatureStep, FeatureUse, RemoveProperties
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.feature.history import RETENTION, check_history, first_use, truncate_history, write_barrier
from delta_core.operations.feature.steps import MOST_ATTEMPTS, StepRunner, step_text, with_properties
from delta_core.runtime.progress_bars import shows_progress

__all__ = ["DropFeatureOptions", "DroppedFeature", "drop_feature", "end_features"]

_log = logging.getLogger(__name__)
#: Checkpoints before the commit that drops a feature: readers that lack the feature try this many, and then stop.
NUM_BARRIERS = 3


class DropFeatureOptions(Struct, frozen=True):
    """How a feature is dropped.

    Parameters
    ----------
    truncate_history : bool
        Delete the versions that use it from the log, as soon as they are old enough, in place of protecting the
        checkpoints after them.
    protect_history : bool
        Whether checkpoints after the versions that use it are protected. If not, and nothing is truncated, it is
        dropped when the log has no such versions any more.
    dry_run : bool
        Check and list the steps, and change nothing.
    progress : function(str), optional
        Called before each step with its description.
    commit : Mapping
        Arguments of `Transaction.commit`; ``transactions`` belong to the last commit.
    """

    truncate_history: bool = False
    protect_history: bool = True
    dry_run: bool = False
    progress: Callable[[str], None] | None = None
    commit: Mapping[str, Any] = field(default_factory=dict)

    @property
    def before(self) -> dict[str, Any]:
        """The arguments of commits before the last one."""
        return {k: v for k, v in self.commit.items() if k != "transactions"}

    def report(self, text: str) -> None:
        """Report the next step."""
        if self.progress is not None:
            self.progress(text)


class DroppedFeature(Struct, frozen=True):
    """The result of dropping a feature.

    Parameters
    ----------
    snapshot : Snapshot
        The table afterwards; as it was with ``dry_run``.
    steps : tuple of str
        The steps, as text.
    """

    snapshot: Snapshot
    steps: tuple[str, ...]


class _Drop(Struct, frozen=True):
    """The state of a drop in a version of the table."""

    feature: TableFeature
    steps: tuple[FeatureStep, ...]
    truncates: bool
    may_protect: bool = True

    @property
    def has_traces(self) -> bool:
        """Whether older versions can be read with the feature alone."""
        return self.feature.kind == "reader+writer" and self.feature.in_history

    @property
    def protects(self) -> bool:
        """Whether checkpoints after these versions are protected."""
        return self.has_traces and not self.truncates and self.may_protect

    @property
    def before(self) -> list[FeatureStep]:
        """The steps that have commits of their own."""
        return [s for s in self.steps if not isinstance(s, (RemoveProperties, FeatureUse))]


@shows_progress
def drop_feature(base: Snapshot, name: str, options: DropFeatureOptions) -> DroppedFeature:
    """Remove a feature from the table: first what it left in metadata and files, then its name from the protocol.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    name : str
        The feature, whatever the case of its letters.
    options : DropFeatureOptions
        How it is dropped.

    Raises
    ------
    InvalidArgumentError
        If the table does not support the feature, or if its history has nothing to truncate.
    UnsupportedFeatureError
        If no installed plugin provides the feature.
    FeatureRequirementError
        If another feature of the table requires it.
    UnsupportedOperationError
        If the feature can't be dropped, a column or constraint uses it, or versions that use it are too young to be
        removed from a log that is to be truncated.
    CommitConflictError, TooManyAttemptsError
        Other writers committed at each attempt. Call it again.

    Protocol
    --------
    Table Features; checkpointProtection of the proposals
    """
    latest = base.latest()
    runner = StepRunner(options.before, options.report)
    texts = tuple(_texts(latest, _plan(latest, name, options), runner))
    if options.dry_run:
        _check_definition(latest, _plan(latest, name, options), runner)
        return DroppedFeature(latest, texts)
    try:
        latest = _run(latest, name, options, runner)
    finally:
        runner.close()
    return DroppedFeature(latest, texts)


def end_features(base: Snapshot, properties: Mapping[str, str | None]) -> Snapshot:
    """Stop the use of features that properties switch off, where files have to be written again before.

    They stay in the protocol. Features that a change of the properties alone ends are left to that change.

    Parameters
    ----------
    base : Snapshot
        The table; a newer version is looked for.
    properties : Mapping of str to (str or None)
        Table properties as they are to be; None: one that is to be removed.

    Returns
    -------
    Snapshot
        The table afterwards, with the properties as they were but for those of the features that ended.

    Raises
    ------
    FeatureRequirementError, UnsupportedOperationError, CommitConflictError, TooManyAttemptsError
        As of `drop_feature`.
    """
    latest, options = base.latest(), DropFeatureOptions()
    names = [name for name in _ended(latest, properties) if _is_rewritten(latest, name)]
    runner = StepRunner(options.before, options.report)

    def steps(name: str, snapshot: Snapshot) -> list[FeatureStep]:
        return _plan(snapshot, name, options).before

    try:
        for name in names:
            latest, _ = runner.run(latest, partial(steps, name))
    finally:
        runner.close()
    return latest


def _ended(latest: Snapshot, properties: Mapping[str, str | None]) -> list[str]:
    """Return the features that properties switch off."""
    spelled = {name.lower(): name for name in latest.metadata.configuration}
    named = {spelled.get(name.lower(), name): text for name, text in properties.items()}
    if not named.keys() & latest.metadata.configuration.keys():
        return []
    metadata = with_properties(latest.metadata, named)
    state, _ = latest.context.define(latest.protocol, metadata, latest.version, latest.domains, False)
    return sorted(latest.state.active - state.active)


def _is_rewritten(latest: Snapshot, name: str) -> bool:
    plugins = latest.context.registry.plugin_of(name)
    if not plugins.implements("feature_steps"):
        return False
    steps = plugins.collect("feature_steps", table=latest.state, change="drop")
    return any(isinstance(step, ChangeSchema) and step.rewrite for step in steps)


def _plan(latest: Snapshot, name: str, options: DropFeatureOptions) -> _Drop:
    registry = latest.context.registry
    known = registry.supported(latest.protocol).all
    name = next((n for n in (*known, *registry.names()) if n.lower() == name.lower()), name)
    plugins = registry.plugin_of(name)
    (feature,) = plugins.features.values()
    if not known & {feature.name, *feature.aliases}:
        raise InvalidArgumentError(
            f"The table does not support the feature {name!r}.{did_you_mean(name, known)} It supports: "
            f"{', '.join(sorted(known)) or 'none'}.",
            feature=name,
        )
    dependents = [f.name for f in latest.plugins.features.values() if feature.name in f.requires]
    if dependents:
        raise FeatureRequirementError(
            f"Feature {feature.name} can't be dropped: {', '.join(dependents)} of the table needs it. Drop "
            f"{dependents[0]} first.",
            feature=feature.name,
            dependents=tuple(dependents),
        )
    if not plugins.implements("feature_steps"):
        raise UnsupportedOperationError(
            f"Feature {feature.name} can't be dropped: its plugin does not provide the steps. Copy the rows to a new "
            "table without it.",
            feature=feature.name,
        )
    steps = tuple(plugins.collect("feature_steps", table=latest.state, change="drop"))
    drop = _Drop(feature, steps, options.truncate_history, options.protect_history)
    _check_use(drop)
    _check_truncation(drop)
    return drop


def _check_use(drop: _Drop) -> None:
    for use in drop.steps:
        if isinstance(use, FeatureUse) and use.users:
            shown = ", ".join(use.users[:10])
            raise UnsupportedOperationError(
                f"Feature {drop.feature.name} can't be dropped: the table uses it for {shown}. {use.advice}",
                feature=drop.feature.name,
                users=use.users,
            )


def _check_truncation(drop: _Drop) -> None:
    name = drop.feature.name
    if drop.feature.protects_history and not drop.truncates:
        raise UnsupportedOperationError(
            f"Feature {name} protects versions of the log that only readers with dropped features can read. Drop it "
            "with truncate_history=True, which removes these versions from the log.",
            feature=name,
        )
    if drop.truncates and not drop.has_traces and not drop.feature.protects_history:
        raise InvalidArgumentError(
            f"Feature {name} can be dropped without its history: older versions can be read without it. Leave "
            "truncate_history out.",
            feature=name,
        )


def _texts(latest: Snapshot, drop: _Drop, runner: StepRunner) -> Iterator[str]:
    """Yield the steps as they are shown; those that have nothing to do are left out."""
    yield from (step_text(s) for s in drop.before if runner.is_pending(latest, s))
    if drop.truncates:
        yield (
            f"remove versions that use {drop.feature.name} from the log, if they are old enough "
            f"({RETENTION}, 24 hours unless it is set)"
        )
    if drop.protects:
        yield f"write {NUM_BARRIERS} checkpoints, each after an empty commit"
    yield f"remove {drop.feature.name} from the protocol"
    if drop.protects:
        yield "write a checkpoint"


def _check_definition(latest: Snapshot, drop: _Drop, runner: StepRunner) -> None:
    """Raise what the commits that change the definition would raise, as far as it is known before them."""
    pending = [s for s in drop.before if runner.is_pending(latest, s)]
    for step in pending:
        if isinstance(step, ChangeSchema):
            runner.stage_schema(latest, step)
    if not pending:
        _last_transaction(latest, drop)


# --- the run -------------------------------------------------------------------------------


def _run(latest: Snapshot, name: str, options: DropFeatureOptions, runner: StepRunner) -> Snapshot:
    # the version since which none uses the feature; readers never need older ones
    clean: int | None = None
    lost = 0
    while True:
        latest, _ = runner.run(latest, lambda snapshot: _plan(snapshot, name, options).before)
        drop = _plan(latest, name, options)
        matters = drop.truncates or drop.has_traces
        if matters and (clean is None or first_use(latest, drop.feature, clean) is not None):
            clean, latest = _without_history(latest, drop, options)
            continue
        options.report(f"remove {drop.feature.name} from the protocol")
        try:
            latest = _commit(latest, drop, options)
            break
        except (CommitConflictError, TooManyAttemptsError):
            lost += 1
            if lost == MOST_ATTEMPTS:
                raise
            latest = latest.latest()
    if drop.protects:
        try:
            write_checkpoint(latest)
        except (DeltaError, OSError) as e:
            # the feature is gone, and the checkpoints before are enough for readers
            _log.warning("The checkpoint of version %s of %s failed: %s", latest.version, shown_uri(latest.uri), e)
    return latest


def _without_history(latest: Snapshot, drop: _Drop, options: DropFeatureOptions) -> tuple[int, Snapshot]:
    """Make older versions not matter to readers; return the version from which on they do, and the latest."""
    if drop.truncates:
        options.report(f"remove versions that use {drop.feature.name} from the log")
        latest = truncate_history(latest, drop.feature, options.before)
        return latest.version, latest
    if not drop.protects:
        check_history(latest, drop.feature)
        return latest.version, latest
    start = latest.version
    for number in range(NUM_BARRIERS):
        options.report(f"checkpoint {number + 1} of {NUM_BARRIERS}")
        latest = write_barrier(latest, options.before)
    return start, latest


def _last_transaction(latest: Snapshot, drop: _Drop) -> Transaction[Snapshot]:
    feature = drop.feature
    said = {"featureName": feature.name, "truncateHistory": drop.truncates}
    transaction = Transaction(latest.context, latest, "DROP FEATURE", said, isolation=IsolationLevel.SERIALIZABLE)
    names = [n for s in drop.steps if isinstance(s, RemoveProperties) for n in s.names]
    metadata = with_properties(latest.metadata, dict.fromkeys(names))
    features = []
    if drop.protects:
        protector = _protector(latest)
        assert protector.protects_history
        features = [protector.name]
        metadata = with_properties(metadata, {protector.protects_history: str(latest.version + 1)})
    protocol = downgrade_protocol(latest.protocol, feature, latest.context.registry)
    state = transaction.set_metadata(metadata, features, protocol=protocol)
    if feature.name in state.features:
        raise HookContractError(
            f"Hook feature_steps of plugin {feature.name!r} left metadata that needs the feature; expected steps that "
            "remove it.",
            plugin=feature.name,
            hook="feature_steps",
        )
    return transaction


def _commit(latest: Snapshot, drop: _Drop, options: DropFeatureOptions) -> Snapshot:
    """Commit the protocol without the feature on top of exactly this version.

    A commit in between may use the feature, and makes the version that is protected another one.
    """
    transaction = _last_transaction(latest, drop)
    transaction.read(None)
    return transaction.commit(**{**options.commit, "max_retries": 0}).snapshot


def _protector(latest: Snapshot) -> TableFeature:
    features = latest.context.registry.everything.features.values()
    found = next((f for f in features if f.protects_history), None)
    if found is None:
        raise UnsupportedFeatureError(
            "No installed plugin protects the checkpoints of versions that use the feature. Install a package with "
            "one, or drop the feature with truncate_history=True."
        )
    return found
