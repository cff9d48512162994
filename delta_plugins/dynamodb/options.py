"""Options of the committer on DynamoDB, under the names that Delta on Spark and deltalake have for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from delta_core.api import DynamoAccess, InvalidArgumentError, known_dynamo_options

__all__ = ["Settings", "read_settings"]

#: Seconds after which a finished entry may be deleted.
DAY_S = 24 * 3600
_SPARK = ("spark.io.delta.storage.s3dynamodblogstore.", "io.delta.storage.s3dynamodblogstore.")


class Settings(Struct, frozen=True):
    """Which table of DynamoDB, and how to reach it.

    Parameters
    ----------
    table_path : str
        The path that other writers use for the Delta table; empty: as it was opened.
    ttl_s : int
        How long a finished entry must stay, in seconds.
    access : DynamoAccess
        How DynamoDB is reached.
    billing : Mapping
        Arguments of boto3's ``create_table``.
    """

    table: str = "delta_log"
    table_path: str = ""
    ttl_s: int = DAY_S
    access: DynamoAccess = DynamoAccess()
    billing: Mapping[str, Any] = field(default_factory=lambda: {"BillingMode": "PAY_PER_REQUEST"})


def read_settings(options: Mapping[str, Any]) -> Settings | None:
    """Return the settings, None if neither options nor environment request DynamoDB.

    They do by a table's name (``DELTA_DYNAMO_TABLE_NAME`` or Spark's ``...ddb.tableName``) or by
    ``AWS_S3_LOCKING_PROVIDER`` = ``dynamodb``. Options go before the environment, and take any case.
    """
    known = known_dynamo_options({_short(k): v for k, v in options.items()})
    table = known.get("delta_dynamo_table_name") or known.get("ddb.tablename")
    if not table and str(known.get("aws_s3_locking_provider", "")).lower() != "dynamodb":
        return None
    return Settings(
        str(table or "delta_log"),
        str(known.get("delta_dynamo_table_path", "")).rstrip("/"),
        _ttl(known),
        DynamoAccess.of(known),
        _billing(known),
    )


def _short(name: str) -> str:
    plain = name.lower()
    for prefix in _SPARK:
        plain = plain.removeprefix(prefix)
    return plain


def _ttl(known: Mapping[str, Any]) -> int:
    given = known.get("ddb.ttl", known.get("delta_dynamo_ttl", DAY_S))
    try:
        found = int(given)
    except (TypeError, ValueError):
        found = -1
    if found < 0:
        raise InvalidArgumentError(
            f"Found ddb.ttl {given!r}, expected a number of seconds from 0 on.", option="ddb.ttl"
        )
    return found


def _billing(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a table is paid for that has to be created: by request unless throughput is provisioned."""
    mode = str(known.get("delta_dynamo_billing_mode", "")).upper()
    read, write = known.get("provisionedthroughput.rcu"), known.get("provisionedthroughput.wcu")
    if mode == "PROVISIONED" or read or write:
        return {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": {"ReadCapacityUnits": int(read or 5), "WriteCapacityUnits": int(write or 5)},
        }
    if mode not in ("", "PAY_PER_REQUEST"):
        raise InvalidArgumentError(
            f"Found billing mode {mode!r}, expected PAY_PER_REQUEST or PROVISIONED.", option="delta_dynamo_billing_mode"
        )
    return {"BillingMode": "PAY_PER_REQUEST"}
