"""A table that is to be created or replaced, in the call forms of delta-spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from msgspec import Struct
from pyspark.sql import types as T

from delta_core.engines.spark.arguments import check_bool, check_properties, check_text
from delta_core.engines.spark.chars import declared_field
from delta_core.engines.spark.spark_errors import class_raises_spark_errors
from delta_core.errors import ArgumentTypeError, InvalidArgumentError
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, parse_type

__all__ = ["Definition", "IdentityGenerator", "SparkTableBuilder", "given_columns"]

_GENERATED, _IDENTITY = "delta.generationExpression", "delta.identity."


class IdentityGenerator(Struct, frozen=True):
    """How the values of an identity column are numbered.

    Parameters
    ----------
    start : int
        The first value.
    step : int
        The distance between values; not 0.
    """

    start: int = 1
    step: int = 1


class Definition(Struct, frozen=True):
    """The definition of a table to create.

    Parameters
    ----------
    path : str, optional
        Its place.
    name : str, optional
        A name such as ``delta.`path```, or one of the session's catalog.
    mode : "error", "ignore", "overwrite" or "replace"
        What to do with a table that exists; ``replace`` requires one.
    schema : Schema
        Its columns.
    partition_by, cluster_by : sequence of str
        Columns that partition it, or by which its files are clustered.
    comment : str, optional
        The description of the table.
    properties : Mapping of str to str
        Table properties.
    """

    path: str | None
    name: str | None
    mode: Literal["error", "ignore", "overwrite", "replace"]
    schema: Schema
    partition_by: Sequence[str]
    cluster_by: Sequence[str]
    comment: str | None
    properties: Mapping[str, str]


@class_raises_spark_errors
class SparkTableBuilder:
    """Collects the definition of a table; each method returns the object, and `execute` makes the table.

    Parameters
    ----------
    mode : "error", "ignore", "overwrite" or "replace"
        As of `Definition`.
    make : function(Definition) -> SparkTable
        Makes the table.
    """

    def __init__(
        self, mode: Literal["error", "ignore", "overwrite", "replace"], make: Callable[[Definition], Any]
    ) -> None:
        self._mode, self._make = mode, make
        self._path: str | None = None
        self._name: str | None = None
        self._fields: list[Field] = []
        self._partition_by: tuple[str, ...] = ()
        self._cluster_by: tuple[str, ...] = ()
        self._comment: str | None = None
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> Self:
        """Set the name: ``delta.`path```, or a new name in the session's catalog."""
        check_text(identifier, "identifier")
        self._name = identifier
        return self

    def location(self, location: str) -> Self:
        """Set the place."""
        check_text(location, "location")
        self._path = location
        return self

    def comment(self, comment: str) -> Self:
        """Set the description of the table."""
        check_text(comment, "comment")
        self._comment = comment
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | T.DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> Self:
        """Add a column.

        Parameters
        ----------
        colName : str
            Its name.
        dataType : str or DataType
            Its type, as Spark spells it or as an object of PySpark.
        nullable : bool
            Whether it may be null.
        generatedAlwaysAs : str or IdentityGenerator, optional
            The SQL expression that computes the column from others, or how its values are numbered.
        generatedByDefaultAs : IdentityGenerator, optional
            How its values are numbered unless rows have their own.
        comment : str, optional
            Its description.

        Raises
        ------
        ArgumentTypeError
            For an argument of another class.
        InvalidArgumentError
            For both kinds of generated values, or a step of 0.
        """
        check_text(colName, "colName")
        check_bool(nullable, "nullable")
        if comment is not None:
            check_text(comment, "comment")
        t = T.DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        if not isinstance(t, T.DataType):
            raise ArgumentTypeError(
                f"Found the type of {colName!r} as {type(t).__name__}, expected text or a DataType."
            )
        metadata = {} if comment is None else {"comment": comment}
        metadata |= _generated(colName, generatedAlwaysAs, generatedByDefaultAs)
        self._fields.append(declared_field(Field(colName, parse_type(t.jsonValue()), nullable, metadata)))
        return self

    def addColumns(self, cols: T.StructType | Iterable[T.StructField]) -> Self:
        """Add the columns of a schema of PySpark.

        Raises
        ------
        ArgumentTypeError
            For anything but a StructType or StructFields.
        """
        columns = list(cols) if isinstance(cols, Iterable) and not isinstance(cols, str) else [cols]
        other = next((c for c in columns if not isinstance(c, T.StructField)), None)
        if other is not None:
            raise ArgumentTypeError(f"Found {other!r} in addColumns, expected a StructType or a list of StructField.")
        self._fields += given_columns(T.StructType(columns))
        return self

    def partitionedBy(self, *cols: Any) -> Self:
        """Set the columns that partition the table."""
        self._partition_by = _column_names("partitionedBy", cols)
        return self

    def clusterBy(self, *cols: Any) -> Self:
        """Set the columns by which the table's files are clustered."""
        self._cluster_by = _column_names("clusterBy", cols)
        return self

    def property(self, key: str, value: str) -> Self:
        """Set a table property."""
        check_properties({key: value}, "property")
        self._properties[key] = value
        return self

    def execute(self) -> Any:
        """Make the table and return it as a `SparkTable`.

        Raises
        ------
        InvalidArgumentError
            There is no place, or no column; or the table of this name has another place.
        TableExistsError
            ``create``: there is a table already; or the catalog has something else of this name.
        TableNotFoundError
            ``replace``: there is no table.
        """
        if self._path is None and self._name is None:
            raise InvalidArgumentError("The table has no place: call location(path) or tableName(name).")
        if not self._fields:
            raise InvalidArgumentError("The table has no column: call addColumn or addColumns.")
        schema = Schema(self._fields)
        given = self._partition_by, self._cluster_by, self._comment, self._properties
        return self._make(Definition(self._path, self._name, self._mode, schema, *given))


def given_columns(schema: T.StructType) -> Sequence[Field]:
    """Return the columns of a schema of PySpark, with their metadata and nullability."""
    return tuple(map(declared_field, Schema.from_json(schema.json()).members))


def _generated(name: str, always: Any, by_default: Any) -> dict[str, Any]:
    if always is not None and by_default is not None:
        raise InvalidArgumentError(
            f"Column {name!r} has both generatedAlwaysAs and generatedByDefaultAs, expected one."
        )
    if isinstance(always, str):
        return {_GENERATED: always}
    identity = always if always is not None else by_default
    if identity is None:
        return {}
    if not all(isinstance(getattr(identity, n, None), int) for n in ("start", "step")):
        raise ArgumentTypeError(
            f"Found the generated values of {name!r} as {type(identity).__name__}, expected an IdentityGenerator, or, "
            "for generatedAlwaysAs, SQL text."
        )
    if identity.step == 0:
        raise InvalidArgumentError(f"The identity column {name!r} has step 0, expected another number.")
    values = {"start": identity.start, "step": identity.step, "allowExplicitInsert": by_default is not None}
    return {f"{_IDENTITY}{n}": v for n, v in values.items()}


def _column_names(call: str, given: Sequence[Any]) -> tuple[str, ...]:
    names = given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    other = next((n for n in names if not isinstance(n, str)), None)
    if other is not None:
        raise ArgumentTypeError(f"Found {other!r} in {call}, expected names of columns.")
    return tuple(names)
