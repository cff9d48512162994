"""Earlier names of the plugin API, which plugins in use still have."""

from __future__ import annotations

from delta_core.api import TableFeature


def test_operations_of_a_feature_are_its_operations() -> None:
    feature = TableFeature("acme.origin", "writer", operations={"new": "acme:new"}, verbs={"old": "acme:old"})
    assert dict(feature.operations) == {"new": "acme:new", "old": "acme:old"}
