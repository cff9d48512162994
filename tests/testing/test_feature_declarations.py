"""Declarations that contradict each other, and wrong results, are reported by the contract as what they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core.api import ActionField, CommitInfoField, FileConstant, Function, MetadataColumn
from delta_core.errors import HookContractError
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.testing.feature_contract import FeatureContract
from tests.testing.honest_plugin import FEATURE, NAME, STRING, Plugin, least, twice


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


@pytest.mark.parametrize("name", ["upper", "acmeTwice"])
def test_function_that_is_never_called_is_named(name: str) -> None:
    contract = contract_of(Plugin(functions=lambda: [Function(NAME, name, least, twice, "({0} * 2L)")]))
    with pytest.raises(pytest.fail.Exception, match=rf"Hook functions of plugin .*Function '{name}' is never called"):
        contract.test_functions_have_names_of_their_own()


def test_column_of_files_that_does_not_exist_is_named() -> None:
    rule = MetadataColumn(NAME, "_stamped_by", STRING, FileConstant("stampdBy", STRING))
    with pytest.raises(pytest.fail.Exception, match=r"MetadataColumn reads 'stampdBy'.*mean 'stampedBy'"):
        contract_of(Plugin(read_rules=lambda: [rule])).test_rules_read_columns_of_files_that_exist()


def test_field_of_commit_info_that_commits_set_is_named(tmp_path: Path) -> None:
    contract = contract_of(Plugin(commit_rules=lambda: [CommitInfoField(NAME, "operation", "x")]))
    with pytest.raises((HookContractError, AssertionError), match=r"sets commitInfo\.operation"):
        contract.test_rows_are_written_moved_and_read(tmp_path)


def test_result_of_the_wrong_type_is_not_reported_as_input() -> None:
    contract = contract_of(Plugin(read_rules=lambda: ["a text"]))
    with pytest.raises(HookContractError, match="Hook read_rules"):
        contract.test_hooks_do_no_input_and_output()
