"""Errors of this library as PySpark's too: programs for PySpark and delta-spark catch those, and read their conditions.

An error that leaves a call of PySpark or of `delta_core.spark` gets a class that is both its own one and one of
PySpark, and the error condition that delta-spark reports in the same case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import pyspark.errors
from pyspark.errors import AnalysisException, PySparkException

from delta_core import errors
from delta_core.engines.spark.check_settings import noting_settings, without_effect
from delta_core.errors import DeltaError

__all__ = [
    "as_spark_error",
    "as_stream_error",
    "class_raises_spark_errors",
    "copied_error",
    "own_class",
    "raises_spark_errors",
    "with_condition",
]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
_ANALYSIS = "AnalysisException"


class _Case(NamedTuple):
    """The condition, and the class of PySpark, of errors of a class whose message contains a pattern."""

    error: type[DeltaError]
    condition: str | None
    pattern: str = ""
    pyspark_class: str = _ANALYSIS


_ILLEGAL, _RUNTIME, _UNSUPPORTED = "IllegalArgumentException", "SparkRuntimeException", "UnsupportedOperationException"
_BASE = "PySparkException"
#: Errors of calls that a setting could permit in delta-spark.
_REJECTIONS = (
    errors.InvalidArgumentError,
    errors.UnsupportedOperationError,
    errors.SchemaError,
    errors.ColumnNotFoundError,
    errors.SchemaMismatchError,
    errors.ConstraintViolationError,
)
#: The first that fits is used.
_CASES = (
    _Case(errors.TableNotFoundError, "PATH_NOT_FOUND", "There is no folder"),
    _Case(errors.TableNotFoundError, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "is a view, expected a table"),
    _Case(
        errors.TableNotFoundError,
        "TABLE_OR_VIEW_NOT_FOUND",
        "^There is no table .* in the session's catalog|^The session's catalog has no table",
    ),
    _Case(errors.TableNotFoundError, "DELTA_PATH_DOES_NOT_EXIST", "has no partition"),
    _Case(errors.TableNotFoundError, "DELTA_TABLE_NOT_FOUND"),
    _Case(errors.TableExistsError, "TABLE_OR_VIEW_ALREADY_EXISTS", "^The table .* exists already"),
    _Case(errors.TableExistsError, "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "^The place of the new table"),
    _Case(errors.TableExistsError, "DELTA_NOT_A_DELTA_TABLE", "^The session's catalog has another kind of table"),
    _Case(errors.TableExistsError, "DELTA_PATH_EXISTS"),
    _Case(errors.InvalidArgumentError, "SCHEMA_NOT_FOUND", "^The session's catalog has no database"),
    _Case(errors.VersionNotFoundError, "DELTA_CANNOT_RESTORE_TABLE_VERSION", "can't be restored"),
    _Case(errors.VersionNotFoundError, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "no version at or before"),
    _Case(errors.VersionNotFoundError, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "is after the last commit"),
    _Case(errors.VersionNotFoundError, "DELTA_VERSION_NOT_FOUND"),
    _Case(errors.ColumnNotFoundError, "DELTA_MERGE_UNRESOLVED_EXPRESSION", "^The expression reads"),
    _Case(errors.ColumnNotFoundError, "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", "^ZORDER BY: ", _ILLEGAL),
    _Case(errors.ColumnNotFoundError, "DELTA_PARTITION_COLUMN_NOT_FOUND", "^Partition column"),
    _Case(errors.ColumnNotFoundError, "FIELD_NOT_FOUND", "which is not beside"),
    _Case(errors.ColumnNotFoundError, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    _Case(errors.StreamSchemaError, "DELTA_SCHEMA_CHANGED_WITH_VERSION", pyspark_class=_BASE),
    _Case(errors.SchemaMismatchError, "DELTA_MERGE_UNRESOLVED_EXPRESSION", "^The merge assigns"),
    _Case(errors.SchemaMismatchError, "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", "changed since this DataFrame was made"),
    _Case(errors.SchemaMismatchError, "DELTA_METADATA_MISMATCH", r"^Column \S+\.value comes as struct"),
    _Case(errors.SchemaMismatchError, "DELTA_FAILED_TO_MERGE_FIELDS", "^Column .* (comes as|is .* in the table and) "),
    _Case(errors.SchemaMismatchError, "DELTA_INSERT_COLUMN_ARITY_MISMATCH", "columns in the query, expected"),
    _Case(
        errors.SchemaMismatchError,
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        "whose values come from the table alone",
    ),
    _Case(errors.SchemaMismatchError, "DELTA_METADATA_MISMATCH"),
    _Case(errors.TypeChangeError, "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP", "^REPLACE COLUMNS is not possible"),
    _Case(
        errors.TypeChangeError,
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        "of type (byte|short|integer|float) and would become (long|double)"
        "|of type (byte|short) and would become integer|of type byte and would become short",
    ),
    _Case(errors.TypeChangeError, "CANNOT_UPDATE_FIELD.STRUCT_TYPE", "can't be given as a whole"),
    _Case(errors.TypeChangeError, "NOT_SUPPORTED_CHANGE_COLUMN"),
    _Case(errors.SchemaError, "FIELD_ALREADY_EXISTS", "is in the table already"),
    _Case(
        errors.SchemaError,
        "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        "can't be dropped or renamed: the CHECK constraint",
    ),
    _Case(errors.SchemaError, "DELTA_DUPLICATE_COLUMNS_FOUND.DATA", "differ by case only"),
    _Case(errors.SchemaError, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "in its name, which Delta on Spark rejects"),
    _Case(errors.SchemaError, None),
    _Case(errors.ConstraintViolationError, "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", "of the table break"),
    _Case(errors.ConstraintViolationError, "DELTA_REPLACE_WHERE_MISMATCH", "breaks the check 'replaceWhere'"),
    _Case(
        errors.ConstraintViolationError, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "breaks the check 'NOT NULL", _RUNTIME
    ),
    _Case(errors.ConstraintViolationError, "DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "has at most .* characters'", _RUNTIME),
    _Case(errors.ConstraintViolationError, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", pyspark_class=_RUNTIME),
    _Case(
        errors.MultipleMatchesError,
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        pyspark_class=_UNSUPPORTED,
    ),
    _Case(errors.ConcurrentAppendError, "DELTA_CONCURRENT_APPEND", pyspark_class=_BASE),
    _Case(errors.ConcurrentDeleteReadError, "DELTA_CONCURRENT_DELETE_READ", pyspark_class=_BASE),
    _Case(errors.ConcurrentDeleteDeleteError, "DELTA_CONCURRENT_DELETE_DELETE", pyspark_class=_BASE),
    _Case(errors.ConcurrentTransactionError, "DELTA_CONCURRENT_TRANSACTION", pyspark_class=_BASE),
    _Case(errors.MetadataChangedError, "DELTA_METADATA_CHANGED", pyspark_class=_BASE),
    _Case(errors.ProtocolChangedError, "DELTA_PROTOCOL_CHANGED", pyspark_class=_BASE),
    _Case(errors.UnsupportedFeatureError, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", "^Feature .* can't be added"),
    _Case(errors.AppendOnlyError, "DELTA_CANNOT_MODIFY_APPEND_ONLY", pyspark_class=_UNSUPPORTED),
    _Case(errors.CommitError, None, pyspark_class=_BASE),
    _Case(
        errors.InvalidArgumentError, "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "for the option (version|time)", _ILLEGAL
    ),
    _Case(errors.InvalidArgumentError, "DELTA_ONEOF_IN_TIMETRAVEL", "^Found both version and timestamp", _ILLEGAL),
    _Case(
        errors.InvalidArgumentError,
        "DELTA_ZORDERING_ON_PARTITION_COLUMN",
        "is a partition column: all rows of a file",
        _ILLEGAL,
    ),
    _Case(errors.InvalidArgumentError, "DELTA_MODE_NOT_SUPPORTED", "^Found mode ", _ILLEGAL),
    _Case(errors.InvalidArgumentError, "DELTA_EMPTY_DIRECTORY", "^There is no Parquet file in"),
    _Case(errors.InvalidArgumentError, "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY", "is a part of a list or map, which has"),
    _Case(errors.InvalidArgumentError, "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION", "^The table has no place"),
    _Case(errors.InvalidArgumentError, "DELTA_CONVERT_NON_PARQUET_TABLE", "^Only Parquet tables can be converted"),
    _Case(
        errors.InvalidArgumentError,
        "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
        "^Found the partition columns .* the table",
    ),
    _Case(errors.InvalidArgumentError, "DELTA_NON_PARTITION_COLUMN_SPECIFIED", "^The path names the column"),
    _Case(errors.InvalidArgumentError, "DELTA_INVALID_PARTITION_PATH", "^The path names a folder in the table"),
    _Case(errors.InvalidArgumentError, "DEFAULT_PLACEMENT_INVALID", "^Found DEFAULT within"),
    _Case(
        errors.InvalidArgumentError, "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS", "^Found a version in the path"
    ),
    _Case(errors.InvalidArgumentError, "DELTA_CREATE_TABLE_SCHEME_MISMATCH", "exists with another definition"),
    _Case(errors.InvalidArgumentError, "DELTA_METADATA_MISMATCH", "^The table is partitioned by"),
    _Case(errors.InvalidArgumentError, "DELTA_CONSTRAINT_ALREADY_EXISTS", "the table has a constraint"),
    _Case(
        errors.InvalidArgumentError, "DELTA_INVALID_MANAGED_TABLE_SYNTAX_NO_SCHEMA", "^Found no columns and no table at"
    ),
    _Case(
        errors.InvalidArgumentError,
        "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        r"^Found only spark\.databricks\.delta\.write\.",
        _ILLEGAL,
    ),
    _Case(errors.InvalidArgumentError, "DELTA_MERGE_MISSING_WHEN", "^A merge needs a clause"),
    _Case(errors.InvalidArgumentError, "DELTA_UNKNOWN_CONFIGURATION", "^Table property .* is not known"),
    _Case(errors.InvalidArgumentError, "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "^Every column partitions"),
    _Case(errors.ExpressionError, "PARSE_SYNTAX_ERROR", "can't be parsed", "ParseException"),
    _Case(errors.ExpressionError, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "^A condition must be BOOLEAN"),
    _Case(errors.UnsupportedOperationError, "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE", "is not partitioned.$"),
    _Case(errors.UnsupportedOperationError, "DELTA_MISSING_CHANGE_DATA", "^The operation 'changes' needs"),
    _Case(
        errors.UnsupportedOperationError, "DELTA_CONSTRAINT_DOES_NOT_EXIST", "^The operation 'drop_constraint' needs"
    ),
    _Case(
        errors.UnsupportedOperationError,
        "DELTA_OPERATION_NOT_ALLOWED",
        "^SHOW CREATE TABLE is not possible for|can't be added as NOT NULL",
    ),
    _Case(
        errors.UnsupportedOperationError,
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
        "can't be added with a default",
    ),
    _Case(
        errors.UnsupportedOperationError,
        "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        "^REPLACE COLUMNS is not possible",
    ),
    _Case(
        errors.UnsupportedOperationError,
        "DELTA_UNEXPECTED_PARTIAL_SCAN",
        "this view, which shows some rows|^The path names a partition",
    ),
    _Case(errors.UnsupportedOperationError, "DELTA_CANNOT_RESOLVE_COLUMN", "this view, which shows other columns"),
    _Case(
        errors.UnsupportedOperationError,
        "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
        "this view, which shows a fixed version|^The path names an older version",
    ),
    _Case(errors.UnsupportedOperationError, "DELTA_UNSUPPORTED_SOURCE", "can't change this view"),
    _Case(errors.UnsupportedOperationError, "DELTA_CLONE_UNSUPPORTED_SOURCE", "^Found a table of .* as the source of"),
    _Case(errors.UnsupportedOperationError, "DELTA_READ_SOURCE_SCHEMA_CONFLICT", "^Found a schema for a stream"),
    _Case(errors.UnsupportedOperationError, "DELTA_UNSUPPORTED_DROP_COLUMN", "^Columns of the table can't be dropped"),
    _Case(
        errors.UnsupportedOperationError, "DELTA_UNSUPPORTED_RENAME_COLUMN", "^Columns of the table can't be renamed"
    ),
)
#: Conditions of queries by which expressions of changes are analyzed, and those of the changes.
_RENAMED = {"UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS": "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT"}
#: Where the message of a job that failed has the condition of Spark's exception.
_CONDITION = re.compile(r"(?:^|: )\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ")
#: For errors that no case has, and whose cause is none of PySpark.
_OTHERS = (
    _Case(errors.InvalidArgumentError, None, pyspark_class=_ILLEGAL),
    _Case(errors.ExpressionError, None),
    _Case(errors.UnsupportedOperationError, None),
)
#: The conditions of `DeltaTable` and its builders, where they are others than those of reads and writes.
_OF_METHODS = (
    _Case(errors.TableNotFoundError, "TABLE_OR_VIEW_NOT_FOUND", "^There is no table .* in the session's catalog"),
    _Case(errors.TableNotFoundError, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "is a view, expected a table"),
    _Case(errors.TableNotFoundError, "DELTA_MISSING_DELTA_TABLE"),
    _Case(errors.TableExistsError, "TABLE_OR_VIEW_ALREADY_EXISTS"),
)


#: The classes that were made, by their own class and the name of that of PySpark.
_classes: dict[tuple[type[DeltaError], str], type[DeltaError]] = {}


class _SparkError:
    """The methods of PySpark's errors, for one of this library."""

    __slots__ = ()
    _own: type[DeltaError]
    #: The result of `getCondition`.
    spark_condition: str | None = None
    message: str
    facts: dict[str, Any]

    def getCondition(self) -> str | None:  # noqa: N802 (PySpark's name)
        """Return the name of the error condition; None if delta-spark has none for such an error."""
        return self.spark_condition

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 (PySpark's name)
        """Return the facts of the message as texts."""
        return {name: str(value) for name, value in self.facts.items()}

    def getMessage(self) -> str:  # noqa: N802 (PySpark's name)
        """Return the message after its condition."""
        condition = self.getCondition()
        return self.message if condition is None else f"[{condition}] {self.message}"

    def getSqlState(self) -> None:  # noqa: N802 (PySpark's name)
        """Return None: errors of this library have no SQLSTATE."""

    def getQueryContext(self) -> list[Any]:  # noqa: N802 (PySpark's name)
        """Return an empty list: the part of a statement that failed is in the message."""
        return []

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._own, self.message, self.facts)


def _rebuilt(kind: type[DeltaError], message: str, facts: dict[str, Any]) -> DeltaError:
    return as_spark_error(kind(message, **facts))


def own_class(error: DeltaError) -> type[DeltaError]:
    """Return the class that an error has in `delta_core.errors`, or where else it comes from."""
    found: type[DeltaError] = getattr(type(error), "_own", type(error))
    return found


def as_spark_error(error: DeltaError, *, is_method: bool = False) -> DeltaError:
    """Make an error one of PySpark too, and return it; one without a counterpart stays what it is.

    Parameters
    ----------
    error : DeltaError
        The error.
    is_method : bool
        Whether a method of `DeltaTable`, or a statement that is not one of Spark, raised it.
    """
    if issubclass(type(error), PySparkException):
        return error
    found = (_case(error, _OF_METHODS) if is_method else None) or _case(error, _CASES) or _of_cause(error)
    found = found or _case(error, _OTHERS)
    if found is None:
        return error
    made: Any = error
    made.__class__ = _joined(type(error), found.pyspark_class)
    made.spark_condition = error.facts.get("condition") or found.condition
    note = without_effect() if isinstance(error, _REJECTIONS) else None
    if note is not None:
        error.add_note(note)
    return error


def as_stream_error(error: DeltaError) -> DeltaError:
    """Make an error for which a streaming query failed a `StreamingQueryException` of PySpark too, and return it."""
    made: Any = error
    made.__class__ = _joined(own_class(error), "StreamingQueryException")
    made.spark_condition = "STREAM_FAILED"
    return error


def copied_error(error: DeltaError) -> DeltaError:
    """Return an error of the same classes, condition, message and facts."""
    out: Any = type(error)(error.message, **error.facts)
    if isinstance(error, _SparkError):
        out.spark_condition = error.spark_condition
    return cast(DeltaError, out)


@contextmanager
def with_condition(kind: type[DeltaError], condition: str) -> Iterator[None]:
    """Set the condition of errors of a class that are raised within to that of delta-spark for the call."""
    try:
        yield
    except kind as e:
        e.facts["condition"] = condition
        if isinstance(e, _SparkError):
            e.spark_condition = condition
        raise


def _case(error: DeltaError, cases: tuple[_Case, ...]) -> _Case | None:
    fitting = (c for c in cases if isinstance(error, c.error) and re.search(c.pattern, error.message))
    return next(fitting, None)


def _of_cause(error: DeltaError) -> _Case | None:
    """Return the class and the condition of the error of PySpark that is the cause.

    Of an exception of Java that PySpark has no class for, the condition is that in the message of the failed job.
    """
    cause = error.__cause__
    if not isinstance(cause, PySparkException):
        if not isinstance(error, errors.EngineError):
            return None
        named = _CONDITION.search(error.message)
        condition = error.facts.get("condition") if named is None else named[1]
        return None if condition is None else _Case(type(error), condition, pyspark_class=_BASE)
    names = [k.__name__ for k in type(cause).__mro__ if getattr(pyspark.errors, k.__name__, None) is k]
    condition = cause.getCondition()
    return _Case(type(error), _RENAMED.get(condition, condition), pyspark_class=names[0]) if names else None


def _joined(own: type[DeltaError], name: str) -> type[DeltaError]:
    """Return a class that is both: under its own name, so that messages and logs show that."""
    found = _classes.get((own, name))
    if found is None:
        contents = {"__module__": own.__module__, "__qualname__": own.__qualname__, "__doc__": own.__doc__, "_own": own}
        bases = (_SparkError, own, getattr(pyspark.errors, name, AnalysisException))
        found = _classes.setdefault((own, name), type(own.__name__, bases, contents))
    return found


def raises_spark_errors(function: Callable[P, R], *, is_method: bool = False) -> Callable[P, R]:
    """Return a function that raises its errors of this library as PySpark's too."""

    @wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        with noting_settings():
            try:
                return function(*args, **options)
            except DeltaError as e:
                as_spark_error(e, is_method=is_method)
                raise

    return called


def class_raises_spark_errors(kind: C) -> C:
    """Have the public methods of a class raise their errors of this library as PySpark's too."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            setattr(kind, name, type(member)(raises_spark_errors(member.__func__, is_method=True)))
        elif callable(member):
            setattr(kind, name, raises_spark_errors(member, is_method=True))
    return kind
