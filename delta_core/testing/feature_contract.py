"""FeatureContract: what every feature plugin keeps, bundled or not. Subclass it in the feature's tests."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import pickle
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from delta_core.engines.interface import Evaluator
from delta_core.errors import (
    ConstraintViolationError,
    CorruptTableError,
    DataFileError,
    DeltaError,
    FeatureRequirementError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Column, Expression
from delta_core.expressions.binding import bind_typed
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.commit.intents import REMOVED_FILE
from delta_core.kernel.commit.upgrade import upgrade_protocol
from delta_core.kernel.log.checksum import OWN_FIELDS
from delta_core.kernel.plugins.definition import active_features
from delta_core.kernel.plugins.features import API_VERSION, SupportedFeatures, TableFeature
from delta_core.kernel.plugins.hook_calls import hook_name, marked_hooks
from delta_core.kernel.plugins.hookspecs import RESULTS
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.rules import (
    ActionColumn,
    ChecksumField,
    CommitSummary,
    FillColumn,
    ReadCheck,
    RemoveRows,
    RowCheck,
    RowFilter,
    RowSelector,
)
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.plugins.steps import FeatureStep
from delta_core.kernel.protocol.actions import ADDED_FILE, FILE_COLUMNS, Metadata, Protocol
from delta_core.kernel.snapshot import open_context
from delta_core.operations.feature.drop import DropFeatureOptions, drop_feature
from delta_core.runtime.lazy import load_object
from delta_core.schema.fields import Schema
from delta_core.testing.cost_contract import CostContract
from delta_core.testing.encoding_contract import EncodingContract
from delta_core.testing.feature_tables import ExampleTable, MadeTable, as_values, tamper
from delta_core.testing.function_calls import Compute, FunctionCall, calls_in, first_difference, possible_calls
from delta_core.testing.hook_costs import attempt_view, call_hook, hook_arguments

__all__ = ["ExampleTable", "FeatureContract", "attempt_view", "table_state"]


#: The hooks that have an answer for some table, if a plugin implements them.
RETURNING = (
    "primitive_types",
    "functions",
    "read_rules",
    "column_map",
    "column_encodings",
    "commit_timestamps",
    "write_rules",
    "commit_rules",
    "checksum_fields",
)
#: The report of a commit, where it is known.
_INFO = {"timestamp": 1_700_000_000_000, "operation": "WRITE", "inCommitTimestamp": 1_700_000_000_000}
_NO_FILES = pa.table({"size": pa.array([], pa.int64()), "dvCardinality": pa.array([], pa.int64())})


def table_state(
    features: Iterable[str] = (),
    fields: Iterable[Mapping[str, Any]] = ({"name": "id", "type": "long", "nullable": True, "metadata": {}},),
    properties: Mapping[str, str] | None = None,
    domains: Mapping[str, str] | None = None,
    partition_by: Iterable[str] = (),
    registry: PluginRegistry | None = None,
) -> TableState:
    """Return the state of a table that supports features, as a snapshot would build it before it requires hooks.

    Parameters
    ----------
    features : iterable of str
        The features of the protocol, for readers and writers.
    fields : iterable of mapping
        The schema's fields, as JSON.
    properties : Mapping, optional
        Table properties.
    domains : Mapping, optional
        Configurations of domains, by name.
    partition_by : iterable of str
        The partition columns.
    registry : PluginRegistry, optional
        The registry of plugins that specify which features are active; by default the installed ones.
    """
    schema = Schema.from_json(_schema_json(fields))
    names = tuple(sorted(features))
    metadata = Metadata(
        id="a",
        schema_string=schema.to_json(),
        configuration=dict(properties or {}),
        partition_columns=tuple(partition_by),
    )
    plugins = (registry or PluginRegistry()).resolve(SupportedFeatures(frozenset(names), frozenset(names)))
    state = TableState(
        0,
        Protocol(3, 7, names, names),
        metadata,
        schema,
        features=plugins.canonical(names),
        reader_features=plugins.canonical(names),
        types=plugins.types,
        domains=dict(domains or {}),
        functions=plugins.functions,
    )
    return replace(state, active=active_features(plugins, state))


def _schema_json(fields: Iterable[Mapping[str, Any]]) -> str:
    filled = [{"nullable": True, "metadata": {}, **f} for f in fields]
    return json.dumps({"type": "struct", "fields": filled})


class FeatureContract(EncodingContract, CostContract):
    """Tests that a feature's plugin keeps the rules of the plugin API; pytest runs them in subclasses.

    Every message names the plugin, and the hook if one is at fault.

    Attributes
    ----------
    name : str
        The feature's name. The plugin must be installed: it is found by its entry point.
    not_written : str
        Why no table of the feature can be written, for a plugin that only reads; empty for the others.
    without_rules : str
        Why the plugin returns nothing from a hook that it implements, or has no hook at all; empty if it does not.
    unread : tuple of str
        Properties that hooks read of other tables than these tests have, or the core reads for the plugin.
    without_changes : str
        Why no table with the feature can record its changes; empty if some can.
    uncompared : tuple of str
        Functions that Spark can't compute, or whose results are not compared with Spark's.
    """

    name: str
    not_written: str = ""
    without_rules: str = ""
    unread: tuple[str, ...] = ()
    without_changes: str = ""
    uncompared: tuple[str, ...] = ()

    def states(self) -> list[TableState]:
        """Return tables that use the feature, each readable; override to reach more of the hooks."""
        return [table_state([self.name], registry=self.registry)]

    def tables(self) -> list[ExampleTable]:
        """Return tables to be made, written and read; override so that each rule of the plugin is at work in one."""
        return [ExampleTable()]

    # --- what the tests are based on ---

    @property
    def registry(self) -> PluginRegistry:
        """The installed plugins."""
        return PluginRegistry()

    @property
    def plugin(self) -> Any:
        """The plugin that the entry point leads to."""
        plugin = self.registry.load(self.name)
        assert plugin is not None, f"no installed distribution has an entry point {self.name!r}: install its package"
        return plugin

    @property
    def feature(self) -> TableFeature:
        """The declaration of the plugin about its feature."""
        feature = self.plugin.FEATURE
        assert isinstance(feature, TableFeature)
        return feature

    def alone(self) -> PluginSet:
        """Return a set of this plugin only."""
        return PluginSet({self.feature.name: self.plugin}, frozenset())

    def fault(self, hook: str, text: str) -> NoReturn:
        """Fail with the plugin and the hook that is at fault."""
        pytest.fail(f"Hook {hook} of plugin {self.name!r}: {text}", pytrace=False)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Report an error of a step with the plugin."""
        try:
            yield
        except Exception as e:
            hook = getattr(e, "hook", None)
            by = f" (hook {hook})" if hook else ""
            raise AssertionError(f"Plugin {self.name!r}{by} failed while {what}: {type(e).__name__}: {e}") from e

    def answers(self) -> list[tuple[str, Any]]:
        """Return (hook, answer) of every reader hook, for every table of `states`."""
        plugins, out = self.alone(), []
        features = frozenset({self.feature.name})
        for hook in ("primitive_types", "functions"):
            out += [(hook, a) for a in plugins.collect(hook, features=features)]
        for state in self.states():
            for request in (ReadRequest(), ReadRequest(purpose="changes")):
                out += [("read_rules", a) for a in plugins.collect("read_rules", table=state, request=request)]
            for info in ({}, _INFO):
                commit = CommitSummary(state.version, info, None, _NO_FILES, _NO_FILES)
                # a feature may need its own field of the commit
                with contextlib.suppress(CorruptTableError):
                    out += [
                        ("checksum_fields", a) for a in plugins.collect("checksum_fields", table=state, commit=commit)
                    ]
            for hook in ("column_map", "commit_timestamps"):
                answer = plugins.single(hook, table=state)
                out += [] if answer is None else [(hook, answer)]
            out += [("column_encodings", a) for a in plugins.collect("column_encodings", table=state)]
        return out

    def writable(self) -> list[TableState]:
        """Return tables that use the feature and can be written; override if some of `states` can't."""
        return self.states()

    def written(self) -> list[tuple[str, Any]]:
        """Return (hook, answer) of the rules of writes and of commits without actions, for each table of `writable`."""
        plugins, out = self.alone(), []
        for state in self.writable():
            out += [("write_rules", a) for a in plugins.collect("write_rules", table=state, operation="WRITE")]
            out += [("commit_rules", a) for a in plugins.collect("commit_rules", attempt=attempt_view(state, plugins))]
        return out

    def check_metadata(self, state: TableState, previous: TableState | None = None) -> None:
        """Let the plugin check a table's metadata, as a change of it would."""
        self.alone().check(
            "check_metadata", table=state, metadata=state.metadata, previous=previous, is_new=previous is None
        )

    def prepare_metadata(self, state: TableState, previous: TableState | None = None) -> Metadata:
        """Return what the plugin makes of a table's metadata."""
        found = self.alone().fold("prepare_metadata", "metadata", state.metadata, table=state, previous=previous)
        assert isinstance(found, Metadata)
        return found

    def prepared(self, state: TableState) -> TableState:
        """Return a table with what the plugin makes of its metadata."""
        metadata = self.prepare_metadata(state)
        return replace(state, metadata=metadata, schema=metadata.schema)

    def make(self, example: ExampleTable, folder: Path) -> MadeTable:
        """Make a table and write its rows.

        Override it for a feature whose rules depend on domains or actions of its own: begin a transaction on
        ``made.snapshot``, stage them with ``set_domain`` or ``add_action``, and commit.

        Parameters
        ----------
        example : ExampleTable
            One of `tables`.
        folder : Path
            Where the table is made.
        """
        with self.step("making the table"):
            made = MadeTable(example, self.name, self.registry, folder)
        with self.step("writing rows"):
            made.append()
        return made

    def rules_of(self, made: MadeTable) -> list[tuple[str, Any]]:
        """Return (hook, rule) of the plugin for a table that was made."""
        snapshot = made.snapshot
        state, plugins = snapshot.state, snapshot.plugins
        found = [
            ("read_rules", r)
            for request in (ReadRequest(), ReadRequest(purpose="changes"))
            for r in plugins.collect("read_rules", table=state, request=request)
        ]
        found += [("column_encodings", r) for r in state.encodings.values()]
        found += [("write_rules", r) for r in plugins.collect("write_rules", table=state, operation="WRITE")]
        found += [("commit_rules", r) for r in plugins.collect("commit_rules", attempt=attempt_view(state, plugins))]
        return [(hook, r) for hook, r in found if r.feature == self.name]

    # --- the contract: what the plugin declares ---

    def test_entry_points_lead_to_the_feature_by_name_and_alias(self) -> None:
        registry = self.registry
        assert self.feature.name == self.name, (
            f"Plugin {self.name!r} has FEATURE.name {self.feature.name!r}; expected the name of its entry point"
        )
        for name in (self.name, *self.feature.aliases):
            found = registry.load(name)
            assert found is not None, f"Plugin {self.name!r} has no entry point {name!r}"
            assert self.feature == found.FEATURE, f"entry point {name!r} leads to another plugin"
            assert registry.source(name), f"no distribution provides {name!r}"

    def test_feature_is_stated_whole(self) -> None:
        feature, plugin = self.feature, f"Plugin {self.name!r}"
        assert feature.api == API_VERSION, f"{plugin}: FEATURE.api is {feature.api}, expected {API_VERSION}"
        assert feature.kind in ("writer", "reader+writer"), f"{plugin}: FEATURE.kind is {feature.kind!r}"
        assert feature.summary.endswith("."), f"{plugin}: FEATURE.summary is {feature.summary!r}, expected a sentence"
        assert all(feature.properties.values()), f"{plugin}: a property in FEATURE.properties lacks its description"
        assert set(feature.reserved) <= set(feature.properties), (
            f"{plugin}: FEATURE.reserved has more than FEATURE.properties"
        )
        assert set(feature.enabling) <= set(feature.operations), (
            f"{plugin}: FEATURE.enabling has more than FEATURE.operations"
        )
        registry = self.registry
        for field in ("requires", "after"):
            unknown = [n for n in getattr(feature, field) if registry.load(n) is None]
            assert not unknown, f"{plugin}: FEATURE.{field} names {unknown[0]!r}, which no installed plugin provides"

    def test_reader_rules_come_with_a_reader_feature(self) -> None:
        shaping = (RowSelector, RowFilter)
        if self.feature.kind == "writer":
            for hook, answer in self.answers():
                if isinstance(answer, shaping):
                    self.fault(
                        hook,
                        f"returned {answer!r}, but FEATURE.kind is 'writer': readers without it would return other "
                        "rows",
                    )

    def test_operations_lead_to_functions(self) -> None:
        for operation, target in self.feature.operations.items():
            with self.step(f"importing its operation {operation!r} from {target}"):
                found = load_object(target)
            assert callable(found), (
                f"Plugin {self.name!r}: FEATURE.operations leads {operation!r} to {target}, which is no function"
            )

    # --- the contract: hooks ---

    def test_hooks_fit_their_specification(self) -> None:
        assert set(self.alone().features) == {self.name}
        assert all(hook in RESULTS for hook, _ in self.answers())

    def test_functions_with_a_hooks_name_are_marked(self) -> None:
        marked = marked_hooks(self.plugin)
        for hook in RESULTS:
            function = getattr(self.plugin, hook, None)
            own = inspect.isfunction(function) and function.__module__ == getattr(self.plugin, "__name__", None)
            if hook not in marked and own:
                self.fault(hook, "it is not marked with @hookimpl, so it is never called")

    def test_every_hook_returns_something_for_some_table(self, tmp_path: Path) -> None:
        rules = [*self.answers(), *self.written()]
        at_work = set[tuple[str, type]]()
        for i, example in enumerate([] if self.not_written else self.tables()):
            at_work |= {(hook, type(rule)) for hook, rule in self.rules_of(self.make(example, tmp_path / str(i)))}
        hooks = {hook_name(n, f) for n, f in marked_hooks(self.plugin).items()}
        seen = {hook for hook, _ in (*rules, *at_work)}
        silent = [h for h in RETURNING if h in hooks and h not in seen]
        if silent and not self.without_rules:
            self.fault(
                silent[0],
                "it returned nothing for any table of states() and tables(): override them with a table for "
                "which it returns rules",
            )
        feature = self.feature
        declares = hooks or feature.permits or feature.actions or feature.fields or feature.domains
        assert declares or self.without_rules, (
            f"Plugin {self.name!r} has no hook marked with @hookimpl, and declares nothing: no rule was seen"
        )
        idle = [(h, r) for h, r in rules if h.endswith("_rules") and (h, type(r)) not in at_work]
        if idle and not self.not_written:
            hook, rule = idle[0]
            self.fault(
                hook,
                f"{type(rule).__name__} is at work in no table of tables(): override it with a table for which the "
                "hook returns the rule",
            )

    def test_hooks_answer_alike_when_called_again(self) -> None:
        first, again = self.answers(), self.answers()
        for i, (hook, answer) in enumerate(first):
            if i >= len(again) or type(again[i][1]) is not type(answer):
                self.fault(hook, f"it returned {answer!r} when it was called first, and something else the second time")

    def test_feature_and_rules_pickle(self) -> None:
        try:
            assert pickle.loads(pickle.dumps(self.feature)).name == self.name  # noqa: S301 (its own bytes)
        except (pickle.PicklingError, AttributeError, TypeError) as e:
            pytest.fail(
                f"Plugin {self.name!r}: FEATURE can't be pickled: {e}. Put its functions at module level.",
                pytrace=False,
            )
        for hook, answer in (*self.answers(), *self.written()):
            try:
                copied = pickle.loads(pickle.dumps(answer))  # noqa: S301 (its own bytes)
            except (pickle.PicklingError, AttributeError, TypeError) as e:
                self.fault(hook, f"{type(answer).__name__} can't be pickled: {e}. Put its functions at module level.")
            if copied != answer:
                self.fault(hook, f"{answer!r} is another one when it was pickled: {copied!r}")

    def test_rules_are_signed(self) -> None:
        for hook, rule in (*self.answers(), *self.written()):
            if getattr(rule, "feature", self.name) != self.name:
                self.fault(hook, f"{type(rule).__name__} is signed by {rule.feature!r}; expected {self.name!r}")

    def test_fields_of_checksums_are_json_of_their_own_names(self) -> None:
        for hook, field in self.answers():
            if not isinstance(field, ChecksumField):
                continue
            if field.name in OWN_FIELDS:
                self.fault(hook, f"ChecksumField sets {field.name!r}, which the core sets; expected a name of its own")
            try:
                copied = json.loads(json.dumps(field.value))
            except (TypeError, ValueError) as e:
                self.fault(
                    hook, f"ChecksumField {field.name!r} has the value {field.value!r}, which JSON can't hold: {e}"
                )
            if copied != field.value:
                self.fault(
                    hook, f"ChecksumField {field.name!r} is read again as {copied!r}, written was {field.value!r}"
                )

    def test_its_tables_are_readable(self) -> None:
        for state in self.states():
            assert state.is_supported(self.name), (
                f"states() of plugin {self.name!r} returned a table without the feature"
            )
            with self.step("checking a table of states() in check_read"):
                self.alone().check("check_read", table=state)

    def test_properties_are_declared_and_read(self) -> None:
        declared = set(self.feature.properties) | set(self.feature.reserved)
        read = _ReadKeys()
        for state in (*self.states(), *self.writable()):
            self._read_properties(state, read)
        unread = sorted(p for p in declared if "<" not in p and p not in read.all and p not in self.unread)
        assert not unread, (
            f"Plugin {self.name!r} declares the property {unread[0]!r} in FEATURE.properties, and none of its hooks "
            f"reads it.{did_you_mean(unread[0], read.all - declared)}"
        )
        for key, hook in read.by_name.items():
            if not self._is_declared(key):
                self.fault(
                    hook,
                    f"it reads the property {key!r}, which FEATURE.properties does not declare: users could not set "
                    f"it.{did_you_mean(key, declared)}",
                )

    def _is_declared(self, key: str) -> bool:
        """Whether the core or an installed feature declares a property, or a family of them such as ``x.<name>``."""
        features = [self.feature, *self.registry.everything.features.values()]
        names = {n for f in features for n in (*f.properties, *f.reserved, *f.requests.values(), *f.expressions)}
        families = [n.partition("<")[0] for n in names if "<" in n]
        return key in names or key.startswith(("delta.", "parquet.", *families))

    def _read_properties(self, state: TableState, read: _ReadKeys) -> None:
        """Call the hooks for a table, and note which of its properties they look at."""
        configuration = _Recording(state.metadata.configuration, read)
        metadata = replace(state.metadata, configuration=configuration)
        table, plugins = replace(state, metadata=metadata), self.alone()
        read.hook = "active"
        self.feature.active(table)
        for hook, arguments in hook_arguments(table, plugins).items():
            read.hook = hook
            # what such a call rejects is for other tests
            with contextlib.suppress(DeltaError):
                call_hook(plugins, hook, arguments)

    # --- the contract: metadata ---

    def test_metadata_that_it_accepts_switches_on_what_is_installed_and_once(self) -> None:
        registry, plugins = self.registry, self.alone()
        for state in self.writable():
            prepared = self.prepared(state)
            self.check_metadata(prepared)
            required = plugins.collect("required_features", metadata=prepared.metadata)
            for name in required:
                if registry.load(name) is None:
                    self.fault(
                        "required_features",
                        f"it returned {name!r}, which no installed plugin provides."
                        f"{did_you_mean(name, registry.names())}",
                    )
            once = upgrade_protocol(Protocol(1, 2), required, registry)
            assert upgrade_protocol(once, required, registry) == once

    def test_metadata_is_prepared_once(self) -> None:
        for state in self.writable():
            before = json.dumps(state.metadata.to_json(), sort_keys=True)
            once = self.prepared(state)
            if json.dumps(state.metadata.to_json(), sort_keys=True) != before:
                self.fault(
                    "prepare_metadata",
                    "it changed the metadata that it was called with; return a copy, made by replace",
                )
            if self.prepare_metadata(once, once) != once.metadata:
                self.fault("prepare_metadata", "it changes metadata again that it has prepared already")

    def test_commit_without_actions_passes_and_keeps_what_identifies_the_table(self) -> None:
        plugins = self.alone()
        for state in self.writable():
            attempt = attempt_view(state, plugins)
            with self.step("checking a commit without actions in check_commit"):
                plugins.check("check_commit", attempt=attempt)
            found = plugins.fold("finish_metadata", "metadata", state.metadata, attempt=attempt)
            if (found.id, found.partition_columns) != (state.metadata.id, state.metadata.partition_columns):
                self.fault("finish_metadata", "it changed the table's id or partition columns")
            if found.schema != state.schema:
                self.fault("finish_metadata", "it changed the schema")

    # --- the contract: tables without the feature ---

    def test_table_without_the_feature_is_untouched(self) -> None:
        registry = self.registry
        without = registry.resolve(SupportedFeatures(frozenset(), frozenset()))
        assert self.name not in without.features
        state = table_state(registry=registry)
        assert without.collect("read_rules", table=state, request=ReadRequest()) == []
        assert without.single("column_map", table=state) is None
        assert without.collect("column_encodings", table=state) == []
        assert not state.is_active(self.name)

    def test_write_of_a_table_without_the_feature_is_untouched(self) -> None:
        state, plugins = table_state(registry=self.registry), self.alone()
        if self.name in plugins.collect("required_features", metadata=state.metadata):
            self.fault("required_features", "it returned the feature for metadata that has nothing of it")
        without = self.registry.resolve(SupportedFeatures(frozenset(), frozenset()))
        assert without.collect("write_rules", table=state, operation="WRITE") == []
        assert without.collect("commit_rules", attempt=attempt_view(state)) == []

    # --- the contract: rows ---

    def test_rows_are_written_moved_and_read(self, tmp_path: Path) -> None:
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make(example, tmp_path / str(i))
            self._check_rows(made, "after they were written")
            self._check_metadata_columns(made)
            self._check_fields(made)
            carried = self._read(made, made.carried)
            with self.step("replacing some rows, which moves the others"):
                made.move()
            self._check_rows(made, "after rows were replaced and others moved")
            self._check_carried(made, carried, self._read(made, made.carried))
            actions = made.actions()
            with self.step("writing a checkpoint"):
                made.checkpoint()
            self._check_rows(made, "after a checkpoint was written")
            if made.actions() != actions:
                self.fault(
                    "commit_rules", f"its actions are others in a checkpoint: {made.actions()}, expected {actions}"
                )

    def test_filters_hide_rows_and_fills_compute_columns(self, tmp_path: Path) -> None:
        hides, fills, computed = set[bool](), set[str](), set[str]()
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make(example, tmp_path / str(i))
            rules = [rule for _, rule in self.rules_of(made)]
            if any(isinstance(rule, RowFilter) for rule in rules):
                hides.add(self._read(made, made.read).num_rows < example.rows.num_rows)
            absent = {r.column[0] for r in rules if isinstance(r, FillColumn) and r.when == "absent"}
            fills |= absent
            computed |= absent - set(example.rows.column_names)
        if hides and True not in hides:
            self.fault("read_rules", "RowFilter hides no row of tables(): add rows that it hides, and set expected=")
        if fills - computed:
            self.fault(
                "write_rules",
                f"FillColumn never computes {min(fills - computed)!r}: leave it out of the rows of a table of "
                "tables(), and set expected=",
            )

    def test_rows_that_are_dropped_are_the_right_ones(self, tmp_path: Path) -> None:
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make(example, tmp_path / str(i))
            if not any(isinstance(rule, RemoveRows) for _, rule in self.rules_of(made)):
                continue
            left = as_values(self._read(made, made.read))
            for position in (0, 1):
                with self.step("dropping a row (RemoveRows.encode of hook write_rules)"):
                    dropped = made.remove_row(position)
                if not dropped.num_rows:
                    continue  # no file has this many rows
                left.remove(*as_values(dropped))
                if as_values(self._read(made, made.read)) != left:
                    self.fault(
                        "read_rules",
                        f"RowSelector drops other rows than RemoveRows of hook write_rules encoded: "
                        f"after row {position} was dropped, expected {left}",
                    )

    def test_commits_that_lose_a_race_keep_rows_and_fields(self, tmp_path: Path) -> None:
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make(example, tmp_path / f"{i} appended")
            once = len(as_values(self._read(made, made.read)))
            with self.step("appending rows in a commit that lost its race"):
                landed = made.append_behind()
            found = len(as_values(self._read(made, made.read)))
            if found != (2 + landed) * once:
                self.fault(
                    "rebase_files",
                    f"{found} rows are read after a commit that lost its race, expected {(2 + landed) * once}",
                )
            self._check_fields(made)
            self._check_rebased(made)
            if not any(isinstance(rule, RemoveRows) for _, rule in self.rules_of(made)):
                continue
            made = self.make(example, tmp_path / f"{i} dropped")
            read = functools.partial(made.read, metadata=[c.name for c in made.metadata_columns()])
            left = as_values(self._read(made, read))
            with self.step("dropping rows of one file in two commits at once"):
                dropped = as_values(made.remove_two_rows_at_once())
            left = [row for row in left if row not in dropped]
            found_rows = as_values(self._read(made, read))
            if found_rows != left:
                self.fault(
                    "rebase_files", f"rows are others after a commit that lost its race: {found_rows}, expected {left}"
                )
            self._check_fields(made)

    def test_drop_keeps_rows_or_names_what_uses_the_feature(self, tmp_path: Path) -> None:
        options = DropFeatureOptions(truncate_history=bool(self.feature.protects_history))
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make(example, tmp_path / str(i))
            before = made.snapshot
            for change in ("enable", "drop"):
                for step in self.alone().collect("feature_steps", table=before.state, change=change):
                    if not isinstance(step, get_args(FeatureStep)) or step.feature != self.name:
                        self.fault("feature_steps", f"it returned {step!r}, expected a step signed by {self.name!r}")
            rows = as_values(self._read(made, made.read))
            try:
                drop_feature(before, self.name, options)
            except (UnsupportedOperationError, FeatureRequirementError):
                is_dropped = False
            except DeltaError as e:
                self.fault("feature_steps", f"its steps can't be run: {e}; expected FeatureUse if the table uses it")
            else:
                is_dropped = True
            if is_dropped == (self.name in made.snapshot.state.features):
                self.fault("feature_steps", f"the table {'still' if is_dropped else 'no longer'} has the feature")
            found = as_values(self._read(made, made.read))
            if found != rows:
                self.fault(
                    "feature_steps",
                    f"rows are others after the drop: {found}, expected {rows}. Return FeatureUse for what users must "
                    "change first, or steps that keep the rows",
                )

    def test_checks_of_writes_reject_rows(self, tmp_path: Path) -> None:
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make(example, tmp_path / str(i))
            for hook, rule in self.rules_of(made):
                if not isinstance(rule, RowCheck):
                    continue
                if rule.name not in example.breaking:
                    self.fault(
                        hook,
                        f"RowCheck {rule.name!r} was never seen to reject rows: pass tables() rows that break it, as "
                        f"breaking={{{rule.name!r}: rows}}",
                    )
                try:
                    made.append(example.breaking[rule.name])
                except ConstraintViolationError as e:
                    assert rule.name in str(e), f"Hook {hook} of plugin {self.name!r}: {e}"
                else:
                    self.fault(
                        hook,
                        f"RowCheck {rule.name!r} accepts rows that break it: {example.breaking[rule.name].to_pylist()}",
                    )

    def test_checks_of_reads_fail_on_rows_that_were_changed(self, tmp_path: Path) -> None:
        for i, example in enumerate([] if self.not_written else self.tables()):
            names = {
                r.name for _, r in self.rules_of(self.make(example, tmp_path / str(i))) if isinstance(r, ReadCheck)
            }
            for column in example.rows.column_names if names else ():
                made = self.make(example, tmp_path / f"{i} {column}")
                if list(tamper(made.folder, column)):
                    names -= self._failing_checks(made)
            if names:
                self.fault(
                    "read_rules",
                    f"ReadCheck {min(names)!r} never fails, although the values of each column were "
                    "changed in the data files",
                )

    def _failing_checks(self, made: MadeTable) -> set[str]:
        try:
            made.read()
        except DataFileError as e:
            return {r.name for _, r in self.rules_of(made) if isinstance(r, ReadCheck) and r.name in str(e)}
        return set()

    def test_change_feed_has_the_rows_of_reads(self, tmp_path: Path) -> None:
        recorded = bool(self.not_written or self.without_changes or "changeDataFeed" in self.feature.excludes)
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make_with_changes(example, tmp_path / str(i))
            if made is None:
                continue
            recorded = True
            self._check_feed(made, made.changes, "after rows were written")
            if any(isinstance(rule, RemoveRows) for _, rule in self.rules_of(made)):
                with self.step("dropping a row (RemoveRows.encode of hook write_rules)"):
                    made.remove_row(0)
                self._check_feed(made, made.changes, "after a row was dropped")
            with self.step("replacing all rows"):
                made.overwrite()
            self._check_feed(made, made.changes, "after all rows were replaced")
            with self.step("replacing some rows, which moves the others"):
                made.move()
            self._check_feed(made, made.changes, "after some rows were replaced")
        if self.tables() and not recorded:
            pytest.fail(
                f"Plugin {self.name!r}: no table of tables() can record its changes (delta.enableChangeDataFeed). "
                "Support that, or set without_changes to the reason.",
                pytrace=False,
            )

    def make_with_changes(self, example: ExampleTable, folder: Path) -> MadeTable | None:
        """Make a table that records its changes, and write its rows; None if the table can't have both features."""
        recording = replace(example, properties={**example.properties, "delta.enableChangeDataFeed": "true"})
        try:
            made = MadeTable(recording, self.name, self.registry, folder)
        except (UnsupportedOperationError, FeatureRequirementError, UnsupportedFeatureError):
            return None
        with self.step("writing rows"):
            made.append()
        return made

    def _check_feed(self, made: MadeTable, changes: Callable[[], pa.Table], when: str) -> None:
        """Check that the inserts of the change feed less its deletes are the rows that reads return."""
        with self.step("reading the change feed"):
            feed = changes()
        net: Counter[str] = Counter()
        for kinds, sign in ((("insert", "update_postimage"), 1), (("delete", "update_preimage"), -1)):
            of_kind = feed.filter(pc.is_in(feed["_change_type"], pa.array(kinds)))
            for row in as_values(of_kind.select(made.snapshot.schema.names)):
                net[row] += sign
        rows = Counter(as_values(self._read(made, made.read)))
        more = sorted(r for r in {*net, *rows} if net[r] > rows[r])
        less = sorted(r for r in {*net, *rows} if net[r] < rows[r])
        if more or less:
            self.fault(
                "read_rules",
                f"the change feed returns other rows than reads {when}: rows that reads do not return {more}, rows "
                f"that it lacks or deletes {less}. RowFilter and RowSelector are needed for the purpose 'changes' too",
            )

    def test_rows_are_the_same_for_every_request(self, tmp_path: Path) -> None:
        for i, example in enumerate([] if self.not_written else self.tables()):
            made = self.make(example, tmp_path / str(i))
            for rows_dropped in (False, True):
                if rows_dropped:
                    if not any(isinstance(rule, RemoveRows) for _, rule in self.rules_of(made)):
                        break
                    with self.step("dropping a row (RemoveRows.encode of hook write_rules)"):
                        made.remove_row(0)
                self._check_requests(made)

    def _check_requests(self, made: MadeTable) -> None:
        """Check that scans of some columns, with metadata columns or a predicate return the rows of the whole scan."""
        whole = self._read(made, made.read)
        metadata = [c.name for c in made.metadata_columns()]
        requests: list[dict[str, Any]] = [{"columns": [name]} for name in whole.column_names]
        requests += [{"columns": [], "metadata": [name]} for name in metadata]
        requests += [{"predicate": made.example.select}]
        for request in requests:
            found = self._read(made, functools.partial(made.read, **request))
            expected = whole
            if "predicate" in request:
                other = self._read(
                    made, functools.partial(made.read, predicate=f"NOT coalesce({made.example.select}, false)")
                )
                found = pa.concat_tables([found, other])
            elif request["columns"]:
                expected = whole.select(request["columns"])
            if found.num_rows != whole.num_rows or (
                not request.get("metadata") and as_values(found) != as_values(expected)
            ):
                shown = ", ".join(f"{k}={v!r}" for k, v in request.items())
                self.fault(
                    "read_rules",
                    f"a scan with {shown} returns other rows than a scan of the whole table: {as_values(found)}, "
                    f"expected {as_values(expected)}",
                )

    def calls(self) -> list[str]:
        """Return calls of the plugin's functions over columns of `tables`, in Spark's SQL.

        Calls in rules are found without it, and functions of one to three numbers, texts or times. Both engines
        compute them for edge cases of the columns' types.
        """
        return []

    def test_templates_have_the_arguments_of_their_calls(self) -> None:
        own, functions = self._own_functions()
        for call in self._calls_of_rules([n for n, f in own.items() if f.spark], functions):
            count, template = len(call.expression.args), own[call.function].spark
            names = [f"a{i}" for i in range(count)]
            try:
                template.format(*names, arguments=", ".join(names))
            except (IndexError, KeyError, ValueError) as e:
                self.fault(
                    "functions",
                    f"Function.spark of {call.function!r} is {template!r}, which does not fit a call of {count} "
                    f"argument{'s' * (count != 1)}: {type(e).__name__}: {e}; expected {{0}}, {{1}} or {{arguments}}",
                )

    def test_functions_return_the_same_on_spark(self) -> None:
        own, functions = self._own_functions()
        if not own:
            return
        expressions = pytest.importorskip(
            "delta_core.engines.spark.expressions", reason="pyspark is not installed", exc_type=ImportError
        )
        evaluator: Evaluator = open_context("memory://contract", plugins=self.registry).log.engine.evaluator
        compute = functools.partial(_compute_on_spark, self.spark(), expressions.to_sql, evaluator, functions)
        examples = self._example_values()
        called = self._calls_of_rules(own, functions)
        for name in own:
            known = [c for c in called if c.function == name]
            calls = known or possible_calls(own[name], evaluator, functions, examples)
            faults = [self._difference(c, c.on_arrow(evaluator, functions), compute, examples) for c in calls]
            # a function that no rule calls may take more types on one engine
            found = [f for f in faults if f and (known or not f[0])]
            if not calls or (not known and all(faults) and not found):
                reason = f"{faults[0][1]}; " if faults and faults[0] else ""
                self.fault(
                    "functions",
                    f"{reason}function {name!r} could not be compared with Spark: return a call of it from calls(), or "
                    "name it in uncompared",
                )
            if found:
                self.fault("functions", found[0][1])

    def _own_functions(self) -> tuple[dict[str, Function], Mapping[str, Function]]:
        """Return the plugin's functions that are compared, and all that its tables have."""
        features = frozenset({self.feature.name})
        own = {f.name.lower(): f for f in self.alone().collect("functions", features=features)}
        return {n: f for n, f in own.items() if n not in self.uncompared}, own

    def _example_values(self) -> dict[pa.DataType, list[Any]]:
        """Return the values of the examples' columns, by type."""
        found: dict[pa.DataType, list[Any]] = {}
        for example in self.tables():
            for column in example.rows.columns:
                found.setdefault(column.type, []).extend(column.unique().to_pylist()[:20])
        return found

    def _calls_of_rules(self, own: Iterable[str], functions: Mapping[str, Function]) -> list[FunctionCall]:
        found: list[FunctionCall] = []
        with tempfile.TemporaryDirectory() as folder:
            for i, example in enumerate([] if self.not_written else self.tables()):
                with self.step("making the table"):
                    made = MadeTable(example, self.name, self.registry, Path(folder) / str(i))
                parts = ("expression", "encode", "decode")
                rules = [getattr(r, part, None) for _, r in self.rules_of(made) for part in parts]
                used = [e for e in rules if isinstance(e, get_args(Expression))]
                used += [to_expression(sql, made.snapshot.schema, functions) for sql in self.calls()]
                found += calls_in(used, made.snapshot.schema, {**made.snapshot.plugins.functions, **functions}, own)
        return list(dict.fromkeys(found))

    def _difference(
        self, call: FunctionCall, arrow: Compute, spark: Compute, examples: Mapping[pa.DataType, list[Any]]
    ) -> tuple[bool, str] | None:
        """Return whether one engine fails for a call, and a message of the first difference; None without one."""
        for extremes in (False, True):
            rows = call.arguments(examples, extremes=extremes)
            found = first_difference(call, rows, arrow, spark, failures=not extremes)
            if found is not None:
                arguments, here, there = found
                is_failure = isinstance(here, Exception) or isinstance(there, Exception)
                shown = [f"{type(v).__name__}: {v}" if isinstance(v, Exception) else repr(v) for v in (here, there)]
                return is_failure, (
                    f"function {call.function!r} returns {shown[0]} on Arrow and {shown[1]} on Spark for "
                    f"{list(arguments.values())}: Function.arrays and Function.spark must be the same function"
                )
        return None

    def test_rows_are_the_same_on_spark(self, tmp_path: Path) -> None:
        examples = [] if self.not_written else self.tables()
        if not examples:
            return
        delta = pytest.importorskip("delta_core.spark", reason="pyspark is not installed", exc_type=ImportError)
        session = self.spark()
        for i, example in enumerate(examples):
            made = self.make(example, tmp_path / str(i))
            for moved in (False, True):
                if moved:
                    with self.step("replacing some rows with Spark"):
                        made.move_on_spark(delta, session)
                    self._check_rows(made, "after Spark replaced rows and moved others")
                with self.step("reading with Spark"):
                    names = tuple(c.name for c in made.metadata_columns())
                    found = made.read_on_spark(delta, session, metadata=names)
                here = self._read(made, functools.partial(made.read, metadata=names))
                if as_values(found) != as_values(here):
                    self.fault(
                        "read_rules",
                        f"Spark returns other rows than Arrow: {as_values(found)}, expected {as_values(here)}",
                    )
            recording = self.make_with_changes(example, tmp_path / f"{i} changes")
            if recording is not None:
                with self.step("replacing some rows with Spark"):
                    recording.move_on_spark(delta, session)
                changes = functools.partial(recording.changes_on_spark, delta, session)
                self._check_feed(recording, changes, "on Spark")

    def spark(self) -> Any:
        """Return a Spark session, a local one of two cores unless overridden; skips without a Java runtime."""
        from pyspark.sql import SparkSession

        if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
            pytest.skip("Spark needs a Java runtime")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        return (
            builder.config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )

    def _read(self, made: MadeTable, read: Callable[[], Any]) -> Any:
        with self.step("reading rows"):
            return read()

    def _check_rows(self, made: MadeTable, when: str) -> None:
        found, expected = as_values(self._read(made, made.read)), as_values(made.example.result)
        if found != expected:
            hooks = sorted({hook for hook, _ in self.rules_of(made)} & {"read_rules", "write_rules"}) or ["read_rules"]
            self.fault(" and ".join(hooks), f"reads return other rows {when}: {found}, expected {expected}")

    def _check_metadata_columns(self, made: MadeTable) -> None:
        for column in made.metadata_columns():
            with self.step(f"reading the metadata column {column.name!r} of hook read_rules"):
                found = made.read(columns=[], metadata=[column.name]).column(0).type
            expected = column.type.to_arrow(made.snapshot.state.types)
            if found != expected:
                self.fault(
                    "read_rules", f"MetadataColumn {column.name!r} has values of type {found}; expected {expected}"
                )

    def _check_fields(self, made: MadeTable) -> None:
        """Check that the fields and actions that commits add are those that FEATURE declares."""
        declared = {f.name: f for f in self.feature.fields if f.action == "add"}
        snapshot = made.snapshot
        attempt = attempt_view(snapshot.state, self.alone())
        for rule in snapshot.plugins.collect("commit_rules", attempt=attempt):
            if not isinstance(rule, ActionColumn) or rule.feature != self.name or rule.action != "add":
                continue
            self._check_column("commit_rules", rule)
        with self.step("reading its fields of add"):
            if declared:
                snapshot.files.columns(list(declared))

    def _check_column(self, hook: str, rule: ActionColumn) -> None:
        """Check that a field that a hook sets is declared, and has values of its type."""
        declared = {f.name: f for f in self.feature.fields if f.action == rule.action}
        known = FILE_COLUMNS.get(rule.field)
        if rule.field not in declared and known is None:
            self.fault(
                hook,
                f"ActionColumn sets {rule.action}.{rule.field}, which FEATURE.fields does not declare."
                f"{did_you_mean(rule.field, declared)}",
            )
        expected = declared[rule.field].type if rule.field in declared else known
        if rule.values.type != expected:
            self.fault(
                hook,
                f"ActionColumn sets {rule.action}.{rule.field} to values of {rule.values.type}; expected {expected}",
            )

    def _check_rebased(self, made: MadeTable) -> None:
        """Check the fields that the hook sets if a commit added the same files again."""
        snapshot = made.snapshot
        own = [f.name for f in self.feature.fields if f.action == "add"]
        adds = snapshot.files.columns(list(dict.fromkeys([*(n for n in ADDED_FILE.names if n in FILE_COLUMNS), *own])))
        arguments = {"table": snapshot.state, "adds": adds, "removes": REMOVED_FILE.empty_table(), "winner": adds}
        for rule in self.alone().collect("rebase_files", **arguments):
            if rule.feature != self.name:
                self.fault("rebase_files", f"ActionColumn is signed by {rule.feature!r}; expected {self.name!r}")
            self._check_column("rebase_files", rule)

    def _check_carried(self, made: MadeTable, before: dict[str, Any], after: dict[str, Any]) -> None:
        for name, values in before.items():
            if after.get(name) != values:
                self.fault(
                    "write_rules",
                    f"HiddenColumn loses the values of {name!r} of rows that move to another file: "
                    f"{after.get(name)}, expected {values}",
                )


def _compute_on_spark(
    session: Any,
    to_sql: Callable[..., str],
    evaluator: Evaluator,
    functions: Mapping[str, Function],
    expression: Expression,
    rows: pa.Table,
) -> pa.Array:
    """Compute an expression over the columns of a table with Spark, as its result's type on Arrow."""
    types: Any = {Column((f.name,)): f.type for f in rows.schema}
    compiled = evaluator.compile(expression, types, functions)
    bound = bind_typed(expression, Schema.from_arrow(rows.schema), functions).expression
    frame = session.createDataFrame(rows).selectExpr(f"{to_sql(bound, lambda leaf: leaf, functions)} AS found")
    found: pa.Array = frame.toArrow().column("found").combine_chunks()
    if not _is_same_on_spark(found.type, compiled.type):
        raise TypeError(f"values of {found.type}; expected {compiled.type}")
    return found.cast(compiled.type)


def _is_same_on_spark(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether Spark's type of a column is that of Arrow; layouts and time zones may differ."""
    if pa.types.is_integer(expected) or pa.types.is_floating(expected) or pa.types.is_boolean(expected):
        return bool(found == expected)
    return True


class _ReadKeys:
    """The properties that hooks looked at: those requested by name, each with the first hook, and all."""

    def __init__(self) -> None:
        self.hook = ""
        self.by_name: dict[str, str] = {}
        self.all: set[str] = set()

    def note(self, key: object) -> None:
        self.by_name.setdefault(str(key), self.hook)
        self.all.add(str(key))


class _Recording(dict[str, str]):
    """Properties that note which of them were looked at."""

    def __init__(self, values: Mapping[str, str], read: _ReadKeys) -> None:
        super().__init__(values)
        self._read = read

    def __getitem__(self, key: str) -> str:
        self._read.note(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._read.note(key)
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._read.note(key)
        return super().get(key, default)

    def items(self) -> Any:
        self._read.all.update(self)
        return super().items()

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self._read.all.add(key)
            yield key
