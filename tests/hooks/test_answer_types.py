"""A value of a wrong type that a hook returns is rejected by plugin and hook, before it is committed or used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable, write_deltalake
from delta_core.api import (
    VECTOR_LOCATION,
    ActionColumn,
    ActionField,
    ActionKind,
    Call,
    Column,
    CommitInfoField,
    EncodedRows,
    ExtraAction,
    FileReference,
    FillColumn,
    Function,
    HiddenColumn,
    MetadataColumn,
    PhysicalColumn,
    PrimitiveType,
    RemoveRows,
    RowSelector,
    Transaction,
)
from delta_core.errors import CommitStateUnknownError, HookContractError, InvalidArgumentError, PluginError
from delta_core.kernel.plugins.answers import find_json_misfit, misfit_of_action
from delta_core.kernel.plugins.references import named_files
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.snapshot import open_snapshot
from delta_core.kernels.row_set import RowSet
from delta_core.runtime.plugin_errors import plugin_name
from tests.hooks.external_plugins import ExternalPlugin, table_of

LONG: Any = PrimitiveType("long")
ARROW: Any = pa.int64()
ID = Column(("id",))
NOTE = ActionKind("probeNote", pa.struct([("who", pa.string()), ("rows", pa.int64())]), key=("who",))
MARK = ActionField("add", "mark", pa.string())
ROWS = pa.table({"id": pa.array([1], pa.int64()), "kind": ["a"]})


def registry(feature: dict[str, Any] | None = None, **hooks: Callable[..., Any]) -> PluginRegistry:
    """Return what is installed if only ``probe`` is, with a field and a kind of action."""
    plugin = ExternalPlugin("probe", **hooks)
    plugin.FEATURE = replace(plugin.FEATURE, **{"fields": (MARK,), "actions": (NOTE,), **(feature or {})})
    return PluginRegistry([plugin], installed=False)


def _column(values: Any, field: str = "mark", action: str = "add") -> list[ActionColumn]:
    return [ActionColumn("probe", action, field, values)]


def _note(value: Any) -> list[ExtraAction]:
    return [ExtraAction("probe", "probeNote", value)]


def _fill(**changes: Any) -> list[FillColumn]:
    return [replace(FillColumn("probe", ("kind",), ID), **changes)]


#: The hook, what it returns, and what the message contains.
WRONG: list[tuple[str, Callable[[], Any], str]] = [
    ("commit_rules", lambda: _column(["x"]), r"ActionColumn.values=\['x'\]; expected pyarrow.Array or pyarrow.Chunk"),
    ("commit_rules", lambda: _column(pa.array([1])), "has values of int64 for add.mark; expected string"),
    ("commit_rules", lambda: _column(pa.array(["x", "y"])), "has 2 values for add.mark; expected 1"),
    ("commit_rules", lambda: _column(pa.array(["x"]), "size"), "has values of string for add.size; expected int64"),
    ("commit_rules", lambda: _column(pa.array(["x"]), "marc"), "does not declare. Did you mean 'mark'"),
    ("commit_rules", lambda: _column(pa.array(["x"]), action="ad"), "ActionColumn.action='ad'; expected 'add' or"),
    ("commit_rules", lambda: _note("text"), "ExtraAction.value='text'; expected a mapping of str to any value"),
    ("commit_rules", lambda: _note({"who": "me", "rows": "7"}), "probeNote.rows='7'; expected a value of int64"),
    ("commit_rules", lambda: _note({"who": "me", "rows": True}), "probeNote.rows=True; expected a value of int64"),
    ("commit_rules", lambda: _note({"who": "me", "row": 7}), "probeNote.row=7; expected fields of who, rows alone"),
    ("commit_rules", lambda: _note({"rows": 7}), "probeNote.who=null; expected a value: it identifies the action"),
    ("commit_rules", lambda: [CommitInfoField("probe", "seen", {1, 2})], "commitInfo.seen={1, 2}; expected a JSON"),
    ("commit_rules", lambda: [CommitInfoField("probe", "at", "now", first=True)], "commitInfo.at='now'; expected int"),
    (
        "commit_rules",
        lambda: [CommitInfoField("other", "seen", 1)],
        "CommitInfoField.feature='other'; expected 'probe'",
    ),
    ("write_rules", lambda: _fill(when="missing"), "FillColumn.when='missing'; expected 'absent', 'null' or 'always'"),
    ("write_rules", lambda: _fill(column="kind"), "FillColumn.column='kind'; expected a tuple of str"),
    ("write_rules", lambda: _fill(report_bounds=1), "FillColumn.report_bounds=1; expected bool"),
    ("write_rules", lambda: [HiddenColumn("probe", "_h", ARROW, ID)], r"HiddenColumn.type=DataType\(int64\); expected"),
    (
        "write_rules",
        lambda: _fill(expression=Call("+", (PhysicalColumn("a", ARROW), ID))),
        r"PhysicalColumn.type=DataType\(int64\); expected PrimitiveType",
    ),
    (
        "write_rules",
        lambda: [HiddenColumn("probe", "_h", LONG, ID, "move")],  # type: ignore[arg-type]
        "HiddenColumn.on_rewrite='move'; expected 'carry' or 'recompute'",
    ),
    ("required_features", lambda: [7], "returned 7, which is no rule of it; expected str"),
    ("committer", lambda: object(), "expected an object with the method commit"),
    ("prepare_metadata", lambda: {"id": "a"}, "returned {'id': 'a'}; expected Metadata"),
]


@pytest.mark.parametrize(("hook", "answer", "said"), WRONG)
def test_wrong_value_is_not_committed(tmp_path: Path, hook: str, answer: Callable[[], Any], said: str) -> None:
    made = table_of(tmp_path)
    table = DeltaTable(made.uri, plugins=registry(**{hook: lambda: answer()}))

    def change() -> None:
        if hook in ("required_features", "prepare_metadata"):
            table.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
        else:
            write_deltalake(table, ROWS, mode="append")

    with pytest.raises(HookContractError, match=f"[Hh]ook {hook} of plugin 'probe'.*{said}") as caught:
        change()
    assert (caught.value.plugin, caught.value.hook) == ("probe", hook)
    assert DeltaTable(made.uri, plugins=registry()).to_pyarrow_table().num_rows == 0


def test_right_values_are_committed_and_survive_a_checkpoint(tmp_path: Path) -> None:
    def commit_rules(attempt: Any) -> list[Any]:
        values = pa.array(["x"] * attempt.adds.num_rows, pa.string())
        return [*_column(values), *_note({"who": "me", "rows": 7}), *_note({"who": "you"})]

    made = table_of(tmp_path)
    table = DeltaTable(made.uri, plugins=registry(commit_rules=commit_rules))
    write_deltalake(table, ROWS, mode="append")
    table.create_checkpoint()
    found = open_snapshot(made.uri, plugins=registry()).custom_actions("probeNote")
    assert sorted((a["who"], a.get("rows")) for a in found) == [("me", 7), ("you", None)]


def test_wrong_action_of_a_transaction_is_not_committed(tmp_path: Path) -> None:
    snapshot = open_snapshot(table_of(tmp_path).uri, plugins=registry())
    transaction = Transaction(snapshot.context, snapshot, "NOTE")
    transaction.add_action("probeNote", {"who": 7})
    with pytest.raises(
        InvalidArgumentError, match=r"action probeNote with probeNote.who=7; expected a value of string"
    ):
        transaction.commit()
    assert open_snapshot(snapshot.context.log.uri, plugins=registry()).version == snapshot.version


class _Forgetful:
    """A committer that does not report what happened."""

    def commit(self, proposal: Any) -> Any:
        return None


def test_committer_without_an_outcome_leaves_the_state_of_the_commit_unknown(tmp_path: Path) -> None:
    made = table_of(tmp_path)
    plugins = registry(committer=lambda table: _Forgetful())
    with pytest.raises(CommitStateUnknownError, match="_Forgetful returned None for a commit of version 1; expected"):
        write_deltalake(DeltaTable(made.uri, plugins=plugins), ROWS, mode="append")


# --- reading -------------------------------------------------------------------------------


def test_metadata_column_of_an_arrow_type_is_reported(tmp_path: Path) -> None:
    plugins = registry(read_rules=lambda: [MetadataColumn("probe", "_m", ARROW, ID)])
    with pytest.raises(HookContractError, match=r"MetadataColumn.type=DataType\(int64\); expected PrimitiveType"):
        open_snapshot(table_of(tmp_path).append(ROWS).uri, plugins=plugins).scan().to_table()


@pytest.mark.parametrize(
    ("result", "arrays", "said"),
    [
        (lambda types: LONG, lambda values: values, "Function.result of 'probe_same'.*expected a pyarrow.DataType"),
        (lambda types: types[0], lambda values: values.to_pylist(), "Function 'probe_same'.* returned list; expected"),
        (lambda types: types[0], lambda values: values.slice(1), "returned 0 values of int64; expected an Arrow array"),
    ],
)
def test_function_that_returns_something_else_is_reported(tmp_path: Path, result: Any, arrays: Any, said: str) -> None:
    plugins = registry(functions=lambda: [Function("probe", "probe_same", result, arrays)])
    snapshot = open_snapshot(table_of(tmp_path).append(ROWS).uri, plugins=plugins)
    with pytest.raises(HookContractError, match=said):
        snapshot.scan(predicate="probe_same(id) > 0").to_table()


def test_location_of_vectors_of_another_type_is_reported(tmp_path: Path) -> None:
    def locate(files: pa.Table) -> pa.Table:
        names = VECTOR_LOCATION.names
        return pa.table({n: pa.array([], pa.string()) for n in names})

    rule = RowSelector("probe", (), locate, lambda *a: RowSet.from_positions([]))
    plugins = registry(read_rules=lambda: [rule])
    with pytest.raises(HookContractError, match=r"RowSelector.locate of hook read_rules.*file: string.*file: int32"):
        open_snapshot(table_of(tmp_path).append(ROWS).uri, plugins=plugins).scan().to_table()


@pytest.mark.parametrize(
    ("encoded", "said"),
    [
        (b"bytes", "returned bytes; expected EncodedRows"),
        (EncodedRows(None, b"", pa.array(["x"])), "returned 1 values of string; expected 1 of struct"),
        (EncodedRows(None, "text", pa.array(["x"])), "EncodedRows.data='text'; expected bytes"),  # type: ignore[arg-type]
    ],
)
def test_encoded_rows_of_another_type_are_not_committed(tmp_path: Path, encoded: Any, said: str) -> None:
    rule = RemoveRows("probe", lambda rows, prefix: encoded)
    made = table_of(tmp_path).append([{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}])
    snapshot = open_snapshot(
        made.uri, plugins=registry({"permits": ("add.deletionVector",)}, write_rules=lambda: [rule])
    )
    transaction = snapshot.begin("DELETE")
    transaction.remove_rows(snapshot.files.columns(["path"])["path"][0].as_py(), RowSet.from_positions([0]))
    with pytest.raises(HookContractError, match=f"RemoveRows.encode.*of hook write_rules.*{said}"):
        transaction.commit()
    assert open_snapshot(made.uri, plugins=registry()).version == snapshot.version


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (lambda values: ["x"], r"FileReference.paths of hook file_references .* returned \['x'\]; expected"),
        (lambda values: pa.array([b"x"]), "returned 1 values of binary; expected 1 of string"),
        (lambda values: pa.array([], pa.string()), "returned 0 values of string; expected 1 of string"),
    ],
)
def test_references_to_files_of_another_type_are_reported(paths: Any, said: str) -> None:
    with pytest.raises(HookContractError, match=said):
        named_files(FileReference("probe", "mark", paths, paths), pa.array(["a"]))


# --- features ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"permits": "domainMetadata"}, "TableFeature.permits='domainMetadata'; expected a tuple of str"),
        ({"kind": "writers"}, "TableFeature.kind='writers'; expected 'writer' or 'reader.writer'"),
        ({"properties": {"a": 1}}, r"TableFeature.properties\['a'\]=1; expected str"),
        ({"fields": (ActionField("add", "mark", LONG),)}, "ActionField.type=.*; expected pyarrow.DataType"),
    ],
)
def test_feature_of_wrong_values_is_rejected_with_its_plugin(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PluginError, match=f"FEATURE of plugin 'probe' has .*{said}"):
        registry(changes)


def test_feature_that_is_active_by_text_is_rejected(tmp_path: Path) -> None:
    plugins = registry({"active": lambda table: table.configuration.get("a", "yes")})
    with pytest.raises(HookContractError, match="active of plugin 'probe' returned 'yes'; expected True or False"):
        open_snapshot(table_of(tmp_path).uri, plugins=plugins)


def test_message_names_the_distribution_of_the_plugin() -> None:
    version = metadata.version("delta-row-ttl")
    assert plugin_name("example.rowTtl") == f"plugin 'example.rowTtl' (delta-row-ttl {version})"
    installed = PluginRegistry().load("example.rowTtl")
    assert plugin_name("example.rowTtl", installed) == plugin_name("example.rowTtl")
    assert plugin_name("example.rowTtl", object()) == "plugin 'example.rowTtl'"


# --- actions -------------------------------------------------------------------------------

NESTED = ActionKind(
    "n",
    pa.struct(
        [
            ("tags", pa.map_(pa.string(), pa.string())),
            ("parts", pa.list_(pa.struct([pa.field("at", pa.int32(), False)]))),
            ("share", pa.float64()),
            ("on", pa.bool_()),
            ("day", pa.date32()),
        ]
    ),
)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"tags": None},
        {"tags": {"a": "b"}, "parts": [{"at": 1}, {"at": -(2**31)}], "share": 1, "on": False, "day": "2024-01-01"},
    ],
)
def test_action_that_fits_its_kind(value: dict[str, Any]) -> None:
    assert misfit_of_action(value, NESTED) is None


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"tags": {"a": 1}}, "n.tags['a']"),
        ({"tags": {1: "a"}}, "n.tags"),
        ({"tags": [("a", "b")]}, "n.tags"),
        ({"parts": [{"at": 1}, {"at": 2**31}]}, "n.parts[1].at"),
        ({"parts": [{}]}, "n.parts[0].at"),
        ({"parts": "x"}, "n.parts"),
        ({"share": "1"}, "n.share"),
        ({"on": 1}, "n.on"),
        ({"day": object()}, "n.day"),
        ([], "n"),
    ],
)
def test_action_that_does_not_fit_its_kind_is_located(value: Any, where: str) -> None:
    found = misfit_of_action(value, NESTED)
    assert found is not None
    assert found.where == where


def test_value_that_json_changes_is_located() -> None:
    assert find_json_misfit({"a": [1, 2.5, None, {"b": "c"}]}, "x") is None
    cases = [({"a": [{1: 2}]}, "x.a[0]: key"), ({"a": b"x"}, "x.a"), ([{1, 2}], "x[0]"), ({"a": float("nan")}, "x.a")]
    for value, where in cases:
        found = find_json_misfit(value, "x")
        assert found is not None
        assert found.where == where
