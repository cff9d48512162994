"""Tuples that methods of `DeltaTable` return, with the fields of deltalake's."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DeltaTableConfig", "ProtocolVersions"]


class ProtocolVersions(NamedTuple):
    """The table's protocol; a list is None if no feature is listed.

    Parameters
    ----------
    min_reader_version, min_writer_version : int
        The protocol versions that readers and writers must support.
    writer_features, reader_features : list of str or None
        The table features that they must support.

    Examples
    --------
    >>> table.protocol().min_reader_version
    1
    """

    min_reader_version: int
    min_writer_version: int
    writer_features: list[str] | None
    reader_features: list[str] | None


class DeltaTableConfig(NamedTuple):
    """How the table was opened; accepted for moved scripts and without effect, since files load on demand.

    Parameters
    ----------
    without_files, log_buffer_size, skip_stats : optional
        The arguments of `DeltaTable`.

    Examples
    --------
    >>> DeltaTable("table", without_files=True).table_config.without_files, table.table_config.without_files
    (True, False)
    """

    without_files: bool = False
    log_buffer_size: int | None = None
    skip_stats: bool = False
