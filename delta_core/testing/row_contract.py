"""The part of `FeatureContract` about rows: written, moved, changed and read by this process."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from delta_core.errors import (
    ConstraintViolationError,
    DataFileError,
    DeltaError,
    FeatureRequirementError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.kernel.commit.intents import REMOVED_FILE
from delta_core.kernel.plugins.checks import FileCheck
from delta_core.kernel.plugins.rules import ActionColumn, FillColumn, ReadCheck, RemoveRows, RowCheck, RowFilter
from delta_core.kernel.plugins.steps import FeatureStep
from delta_core.kernel.protocol.actions import ADDED_FILE, FILE_COLUMNS
from delta_core.operations.feature.drop import DropFeatureOptions, drop_feature
from delta_core.operations.verify.version import columns_of_check
from delta_core.testing.contract_base import ContractBase
from delta_core.testing.feature_tables import ExampleTable, MadeTable, as_values, tamper
from delta_core.testing.hook_costs import attempt_view

__all__ = ["RowContract"]

#: The columns of files that the protocol requires ("Add File").
_NEVER_NULL = frozenset(("path", "partitionValues", "size", "modificationTime", "dataChange"))


class RowContract(ContractBase):
    """Tests that the rows of tables, the fields of their files and their changes are right after each operation."""

    def test_rows_are_written_moved_and_read(self, tmp_path: Path) -> None:
        for made in self.made_tables(tmp_path):
            self._check_rows(made, "after they were written")
            self._check_metadata_columns(made)
            self._check_fields(made)
            self._check_files_added_again(made)
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
        for made in self.made_tables(tmp_path):
            rules = [rule for _, rule in self.rules_of(made)]
            if any(isinstance(rule, RowFilter) for rule in rules):
                hides.add(self._read(made, made.read).num_rows < made.example.rows.num_rows)
            absent = {r.column[0] for r in rules if isinstance(r, FillColumn) and r.when == "absent"}
            fills |= absent
            computed |= absent - set(made.example.rows.column_names)
        if hides and True not in hides:
            self.fault("read_rules", "RowFilter hides no row of tables(): add rows that it hides, and set expected=")
        if fills - computed:
            self.fault(
                "write_rules",
                f"FillColumn never computes {min(fills - computed)!r}: leave it out of the rows of a table of "
                "tables(), and set expected=",
            )

    def test_rows_that_are_dropped_are_the_right_ones(self, tmp_path: Path) -> None:
        for made in self.made_tables(tmp_path):
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
        for made in self.made_tables(tmp_path):
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
        for made in self.made_tables(tmp_path):
            for hook, rule in self.rules_of(made):
                if not isinstance(rule, RowCheck):
                    continue
                breaking = made.example.breaking
                if rule.name not in breaking:
                    self.fault(
                        hook,
                        f"RowCheck {rule.name!r} was never seen to reject rows: pass tables() rows that break it, as "
                        f"breaking={{{rule.name!r}: rows}}",
                    )
                try:
                    made.append(breaking[rule.name])
                except ConstraintViolationError as e:
                    assert rule.name in str(e), f"Hook {hook} of plugin {self.name!r}: {e}"
                else:
                    self.fault(
                        hook, f"RowCheck {rule.name!r} accepts rows that break it: {breaking[rule.name].to_pylist()}"
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

    def test_verify_finds_nothing_in_right_tables(self, tmp_path: Path) -> None:
        for made in self.made_tables(tmp_path):
            steps: dict[str, Callable[[], None]] = {
                "after rows were written": lambda: None,
                "after rows were replaced and others moved": made.move,
                "after a checkpoint was written": made.checkpoint,
            }
            for when, run in steps.items():
                with self.step("replacing rows, or writing a checkpoint"):
                    run()
                with self.step("verifying a table that is right (hook check_table)"):
                    found = made.findings()
                if found:
                    self.fault("check_table", f"verify finds faults {when}, expected none: {found}")

    def test_checks_of_files_take_nulls(self, tmp_path: Path) -> None:
        for made in self.made_tables(tmp_path):
            for check in made.snapshot.plugins.collect("check_table", table=made.snapshot.state):
                if not isinstance(check, FileCheck) or check.feature != self.name:
                    continue
                files = columns_of_check(made.snapshot, check)
                for i, field in enumerate(files.schema):
                    if field.name not in _NEVER_NULL:
                        files = files.set_column(i, field, pa.nulls(len(files), field.type))
                try:
                    list(check.find(files))
                except Exception as e:  # noqa: BLE001  (the plugin's)
                    self.fault(
                        "check_table",
                        f"FileCheck.find failed for files without values of {', '.join(check.columns)}, which other "
                        f"writers may leave out: {type(e).__name__}: {e}",
                    )

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
        for made in self.made_tables(tmp_path):
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

    def _check_files_added_again(self, made: MadeTable) -> None:
        """Check that a live file which is added again keeps its fields, or gets other values, and its rows."""
        before = made.fields()
        with self.step("committing live files once more (their ``fresh`` is false)"):
            made.add_again()
        after = made.fields()
        lost = [name for (path, name), value in before.items() if value is not None and after.get((path, name)) is None]
        if lost:
            self.fault(
                "commit_rules",
                f"add.{lost[0]} of a live file becomes null when the file is added again: keep the value that "
                "attempt.adds has where ``fresh`` is false",
            )
        self._check_rows(made, "after live files were added again")

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
