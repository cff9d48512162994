"""Stores whose credentials a catalog issues: Python has them, and Spark's own access to files does not."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from delta_core.engines.interface import Storage
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.files import hadoop_path
from delta_core.errors import UnsupportedOperationError
from delta_core.handles.secrets import shown_uri

__all__ = ["check_credentials"]

#: By schemes: the settings of Hadoop that are credentials of its own, and an example.
_OWN = {
    "s3a": (
        r"fs\.s3a\.(?:bucket\.{place}\.)?(?:access\.key|aws\.credentials\.provider)",
        "spark.hadoop.fs.s3a.access.key with fs.s3a.secret.key, or spark.hadoop.fs.s3a.aws.credentials.provider",
    ),
    "abfss": (
        r"fs\.azure\.(?:account|sas)\.(?!expiry).*",
        "spark.hadoop.fs.azure.account.auth.type with the settings that it needs",
    ),
    "gs": (r"(?:fs\.gs|google\.cloud)\.auth\..*", "spark.hadoop.fs.gs.auth.type with the settings that it needs"),
}
_OWN["abfs"] = _OWN["abfss"]
_DEFAULTS = "core-default.xml"


def check_credentials(spark: Any, storage: Storage) -> None:
    """Reject a table whose store needs credentials that its catalog issues, unless the session has credentials.

    Spark reads and writes data files through Hadoop. Credentials of a catalog expire, and are those of one table: in
    the session's settings they would serve other tables of the store, and be visible to every query.

    Parameters
    ----------
    spark : SparkSession
        The session that is to read or write files.
    storage : Storage
        The table's store.

    Raises
    ------
    UnsupportedOperationError
        The session has no credentials for the store.
    """
    if not getattr(storage, "has_issued_credentials", False):
        return
    parts = urlsplit(hadoop_path(storage.uri("")))
    known = _OWN.get(parts.scheme)
    if known is not None and _has(spark, known[0].replace("{place}", re.escape(parts.netloc))):
        return
    remedy = f" Or set credentials for Hadoop in the session: {known[1]}." if known is not None else ""
    raise UnsupportedOperationError(
        f"The catalog of the table at {shown_uri(storage.root)} issues credentials for its store, which Spark's own "
        "access to data files does not get, and the session has no others. Read and write the table with "
        f"delta_core.DeltaTable, delta_core.dask or delta_core.ray.{remedy}",
        path=shown_uri(storage.root),
    )


def _has(spark: Any, pattern: str) -> bool:
    """Whether the session sets a setting of Hadoop whose whole name matches."""
    if not private.is_available(spark):
        # of a server's Hadoop only what its session was started with is visible
        names = [n.removeprefix("spark.hadoop.") for n in private.settings(spark)]
        return any(re.fullmatch(pattern, name) for name in names)
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    names = conf.getValByRegex(f"^{pattern}$")
    return any(list(conf.getPropertySources(name) or []) != [_DEFAULTS] for name in names)
