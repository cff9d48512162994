"""FeatureContract catches the mistakes that authors of plugins make, each with a message that names plugin and hook."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable, write_deltalake
from delta_core.api import (
    VECTOR_LOCATION,
    ActionColumn,
    Call,
    ChecksumField,
    Column,
    ColumnEncoding,
    CommitInfoField,
    ExtraAction,
    FileCheck,
    FillColumn,
    Finding,
    Function,
    HiddenColumn,
    Literal,
    MetadataColumn,
    PrimitiveType,
    RowFilter,
    RowSelector,
    UnsupportedOperationError,
)
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.state import TableState
from delta_core.kernels.arrow_buffers import one_array
from delta_core.kernels.row_set import RowSet
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder
from tests.testing import honest_plugin as honest
from tests.testing.honest_plugin import FEATURE, LIMIT, LONG, NAME, ON, READ, STRING, WRITE, Plugin, commit, is_on

ROWS = pa.table({"id": [1, 2, 3, 4, 500], "name": ["a", "b", None, "d", "e"]})
SHOWN = ROWS.slice(0, 4)
FIELDS = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}, {"name": "doubled", "type": "long"}]


def contract(plugin: Any, **attributes: Any) -> FeatureContract:
    """Return the contract of a plugin that is not installed."""
    found: list[PluginRegistry] = []

    class Contract(FeatureContract):
        name = NAME

        @property
        def registry(self) -> PluginRegistry:
            # as an entry point, it fails when it is looked up
            found[:] = found or [PluginRegistry([plugin])]
            return found[0]

        def states(self) -> list[TableState]:
            properties = {ON: "true", LIMIT: "100"}
            return [table_state([NAME], FIELDS, p, registry=self.registry) for p in ({}, properties)]

        def tables(self) -> list[ExampleTable]:
            expected = SHOWN.append_column("doubled", pa.array([2, 4, 6, 8]))
            schema = table_state(fields=FIELDS).schema
            breaking = {"positive": pa.table({"id": [0], "name": ["z"]})}
            return [ExampleTable(ROWS, "id > 2", schema, {ON: "true"}, expected=expected, breaking=breaking)]

    made = Contract()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def failures(made: FeatureContract, folder: Path) -> Iterator[str]:
    """Run every test of a contract but Spark's and yield the messages of those that fail."""
    for number, name in enumerate(n for n in dir(made) if n.startswith("test_") and not n.endswith("_spark")):
        test = getattr(made, name)
        place = folder / str(number)
        place.mkdir(parents=True)
        arguments = [place] if "tmp_path" in test.__code__.co_varnames[: test.__code__.co_argcount] else []
        try:
            test(*arguments)
        except (Exception, pytest.fail.Exception) as e:  # noqa: BLE001  (as pytest reports it)
            yield str(e)


def test_honest_plugin_passes(tmp_path: Path) -> None:
    assert list(failures(contract(Plugin()), tmp_path)) == []


@pytest.mark.spark
def test_honest_plugin_passes_on_spark(java: Path, tmp_path: Path) -> None:
    contract(Plugin()).test_rows_are_the_same_on_spark(tmp_path)
    (table,) = [p for p in tmp_path.iterdir() if p.name == "0"]
    files = [p.relative_to(table).parts for p in table.rglob("*.parquet") if "_delta_log" not in p.parts]
    # Spark's job and the contract's own writes
    assert {parts[:2] for parts in files} == {("acme", "stamped")}
    assert any(parts[2].startswith("job-") for parts in files)


def test_upkeep_finds_the_files_of_a_folder(tmp_path: Path) -> None:
    plugins = PluginRegistry([Plugin()])
    fields = {"id": "long", "name": "string", "doubled": "long"}
    TableBuilder(tmp_path).create(fields, features=[NAME], properties={ON: "true"})
    table = DeltaTable(str(tmp_path), plugins=plugins)
    for i in range(1, 4):
        write_deltalake(table, pa.table({"id": [i], "name": ["a"]}), mode="append")
    (tmp_path / "acme/stamped/stray.parquet").write_bytes(b"")
    table.optimize.compact()
    found = table.vacuum(0, enforce_retention_duration=False, dry_run=False, full=True)
    left = {p.relative_to(tmp_path).as_posix() for p in (tmp_path / "acme").rglob("*.parquet")}
    assert "acme/stamped/stray.parquet" in found
    assert left == set(table.snapshot().files.columns(["path"])["path"].to_pylist())
    assert table.scan(columns=["id", "doubled"]).to_table().sort_by("id").to_pydict() == {
        "id": [1, 2, 3],
        "doubled": [2, 4, 6],
    }


# --- mistakes ------------------------------------------------------------------------------


def reads(**rules: Any) -> Callable[[TableState], list[Any]]:
    """Return the hook read_rules with some rules replaced, or left out by None."""

    def read_rules(table: TableState) -> list[Any]:
        honest.read_rules(table)
        return [r for r in {**READ, **rules}.values() if r is not None] if is_on(table) else []

    return read_rules


def writes(**rules: Any) -> Callable[[TableState], list[Any]]:
    """Return the hook write_rules with some rules replaced, or left out by None."""

    def write_rules(table: TableState) -> list[Any]:
        return [r for r in {**WRITE, **rules}.values() if r is not None] if is_on(table) else []

    return write_rules


def _stamp_of_new_files(attempt: Any) -> ActionColumn:
    return ActionColumn(NAME, "add", "stampedBy", pc.if_else(one_array(attempt.adds["fresh"]), "me", None))


def commits(**rules: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """Return the hook commit_rules with some rules replaced."""

    def commit_rules(attempt: Any) -> list[Any]:
        made = {**commit(attempt), **{name: make(attempt) for name, make in rules.items()}}
        return list(made.values()) if is_on(attempt.table) else []

    return commit_rules


def _raise(*arguments: Any) -> Any:
    raise KeyError("oops")


def _one_row(data: Any, cardinality: Any, where: str) -> RowSet:
    return RowSet.from_positions([3])


def _shared() -> Callable[[TableState], Any]:
    """Return a hook that returns the same iterator again and again."""
    rules = iter(READ.values())
    return lambda table: (r for r in rules) if is_on(table) else []


def _mutating(metadata: Any) -> Any:
    metadata.configuration["acme.seen"] = "true"
    return metadata


def _growing() -> Callable[[Any], Any]:
    numbers = itertools.count()
    return lambda metadata: replace(metadata, configuration={**metadata.configuration, "acme.n": str(next(numbers))})


def read_rules_without_mark() -> Any:
    """Return a module whose function of a hook's name has no mark."""
    import types

    module = types.ModuleType("acme_unmarked")
    vars(module).update(vars(Plugin(write_rules=None)))
    exec("def write_rules(table):\n    return []\n", vars(module))
    return module


def _wrong_function() -> list[Function]:
    return [Function(NAME, "acme_twice", honest.least, _raise)]


def _short_function() -> list[Function]:
    return [Function(NAME, "acme_twice", honest.least, _first)]


def _first(values: pa.Array) -> pa.Array:
    return values.slice(0, 1)


def _numbers(attempt: Any) -> ActionColumn:
    return ActionColumn(NAME, "add", "stampedBy", pa.array([7] * attempt.adds.num_rows, pa.int64()))


def _rejecting_vectors(adds: pa.Table, winner: pa.Table) -> list[ActionColumn]:
    return [] if winner["deletionVector"].null_count == len(winner) else _raise()


def _read_by_request(*kinds: type, when: Callable[[Any], bool]) -> Any:
    """Return the hook read_rules, which leaves rules of some kinds out for some requests."""

    def read_rules(table: TableState, request: Any) -> list[Any]:
        found = honest.read_rules(table)
        return [r for r in found if not isinstance(r, kinds)] if when(request) else found

    return read_rules


def _of_changes(request: Any) -> bool:
    return bool(request.purpose == "changes")


def _twice(function: Callable[[pa.Array], pa.Array], spark: str = "({0} * 2L)") -> Callable[[], list[Function]]:
    """Return the hook functions with another form of acme_twice."""
    return lambda: [Function(NAME, "acme_twice", honest.least, function, spark)]


def _never_null(values: pa.Array) -> pa.Array:
    return pc.fill_null(honest.twice(values), 0)


def _checked(values: pa.Array) -> pa.Array:
    if pc.any(pc.less(values, 0)).as_py():
        raise ValueError("negative")
    return honest.twice(values)


def _trimmed() -> list[Function]:
    """Return a function that no rule calls, and that treats line ends apart from Spark's."""
    return [*honest.functions(), Function(NAME, "acme_trim", honest.least, pc.utf8_trim_whitespace, "trim({0})")]


def _stamped_one_by_one(attempt: Any) -> ActionColumn:
    return _stamped_rows(attempt.adds)


def _stamped_rows(files: pa.Table) -> ActionColumn:
    values = ["me" if file["path"] else None for file in files.to_pylist()]
    return ActionColumn(NAME, "add", "stampedBy", pa.array(values, pa.string()))


def _listing(table: TableState) -> list[Any]:
    os.listdir(".")
    return list(WRITE.values()) if is_on(table) else []


def _reading(name: str) -> Callable[[Any], list[str]]:
    """Return the hook required_features, which reads one more property."""

    def required_features(metadata: Any) -> list[str]:
        metadata.configuration.get(name)
        return honest.required_features(metadata)

    return required_features


def _without_changes(metadata: Any) -> None:
    if metadata.configuration.get("delta.enableChangeDataFeed") == "true":
        raise UnsupportedOperationError("no change feed")


def _located_as_text(files: pa.Table) -> pa.Table:
    return pa.table({n: pa.array([], pa.string()) for n in VECTOR_LOCATION.names})


def _bytes(rows: Any, prefix: str) -> Any:
    return b""


TRUE = Literal(True, PrimitiveType("boolean"))
ID = Column(("id",))
FIELD = FEATURE.fields[0]

#: What is wrong, the plugin, and what the message must contain beside the plugin's name.
NAMED = Column(("name",))


def _encodes(encode: Any, decode: Any, feature: str = NAME) -> Callable[..., Any]:
    return lambda table: [ColumnEncoding(feature, ("name",), STRING, encode, decode)] if is_on(table) else []


def _shouting(files: pa.Table) -> list[Finding]:
    assert not any(name.isupper() for name in files["stampedBy"].to_pylist())
    return []


def _verifies(columns: Sequence[str], *found: Any) -> Any:
    return lambda table: [FileCheck(NAME, tuple(columns), lambda files: list(found))]


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "another name than the entry point's": (
        lambda: Plugin(replace(FEATURE, name="acme.stmp", aliases=(NAME,))),
        "FEATURE.name 'acme.stmp'",
    ),
    "a summary that is no sentence": (
        lambda: Plugin(replace(FEATURE, summary="stamps")),
        "FEATURE.summary is 'stamps'",
    ),
    "a required feature that is not there": (
        lambda: Plugin(replace(FEATURE, after=("domainMetadat",))),
        "FEATURE.after names",
    ),
    "an operation that leads nowhere": (
        lambda: Plugin(replace(FEATURE, operations={"go": "tests.testing.honest_plugin:gone"})),
        "importing its operation 'go' from ",
    ),
    "a writer feature that hides rows": (
        lambda: Plugin(replace(FEATURE, kind="writer")),
        "Hook read_rules.*kind is 'writer'",
    ),
    "an argument that the hook lacks": (
        lambda: Plugin(read_rules=lambda tabel: []),
        "Hook read_rules.*takes the argument 'tabel'",
    ),
    "a hook that does not exist": (
        lambda: Plugin(read_rule=lambda table: []),
        "Hook read_rule .*does not exist. Did you mean",
    ),
    "a hook without its mark": (read_rules_without_mark, "Hook write_rules.*not marked with @hookimpl"),
    "a hook that forgets to return": (
        lambda: Plugin(write_rules=lambda table: None),
        "Hook write_rules.*returned None",
    ),
    "a hook that returns something else": (
        lambda: Plugin(read_rules=lambda table: ["rule"]),
        "Hook read_rules.*returned 'rule'",
    ),
    "a check that returns something": (lambda: Plugin(check_read=lambda table: True), "Hook check_read.*returned True"),
    "an exception in a hook of reads": (lambda: Plugin(read_rules=_raise), "Hook read_rules.*failed with KeyError"),
    "an exception in a hook of writes": (
        lambda: Plugin(write_rules=lambda table: [1 / 0]),
        "Hook write_rules.*ZeroDivisionError",
    ),
    "an exception in a hook of commits": (
        lambda: Plugin(commit_rules=_raise),
        "Hook commit_rules.*failed with KeyError",
    ),
    "an exception in a function": (
        lambda: Plugin(functions=_wrong_function),
        "Function 'acme_twice' of hook functions.*KeyError",
    ),
    "a function of too few values": (
        lambda: Plugin(functions=_short_function),
        "Function 'acme_twice' of hook functions of plugin 'acme.stamp' returned 1 values of int64",
    ),
    "rules for no table": (
        lambda: Plugin(read_rules=lambda table: [], write_rules=writes(hidden=None)),
        "Hook read_rules.*returned nothing for any table",
    ),
    "no hook at all": (
        lambda: Plugin(replace(FEATURE, fields=(), actions=()), **dict.fromkeys(honest.HOOKS)),
        "no rule was seen",
    ),
    "an iterator that is used up": (lambda: Plugin(read_rules=_shared()), "no read rule returns as a metadata column"),
    "a rule that does not pickle": (
        lambda: Plugin(read_rules=reads(selector=replace(READ["selector"], locate=lambda files: files))),
        "Hook read_rules.*RowSelector can't be pickled.*module level",
    ),
    "a rule of another feature's name": (
        lambda: Plugin(read_rules=reads(filter=RowFilter("acme.stmp", TRUE))),
        "Hook read_rules.*RowFilter.feature='acme.stmp'; expected 'acme.stamp'",
    ),
    "a property that nothing reads": (
        lambda: Plugin(replace(FEATURE, properties={**FEATURE.properties, "acme.stamp.limt": "the limit"})),
        "declares the property 'acme.stamp.limt'.*none of its hooks reads it",
    ),
    "a metadata column of the wrong type": (
        lambda: Plugin(read_rules=reads(column=replace(READ["column"], type=STRING)), write_rules=writes(hidden=None)),
        "MetadataColumn '_stamp' of hook read_rules.*expected STRING",
    ),
    "a filter that is no condition": (
        lambda: Plugin(read_rules=reads(filter=RowFilter(NAME, ID))),
        "RowFilter of hook read_rules.*BOOLEAN",
    ),
    "a filter that hides too much": (
        lambda: Plugin(read_rules=reads(filter=RowFilter(NAME, Call("<", (ID, Literal(3, LONG)))))),
        "Hook read_rules and write_rules.*reads return other rows after they were written",
    ),
    "a filter of a column that is not there": (
        lambda: Plugin(read_rules=reads(filter=RowFilter(NAME, Column(("di",))))),
        "RowFilter of hook read_rules.*Column di is not in",
    ),
    "a filter that the change feed lacks": (
        lambda: Plugin(read_rules=_read_by_request(RowFilter, when=_of_changes)),
        "Hook read_rules.*the change feed returns other rows than reads after rows were written",
    ),
    "a selector that the change feed lacks": (
        lambda: Plugin(read_rules=_read_by_request(RowSelector, when=_of_changes)),
        "Hook read_rules.*the change feed returns other rows than reads after ",
    ),
    "a filter that scans of other columns lack": (
        lambda: Plugin(read_rules=_read_by_request(RowFilter, when=lambda r: r.columns == (("name",),))),
        "Hook read_rules.*a scan with columns=.'name'. returns other rows",
    ),
    "a filter that scans with a predicate lack": (
        lambda: Plugin(read_rules=_read_by_request(RowFilter, when=lambda r: r.predicate is not None)),
        "Hook read_rules.*a scan with predicate='id > 2' returns other rows",
    ),
    "a read check that never fails": (
        lambda: Plugin(read_rules=reads(check=replace(READ["check"], expression=TRUE))),
        "ReadCheck 'stamp fits' never fails",
    ),
    "a read check that always fails": (
        lambda: Plugin(read_rules=reads(check=replace(READ["check"], expression=Call("=", (ID, Literal(0, LONG)))))),
        "failed while reading rows: DataFileError.*stamp fits",
    ),
    "a write check that accepts everything": (
        lambda: Plugin(write_rules=writes(check=replace(WRITE["check"], expression=TRUE))),
        "RowCheck 'positive' accepts rows that break it",
    ),
    "a write check that rejects everything": (
        lambda: Plugin(write_rules=writes(check=replace(WRITE["check"], expression=Call("<", (ID, Literal(0, LONG)))))),
        "failed while writing rows: ConstraintViolationError.*positive",
    ),
    "a hidden column that is not carried": (
        lambda: Plugin(write_rules=writes(hidden=replace(WRITE["hidden"], carries=""))),
        "carries='': 'carry' needs the metadata column",
    ),
    "a hidden column whose carried values are others": (
        lambda: Plugin(
            read_rules=reads(
                column=MetadataColumn(NAME, "_stamp", LONG, Call("+", (honest.STORED, Literal(1, LONG)))), check=None
            )
        ),
        "Hook write_rules.*HiddenColumn loses the values of '_stamp'",
    ),
    "a hidden column that is named like a column": (
        lambda: Plugin(write_rules=writes(hidden=HiddenColumn(NAME, "id", LONG, honest.STAMP, "recompute"))),
        "claimed by the table's schema",
    ),
    "a filled column that is not there": (
        lambda: Plugin(write_rules=writes(fill=FillColumn(NAME, ("duobled",), ID))),
        "FillColumn of hook write_rules.*Did you mean 'doubled'",
    ),
    "a filled column of other values": (
        lambda: Plugin(write_rules=writes(fill=FillColumn(NAME, ("doubled",), ID))),
        "reads return other rows after they were written",
    ),
    "a selector that fails": (
        lambda: Plugin(read_rules=reads(selector=replace(READ["selector"], decode=_raise))),
        "RowSelector.decode of hook read_rules.*KeyError",
    ),
    "a selector that drops other rows": (
        lambda: Plugin(read_rules=reads(selector=replace(READ["selector"], decode=_one_row))),
        "Hook read_rules.*RowSelector drops other rows",
    ),
    "a folder that readers take for hidden": (
        lambda: Plugin(write_rules=writes(files=replace(WRITE["files"], folder="_acme"))),
        "FileRequirement.folder of hook write_rules.*returned '_acme'",
    ),
    "a folder outside the table": (
        lambda: Plugin(write_rules=writes(files=replace(WRITE["files"], folder="acme/../.."))),
        "FileRequirement.folder of hook write_rules.*'acme/../..'; expected a relative path",
    ),
    "statistics of a column that is not there": (
        lambda: Plugin(write_rules=writes(files=replace(WRITE["files"], statistics_columns=(("idd",),)))),
        "FileRequirement.statistics_columns of hook write_rules.*names the column idd; the table's are id",
    ),
    "an encoder that fails": (
        lambda: Plugin(write_rules=writes(remove=replace(WRITE["remove"], encode=_raise))),
        "RemoveRows.encode of hook write_rules.*KeyError",
    ),
    "a field of add with too few values": (
        lambda: Plugin(
            commit_rules=commits(field=lambda a: ActionColumn(NAME, "add", "stampedBy", pa.array([], pa.string())))
        ),
        "ActionColumn of hook commit_rules.*has 0 values for add.stampedBy; expected 1",
    ),
    "a field of add of another type": (
        lambda: Plugin(commit_rules=commits(field=_numbers)),
        "ActionColumn of hook commit_rules.*has values of int64 for add.stampedBy; expected string",
    ),
    "a field of add that is lost with the file's next add": (
        lambda: Plugin(commit_rules=commits(field=_stamp_of_new_files)),
        "Hook commit_rules.*add.stampedBy of a live file becomes null when the file is added again",
    ),
    "a field of add that is not declared": (
        lambda: Plugin(
            commit_rules=commits(
                field=lambda a: ActionColumn(NAME, "add", "stampdBy", pa.array(["me"] * a.adds.num_rows))
            )
        ),
        "hook commit_rules.*add.stampdBy, which FEATURE.fields does not declare",
    ),
    "an action that is not declared": (
        lambda: Plugin(commit_rules=commits(note=lambda a: ExtraAction(NAME, "acmeNot", {"text": "x"}))),
        "ExtraAction of hook commit_rules.*acmeNot, which no feature of the table permits",
    ),
    "an exception over a commit that won": (
        lambda: Plugin(rebase_files=_raise),
        "Hook rebase_files.*failed with KeyError",
    ),
    "too few values over a commit that won": (
        lambda: Plugin(rebase_files=lambda adds: [ActionColumn(NAME, "add", "stampedBy", pa.array([], pa.string()))]),
        "ActionColumn of hook rebase_files.*has 0 values for add.stampedBy; expected 1",
    ),
    "values of another type over a commit that won": (
        lambda: Plugin(
            rebase_files=lambda adds: [
                ActionColumn(NAME, "add", "stampedBy", pa.array([7] * adds.num_rows, pa.int64()))
            ]
        ),
        "ActionColumn of hook rebase_files.*has values of int64 for add.stampedBy; expected string",
    ),
    "a field over a commit that won that is not declared": (
        lambda: Plugin(
            rebase_files=lambda adds: [ActionColumn(NAME, "add", "stampdBy", pa.array(["me"] * adds.num_rows))]
        ),
        "hook rebase_files.*add.stampdBy, which FEATURE.fields does not declare. Did you mean 'stampedBy'",
    ),
    "an exception over a commit that dropped rows": (
        lambda: Plugin(rebase_files=_rejecting_vectors),
        "dropping rows of one file in two commits at once.*Hook rebase_files.*KeyError",
    ),
    "a field of checksums that needs the commit": (
        lambda: Plugin(checksum_fields=lambda commit: [ChecksumField(NAME, "acme", commit.info["operation"])]),
        "Hook checksum_fields.*failed with KeyError",
    ),
    "a field of checksums that the core has": (
        lambda: Plugin(checksum_fields=lambda commit: [ChecksumField(NAME, "numFiles", 1)]),
        "Hook checksum_fields.*sets 'numFiles', which the core sets",
    ),
    "a field of checksums that JSON can't hold": (
        lambda: Plugin(checksum_fields=lambda commit: [ChecksumField(NAME, "acme", {1, 2})]),
        "Hook checksum_fields.*'acme' has the value {1, 2}, which JSON can't hold",
    ),
    "a field of checksums that JSON changes": (
        lambda: Plugin(checksum_fields=lambda commit: [ChecksumField(NAME, "acme", {1: 2})]),
        "Hook checksum_fields.*'acme' is read again as",
    ),
    "a field of checksums of another feature's name": (
        lambda: Plugin(checksum_fields=lambda commit: [ChecksumField("acme.stmp", "acme", 1)]),
        "Hook checksum_fields.*ChecksumField.feature='acme.stmp'; expected 'acme.stamp'",
    ),
    "a field of checksums for no table": (
        lambda: Plugin(checksum_fields=lambda commit: []),
        "Hook checksum_fields.*returned nothing for any table",
    ),
    "a feature that nobody provides": (
        lambda: Plugin(required_features=lambda metadata: ["acme.stmp"] if metadata.configuration.get(ON) else []),
        "Hook required_features.*'acme.stmp', which no installed plugin provides. Did you mean 'acme.stamp'",
    ),
    "a feature that every table gets": (
        lambda: Plugin(required_features=lambda metadata: [NAME]),
        "Hook required_features.*nothing of it",
    ),
    "metadata that is changed in place": (
        lambda: Plugin(prepare_metadata=_mutating),
        "Hook prepare_metadata.*return a copy",
    ),
    "metadata that changes each time": (
        lambda: Plugin(prepare_metadata=_growing()),
        "Hook prepare_metadata.*prepared already",
    ),
    "permits as text": (
        lambda: Plugin(replace(FEATURE, permits="cdc")),
        "FEATURE of plugin 'acme.stamp' has TableFeature.permits='cdc'; expected a tuple of str",
    ),
    "a feature that is active by text": (
        lambda: Plugin(replace(FEATURE, active=lambda table: table.configuration.get(ON, ""))),
        "FEATURE of hook active .* returned ''; expected True or False",
    ),
    "a hook after commits that fails": (
        lambda: Plugin(after_commit=lambda table: _raise()),
        "Hook after_commit.*it failed, which users see in the log only.*KeyError",
    ),
    "a hook that waits": (
        lambda: Plugin(retention_limits=lambda table: time.sleep(0.3) or []),
        "Hook retention_limits.*the fastest of its calls took 0.3",
    ),
    "a loop over files": (
        lambda: Plugin(commit_rules=commits(field=_stamped_one_by_one)),
        "Hook commit_rules.*microseconds per file.*use functions of whole columns",
    ),
    "a loop over the files of a commit that won": (
        lambda: Plugin(rebase_files=lambda adds: [_stamped_rows(adds)]),
        "Hook rebase_files.*microseconds per file",
    ),
    "a file that a hook reads": (
        lambda: Plugin(check_read=lambda table: Path(__file__).read_text() and None),
        "Hook check_read.*does input or output: open .*test_feature_contract.py",
    ),
    "a folder that a hook lists": (
        lambda: Plugin(write_rules=_listing),
        "Hook write_rules.*does input or output: os.listdir",
    ),
    "a program that a hook runs": (
        lambda: Plugin(check_commit=lambda attempt: subprocess.run(["true"], check=True) and None),
        "Hook check_commit.*does input or output: subprocess.Popen 'true'",
    ),
    "a property that is not declared": (
        lambda: Plugin(required_features=_reading("acme.stamp.limt")),
        "Hook required_features.*reads the property 'acme.stamp.limt', which .* Did you mean 'acme.stamp.limit'",
    ),
    "a change feed that the feature rejects": (
        lambda: Plugin(check_metadata=_without_changes),
        "Plugin 'acme.stamp': no table of tables.. can record its changes",
    ),
    "a change feed that is not expected": (
        lambda: Plugin(
            read_rules=lambda table, request: _raise() if _of_changes(request) else honest.read_rules(table)
        ),
        "reading the change feed.*Hook read_rules.*KeyError",
    ),
    "a field of add as a list": (
        lambda: Plugin(
            commit_rules=commits(field=lambda a: ActionColumn(NAME, "add", "stampedBy", ["me"] * a.adds.num_rows))
        ),
        "Hook commit_rules.*ActionColumn.values=.*expected pyarrow.Array",
    ),
    "an action of other values than its kind's": (
        lambda: Plugin(commit_rules=commits(note=lambda a: ExtraAction(NAME, "acmeNote", {"text": 7}))),
        "ExtraAction of hook commit_rules.*acmeNote.text=7; expected a value of string",
    ),
    "an action without its key": (
        lambda: Plugin(commit_rules=commits(note=lambda a: ExtraAction(NAME, "acmeNote", {}))),
        "ExtraAction of hook commit_rules.*acmeNote.text=null; expected a value: it identifies the action",
    ),
    "a field of commitInfo that JSON can't hold": (
        lambda: Plugin(commit_rules=commits(info=lambda a: CommitInfoField(NAME, "stamped", b"x"))),
        "CommitInfoField of hook commit_rules.*commitInfo.stamped=b'x'; expected a JSON value",
    ),
    "an Arrow type of a metadata column": (
        lambda: Plugin(read_rules=reads(column=replace(READ["column"], type=pa.int64()))),
        "Hook read_rules.*MetadataColumn.type=DataType.int64.; expected PrimitiveType",
    ),
    "an Arrow type of a hidden column": (
        lambda: Plugin(write_rules=writes(hidden=replace(WRITE["hidden"], type=pa.int64()))),
        "Hook write_rules.*HiddenColumn.type=DataType.int64.; expected PrimitiveType",
    ),
    "a Delta type as the result of a function": (
        lambda: Plugin(functions=lambda: [Function(NAME, "acme_twice", lambda types: LONG, honest.twice)]),
        "Function.result of 'acme_twice' of hook functions.*expected a pyarrow.DataType",
    ),
    "a list as the result of a function": (
        lambda: Plugin(functions=lambda: [Function(NAME, "acme_twice", honest.least, pa.Array.to_pylist)]),
        "Function 'acme_twice' of hook functions.* returned list; expected an Arrow array",
    ),
    "a template for Spark without its argument": (
        lambda: Plugin(functions=_twice(honest.twice, "({1} * 2L)")),
        "Hook functions.*Function.spark of 'acme_twice' is .*does not fit a call of 1 argument: IndexError",
    ),
    "a fill in a case that there is not": (
        lambda: Plugin(write_rules=writes(fill=replace(WRITE["fill"], when="missing"))),
        "Hook write_rules.*FillColumn.when='missing'; expected 'absent', 'null' or 'always'",
    ),
    "a column to fill as text": (
        lambda: Plugin(write_rules=writes(fill=replace(WRITE["fill"], column="doubled"))),
        "Hook write_rules.*FillColumn.column='doubled'; expected a tuple of str",
    ),
    "locations of vectors with other types": (
        lambda: Plugin(read_rules=reads(selector=replace(READ["selector"], locate=_located_as_text))),
        "RowSelector.locate of hook read_rules.*expected a table of VECTOR_LOCATION",
    ),
    "an encoding that loses values": (
        lambda: Plugin(column_encodings=_encodes(Call("concat", (NAMED, Literal("x", STRING))), NAMED)),
        "Hook column_encodings .*column 'name' is decoded to other values than were encoded: .*'ax'",
    ),
    "an encoding that decodes null to a value": (
        lambda: Plugin(column_encodings=_encodes(NAMED, Call("coalesce", (NAMED, Literal("z", STRING))))),
        "ColumnEncoding.decode of hook column_encodings of plugin 'acme.stamp' returned 0 nulls for 1 nulls",
    ),
    "an encoding of another type": (
        lambda: Plugin(column_encodings=_encodes(Call("length", (NAMED,)), NAMED)),
        "Encode of column 'name' of hook column_encodings .*expression of type INT; expected STRING",
    ),
    "an encoding that another feature signs": (
        lambda: Plugin(column_encodings=_encodes(NAMED, NAMED, "acme.other")),
        "Hook column_encodings .*acme.other",
    ),
    "a check of verify that finds faults in right tables": (
        lambda: Plugin(check_table=_verifies(["size"], Finding("acme-size", "a size", "another", "Write again."))),
        "Hook check_table of plugin .* verify finds faults after rows were written, .*acme-size",
    ),
    "a check of verify that reads a column that is not there": (
        lambda: Plugin(check_table=_verifies(["nowhere"])),
        "verify finds faults after rows were written.*FileCheck.columns of hook check_table.*nowhere",
    ),
    "a check of verify that returns text": (
        lambda: Plugin(check_table=_verifies(["size"], "wrong")),
        "check_table.*returned 'wrong'; expected findings",
    ),
    "a check of verify that expects values": (
        lambda: Plugin(check_table=lambda table: [FileCheck(NAME, ("stampedBy",), _shouting)]),
        "Hook check_table.*FileCheck.find failed for files without values of stampedBy.*AttributeError",
    ),
    "bytes instead of encoded rows": (
        lambda: Plugin(write_rules=writes(remove=replace(WRITE["remove"], encode=_bytes))),
        "RemoveRows.encode of hook write_rules.*returned bytes; expected EncodedRows",
    ),
}

#: What Spark computes otherwise: the hook functions, and what the message must contain.
ON_SPARK: dict[str, tuple[Callable[[], list[Function]], str]] = {
    "other numbers": (_twice(honest.twice, "({0} * 3L)"), "'acme_twice' returns 2 on Arrow and 3 on Spark"),
    "other negative numbers": (_twice(honest.twice, "abs({0} * 2L)"), "'acme_twice' returns -2 on Arrow and 2 on"),
    "other nulls": (_twice(_never_null), "'acme_twice' returns 0 on Arrow and None on Spark"),
    "an error for negative numbers": (
        _twice(_checked),
        "'acme_twice' returns .*ValueError: negative.* on Arrow and -2",
    ),
    "another type": (_twice(honest.twice, "CAST({0} * 2L AS DOUBLE)"), "on Arrow and TypeError: values of double; exp"),
    "a name that Spark lacks": (_twice(honest.twice, ""), "'acme_twice' returns .* on Arrow and .*acme_twice"),
    "other texts, in no rule": (_trimmed, "'acme_trim' returns 'a' on Arrow and 'a.n' on Spark"),
}


@pytest.mark.spark
def test_function_that_spark_computes_otherwise_is_caught(java: Path) -> None:
    contract(Plugin()).test_functions_return_the_same_on_spark()
    contract(Plugin(functions=_trimmed), uncompared=("acme_trim",)).test_functions_return_the_same_on_spark()
    for mistake, (functions, said) in ON_SPARK.items():
        with pytest.raises(pytest.fail.Exception) as failed:
            contract(Plugin(functions=functions)).test_functions_return_the_same_on_spark()
        found = str(failed.value)
        assert re.search(f"Hook functions of plugin '{NAME}'.*{said}", found, re.DOTALL), f"{mistake}: {found}"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_caught_with_a_message_that_names_plugin_and_hook(mistake: str, tmp_path: Path) -> None:
    make, said = MISTAKES[mistake]
    found = []
    for text in failures(contract(make()), tmp_path):
        if re.search(said, text, re.DOTALL) and NAME in text:
            return
        found.append(text)
    pytest.fail("\n\n".join(found) or "the mistake passes")


def test_message_names_the_plugin(tmp_path: Path) -> None:
    (found,) = {
        text
        for text in failures(contract(Plugin(check_read=_raise)), tmp_path)
        if "KeyError" in text and "states()" in text
    }
    assert "Hook check_read of plugin 'acme.stamp' failed with KeyError: 'oops'" in found


def test_plugin_that_is_not_written_needs_no_tables(tmp_path: Path) -> None:
    made = contract(Plugin(), not_written="readers only")
    made.test_rows_are_written_moved_and_read(tmp_path)
    assert list(tmp_path.iterdir()) == []
