"""The operation of a version's transaction, for people. Protocol: Transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_core.api import CorruptTableError, RangeRequest, Storage
from delta_plugins.lance.manifest import Manifest, read_section
from delta_plugins.lance.wire import Message, chosen, decode, message_table

__all__ = ["entry", "read_transaction", "transaction_operation", "transaction_path"]

TRANSACTIONS = "_transactions"
#: The numbers of a transaction's alternatives begin here.
_FIRST_OPERATION = 100
#: Facts of operations that are shown as they are.
_SHOWN = {
    "delete": ("predicate",),
    "restore": ("version",),
    "reserve_fragments": ("num_fragments",),
    "clone": ("is_shallow", "ref_name", "ref_version", "ref_path", "branch_name"),
    "update": ("fields_modified",),
}


def read_transaction(storage: Storage, below: str, data: bytes | memoryview, manifest: Manifest) -> Message | None:
    """Return the decoded transaction of a version, from its file or else from the manifest; None if there is none.

    Raises
    ------
    CorruptTableError
        If it can't be decoded.
    """
    name = manifest.message["transaction_file"]
    if manifest.transaction_position is not None:
        body = read_section(data, manifest.transaction_position, manifest.path, "transaction")
        return decode("Transaction", body, f"Transaction of manifest {manifest.path}")
    if not name:
        return None
    path = transaction_path(below, name)
    try:
        [found] = storage.read([RangeRequest(path)])
    except FileNotFoundError:
        return None
    return decode("Transaction", found, f"Transaction {path}")


def transaction_path(below: str, name: str) -> str:
    """Return the path of a transaction's file below the root of the dataset."""
    return f"{below}/{TRANSACTIONS}/{name}" if below else f"{TRANSACTIONS}/{name}"


def transaction_operation(transaction: Message) -> str | None:
    """Return the name of a transaction's operation, such as ``append``; None if it is not known."""
    names = tuple(f.name for number, f in message_table("Transaction").items() if number >= _FIRST_OPERATION)
    return chosen(transaction, names)


def entry(
    storage: Storage, below: str, data: bytes | memoryview, manifest: Manifest, tags: Sequence[str]
) -> dict[str, Any]:
    """Return a version as `LanceDataset.history` lists it."""
    writer = manifest.message["writer_version"]
    found: dict[str, Any] = {
        "version": manifest.version,
        "timestamp": manifest.timestamp_us // 1000 or None,
        "operation": None,
        "operationParameters": {},
        "readVersion": None,
        "transactionId": None,
        "engineInfo": f"{writer['library']} {writer['version']}" if writer else None,
        "tags": list(tags),
    }
    try:
        transaction = read_transaction(storage, below, data, manifest)
    except CorruptTableError as e:
        return {**found, "operation": "unknown", "operationParameters": {"error": e.message}}
    if transaction is None:
        return found
    operation = transaction_operation(transaction)
    return {
        **found,
        "operation": operation or "unknown",
        "operationParameters": _parameters(operation, transaction),
        "readVersion": transaction["read_version"],
        "transactionId": transaction["uuid"] or None,
    }


def _parameters(operation: str | None, transaction: Message) -> dict[str, Any]:
    if operation is None:
        return dict(transaction["transaction_properties"])
    body = transaction[operation]
    found = {name: body[name] for name in _SHOWN.get(operation, ()) if body[name] not in (None, [])}
    counts = {f"num_{name}": len(value) for name, value in body.items() if _is_list_of_messages(name, value)}
    return {**transaction["transaction_properties"], **found, **counts}


def _is_list_of_messages(name: str, value: object) -> bool:
    if name.endswith("fragment_ids"):
        return bool(value)
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
