"""changeDataFeed: which rows each version inserted, deleted and updated. Protocol: Change Data Feed, Add CDC File."""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "changeDataFeed",
    "writer",
    "The table tells which rows each version inserted, deleted and updated.",
    legacy_writer=4,
    properties={"delta.enableChangeDataFeed": "true makes writers record changes"},
    active=methodcaller("flag", "delta.enableChangeDataFeed"),
    verbs={"changes": "delta_plugins.change_data_feed.changes:changes"},
)
