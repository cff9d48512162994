"""What the contract of features needs of pytest here."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the part of `FeatureContract` that runs Spark, which does not depend on our marker."""
    for item in items:
        if item.name == "test_rows_are_the_same_on_spark":
            item.add_marker(pytest.mark.spark)


@pytest.fixture(autouse=True)
def java_runtime(request: pytest.FixtureRequest) -> None:
    """Return Spark the Java runtime that the other tests have."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("java")
