"""clustering: rows are laid out by columns that a domain names. Protocol: Clustered Table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from delta_core.api import (
    DomainMetadata,
    FeatureStep,
    FileRequirement,
    Finding,
    Metadata,
    RemoveDomains,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.clustering import logic
from delta_plugins.clustering.logic import DOMAIN

__all__ = ["DOMAIN", "FEATURE"]


FEATURE = TableFeature(
    "clustering",
    "writer",
    "Rows that are close in the clustering columns are kept in the same files.",
    requires=("domainMetadata",),
    requests={"cluster_by": logic.REQUEST},
    request_values={"cluster_by": logic.reported_columns},
    domains=(DOMAIN,),
    permits=("add.clusteringProvider",),
    active=logic.is_clustered,
    operations={
        "cluster": "delta_plugins.clustering.cubes:cluster",
        "cluster_by": "delta_plugins.clustering.operations:cluster_by",
    },
    enabling=("cluster_by",),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.REQUEST in metadata.configuration else []


@hookimpl
def prepare_metadata(metadata: Metadata) -> Metadata:
    return logic.without_request(metadata)


@hookimpl
def prepare_domains(table: TableState, requested: Mapping[str, str]) -> Iterable[DomainMetadata]:
    return logic.requested_domain(table, requested)


@hookimpl
def check_metadata(table: TableState, previous: TableState | None) -> None:
    logic.check_columns(table, previous)


@hookimpl
def check_table(table: TableState) -> Iterable[Finding]:
    return logic.missing_columns(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[FileRequirement]:
    columns = logic.clustering_columns(table)
    return [FileRequirement(FEATURE.name, statistics_columns=columns)] if columns else []


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveDomains(FEATURE.name, FEATURE.domains)] if change == "drop" else []
