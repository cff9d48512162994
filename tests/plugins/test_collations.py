"""Feature collations: readers ignore it; an annotation of a column, at any depth, makes it active."""

from typing import Any

import pytest

from delta_core.errors import UnsupportedFeatureError
from delta_core.kernel.plugins.state import TableState
from delta_core.testing.feature_contract import FeatureContract, table_state

ANNOTATED = {"name": "a", "type": "long", "metadata": {"__COLLATIONS": {"a": "ICU.en_US"}}}
STRUCT = {"type": "struct", "fields": [ANNOTATED]}
NESTED = {"name": "s", "type": {"type": "array", "containsNull": True, "elementType": STRUCT}}


class TestCollations(FeatureContract):
    name = "collations"
    without_rules = "write_rules rejects tables with collations, and has no rule for the others"

    def states(self) -> list[TableState]:
        return [table_state([self.name], fields=[f]) for f in (ANNOTATED, NESTED)]

    def writable(self) -> list[TableState]:
        return [table_state([self.name])]

    @pytest.mark.parametrize("field", [ANNOTATED, NESTED])
    def test_table_with_collated_columns_is_rejected_for_writing_by_column(self, field: dict[str, Any]) -> None:
        state = table_state([self.name], fields=[field])
        with pytest.raises(UnsupportedFeatureError, match=r"Column (a|s\.element\.a) has a collation"):
            self.check_metadata(state)
        with pytest.raises(UnsupportedFeatureError, match="can be read, not written"):
            self.alone().collect("write_rules", table=state, operation="WRITE")
        assert self.alone().collect("required_features", metadata=state.metadata) == [self.name]

    @pytest.mark.parametrize("field", [ANNOTATED, NESTED])
    def test_annotation_makes_it_active(self, field: dict[str, Any]) -> None:
        assert table_state([self.name], fields=[field]).is_active(self.name)

    def test_it_is_not_active_without_annotation(self) -> None:
        assert not table_state([self.name]).is_active(self.name)
