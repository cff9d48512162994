"""deletionVectors: rows of a data file that no longer count. Protocol: Deletion Vectors."""

from collections.abc import Iterable
from operator import methodcaller

from delta_core.api import ReadRule, RowSelector, TableFeature, hookimpl
from delta_plugins.deletion_vectors import logic
from delta_plugins.deletion_vectors.logic import DeletionVectorError

__all__ = ["FEATURE", "DeletionVectorError"]

FEATURE = TableFeature(
    "deletionVectors",
    "reader+writer",
    "Deleted rows stay in their file and are named by a vector.",
    properties={"delta.enableDeletionVectors": "true allows writers to add vectors"},
    active=methodcaller("flag", "delta.enableDeletionVectors"),
)


@hookimpl
def read_rules() -> Iterable[ReadRule]:
    # whether or not new vectors may be written, those that are there count
    return (RowSelector(FEATURE.name, ("deletionVector",), logic.locate, logic.decode),)
