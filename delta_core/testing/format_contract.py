"""FormatContract: what every format of tables keeps. Subclass it in the format's tests."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import Struct
from msgspec.structs import replace

from delta_core.cli.app import COMMANDS
from delta_core.engines.opening import make_engine
from delta_core.errors import ColumnNotFoundError, DeltaError, VersionNotFoundError
from delta_core.expressions.filters import to_expression
from delta_core.formats import FormatTable, SplitTable, TableFormat
from delta_core.scan.rows import PlannedRows

__all__ = ["FormatContract", "FormatExample"]


class FormatExample(Struct, frozen=True):
    """A table of a format, and the rows that it has.

    Parameters
    ----------
    uri : str
        The table.
    rows : pyarrow.Table
        All rows of its latest version, in any order.
    predicate : str, optional
        Over its columns.
    selected : pyarrow.Table, optional
        The rows for which it is true.
    options : Mapping
        Of `TableFormat.open`.
    """

    uri: str
    rows: pa.Table
    predicate: str | None = None
    selected: pa.Table | None = None
    options: Mapping[str, Any] = {}


class _Calls:
    """A storage that counts calls."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._storage, name)
        if not callable(found) or name in ("local_path", "local_paths", "uri"):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self.names.append(name)
            return found(*arguments, **options)

        return call


class FormatContract:
    """Tests that a format recognises its tables and no others, and that its versions are read as every table is.

    A subclass has fixtures ``table_format``, the object of the entry point, and ``example``, a `FormatExample` with a
    ``predicate``, whose table is on a local disk. The tests of splits are skipped for a format that plans none.
    """

    @pytest.fixture
    def table(self, table_format: TableFormat, example: FormatExample) -> FormatTable:
        """Return the table as the format opens it."""
        return table_format.open(make_engine("arrow", example.uri, None), example.uri, **example.options)

    def _recognised(self, table_format: TableFormat, uri: str) -> bool:
        engine = make_engine("arrow", uri, None)
        calls = _Calls(engine.storage)
        found = table_format.recognise(replace(engine, storage=calls))
        assert len(calls.names) <= 1, f"recognise makes at most one listing, found {', '.join(calls.names)}"
        assert isinstance(found, bool), f"recognise returns a bool, found {found!r}"
        return found

    # --- recognised and opened ---

    def test_name_is_lower_case(self, table_format: TableFormat) -> None:
        assert table_format.name == table_format.name.lower()
        assert table_format.name not in ("", "delta")

    def test_own_table_is_recognised_by_one_listing(self, table_format: TableFormat, example: FormatExample) -> None:
        assert self._recognised(table_format, example.uri)

    def test_other_places_are_not_recognised(self, table_format: TableFormat, tmp_path: Path) -> None:
        (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
        (tmp_path / "delta" / "_delta_log" / f"{0:020}.json").write_text('{"commitInfo":{}}\n')
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "data.parquet").write_bytes(b"PAR1")
        for name in ("delta", "files", "missing"):
            assert not self._recognised(table_format, str(tmp_path / name)), name

    def test_unknown_option_is_a_type_error(self, table_format: TableFormat, example: FormatExample) -> None:
        with pytest.raises(TypeError, match="no_such_option"):
            table_format.open(make_engine("arrow", example.uri, None), example.uri, no_such_option=1)

    def test_version_that_is_not_there_is_an_error(self, table_format: TableFormat, example: FormatExample) -> None:
        with pytest.raises(VersionNotFoundError):
            table_format.open(make_engine("arrow", example.uri, None), example.uri, version=10**9)

    def test_version_is_opened_by_its_number(
        self, table_format: TableFormat, example: FormatExample, table: FormatTable
    ) -> None:
        engine = make_engine("arrow", example.uri, None)
        assert table_format.open(engine, example.uri, version=table.version).version == table.version

    def test_table_names_its_format_and_place(
        self, table_format: TableFormat, example: FormatExample, table: FormatTable
    ) -> None:
        assert (table.format_name, table.uri) == (table_format.name, example.uri)

    # --- rows ---

    def test_scan_returns_all_rows(self, example: FormatExample, table: FormatTable) -> None:
        scan = table.scan()
        assert isinstance(scan, PlannedRows)
        assert _values(scan.to_table()) == _values(example.rows)
        assert scan.schema.names == [f.name for f in table.schema.members]

    def test_scan_can_be_read_again_and_streamed(self, example: FormatExample, table: FormatTable) -> None:
        scan = table.scan()
        batches = list(scan.batches())
        assert all(b.schema.names == scan.schema.names and b.schema.types == scan.schema.types for b in batches)
        assert sum(b.num_rows for b in batches) == scan.to_table().num_rows == example.rows.num_rows

    def test_scan_has_the_requested_columns_in_their_order(self, example: FormatExample, table: FormatTable) -> None:
        names = list(reversed(example.rows.column_names))
        found = table.scan(names).to_table()
        assert found.column_names == names
        assert _values(found) == _values(example.rows.select(names))

    def test_scan_of_no_column_has_the_number_of_rows(self, example: FormatExample, table: FormatTable) -> None:
        assert sum(b.num_rows for b in table.scan([]).batches()) == example.rows.num_rows

    def test_predicate_selects_rows_and_may_name_columns_that_are_not_requested(
        self, example: FormatExample, table: FormatTable
    ) -> None:
        assert example.predicate is not None and example.selected is not None, "the example needs a predicate"
        assert 0 < example.selected.num_rows < example.rows.num_rows, "the predicate has to select some rows"
        assert _values(table.scan(predicate=example.predicate).to_table()) == _values(example.selected)
        for name in example.rows.column_names:
            found = table.scan([name], predicate=example.predicate).to_table()
            assert _values(found) == _values(example.selected.select([name]))

    def test_counts_equal_the_rows(self, example: FormatExample, table: FormatTable) -> None:
        assert table.scan().count() == example.rows.num_rows
        assert example.selected is not None
        assert table.scan(predicate=example.predicate).count() == example.selected.num_rows

    def test_limit_is_exact(self, example: FormatExample, table: FormatTable) -> None:
        for limit in (0, 1, example.rows.num_rows - 1, example.rows.num_rows + 1):
            expected = min(limit, example.rows.num_rows)
            scan = table.scan(limit=limit)
            assert (scan.to_table().num_rows, scan.count()) == (expected, expected)

    def test_unknown_columns_are_rejected_by_name(self, table: FormatTable) -> None:
        for arguments in ({"columns": ["no_such_column"]}, {"predicate": "no_such_column = 1"}):
            with pytest.raises(ColumnNotFoundError, match="no_such_column"):
                table.scan(**arguments)
        with pytest.raises(DeltaError, match="no_such_metadata"):
            table.scan(metadata=["no_such_metadata"])

    def test_explain_reports_the_predicate(self, example: FormatExample, table: FormatTable) -> None:
        assert str(table.scan(predicate=example.predicate).explain())

    # --- facts ---

    def test_history_is_newest_first_up_to_the_version(self, table: FormatTable) -> None:
        versions = [entry["version"] for entry in table.history()]
        assert versions == sorted(versions, reverse=True)
        assert versions[:1] == [table.version]
        assert [e["version"] for e in table.history(limit=1)] == [table.version]

    def test_description_is_json(self, table: FormatTable) -> None:
        assert json.loads(json.dumps(table.describe()))

    def test_files_are_tables(self, table: FormatTable) -> None:
        assert table.file_table().num_rows > 0
        assert {"file", "kind", "size"} <= set(table.version_files().column_names)

    def test_commands_exist(self, table: FormatTable) -> None:
        unknown = set(table.commands) - set(COMMANDS)
        assert not unknown, f"commands that do not exist: {', '.join(sorted(unknown))}"
        others = set(table.changes) - set(table.commands)
        assert not others, f"changes that are no commands: {', '.join(sorted(others))}"

    def test_pickled_table_is_the_same_version(self, example: FormatExample, table: FormatTable) -> None:
        again = pickle.loads(pickle.dumps(table))  # noqa: S301  # our own bytes
        assert again.version == table.version
        assert _values(again.scan().to_table()) == _values(example.rows)

    # --- splits, of formats that offer them ---

    @pytest.fixture
    def split_table(self, table_format: TableFormat, table: FormatTable) -> SplitTable:
        """Return the table, if the format plans splits."""
        if getattr(table_format, "split_options", None) is None:
            pytest.skip("the format plans no splits")
        found: Any = table
        return found  # type: ignore[no-any-return]

    def test_split_options_are_options_of_open(
        self, table_format: TableFormat, split_table: SplitTable, example: FormatExample
    ) -> None:
        options: Mapping[str, type] = getattr(table_format, "split_options")  # noqa: B009 (the protocol has it not)
        assert table_format.name.isidentifier()
        assert set(options.values()) <= {int, str}
        wrong = {int: 10**9, str: "no such thing"}
        for name, kind in options.items():
            try:
                table_format.open(make_engine("arrow", example.uri, None), example.uri, **{name: wrong[kind]})
            except DeltaError:
                continue

    def test_pinned_options_open_this_version_in_another_process(
        self, table_format: TableFormat, split_table: SplitTable, example: FormatExample
    ) -> None:
        assert "version" in split_table.pinned, "without a version, a process opens what is the latest one then"
        again, pinned = pickle.loads(pickle.dumps((table_format, split_table.pinned)))  # noqa: S301  # our own bytes
        opened = again.open(make_engine("arrow", example.uri, None), example.uri, **pinned)
        assert opened.version == split_table.version

    def test_splits_hold_each_row_once(self, split_table: SplitTable, example: FormatExample) -> None:
        for split_bytes in (1, 1 << 12, 1 << 40):
            splits = split_table.plan_splits(split_bytes)
            assert splits.schema.field("size_bytes").type == pa.int64()
            found = [split_table.scan_split(split).to_table() for split in splits.to_pylist()]
            assert _values(pa.concat_tables(found)) == _values(example.rows)
            counted = [split_table.scan_split(split).count() for split in splits.to_pylist()]
            assert counted == [t.num_rows for t in found]

    def test_splits_have_columns_and_predicates_of_scans(self, split_table: SplitTable, example: FormatExample) -> None:
        assert example.predicate is not None and example.selected is not None, "the example needs a predicate"
        predicate = to_expression(example.predicate, split_table.schema)
        splits = split_table.plan_splits(1 << 12, predicate).to_pylist()
        for columns in (None, [], *([n] for n in example.rows.column_names)):
            expected = example.selected if columns is None else example.selected.select(columns)
            scan = split_table.scan(columns, predicate=predicate)
            scans = [split_table.scan_split(s, columns, predicate=predicate) for s in splits]
            assert all(s.schema == scan.schema for s in scans)
            assert sum(s.count() for s in scans) == expected.num_rows
            if columns != []:
                assert _values(pa.concat_tables(s.to_table() for s in scans)) == _values(expected)


def _values(rows: pa.Table) -> list[Any]:
    """Return the rows in an order of their own."""
    found: Sequence[Any] = rows.to_pylist()
    return sorted(found, key=repr)
