"""Attempts: what features may do to a commit while it is made, and what is rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from delta_core.errors import HookContractError, UnsupportedFeatureError
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.rules import ExtraAction
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import Field, Schema
from delta_core.testing.table_builder import TableBuilder
from tests.commit.conftest import added
from tests.hooks.external_plugins import ExternalPlugin


def begin(path: Path, **hooks: Any) -> Transaction:
    """Begin a transaction on a table with an external package's feature."""
    stranger = ExternalPlugin("acme.one", **hooks)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["acme.one"]}
    table = TableBuilder(path / "t").create({"id": "long", "kind": "string"}, partition_by=["kind"], protocol=protocol)
    snapshot = open_snapshot(table.uri, plugins=PluginRegistry([stranger]))
    transaction = Transaction(snapshot.context, snapshot, "WRITE")
    transaction.add_files(added("n.parquet"))
    return transaction


def rewritten(change: Callable[[Field], Field]) -> Any:
    """Return a finish_metadata hook that changes every field."""

    def hook(attempt: Any, metadata: Any) -> Any:
        fields = [change(f) for f in Schema.from_json(metadata.schema_string)]
        return replace(metadata, schema_string=Schema(fields).to_json())

    return hook


def test_values_in_the_metadata_of_columns_may_be_set(tmp_path: Path) -> None:
    hook = rewritten(lambda f: Field(f.name, f.type, f.nullable, {**f.metadata, "acme.mark": 7}))
    found = begin(tmp_path, finish_metadata=hook).commit().snapshot
    assert [f.metadata for f in found.schema] == [{"acme.mark": 7}] * 2
    assert open_snapshot(found.uri, plugins=found.registry).schema == found.schema


@pytest.mark.parametrize(
    "change",
    [
        lambda f: Field(f.name.upper(), f.type, f.nullable, f.metadata),
        lambda f: Field(f.name, "string", f.nullable, f.metadata),
        lambda f: Field(f.name, f.type, False, f.metadata),
    ],
)
def test_names_types_and_nullability_may_not(tmp_path: Path, change: Callable[[Field], Field]) -> None:
    transaction = begin(tmp_path, finish_metadata=rewritten(change))
    with pytest.raises(HookContractError, match="names, types or nullability"):
        transaction.commit()


def test_table_keeps_its_id(tmp_path: Path) -> None:
    transaction = begin(tmp_path, finish_metadata=lambda attempt, metadata: replace(metadata, id="other"))
    with pytest.raises(HookContractError, match="table's id"):
        transaction.commit()


def test_action_that_no_feature_provides_is_rejected(tmp_path: Path) -> None:
    rule = ExtraAction("acme.one", "acmeNote", {"text": "x"})
    transaction = begin(tmp_path, commit_rules=lambda attempt: [rule])
    with pytest.raises(HookContractError, match="is of kind acmeNote, which no feature of the table permits"):
        transaction.commit()
    other = begin(tmp_path / "other")
    other.add_action("acmeNote", {"text": "x"})
    with pytest.raises(UnsupportedFeatureError, match="acmeNote"):
        other.commit()
