"""Places of tables by their names: paths in backticks, and tables of the session's catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from pyspark.sql import types as T

from delta_core.engines.spark.connect import SERVER, has_format, is_configured
from delta_core.engines.spark.failures import reason
from delta_core.engines.spark.format_read import split_formats
from delta_core.engines.spark.plan import private
from delta_core.errors import InvalidArgumentError, TableExistsError, TableNotFoundError, UnsupportedOperationError
from delta_core.kernel.commit.recorded import Recorded

__all__ = [
    "TablePlan", "check_new_place", "definition_names", "is_catalog_place", "is_path_name", "path_in", "plan_table",
    "sees_place", "table_path", "table_to_convert",
]  # fmt: skip

_PATH = re.compile(r"(?:delta|delta_core|parquet)\s*\.\s*`((?:[^`]|``)+)`", re.IGNORECASE)

_FORMAT_PATH = re.compile(r"(\w+)\s*\.\s*`((?:[^`]|``)*/(?:[^`]|``)*)`")


class TablePlan(Struct, frozen=True):
    """Where a table is to be made.

    Parameters
    ----------
    path : str
        Its place.
    name : str, optional
        The name to register it by in the session's catalog; None if there is none, or it is registered already.
    is_known : bool
        Whether the catalog has the table already.
    """

    path: str
    name: str | None = None
    is_known: bool = False

    def register(self, spark: Any, is_managed: bool = False) -> None:
        """Add the table to the session's catalog, if it has a name to register it by."""
        if self.name is not None:
            private.register_delta_table(spark, self.name, self.path, is_managed)


def definition_names(words: str, is_managed: bool) -> dict[str, Recorded]:
    """Return how the history of delta-spark names a statement that makes or replaces a table without rows.

    Parameters
    ----------
    words : "CREATE", "REPLACE" or "CREATE OR REPLACE"
        The first words of the statement.
    is_managed : bool
        Whether the session's catalog chooses the place of the table.
    """
    name = Recorded(f"{words} TABLE", {"isManaged": is_managed})
    return {"CREATE TABLE": name, "CREATE OR REPLACE TABLE": name}


def is_catalog_place(spark: Any, plan: TablePlan, name: str | None, location: str | None) -> bool:
    """Whether the session's catalog has, or chooses, a table's place: then it deletes the files with the table's name.

    Without the format ``delta`` the catalog has names of tables that are otherwise none of its own.
    """
    if name is None or path_in(name) is not None or not is_configured(spark):
        return False
    return private.is_managed(spark, name) if plan.is_known else location is None


def sees_place(spark: Any, is_managed: bool, storage_options: Any) -> bool:
    """Whether `check_new_place` can look at a place: some files only the options of a store reach.

    It can always look at a place that the catalog chooses.
    """
    if is_managed:
        return True
    return storage_options is None and private.is_available(spark) and is_configured(spark)


def check_new_place(spark: Any, plan: TablePlan, is_managed: bool, has_table: bool) -> None:
    """Reject a new table at a place with files that are not its own, unless rows replace what is there.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    plan : TablePlan
        The table's name and place.
    is_managed : bool
        Whether the session's catalog chooses the place: DROP TABLE would delete all files there.
    has_table : bool
        Whether there is a Delta table at the place, which a name of its own may be given.

    Raises
    ------
    TableExistsError
        There is something at the place.
    """
    if plan.is_known or (has_table and not is_managed) or not private.has_files(spark, plan.path):
        return
    if is_managed:
        what = f"table {plan.name}, {plan.path}, is not empty; its files would be deleted with the name"
    else:
        what = f"table, {plan.path}, is not empty, and there is no Delta table"
    raise TableExistsError(
        f"The place of the new {what}. Move the files away, or choose another place: LOCATION, or the option path.",
        path=plan.path,
    )


def path_in(name: str) -> str | None:
    """Return the path in a name such as ``delta.`path```, None if it is a name of a catalog."""
    found = _PATH.fullmatch(name.strip())
    return None if found is None else found[1].replace("``", "`")


def table_path(spark: Any, name: str) -> str:
    """Return the place of the table that a name such as ``delta.`path```, or one of the session's catalog, is for.

    Raises
    ------
    TableNotFoundError
        The catalog has no such table, or it is neither a Delta table nor one of a format that Spark reads here.
    UnsupportedOperationError
        For a catalog of Spark Connect.
    """
    path = path_in(name) or _format_path(name)
    if path is not None:
        return path
    if private.is_available(spark) and private.is_temp_view(spark, name):
        # a table that the view hides is not meant
        raise TableNotFoundError(f"{name!r} is a view, expected a table.", path=name)
    if has_format(spark):
        return private.local_place(str(spark.sql(f"DESCRIBE DETAIL {name}").first().location))
    _check_classic(spark, "forName", "Use forPath.")
    try:
        location, provider = private.table_location(spark, name)
    except Exception as e:
        raise TableNotFoundError(f"The session's catalog has no table {name!r}: {reason(e)}", path=name) from e
    if provider.lower() != "delta" and provider.lower() not in split_formats():
        raise TableNotFoundError(
            f"The table {name!r} is one of {provider or 'no provider'}, expected delta.", path=name
        )
    return location


def table_to_convert(spark: Any, name: str, partitions: str | T.StructType | None) -> str:
    """Return the place of a Parquet table of the session's catalog that is to become a Delta table.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    name : str
        The name.
    partitions : str or StructType, optional
        The partition columns that the caller expects.

    Raises
    ------
    TableNotFoundError
        The catalog has no such table.
    InvalidArgumentError
        The table is of another format, or has other partition columns.
    UnsupportedOperationError
        Files of the table are outside of its folder.
    """
    _check_classic(spark, "convertToDelta", "Use parquet.`path`.")
    if not private.is_known_name(spark, name):
        raise TableNotFoundError(f"There is no table {name} in the session's catalog to convert.", path=name)
    location, provider = private.table_location(spark, name)
    if provider.lower() == "delta":
        return location
    if provider.lower() != "parquet":
        raise InvalidArgumentError(
            f"Only Parquet tables can be converted; {name} is one of {provider or 'no provider'}."
        )
    own = private.partition_schema(spark, name)
    given = T.StructType.fromDDL(partitions) if isinstance(partitions, str) else partitions
    if given is not None and given.simpleString() != own.simpleString():
        raise InvalidArgumentError(
            f"Found the partition columns {given.simpleString()}; the table {name} has {own.simpleString()}."
        )
    outside = [p for p in private.partition_places(spark, name) if not p.startswith(f"{location.rstrip('/')}/")]
    if outside:
        raise UnsupportedOperationError(
            f"The table {name} has the partition {outside[0]} outside of its folder {location}. Move its files there.",
            path=location,
        )
    return location


def _format_path(name: str) -> str | None:
    """Return the path in a name such as ``lance.`path```, None if it is another name."""
    found = _FORMAT_PATH.fullmatch(name.strip())
    return found[2].replace("``", "`") if found is not None and found[1].lower() in split_formats() else None


def is_path_name(name: Sequence[str]) -> bool:
    """Whether the parts of a name in SQL are those of ``delta.`path```: names of tables have no slash."""
    return len(name) == 2 and name[0].lower() == "delta" and "/" in name[1]


def plan_table(spark: Any, name: str | None, location: str | None) -> TablePlan:
    """Return where a table of a name, a location, or both is to be made.

    Parameters
    ----------
    spark : SparkSession
        A classic session, if the name is one of a catalog.
    name : str, optional
        A name such as ``delta.`path```, or one of the session's catalog.
    location : str, optional
        The place; for a name of the catalog its default unless given.

    Raises
    ------
    InvalidArgumentError
        There is neither, or the name has another place.
    TableExistsError
        The catalog has something else of this name.
    UnsupportedOperationError
        For a catalog of Spark Connect.
    """
    path = None if name is None else path_in(name)
    if name is None or path is not None:
        found = location or path
        if found is None:
            raise InvalidArgumentError("The table has no place: call location(path) or tableName(name).")
        if path is not None and location is not None and not _same(path, location):
            raise _elsewhere(str(name), path, location)
        return TablePlan(found)
    _check_classic(spark, "tableName", "Use a location.")
    if not private.is_known_name(spark, name):
        return TablePlan(location or private.default_location(spark, name), name)
    if not private.is_delta_table(spark, name):
        raise TableExistsError(
            f"The session's catalog has another kind of table or view named {name!r}, expected a Delta table or none.",
            path=name,
        )
    found = private.table_location(spark, name)[0]
    if location is not None and not _same(found, location):
        raise _elsewhere(name, found, location)
    return TablePlan(found, is_known=True)


def _same(a: str, b: str) -> bool:
    return a.removeprefix("file://").rstrip("/") == b.removeprefix("file://").rstrip("/")


def _elsewhere(name: str, path: str, location: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The table {name} is at {path}; found another location, {location}. Leave one out.")


def _check_classic(spark: Any, call: str, instead: str) -> None:
    if not private.is_available(spark):
        raise UnsupportedOperationError(
            f"{call} needs a classic session: Spark Connect's catalog does not return the location of a table. "
            f"{instead} {SERVER}",
            operation=call,
        )
