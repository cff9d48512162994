"""icebergWriterCompatV1: what Iceberg writers may also write."""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "icebergWriterCompatV1",
    "writer",
    "Iceberg writers may write the table too: id mapping, physical names col-<id>, no byte or short.",
    requires=("columnMapping", "icebergCompatV2"),
    properties={"delta.enableIcebergWriterCompatV1": "true switches the requirements on"},
    active=methodcaller("flag", "delta.enableIcebergWriterCompatV1"),
)
