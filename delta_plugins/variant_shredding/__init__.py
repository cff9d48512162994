"""variantShredding: files may store parts of variants in typed columns. Protocol: Variant Shredding.

Feature variantType provides the type, and its decoder reads every layout, shredded or not, file by file. Writers may
shred if the property is on; these ones write every variant whole, which the feature allows. variantType is not required
beside it: Spark adds this feature to tables without any variant, and a column of that type adds variantType itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller

from delta_core.api import Metadata, TableFeature, hookimpl

__all__ = ["FEATURE"]

SWITCH = "delta.enableVariantShredding"
FEATURE = TableFeature(
    "variantShredding",
    "reader+writer",
    "Data files may store parts of variant values in typed columns.",
    aliases=("variantShredding-preview",),
    properties={SWITCH: "true allows writers to shred"},
    active=methodcaller("flag", SWITCH),
    is_layout=True,
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    is_on = metadata.configuration.get(SWITCH, "").strip().lower() == "true"
    return [FEATURE.name, "variantType"] if is_on else []
