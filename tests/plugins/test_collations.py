"""Feature collations: readers ignore it; an annotation of a column, at any depth, makes it active."""

from typing import Any

import pytest

from delta_core.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state

ANNOTATED = {"name": "a", "type": "long", "metadata": {"__COLLATIONS": {"a": "ICU.en_US"}}}
STRUCT = {"type": "struct", "fields": [ANNOTATED]}
NESTED = {"name": "s", "type": {"type": "array", "containsNull": True, "elementType": STRUCT}}


class TestCollations(FeatureContract):
    name = "collations"

    def states(self) -> list[TableState]:
        return [table_state([self.name], fields=[f]) for f in (ANNOTATED, NESTED)]

    @pytest.mark.parametrize("field", [ANNOTATED, NESTED])
    def test_annotation_makes_it_active(self, field: dict[str, Any]) -> None:
        assert table_state([self.name], fields=[field]).is_active(self.name)

    def test_it_is_not_active_without_annotation(self) -> None:
        assert not table_state([self.name]).is_active(self.name)
