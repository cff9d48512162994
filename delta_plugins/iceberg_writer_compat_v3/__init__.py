"""icebergWriterCompatV3: what Iceberg 3 writers may also write."""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "icebergWriterCompatV3",
    "writer",
    "Iceberg 3 writers may write the table too: id mapping, physical names col-<id>, no byte or short.",
    requires=("columnMapping", "icebergCompatV3"),
    properties={"delta.enableIcebergWriterCompatV3": "true switches the requirements on"},
    active=methodcaller("flag", "delta.enableIcebergWriterCompatV3"),
)
