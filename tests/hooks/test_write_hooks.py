"""Hooks of changing metadata, writing and committing: whom they require, and how answers combine."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable, write_deltalake
from delta_core.api import (
    ActionColumn,
    ActionField,
    CheckpointPlan,
    ChecksumField,
    CommitCheck,
    CommitInfoField,
    CommitSummary,
    DomainMetadata,
    FileCheck,
    FileReference,
    Finding,
    InvalidArgumentError,
    Metadata,
    Protocol,
    RewriteFiles,
    RowCheck,
    Schema,
    TableState,
    literal,
)
from delta_core.errors import HookContractError, PluginConflictError, SchemaError, TypeChangeError
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.protocol.actions import ADDED_FILE
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.operations.create import create_table
from delta_core.schema.types import ArrayType, Field, StructType
from tests.hooks.external_plugins import ExternalPlugin, plugin_set

SCHEMA = Schema.from_json('{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}')
METADATA = Metadata("m", SCHEMA.to_json())
STATE = TableState(3, Protocol(3, 7, ("one", "two"), ("one", "two")), METADATA, SCHEMA)
ATTEMPT = object()


def marked(name: str) -> Any:
    """Return a fold hook's function that appends a name to the description."""

    def mark(metadata: Metadata) -> Metadata:
        return replace(metadata, description=f"{metadata.description or ''}{name}")

    return mark


def reject(table: Any = None, metadata: Any = None, attempt: Any = None) -> None:
    raise InvalidArgumentError("rejected by a plugin")


def test_hook_required_features_requests_every_installed_plugin() -> None:
    one = ExternalPlugin("one", required_features=lambda metadata: ["one"] if metadata.id == "m" else [])
    two = ExternalPlugin("two", required_features=lambda metadata: ["two", "three"])
    installed = PluginRegistry([one, two], installed=False).everything
    assert sorted(installed.collect("required_features", metadata=METADATA)) == ["one", "three", "two"]


def test_hook_prepare_metadata_passes_each_the_answer_before() -> None:
    def hook(name: str) -> Any:
        return lambda table, metadata: marked(name)(metadata)

    later = ExternalPlugin("one", after=("two",), prepare_metadata=hook("1"))
    both = plugin_set(later, ExternalPlugin("two", prepare_metadata=hook("2")))
    assert both.fold("prepare_metadata", "metadata", METADATA, table=STATE, previous=None).description == "21"


def test_hook_prepare_metadata_without_a_plugin_changes_nothing() -> None:
    alone = plugin_set(ExternalPlugin("one"))
    assert alone.fold("prepare_metadata", "metadata", METADATA, table=STATE, previous=None) is METADATA


def test_hook_prepare_domains_join_and_see_what_was_requested() -> None:
    def hook(name: str) -> Any:
        return lambda table, requested: [DomainMetadata(f"{name}.domain", requested["wish"])]

    both = plugin_set(
        ExternalPlugin("one", prepare_domains=hook("one")), ExternalPlugin("two", prepare_domains=hook("two"))
    )
    found = both.collect("prepare_domains", table=STATE, requested={"wish": "w"})
    assert sorted((d.domain, d.configuration) for d in found) == [("one.domain", "w"), ("two.domain", "w")]


def test_hook_check_metadata_rejects() -> None:
    strict = ExternalPlugin("one", check_metadata=lambda table, metadata: reject(table, metadata))
    with pytest.raises(InvalidArgumentError, match="rejected by a plugin"):
        plugin_set(strict).check("check_metadata", table=STATE, metadata=METADATA, previous=None, is_new=True)


def test_hook_check_metadata_must_not_answer() -> None:
    wrong = plugin_set(ExternalPlugin("one", check_metadata=lambda table, metadata: metadata))
    with pytest.raises(HookContractError, match="check_metadata"):
        wrong.check("check_metadata", table=STATE, metadata=METADATA, previous=None, is_new=True)


def test_hook_accept_type_change_rejects_unless_one_plugin_accepts() -> None:
    change = {"table": STATE, "path": ("id",), "old": "integer", "new": "long"}
    accept = {"accept_type_change": lambda table, path, old, new: (old, new) == ("integer", "long") or None}
    assert plugin_set(ExternalPlugin("one")).single("accept_type_change", False, **change) is False
    assert plugin_set(ExternalPlugin("one", **accept)).single("accept_type_change", False, **change) is True
    with pytest.raises(PluginConflictError, match="one, two"):
        plugin_set(ExternalPlugin("one", **accept), ExternalPlugin("two", **accept)).single(
            "accept_type_change", **change
        )


def test_hook_check_type_changes_sees_what_changes_while_rows_stay(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(table: TableState, paths: tuple[tuple[str, ...], ...]) -> None:
        seen.append(paths)
        if ("id",) in paths:
            raise TypeChangeError("id is taken")

    stranger = ExternalPlugin("one", accept_type_change=lambda table, path, old, new: True, check_type_changes=look)
    registry = PluginRegistry([stranger])
    uri = str(tmp_path / "t")
    fields = {"id": "long", "n": "void", "s": StructType([Field("x", "integer")]), "l": ArrayType("integer")}
    create_table(open_context(uri, plugins=registry), StructType([Field(*f) for f in fields.items()]), features=["one"])

    def change(replaces: bool = False, **more: Any) -> None:
        snapshot = open_snapshot(uri, plugins=registry)
        schema = StructType([Field(*f) for f in {**fields, **more}.items()]).to_json()
        transaction = Transaction(snapshot.context, snapshot, "CHANGE COLUMNS")
        transaction.set_metadata(replace(snapshot.metadata, schema_string=schema), replaces=replaces)

    change(new="long")
    assert seen == []
    change(n="long", s=StructType([Field("x", "long"), Field("y", "long")]), l=ArrayType("long"))
    assert seen == [(("n",), ("s", "x"), ("l", "element"))]
    with pytest.raises(TypeChangeError, match="id is taken"):
        change(id="string")
    change(id="string", replaces=True)
    assert len(seen) == 2


def test_hook_check_column_changes_sees_columns_that_lose_their_names_while_rows_stay(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(table: TableState, paths: tuple[tuple[str, ...], ...]) -> None:
        seen.append((table.schema.names, paths))
        if ("id",) in paths:
            raise SchemaError("id is taken")

    registry = PluginRegistry([ExternalPlugin("one", check_column_changes=look)])
    uri = str(tmp_path / "t")
    fields = {"id": "long", "n": "long", "s": StructType([Field("x", "integer"), Field("y", "integer")])}
    create_table(open_context(uri, plugins=registry), StructType([Field(*f) for f in fields.items()]), features=["one"])

    def change(names: list[str], replaces: bool = False, **more: Any) -> None:
        snapshot = open_snapshot(uri, plugins=registry)
        schema = StructType([Field(n, {**fields, **more}[n]) for n in names]).to_json()
        transaction = Transaction(snapshot.context, snapshot, "DROP COLUMNS")
        transaction.set_metadata(replace(snapshot.metadata, schema_string=schema), replaces=replaces)

    change(["s", "n", "id", "new"], new="long")
    assert seen == []
    change(["id", "n", "s"], s=StructType([Field("y", "integer")]))
    change(["id", "n"])
    assert seen == [(["id", "n", "s"], (("s", "x"),)), (["id", "n", "s"], (("s",),))]
    with pytest.raises(SchemaError, match="id is taken"):
        change(["n"])
    change(["n"], replaces=True)
    assert len(seen) == 3


def test_hook_feature_steps_come_from_the_feature_alone() -> None:
    step = RewriteFiles("one", "deletionVector")
    plan = ExternalPlugin("one", feature_steps=lambda table, change: [step] if change == "drop" else [])
    assert plugin_set(plan).collect("feature_steps", table=STATE, change="drop") == [step]
    assert plugin_set(plan).collect("feature_steps", table=STATE, change="enable") == []


def test_hook_write_rules_join_in_the_order_that_features_request() -> None:
    def hook(name: str) -> Any:
        return lambda table, operation: [RowCheck(name, operation, literal(True))]

    later = ExternalPlugin("one", after=("two",), write_rules=hook("one"))
    both = plugin_set(later, ExternalPlugin("two", write_rules=hook("two")))
    rules = both.collect("write_rules", table=STATE, operation="append")
    assert [(r.feature, r.name) for r in rules] == [("two", "append"), ("one", "append")]


def test_hook_write_rules_must_be_a_list() -> None:
    wrong = plugin_set(ExternalPlugin("one", write_rules=lambda table, operation: "rules"))
    with pytest.raises(HookContractError, match="write_rules"):
        wrong.collect("write_rules", table=STATE, operation="append")


def test_hook_commit_rules_see_the_attempt() -> None:
    seen = []

    def rules(attempt: Any) -> list[CommitInfoField]:
        seen.append(attempt)
        return [CommitInfoField("one", "probe", 1)]

    assert plugin_set(ExternalPlugin("one", commit_rules=rules)).collect("commit_rules", attempt=ATTEMPT)[0].value == 1
    assert seen == [ATTEMPT]


def test_hook_commit_rules_get_the_fields_of_features_and_keep_them_of_files_that_are_added_again(
    tmp_path: Path,
) -> None:
    seen = []

    def rules(attempt: Any) -> list[ActionColumn]:
        seen.append(attempt.adds["origin"].to_pylist())
        origin = pc.if_else(attempt.adds["fresh"], "this machine", attempt.adds["origin"])
        return [ActionColumn("one", "add", "origin", origin)]

    one = ExternalPlugin("one", commit_rules=rules)
    one.FEATURE = replace(one.FEATURE, fields=(ActionField("add", "origin", pa.string()),))
    plugins = PluginRegistry([one])
    create_table(open_context(str(tmp_path / "t"), plugins=plugins), SCHEMA, features=["one"])
    for i in range(2):
        write_deltalake(DeltaTable(tmp_path / "t", plugins=plugins), pa.table({"id": [i]}), mode="append")
    DeltaTable(tmp_path / "t", plugins=plugins).restore(0)
    DeltaTable(tmp_path / "t", plugins=plugins).restore(2)
    assert seen == [[], [None], [None], [], ["this machine", "this machine"]]
    assert open_snapshot(str(tmp_path / "t"), plugins=plugins).files.columns(["origin"])["origin"].to_pylist() == [
        "this machine",
        "this machine",
    ]


def test_hook_finish_metadata_passes_each_the_answer_before() -> None:
    def hook(name: str) -> Any:
        return lambda attempt, metadata: marked(name)(metadata)

    later = ExternalPlugin("one", after=("two",), finish_metadata=hook("1"))
    both = plugin_set(later, ExternalPlugin("two", finish_metadata=hook("2")))
    assert both.fold("finish_metadata", "metadata", METADATA, attempt=ATTEMPT).description == "21"


def test_hook_check_commit_rejects() -> None:
    with pytest.raises(InvalidArgumentError, match="rejected by a plugin"):
        plugin_set(ExternalPlugin("one", check_commit=lambda attempt: reject(attempt=attempt))).check(
            "check_commit", attempt=ATTEMPT
        )


def test_hook_committer_has_one_answer_or_the_default() -> None:
    default = object()
    own = SimpleNamespace(commit=lambda proposal: None)
    asked = {"table": STATE, "commits": None, "storage": None}
    assert plugin_set(ExternalPlugin("one")).single("committer", default, **asked) is default
    assert (
        plugin_set(ExternalPlugin("one", committer=lambda table, commits: own)).single("committer", default, **asked)
        is own
    )


FILES = pa.table({"path": ["a"]})


def test_hook_rebase_files_returns_fields_of_staged_files() -> None:
    column = ActionColumn("one", "add", "origin", pa.array(["w"]))
    one = ExternalPlugin("one", rebase_files=lambda adds, winner: [column] if winner["path"] == adds["path"] else [])
    plugins = plugin_set(one, ExternalPlugin("two"))
    arguments = {"table": STATE, "adds": FILES, "removes": FILES}
    assert plugins.collect("rebase_files", winner=FILES, **arguments) == [column]
    assert plugins.collect("rebase_files", winner=FILES.slice(1), **arguments) == []


@pytest.mark.parametrize("loses", [False, True], ids=["first", "behind-a-winner"])
def test_value_of_a_staged_file_follows_the_commit_that_won(tmp_path: Path, loses: bool) -> None:
    """A feature assigns numbers to files; a file that is staged again has the number of the commit that won."""

    def rebase(adds: pa.Table, winner: pa.Table) -> list[ActionColumn]:
        numbers = dict(zip(winner["path"].to_pylist(), winner["number"].to_pylist(), strict=True))
        found = [numbers.get(p, n) for p, n in zip(adds["path"].to_pylist(), adds["number"].to_pylist(), strict=True)]
        return [ActionColumn("one", "add", "number", pa.array(found, pa.int64()))]

    one = ExternalPlugin("one", rebase_files=rebase)
    one.FEATURE = replace(one.FEATURE, fields=(ActionField("add", "number", pa.int64()),))
    context = open_context(str(tmp_path / "t"), plugins=PluginRegistry([one]))
    snapshot = create_table(context, SCHEMA, features=["one"]).snapshot

    def begin(path: str, number: int) -> Transaction[Any]:
        transaction = snapshot.begin("WRITE")
        file = {
            "path": path,
            "partitionValues": [],
            "size": 1,
            "modificationTime": 1,
            "dataChange": True,
            "number": number,
        }
        schema = pa.schema([*(ADDED_FILE.field(n) for n in file if n != "number"), ("number", pa.int64())])
        transaction.add_files(pa.Table.from_pylist([file], schema))
        return transaction

    slow = begin("a", 1)
    if loses:
        begin("a", 2).commit()
    slow.commit()
    assert open_snapshot(context.log.uri, plugins=PluginRegistry([one])).files.columns(["number"])[
        "number"
    ].to_pylist() == [2 if loses else 1]


@pytest.mark.parametrize("name", ["one.origin", "numFiles"])
def test_hook_checksum_fields_adds_to_the_file_and_replaces_nothing(tmp_path: Path, name: str) -> None:
    def fields(commit: CommitSummary) -> list[ChecksumField]:
        return [ChecksumField("one", name, [commit.version, commit.info["operation"]])]

    context = open_context(str(tmp_path / "t"), plugins=PluginRegistry([ExternalPlugin("one", checksum_fields=fields)]))
    create_table(context, SCHEMA, features=["one"])
    file = tmp_path / "t" / "_delta_log" / f"{0:020}.crc"
    assert file.exists() == (name == "one.origin")
    if file.exists():
        assert json.loads(file.read_text())[name] == [0, "CREATE TABLE"]


def test_hook_after_commit_is_reported_once_and_answers_nothing() -> None:
    told: list[Any] = []
    plugins = plugin_set(ExternalPlugin("one", after_commit=lambda committed: told.append(committed)))
    plugins.check("after_commit", table=STATE, committed=4, committer=None)
    assert told == [4]


def test_hook_plan_checkpoint_has_one_answer_or_the_default() -> None:
    planned = ExternalPlugin("one", plan_checkpoint=lambda table: CheckpointPlan("v2", sidecar_actions=table.version))
    assert plugin_set(planned).single("plan_checkpoint", table=STATE) == CheckpointPlan("v2", sidecar_actions=3)
    assert plugin_set(ExternalPlugin("one")).single("plan_checkpoint", table=STATE) is None


def test_hook_file_references_join() -> None:
    def hook(name: str) -> Any:
        return lambda table: [FileReference(name, "deletionVector", lambda c: c, lambda c: c)]

    both = plugin_set(
        ExternalPlugin("one", file_references=hook("one")), ExternalPlugin("two", file_references=hook("two"))
    )
    assert sorted(r.feature for r in both.collect("file_references", table=STATE)) == ["one", "two"]


def test_hook_check_table_adds_checks_to_verify(tmp_path: Path) -> None:
    def seen(rule: str) -> Finding:
        return Finding(rule, "found", "expected", "advice", "warning")

    def files(table: pa.Table) -> list[Finding]:
        assert table.column_names == ["path", "size", "numRecords"]
        return [seen(f"files-{table.num_rows}-{table.column('numRecords')[0]}")]

    checks: list[Any] = [seen("table"), FileCheck("one", ("size", "numRecords"), files)]
    checks.append(CommitCheck("one", lambda infos: [seen(f"commits-{len(infos)}")]))
    registry = PluginRegistry([ExternalPlugin("one", check_table=lambda table: checks)])
    create_table(open_context(str(tmp_path / "t"), plugins=registry), SCHEMA, features=["one"])
    table = DeltaTable(tmp_path / "t", plugins=registry)
    write_deltalake(table, pa.table({"id": [1, 2]}), mode="append")
    report = table.verify()
    assert report.rules() == {"table", "files-1-2", "commits-2"}


def test_hook_retention_limits_join_so_that_the_strictest_can_win() -> None:
    one, two = (ExternalPlugin(n, retention_limits=lambda table, v=v: [v]) for n, v in (("one", 7), ("two", 2)))
    assert min(plugin_set(one, two).collect("retention_limits", table=STATE, cutoff=9)) == 2
