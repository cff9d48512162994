"""Errors are PySpark's too, with the conditions that delta-spark 4.4.0 reports in the same cases.

`error_program.py` has the cases, and records delta-spark's answers with the argument ``peer``.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException

from delta_core import errors
from delta_core.engines.spark.spark_errors import as_spark_error, class_raises_spark_errors, copied_error, own_class
from delta_core.errors import DeltaError
from tests.docs.blocks import ROOT
from tests.spark.error_program import CASES

RECORDED: Mapping[str, Any] = json.loads(Path(__file__).with_name("error_recorded.json").read_text())
_ANALYSIS, _RUNTIME = ["AnalysisException"], ["SparkRuntimeException"]
#: Where this library differs; docs/spark-drop-in.md has the reasons.
OWN: Mapping[str, Any] = {
    "column_that_is_not_there_in_merge_condition": [_ANALYSIS, "DELTA_MERGE_UNRESOLVED_EXPRESSION"],
    "column_that_is_not_there_in_merge_statement": [_ANALYSIS, "DELTA_MERGE_UNRESOLVED_EXPRESSION"],
    "null_in_a_column_without_nulls": [_RUNTIME, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"],
    "insert_of_null_in_a_column_without_nulls": [_RUNTIME, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"],
    "row_that_breaks_a_check": [_RUNTIME, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"],
    "update_that_breaks_a_check": [_RUNTIME, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"],
    "generated_value_that_differs": [_RUNTIME, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"],
    "text_that_is_too_long": [_RUNTIME, "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"],
    "division_by_zero_in_an_update": [["ArithmeticException"], "TASK_WRITE_FAILED"],
}


def test_failed_job_has_the_condition_of_javas_exception() -> None:
    made = errors.EngineError("The Spark job that looks for rows failed: [INTERNAL_ERROR] Cannot generate code.")
    found: Any = as_spark_error(made)
    assert isinstance(found, errors.EngineError)
    assert isinstance(found, PySparkException)
    assert not isinstance(found, AnalysisException)
    assert found.getCondition() == "INTERNAL_ERROR"
    other = as_spark_error(errors.EngineError("The Spark job failed: values [A, B] of [C]."))
    assert not isinstance(other, PySparkException)


def test_error_is_of_both_classes() -> None:
    made = errors.TableNotFoundError("No Delta table at /t. There is no folder of this name.", path="/t")
    found: Any = as_spark_error(made)
    assert found is made
    assert isinstance(found, errors.TableNotFoundError)
    assert isinstance(found, FileNotFoundError)
    assert isinstance(found, AnalysisException)
    assert (found.getCondition(), found.path, str(found)) == ("PATH_NOT_FOUND", "/t", made.message)
    assert found.getMessage() == f"[PATH_NOT_FOUND] {made.message}"
    assert found.getMessageParameters() == {"path": "/t"}
    assert (found.getSqlState(), found.getQueryContext()) == (None, [])
    with pytest.warns(FutureWarning, match="getCondition"):
        assert found.getErrorClass() == "PATH_NOT_FOUND"


@pytest.mark.parametrize(
    "error",
    [
        errors.TableExistsError("There is a table at /t already.", path="/t"),
        errors.SchemaMismatchError("x", column="a"),
        errors.UnsupportedOperationError("x", operation="y"),
        errors.ColumnNotFoundError("x", column="a"),
        errors.ConcurrentAppendError("x", version=3),
        errors.ConstraintViolationError("x", row={"a": 1}),
    ],
    ids=lambda e: type(e).__name__,
)
def test_error_survives_pickling_and_copies(error: DeltaError) -> None:
    found: Any = as_spark_error(error)
    for again in (pickle.loads(pickle.dumps(found)), copy.copy(found), copied_error(found)):
        assert isinstance(again, PySparkException)
        assert type(again) is type(found)
        assert (str(again), again.facts, again.getCondition()) == (str(found), found.facts, found.getCondition())
    assert own_class(found).__mro__[0].__module__ == "delta_core.errors"
    assert not isinstance(own_class(found)("x"), PySparkException)


def every_error() -> list[type[DeltaError]]:
    found = [getattr(errors, name) for name in errors.__all__]
    return [e for e in found if isinstance(e, type) and issubclass(e, DeltaError)]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_keeps_its_class_and_message(kind: type[DeltaError]) -> None:
    found = as_spark_error(kind("What was found."))
    assert isinstance(found, kind)
    assert str(found) == "What was found."
    assert type(found).__name__ == kind.__name__
    assert as_spark_error(found) is found


def test_error_with_a_cause_of_pyspark_has_its_class_and_condition() -> None:
    error = errors.EngineError("The job failed.")
    assert not isinstance(as_spark_error(error), PySparkException)
    error.__cause__ = ParseException("no SQL", errorClass="PARSE_SYNTAX_ERROR", messageParameters={})
    found: Any = as_spark_error(error)
    assert isinstance(found, ParseException)
    assert found.getCondition() == "PARSE_SYNTAX_ERROR"


def test_error_with_a_condition_of_its_own_keeps_it() -> None:
    error: Any = as_spark_error(
        errors.ExpressionError("The number 300 does not fit TINYINT.", condition="CAST_OVERFLOW")
    )
    assert (error.condition, error.getCondition()) == ("CAST_OVERFLOW", "CAST_OVERFLOW")


def test_methods_of_a_class_raise_errors_of_both() -> None:
    @class_raises_spark_errors
    class Table:
        @classmethod
        def of_class(cls) -> None:
            raise errors.TableNotFoundError("No Delta table at /t.")

        @staticmethod
        def of_none() -> None:
            raise errors.TableExistsError("There is a table at /t already.")

        def own(self, argument: int) -> int:
            """Return the argument."""
            if argument < 0:
                raise errors.InvalidArgumentError("Found -1, expected 0 or more.")
            return argument

    with pytest.raises(AnalysisException) as missing:
        Table.of_class()
    assert missing.value.getCondition() == "DELTA_MISSING_DELTA_TABLE"
    with pytest.raises(errors.TableExistsError) as there:
        Table.of_none()
    assert there.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    with pytest.raises(IllegalArgumentException):
        Table().own(-1)
    assert Table().own(1) == 1
    assert Table.own.__doc__ == "Return the argument."


@pytest.fixture(scope="module")
def answers(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    del java
    folder = tmp_path_factory.mktemp("errors")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("error_program.py")), str(folder)],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))),
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return dict(map(json.loads, lines))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_error_is_caught_as_that_of_delta_spark(name: str, answers: dict[str, Any]) -> None:
    assert answers[name] == OWN.get(name, RECORDED[name])
