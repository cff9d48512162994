"""Statements about the definition of a table: ALTER TABLE, COMMENT ON TABLE, CLONE and CONVERT TO DELTA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession, types as T

from delta_core import operations
from delta_core.engines.spark.catalog import (
    TablePlan,
    check_new_place,
    is_catalog_place,
    plan_table,
    sees_place,
    table_path,
)
from delta_core.engines.spark.chars import declared_field
from delta_core.engines.spark.conditions import portable_definition, portable_text
from delta_core.engines.spark.failures import failing_as
from delta_core.engines.spark.format_table import SparkFormatTable
from delta_core.engines.spark.parquet_clones import clone_parquet, is_parquet
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.results import result_frame
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.sql_text import Reader, TablePlace
from delta_core.engines.spark.table import SparkTable, check_replaced
from delta_core.errors import InvalidArgumentError, TableNotFoundError, TypeChangeError, UnsupportedOperationError
from delta_core.expressions.printing import quote_name
from delta_core.kernel.commit.options import commit_arguments
from delta_core.kernel.commit.recorded import Recorded, recording
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations import alter
from delta_core.runtime.json_text import compact_json
from delta_core.schema.fields import Path, format_path
from delta_core.schema.types import Field, parse_type
from delta_core.table.alterer import TableAlterer
from delta_core.table.delta_table import DeltaTable

__all__ = ["DEFINITIONS", "Command", "Run", "bigints", "changed_table", "empty", "shared_table", "target_table"]

#: Runs a statement, with the arguments of `SparkTable` for the table.
Run: TypeAlias = Callable[[SparkSession, Mapping[str, Any]], DataFrame]
#: Changes a table.
Change: TypeAlias = Callable[[SparkTable], Any]
_CLONED = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}


class Command(Struct, frozen=True):
    """A statement about a whole table.

    Parameters
    ----------
    run : function(SparkSession, Mapping) -> DataFrame
        Runs it, with the arguments of `SparkTable` for the table.
    result : StructType
        The columns that it returns.
    shared : TablePlace or str, optional
        The table, if Spark has the same statement for tables of other kinds.
    """

    run: Run
    result: T.StructType = T.StructType([])
    shared: TablePlace | str | None = None

    def is_for(self, spark: SparkSession) -> bool:
        """Whether the statement is about a Delta table; one about a table of another kind is left to Spark."""
        is_named = isinstance(self.shared, str)
        return not is_named or (private.is_available(spark) and private.is_delta_table(spark, str(self.shared)))


#: How statements begin that Spark has for tables of other kinds too.
_SHARED = (("ALTER", "TABLE"), ("COMMENT", "ON", "TABLE"), ("TRUNCATE", "TABLE"), ("SHOW", "CREATE", "TABLE"))


def shared_table(reader: Reader) -> TablePlace | str | None:
    """Return the table of a statement that Spark has for tables of other kinds too; None for other statements.

    Raises
    ------
    InvalidArgumentError
        No table follows the statement's first words.
    """
    found = any(reader.take(*words) for words in _SHARED)
    return reader.table() if found else None


def bigints(names: Iterable[str]) -> T.StructType:
    """Return the schema of columns of whole numbers."""
    return T.StructType([T.StructField(name, T.LongType()) for name in names])


def target_table(spark: SparkSession, table: TablePlace | str, options: Mapping[str, Any]) -> SparkTable:
    """Return a Delta table that a statement changes or describes.

    Raises
    ------
    UnsupportedOperationError
        The statement names an older version of it, or a table of another format.
    TableNotFoundError
        There is no such Delta table.
    """
    found = changed_table(spark, table, options)
    if isinstance(found, SparkFormatTable):
        raise UnsupportedOperationError(
            f"This statement is for Delta tables; {found.place!r} is a table of another format. Use the methods of "
            "delta_core.open_table(path).",
            path=found.path,
        )
    return found


def changed_table(
    spark: SparkSession, table: TablePlace | str, options: Mapping[str, Any]
) -> SparkTable | SparkFormatTable:
    """Return a table, of any format, whose rows a statement changes.

    Raises
    ------
    UnsupportedOperationError
        The statement names an older version of it.
    TableNotFoundError
        There is no table.
    """
    if isinstance(table, str):
        return SparkTable.forPath(spark, table_path(spark, table), **options)
    if table.version is not None or table.timestamp is not None:
        raise UnsupportedOperationError(
            "An older version of a table can't be changed or described. Leave VERSION or TIMESTAMP AS OF out.",
            path=table.uri,
        )
    return SparkTable.forPath(spark, table.uri, **options)


def empty(spark: SparkSession) -> DataFrame:
    """Return what statements without a result return."""
    return result_frame(spark, [], T.StructType([]))


def _changing(table: TablePlace | str, change: Change) -> Command:
    """Return what changes a Delta table; a table of another kind is left to Spark."""

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        change(target_table(spark, table, options))
        return empty(spark)

    return Command(run, shared=table)


# --- ALTER TABLE ---------------------------------------------------------------------------


def _alter(reader: Reader) -> Command | None:
    table = reader.table()
    for words, parse in _CHANGES:
        if reader.take(*words):
            change = parse(reader)
            return None if change is None else _changing(table, change)
    return None


def _altering(call: Callable[[TableAlterer], Any]) -> Change:
    return lambda found: call(found.table.alter)


def _cluster_by(reader: Reader) -> Change:
    columns = [] if reader.take("NONE") else reader.names()
    return _altering(lambda alter: alter.cluster_by(columns))


def _drop_feature(reader: Reader) -> Change:
    feature = reader.label()
    truncate = reader.take("TRUNCATE", "HISTORY")
    return lambda found: found.dropFeatureSupport(feature, truncate)


def _add_constraint(reader: Reader) -> Change:
    name = reader.label()
    reader.expect("CHECK")
    condition = reader.inside()
    return lambda found: found.table.alter.add_constraint({name: portable_text(found.sparkSession, condition)})


def _drop_constraint(reader: Reader) -> Change:
    is_optional = reader.take("IF", "EXISTS")
    name = reader.label()

    def drop(found: SparkTable) -> Any:
        passes = is_optional or session_settings(found.sparkSession).drops_missing_constraints
        return found.table.alter.drop_constraint(name, raise_if_not_exists=not passes)

    return drop


def _set_properties(reader: Reader) -> Change:
    properties = reader.properties()

    def change(found: SparkTable) -> Any:
        settings, given = session_settings(found.sparkSession), portable_definition(found.sparkSession, properties)[0]
        known_only = not settings.requests("allowArbitraryProperties.enabled")
        _end_features(found, given)
        return found.table.alter.set_table_properties(given, known_only)

    return change


def _unset_properties(reader: Reader) -> Change:
    reader.take("IF", "EXISTS")  # delta-spark leaves out without an error what the table does not have
    names = reader.property_names()

    def change(found: SparkTable) -> Any:
        _end_features(found, dict.fromkeys(names))
        return found.table.alter.unset_table_properties(names, raise_if_not_exists=False)

    return change


def _end_features(found: SparkTable, properties: Mapping[str, Any]) -> None:
    """Write the files of a table again, as delta-spark does, if properties switch a feature off that needs that."""
    table = found.table
    with failing_as(f"Spark failed to rewrite files of {found.path}", path=found.path):
        table.adopt(operations.end_features(table.snapshot(), properties))


# --- columns -------------------------------------------------------------------------------


class _Place(Struct, frozen=True):
    """Where a column is to be: the first, or after another one; where it is if neither."""

    first: bool = False
    after: str | None = None


def _changing_columns(operation: Callable[..., Snapshot], *arguments: Any) -> Change:
    def change(found: SparkTable) -> None:
        table = found.table
        table.adopt(operation(table.snapshot(), *arguments, commit_arguments(None, None)))

    return change


def _declared(text: str) -> Field:
    """Return a field of a type as it is written, with the metadata of its declared length."""
    return declared_field(Field("_", parse_type(T.DataType.fromDDL(text).jsonValue()), True, {}))


def _place(reader: Reader) -> _Place:
    if reader.take("FIRST"):
        return _Place(first=True)
    return _Place(after=reader.name()[-1]) if reader.take("AFTER") else _Place()


def _add_columns(reader: Reader) -> Change:
    is_open = reader.take("(")
    columns = [_new_column(reader)]
    while reader.take(","):
        columns.append(_new_column(reader))
    if is_open:
        reader.expect(")")

    return _changing_columns(alter.add_placed_columns, columns)


def _new_column(reader: Reader) -> alter.PlacedColumn:
    path = reader.name()
    field, comment, place = _declared(reader.type_text()), None, _Place()
    while True:
        if reader.take("NOT", "NULL"):
            raise UnsupportedOperationError(
                f"Column {format_path(path)} can't be added as NOT NULL: rows that exist have no value for it. Add it "
                "without, fill it, then use ALTER COLUMN ... SET NOT NULL.",
                operation="ADD COLUMNS",
            )
        if reader.take("DEFAULT"):
            raise UnsupportedOperationError(
                f"Column {format_path(path)} can't be added with a default: rows that exist would need it. Add it "
                "without, then use ALTER COLUMN ... SET DEFAULT.",
                operation="ADD COLUMNS",
            )
        if reader.take("COMMENT"):
            comment = reader.text()
        elif reader.comes("FIRST") or reader.comes("AFTER"):
            place = _place(reader)
        else:
            metadata = {**field.metadata, **({} if comment is None else {"comment": comment})}
            return alter.PlacedColumn(path, field.type, metadata, place.first, place.after)


def _replace_columns(reader: Reader) -> Change:
    reader.expect("(")
    fields = [_replacing_column(reader)]
    while reader.take(","):
        fields.append(_replacing_column(reader))
    reader.expect(")")
    return _changing_columns(_replaced, fields)


def _replaced(base: Snapshot, fields: list[Field], commit: Mapping[str, Any]) -> Snapshot:
    try:
        return alter.replace_columns(base, fields, commit)
    except (TypeChangeError, UnsupportedOperationError) as e:
        raise type(e)(f"REPLACE COLUMNS is not possible. {e.message}", **e.facts) from None


def _replacing_column(reader: Reader) -> Field:
    path = reader.name()
    if len(path) > 1:
        raise InvalidArgumentError(f"Found the column {format_path(path)}, expected one without a dot.")
    field = _declared(reader.type_text())
    is_strict = reader.take("NOT", "NULL")
    comment = {"comment": reader.text()} if reader.take("COMMENT") else {}
    return Field(path[0], field.type, not is_strict, {**field.metadata, **comment})


def _rename_column(reader: Reader) -> Change:
    column = format_path(reader.name())
    reader.expect("TO")
    new = reader.name()
    if len(new) != 1:
        raise InvalidArgumentError(f"Found the new name {format_path(new)!r} of {column}, expected one without a dot.")
    return _altering(lambda alter: alter.rename_column(column, new[0]))


def _drop_columns(reader: Reader) -> Change | None:
    if reader.take("IF", "EXISTS"):
        return None
    columns = reader.names()

    def drop(found: SparkTable) -> Any:
        session_settings(found.sparkSession).permit("alterTable.dropColumn.enabled")
        return found.table.alter.drop_column(columns)

    return drop


def _alter_column(reader: Reader) -> Change | None:
    """Read what becomes of a column; None for what only Spark can read."""
    path = reader.name()
    column = format_path(path)
    if reader.take("SET", "DEFAULT"):
        value = reader.until()
        return lambda found: found.table.alter.set_default(column, portable_text(found.sparkSession, value))
    for words, parse in _COLUMN_CHANGES:
        if reader.take(*words):
            return _altering(parse(column))
    changes = [_column_change(reader, path)]
    while reader.take(","):
        changes.append(_column_change(reader, reader.name()))
    if None in changes:
        return None
    return _changing_columns(alter.change_columns, changes)


def _column_change(reader: Reader, path: Path) -> alter.ColumnAlteration | None:
    if reader.take("COMMENT"):
        return alter.ColumnAlteration(path, comment=reader.text())
    if reader.take("TYPE"):
        return alter.ColumnAlteration(path, _declared(reader.type_text()))
    place = _place(reader)
    return None if place == _Place() else alter.ColumnAlteration(path, first=place.first, after=place.after)


def _change_column(reader: Reader) -> Change | None:
    """Read CHANGE COLUMN, which has a new type, or is another way to write ALTER COLUMN."""
    start = reader.position
    path = reader.name()
    if any(reader.comes(*words) for words in _ACTIONS):
        reader.position = start
        return _alter_column(reader)
    new = reader.name()
    if len(new) != 1 or new[0].lower() != path[-1].lower():
        return None  # Spark rejects another name
    field = _declared(reader.type_text())
    if reader.comes("NOT"):
        return None
    comment = reader.text() if reader.take("COMMENT") else None
    place = _place(reader)
    return _changing_columns(
        alter.change_columns, [alter.ColumnAlteration(path, field, comment, place.first, place.after)]
    )


#: The actions of ALTER COLUMN that are commits of their own, by the words after the column.
_COLUMN_CHANGES: tuple[tuple[tuple[str, ...], Callable[[str], Callable[[TableAlterer], Any]]], ...] = (
    (("SYNC", "IDENTITY"), lambda column: lambda alter: alter.sync_identity(column)),
    (("SET", "NOT", "NULL"), lambda column: lambda alter: alter.set_column_not_null(column)),
    (("DROP", "NOT", "NULL"), lambda column: lambda alter: alter.drop_column_not_null(column, raise_if_nullable=False)),
    (("DROP", "DEFAULT"), lambda column: lambda alter: alter.drop_default(column)),
)
#: The words of every action of ALTER COLUMN.
_ACTIONS = (
    *(words for words, _ in _COLUMN_CHANGES),
    ("SET", "DEFAULT"),
    ("COMMENT",),
    ("TYPE",),
    ("FIRST",),
    ("AFTER",),
)
#: The actions of ALTER TABLE, by the words after the table.
_CHANGES: tuple[tuple[tuple[str, ...], Callable[[Reader], Change | None]], ...] = (
    (("CLUSTER", "BY"), _cluster_by),
    (("DROP", "FEATURE"), _drop_feature),
    (("ADD", "CONSTRAINT"), _add_constraint),
    (("DROP", "CONSTRAINT"), _drop_constraint),
    (("SET", "TBLPROPERTIES"), _set_properties),
    (("UNSET", "TBLPROPERTIES"), _unset_properties),
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("ALTER", "COLUMN"), _alter_column),
    (("REPLACE", "COLUMNS"), _replace_columns),
    (("CHANGE", "COLUMN"), _change_column),
    (("ALTER",), _alter_column),
    (("CHANGE",), _change_column),
)


# --- whole tables --------------------------------------------------------------------------


def _comment_on(reader: Reader) -> Command:
    table = reader.table()
    reader.expect("IS")
    comment = "" if reader.take("NULL") else reader.text()
    said = {"properties": compact_json({"comment": comment})}
    names = {"UPDATE TABLE METADATA": Recorded("SET TBLPROPERTIES", said, ("metadata_update",))}

    def change(found: SparkTable) -> None:
        with recording(names):
            found.table.alter.set_table_description(comment)

    return _changing(table, change)


def _truncate(reader: Reader) -> Command | None:
    table = reader.table()
    if reader.comes("PARTITION"):
        return None

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        changed_table(spark, table, options).truncate()
        return empty(spark)

    return Command(run, shared=table)


def _convert(reader: Reader) -> Command:
    first, *others = reader.name()
    identifier = ".".join((first, *map(quote_name, others)))
    collects = not reader.take("NO", "STATISTICS")
    columns = reader.inside() if reader.take("PARTITIONED", "BY") else None

    def run(spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        SparkTable.convertToDelta(spark, identifier, columns, collect_stats=collects, **options)
        return empty(spark)

    return Command(run)


class _Clone(Struct, frozen=True):
    """CREATE TABLE ... CLONE: what to clone, and where to."""

    source: TablePlace | str
    version: int | str | None
    target: TablePlace | str
    is_shallow: bool
    location: str | None
    properties: Mapping[str, str]
    is_optional: bool
    replaces: bool
    must_exist: bool

    def run(self, spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
        """Make the clone and return delta-spark's metrics of it."""
        name, own = (self.target, None) if isinstance(self.target, str) else (None, self.target.uri)
        place = plan_table(spark, name, self.location or own)
        if own is not None and self.location not in (None, own):
            raise InvalidArgumentError(f"Found LOCATION {self.location!r} of a table at {own!r}. Leave one out.")
        is_managed = is_catalog_place(spark, place, name, self.location)
        if self.is_optional or self.must_exist:  # otherwise the clone looks for a table itself
            exists = place.is_known
            if not exists and not is_managed:
                exists = DeltaTable.is_deltatable(place.path, options.get("storage_options"))
            if exists and self.is_optional:
                return empty(spark)
            if self.must_exist and not exists:
                raise TableNotFoundError(f"There is no table to replace at {place.path}.", path=place.path)
        self._check_place(spark, place, is_managed, options)
        with recording({"CLONE": Recorded("CLONE", self._source_name(spark))}):
            made = self._cloned(spark, place.path, options)
        place.register(spark, is_managed)
        metrics = made.history(1)[0].get("operationMetrics") or {}
        row = {column: int(metrics.get(name, 0)) for column, name in _CLONED.items()}
        return result_frame(spark, [row], bigints(_CLONED))

    def _check_place(self, spark: SparkSession, place: TablePlan, is_managed: bool, options: Mapping[str, Any]) -> None:
        if place.is_known or not sees_place(spark, is_managed, options.get("storage_options")):
            return
        has_table = DeltaTable.is_deltatable(place.path)
        if has_table or not self.replaces:
            check_new_place(spark, place, is_managed, has_table)

    def _source_name(self, spark: SparkSession) -> dict[str, str]:
        """Return the operation's parameter for a source with a name of the session's catalog."""
        if not isinstance(self.source, str) or not private.is_available(spark):
            return {}
        if not private.is_known_name(spark, self.source):
            return {}
        return {"source": ".".join(private.qualified_name(spark, self.source))}

    def _cloned(self, spark: SparkSession, path: str, options: Mapping[str, Any]) -> DeltaTable:
        if isinstance(self.source, str) and is_parquet(spark, self.source):
            if not self.is_shallow or self.version is not None:
                raise UnsupportedOperationError(
                    f"{self.source} is a Parquet table: it has no versions, and only SHALLOW clones name its files. "
                    "Copy its rows with CREATE TABLE ... USING delta AS SELECT.",
                    statement="CLONE",
                )
            check_replaced(spark, path, options.get("storage_options"))
            properties = portable_definition(spark, self.properties)[0]
            return clone_parquet(
                spark, self.source, path, replace=self.replaces, properties=properties, options=options
            )
        if isinstance(self.source, str) and private.is_available(spark) and private.is_known_name(spark, self.source):
            provider = private.table_location(spark, self.source)[1].lower()
            if provider != "delta":
                raise UnsupportedOperationError(
                    f"Found a table of {provider or 'no provider'} as the source of CLONE, {self.source}. Copy its "
                    "rows with CREATE TABLE ... USING delta AS SELECT.",
                    statement="CLONE",
                )
        source, given = target_table(spark, self.source, options), (self.is_shallow, self.replaces, self.properties)
        if self.version is None:
            return source.clone(path, *given).table
        if isinstance(self.version, int):
            return source.cloneAtVersion(self.version, path, *given).table
        return source.cloneAtTimestamp(self.version, path, *given).table


def _cloning(replaces: bool, must_exist: bool = False) -> Callable[[Reader], Command | None]:
    """Return the reader of CREATE or REPLACE TABLE ... CLONE, which leaves tables that are no clones to others."""

    def parse(reader: Reader) -> Command | None:
        if not reader.has("CLONE"):
            return None
        is_optional = not replaces and reader.take("IF", "NOT", "EXISTS")
        target = reader.table()
        is_shallow = reader.take("SHALLOW")
        if not is_shallow:
            reader.take("DEEP")
        if not reader.take("CLONE"):
            return None
        source, version = reader.versioned_table()
        properties: Mapping[str, str] = {}
        location = None
        while not reader.is_done:
            if reader.take("TBLPROPERTIES"):
                properties = reader.properties()
            else:
                reader.expect("LOCATION")
                location = reader.text()
        given = (source, version, target, is_shallow, location, properties)
        return Command(_Clone(*given, is_optional, replaces, must_exist).run, bigints(_CLONED))

    return parse


#: Statements by their first words.
DEFINITIONS: tuple[tuple[tuple[str, ...], Callable[[Reader], Command | None]], ...] = (
    (("ALTER", "TABLE"), _alter),
    (("COMMENT", "ON", "TABLE"), _comment_on),
    (("TRUNCATE", "TABLE"), _truncate),
    (("CONVERT", "TO", "DELTA"), _convert),
    (("CREATE", "TABLE"), _cloning(replaces=False)),
    (("CREATE", "OR", "REPLACE", "TABLE"), _cloning(replaces=True)),
    (("REPLACE", "TABLE"), _cloning(replaces=True, must_exist=True)),
)
