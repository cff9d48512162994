"""The base of the parts of `FeatureContract`: the plugin, its answers, and tables that use its feature."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core.errors import CorruptTableError
from delta_core.kernel.plugins.definition import active_features
from delta_core.kernel.plugins.features import SupportedFeatures, TableFeature
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.rules import CommitSummary
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Metadata, Protocol
from delta_core.schema.fields import Schema
from delta_core.testing.feature_tables import ExampleTable, MadeTable
from delta_core.testing.hook_costs import attempt_view

__all__ = ["ContractBase", "table_state"]

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


class ContractBase:
    """A feature's plugin, and the tables that its tests use; `FeatureContract` describes the attributes."""

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

    def made_tables(self, folder: Path) -> Iterator[MadeTable]:
        """Make each table of `tables` in a folder of its own, one after the other; none if none can be written."""
        for i, example in enumerate([] if self.not_written else self.tables()):
            yield self.make(example, folder / str(i))

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
