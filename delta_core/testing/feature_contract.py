"""FeatureContract: what every feature plugin keeps, bundled or not. Subclass it in the feature's tests."""

from __future__ import annotations

from delta_core.testing.contract_base import table_state
from delta_core.testing.cost_contract import CostContract
from delta_core.testing.declaration_contract import DeclarationContract
from delta_core.testing.encoding_contract import EncodingContract
from delta_core.testing.feature_tables import ExampleTable
from delta_core.testing.hook_costs import attempt_view
from delta_core.testing.spark_contract import SparkContract

__all__ = ["ExampleTable", "FeatureContract", "attempt_view", "table_state"]


class FeatureContract(DeclarationContract, SparkContract, EncodingContract, CostContract):
    """Tests that a feature's plugin keeps the rules of the plugin API; pytest runs them in subclasses.

    Every message names the plugin, and the hook if one is at fault.

    Attributes
    ----------
    name : str
        The feature's name. The plugin must be installed: it is found by its entry point.
    not_written : str
        Why no table of the feature can be written, for a plugin that only reads; empty for the others.
    without_rules : str
        Why the plugin returns nothing from a hook that it implements, or has no hook at all; empty if it does not.
    unread : tuple of str
        Properties that hooks read of other tables than these tests have, or the core reads for the plugin.
    without_changes : str
        Why no table with the feature can record its changes; empty if some can.
    uncompared : tuple of str
        Functions that Spark can't compute, or whose results are not compared with Spark's.
    """
