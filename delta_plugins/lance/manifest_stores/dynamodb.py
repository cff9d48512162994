"""A manifest store in a table of DynamoDB, in the layout of pylance: URIs ``s3+ddb://bucket/path?ddbTableName=table``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import parse_qsl

from delta_core.api import (
    CorruptTableError,
    DynamoAccess,
    DynamoTable,
    EngineError,
    EntryTakenError,
    InvalidArgumentError,
    Storage,
    is_dynamo_rejection,
    known_dynamo_options,
    open_storage,
)
from delta_plugins.lance.manifest_stores.entries import ManifestEntry
from delta_plugins.lance.manifest_stores.storage import with_manifest_store

__all__ = ["DynamoManifests", "open_dynamo_place"]

#: The parameter of URIs that names the table.
TABLE = "ddbTableName"
#: The option, and the environment's variable, that pylance has for the place of DynamoDB.
_ENDPOINT = "dynamodb_endpoint"
#: Characters that pylance stores in another form in the keys of objects, and in entries.
_ENCODED = frozenset('\\{}^%`[]"><~#|*?\r\n')
_LAST = (1 << 63) - 1


def open_dynamo_place(
    uri: str, options: Mapping[str, Any], allow_external: Sequence[str] | Literal[False] | None
) -> Storage:
    """Return the storage of a URI ``s3+ddb://bucket/path?ddbTableName=table``, an entry point of ``delta_core.stores``.

    Raises
    ------
    InvalidArgumentError
        For a URI without a table, with another parameter, or with a path that pylance would store in another form.
    """
    place, _, query = uri.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    if [n for n, _ in given] != [TABLE] or not given[0][1]:
        raise InvalidArgumentError(
            f"Found the URI {uri!r}, expected the table of DynamoDB as its only parameter, such as "
            f"s3+ddb://bucket/path?{TABLE}=table."
        )
    rest = place.partition("://")[2].rstrip("/")
    base = rest.partition("/")[2]
    if wrong := sorted(_ENCODED.intersection(base)):
        raise InvalidArgumentError(
            f"Found {wrong[0]!r} in the URI {uri!r}: entries and objects of such a path have another one in pylance. "
            "Choose a path without this character."
        )
    known = known_dynamo_options(options)
    if known.get(_ENDPOINT):
        known = {"aws_endpoint_url_dynamodb": known[_ENDPOINT], **known}
    others = {k: v for k, v in options.items() if k.lower() != _ENDPOINT}
    inner = open_storage(f"s3://{rest}", others, allow_external)
    return with_manifest_store(inner, DynamoManifests(given[0][1], DynamoAccess.of(known)), base)


class DynamoManifests:
    """Entries in a table of DynamoDB with the hash key ``base_uri``, a text, and the range key ``version``, a number.

    Parameters
    ----------
    table : str
        The name of the table, which has to be there.
    access : DynamoAccess
        How DynamoDB is reached.
    """

    #: The writer that entries specify.
    committer = "delta_core"

    def __init__(self, table: str, access: DynamoAccess) -> None:
        self.name = f"table {table!r} of DynamoDB"
        self._table = DynamoTable(table, access)
        self._access = access

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._table.name, self._access)

    def get(self, base: str, version: int) -> ManifestEntry | None:
        """See `entries.ManifestStore`."""
        item = self._table.call("get_item", Key=_key(base, version), ConsistentRead=True).get("Item")
        return None if item is None else self._entry(base, item)

    def latest(self, base: str) -> ManifestEntry | None:
        """See `entries.ManifestStore`."""
        found = self._table.call(
            "query",
            KeyConditionExpression="base_uri = :base AND version <= :last",
            ExpressionAttributeValues={":base": {"S": base}, ":last": {"N": str(_LAST)}},
            ConsistentRead=True,
            ScanIndexForward=False,
            Limit=1,
        )
        return next((self._entry(base, item) for item in found["Items"]), None)

    def claim(self, base: str, entry: ManifestEntry) -> bool:
        """See `entries.ManifestStore`.

        Raises
        ------
        EngineError
            As `entries.ManifestStore.claim`.
        """
        try:
            return self._put(base, entry, "attribute_not_exists(base_uri) AND attribute_not_exists(version)")
        except EngineError as e:
            if not is_dynamo_rejection(e.__cause__):
                raise
            rejection = PermissionError(str(e.__cause__))
            rejection.__cause__ = e.__cause__
            raise EngineError(str(e)) from rejection

    def settle(self, base: str, entry: ManifestEntry) -> bool:
        """See `entries.ManifestStore`."""
        return self._put(base, entry, "attribute_exists(base_uri) AND attribute_exists(version)")

    def _put(self, base: str, entry: ManifestEntry, condition: str) -> bool:
        item = {**_key(base, entry.version), "path": {"S": entry.path}, "committer": {"S": self.committer}}
        if entry.size is not None:
            item["size"] = {"N": str(entry.size)}
        try:
            self._table.call("put_item", Item=item, ConditionExpression=condition)
        except EntryTakenError:
            return False
        return True

    def _entry(self, base: str, item: Mapping[str, Any]) -> ManifestEntry:
        path, size = item.get("path", {}).get("S"), item.get("size", {"N": None}).get("N", "")
        version = int(item["version"]["N"])
        if path is None or not (size is None or size.isdecimal()):
            raise CorruptTableError(
                f"The entry of version {version} of {base} in {self.name} is damaged: expected a text as its path and "
                f"a number as its size, found {dict(item)}. Correct the entry.",
                version=version,
            )
        return ManifestEntry(version, path, None if size is None else int(size))


def _key(base: str, version: int) -> dict[str, Any]:
    return {"base_uri": {"S": base}, "version": {"N": str(version)}}
