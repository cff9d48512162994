"""domainMetadata: named configurations beside the table's metadata. Protocol: Domain Metadata.

Reconciling them is the core's; the feature has no switch of its own.
"""

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature("domainMetadata", "writer", "Features and users keep named configurations in the log.")
