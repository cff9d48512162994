"""FeatureContract: what every feature plugin keeps, bundled or not. Subclass it in the feature's tests."""

from __future__ import annotations

import importlib
import json
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from delta_core.actions import ADDED_FILE, CHANGE_FILE, Metadata, Protocol
from delta_core.commit.attempt import AttemptView
from delta_core.commit.intents import REMOVED_FILE
from delta_core.commit.upgrade import upgraded
from delta_core.features import API_VERSION, READER_VERSIONS, WRITER_VERSIONS, SupportedFeatures, TableFeature
from delta_core.hookspecs import RESULTS
from delta_core.plans import ReadRequest
from delta_core.plugins import PluginRegistry, PluginSet
from delta_core.rules import (
    ActionColumn,
    ChangeCapture,
    CommitInfoField,
    CommitTimestamp,
    EveryFile,
    ExtraAction,
    FileRequirement,
    FillColumn,
    Function,
    HiddenColumn,
    MetadataColumn,
    ReadCheck,
    RemoveRows,
    RowCheck,
    RowFilter,
    RowSelector,
)  # fmt: skip
from delta_core.schema import ColumnMap, Schema
from delta_core.state import TableState
from delta_core.types import TypeDef

__all__ = ["FeatureContract", "attempt_view", "table_state"]

READ_RULES = (RowSelector, RowFilter, ReadCheck, MetadataColumn)
WRITE_RULES = (FillColumn, HiddenColumn, RowCheck, FileRequirement, RemoveRows, ChangeCapture)
COMMIT_RULES = (ActionColumn, ExtraAction, CommitInfoField, EveryFile)


def table_state(
    features: Iterable[str] = (),
    fields: Iterable[Mapping[str, Any]] = ({"name": "id", "type": "long", "nullable": True, "metadata": {}},),
    properties: Mapping[str, str] | None = None,
    domains: Mapping[str, str] | None = None,
    partition_by: Iterable[str] = (),
    registry: PluginRegistry | None = None,
) -> TableState:
    """Return the state of a table that supports features, as a snapshot would build it before it asks hooks.

    Parameters
    ----------
    fields : iterable of mapping
        The schema's fields, as JSON.
    registry : PluginRegistry, optional
        Whose plugins say which features are active; what is installed unless given.
    """
    schema = Schema.from_json(_schema_json(fields))
    names = tuple(sorted(features))
    metadata = Metadata(
        id="a", schema_string=schema.to_json(), configuration=dict(properties or {}), partition_columns=tuple(partition_by)
    )
    plugins = (registry or PluginRegistry()).resolve(SupportedFeatures(frozenset(names), frozenset(names)))
    state = TableState(
        0, Protocol(3, 7, names, names), metadata, schema, features=plugins.canonical(names),
        reader_features=plugins.canonical(names), types=plugins.types, domains=dict(domains or {}),
        functions=plugins.functions,
    )  # fmt: skip
    return replace(state, active=frozenset(n for n, f in plugins.features.items() if f.active(state)))


def attempt_view(table: TableState, **changes: Any) -> AttemptView:
    """Return an attempt at the version behind a table's, without any action unless ``changes`` give some."""
    view = AttemptView(
        replace(table, version=table.version + 1), table, table.version + 1, "WRITE", ADDED_FILE.empty_table(),
        REMOVED_FILE.empty_table(), CHANGE_FILE.empty_table(), {}, False, False, False, 1_700_000_000_000,
    )  # fmt: skip
    return replace(view, **changes)


def _schema_json(fields: Iterable[Mapping[str, Any]]) -> str:
    filled = [{"nullable": True, "metadata": {}, **f} for f in fields]
    return json.dumps({"type": "struct", "fields": filled})


class FeatureContract:
    """Tests that a feature's plugin keeps the rules of the door; pytest runs them in subclasses.

    Attributes
    ----------
    name : str
        The feature's name. The plugin must be installed: it is found by its entry point.
    """

    name: str

    def states(self) -> list[TableState]:
        """Return tables that use the feature, each readable; override to reach more of the hooks."""
        return [table_state([self.name])]

    # --- what the tests stand on ---

    @property
    def plugin(self) -> Any:
        """The plugin that the entry point leads to."""
        plugin = PluginRegistry().load(self.name)
        assert plugin is not None, f"no installed distribution has an entry point {self.name!r}: install its package"
        return plugin

    @property
    def feature(self) -> TableFeature:
        """What the plugin says of its feature."""
        feature = self.plugin.FEATURE
        assert isinstance(feature, TableFeature)
        return feature

    def alone(self) -> PluginSet:
        """Return a set of this plugin only."""
        return PluginSet({self.feature.name: self.plugin}, frozenset())

    def answers(self) -> list[tuple[str, Any]]:
        """Return (hook, answer) of every reader hook, for every table of `states`."""
        plugins, out = self.alone(), []
        features = frozenset({self.feature.name})
        for hook in ("primitive_types", "functions"):
            out += [(hook, a) for a in plugins.collect(hook, features=features)]
        for state in self.states():
            for request in (ReadRequest(), ReadRequest(purpose="changes")):
                out += [("read_rules", a) for a in plugins.collect("read_rules", table=state, request=request)]
            for hook in ("column_map", "commit_timestamps"):
                answer = plugins.sole(hook, table=state)
                out += [] if answer is None else [(hook, answer)]
        return out

    def writable(self) -> list[TableState]:
        """Return tables that use the feature and can be written; override where some of `states` can't."""
        return self.states()

    def written(self) -> list[tuple[str, Any]]:
        """Return (hook, answer) of the rules of a write and of a commit without actions, for every table of `writable`."""
        plugins, out = self.alone(), []
        for state in self.writable():
            out += [("write_rules", a) for a in plugins.collect("write_rules", table=state, operation="WRITE")]
            out += [("commit_rules", a) for a in plugins.collect("commit_rules", attempt=attempt_view(state))]
        return out

    def check_metadata(self, state: TableState, previous: TableState | None = None) -> None:
        """Let the plugin check a table's metadata, as a change of it would."""
        self.alone().check("check_metadata", table=state, metadata=state.metadata, previous=previous)

    def prepare_metadata(self, state: TableState, previous: TableState | None = None) -> Metadata:
        """Return what the plugin makes of a table's metadata."""
        found = self.alone().fold("prepare_metadata", "metadata", state.metadata, table=state, previous=previous)
        assert isinstance(found, Metadata)
        return found

    def prepared(self, state: TableState) -> TableState:
        """Return a table with what the plugin makes of its metadata."""
        metadata = self.prepare_metadata(state)
        return replace(state, metadata=metadata, schema=Schema.from_json(metadata.schema_string))

    # --- the contract ---

    def test_entry_points_lead_to_the_feature_by_name_and_alias(self) -> None:
        registry = PluginRegistry()
        assert self.feature.name == self.name
        for name in (self.name, *self.feature.aliases):
            assert registry.load(name) is self.plugin, f"entry point {name!r} does not lead to {self.plugin!r}"
            assert registry.source(name), f"no distribution provides {name!r}"

    def test_feature_is_stated_whole(self) -> None:
        feature = self.feature
        assert feature.api == API_VERSION
        assert feature.kind in ("writer", "reader+writer")
        assert feature.summary.endswith(".")
        assert all(feature.properties.values()), "a property lacks its description"
        assert set(feature.kept) <= set(feature.properties), "a property that the feature keeps is not described"
        assert feature.legacy_reader is None or feature.kind == "reader+writer"

    def test_old_protocol_versions_name_the_feature_where_it_says_so(self) -> None:
        registry, feature = PluginRegistry(), self.feature
        for side, versions, stated in (
            ("reader", READER_VERSIONS, feature.legacy_reader),
            ("writer", WRITER_VERSIONS, feature.legacy_writer),
        ):
            named = [v for v in versions if self.name in registry.legacy(f"{side}_{v}")]
            assert named == ([] if stated is None else [stated])

    def test_hooks_fit_their_specification(self) -> None:
        plugins = self.alone()
        assert set(plugins.features) == {self.name}
        assert all(hook in RESULTS for hook, _ in self.answers())

    def test_feature_and_rules_pickle(self) -> None:
        assert pickle.loads(pickle.dumps(self.feature)).name == self.name  # noqa: S301 (its own bytes)
        for hook, answer in self.answers():
            assert pickle.loads(pickle.dumps(answer)) == answer, f"{hook}: {answer!r}"  # noqa: S301 (its own bytes)

    def test_hooks_answer_with_what_the_core_knows(self) -> None:
        allowed: dict[str, Any] = {
            "primitive_types": TypeDef, "functions": Function, "read_rules": READ_RULES, "column_map": ColumnMap,
            "commit_timestamps": CommitTimestamp,
        }  # fmt: skip
        for hook, answer in self.answers():
            assert isinstance(answer, allowed[hook]), f"{hook} returned {answer!r}"
            if hook in ("read_rules", "functions", "commit_timestamps"):
                assert answer.feature == self.name, f"{answer!r} is signed by {answer.feature!r}"

    def test_its_tables_are_readable(self) -> None:
        for state in self.states():
            assert state.is_supported(self.name)
            self.alone().check("check_read", table=state)

    def test_table_without_the_feature_is_untouched(self) -> None:
        registry = PluginRegistry()
        others = registry.resolve(SupportedFeatures(frozenset(), frozenset()))
        assert self.name not in others.features
        state = table_state()
        assert others.collect("read_rules", table=state, request=ReadRequest()) == []
        assert others.sole("column_map", table=state) is None
        assert not state.is_active(self.name)

    def test_rules_of_writes_are_of_known_kinds_signed_and_pickle(self) -> None:
        allowed: dict[str, Any] = {"write_rules": WRITE_RULES, "commit_rules": COMMIT_RULES}
        for hook, rule in self.written():
            assert isinstance(rule, allowed[hook]), f"{hook} returned {rule!r}"
            assert rule.feature == self.name, f"{rule!r} is signed by {rule.feature!r}"
            assert pickle.loads(pickle.dumps(rule)) == rule, f"{hook}: {rule!r}"  # noqa: S301 (its own bytes)

    def test_metadata_that_it_accepts_switches_on_what_is_installed_and_once(self) -> None:
        registry, plugins = PluginRegistry(), self.alone()
        for state in self.writable():
            prepared = self.prepared(state)
            self.check_metadata(prepared)
            wanted = plugins.collect("required_features", metadata=prepared.metadata)
            assert all(registry.load(name) is not None for name in wanted), wanted
            once = upgraded(Protocol(1, 2), wanted, registry)
            assert upgraded(once, wanted, registry) == once

    def test_metadata_is_prepared_once(self) -> None:
        for state in self.writable():
            once = self.prepared(state)
            assert self.prepare_metadata(once, once) == once.metadata

    def test_commit_without_actions_passes_and_keeps_what_identifies_the_table(self) -> None:
        plugins = self.alone()
        for state in self.writable():
            attempt = attempt_view(state)
            plugins.check("check_commit", attempt=attempt)
            found = plugins.fold("finish_metadata", "metadata", state.metadata, attempt=attempt)
            assert (found.id, found.partition_columns) == (state.metadata.id, state.metadata.partition_columns)
            assert Schema.from_json(found.schema_string) == state.schema

    def test_write_of_a_table_without_the_feature_is_untouched(self) -> None:
        state, plugins = table_state(), self.alone()
        assert self.name not in plugins.collect("required_features", metadata=state.metadata)
        without = PluginRegistry().resolve(SupportedFeatures(frozenset(), frozenset()))
        assert without.collect("write_rules", table=state, operation="WRITE") == []
        assert without.collect("commit_rules", attempt=attempt_view(state)) == []

    def test_verbs_lead_to_functions(self) -> None:
        for verb, target in self.feature.verbs.items():
            module, _, function = target.partition(":")
            assert callable(getattr(importlib.import_module(module), function, None)), f"verb {verb!r}: {target}"
