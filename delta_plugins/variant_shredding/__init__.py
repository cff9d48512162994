"""variantShredding: files may store parts of variants in typed columns. Protocol: Variant Shredding.

Feature variantType provides the type, and its decoder reads every layout, shredded or not, file by file.
"""

from operator import methodcaller

from delta_core.api import TableFeature

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "variantShredding",
    "reader+writer",
    "Data files may store parts of variant values in typed columns.",
    aliases=("variantShredding-preview",),
    requires=("variantType",),
    properties={"delta.enableVariantShredding": "true allows writers to shred"},
    active=methodcaller("flag", "delta.enableVariantShredding"),
)
