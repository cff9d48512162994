"""The feature that a table gets when a domain is set: the one that declares it, else the plain one, never another."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from msgspec import Struct

from delta_core import DeltaTable
from delta_core.api import TableFeature
from delta_core.kernel.plugins.registry import PluginRegistry

SCHEMA = pa.schema([("id", pa.int64())])


class Plugin(Struct):
    """An installed plugin that has a feature and no hooks."""

    FEATURE: TableFeature


def _registry() -> PluginRegistry:
    """Return an environment with two more features that permit domains, first and last in the alphabet."""
    names = {"aaa.first": ("acme.own",), "zzz.last": ("acme.late",)}
    return PluginRegistry(
        [
            Plugin(TableFeature(name, "reader+writer", "Has domains.", permits=("domainMetadata",), domains=domains))
            for name, domains in names.items()
        ]
    )


def _features_after(path: Path, *domains: str, before: tuple[str, ...] = ()) -> set[str]:
    table = DeltaTable.create(path, SCHEMA, features=before, plugins=_registry())
    have = set(table.snapshot().state.features)
    transaction = table.snapshot().begin("SET")
    for domain in domains:
        transaction.set_domain(domain, "{}")
    snapshot = transaction.commit().snapshot
    assert snapshot.domains().keys() >= set(domains)
    return set(snapshot.state.features) - have


def test_domain_of_a_users_own_adds_the_plain_feature(tmp_path: Path) -> None:
    assert _features_after(tmp_path / "t", "my.settings") == {"domainMetadata"}
    protocol = DeltaTable(tmp_path / "t").protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 7)


@pytest.mark.parametrize(("domain", "feature"), [("acme.own", "aaa.first"), ("acme.late", "zzz.last")])
def test_domain_that_a_feature_declares_adds_that_feature(tmp_path: Path, domain: str, feature: str) -> None:
    assert _features_after(tmp_path / "t", domain) == {feature}


def test_domains_of_several_owners_add_the_feature_of_the_first_that_permits_all(tmp_path: Path) -> None:
    assert _features_after(tmp_path / "t", "my.settings", "acme.own") == {"domainMetadata"}


def test_table_that_can_have_domains_gets_no_further_feature(tmp_path: Path) -> None:
    assert _features_after(tmp_path / "t", "acme.own", before=("domainMetadata",)) == set()
    assert _features_after(tmp_path / "u", "my.settings", before=("zzz.last",)) == set()
