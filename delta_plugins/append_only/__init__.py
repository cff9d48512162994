"""appendOnly: existing rows stay. Protocol: Append-only Tables."""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "appendOnly",
    "writer",
    "Existing rows can be neither deleted nor changed.",
    legacy_writer=2,
    properties={"delta.appendOnly": "true forbids commits that remove rows"},
    active=methodcaller("flag", "delta.appendOnly"),
)
