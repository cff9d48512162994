"""Feature domainMetadata: users keep configurations; those of the system are left to features."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import UnsupportedFeatureError, UnsupportedOperationError
from delta_core.snapshot import open_snapshot
from delta_core.testing.feature_contract import FeatureContract, attempt_view, table_state
from tests.plugins.written import append, begin, create, peer_rows

ID = [{"name": "id", "type": "long"}]


class TestDomainMetadata(FeatureContract):
    name = "domainMetadata"

    def test_it_is_active_where_it_is_supported(self) -> None:
        assert table_state([self.name]).is_active(self.name)
        assert not table_state([]).is_active(self.name)

    @pytest.mark.parametrize("configuration", ["{}", None])
    def test_edit_of_a_system_domain_is_refused(self, configuration: str | None) -> None:
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


def test_system_domain_is_refused_and_nothing_is_committed(uri: str) -> None:
    transaction = begin(uri, "SET DOMAIN")
    transaction.set_domain("delta.clustering", "{}")
    with pytest.raises(UnsupportedOperationError, match="belongs to the system"):
        transaction.commit()
    assert open_snapshot(uri).version == 0


def test_domain_on_a_table_without_the_feature_is_refused(tmp_path: Path) -> None:
    transaction = begin(create(tmp_path / "plain", ID))
    transaction.set_domain("com.example", "x")
    with pytest.raises(UnsupportedFeatureError, match="domainMetadata"):
        transaction.commit()
