"""The part of `FeatureContract` about Spark: functions and rows that are the same there."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

from delta_core.engines.interface import Evaluator
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Column, Expression
from delta_core.expressions.binding import bind_typed
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.snapshot import open_context
from delta_core.schema.fields import Schema
from delta_core.testing.feature_tables import MadeTable, as_values
from delta_core.testing.function_calls import Compute, FunctionCall, calls_in, first_difference, possible_calls
from delta_core.testing.row_contract import RowContract

__all__ = ["SparkContract"]


class SparkContract(RowContract):
    """Tests that Spark computes and reads the same as the engine of this process."""

    def calls(self) -> list[str]:
        """Return calls of the plugin's functions over columns of `tables`, in Spark's SQL.

        Calls in rules are found without it, and functions of one to three numbers, texts or times. Both engines
        compute them for edge cases of the columns' types.
        """
        return []

    def test_templates_have_the_arguments_of_their_calls(self) -> None:
        own, functions = self._own_functions()
        for call in self._calls_of_rules([n for n, f in own.items() if f.spark], functions):
            count, template = len(call.expression.args), own[call.function].spark
            names = [f"a{i}" for i in range(count)]
            try:
                template.format(*names, arguments=", ".join(names))
            except (IndexError, KeyError, ValueError) as e:
                self.fault(
                    "functions",
                    f"Function.spark of {call.function!r} is {template!r}, which does not fit a call of {count} "
                    f"argument{'s' * (count != 1)}: {type(e).__name__}: {e}; expected {{0}}, {{1}} or {{arguments}}",
                )

    def test_functions_return_the_same_on_spark(self) -> None:
        own, functions = self._own_functions()
        if not own:
            return
        expressions = pytest.importorskip(
            "delta_core.engines.spark.expressions", reason="pyspark is not installed", exc_type=ImportError
        )
        evaluator: Evaluator = open_context("memory://contract", plugins=self.registry).log.engine.evaluator
        compute = functools.partial(_compute_on_spark, self.spark(), expressions.to_sql, evaluator, functions)
        examples = self._example_values()
        called = self._calls_of_rules(own, functions)
        for name in own:
            known = [c for c in called if c.function == name]
            calls = known or possible_calls(own[name], evaluator, functions, examples)
            faults = [self._difference(c, c.on_arrow(evaluator, functions), compute, examples) for c in calls]
            # a function that no rule calls may take more types on one engine
            found = [f for f in faults if f and (known or not f[0])]
            if not calls or (not known and all(faults) and not found):
                reason = f"{faults[0][1]}; " if faults and faults[0] else ""
                self.fault(
                    "functions",
                    f"{reason}function {name!r} could not be compared with Spark: return a call of it from calls(), or "
                    "name it in uncompared",
                )
            if found:
                self.fault("functions", found[0][1])

    def _own_functions(self) -> tuple[dict[str, Function], Mapping[str, Function]]:
        """Return the plugin's functions that are compared, and all that its tables have."""
        features = frozenset({self.feature.name})
        own = {f.name.lower(): f for f in self.alone().collect("functions", features=features)}
        return {n: f for n, f in own.items() if n not in self.uncompared}, own

    def _example_values(self) -> dict[pa.DataType, list[Any]]:
        """Return the values of the examples' columns, by type."""
        found: dict[pa.DataType, list[Any]] = {}
        for example in self.tables():
            for column in example.rows.columns:
                found.setdefault(column.type, []).extend(column.unique().to_pylist()[:20])
        return found

    def _calls_of_rules(self, own: Iterable[str], functions: Mapping[str, Function]) -> list[FunctionCall]:
        found: list[FunctionCall] = []
        with tempfile.TemporaryDirectory() as folder:
            for i, example in enumerate([] if self.not_written else self.tables()):
                with self.step("making the table"):
                    made = MadeTable(example, self.name, self.registry, Path(folder) / str(i))
                parts = ("expression", "encode", "decode")
                rules = [getattr(r, part, None) for _, r in self.rules_of(made) for part in parts]
                used = [e for e in rules if isinstance(e, get_args(Expression))]
                used += [to_expression(sql, made.snapshot.schema, functions) for sql in self.calls()]
                found += calls_in(used, made.snapshot.schema, {**made.snapshot.plugins.functions, **functions}, own)
        return list(dict.fromkeys(found))

    def _difference(
        self, call: FunctionCall, arrow: Compute, spark: Compute, examples: Mapping[pa.DataType, list[Any]]
    ) -> tuple[bool, str] | None:
        """Return whether one engine fails for a call, and a message of the first difference; None without one."""
        for extremes in (False, True):
            rows = call.arguments(examples, extremes=extremes)
            found = first_difference(call, rows, arrow, spark, failures=not extremes)
            if found is not None:
                arguments, here, there = found
                is_failure = isinstance(here, Exception) or isinstance(there, Exception)
                shown = [f"{type(v).__name__}: {v}" if isinstance(v, Exception) else repr(v) for v in (here, there)]
                return is_failure, (
                    f"function {call.function!r} returns {shown[0]} on Arrow and {shown[1]} on Spark for "
                    f"{list(arguments.values())}: Function.arrays and Function.spark must be the same function"
                )
        return None

    def test_rows_are_the_same_on_spark(self, tmp_path: Path) -> None:
        examples = [] if self.not_written else self.tables()
        if not examples:
            return
        delta = pytest.importorskip("delta_core.spark", reason="pyspark is not installed", exc_type=ImportError)
        session = self.spark()
        for i, example in enumerate(examples):
            made = self.make(example, tmp_path / str(i))
            for moved in (False, True):
                if moved:
                    with self.step("replacing some rows with Spark"):
                        made.move_on_spark(delta, session)
                    self._check_rows(made, "after Spark replaced rows and moved others")
                with self.step("reading with Spark"):
                    names = tuple(c.name for c in made.metadata_columns())
                    found = made.read_on_spark(delta, session, metadata=names)
                here = self._read(made, functools.partial(made.read, metadata=names))
                if as_values(found) != as_values(here):
                    self.fault(
                        "read_rules",
                        f"Spark returns other rows than Arrow: {as_values(found)}, expected {as_values(here)}",
                    )
            recording = self.make_with_changes(example, tmp_path / f"{i} changes")
            if recording is not None:
                with self.step("replacing some rows with Spark"):
                    recording.move_on_spark(delta, session)
                changes = functools.partial(recording.changes_on_spark, delta, session)
                self._check_feed(recording, changes, "on Spark")

    def spark(self) -> Any:
        """Return a Spark session, a local one of two cores unless overridden; skips without a Java runtime."""
        from pyspark.sql import SparkSession

        if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
            pytest.skip("Spark needs a Java runtime")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        return (
            builder.config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )


def _compute_on_spark(
    session: Any,
    to_sql: Callable[..., str],
    evaluator: Evaluator,
    functions: Mapping[str, Function],
    expression: Expression,
    rows: pa.Table,
) -> pa.Array:
    """Compute an expression over the columns of a table with Spark, as its result's type on Arrow."""
    types: Any = {Column((f.name,)): f.type for f in rows.schema}
    compiled = evaluator.compile(expression, types, functions)
    bound = bind_typed(expression, Schema.from_arrow(rows.schema), functions).expression
    frame = session.createDataFrame(rows).selectExpr(f"{to_sql(bound, lambda leaf: leaf, functions)} AS found")
    found: pa.Array = frame.toArrow().column("found").combine_chunks()
    if not _is_same_on_spark(found.type, compiled.type):
        raise TypeError(f"values of {found.type}; expected {compiled.type}")
    return found.cast(compiled.type)


def _is_same_on_spark(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether Spark's type of a column is that of Arrow; layouts and time zones may differ."""
    if pa.types.is_integer(expected) or pa.types.is_floating(expected) or pa.types.is_boolean(expected):
        return bool(found == expected)
    return True
