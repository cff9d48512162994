"""Tables that tests write to, and plugins that require something of writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.hookspecs import hookimpl
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.rules import MetadataColumn
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.kernel.write.files import Written, write_files
from delta_core.testing.table_builder import TableBuilder

#: From a schema, and write rules of a plugin, to a new table's snapshot.
Make = Callable[..., Snapshot]


class Asking:
    """A plugin whose ``write_rules``, and metadata columns, are given."""

    def __init__(self, *rules: Any, name: str = "asking") -> None:
        self.FEATURE = TableFeature(name, "writer", "Requires what a test wants.")
        self._rules = rules

    @hookimpl
    def write_rules(self) -> Iterable[Any]:
        return [r for r in self._rules if not isinstance(r, MetadataColumn)]

    @hookimpl
    def read_rules(self) -> Iterable[Any]:
        return [r for r in self._rules if isinstance(r, MetadataColumn)]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return the maker of new tables."""

    def made(schema: Any, *rules: Any, features: Iterable[str] = (), **options: Any) -> Snapshot:
        asking = ["asking"] if rules else []
        TableBuilder(tmp_path / "t").create(schema, features=[*features, *asking], **options)
        return open_snapshot(str(tmp_path / "t"), plugins=PluginRegistry([Asking(*rules)]) if rules else None)

    return made


def append(snapshot: Snapshot, data: Any, **options: Any) -> tuple[Snapshot, Written]:
    """Commit rows; return the next snapshot and what was written."""
    transaction = Transaction(snapshot.context, snapshot, "WRITE")
    written = write_files(snapshot.engine, transaction.plan, data, **options)
    transaction.add_files(written.files)
    return transaction.commit().snapshot, written
