"""The part of `FeatureContract` about what a plugin declares, and about hooks that are called without files."""

from __future__ import annotations

import contextlib
import inspect
import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from delta_core.errors import DeltaError, did_you_mean
from delta_core.expressions import is_builtin
from delta_core.expressions.ast import FileConstant, leaves
from delta_core.kernel.commit.upgrade import upgrade_protocol
from delta_core.kernel.log.checksum import OWN_FIELDS
from delta_core.kernel.plugins.features import API_VERSION, SupportedFeatures
from delta_core.kernel.plugins.hook_calls import hook_name, marked_hooks
from delta_core.kernel.plugins.hookspecs import RESULTS
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import ChecksumField, RowFilter, RowSelector
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import FILE_COLUMNS, Protocol
from delta_core.runtime.lazy import load_object
from delta_core.testing.contract_base import ContractBase, table_state
from delta_core.testing.hook_costs import attempt_view, call_hook, hook_arguments

__all__ = ["DeclarationContract"]

#: Columns that the file table of a change feed has beside those of the protocol.
_CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")

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


class DeclarationContract(ContractBase):
    """Tests of FEATURE, of the hooks' answers, of metadata, and of tables without the feature."""

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
        for field in ("flags", "reserved", "log_properties"):
            further = sorted(set(getattr(feature, field)) - set(feature.properties))
            assert not further, (
                f"{plugin}: FEATURE.{field} names {further[0]!r}, which FEATURE.properties does not declare"
            )
        taken = [f"{f.action}.{f.name}" for f in feature.fields if f.name in FILE_COLUMNS]
        assert not taken, f"{plugin}: FEATURE.fields has {taken[0]}, a field of the protocol; choose another name"
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
        for made in self.made_tables(tmp_path):
            at_work |= {(hook, type(rule)) for hook, rule in self.rules_of(made)}
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

    def test_rules_read_columns_of_files_that_exist(self) -> None:
        known = {*FILE_COLUMNS, *_CHANGE_COLUMNS, *(f.name for f in self.feature.fields)}
        for other in filter(None, map(self.registry.load, (*self.feature.requires, *self.feature.after))):
            known.update(f.name for f in other.FEATURE.fields)
        for hook, rule in (*self.answers(), *self.written()):
            expression = getattr(rule, "expression", None)
            for leaf in () if expression is None else leaves(expression):
                if isinstance(leaf, FileConstant) and leaf.name not in known:
                    reads = f"{type(rule).__name__} reads {leaf.name!r} of the file table"
                    advice = f"declare it in FEATURE.fields.{did_you_mean(leaf.name, known)}"
                    self.fault(hook, f"{reads}, which has no such column, so that it is always null: {advice}")

    def test_functions_have_names_of_their_own(self) -> None:
        for state in self.states():
            for function in self.alone().collect("functions", features=state.features):
                name = function.name
                if is_builtin(name.lower()) or name != name.lower():
                    self.fault(
                        "functions",
                        f"Function {name!r} is never called, expected a lower-case name that is not built in",
                    )

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
