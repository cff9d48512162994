"""CREATE TABLE and REPLACE TABLE, with and without a query, and ``saveAsTable``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, structs
from pyspark.sql import DataFrame

from delta_core.engines.spark.catalog import (
    TablePlan,
    check_new_place,
    definition_names,
    is_catalog_place,
    is_path_name,
    plan_table,
)
from delta_core.engines.spark.chars import declared_field
from delta_core.engines.spark.conditions import portable_definition
from delta_core.engines.spark.drop_in.options import Options, write_arguments
from delta_core.engines.spark.drop_in.writes import overwriting
from delta_core.engines.spark.plan import definitions, private
from delta_core.engines.spark.plan.definitions import TableSpec
from delta_core.engines.spark.plan.statements import run_query
from delta_core.engines.spark.relations import spark_engine
from delta_core.engines.spark.save import write
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.table import clustering_columns
from delta_core.errors import InvalidArgumentError, TableExistsError, TableNotFoundError
from delta_core.expressions import ast
from delta_core.expressions.printing import format_sql, quote_name
from delta_core.handles.secrets import without_secrets
from delta_core.kernel.commit.property_requests import reserved_properties
from delta_core.kernel.commit.recorded import Recorded, recording
from delta_core.kernel.plugins.features import supported_features
from delta_core.kernel.plugins.registry import default_registry
from delta_core.kernel.protocol.actions import Protocol
from delta_core.kernel.protocol.properties import normalize_properties
from delta_core.runtime.json_text import compact_json
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, StructType
from delta_core.table.delta_table import DeltaTable

__all__ = ["create", "create_like"]

#: Metadata of features that a new table may begin with.
_DEFINED, _STORED = ("delta.generationExpression", "delta.identity."), ("delta.identity.highWaterMark", "parquet.")
Existing = Literal["error", "ignore", "replace"]


class _Target(Struct, frozen=True):
    """The table that a statement makes."""

    plan: TablePlan
    is_managed: bool
    exists: bool
    #: The first words of the statement: ``CREATE``, ``REPLACE`` or ``CREATE OR REPLACE``.
    words: str = "CREATE"

    @property
    def is_taken(self) -> bool:
        """Whether the table is there by its name, or by its path if it has none."""
        return self.plan.is_known or (self.plan.name is None and self.exists)


def create(spark: Any, node: Any, name: Sequence[str], query: Any, saves: bool) -> None:
    """Run a node of Spark that creates or replaces a table.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    node : object
        The node.
    name : sequence of str
        The name in the session's catalog, or ``delta`` and a path.
    query : object, optional
        Its query, analysed.
    saves : bool
        Whether ``saveAsTable`` made it, which keeps the definition of a table that it overwrites.

    Raises
    ------
    TableExistsError, TableNotFoundError
        The table is there, or not, against what the statement allows.
    UnsupportedOperationError
        The statement has a clause that tables of the format delta can't have.
    InvalidArgumentError
        The place, columns or properties do not fit the table that is there.
    """
    session_settings(spark)
    spec = definitions.table_spec(node)
    existing: Existing = definitions.existing(node)
    if existing == "ignore" and not is_path_name(name) and private.is_known_name(spark, _quoted(name)):
        return  # a table or view of any kind
    must_exist = existing == "replace" and definitions.must_exist(node)
    words = "REPLACE" if must_exist else "CREATE OR REPLACE" if existing == "replace" else "CREATE"
    target = structs.replace(_target(spark, spec, name), words=words)
    if must_exist and not (target.is_taken and target.exists):
        raise TableNotFoundError(
            f"There is no table {'.'.join(name)} to replace. Use CREATE OR REPLACE.", path=target.plan.path
        )
    if existing != "replace" and target.is_taken:
        if existing == "error":
            raise TableExistsError(
                f"The table {'.'.join(name)} exists already, at {target.plan.path}.", path=target.plan.path
            )
        return
    # rows that replace a table may replace what is there without a name, as in delta-spark
    if query is None or existing != "replace":
        check_new_place(spark, target.plan, target.is_managed, target.exists)
    if query is not None:
        _write(run_query(spark, query), definitions.write_options(node), spec, target, existing, saves)
    else:
        _define(spark, node, spec, target, existing)
    target.plan.register(spark, target.is_managed)


def create_like(spark: Any, node: Any, names: Sequence[str | None], is_delta: bool) -> None:
    """Run CREATE TABLE ... LIKE: a table of the columns, partitions and properties of another one, without its rows.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    node : object
        The node.
    names : sequence of str
        The name of the new table, None, and the name of the other one.
    is_delta : bool
        Whether the other one is of the format delta.

    Raises
    ------
    TableExistsError
        The table is there.
    """
    session_settings(spark)
    at = list(names).index(None)
    name, source = [str(n) for n in names[:at]], [str(n) for n in names[at + 1 :]]
    own = definitions.like_properties(node)
    if definitions.like_provider(node) != "delta":
        _create_other(spark, node, name, source)
        return
    spec, fields = _like(spark, source, is_delta)
    spec = structs.replace(spec, location=definitions.like_location(node), properties={**spec.properties, **own})
    target = _target(spark, spec, name)
    if target.is_taken or (target.exists and not target.is_managed):
        if target.is_taken and node.ifNotExists():
            return
        raise TableExistsError(
            f"The table {'.'.join(name)} exists already, at {target.plan.path}.", path=target.plan.path
        )
    check_new_place(spark, target.plan, target.is_managed, target.exists)
    _make(spark, spec, fields, target, "error")
    target.plan.register(spark, target.is_managed)


def _create_other(spark: Any, node: Any, name: Sequence[str], source: Sequence[str]) -> None:
    """Have Spark make a table of another format with the columns and partitions of one of the format delta."""
    spec, _ = _like(spark, source, True)
    rows = spark.table(".".join(map(quote_name, source)))
    location = definitions.like_location(node)
    properties = definitions.like_properties(node)
    clauses = [
        "CREATE TABLE " + ("IF NOT EXISTS " if node.ifNotExists() else "") + ".".join(map(quote_name, name)),
        f"({rows._jdf.schema().toDDL()}) USING {quote_name(definitions.like_provider(node))}",
    ]
    if spec.partition_by:
        clauses.append(f"PARTITIONED BY ({', '.join(map(quote_name, spec.partition_by))})")
    if location is not None:
        clauses.append(f"LOCATION {format_sql(ast.Literal(location))}")
    if properties:
        pairs = (f"{format_sql(ast.Literal(k))} = {format_sql(ast.Literal(v))}" for k, v in properties.items())
        clauses.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    spark.sql(" ".join(clauses))


def _like(spark: Any, source: Sequence[str], is_delta: bool) -> tuple[TableSpec, Sequence[Field]]:
    """Return the definition of a table or view."""
    text = ".".join(map(quote_name, source))
    if not is_delta:
        rows = spark.table(text)
        by = (
            []
            if private.is_temp_view(spark, text)
            else [c.name for c in spark.catalog.listColumns(text) if c.isPartition]
        )
        fields = [_field(f) for f in json.loads(private.schema_json(rows))["fields"]]
        return TableSpec(None, None, {}, by, []), fields
    path = source[1] if is_path_name(source) else private.table_location(spark, text)[0]
    snapshot = DeltaTable(private.local_place(path)).snapshot()
    metadata = snapshot.metadata
    fields = [
        Field(f.name, f.type, f.nullable, {k: v for k, v in f.metadata.items() if _is_defined(k)})
        for f in snapshot.schema.members
    ]
    reserved = reserved_properties(default_registry().everything)
    kept = {k: v for k, v in metadata.configuration.items() if k not in reserved}
    clusters = clustering_columns(snapshot)
    return TableSpec(None, metadata.description, kept, list(metadata.partition_columns), clusters), fields


def _is_defined(key: str) -> bool:
    """Whether metadata of a column is a part of its definition, not of the files and versions of one table."""
    return not key.startswith(_STORED) and (key.startswith(_DEFINED) or not key.startswith("delta."))


def _quoted(name: Sequence[str]) -> str:
    return ".".join(map(quote_name, name))


def _target(spark: Any, spec: TableSpec, name: Sequence[str]) -> _Target:
    location = spec.location
    if is_path_name(name):
        text = f"delta.`{name[1].replace('`', '``')}`"
        if session_settings(spark).requests("legacy.allowAmbiguousPathsInCreateTable"):
            location = None  # the path of the name
    else:
        if not spark.catalog.databaseExists(name[0]):
            raise InvalidArgumentError(f"The session's catalog has no database {name[0]!r}. Create it first.")
        text = _quoted(name)
        location = None if location is None else private.qualified_place(spark, location, name[0])
    plan = plan_table(spark, text, location)
    return _Target(plan, is_catalog_place(spark, plan, text, location), bool(DeltaTable.is_deltatable(plan.path)))


# --- without a query -----------------------------------------------------------------------


def _define(spark: Any, node: Any, spec: TableSpec, target: _Target, existing: Existing) -> None:
    fields = [_field(json.loads(text)) for text in definitions.columns(node)]
    if existing != "replace" and target.exists:
        _check_same(spec, fields, target.plan.path)
        return
    if not fields:
        raise InvalidArgumentError(
            f"Found no columns and no table at {target.plan.path}. Name the columns, or the location of a table."
        )
    _make(spark, spec, fields, target, existing)


def _make(spark: Any, spec: TableSpec, fields: Sequence[Field], target: _Target, existing: Existing) -> None:
    properties, columns = portable_definition(spark, {**spec.properties, **_as_properties(spec.options)}, fields)
    path = target.plan.path
    with recording(definition_names(target.words, target.is_managed)):
        DeltaTable.create(
            path,
            Schema(columns),
            "overwrite" if existing == "replace" else "error",
            list(spec.partition_by),
            description=spec.comment,
            configuration=properties,
            cluster_by=spec.cluster_by,
            engine=spark_engine(spark, path),
        )


def _as_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return OPTIONS as delta-spark stores them: as properties of their names, and with a prefix."""
    return {**options, **{f"option.{name}": text for name, text in options.items()}}


def _field(found: Mapping[str, Any]) -> Field:
    (f,) = StructType.from_json(json.dumps({"type": "struct", "fields": [found]})).members
    return declared_field(f)


def _check_same(spec: TableSpec, fields: Sequence[Field], path: str) -> None:
    """Reject a definition that is not that of the table at its place."""
    table = DeltaTable(path)
    snapshot = table.snapshot()
    metadata, schema = snapshot.metadata, snapshot.schema
    asked = normalize_properties(dict(spec.properties))
    different = [
        n
        for n, text in asked.items()
        if metadata.configuration.get(n) != text and not _has_protocol(snapshot.protocol, n, text)
    ]
    what = None
    if fields and [(f.name.lower(), f.type) for f in fields] != [(f.name.lower(), f.type) for f in schema.members]:
        what = f"columns {schema.to_json()}"
    elif fields and [n.lower() for n in spec.partition_by] != [n.lower() for n in metadata.partition_columns]:
        what = f"partition columns {list(metadata.partition_columns)}"
    elif different:
        what = f"value {metadata.configuration.get(different[0])!r} for the property {different[0]}"
    if what is not None:
        raise InvalidArgumentError(
            f"The table at {path} exists with another definition: it has the {what}. Leave the definition out of "
            "CREATE TABLE, or repeat that of the table.",
            path=path,
        )


def _has_protocol(protocol: Protocol, name: str, text: str) -> bool:
    """Whether a property requests a version or a feature that a table has already."""
    versions = {
        "delta.minReaderVersion": protocol.min_reader_version,
        "delta.minWriterVersion": protocol.min_writer_version,
    }
    if name in versions:
        return text.isdecimal() and int(text) <= versions[name]
    feature = name.removeprefix("delta.feature.")
    return feature != name and feature in supported_features(protocol).all


# --- with a query --------------------------------------------------------------------------


def _write(
    rows: DataFrame, given: Mapping[str, str], spec: TableSpec, target: _Target, existing: Existing, saves: bool
) -> None:
    options = Options.of({k: v for k, v in {**spec.options, **given}.items() if k.lower() != "path"})
    arguments = write_arguments(options)
    arguments |= {"cluster_by": list(spec.cluster_by)} if spec.cluster_by else {}
    arguments |= {"partition_by": list(spec.partition_by)} if spec.partition_by else {}
    stored = spec.properties
    if session_settings(rows.sparkSession).requests("legacy.storeOptionsAsProperties"):
        # secrets of storage are options too, which the log must not have
        named = without_secrets({**spec.options, **given})
        stored = {**{n: text for n, text in named.items() if n.lower() != "path"}, **stored}
    if stored:
        arguments["properties"] = {**arguments.get("properties", {}), **stored}
    arguments |= {} if spec.comment is None else {"description": spec.comment}
    path, mode = target.plan.path, "error"
    if existing == "replace" and target.exists:
        mode = "overwrite"
        if saves:
            arguments = overwriting(rows, path, arguments)
        else:
            arguments["replace_definition"] = True
            arguments.pop("schema_mode", None)
    elif saves and arguments.get("schema_mode") == "overwrite":
        del arguments["schema_mode"]
    names = {} if arguments.get("replace_where") else {"WRITE": _statement(spec, target, arguments, saves)}
    with recording(names):
        write(rows, path, mode, **arguments)  # type: ignore[arg-type]  # checked there


def _statement(spec: TableSpec, target: _Target, arguments: Mapping[str, Any], saves: bool) -> Recorded:
    """Return how delta-spark's history names a statement with a query, or saveAsTable."""
    by = list(spec.partition_by)
    if target.exists and saves and arguments.get("schema_mode") != "overwrite":
        by = DeltaTable(target.plan.path).metadata().partition_columns
    parameters = {
        "partitionBy": compact_json(by),
        "clusterBy": compact_json(list(spec.cluster_by)),
        "description": spec.comment,
        "isManaged": target.is_managed,
        "properties": compact_json(arguments.get("properties", {})),
    }
    if saves and target.words == "CREATE OR REPLACE":
        parameters["isV1SaveAsTableOverwrite"] = True
    return Recorded(f"{target.words} TABLE AS SELECT", parameters, ("mode",))
