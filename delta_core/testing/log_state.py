"""The plainest possible log replay, in dicts: what the builder writes next from, and what tests compare with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

__all__ = ["Action", "LogState", "reconcile", "vector_id"]

Action = Mapping[str, Any]
FileKey = tuple[str, "str | None"]


def vector_id(descriptor: Mapping[str, Any] | None) -> str | None:
    """Return a vector's unique id, None without one. Protocol: Derived Fields."""
    if descriptor is None:
        return None
    offset = descriptor.get("offset")
    return f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


class LogState(Struct):
    """The state that a log adds up to; files by (path, vector id)."""

    protocol: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    files: dict[FileKey, dict[str, Any]] = {}
    tombstones: dict[FileKey, dict[str, Any]] = {}
    txns: dict[str, dict[str, Any]] = {}
    domains: dict[str, dict[str, Any]] = {}

    def apply(self, actions: Iterable[Action]) -> None:
        """Take one commit in."""
        for action in actions:
            for kind, value in action.items():
                self._apply(kind, value)

    def _apply(self, kind: str, value: Any) -> None:
        if kind in ("add", "remove"):
            key = (value["path"], vector_id(value.get("deletionVector")))
            self.files.pop(key, None)
            self.tombstones.pop(key, None)
            (self.files if kind == "add" else self.tombstones)[key] = dict(value)
        elif kind == "protocol":
            self.protocol = dict(value)
        elif kind == "metaData":
            self.metadata = dict(value)
        elif kind == "txn":
            self.txns[value["appId"]] = dict(value)
        elif kind == "domainMetadata":
            self.domains[value["domain"]] = dict(value)

    def small_actions(self, removed_domains: bool = False) -> list[dict[str, Any]]:
        """Return every action that is not of a file; removed domains only if requested."""
        out = [{"protocol": self.protocol}] if self.protocol else []
        out += [{"metaData": self.metadata}] if self.metadata else []
        out += [{"txn": t} for t in self.txns.values()]
        return out + [{"domainMetadata": d} for d in self.domains.values() if removed_domains or not d.get("removed")]

    def file_actions(self) -> list[dict[str, Any]]:
        """Return adds, then removes."""
        return [{"add": a} for a in self.files.values()] + [{"remove": r} for r in self.tombstones.values()]


def reconcile(commits: Iterable[Iterable[Action]]) -> LogState:
    """Return what commits, oldest first, add up to."""
    state = LogState()
    for actions in commits:
        state.apply(actions)
    return state
