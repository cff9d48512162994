"""vacuumProtocolCheck: vacuum checks the writer protocol before it deletes. Protocol: VACUUM Protocol Check.

Readers acknowledge it and do nothing else.
"""

from collections.abc import Iterable

from delta_core.api import FeatureStep, TableFeature, hookimpl

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "vacuumProtocolCheck",
    "reader+writer",
    "VACUUM checks the table's whole protocol before it deletes files.",
    # readers acknowledge it and read the same
    in_history=False,
    is_layout=True,
)


@hookimpl
def feature_steps() -> Iterable[FeatureStep]:
    return []
