"""Feature domainMetadata: users keep configurations; those of the system are left to features."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from delta_core.errors import UnsupportedOperationError
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.testing.feature_contract import FeatureContract, attempt_view, table_state
from tests.plugins.written import append, begin, create, peer_rows

ID = [{"name": "id", "type": "long"}]


class TestDomainMetadata(FeatureContract):
    name = "domainMetadata"

    def test_it_is_active_where_it_is_supported(self) -> None:
        assert table_state([self.name]).is_active(self.name)
        assert not table_state([]).is_active(self.name)

    @pytest.mark.parametrize("configuration", ["{}", None])
    def test_edit_of_a_system_domain_is_rejected(self, configuration: str | None) -> None:
        attempt = attempt_view(table_state([self.name]), domains={"mine": "1", "delta.rowTracking": configuration})
        with pytest.raises(UnsupportedOperationError, match=r"'delta\.rowTracking' belongs to the system"):
            self.alone().check("check_commit", attempt=attempt)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return create(tmp_path / "t", ID, features=["domainMetadata"])


def test_domain_is_set_changed_and_removed(uri: str) -> None:
    for configuration in ("1", '{"a": "ü"}', None):
        transaction = begin(uri, "SET DOMAIN")
        transaction.set_domain("com.example", configuration)
        result = transaction.commit()
        wanted = {} if configuration is None else {"com.example": configuration}
        assert result.snapshot.domains() == open_snapshot(uri).domains() == wanted


def test_table_with_domains_is_read_by_a_peer(uri: str) -> None:
    transaction = begin(uri, "SET DOMAIN")
    transaction.set_domain("com.example", "x")
    transaction.commit()
    append(uri, {"id": [1]})
    assert peer_rows(uri) == [(1,)]


def test_system_domain_is_rejected_and_nothing_is_committed(uri: str) -> None:
    transaction = begin(uri, "SET DOMAIN")
    transaction.set_domain("delta.clustering", "{}")
    with pytest.raises(UnsupportedOperationError, match="belongs to the system"):
        transaction.commit()
    assert open_snapshot(uri).version == 0


def test_domain_adds_its_feature_to_a_table_without_it(tmp_path: Path) -> None:
    uri = create(tmp_path / "plain", ID)
    transaction = begin(uri, "SET DOMAIN")
    transaction.set_domain("com.example", "x")
    snapshot = transaction.commit().snapshot
    assert snapshot.domains() == open_snapshot(uri).domains() == {"com.example": "x"}
    assert snapshot.protocol.writer_features == ("appendOnly", "domainMetadata", "invariants")
    append(uri, {"id": [1]})
    assert peer_rows(uri) == [(1,)]


@pytest.mark.parametrize("domain_first", [True, False])
def test_domain_of_a_new_table_adds_its_feature(tmp_path: Path, domain_first: bool) -> None:
    transaction = Transaction(open_context(str(tmp_path / "t")), None, "CREATE TABLE")
    metadata = Metadata(id="a", schema_string=table_state(fields=ID).schema.to_json())
    if domain_first:
        transaction.set_domain("com.example", "x")
    transaction.set_metadata(metadata)
    if not domain_first:
        transaction.set_domain("com.example", "x")
    transaction.commit()
    assert open_snapshot(str(tmp_path / "t")).domains() == {"com.example": "x"}


def test_change_of_metadata_keeps_the_feature_of_a_staged_domain(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", ID)
    transaction = begin(uri, "ALTER TABLE")
    transaction.set_domain("com.example", "x")
    transaction.set_metadata(replace(transaction.table.metadata, description="d"))
    assert transaction.commit().snapshot.domains() == {"com.example": "x"}


def test_removal_of_a_domain_that_can_not_be_there_changes_nothing(tmp_path: Path) -> None:
    uri = create(tmp_path / "plain", ID)
    transaction = begin(uri, "SET DOMAIN")
    transaction.set_domain("com.example", None)
    assert transaction.commit().snapshot.protocol == open_snapshot(uri, 0).protocol
