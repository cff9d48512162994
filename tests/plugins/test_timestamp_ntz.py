"""Feature timestampNtz: the type of timestamps without a zone, under its names of today and of drafts."""

import pyarrow as pa
import pytest

from delta_core.errors import UnsupportedFeatureError
from delta_core.kernel.plugins.state import TableState
from delta_core.schema.fields import arrow_schema, check_types
from delta_core.testing.feature_contract import FeatureContract, table_state


class TestTimestampNtz(FeatureContract):
    name = "timestampNtz"

    def states(self) -> list[TableState]:
        return [table_state([self.name], fields=[{"name": "t", "type": "timestamp_ntz"}])]

    @pytest.mark.parametrize("name", ["timestamp_ntz", "timestampNTZ", "timestampWithoutTimezone"])
    def test_type_is_known_by_all_its_names(self, name: str) -> None:
        state = table_state([self.name], fields=[{"name": "t", "type": name}])
        check_types(state.schema, state.types)
        assert arrow_schema(state.schema, state.types).field("t").type == pa.timestamp("us")
        assert state.is_active(self.name)

    def test_type_inside_a_list_makes_it_active(self) -> None:
        of_lists = {"type": "array", "elementType": "timestamp_ntz", "containsNull": True}
        assert table_state([self.name], fields=[{"name": "t", "type": of_lists}]).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    def test_type_is_rejected_where_the_table_lacks_the_feature(self) -> None:
        state = table_state([], fields=[{"name": "t", "type": "timestamp_ntz"}])
        with pytest.raises(UnsupportedFeatureError, match="Column t has type 'timestamp_ntz'"):
            check_types(state.schema, state.types)
