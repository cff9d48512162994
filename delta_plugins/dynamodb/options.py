"""Options of the committer on DynamoDB, under the names that Delta on Spark and deltalake have for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from delta_core.api import InvalidArgumentError

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
    session, client, billing : Mapping
        Arguments of boto3's session, client and ``create_table``.
    """

    table: str = "delta_log"
    table_path: str = ""
    ttl_s: int = DAY_S
    session: Mapping[str, Any] = {}
    client: Mapping[str, Any] = {}
    billing: Mapping[str, Any] = field(default_factory=lambda: {"BillingMode": "PAY_PER_REQUEST"})


def read_settings(options: Mapping[str, Any]) -> Settings | None:
    """Return the settings, None if neither options nor environment request DynamoDB.

    They do by a table's name (``DELTA_DYNAMO_TABLE_NAME`` or Spark's ``...ddb.tableName``) or by
    ``AWS_S3_LOCKING_PROVIDER`` = ``dynamodb``. Options go before the environment, and take any case.
    """
    known = {**_environment(), **{_short(k): v for k, v in options.items()}}
    table = known.get("delta_dynamo_table_name") or known.get("ddb.tablename")
    if not table and str(known.get("aws_s3_locking_provider", "")).lower() != "dynamodb":
        return None
    return Settings(
        str(table or "delta_log"),
        str(known.get("delta_dynamo_table_path", "")).rstrip("/"),
        _ttl(known),
        _session(known),
        _client(known),
        _billing(known),
    )


def _short(name: str) -> str:
    plain = name.lower()
    for prefix in _SPARK:
        plain = plain.removeprefix(prefix)
    return plain


def _environment() -> dict[str, Any]:
    prefixes = ("delta_dynamo_", "aws_s3_locking_provider", "aws_endpoint_url", "aws_region")
    found = {k.lower(): v for k, v in os.environ.items()}
    return {k: v for k, v in found.items() if k.startswith(prefixes) or k.endswith("_dynamodb")}


def _first(known: Mapping[str, Any], *names: str) -> Any:
    return next((known[n] for n in names if known.get(n)), None)


def _session(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return credentials: DynamoDB's own if they are given, else the store's, else what boto3 finds."""
    given = {
        "aws_access_key_id": _first(known, "aws_access_key_id_dynamodb", "aws_access_key_id", "access_key_id", "key"),
        "aws_secret_access_key": _first(
            known, "aws_secret_access_key_dynamodb", "aws_secret_access_key", "secret_access_key", "secret"
        ),
        "aws_session_token": _first(known, "aws_session_token_dynamodb", "aws_session_token", "session_token", "token"),
        "profile_name": _first(known, "aws_profile", "profile"),
    }
    return {k: v for k, v in given.items() if v is not None}


def _client(known: Mapping[str, Any]) -> dict[str, Any]:
    nested = known.get("client_kwargs") or {}
    given = {
        "region_name": _first(known, "aws_region_dynamodb", "ddb.region", "aws_region", "region", "aws_default_region")
        or nested.get("region_name"),
        "endpoint_url": _first(
            known, "aws_endpoint_url_dynamodb", "aws_endpoint_url", "endpoint_url", "aws_endpoint", "endpoint"
        )
        or nested.get("endpoint_url"),
    }
    return {k: v for k, v in given.items() if v is not None}


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
