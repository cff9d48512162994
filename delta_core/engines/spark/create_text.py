"""The statement that makes a table of the same definition, for SHOW CREATE TABLE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from delta_core.engines.spark.table import clustering_columns
from delta_core.errors import UnsupportedOperationError
from delta_core.expressions import ast
from delta_core.expressions.ast import column
from delta_core.expressions.printing import format_sql
from delta_core.kernel.commit.property_requests import declared_properties, reserved_properties
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.schema_checks import CHAR_VARCHAR, declared, declared_text, named_parts
from delta_core.schema.types import ArrayType, DataType, Field, MapType, StructType, spark_name

__all__ = ["create_text"]

_CONSTRAINT = "delta.constraints."
_GENERATED, _IDENTITY, _DEFAULT = "delta.generationExpression", "delta.identity.", "CURRENT_DEFAULT"
#: Metadata of columns that the statement has a clause for, or that a new table makes itself or needs not.
_KNOWN = frozenset(("comment", _GENERATED, _DEFAULT, CHAR_VARCHAR, "EXISTS_DEFAULT", "delta.typeChanges"))
_KNOWN_PREFIXES = (_IDENTITY, "parquet.")
_LENGTH = re.compile(r"(?:var)?char\s*\(", re.IGNORECASE)


def create_text(snapshot: Snapshot, name: str, location: str | None) -> str:
    """Return the statement, followed by one for each CHECK constraint, which CREATE TABLE has no clause for.

    Parameters
    ----------
    snapshot : Snapshot
        The table.
    name : str
        Its name, quoted where it needs that.
    location : str, optional
        Its place, if the statement names it.

    Raises
    ------
    UnsupportedOperationError
        A column has metadata that no clause sets.
    """
    metadata = snapshot.metadata
    known = _made_prefixes(snapshot)
    columns = [f"  {_column(f, known, snapshot.uri)}" for f in snapshot.schema.members]
    clauses = [f"CREATE TABLE {name} (\n" + ",\n".join(columns) + ")", "USING delta"]
    if metadata.partition_columns:
        clauses.append(f"PARTITIONED BY ({', '.join(map(_quoted, metadata.partition_columns))})")
    if clusters := clustering_columns(snapshot):
        names = (".".join(map(_quoted, column(name).path)) for name in clusters)
        clauses.append(f"CLUSTER BY ({', '.join(names)})")
    if location is not None:
        clauses.append(f"LOCATION {_text(location)}")
    if metadata.description is not None:
        clauses.append(f"COMMENT {_text(metadata.description)}")
    if properties := _properties(snapshot):
        pairs = ",\n".join(f"  {_text(n)} = {_text(value)}" for n, value in sorted(properties.items()))
        clauses.append(f"TBLPROPERTIES (\n{pairs})")
    statements = ["\n".join(clauses), *_constraints(snapshot, name)]
    return ";\n".join(statements) + "\n"


def _constraints(snapshot: Snapshot, name: str) -> Iterator[str]:
    for key, expression in sorted(snapshot.metadata.configuration.items()):
        if key.lower().startswith(_CONSTRAINT):
            constraint = _quoted(key[len(_CONSTRAINT) :])
            yield f"ALTER TABLE {name} ADD CONSTRAINT {constraint} CHECK ({expression})"


def _properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties and features of the table, less what it makes itself."""
    reserved, protocol = reserved_properties(snapshot.registry.everything), snapshot.protocol
    found = {
        n: text
        for n, text in snapshot.metadata.configuration.items()
        if n not in reserved and not n.lower().startswith(_CONSTRAINT)
    }
    for feature in protocol.writer_features or ():
        found.setdefault(f"delta.feature.{feature}", "supported")
    if protocol.writer_features is None:
        found["delta.minReaderVersion"] = str(protocol.min_reader_version)
        found["delta.minWriterVersion"] = str(protocol.min_writer_version)
    return found


def _made_prefixes(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the beginnings of metadata that features make: ``delta.x.id`` is of the property ``delta.x.mode``."""
    names = declared_properties(snapshot.registry.everything)
    return (*_KNOWN_PREFIXES, *(name.rpartition(".")[0] + "." for name in names if name.count(".") > 1))


def _column(f: Field, known: tuple[str, ...], uri: str) -> str:
    shown = _type(f.type, declared(f))
    problem = _problem(f, known)
    if problem is None and len(_LENGTH.findall(declared(f))) != len(_LENGTH.findall(shown)):
        problem = f"the declared type {declared(f)!r}"
    if problem is not None:
        raise UnsupportedOperationError(
            f"SHOW CREATE TABLE is not possible for {uri}: column {f.name} has {problem}, which no clause of CREATE "
            "TABLE sets. Make a table like it with CREATE TABLE ... LIKE or SHALLOW CLONE.",
            statement="SHOW CREATE TABLE",
            column=f.name,
        )
    clauses = [_quoted(f.name), shown]
    clauses += [] if f.nullable else ["NOT NULL"]
    if _DEFAULT in f.metadata:
        clauses.append(f"DEFAULT {f.metadata[_DEFAULT]}")
    if _GENERATED in f.metadata:
        clauses.append(f"GENERATED ALWAYS AS ({f.metadata[_GENERATED]})")
    clauses += _identity(f.metadata)
    clauses += _comment(f.metadata)
    return " ".join(clauses)


def _problem(f: Field, known: tuple[str, ...]) -> str | None:
    """Return which metadata of a column, or of a field in it, the statement can't have."""
    for key in f.metadata:
        if key not in _KNOWN and not key.startswith(known):
            return f"the metadata {key!r}"
    parts = (_problem(part, known) for _, part, _ in named_parts(f.type, ""))
    return next((found for found in parts if found is not None), None)


def _quoted(name: str) -> str:
    """Return a name in backticks: a session may reserve words that another one does not."""
    return "`" + name.replace("`", "``") + "`"


def _identity(metadata: Mapping[str, Any]) -> list[str]:
    if f"{_IDENTITY}start" not in metadata:
        return []
    kind = "BY DEFAULT" if metadata.get(f"{_IDENTITY}allowExplicitInsert") else "ALWAYS"
    start, step = metadata[f"{_IDENTITY}start"], metadata[f"{_IDENTITY}step"]
    return [f"GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {step})"]


def _comment(metadata: Mapping[str, Any]) -> list[str]:
    return [f"COMMENT {_text(metadata['comment'])}"] if isinstance(metadata.get("comment"), str) else []


def _type(t: DataType, text: str) -> str:
    """Return a type as DDL, with NOT NULL and comments of its fields; ``text`` is the one that it was declared with."""
    if declared_text(text):
        return text.strip().upper()
    parts = [(part, _type(part.type, declared(part) or inner)) for _, part, inner in named_parts(t, text)]
    if isinstance(t, StructType):
        return f"STRUCT<{', '.join(_field(part, shown) for part, shown in parts)}>"
    if isinstance(t, ArrayType):
        return f"ARRAY<{parts[0][1]}>"
    if isinstance(t, MapType):
        return f"MAP<{parts[0][1]}, {parts[1][1]}>"
    return spark_name(t)


def _field(f: Field, shown: str) -> str:
    return " ".join([f"{_quoted(f.name)}: {shown}", *([] if f.nullable else ["NOT NULL"]), *_comment(f.metadata)])


def _text(value: str) -> str:
    return format_sql(ast.Literal(value))
