"""Paths that name more than a table: ``/table@v3``, ``/table@20240501120000000`` and ``/table/day=2024-05-01``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct
from pyspark.sql import DataFrame, functions as F

from delta_core.engines.spark.settings import session_settings
from delta_core.errors import InvalidArgumentError, TableNotFoundError
from delta_core.expressions.printing import quote_name
from delta_core.kernel.write.names import HIVE_NULL
from delta_core.table.delta_table import DeltaTable

__all__ = ["TablePath", "table_path_of"]

_VERSION = re.compile(r"(.+)@(?:[vV](\d+)|(\d{17}))")
_PARTITION = re.compile(r"([^/=]+)=([^/]*)")


class TablePath(Struct, frozen=True):
    """A table, and which version and rows of it a path names.

    Parameters
    ----------
    place : str
        The table.
    version, timestamp : optional
        The version, or a time of it.
    partition : Mapping of str to (str or None)
        The values of partition columns.
    """

    place: str
    version: int | None = None
    timestamp: str | None = None
    partition: Mapping[str, str | None] = {}

    def check_travel(self, is_given: bool) -> None:
        """Reject a version in the path beside another one.

        Raises
        ------
        InvalidArgumentError
            Both are given.
        """
        if is_given and (self.version is not None or self.timestamp is not None):
            raise InvalidArgumentError("Found a version in the path and another one beside it. Leave one out.")

    def check_alone(self) -> None:
        """Reject a folder within a table, where there is no table.

        Raises
        ------
        InvalidArgumentError
            There is a table at a folder above.
        """
        above = self.place.rstrip("/").rpartition("/")[0]
        while above.strip("/") and not above.endswith(":/"):
            if DeltaTable.is_deltatable(above):
                raise InvalidArgumentError(
                    f"The path names a folder in the table at {above}, which is none of its partitions. Name the table."
                )
            above = above.rpartition("/")[0]

    def chosen(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the table that the path names.

        Raises
        ------
        ColumnNotFoundError
            The path names a column that does not partition the table.
        TableNotFoundError
            The table has no such partition.
        """
        for name, value in self.partition.items():
            column = F.col(quote_name(name))
            rows = rows.where(column.isNull() if value is None else column == F.lit(value))
        return rows


def table_path_of(spark: Any, path: str) -> TablePath:
    """Return the table that a path names; the path itself if there is a table at it, or nothing else.

    Parameters
    ----------
    spark : SparkSession
        The session, whose settings decide whether a path may name a version.
    path : str
        The path.

    Raises
    ------
    InvalidArgumentError
        The path is within a table, but is none of its partitions.
    TableNotFoundError
        There is no such partition.
    """
    found = _VERSION.fullmatch(path.rstrip("/"))
    names_more = found is not None or _PARTITION.fullmatch(path.rstrip("/").rpartition("/")[2]) is not None
    # most paths name a table alone, which takes no request to the store
    if not names_more or DeltaTable.is_deltatable(path):
        return TablePath(path)
    if found is not None and not session_settings(spark).permits("timeTravel.resolveOnIdentifier.enabled"):
        return TablePath(path)
    place, version, timestamp = (path, None, None) if found is None else (found[1], found[2], found[3])
    number = None if version is None else int(version)
    time = None if timestamp is None else _time(timestamp)
    if found is not None and DeltaTable.is_deltatable(place):
        return TablePath(place, number, time)
    parts: list[tuple[str, str | None]] = []
    root = place.rstrip("/")
    while (name := _PARTITION.fullmatch(root.rpartition("/")[2])) is not None:
        root = root.rpartition("/")[0]
        value = unquote(name[2])
        parts.insert(0, (unquote(name[1]), None if value == HIVE_NULL else value))
    if not parts or not root or not DeltaTable.is_deltatable(root):
        return TablePath(path)
    return _checked(TablePath(root, number, time, dict(parts)))


def _checked(path: TablePath) -> TablePath:
    table = DeltaTable(path.place)
    columns = table.metadata().partition_columns
    others = [name for name in path.partition if name.lower() not in (c.lower() for c in columns)]
    if others:
        raise InvalidArgumentError(
            f"The path names the column {others[0]}, which does not partition the table at {path.place}."
        )
    wanted = {name.lower(): value for name, value in path.partition.items()}
    if not any(wanted.items() <= {k.lower(): v for k, v in p.items()}.items() for p in table.partitions()):
        raise TableNotFoundError(f"The table at {path.place} has no partition {dict(path.partition)}.", path=path.place)
    return path


def _time(digits: str) -> str:
    date, time = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}", f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}"
    return f"{date} {time}.{digits[14:]}"
