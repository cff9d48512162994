"""catalogManaged: a catalog decides which commits are the table's. Protocol: Catalog-managed tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from delta_core.api import (
    FeatureRequirementError,
    Metadata,
    TableFeature,
    TableState,
    UnsupportedOperationError,
    hookimpl,
)
from delta_plugins.catalog_managed.committer import CatalogCommitter

if TYPE_CHECKING:
    from delta_core.api import CommitSource, Committed, Committer, Storage

__all__ = ["FEATURE"]

_TIMES = "delta.enableInCommitTimestamps"
FEATURE = TableFeature(
    "catalogManaged",
    "reader+writer",
    "A catalog decides the table's versions; its log alone does not report them.",
    aliases=("catalogOwned", "catalogOwned-preview"),
    # the second one is what Delta on Spark expects beside it
    requires=("inCommitTimestamp", "vacuumProtocolCheck"),
    is_layout=True,
)


@hookimpl
def requires_catalog() -> bool:
    return True


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    if previous is not None or _TIMES in metadata.configuration:
        return metadata
    return replace(metadata, configuration={**metadata.configuration, _TIMES: "true"})


@hookimpl
def check_metadata(table: TableState, previous: TableState | None) -> None:
    if previous is not None and not previous.is_supported(FEATURE.name):
        raise UnsupportedOperationError(
            "A table that lives in its log can't be handed over to a catalog here. Create it through the catalog, and "
            "copy the rows.",
            feature=FEATURE.name,
        )
    if not table.is_active("inCommitTimestamp"):
        raise FeatureRequirementError(
            f"A catalog-managed table needs {_TIMES}=true: the times of its files report when they were published.",
            feature=FEATURE.name,
        )


@hookimpl
def committer(commits: CommitSource | None, storage: Storage) -> Committer | None:
    return None if commits is None else CatalogCommitter(commits, storage)


@hookimpl
def after_commit(committed: Committed, committer: Committer) -> None:
    publish = getattr(committer, "publish", None)
    if publish is not None:
        publish(committed.version)
