"""domainMetadata: named configurations beside the table's metadata. Protocol: Domain Metadata.

Reconciling them is the core's; the feature has no switch of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_core.api import FeatureStep, RemoveDomains, TableFeature, UnsupportedOperationError, hookimpl

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]

SYSTEM = "delta."
FEATURE = TableFeature(
    "domainMetadata",
    "writer",
    "Features and users keep named configurations in the log.",
    permits=("domainMetadata",),
    is_layout=True,
)


@hookimpl
def check_commit(attempt: AttemptView) -> None:
    """Reject edits of system domains by users; features write theirs by rules.

    Raises
    ------
    UnsupportedOperationError
        If the transaction itself changes a domain whose name begins with ``delta.``.
    """
    system = [domain for domain in attempt.domains if domain.startswith(SYSTEM)]
    if system:
        raise UnsupportedOperationError(
            f"Domain {system[0]!r} belongs to the system: names that begin with {SYSTEM!r} are changed by table "
            "features alone. Choose another name for a configuration of your own.",
            domain=system[0],
        )


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    return [RemoveDomains(FEATURE.name)] if change == "drop" else []
