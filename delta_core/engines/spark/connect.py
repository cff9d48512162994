"""Sessions of Spark Connect whose server has the format delta: the server does what needs its driver."""

from __future__ import annotations

from typing import Any

from delta_core.engines.spark.plan import private

__all__ = ["SERVER", "has_format", "is_configured"]

#: The remedy if a server lacks the format.
SERVER = (
    "Start the server with a Python program that calls delta_core.spark.configure, with "
    "spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin."
)
_EXTENSION = "delta.Extensions"


def has_format(spark: Any) -> bool:
    """Whether a session is one of Spark Connect, and its server was configured with the format delta."""
    if getattr(spark, "_jsparkSession", None) is not None or not private.is_known_version():
        return False
    return is_configured(spark)


def is_configured(spark: Any) -> bool:
    """Whether a session, or its server, was configured with the format delta."""
    return _EXTENSION in str(spark.conf.get("spark.sql.extensions", "")).split(",")
