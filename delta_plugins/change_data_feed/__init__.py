"""changeDataFeed: which rows each version inserted, deleted and updated. Protocol: Change Data Feed, Add CDC File."""

from collections.abc import Iterable
from operator import methodcaller

from delta_core.api import ReadRequest, ReadRule, TableFeature, hookimpl
from delta_plugins.change_data_feed import logic

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "changeDataFeed",
    "writer",
    "The table tells which rows each version inserted, deleted and updated.",
    legacy_writer=4,
    properties={logic.PROPERTY: "true makes writers record changes"},
    active=methodcaller("flag", logic.PROPERTY),
    verbs={"changes": "delta_plugins.change_data_feed.changes:changes"},
)


@hookimpl
def read_rules(request: ReadRequest) -> Iterable[ReadRule]:
    return logic.METADATA_COLUMNS if request.purpose == "changes" else ()
