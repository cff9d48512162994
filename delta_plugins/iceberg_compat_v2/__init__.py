"""icebergCompatV2: files that Iceberg can take over. Protocol: Iceberg Compatibility V2."""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "icebergCompatV2",
    "writer",
    "Data files and metadata are written so that they convert to Iceberg (2).",
    requires=("columnMapping",),
    properties={"delta.enableIcebergCompatV2": "true switches the requirements on"},
    active=methodcaller("flag", "delta.enableIcebergCompatV2"),
)
