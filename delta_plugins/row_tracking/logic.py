"""Row ids and row commit versions as expressions over a file's constants and hidden columns."""

from collections.abc import Mapping

from delta_core.api import Call, Expression, FileConstant, MetadataColumn, PhysicalColumn, PrimitiveType, RowPosition

__all__ = ["COMMIT_VERSION_COLUMN", "DOMAIN", "ROW_ID_COLUMN", "metadata_columns"]

DOMAIN = "delta.rowTracking"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
_LONG = PrimitiveType("long")


def metadata_columns(configuration: Mapping[str, str]) -> list[MetadataColumn]:
    """Return ``_row_id`` and ``_row_commit_version``, null for rows that were never given any, and the file's values.

    A materialised value wins over the file's: base row id plus physical position, default commit version.
    """
    base, default = FileConstant("baseRowId", _LONG), FileConstant("defaultRowCommitVersion", _LONG)
    row_id = _materialised(configuration.get(ROW_ID_COLUMN), Call("+", (base, RowPosition())))
    version = _materialised(configuration.get(COMMIT_VERSION_COLUMN), default)
    return [
        MetadataColumn("rowTracking", "_row_id", _LONG, row_id, identifies=True),
        MetadataColumn("rowTracking", "_base_row_id", _LONG, base),
        MetadataColumn("rowTracking", "_default_row_commit_version", _LONG, default),
        MetadataColumn("rowTracking", "_row_commit_version", _LONG, version),
    ]


def _materialised(column: str | None, otherwise: Expression) -> Expression:
    return Call("coalesce", (PhysicalColumn(column, _LONG), otherwise)) if column else otherwise
