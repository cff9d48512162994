"""What goes wrong in a hook, or in a function of a rule, is reported with plugin and hook, and with its cause."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.api import (
    VECTOR_LOCATION,
    Call,
    Column,
    Function,
    HiddenColumn,
    Literal,
    MetadataColumn,
    PrimitiveType,
    ReadCheck,
    RowCheck,
    RowFilter,
    RowSelector,
    hookimpl,
)
from delta_core.errors import ColumnNotFoundError, HookContractError, PluginError
from delta_core.kernel.plugins import hookspecs
from delta_core.kernel.plugins.hookspecs import RESULTS
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.snapshot import open_snapshot
from tests.hooks.external_plugins import ExternalPlugin, plugin_set, registry, table_of

BOOLEAN, LONG, STRING = (PrimitiveType(t) for t in ("boolean", "long", "string"))


def _fail(*arguments: Any) -> Any:
    raise KeyError("gone")


def _fail_late(*arguments: Any) -> Any:
    yield from ()
    raise KeyError("gone")


def _named(hook: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook of no arguments."""
    return lambda: body()


@pytest.mark.parametrize("hook", RESULTS)
def test_exception_is_reported_with_plugin_hook_and_cause(hook: str) -> None:
    plugins = plugin_set(ExternalPlugin("probe", **{hook: _named(hook, _fail)}))
    with pytest.raises(PluginError, match=f"Hook {hook} of plugin 'probe' failed with KeyError: 'gone'") as caught:
        _call(plugins, hook)
    assert isinstance(caught.value.__cause__, KeyError)
    assert (caught.value.plugin, caught.value.hook) == ("probe", hook)
    assert pickle.loads(pickle.dumps(caught.value)).plugin == "probe"


def _call(plugins: PluginSet, hook: str) -> Any:
    """Call a hook as the core does, with None for each argument."""
    arguments: dict[str, Any] = dict.fromkeys(inspect.signature(getattr(hookspecs, hook)).parameters)
    kind = RESULTS[hook]
    if kind == "fold":
        arguments.pop("metadata")
        return plugins.fold(hook, "metadata", None, **arguments)
    return {"list": plugins.collect, "single": plugins.single, "check": plugins.check}[kind](hook, **arguments)


@pytest.mark.parametrize("hook", [h for h, kind in RESULTS.items() if kind == "list"])
def test_exception_of_a_generator_is_reported_too(hook: str) -> None:
    plugins = plugin_set(ExternalPlugin("probe", **{hook: _named(hook, _fail_late)}))
    with pytest.raises(PluginError, match=f"Hook {hook} of plugin 'probe' failed with KeyError"):
        _call(plugins, hook)


def test_error_of_this_library_passes_as_it_is(tmp_path: Path) -> None:
    def refuse(table: Any) -> None:
        raise ColumnNotFoundError("no such column")

    with pytest.raises(ColumnNotFoundError, match=r"^no such column$"):
        open_snapshot(table_of(tmp_path).uri, plugins=registry(check_read=refuse))


@pytest.mark.parametrize("hook", RESULTS)
def test_answer_of_a_wrong_type_is_reported(hook: str) -> None:
    answer = [7.5] if RESULTS[hook] == "list" else 7.5
    plugins = plugin_set(ExternalPlugin("probe", **{hook: _named(hook, lambda: answer)}))
    with pytest.raises(HookContractError, match=rf"Hook {hook} of plugin 'probe' returned 7\.5.*; expected"):
        _call(plugins, hook)


@pytest.mark.parametrize("hook", [h for h, kind in RESULTS.items() if kind in ("list", "fold")])
def test_forgotten_return_is_reported(hook: str) -> None:
    plugins = plugin_set(ExternalPlugin("probe", **{hook: _named(hook, lambda: None)}))
    with pytest.raises(HookContractError, match=f"Hook {hook} of plugin 'probe' returned None"):
        _call(plugins, hook)


def test_argument_that_a_hook_lacks_is_reported_when_the_table_is_opened(tmp_path: Path) -> None:
    def read_rules(tabel: Any) -> list[Any]:
        return []

    made = table_of(tmp_path)
    with pytest.raises(
        HookContractError, match=r"takes the argument 'tabel'; expected some of: table, request. Did you mean"
    ):
        open_snapshot(made.uri, plugins=registry(read_rules=read_rules))


def test_hook_that_does_not_exist_is_reported() -> None:
    with pytest.raises(
        HookContractError, match=r"Hook read_rule of plugin 'probe' does not exist\. Did you mean 'read_rules'"
    ):
        plugin_set(ExternalPlugin("probe", read_rule=lambda: [1]))


def test_methods_and_arguments_with_defaults_are_hooks_too() -> None:
    class Plugin(ExternalPlugin):
        @hookimpl
        def required_features(self, metadata: Any, also: str = "more") -> list[str]:
            return [also]

    assert plugin_set(Plugin("probe")).collect("required_features", metadata=None) == ["more"]


# --- rules ---------------------------------------------------------------------------------


def _located(files: pa.Table) -> pa.Table:
    rows = [{"file": 0, "path": None, "offset": None, "length": None, "data": b"x", "cardinality": 1}]
    return pa.Table.from_pylist(rows, VECTOR_LOCATION)


def _no_rows(data: Any, cardinality: int | None, where: str) -> Any:
    return [0]


@pytest.mark.parametrize(
    ("rule", "error", "said"),
    [
        (RowSelector("probe", (), _fail, _fail), PluginError,
         "RowSelector.locate of hook read_rules of plugin 'probe' failed"),
        (RowSelector("probe", (), _located, _fail), PluginError,
         "RowSelector.decode of hook read_rules of plugin 'probe' fa"),
        (RowSelector("probe", (), _located, _no_rows), HookContractError,
         "decode of hook .* of plugin 'probe' returned .0."),
        (RowFilter("probe", Column(("nope",))), ColumnNotFoundError,
         "RowFilter of hook read_rules of plugin 'probe' does not"),
        (RowFilter("probe", Column(("id",))), HookContractError,
         "plugin 'probe' has an expression of type BIGINT; expected BOO"),
        (ReadCheck("probe", "c", Column(("id",)), ""), HookContractError,
         "ReadCheck 'c' of hook read_rules of plugin 'probe'"),
        (MetadataColumn("probe", "_m", STRING, Column(("id",))), HookContractError,
         "MetadataColumn '_m' of hook .*'probe' has"),
        (
            MetadataColumn("probe", "_m", LONG, Call("mine", (Column(("id",)),))), PluginError,
            "Function 'mine' of hook functions of plugin 'probe' failed with KeyError",
        ),
    ],
)  # fmt: skip
def test_read_rule_that_fails_is_reported(tmp_path: Path, rule: Any, error: type[Exception], said: str) -> None:
    mine = Function("probe", "mine", lambda types: pa.int64(), _fail)
    plugins = registry(read_rules=lambda: [rule], functions=lambda: [mine])
    made = table_of(tmp_path).append([{"id": 1, "kind": "a"}])
    with pytest.raises(error, match=said):
        open_snapshot(made.uri, plugins=plugins).scan(
            metadata=["_m"] if isinstance(rule, MetadataColumn) else []
        ).to_table()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            RowCheck("probe", "c", Column(("id",))),
            "RowCheck 'c' of hook write_rules of plugin 'probe' has an expression of type",
        ),
        (
            RowCheck("probe", "c", Column(("nope",))),
            "RowCheck 'c' of hook write_rules of plugin 'probe' does not fit the table",
        ),
        (
            HiddenColumn("probe", "_h", LONG, Call("nope", (Literal(1, LONG),)), on_rewrite="recompute"),
            "HiddenColumn '_h' of hook write_rules of plugin 'probe' does not fit the table",
        ),
    ],
)
def test_write_rule_that_fails_is_reported(tmp_path: Path, rule: Any, said: str) -> None:
    table = DeltaTable(table_of(tmp_path).uri, plugins=registry(write_rules=lambda: [rule]))
    with pytest.raises((HookContractError, ColumnNotFoundError, ValueError), match=said):
        write_deltalake(table, pa.table({"id": [1], "kind": ["a"]}), mode="append")
