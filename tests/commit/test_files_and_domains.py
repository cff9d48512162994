"""What an attempt rejects of its files, and how features set domains of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core.errors import (
    CommitConflictError,
    HookContractError,
    InvalidArgumentError,
    TypeChangeError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.intents import READ_FILE
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.hookspecs import hookimpl
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.rules import RemainingFilesCheck
from delta_core.kernel.protocol.actions import DomainMetadata
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import Schema
from delta_core.testing.table_builder import TableBuilder
from tests.commit.conftest import added

Begin = Callable[..., Transaction]


def live_files(transaction: Transaction) -> pa.Table:
    assert transaction.base is not None
    files = transaction.base.files.columns(READ_FILE)
    return files.append_column("dataChange", pa.repeat(pa.scalar(True), files.num_rows))


# --- files ---------------------------------------------------------------------------------


def test_file_is_added_once(begin: Begin) -> None:
    transaction = begin()
    transaction.add_files(added("one.parquet"))
    transaction.add_files(added("one.parquet"))
    with pytest.raises(InvalidArgumentError, match=r"adds one\.parquet twice"):
        transaction.commit()


def test_file_is_not_added_and_removed_as_it_is(begin: Begin) -> None:
    transaction = begin()
    files = live_files(transaction).slice(0, 1)
    transaction.remove_files(files)
    transaction.add_files(files.drop_columns(["dvId"]))
    with pytest.raises(InvalidArgumentError, match="adds and removes"):
        transaction.commit()


def test_file_may_be_added_again_as_it_is(begin: Begin) -> None:
    transaction = begin()
    again = live_files(transaction).slice(0, 1).drop_columns(["dvId"])
    transaction.add_files(again.append_column("fresh", pa.array([False])))
    assert transaction.commit().snapshot.files.count == 3


def test_count_of_rows_is_taken_from_the_statistics(begin: Begin) -> None:
    transaction = begin()
    transaction.add_files(added("one.parquet").drop_columns(["numRecords"]))
    assert transaction.intents.adds[0].column("numRecords").to_pylist() == [5]


# --- types ---------------------------------------------------------------------------------


def with_schema(transaction: Transaction, fields: Mapping[str, str], replaces: bool = False) -> None:
    listed = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields.items()]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": listed}))
    transaction.set_metadata(replace(transaction.table.metadata, schema_string=schema.to_json()), replaces=replaces)


def test_column_keeps_its_type_unless_a_feature_or_a_whole_overwrite_allows_another(begin: Begin) -> None:
    with pytest.raises(TypeChangeError, match="Column id is") as caught:
        with_schema(begin(), {"id": "string", "kind": "string"})
    assert caught.value.column == "id"
    transaction = begin()
    with_schema(transaction, {"id": "string", "kind": "string"}, replaces=True)
    transaction.remove_files(live_files(transaction))
    assert transaction.commit().snapshot.schema.fields[0].type.type == "string"


def test_columns_come_and_go(begin: Begin) -> None:
    transaction = begin()
    with_schema(transaction, {"kind": "string", "more": "double"})
    assert transaction.commit().snapshot.schema.names == ["kind", "more"]


# --- what features add ---------------------------------------------------------------------


class Keeper:
    """A feature with a domain of its own, which a request sets, and a demand on files."""

    FEATURE = TableFeature("keeper", "writer", "Keeps.", requires=("domainMetadata",), domains=("delta.keeper",))

    def __init__(self, domain: str = "delta.keeper", field: str | None = None) -> None:
        self.domain = domain
        self.field = field

    @hookimpl
    def prepare_metadata(self, metadata: Any) -> Any:
        left = {k: v for k, v in metadata.configuration.items() if k != "keep"}
        return replace(metadata, configuration=left)

    @hookimpl
    def prepare_domains(self, requested: Mapping[str, str]) -> Iterable[DomainMetadata]:
        if "keep" in requested:
            yield DomainMetadata(self.domain, requested["keep"], removed=not requested["keep"])

    @hookimpl
    def commit_rules(self) -> Iterable[RemainingFilesCheck]:
        return [] if self.field is None else [RemainingFilesCheck("keeper", self.field, "lack what is kept.")]


@pytest.fixture
def keeping(tmp_path: Path) -> Callable[..., Transaction]:
    table = TableBuilder(tmp_path / "k").create({"id": "long"}, features=["keeper", "domainMetadata"])
    table.append([{"id": 1}]).append([{"id": 2}])

    def make(*arguments: Any) -> Transaction:
        snapshot = open_snapshot(table.uri, plugins=PluginRegistry([Keeper(*arguments)]))
        return Transaction(snapshot.context, snapshot, "ALTER TABLE")

    return make


def keep(transaction: Transaction, value: str) -> Transaction:
    transaction.set_metadata(replace(transaction.table.metadata, configuration={"keep": value}))
    return transaction


def test_domain_of_a_feature_is_set_by_a_request_that_is_not_stored(keeping: Callable[..., Transaction]) -> None:
    transaction = keep(keeping(), "this")
    assert transaction.table.domains == {"delta.keeper": "this"}
    snapshot = transaction.commit().snapshot
    assert (snapshot.domains(), snapshot.metadata.configuration) == ({"delta.keeper": "this"}, {})
    assert snapshot.state.domains == {"delta.keeper": "this"}
    assert keep(keeping(), "").commit().snapshot.domains() == {}


def test_features_domain_conflicts_with_another_change_of_it(keeping: Callable[..., Transaction]) -> None:
    slow = keep(keeping(), "mine")
    keep(keeping(), "theirs").commit()
    with pytest.raises(CommitConflictError):
        slow.commit()


def test_feature_sets_no_domain_of_others(keeping: Callable[..., Transaction]) -> None:
    with pytest.raises(HookContractError, match=r"delta\.other"):
        keep(keeping("delta.other"), "x")


def test_user_sets_no_domain_of_a_feature(keeping: Callable[..., Transaction]) -> None:
    transaction = keeping()
    transaction.set_domain("delta.keeper", "x")
    with pytest.raises(UnsupportedOperationError, match="belongs to the system"):
        transaction.commit()


@pytest.mark.parametrize(("field", "count"), [("clusteringProvider", 2), ("", 2), ("stats", 0)])
def test_every_file_has_what_a_rule_requests(keeping: Callable[..., Transaction], field: str, count: int) -> None:
    transaction = keeping("delta.keeper", field)
    transaction.add_files(added("new.parquet", None))
    if not count:
        transaction.commit()
        return
    with pytest.raises(UnsupportedOperationError, match=f"{count} files lack what is kept") as caught:
        transaction.commit()
    assert caught.value.count == count


def test_files_that_go_or_come_again_are_not_requested(keeping: Callable[..., Transaction]) -> None:
    transaction = keeping("delta.keeper", "clusteringProvider")
    files = live_files(transaction)
    transaction.remove_files(files.slice(0, 1))
    transaction.add_files(files.slice(1, 1).drop_columns(["dvId"]))
    assert transaction.commit().snapshot.files.count == 1
