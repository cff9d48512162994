"""The findings of verifying a table, and the checks that plugins add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union

import pyarrow as pa
from msgspec import Struct

__all__ = ["CommitCheck", "FileCheck", "Finding", "Severity", "TableCheck", "UniqueCheck"]

#: ``error``: readers fail or return wrong rows. ``warning``: a rule of the protocol is broken, rows are right today.
#: ``information``: nothing to mend.
Severity = Literal["error", "warning", "information"]


class Finding(Struct, frozen=True):
    """One fact that verifying a table found.

    Parameters
    ----------
    rule : str
        The stable, short name of the rule, such as ``data-file-missing``.
    found, expected, advice : str
        The state that was found, the expected one, and the remedy.
    severity : Severity
    file : str or None
        The file, relative to the table's root.
    version : int or None
        The version that it is about.
    column : str or None
        The column that it is about.
    """

    rule: str
    found: str
    expected: str
    advice: str
    severity: Severity = "error"
    file: str | None = None
    version: int | None = None
    column: str | None = None


class FileCheck(Struct, frozen=True):
    """Check the live files of a version.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    columns : tuple of str
        The columns that ``find`` needs: names of `FILE_COLUMNS`, of plugins' fields, or ``numRecords`` (int64, null if
        statistics do not report it).
    find : function(pyarrow.Table) -> iterable of Finding
        Called once with all live files: these columns and ``path``. It works on columns; only what is wrong becomes an
        object.
    """

    feature: str
    columns: tuple[str, ...]
    find: Callable[[pa.Table], Iterable[Finding]]


class CommitCheck(Struct, frozen=True):
    """Check the commits that the log has: ``find(infos)`` gets ``commitInfo`` by version, oldest first, {} if none.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    find : function(Mapping of int to Mapping) -> iterable of Finding
        Called once, with ``commitInfo`` by version.
    """

    feature: str
    find: Callable[[Mapping[int, Mapping[str, Any]]], Iterable[Finding]]


class UniqueCheck(Struct, frozen=True):
    """Check, with ``deep="rows"``, that no two live rows have one value of a metadata column, null aside.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    column : str
        The metadata column, int64.
    rule, advice : str
        Of the finding.
    """

    feature: str
    column: str
    rule: str
    advice: str


TableCheck = Union[Finding, FileCheck, CommitCheck, UniqueCheck]
