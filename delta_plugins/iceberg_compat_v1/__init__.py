"""icebergCompatV1: files that Iceberg can take over. Protocol: Iceberg Compatibility V1."""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "icebergCompatV1",
    "writer",
    "Data files and metadata are written so that they convert to Iceberg (1, without nested arrays and maps).",
    requires=("columnMapping",),
    properties={"delta.enableIcebergCompatV1": "true switches the requirements on"},
    active=methodcaller("flag", "delta.enableIcebergCompatV1"),
)
