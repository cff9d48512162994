"""The table features that protocol versions before the lists of features imply. Protocol: Legacy Features.

Which features a version implies is a fact of the protocol, whatever is installed: a table of such a version requires
the plugins of these features as if it listed them.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["IMPLIED_BY_READER", "IMPLIED_BY_WRITER", "implied_by"]

#: The features that each reader version adds to those of the versions below it.
IMPLIED_BY_READER: Mapping[int, tuple[str, ...]] = {2: ("columnMapping",)}
#: The features that each writer version adds to those of the versions below it.
IMPLIED_BY_WRITER: Mapping[int, tuple[str, ...]] = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}


def implied_by(version: int, added: Mapping[int, tuple[str, ...]]) -> frozenset[str]:
    """Return every feature that a version implies: those that it and the versions below it add.

    Parameters
    ----------
    version : int
        A reader or a writer version.
    added : Mapping of int to tuple of str
        `IMPLIED_BY_READER` or `IMPLIED_BY_WRITER`.
    """
    return frozenset(name for v, names in added.items() if v <= version for name in names)
