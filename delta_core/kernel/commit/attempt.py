"""One attempt: from staged intents and the latest state to the lines of a commit.

Everything that belongs to an attempt (row ids, in-commit timestamp, identity marks) is made again from the intents;
names, ids and types never change between attempts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import (
    HookContractError,
    InvalidArgumentError,
    PluginConflictError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.action_columns import with_action_columns, with_declared_fields
from delta_core.kernel.commit.base import TableBase
from delta_core.kernel.commit.intents import REMOVED_FILE, Intents, changes_data
from delta_core.kernel.commit.lines import CommitLines, SmallAction, as_parsed, format_commit, small_action, stamped
from delta_core.kernel.commit.options import OWN_COMMIT_FIELDS
from delta_core.kernel.commit.recorded import recorded
from delta_core.kernel.log.checksum import CommitContent
from delta_core.kernel.plugins.answers import Misfit, find_json_misfit, misfit_of_action, shown
from delta_core.kernel.plugins.attempt import AttemptView, no_actions
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import ActionColumn, CommitInfoField, CommitRule, ExtraAction, RemainingFilesCheck
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import (
    ADDED_FILE,
    CDC,
    CHANGE_FILE,
    COMMIT_INFO,
    CORE_KINDS,
    DOMAIN_METADATA,
    Metadata,
)
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array
from delta_core.kernels.dedup import KeySet, dv_unique_ids
from delta_core.runtime.plugin_errors import contract_error
from delta_core.runtime.processes import cached_property
from delta_core.schema.fields import Path, walk

__all__ = ["Attempt", "CommitHeader", "build_attempt"]


class CommitHeader(Struct, frozen=True):
    """The part of ``commitInfo`` that all attempts share."""

    operation: str
    parameters: Mapping[str, Any]
    metrics: Mapping[str, Any]
    read_version: int | None
    isolation: str
    is_blind: bool
    engine_info: str
    txn_id: str
    user_metadata: str | None = None
    custom: Mapping[str, Any] = {}


class Attempt(Struct, frozen=True, dict=True):
    """A commit ready to be proposed.

    Parameters
    ----------
    lines : bytes or CommitLines
        Its lines; formatted while they are written if they are many.
    info : Mapping
        Its ``commitInfo``.
    small : list of (kind, JSON text)
        Its actions that are no file's, in the order of their lines.
    """

    view: AttemptView
    lines: bytes | CommitLines
    timestamp_ms: int
    info: Mapping[str, Any]
    small: list[SmallAction]

    @cached_property
    def content(self) -> CommitContent | None:
        """The content of the commit as a reader parses it; None if it is known only after parsing the lines."""
        view = self.view
        found = as_parsed(view.version, self.small, view.removes, view.adds, skip=frozenset({COMMIT_INFO.name}))
        return None if found is None else CommitContent(found, self.info)


def build_attempt(
    intents: Intents,
    header: CommitHeader,
    latest: TableState | None,
    target: TableState,
    plugins: PluginSet,
    now_ms: int,
    previous_timestamp_ms: int | None,
    lost: int,
    base: TableBase | None = None,
) -> Attempt:
    """Make the actions of one attempt: rules, then metadata, then checks, then lines.

    ``base`` is the latest version, for rules that require more of it than its state.

    Raises
    ------
    PluginConflictError
        If two features claim one field. Hooks ``check_commit`` raise further errors.
    """
    version = 0 if latest is None else latest.version + 1
    adds = intents.table(intents.adds, with_declared_fields(ADDED_FILE, plugins, "add"))
    removes = intents.table(intents.removes, with_declared_fields(REMOVED_FILE, plugins, "remove"))
    cdcs = intents.table(intents.cdcs, with_declared_fields(CHANGE_FILE, plugins, "cdc"))
    _check_paths(adds, removes)
    view = AttemptView(
        replace(target, version=version),
        latest,
        version,
        header.operation,
        adds,
        removes,
        cdcs,
        intents.domains,
        intents.metadata is not None,
        intents.protocol is not None,
        changes_data(adds) or changes_data(removes),
        now_ms,
        previous_timestamp_ms,
        intents.reported,
        lost,
        no_actions if base is None else base.custom_actions,
    )
    rules: list[CommitRule] = plugins.collect("commit_rules", attempt=view)
    if any(isinstance(r, ActionColumn) for r in rules):
        adds = with_action_columns(adds, "add", rules, plugins, "commit_rules")
        removes = with_action_columns(removes, "remove", rules, plugins, "commit_rules")
        view = replace(view, adds=adds, removes=removes)
    metadata = plugins.fold("finish_metadata", "metadata", target.metadata, attempt=view)
    _check_finished(target.metadata, metadata)
    if metadata != target.metadata:
        view = replace(view, table=replace(view.table, metadata=metadata), metadata_changed=True)
    _check_permitted(intents, rules, plugins)
    _check_files([r for r in rules if isinstance(r, RemainingFilesCheck)], view, base)
    plugins.check("check_commit", attempt=view)
    info = _commit_info(header, rules, now_ms)
    small = _small_actions(view, info, intents, rules, metadata)
    kept = view.adds.drop_columns(["numRecords", "fresh"])
    lines = format_commit(small, stamped(view.removes, now_ms), kept, view.cdcs)
    timestamp = next((r.value for r in rules if isinstance(r, CommitInfoField) and r.first), now_ms)
    return Attempt(view, lines, timestamp, info, small)


def _check_paths(adds: pa.Table, removes: pa.Table) -> None:
    """Reject what no reader could reconcile: two adds of one path, or an add and a remove of one logical file."""
    paths = adds.column("path")
    if len(paths) > 1 and len(paths.unique()) < len(paths):
        twice = next(p for p, count in Counter(paths.to_pylist()).items() if count > 1)
        raise InvalidArgumentError(f"The transaction adds {twice} twice; a file is added once.", path=twice)
    if not adds.num_rows or not removes.num_rows:
        return
    keys = KeySet()
    keys.insert(removes.column("path"), removes.column("dvId"))
    kind, text, offset, *_ = one_array(adds.column("deletionVector")).flatten()
    both = keys.contains(paths, dv_unique_ids(kind, text, offset))
    if both.any():
        path = paths[int(np.argmax(both))].as_py()
        raise InvalidArgumentError(
            f"The transaction adds and removes {path} with one deletion vector, or none; expected one of the two.",
            path=path,
        )


def _check_files(rules: Sequence[RemainingFilesCheck], view: AttemptView, base: TableBase | None) -> None:
    if not rules or base is None:
        return
    touched = pa.concat_arrays([one_array(t.column("path")) for t in (view.adds, view.removes)])
    found = base.files.columns(["path", *dict.fromkeys(r.field for r in rules if r.field)])
    found = found.filter(pc.invert(pc.is_in(found.column("path"), value_set=touched)))
    for rule in rules:
        count = found.column(rule.field).null_count if rule.field else found.num_rows
        if count:
            message = f"{count} file{'s' * (count != 1)} {rule.message}"
            raise UnsupportedOperationError(message, feature=rule.feature, count=count)


def _check_finished(before: Metadata, after: Metadata) -> None:
    """Raise HookContractError if an attempt changed more than properties and values in the schema's metadata."""
    if before.id != after.id or before.partition_columns != after.partition_columns:
        raise HookContractError(
            "Hook finish_metadata changed the table's id or partition columns.", hook="finish_metadata"
        )
    if before.schema_string != after.schema_string and _shape(before) != _shape(after):
        raise HookContractError(
            "Hook finish_metadata changed names, types or nullability of columns; attempts set values of their "
            "metadata only.",
            hook="finish_metadata",
        )


def _shape(metadata: Metadata) -> list[tuple[Path, str, bool]]:
    return [(path, f.type.type, f.nullable) for path, f in walk(metadata.schema)]


def _check_permitted(intents: Intents, rules: Sequence[CommitRule], plugins: PluginSet) -> None:
    """Reject kinds of action that no feature of the table provides or permits."""
    added = [r for r in rules if isinstance(r, ExtraAction)]
    extra = {r.kind: r.feature for r in added}
    kinds = {kind for kind, _ in intents.actions} | extra.keys()
    kinds |= {DOMAIN_METADATA.name} if intents.domains or intents.system_domains else set()
    kinds |= {CDC.name} if intents.cdcs else set()
    brought = {n for f in plugins.features.values() for n in (*f.permits, *(k.name for k in f.actions))}
    missing = sorted(kinds - brought)
    if missing and missing[0] in extra:
        feature = extra[missing[0]]
        what = f"is of kind {missing[0]}, which no feature of the table permits; declare it in FEATURE.actions"
        raise contract_error(feature, "commit_rules", "ExtraAction", what, action=missing[0])
    if missing:
        raise UnsupportedFeatureError(
            f"The transaction stages the action {missing[0]}, which no feature of the table permits "
            f"({', '.join(plugins.features) or 'it has none'}). Add the feature first: "
            "transaction.set_metadata(transaction.table.metadata, features=[...]).",
            action=missing[0],
        )
    declared = {**CORE_KINDS, **{k.name: k for f in plugins.features.values() for k in f.actions}}
    for rule in added:
        misfit = misfit_of_action(rule.value, declared[rule.kind])
        if misfit is not None:
            raise contract_error(rule.feature, "commit_rules", "ExtraAction", f"has {misfit}", action=rule.kind)
    for kind, value in intents.actions:
        misfit = misfit_of_action(value, declared[kind])
        if misfit is not None:
            raise InvalidArgumentError(f"The transaction stages the action {kind} with {misfit}.", action=kind)


def _commit_info(header: CommitHeader, rules: Sequence[CommitRule], now_ms: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    claimed: dict[str, str] = {}
    for rule in rules:
        if isinstance(rule, CommitInfoField):
            other = claimed.setdefault(rule.name, rule.feature)
            if other != rule.feature:
                raise PluginConflictError(f"Features {other} and {rule.feature} both set commitInfo.{rule.name}.")
            if rule.name in header.custom:
                raise InvalidArgumentError(
                    f"custom_metadata has the key {rule.name!r}, which the table's feature {rule.feature} sets. Choose "
                    "another name.",
                    key=rule.name,
                )
            fields[rule.name] = _checked_info(rule)
    operation, parameters = recorded(header.operation, header.parameters)
    info: dict[str, Any] = {
        **header.custom,
        "timestamp": now_ms,
        "operation": operation,
        "operationParameters": {
            k: v if v is None or isinstance(v, str) else json.dumps(v) for k, v in parameters.items()
        },
        "readVersion": header.read_version,
        "isolationLevel": header.isolation,
        "isBlindAppend": header.is_blind,
        "operationMetrics": {k: str(v) for k, v in header.metrics.items()},
        "userMetadata": header.custom.get("userMetadata", header.user_metadata),
        "engineInfo": header.engine_info,
        "txnId": header.txn_id,
        **fields,
    }
    return {k: v for k, v in info.items() if v is not None or k in header.custom}


def _checked_info(rule: CommitInfoField) -> Any:
    """Return the value of a field; HookContractError for one that JSON can't contain, or a time that is none."""
    if rule.name in OWN_COMMIT_FIELDS:
        what = f"sets commitInfo.{rule.name}, which each commit sets itself; expected another name"
        raise contract_error(rule.feature, "commit_rules", "CommitInfoField", what, field=rule.name)
    misfit = find_json_misfit(rule.value, f"commitInfo.{rule.name}")
    if misfit is None and rule.first and (not isinstance(rule.value, int) or isinstance(rule.value, bool)):
        misfit = Misfit(f"commitInfo.{rule.name}", shown(rule.value), "int: milliseconds since the epoch")
    if misfit is not None:
        raise contract_error(rule.feature, "commit_rules", "CommitInfoField", f"has {misfit}", field=rule.name)
    return rule.value


def _small_actions(
    view: AttemptView, info: dict[str, Any], intents: Intents, rules: Sequence[CommitRule], metadata: Metadata
) -> list[SmallAction]:
    found: list[tuple[str, Any]] = [(COMMIT_INFO.name, info)]
    if intents.protocol is not None:
        found.append(("protocol", intents.protocol.to_json()))
    if view.metadata_changed:
        found.append(("metaData", metadata.to_json()))
    found += [("txn", _txn(app, version, view.now_ms)) for app, version in intents.transactions.items()]
    found += [(DOMAIN_METADATA.name, _domain(d, c)) for d, c in {**intents.domains, **intents.system_domains}.items()]
    found += [(r.kind, r.value) for r in rules if isinstance(r, ExtraAction)]
    found += [(kind, value) for kind, value in intents.actions]
    return [small_action(kind, value) for kind, value in found]


def _txn(app_id: str, version: int, now_ms: int) -> dict[str, Any]:
    return {"appId": app_id, "version": version, "lastUpdated": now_ms}


def _domain(domain: str, configuration: str | None) -> dict[str, Any]:
    return {"domain": domain, "configuration": configuration or "", "removed": configuration is None}
