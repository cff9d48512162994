"""Tables of DynamoDB, in which committers keep entries: how they are reached, and single calls with typed errors."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from delta_core.errors import EngineError, MissingDependencyError
from delta_core.runtime.processes import PerProcess

__all__ = [
    "DynamoAccess",
    "DynamoTable",
    "EntryTakenError",
    "TableMissingError",
    "is_dynamo_rejection",
    "known_dynamo_options",
]

#: The region of a client if neither options nor environment name one, as Delta on Spark has it.
DEFAULT_REGION = "us-east-1"


class EntryTakenError(Exception):
    """The condition of a call does not hold: there is an entry already, or not the one that the call requires."""


class TableMissingError(EngineError):
    """There is no table of this name."""


class DynamoAccess(Struct, frozen=True):
    """How DynamoDB is reached.

    Parameters
    ----------
    session, client : Mapping
        Arguments of boto3's session, and of its client.
    """

    session: Mapping[str, Any] = {}
    client: Mapping[str, Any] = {}

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> DynamoAccess:
        """Return the access that options specify.

        Parameters
        ----------
        known : Mapping
            The options, by names in lower case (`known_dynamo_options`).
        """
        return cls(_session(known), _client(known))


class DynamoTable:
    """One table of DynamoDB.

    Parameters
    ----------
    name : str
        Its name.
    access : DynamoAccess
        How it is reached.
    """

    def __init__(self, name: str, access: DynamoAccess) -> None:
        self.name = name
        self._access = access
        self._client = PerProcess(partial(_client_of, access))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self._access)

    @property
    def client(self) -> Any:
        """The client that reaches DynamoDB; this process's own."""
        return self._client.get()

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation on the table.

        Parameters
        ----------
        operation : str
            A method of boto3's client.
        **arguments
            Its arguments, without the name of the table.

        Raises
        ------
        EntryTakenError
            If the condition of the call does not hold.
        TableMissingError
            If there is no such table.
        EngineError
            If DynamoDB can't do it; the error of its client is the cause.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        client = self.client
        title = operation.replace("_", " ")
        try:
            return getattr(client, operation)(TableName=self.name, **arguments)
        except client.exceptions.ConditionalCheckFailedException as e:
            raise EntryTakenError from e
        except client.exceptions.ResourceNotFoundException as e:
            raise TableMissingError(
                f"DynamoDB could not {title}: there is no table {self.name!r}. Create it, or check its name and region."
            ) from e
        except (ClientError, BotoCoreError) as e:
            raise EngineError(f"DynamoDB could not {title} in table {self.name!r}: {type(e).__name__}: {e}.") from e


def is_dynamo_rejection(error: BaseException | None) -> bool:
    """Whether DynamoDB answered that it does not do this, or was never requested.

    Parameters
    ----------
    error : exception, optional
        The error of boto3, which is the cause of an EngineError.
    """
    response = getattr(error, "response", None)
    if response is None:
        return type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError")
    code = response["Error"].get("Code", "")
    status: int = response["ResponseMetadata"].get("HTTPStatusCode", 500)
    return status < 500 and "Throttl" not in code and "Exceeded" not in code


_clients: PerProcess[dict[str, Any]] = PerProcess(dict)
_connecting = PerProcess(threading.Lock)


def _client_of(access: DynamoAccess) -> Any:
    """Return the client for a way of reaching DynamoDB; it takes most of a second to make, and threads share it."""
    key = repr((sorted(access.session.items()), sorted(access.client.items())))
    clients = _clients.get()
    with _connecting.get():
        if key not in clients:
            try:
                import boto3
            except ImportError as e:
                raise MissingDependencyError(
                    "Committing through DynamoDB needs boto3: pip install 'delta-core-lake[dynamodb]'.", module="boto3"
                ) from e
            session = boto3.session.Session(**access.session)
            region = {"region_name": session.region_name or DEFAULT_REGION}
            clients[key] = session.client("dynamodb", **{**region, **access.client})
        return clients[key]


# --- options -------------------------------------------------------------------------------


def known_dynamo_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by their names in lower case, with those of the environment that they lack.

    Parameters
    ----------
    options : Mapping
        The storage options of a table.
    """
    return {**_environment(), **{k.lower(): v for k, v in options.items()}}


def _environment() -> dict[str, Any]:
    prefixes = ("delta_dynamo_", "aws_s3_locking_provider", "aws_endpoint_url", "aws_region", "dynamodb_endpoint")
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
