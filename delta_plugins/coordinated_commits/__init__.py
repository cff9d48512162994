"""coordinatedCommits-preview: a commit coordinator holds the newest commits. From a draft of the protocol.

While a coordinator is named, its newest commits may not be in ``_delta_log`` yet, and a reader of the log
alone would return an old version as the latest. Without one, the log is the whole truth again.
"""

from delta_core.api import CatalogRequiredError, TableFeature, TableState, hookimpl

__all__ = ["COORDINATOR", "FEATURE"]

COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"


def _is_active(table: TableState) -> bool:
    return bool(table.property(COORDINATOR))


FEATURE = TableFeature(
    "coordinatedCommits-preview",
    "writer",
    "A commit coordinator decides the table's newest versions.",
    requires=("inCommitTimestamp", "vacuumProtocolCheck"),
    properties={
        COORDINATOR: "the coordinator's name",
        "delta.coordinatedCommits.commitCoordinatorConf-preview": "how to reach it, as JSON",
        "delta.coordinatedCommits.tableConf-preview": "the table's name there, as JSON",
    },
    active=_is_active,
    is_layout=True,
)


@hookimpl
def check_read(table: TableState) -> None:
    if _is_active(table):
        raise CatalogRequiredError(
            f"The table's newest commits are held by commit coordinator {table.property(COORDINATOR)!r} "
            f"(property {COORDINATOR}), which delta_core can't require, and its log alone may lack commits. "
            "Turn coordinated commits off, or read the table through its coordinator.",
            feature=FEATURE.name,
        )
