"""The table of DynamoDB that specifies which writer has which version, in the form of Delta on Spark and deltalake."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from delta_core.api import EngineError, MissingDependencyError, PerProcess
from delta_plugins.dynamodb.options import Settings

__all__ = ["Entry", "EntryTable", "TakenError", "is_rejected"]

_log = logging.getLogger(__name__)
#: The place where a client looks if neither options nor environment name a region, as Delta on Spark has it.
DEFAULT_REGION = "us-east-1"


class TakenError(Exception):
    """There is an entry of this name already."""


class Entry(Struct, frozen=True):
    """The item of one commit in DynamoDB.

    Parameters
    ----------
    name : str
        The commit's file below ``_delta_log``.
    temporary : str
        Where its bytes lie until they are copied, below ``_delta_log``.
    """

    name: str
    temporary: str
    complete: bool = False

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Entry:
        """Return the entry that an item holds; truth is a text there."""
        return cls(item["fileName"]["S"], item["tempPath"]["S"], item["complete"]["S"] == "true")


class EntryTable:
    """The entries of one Delta table.

    Parameters
    ----------
    path : str
        The path of the Delta table that all writers use.

    Every method is one call, and raises EngineError if DynamoDB can't do it.
    """

    def __init__(self, settings: Settings, path: str) -> None:
        self._settings = settings
        self._client = PerProcess(partial(_client_of, settings))
        self.path = path

    @property
    def client(self) -> Any:
        """The client that reaches DynamoDB; this process's own."""
        return self._client.get()

    @property
    def name(self) -> str:
        """The name of the DynamoDB table."""
        return self._settings.table

    def get(self, name: str) -> Entry | None:
        """Return the entry of a commit."""
        item = self._call("get_item", Key=self._key(name), ConsistentRead=True).get("Item")
        return None if item is None else Entry.of(item)

    def latest(self, path: str = "") -> Entry | None:
        """Return the entry of the last commit, of this Delta table or of another path."""
        found = self._call(
            "query",
            KeyConditionExpression="tablePath = :p",
            ExpressionAttributeValues={":p": {"S": path or self.path}},
            ConsistentRead=True,
            ScanIndexForward=False,
            Limit=1,
        )
        return next((Entry.of(item) for item in found["Items"]), None)

    def put(self, entry: Entry) -> None:
        """Put a new entry; raises TakenError if there is one of its name."""
        fields = {"tempPath": {"S": entry.temporary}, "complete": {"S": str(entry.complete).lower()}}
        item = {**self._key(entry.name), **fields}
        self._call("put_item", Item=item, ConditionExpression="attribute_not_exists(fileName)")

    def mark(self, name: str) -> None:
        """Mark an entry complete, with the time from which it may be deleted; one that is so already stays."""
        expires = str(int(time.time()) + self._settings.ttl_s)
        with contextlib.suppress(TakenError):
            self._call(
                "update_item",
                Key=self._key(name),
                UpdateExpression="SET complete = :c, expireTime = :e",
                ConditionExpression="complete = :f",
                ExpressionAttributeValues={":c": {"S": "true"}, ":f": {"S": "false"}, ":e": {"N": expires}},
            )

    def _key(self, name: str) -> dict[str, Any]:
        return {"tablePath": {"S": self.path}, "fileName": {"S": name}}

    def _call(self, operation: str, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        client = self.client
        try:
            try:
                return getattr(client, operation)(TableName=self.name, **arguments)
            except client.exceptions.ResourceNotFoundException:
                self._create(client)
                return getattr(client, operation)(TableName=self.name, **arguments)
        except client.exceptions.ConditionalCheckFailedException as e:
            raise TakenError from e
        except (ClientError, BotoCoreError) as e:
            what = operation.replace("_", " ")
            raise EngineError(f"DynamoDB could not {what} in table {self.name!r}: {type(e).__name__}: {e}.") from e

    def _create(self, client: Any) -> None:
        _log.info("DynamoDB table %s is not there: it is created.", self.name)
        kinds = {"tablePath": "HASH", "fileName": "RANGE"}
        # another one may be creating it
        with contextlib.suppress(client.exceptions.ResourceInUseException):
            client.create_table(
                TableName=self.name,
                AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in kinds],
                KeySchema=[{"AttributeName": n, "KeyType": kind} for n, kind in kinds.items()],
                **self._settings.billing,
            )
        waiter = client.get_waiter("table_exists")
        waiter.wait(TableName=self.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def is_rejected(error: BaseException | None) -> bool:
    """Whether DynamoDB answered that it does not do this, or was never requested."""
    response = getattr(error, "response", None)
    if response is None:
        return type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError")
    code = response["Error"].get("Code", "")
    status: int = response["ResponseMetadata"].get("HTTPStatusCode", 500)
    return status < 500 and "Throttl" not in code and "Exceeded" not in code


_clients: PerProcess[dict[str, Any]] = PerProcess(dict)
_connecting = PerProcess(threading.Lock)


def _client_of(settings: Settings) -> Any:
    """Return the client for a way of reaching DynamoDB; it takes most of a second to make, and threads share it."""
    key = repr((sorted(settings.session.items()), sorted(settings.client.items())))
    clients = _clients.get()
    with _connecting.get():
        if key not in clients:
            try:
                import boto3
            except ImportError as e:
                raise MissingDependencyError(
                    "Committing through DynamoDB needs boto3: pip install 'delta-core-lake[dynamodb]'.", module="boto3"
                ) from e
            session = boto3.session.Session(**settings.session)
            region = {"region_name": session.region_name or DEFAULT_REGION}
            clients[key] = session.client("dynamodb", **{**region, **settings.client})
        return clients[key]
