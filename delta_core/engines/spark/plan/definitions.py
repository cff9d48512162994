"""Nodes of Spark's plans that create tables, as facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import unquote

from msgspec import Struct

from delta_core.engines.spark.plan.statements import class_name, elements, items, texts
from delta_core.errors import UnsupportedOperationError

__all__ = [
    "TableSpec",
    "columns",
    "existing",
    "like_location",
    "like_properties",
    "must_exist",
    "table_spec",
    "write_options",
]


class TableSpec(Struct, frozen=True):
    """The definition of a table beside its columns.

    Parameters
    ----------
    location : str, optional
        Its place; the catalog chooses one if None.
    comment : str, optional
        Its description.
    properties : Mapping of str to str
        Table properties.
    partition_by, cluster_by : sequence of str
        Columns that partition it, or by which its files are clustered.
    options : Mapping of str to str
        OPTIONS, without the path.
    """

    location: str | None
    comment: str | None
    properties: Mapping[str, str]
    partition_by: Sequence[str]
    cluster_by: Sequence[str]
    options: Mapping[str, str] = {}


def existing(node: Any) -> Literal["error", "ignore", "replace"]:
    """Return what becomes of a table that exists."""
    if class_name(node).startswith("Replace") or _is_first_version(node):
        return "replace"
    return "ignore" if node.ignoreIfExists() else "error"


def must_exist(node: Any) -> bool:
    """Whether a table that is to be replaced has to exist."""
    return class_name(node).startswith("Replace") and not node.orCreate()


def write_options(node: Any) -> dict[str, str]:
    """Return the options of the writer of a query's rows."""
    return texts(node.tableDesc().storage().properties() if _is_first_version(node) else node.writeOptions())


def table_spec(node: Any) -> TableSpec:
    """Return the definition of the table that a node creates.

    Raises
    ------
    UnsupportedOperationError
        For a clause that is not possible for the format delta.
    """
    if _is_first_version(node):
        return _first_spec(node.tableDesc())
    spec = node.tableSpec()
    options = {} if "optionExpression" not in elements(spec) else dict(_options(spec.optionExpression()))
    location = _optional(spec.location())
    for name in [n for n in options if n.lower() == "path"]:
        found = options.pop(name)
        location = found if location is None else location
    if "constraints" in elements(spec) and spec.constraints().size():
        raise _unsupported("a constraint", "Add it to the table: ALTER TABLE ... ADD CONSTRAINT.")
    if "collation" in elements(spec) and spec.collation().isDefined() and str(spec.collation().get()) != "UTF8_BINARY":
        raise _unsupported("DEFAULT COLLATION", "Leave it out.")
    partition_by: list[str] = []
    cluster_by: list[str] = []
    for transform in items(node.partitioning()):
        kind = str(transform.name())
        names = [".".join(map(str, r.fieldNames())) for r in transform.references()]
        if kind not in ("identity", "cluster_by"):
            raise _unsupported(
                f"{kind} as partitioning", "Partition by columns; a generated column can hold such values."
            )
        (partition_by if kind == "identity" else cluster_by).extend(names)
    return TableSpec(location, _optional(spec.comment()), texts(spec.properties()), partition_by, cluster_by, options)


def _is_first_version(node: Any) -> bool:
    """Whether a node is one of Spark's first catalog API, which ``saveAsTable`` uses for names of other formats."""
    return "tableDesc" in elements(node)


def _first_spec(found: Any) -> TableSpec:
    location = found.storage().locationUri()
    properties = texts(found.properties())
    clusters = json.loads(properties.pop("clusteringColumns", "[]"))
    return TableSpec(
        _place(location),
        _optional(found.comment()),
        properties,
        [str(name) for name in items(found.partitionColumnNames())],
        [".".join(names) for names in clusters],
    )


def like_properties(node: Any) -> dict[str, str]:
    """Return the properties of CREATE TABLE ... LIKE."""
    return texts(node.properties())


def like_provider(node: Any) -> str:
    """Return the format of CREATE TABLE ... LIKE, ``delta`` if the statement has none."""
    return (_optional(node.provider()) or "delta").lower()


def like_location(node: Any) -> str | None:
    """Return the location of CREATE TABLE ... LIKE."""
    if "location" in elements(node):
        return _optional(node.location())
    return _place(node.fileFormat().locationUri())  # before Spark 4.2


def _place(uri: Any) -> str | None:
    """Return a location as statements have it: not encoded."""
    return unquote(str(uri.get().toString())) if uri.isDefined() else None


def _unsupported(what: str, instead: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"CREATE TABLE with {what} is not possible for the format delta. {instead}")


def _optional(found: Any) -> str | None:
    return str(found.get()) if found.isDefined() else None


def _options(found: Any) -> list[tuple[str, str]]:
    return [(str(pair._1()), str(pair._2().eval(None))) for pair in items(found.options())]


def columns(node: Any) -> list[str]:
    """Return the columns of a table as JSON of Delta's schema."""
    return [json.dumps(_column(c)) for c in items(node.columns())]


def _column(found: Any) -> dict[str, Any]:
    name = str(found.name())
    metadata: dict[str, Any] = {}
    if found.comment().isDefined():
        metadata["comment"] = str(found.comment().get())
    if found.generationExpression().isDefined():
        generated = found.generationExpression().get()  # text, from Spark 4.3 on an expression
        metadata["delta.generationExpression"] = generated if isinstance(generated, str) else generated.originalSQL()
    if "identityColumnSpec" in elements(found) and found.identityColumnSpec().isDefined():
        spec = found.identityColumnSpec().get()
        metadata["delta.identity.start"] = int(spec.getStart())
        metadata["delta.identity.step"] = int(spec.getStep())
        metadata["delta.identity.allowExplicitInsert"] = bool(spec.isAllowExplicitInsert())
    if found.defaultValue().isDefined():
        metadata["CURRENT_DEFAULT"] = str(found.defaultValue().get().originalSQL())
    kind = json.loads(str(found.dataType().json()))
    return {"name": name, "type": kind, "nullable": bool(found.nullable()), "metadata": metadata}
