"""Tables of many small files: read many at a time, with the rows, places and errors of a read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.records import FileRead
from delta_core.errors import DataFileError, DataFileNotFoundError, ExpressionError
from delta_core.kernel.scan.apply import CompiledPlan
from delta_core.parquet import columns, data_files, joined_files
from delta_core.parquet.data_files import ArrowDataFiles
from delta_core.schema.types import Field, PrimitiveType, StructType
from delta_core.storage.local import LocalStorage
from delta_core.testing.table_builder import TableBuilder

FILES, ROWS = 30, 7


def rows_of(k: int) -> list[dict[str, Any]]:
    return [
        {"id": k * ROWS + i, "name": None if i == 3 else f"n{i}", "value": i / 2, "part": f"p{k % 3}"}
        for i in range(ROWS)
    ]


COLUMNS = {"id": "long", "name": "string", "value": "double", "part": "string"}
METADATA = ["_file_path", "_file_row_index"]


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(tmp_path / "t").create(COLUMNS, partition_by=["part"], features=["deletionVectors"])
    for k in range(FILES):
        builder.append(rows_of(k))
    return builder


@pytest.fixture
def table(tmp_path: Path, builder: TableBuilder) -> Path:
    return tmp_path / "t"


def by_itself(monkeypatch: pytest.MonkeyPatch, root: Path, **scan: Any) -> pa.Table:
    """Read with each file by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(joined_files, "SMALL_BYTES", -1)
        patch.setattr(joined_files, "MEDIUM_FILES", 1000)
        return DeltaTable(root).snapshot().scan(**scan).to_table()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of files that PyArrow opened."""
    found: list[int] = []
    file = data_files._Job.file
    monkeypatch.setattr(
        data_files._Job, "file", lambda self, index, *a, **k: found.append(index) or file(self, index, *a, **k)
    )
    return found


@pytest.mark.parametrize(
    "scan",
    [
        {},
        {"columns": ["id"]},
        {"columns": ["part"]},
        {"metadata": METADATA},
        {"predicate": "id % 5 = 2"},
        {"predicate": "part = 'p1' or id < 9"},
        {"predicate": "name is null", "columns": ["value"], "metadata": METADATA},
        {"limit": 40},
    ],
    ids=str,
)
def test_rows_and_places_are_those_of_files_read_by_themselves(
    table: Path, monkeypatch: pytest.MonkeyPatch, scan: dict[str, Any]
) -> None:
    expected = by_itself(monkeypatch, table, **scan)
    assert DeltaTable(table).snapshot().scan(**scan).to_table().equals(expected)
    assert expected.num_rows


def test_one_file_is_opened_by_pyarrow(table: Path, opened: list[int]) -> None:
    found = DeltaTable(table).snapshot().scan().to_table()
    assert found.num_rows == FILES * ROWS
    assert len(opened) <= 2  # an example: each thread may take one at once
    assert found.column("id").num_chunks <= 4


def test_batches_are_cut_to_the_rows_that_a_batch_may_have(table: Path) -> None:
    files = DeltaTable(table).snapshot().scan().files()
    paths, sizes = files.column("path").to_pylist(), files.column("size").to_pylist()
    columns = StructType([Field("id", PrimitiveType("long"))])
    ends_seen: list[int] = []

    def together(first: int, ends: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
        ends_seen.extend(ends.tolist())
        return batch

    read = FileRead(paths, sizes, columns, "name", pa.schema({"id": pa.int64()}), batch_rows=10, apply_files=together)
    batches = list(ArrowDataFiles(LocalStorage(str(table))).read(read, lambda file, first, batch, *_: batch))
    assert max(b.num_rows for b in batches) <= 10
    assert sorted(v for b in batches for v in b.column(0).to_pylist()) == list(range(FILES * ROWS))
    assert set(ends_seen) == {7, 14}


@pytest.mark.parametrize(
    "scan", [{}, {"metadata": METADATA}, {"predicate": "value >= 1"}, {"columns": ["part"]}], ids=str
)
def test_vectors_drop_rows_of_their_files(
    table: Path, monkeypatch: pytest.MonkeyPatch, scan: dict[str, Any], builder: TableBuilder
) -> None:
    builder.delete_rows(lambda row: row["id"] % 11 == 0 or 50 <= row["id"] < 60)
    expected = by_itself(monkeypatch, table, **scan)
    assert DeltaTable(table).snapshot().scan(**scan).to_table().equals(expected)
    assert 0 < expected.num_rows < FILES * ROWS


def test_files_of_other_columns_and_codecs_are_read_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "t"
    write_deltalake(root, pa.table({"id": [0], "x": ["a"]}))
    for k in range(1, 20):
        rows = pa.table({"id": [k], "x": [str(k)]})
        if k % 7 == 0:
            rows = rows.append_column("y", pa.array([k * 1.5]))
        write_deltalake(root, rows, mode="append", schema_mode="merge")
    expected = by_itself(monkeypatch, root, metadata=METADATA)
    assert DeltaTable(root).snapshot().scan(metadata=METADATA).to_table().equals(expected)
    assert expected.num_rows == 20


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for k in range(20):
        write_deltalake(root, pa.table({"id": [k]}), mode="append")
    table = DeltaTable(root)
    path = Path(table.file_uris()[7])
    content = path.read_bytes()
    path.write_bytes(content[:-4] + b"PARX")
    with pytest.raises(DataFileError, match=path.name):
        table.snapshot().scan().to_table()
    path.unlink()
    with pytest.raises(DataFileNotFoundError, match=path.name):
        table.snapshot().scan().to_table()


def test_null_in_a_column_that_has_none_names_the_file(tmp_path: Path) -> None:
    root = tmp_path / "t"
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    for k in range(20):
        write_deltalake(root, pa.table({"id": [k]}, schema=schema), mode="append")
    table = DeltaTable(root)
    path = Path(table.file_uris()[5])
    rows = pa.table({"id": pa.array([None], pa.int64())})
    pq.write_table(rows, path, store_schema=False)
    with pytest.raises(DataFileError, match=path.name):
        table.snapshot().scan().to_table()


@pytest.mark.parametrize("names", [["id", "name", "value"], ["name"], ["other"], []], ids=str)
def test_files_of_alternating_layouts_are_read_together_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int], names: list[str]
) -> None:
    types: dict[str, Any] = {"id": pa.int64(), "name": pa.string(), "value": pa.float64(), "other": pa.int32()}
    for k in range(FILES):
        rows = {"id": [k * 10 + i for i in range(k % 4)], "name": [f"n{i}" if i else None for i in range(k % 4)]}
        more = {"value": [i / 2 for i in range(k % 4)]} if k % 3 else {}
        columns = {n: pa.array(v, types[n]) for n, v in (rows | more).items()}
        pq.write_table(pa.table(columns), tmp_path / f"{k}.parquet", row_group_size=2)
    paths = [f"{k}.parquet" for k in range(FILES)]
    sizes = [(tmp_path / p).stat().st_size for p in paths]
    logical = {pa.int64(): "long", pa.string(): "string", pa.float64(): "double", pa.int32(): "integer"}
    columns = StructType([Field(n, PrimitiveType(logical[types[n]])) for n in names])
    places: list[tuple[int, int]] = []

    def together(first: int, ends: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
        places.extend((first + i, int(end)) for i, end in enumerate(ends))
        return batch

    def read() -> pa.Table:
        schema = pa.schema({n: types[n] for n in names})
        request = FileRead(paths, sizes, columns, "name", schema, apply_files=together)
        files = ArrowDataFiles(LocalStorage(str(tmp_path)))
        return pa.Table.from_batches(files.read(request, lambda file, first, batch, *_: batch), schema)

    found = read()
    assert len(opened) <= 6  # an example of each layout, in each thread
    assert len(places) + len(set(opened)) >= FILES
    with monkeypatch.context() as patch:
        patch.setattr(joined_files, "SMALL_BYTES", -1)
        patch.setattr(joined_files, "MEDIUM_FILES", 1000)
        expected = read()
    assert found.equals(expected)
    assert found.num_rows == sum(k % 4 for k in range(FILES))


# --- rows that pass, of files that are not small and of those that are --------------------------

SIZES = pytest.mark.parametrize("least_size", [-1, 256 << 10], ids=["medium", "small"])


@pytest.fixture
def medium(table: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table; none of its files is small enough to be read whole."""
    monkeypatch.setattr(joined_files, "SMALL_BYTES", -1)
    return table


@SIZES
@pytest.mark.parametrize(
    "scan",
    [
        {"predicate": "id > 20 and id < 190"},
        {"predicate": "id > 20 and id < 190", "columns": ["name"]},
        {"predicate": "name in ('n1', 'n4')", "columns": ["value", "part"]},
        {"predicate": "name is null"},
        {"predicate": "name like 'n%' and value > 1 and id > 9", "columns": []},
        {"predicate": "value < 1 and part = 'p2'"},
        {"predicate": "value < -1"},
        {"predicate": "id % 5 = 2"},
        {"predicate": "id % 5 = 2", "columns": ["name"]},
        {"predicate": "part = 'p1' or id < 9"},
        {"predicate": "id > 20 and upper(name) <> 'N1' and value > 0", "columns": ["part"]},
        {"predicate": "id % 5 = 2 and upper(name) <> 'N1' and abs(value) > 0.5"},
        {"predicate": "part || name = 'p1n2' and id % 2 = 0", "columns": ["name", "id"]},
        {"predicate": "value * 2 > -1"},
        {"predicate": "value * 2 < -1"},
        {"predicate": "id % 5 = 2 and id - 1 < 30", "columns": ["part", "id"]},
        {"predicate": "id % 5 = 2", "columns": []},
        {},
        {"columns": ["part", "name"]},
        {"columns": []},
    ],
    ids=str,
)
def test_passing_rows_are_those_of_files_read_by_themselves(
    table: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int], scan: dict[str, Any], least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    found = DeltaTable(table).snapshot().scan(**scan).to_table()
    # the last one may be left alone, or be the example of each thread
    assert len(opened) <= 2
    expected = by_itself(monkeypatch, table, **scan)
    assert found.equals(expected)
    assert bool(opened) == ("value < -1" not in scan.get("predicate", ""))


@pytest.fixture
def evolved(tmp_path: Path) -> Path:
    """A table whose older files lack a column, and store another as int32."""
    root = tmp_path / "t"
    for k in range(FILES):
        ids = pa.array([k * 4 + i for i in range(4)], pa.int32() if k < 15 else pa.int64())
        rows = pa.table({"id": ids, "name": [f"n{i}" for i in range(4)]})
        if k >= 10:
            rows = rows.append_column("extra", pa.array([None, 1.5, 2.5, float(k)]))
        if k == 15:
            table = DeltaTable(root)
            table.alter.set_table_properties({"delta.enableTypeWidening": "true"})
            table.alter.widen_type("id", "long")
        write_deltalake(root, rows, mode="append", schema_mode="merge")
    return root


@pytest.mark.parametrize(
    ("predicate", "count"),
    [
        ("extra > 2", 2 * 20),
        ("extra is null", 10 * 4 + 20),
        ("extra is not null and name <> 'n1'", 2 * 20),
        ("extra > 2 or name = 'n1'", 10 + 3 * 20),
        ("not (extra > 2) or extra is null", 10 * 4 + 2 * 20),
        ("extra <=> null and id < 44", 10 * 4 + 1),
        ("id >= 38 and id < 62", 24),
        ("id = 7 or id = 118", 2),
        ("id + 0 < 8", 8),
        ("id % 3 = 0 and upper(name) <> 'N9'", 40),
        ("coalesce(extra, 0) * 2 > 4", 2 * 20),
        ("extra * 2 > 4 or extra * 2 is null", 10 * 4 + 3 * 20),
    ],
)
def test_rows_of_files_that_lack_a_column_or_store_narrower_values_pass_together(
    evolved: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int], predicate: str, count: int
) -> None:
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    scan = {"predicate": predicate}
    found = DeltaTable(evolved).snapshot().scan(**scan).to_table()
    assert len(opened) <= 6  # an example of each layout, in each thread
    assert found.num_rows == count
    assert found.equals(by_itself(monkeypatch, evolved, **scan))


@pytest.mark.parametrize(
    "scan",
    [
        {"metadata": METADATA},
        {"limit": 40},
        {"predicate": "id % 5 = 2", "metadata": METADATA},
        {"predicate": "id > 3", "metadata": METADATA},
        {"predicate": "id > 3", "limit": 5},
        {"predicate": "id % 5 = 2", "limit": 5},
    ],
    ids=str,
)
def test_files_are_read_by_themselves_if_positions_or_limits_matter(
    medium: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int], scan: dict[str, Any]
) -> None:
    found = DeltaTable(medium).snapshot().scan(**scan).to_table()
    assert opened
    assert found.equals(by_itself(monkeypatch, medium, **scan))


DROPPING_SCANS: list[dict[str, Any]] = [
    {},
    {"columns": ["part", "name"]},
    {"columns": []},
    {"predicate": "id > 20"},
    {"predicate": "id > 20 and name is null"},
    {"predicate": "name in ('n1', 'n4')", "columns": ["value", "part"]},
    {"predicate": "id % 5 = 2 and upper(name) <> 'N1'"},
    {"predicate": "id % 5 = 2", "columns": ["part"]},
    {"predicate": "part || name = 'p1n2'"},
    {"predicate": "value > 1 and upper(name) <> 'N1'"},
    {"predicate": "value * 2 < -1"},
]


def dropped(row: dict[str, Any]) -> bool:
    """Rows of vectors: some of most files, whole files, and none of others."""
    return row["id"] % 11 == 0 or 50 <= row["id"] < 60


@SIZES
@pytest.mark.parametrize("scan", DROPPING_SCANS, ids=str)
def test_rows_that_vectors_drop_are_left_out_of_files_read_together(
    builder: TableBuilder,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: list[int],
    scan: dict[str, Any],
    least_size: int,
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    builder.delete_rows(dropped)
    found = DeltaTable(table).snapshot().scan(**scan).to_table()
    # what values can't test is left to files by themselves if rows are dropped
    is_mixed = scan.get("predicate") == "value > 1 and upper(name) <> 'N1'"
    assert len(opened) <= 2 or (is_mixed and least_size < 0)
    assert found.equals(by_itself(monkeypatch, table, **scan))


@SIZES
@pytest.mark.parametrize("statistics", [False, "wrong"])
@pytest.mark.parametrize("predicate", [None, "id > 20", "id % 5 = 2"])
def test_rows_that_vectors_drop_are_left_out_if_statistics_are_wrong_or_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicate: str | None, statistics: Any, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    builder = TableBuilder(tmp_path / "t").create(COLUMNS, partition_by=["part"], features=["deletionVectors"])
    for k in range(FILES):
        # no file has 70 or 3 rows: the vector of one reaches behind three, that of another drops just these
        told = {"numRecords": 70 if k % 2 else 3} if statistics == "wrong" and k % 5 == 0 else bool(statistics)
        builder.append(rows_of(k), statistics=told)
    builder.delete_rows(lambda row: dropped(row) or 70 <= row["id"] < 73)
    found = DeltaTable(tmp_path / "t").scan(predicate=predicate).to_table()
    monkeypatch.setattr(columns, "USES_OWN_DECODER", False)
    assert found.num_rows
    assert found.equals(DeltaTable(tmp_path / "t").scan(predicate=predicate).to_table())
    rows = [r for k in range(FILES) for r in rows_of(k) if not dropped(r) and not 70 <= r["id"] < 73]
    tests = {None: lambda v: True, "id > 20": lambda v: v > 20, "id % 5 = 2": lambda v: v % 5 == 2}
    expected = [r["id"] for r in rows if tests[predicate](r["id"])]
    assert sorted(found.column("id").to_pylist()) == expected


@SIZES
def test_vector_that_reaches_beyond_its_file_names_the_file(
    builder: TableBuilder, table: Path, monkeypatch: pytest.MonkeyPatch, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    path = builder.paths()[9]
    builder.delete_rows({path: [1, ROWS]})
    with pytest.raises(DataFileError, match=path.split("/")[-1]):
        DeltaTable(table).scan(predicate="id >= 0").to_table()


@SIZES
@pytest.mark.parametrize("predicate", ["value >= 0", "value * 2 >= 0"])
@pytest.mark.parametrize("fault", ["missing", "short", "damaged"])
def test_faults_of_files_with_passing_rows_are_named(
    table: Path, monkeypatch: pytest.MonkeyPatch, fault: str, predicate: str, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    snapshot = DeltaTable(table).snapshot()
    path = snapshot.files.columns(["path"])["path"][12].as_py()
    file = table / path
    data = file.read_bytes()
    if fault == "missing":
        file.unlink()
    else:
        file.write_bytes(data[:-1] if fault == "short" else data[:4] + bytes(len(data) - 40) + data[-36:])
    with pytest.raises(DataFileNotFoundError if fault == "missing" else DataFileError, match=path.split("/")[-1]):
        snapshot.scan(predicate=predicate).to_table()


@SIZES
def test_file_that_changes_between_its_two_reads_is_named(
    table: Path, monkeypatch: pytest.MonkeyPatch, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    snapshot = DeltaTable(table).snapshot()
    path = snapshot.files.columns(["path"])["path"][12].as_py()
    select = CompiledPlan.select_files

    def removing(self: CompiledPlan, *args: Any) -> Any:
        (table / path).unlink(missing_ok=True)
        return select(self, *args)

    monkeypatch.setattr(CompiledPlan, "select_files", removing)
    with pytest.raises(DataFileNotFoundError, match=path.split("/")[-1]):
        snapshot.scan(predicate="value * 2 >= 0").to_table()


@SIZES
def test_null_among_passing_rows_of_a_column_that_has_none_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
    builder = TableBuilder(tmp_path / "t").create(schema, features=[])
    for k in range(6):
        builder.append([{"id": k, "name": "a"}])
    path = builder.paths()[3]
    pq.write_table(pa.table({"id": [3], "name": pa.array([None], pa.string())}), tmp_path / "t" / path)
    with pytest.raises(DataFileError, match=path):
        DeltaTable(tmp_path / "t").scan(predicate="id >= 0").to_table()


FORMS = {
    "groups": {"row_group_size": 3},
    "no statistics": {"row_group_size": 3, "write_statistics": False},
    "index": {"write_page_index": True},
    "filter": {"bloom_filter_options": {"id": {"ndv": 10}}},
}


@pytest.mark.parametrize("predicate", ["id >= 3 and name like 'n%'", "id in (4, 12)", "name is null", None])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_files_of_several_row_groups_and_with_indexes_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int], form: dict[str, Any], predicate: str | None
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", -1)
    builder = TableBuilder(tmp_path / "t").create({"id": "long", "name": "string"})
    for k in range(6):
        rows = [{"id": k * 5 + i, "name": None if i == 3 else f"n{i + k}"} for i in range(5)]
        builder.append(rows, parquet=form, statistics=False)
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir())) if descriptors.exists() else 0
    found = DeltaTable(tmp_path / "t").snapshot().scan(predicate=predicate).to_table()
    assert not opened
    assert (len(list(descriptors.iterdir())) if descriptors.exists() else 0) == before
    expected = by_itself(monkeypatch, tmp_path / "t", predicate=predicate)
    assert found.equals(expected)
    assert len(opened) == 6
    assert found.num_rows


def test_large_chunks_with_an_index_are_tested_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int]
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", -1)
    monkeypatch.setattr(joined_files, "INDEXED_BYTES", 10)
    builder = TableBuilder(tmp_path / "t").create({"id": "long"})
    for k in range(6):
        builder.append([{"id": k * 5 + i} for i in range(5)], parquet={"write_page_index": True})
    rows = DeltaTable(tmp_path / "t").scan(predicate="id >= 3").to_table()
    assert sorted(rows.column("id").to_pylist()) == list(range(3, 30))
    assert len(opened) == 6


@pytest.mark.parametrize(("limit", "is_together"), [("TESTED_BYTES", True), ("WHOLE_BYTES", False)])
def test_larger_files_are_read_together_if_rows_are_tested(
    medium: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int], limit: str, is_together: bool
) -> None:
    monkeypatch.setattr(joined_files, limit, 0)
    found = DeltaTable(medium).snapshot().scan().to_table()
    assert (len(opened) < 2) == is_together
    opened.clear()
    assert DeltaTable(medium).snapshot().scan(predicate="id >= 0").to_table().equals(found)
    assert (len(opened) < 2) != is_together


@SIZES
@pytest.mark.parametrize("more", [{}, {"metadata": METADATA}, {"limit": 3}], ids=str)
@pytest.mark.parametrize("second", ["value = 0.25", "value = 0.2 + 0.05", "id + 0.5 = 3"])
def test_parts_of_a_filter_run_in_the_order_that_files_read_by_themselves_have(
    table: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], second: str, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    # no name can be cast; the parts with constants leave no row, and a calculation stays behind the cast
    scan = {"predicate": f"cast(name as int) > 0 and {second}", **more}
    if second.startswith("value"):
        assert not by_itself(monkeypatch, table, **scan).num_rows
        assert not DeltaTable(table).snapshot().scan(**scan).to_table().num_rows
        return
    with pytest.raises(ExpressionError, match="'n0'"):
        by_itself(monkeypatch, table, **scan)
    with pytest.raises(ExpressionError, match="'n0'"):
        DeltaTable(table).snapshot().scan(**scan).to_table()


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows a filter was evaluated for at once, by call; it is before other columns are read."""
    found: list[int] = []
    select = CompiledPlan.select_files
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    monkeypatch.setattr(CompiledPlan, "select_files", lambda self, *a: found.append(a[-1]) or select(self, *a))
    return found


@SIZES
@pytest.mark.parametrize("predicate", ["id >= 0", "id + 0 >= 0", None])
@pytest.mark.parametrize("num_records", [-5, 0, 4, 10**14, 1 << 62])
def test_numbers_of_rows_in_the_log_that_are_wrong_change_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicate: str | None, num_records: int, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    builder = TableBuilder(tmp_path / "t").create({"id": "long", "name": "string"}, features=["deletionVectors"])
    for k in range(6):
        rows = [{"id": i, "name": "x"} for i in range(5)]
        builder.append(rows, statistics={"numRecords": num_records} if k == 3 else True)
    builder.delete_rows({builder.paths()[0]: [1]})
    found = DeltaTable(tmp_path / "t").snapshot().scan(predicate=predicate).to_table()
    # statistics that report no row exclude that file for a comparison with a constant
    assert found.num_rows == (24 if num_records == 0 and predicate == "id >= 0" else 29)
    assert found.equals(by_itself(monkeypatch, tmp_path / "t", predicate=predicate))


def builder_of(root: Path, num_rows: Sequence[int], name: str = "x") -> TableBuilder:
    """A table of files with so many rows."""
    builder = TableBuilder(root).create({"id": "long", "name": "string"})
    schema = pa.schema({"id": pa.int64(), "name": pa.string()})
    files = [pa.table({"id": range(n), "name": [name] * n}, schema=schema) for n in num_rows]
    actions = [builder.add_actions(rows, statistics=False) for rows in files]
    return builder.commit(*(action for found in actions for action in found))


@SIZES
@pytest.mark.parametrize("most_bytes", [1, 16 << 20])
def test_files_without_rows_are_read_with_others_if_the_filter_is_evaluated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: list[int],
    evaluated: list[int],
    most_bytes: int,
    least_size: int,
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "EVALUATED_BYTES", most_bytes)
    builder_of(tmp_path / "t", [5, 0, 5, 5, 0, 0, 0])
    assert DeltaTable(tmp_path / "t").scan(predicate="id + 0 >= 0").to_table().num_rows == 15
    # the last one is a run by itself
    assert opened in ([], [6])
    assert evaluated


def test_filter_is_evaluated_for_few_rows_at_once_if_the_first_file_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: list[int]
) -> None:
    monkeypatch.setattr(joined_files, "EVALUATED_BYTES", 5000)
    builder_of(tmp_path / "t", [10, *([1000] * 20)])
    assert DeltaTable(tmp_path / "t").scan(predicate="id + 0 >= 0").to_table().num_rows == 20_010
    assert max(evaluated) < 2000


@SIZES
def test_strings_of_few_values_are_returned_in_batches_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: list[int], least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    # larger than what the filter needs of all files, and smaller than the strings of one
    monkeypatch.setattr(joined_files, "BATCH_BYTES", 200_000)
    monkeypatch.setattr(joined_files, "MEDIUM_BATCH_BYTES", 200_000)
    passing = CompiledPlan.passing_files
    returned: list[int] = []
    monkeypatch.setattr(
        CompiledPlan, "passing_files", lambda self, *a: returned.append(a[-1].num_rows) or passing(self, *a)
    )
    builder_of(tmp_path / "t", [1000] * 20, name="x" * 300)
    assert DeltaTable(tmp_path / "t").scan(predicate="id + 0 >= 0").to_table().num_rows == 20_000
    assert returned == [1000] * 20
    # few rows are evaluated twice
    assert sum(evaluated) <= 20_000 + 2 * 20_000


@SIZES
@pytest.mark.parametrize("predicate", ["id >= 0", "id + 0 >= 0", None])
def test_files_that_pyarrow_decodes_leave_others_to_be_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[int], predicate: str | None, least_size: int
) -> None:
    monkeypatch.setattr(joined_files, "SMALL_BYTES", least_size)
    monkeypatch.setattr(joined_files, "OTHERS_BYTES", 0)
    builder = builder_of(tmp_path / "t", [5, 5])
    compression = {"id": "snappy", "name": "brotli"}
    for codec in (compression, compression, compression, compression):
        builder.append([{"id": 1, "name": "y"}], parquet={"compression": codec})
    for k in range(20):
        # another layout
        builder.append([{"id": k, "name": "z"}], parquet={"store_schema": False})
    scan = {"predicate": predicate}
    found = DeltaTable(tmp_path / "t").snapshot().scan(**scan).to_table()
    assert len(opened) <= 4 + 4  # the former, and an example of each layout, in each thread
    assert found.equals(by_itself(monkeypatch, tmp_path / "t", **scan))
    assert found.num_rows == 34
