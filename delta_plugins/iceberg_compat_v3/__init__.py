"""icebergCompatV3: files that Iceberg 3 can take over, vectors and row ids included."""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "icebergCompatV3",
    "writer",
    "Data files and metadata are written so that they convert to Iceberg (3, with deletion vectors and row tracking).",
    requires=("columnMapping", "rowTracking"),
    properties={"delta.enableIcebergCompatV3": "true switches the requirements on"},
    active=methodcaller("flag", "delta.enableIcebergCompatV3"),
)
