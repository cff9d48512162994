"""Functions of rows that Numba compiles: their values, their errors, and their calls by name in operations."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable, Schema, write_deltalake
from delta_core.api import PrimitiveType, TableFeature
from delta_core.errors import (
    ExpressionError,
    InvalidArgumentError,
    MissingDependencyError,
    PluginConflictError,
    PluginError,
    UnsupportedExpressionError,
)
from delta_core.expressions.row_functions import RowFunction, row_function
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.schema.types import Field

pytest.importorskip("numba", reason="numba is not installed")


@row_function(pa.string(), pa.string(), result=pa.int64())
def edit_distance(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    before = np.arange(m + 1)
    row = np.empty(m + 1, np.int64)
    for i in range(n):
        row[0] = i + 1
        for j in range(m):
            cost = 0 if a[i] == b[j] else 1
            row[j + 1] = min(before[j] + cost, before[j + 1] + 1, row[j] + 1)
        before[:] = row
    return before[m]


@row_function(pa.int32(), pa.float64(), pa.bool_(), result=pa.float64())
def weighted(count: Any, weight: Any, doubled: Any) -> Any:
    return count * weight * 2.0 if doubled else count * weight


@row_function(pa.date32(), pa.int64(), result=pa.date32())
def later(day: Any, days: Any) -> Any:
    return np.int32(day + days)


@row_function(pa.timestamp("us", "UTC"), result=pa.bool_())
def is_even_second(time: Any) -> Any:
    return time // 1_000_000 % 2 == 0


@row_function(pa.int64(), pa.int64(), result=pa.int64())
def quotient(a: Any, b: Any) -> Any:
    return a // b


@row_function(pa.string(), result=pa.int64())
def third_byte(text: Any) -> Any:
    return text[2]


def distance(a: str, b: str) -> int:
    """Return the distance of two texts' bytes, by recursion over what is left of them."""
    x, y = a.encode(), b.encode()
    rows = [list(range(len(y) + 1))]
    for i, p in enumerate(x):
        last = rows[-1]
        row = [i + 1]
        for j, q in enumerate(y):
            row.append(min(last[j] + (p != q), last[j + 1] + 1, row[j] + 1))
        rows.append(row)
    return rows[-1][-1]


TEXTS = st.lists(st.tuples(st.none() | st.text(max_size=8), st.none() | st.text(max_size=8)), max_size=20)


@given(TEXTS, st.integers(0, 3), st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
def test_texts_of_any_layout_and_any_part_of_an_array(
    pairs: list[tuple[str | None, str | None]], start: int, layout: pa.DataType
) -> None:
    left, right = (pa.array([p[side] for p in pairs], pa.string()).cast(layout)[start:] for side in (0, 1))
    expected = [None if a is None or b is None else distance(a, b) for a, b in pairs[start:]]
    assert edit_distance.arrays(left, right).to_pylist() == expected


def test_texts_of_a_dictionary() -> None:
    texts = pa.array(["ab", None, "abc", "ab"]).dictionary_encode()
    assert edit_distance.result([texts.type, pa.string()]) == pa.int64()
    assert edit_distance.arrays(texts, pa.array(["ab"] * 4)).to_pylist() == [0, None, 1, 0]


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.floats(-1e6, 1e6), st.none() | st.booleans()
        ),
        max_size=20,
    )
)
def test_numbers_and_booleans_with_nulls(rows: list[tuple[int | None, float | None, bool | None]]) -> None:
    columns = [pa.array([r[i] for r in rows], t) for i, t in enumerate((pa.int32(), pa.float64(), pa.bool_()))]
    expected = [None if None in r else float(r[0]) * r[1] * (2.0 if r[2] else 1.0) for r in rows]  # type: ignore[arg-type, operator]
    assert weighted.arrays(*columns).to_pylist() == pytest.approx(expected)


def test_dates_and_times() -> None:
    days = pa.array([0, 19_000, None], pa.date32())
    assert later.arrays(days, pa.array([1, -1, 5])) == pa.array([1, 18_999, None], pa.date32())
    times = pa.array([0, 1_000_000, 2_500_000, None], pa.timestamp("us", "UTC"))
    assert is_even_second.arrays(times).to_pylist() == [True, False, True, None]


def test_narrower_numbers_are_widened_and_others_are_rejected() -> None:
    assert quotient.result([pa.int8(), pa.null()]) == pa.int64()
    assert quotient.arrays(pa.array([7], pa.int8()), pa.array([2])).to_pylist() == [3]
    for wrong in ([pa.float64(), pa.int64()], [pa.uint64(), pa.int64()], [pa.int64()], [pa.string(), pa.int64()]):
        with pytest.raises(TypeError, match=r"expected \(int64, int64\)"):
            quotient.result(wrong)


def test_python_calls_the_function_itself() -> None:
    assert quotient(7, 2) == 3


def test_errors_of_a_row_name_the_function() -> None:
    with pytest.raises(ExpressionError, match="The function quotient failed with ZeroDivisionError"):
        quotient.arrays(pa.array([1, 2]), pa.array([1, 0]))
    with pytest.raises(ExpressionError, match="The function third_byte failed with IndexError"):
        third_byte.arrays(pa.array(["abc", "ab"]))


def test_null_rows_are_not_computed() -> None:
    assert quotient.arrays(pa.array([1, None]), pa.array([1, 0])).to_pylist() == [1, None]


def halves(value: Any) -> Any:
    return value / 2


def joined(text: Any) -> Any:
    return text.missing()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (RowFunction(halves, (pa.int64(),), pa.int64(), True), r"halves returns float64, expected a value of int64"),
        (RowFunction(halves, (pa.float64(),), pa.float32(), True), r"returns float64, expected a value of float"),
        (RowFunction(joined, (pa.string(),), pa.int64(), True), r"Numba can't compile .*joined"),
    ],
    ids=["float for an integer", "a wider float", "unknown method"],
)
def test_functions_that_can_not_be_used_are_rejected_each_time(function: RowFunction, expected: str) -> None:
    array = pa.nulls(1, function._arguments[0])
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match=expected):
            function.arrays(array)


@pytest.mark.parametrize(
    ("arguments", "result", "expected"),
    [
        ([pa.int64(), pa.int64()], pa.int64(), "found 2 types"),
        ([], pa.int64(), "found 0 types"),
        ([pa.decimal128(3)], pa.int64(), r"argument of type decimal128\(3, 0\)"),
        ([pa.list_(pa.int64())], pa.int64(), "argument of type list"),
        ([pa.int64()], pa.string(), "result type string"),
    ],
    ids=str,
)
def test_declarations_that_do_not_fit_are_rejected(
    arguments: list[pa.DataType], result: pa.DataType, expected: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=expected):
        row_function(*arguments, result=result)(halves)


def test_a_missing_numba_is_reported_when_the_expression_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    function = RowFunction(halves, (pa.int64(),), pa.float64(), True)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingDependencyError, match=r"delta-core-lake\[numba\]"):
        function.result([pa.int64()])


def test_pickles_hold_the_name_alone() -> None:
    assert pickle.loads(pickle.dumps(quotient)) is quotient
    function = pickle.loads(pickle.dumps(quotient.as_function()))
    assert function.arrays(pa.array([9]), pa.array([2])).to_pylist() == [4]


# --- by name in operations ---

NAMES = ["Oslo", "Olso", "Bergen", None]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3, 4], "name": NAMES}))
    functions = PluginRegistry(functions=[edit_distance.as_function(), quotient.as_function()])
    return DeltaTable(tmp_path / "t", plugins=functions)


def test_scans_select_by_it(table: DeltaTable) -> None:
    assert table.scan(["id"], "edit_distance(name, 'Oslo') <= 2").to_table().to_pydict() == {"id": [1, 2]}


def test_rows_are_changed_by_it(table: DeltaTable) -> None:
    new = {"name": "'Oslo'", "id": "id + edit_distance(name, 'Oslo')"}
    table.update(new, predicate="edit_distance(name, 'Oslo') = 2")
    merge = table.merge(pa.table({"name": ["Bergun"], "id": [30]}), "edit_distance(target.name, source.name) = 1")
    merge.when_matched_update({"id": "source.id"}).execute()
    assert sorted(table.to_pyarrow_table().to_pylist(), key=str) == [
        {"id": 1, "name": "Oslo"},
        {"id": 30, "name": "Bergen"},
        {"id": 4, "name": "Oslo"},
        {"id": 4, "name": None},
    ]
    assert table.delete("edit_distance(name, 'Oslo') = 0")["num_deleted_rows"] == 2


@pytest.mark.parametrize(
    "predicate",
    [
        "quotient(p, 2) = 1",
        "coalesce(quotient(p, 2), 0) = 1",
        "not (quotient(p, 2) <> 1)",
        "quotient(p, 2) + id * 0 = 1",
    ],
)
def test_partition_columns_are_arguments(tmp_path: Path, predicate: str) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3, 4], "p": [1, 2, 3, None]}), partition_by=["p"])
    table = DeltaTable(tmp_path / "t", plugins=PluginRegistry(functions=[quotient.as_function()]))
    assert sorted(table.scan(["id"], predicate).to_table()["id"].to_pylist()) == [2, 3]
    assert table.scan(predicate=predicate).count() == 2
    write_deltalake(table, pa.table({"id": [9], "p": [3]}), mode="overwrite", predicate=predicate)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 4, 9]
    assert table.delete(predicate)["num_deleted_rows"] == 1


def test_a_case_guards_rows_for_which_it_fails(table: DeltaTable) -> None:
    with pytest.raises(ExpressionError, match="ZeroDivisionError"):
        table.scan(predicate="quotient(6, id - 1) > 2").to_table()
    guarded = "case when id > 1 then quotient(6, id - 1) > 2 else false end"
    assert table.scan(["id"], guarded).to_table().to_pydict() == {"id": [2, 3]}


def test_expressions_that_a_table_stores_can_not_call_it(table: DeltaTable) -> None:
    before = table.version()
    with pytest.raises(UnsupportedExpressionError, match="'edit_distance' is not known here"):
        table.alter.add_constraint({"near": "edit_distance(name, 'Oslo') < 9"})
    assert table.version() == before
    with pytest.raises(UnsupportedExpressionError, match="'edit_distance' is not known here"):
        DeltaTable(table.table_uri).delete("edit_distance(name, 'Oslo') = 0")


def test_arguments_of_other_types_are_rejected(table: DeltaTable) -> None:
    with pytest.raises(PluginError, match=r"rejected \(BIGINT, STRING\): expected \(string, string\)"):
        table.delete("edit_distance(id, 'Oslo') = 0")


@pytest.mark.parametrize("name", ["abs", "Distance"])
def test_names_of_built_in_functions_and_capitals_are_rejected(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"named '{name}'"):
        PluginRegistry(functions=[quotient.as_function(name)])


def test_two_functions_of_one_name_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="named 'quotient'"):
        PluginRegistry(functions=[quotient.as_function(), quotient.as_function()])
    with pytest.raises(InvalidArgumentError, match=r"row_function\(\.\.\.\)\.as_function"):
        PluginRegistry(functions=[quotient])  # type: ignore[list-item]


class Distances:
    """A plugin whose feature lets tables store the function."""

    FEATURE = TableFeature("test.distances", "writer", "Expressions can measure the distance of texts.")

    @staticmethod
    def functions(features: frozenset[str]) -> list[Any]:
        return [edit_distance.as_function(feature="test.distances", spark="levenshtein({0}, {1})")]


def hooks() -> type[Distances]:
    from delta_core.api import hookimpl

    Distances.functions = staticmethod(hookimpl(Distances.functions))  # type: ignore[method-assign]
    return Distances


def test_generated_columns_call_it_by_a_feature(tmp_path: Path) -> None:
    registry = PluginRegistry([hooks()])
    columns = Schema(
        [
            Field("name", PrimitiveType("string")),
            Field("off", PrimitiveType("long"), metadata={"delta.generationExpression": "edit_distance(name, 'Oslo')"}),
        ]
    )
    table = DeltaTable.create(tmp_path / "t", columns, features=["test.distances"], plugins=registry)
    write_deltalake(table, pa.table({"name": NAMES}), mode="append")
    assert table.to_pyarrow_table()["off"].to_pylist() == [0, 2, 6, None]
    table.update({"name": "'Olso'"}, predicate="off = 6")
    assert sorted(table.to_pyarrow_table()["off"].to_pylist(), key=str) == [0, 2, 2, None]


def test_a_function_of_the_table_and_one_of_the_registry_with_one_name_conflict(tmp_path: Path) -> None:
    registry = PluginRegistry([hooks()])
    columns = Schema([Field("a", PrimitiveType("string"))])
    DeltaTable.create(tmp_path / "t", columns, features=["test.distances"], plugins=registry)
    both = PluginRegistry([hooks()], functions=[edit_distance.as_function()])
    table = DeltaTable(tmp_path / "t", plugins=both)
    with pytest.raises(PluginConflictError, match=r"'edit_distance' is defined by test\.distances"):
        table.scan(predicate="edit_distance(a, 'b') = 1").to_table()


def _adding(number: int) -> RowFunction:
    return row_function(pa.int64(), result=pa.int64())(lambda x: x + number)


def test_machine_code_of_another_function_of_the_same_name_is_not_used(tmp_path: Path) -> None:
    one, two = (row_function(pa.int64(), result=pa.int64())(f) for f in (lambda x: x + 1, lambda x: x + 2))
    assert [f.arrays(pa.array([0])).to_pylist() for f in (one, two)] == [[1], [2]]
    assert [_adding(n).arrays(pa.array([0])).to_pylist() for n in (3, 4)] == [[3], [4]]
    # each process defines one function of the module
    text = "".join(
        f"if n == {n}:\n"
        "    @row_function(pa.int64(), result=pa.int64())\n"
        "    def add(x):\n"
        f"        return x + {n}\n"
        for n in (5, 6)
    )  # fmt: skip
    head = "import os\nimport pyarrow as pa\nfrom delta_core.api import row_function\nn = int(os.environ['NUMBER'])\n"
    (tmp_path / "added.py").write_text(head + text)
    call = "import added, pyarrow as pa; print(added.add.arrays(pa.array([0]))[0])"
    for n in ("5", "6"):
        done = subprocess.run(
            [sys.executable, "-c", call],
            cwd=tmp_path,
            env={**os.environ, "NUMBER": n},
            capture_output=True,
            check=True,
            timeout=120,
        )
        assert done.stdout.split() == [n.encode()]


def test_an_integer_that_a_float_does_not_hold_is_named() -> None:
    function = row_function(pa.float64(), result=pa.float64())(lambda x: x)
    assert function.result([pa.int64()]) == pa.float64()
    with pytest.raises(ExpressionError, match=r"9007199254740993 not in range.* Cast it"):
        function.arrays(pa.array([2**53 + 1]))


FORK = """
import os, pyarrow as pa
from delta_core.expressions import row_functions
function = row_functions.row_function(pa.int64(), result=pa.int64())(lambda x: x * 3)
function.result([pa.int64()])
while function._loop is None and row_functions._COMPILING.acquire(False):
    row_functions._COMPILING.release()  # until the thread compiles
child = os.fork()
found = function.arrays(pa.array([2]))[0].as_py()
if not child:
    os._exit(found)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), found)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_process_forked_while_a_function_is_compiled_calls_it() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, check=True, timeout=120)
    assert done.stdout.split() == [b"6", b"6"]
