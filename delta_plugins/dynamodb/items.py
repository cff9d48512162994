"""The table of DynamoDB that specifies which writer has which version, in the form of Delta on Spark and deltalake."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from delta_core.api import DynamoTable, EntryTakenError, TableMissingError
from delta_plugins.dynamodb.options import Settings

__all__ = ["Entry", "EntryTable"]

_log = logging.getLogger(__name__)


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
        self._table = DynamoTable(settings.table, settings.access)
        self.path = path

    @property
    def client(self) -> Any:
        """The client that reaches DynamoDB; this process's own."""
        return self._table.client

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
        """Put a new entry; raises EntryTakenError if there is one of its name."""
        fields = {"tempPath": {"S": entry.temporary}, "complete": {"S": str(entry.complete).lower()}}
        item = {**self._key(entry.name), **fields}
        self._call("put_item", Item=item, ConditionExpression="attribute_not_exists(fileName)")

    def mark(self, name: str) -> None:
        """Mark an entry complete, with the time from which it may be deleted; one that is so already stays."""
        expires = str(int(time.time()) + self._settings.ttl_s)
        with contextlib.suppress(EntryTakenError):
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
        try:
            return self._table.call(operation, **arguments)
        except TableMissingError:
            self._create(self.client)
            return self._table.call(operation, **arguments)

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
