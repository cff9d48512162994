"""Declarations that contradict each other, and wrong results, are reported by the contract as what they are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core.api import ActionField
from delta_core.errors import HookContractError
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.testing.feature_contract import FeatureContract
from tests.testing.honest_plugin import FEATURE, Plugin


def contract_of(plugin: Plugin) -> FeatureContract:
    """Return the contract of a plugin that is not installed."""

    class Contract(FeatureContract):
        name = plugin.FEATURE.name

        @property
        def registry(self) -> PluginRegistry:
            return PluginRegistry([plugin])

    return Contract()


@pytest.mark.parametrize("field", ["flags", "reserved", "log_properties"])
def test_property_that_is_not_declared_is_named(field: str) -> None:
    contract = contract_of(Plugin(replace(FEATURE, **{field: ("acme.misspelled",)})))
    with pytest.raises(AssertionError, match=rf"FEATURE\.{field} names 'acme\.misspelled'"):
        contract.test_feature_is_stated_whole()


def test_field_of_the_protocol_is_named() -> None:
    contract = contract_of(Plugin(replace(FEATURE, fields=(ActionField("add", "size", pa.int64()),))))
    with pytest.raises(AssertionError, match=r"FEATURE\.fields has add\.size, a field of the protocol"):
        contract.test_feature_is_stated_whole()


def test_result_of_the_wrong_type_is_not_reported_as_input() -> None:
    contract = contract_of(Plugin(read_rules=lambda: ["a text"]))
    with pytest.raises(HookContractError, match="Hook read_rules"):
        contract.test_hooks_do_no_input_and_output()
