"""rowTracking: rows keep an id, and the version that last changed them. Protocol: Row Tracking."""

from collections.abc import Iterable
from operator import methodcaller

from delta_core.api import ReadRequest, ReadRule, TableFeature, TableState, hookimpl
from delta_plugins.row_tracking import logic

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "rowTracking",
    "writer",
    "Every row keeps an id, and the version that last changed it.",
    requires=("domainMetadata",),
    properties={
        "delta.enableRowTracking": "true once every row has an id",
        "delta.rowTrackingSuspended": "true stops the assignment of ids",
        logic.ROW_ID_COLUMN: "physical column that holds ids which rows brought along",
        logic.COMMIT_VERSION_COLUMN: "physical column that holds versions which rows brought along",
    },
    domains=(logic.DOMAIN,),
    active=methodcaller("flag", "delta.enableRowTracking"),
)


@hookimpl
def read_rules(table: TableState, request: ReadRequest) -> Iterable[ReadRule]:
    # change files carry no row ids
    return logic.metadata_columns(table.configuration) if request.purpose == "rows" else ()
