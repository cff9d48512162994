"""Calls of `deltalake` that are not available yet: each raises UnsupportedOperationError with what works today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from delta_core.errors import UnsupportedOperationError

__all__ = ["TODAY", "TableAlterer", "TableFeatures", "UnavailableCalls", "convert_to_deltalake"]

_SET_METADATA = (
    "stage the new metadata in a transaction: transaction = table.snapshot().begin('ALTER TABLE'), "
    "transaction.set_metadata(...), transaction.commit()"
)
_OVERWRITE = "write_deltalake(table, rows, mode='overwrite', predicate=...)"

#: What to do instead of each call, by the name that scripts use for it.
TODAY = {
    "DeltaTable.restore": "overwrite the table with the rows of the older version: write_deltalake(table, DeltaTable(uri, "
    "version=...).scan(), mode='overwrite', schema_mode='overwrite')",
    "DeltaTable.vacuum": "files that no version needs stay in the table's folder; run VACUUM of another Delta library, if it "
    "supports the table's features",
    "DeltaTable.repair": "pass a RemoveAction for each missing file to table.create_write_transaction(...)",
    "DeltaTable.generate": "table.file_uris() lists the files that a manifest would contain",
    "DeltaTable.cleanup_metadata": "old log files stay, which costs storage but no time",
    "DeltaTable.compact_logs": "table.create_checkpoint() makes the table as fast to open",
    "TableAlterer.add_columns": "append rows that have the new columns: write_deltalake(table, rows, mode='append', "
    "schema_mode='merge'); rows may be empty",
    "TableAlterer.add_constraint": "table.operation('add_constraint')({'name': 'id > 0'})",
    "TableAlterer.drop_constraint": f"{_SET_METADATA}, without the property delta.constraints.<name>",
    "TableAlterer.add_feature": f"{_SET_METADATA}; set_metadata(..., features=['name']) adds features",
    "TableAlterer.drop_column_not_null": _SET_METADATA,
    "TableAlterer.set_column_metadata": _SET_METADATA,
    "TableAlterer.set_table_description": _SET_METADATA,
    "TableAlterer.set_table_name": _SET_METADATA,
    "TableAlterer.set_table_properties": _SET_METADATA,
    "TableFeatures": "pass the protocol's names, for example DeltaTable.create(..., features=['name'])",
    "convert_to_deltalake": "DeltaTable.create(...) with the files' schema, then table.create_write_transaction(...) with an "
    "AddAction for each Parquet file",
}


def _error(name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{name} is not available in delta_core yet. Today: {TODAY[name]}.", operation=name
    )


def _call(name: str) -> Callable[..., NoReturn]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise _error(name)

    call.__name__ = name.rpartition(".")[2]
    call.__qualname__ = name
    call.__doc__ = f"Raise UnsupportedOperationError: not available yet. Today: {TODAY[name]}."
    return call


class TableAlterer:
    """`DeltaTable.alter`: none of its calls is available yet."""

    add_columns = _call("TableAlterer.add_columns")
    add_constraint = _call("TableAlterer.add_constraint")
    add_feature = _call("TableAlterer.add_feature")
    drop_column_not_null = _call("TableAlterer.drop_column_not_null")
    drop_constraint = _call("TableAlterer.drop_constraint")
    set_column_metadata = _call("TableAlterer.set_column_metadata")
    set_table_description = _call("TableAlterer.set_table_description")
    set_table_name = _call("TableAlterer.set_table_name")
    set_table_properties = _call("TableAlterer.set_table_properties")


class _Features(type):
    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):  # for inspection, copies and pickles, which look for names that need not exist
            raise AttributeError(name)
        raise _error("TableFeatures")


class TableFeatures(metaclass=_Features):
    """The feature names of `deltalake`; it can be imported, its names can't be read."""


convert_to_deltalake = _call("convert_to_deltalake")


class UnavailableCalls:
    """The methods of DeltaTable that are not available yet."""

    restore = _call("DeltaTable.restore")
    vacuum = _call("DeltaTable.vacuum")
    repair = _call("DeltaTable.repair")
    generate = _call("DeltaTable.generate")
    cleanup_metadata = _call("DeltaTable.cleanup_metadata")
    compact_logs = _call("DeltaTable.compact_logs")

    @property
    def alter(self) -> TableAlterer:
        """Changes of the table's definition; not available yet."""
        return TableAlterer()
