"""Steps that enable or drop a feature: what the hook ``feature_steps`` returns. A closed set of frozen records.

No operation runs them yet: those that administer tables will.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from msgspec import Struct

from delta_core.expressions.ast import Expression

__all__ = [
    "AwaitRetention", "ChangeProtocol", "FeatureStep", "ReAddFiles", "RewriteFiles", "SetProperties", "TruncateHistory",
    "WriteCheckpoint",
]  # fmt: skip


class ChangeProtocol(Struct, frozen=True):
    """Commit a protocol that lists the feature, or no longer lists it."""

    feature: str


class SetProperties(Struct, frozen=True):
    """Commit table properties.

    Parameters
    ----------
    properties : Mapping of str to str or None
        None removes a property.
    """

    feature: str
    properties: Mapping[str, str | None]


class ReAddFiles(Struct, frozen=True):
    """Add live files again without changing data, so that the commit rules set the feature's fields on them.

    Parameters
    ----------
    where : Expression or None
        Over columns of the file table: the files for which it is true. None: every file.
    """

    feature: str
    where: Expression | None = None


class RewriteFiles(Struct, frozen=True):
    """Write the rows of live files to new files.

    Parameters
    ----------
    where : Expression or None
        Over columns of the file table: the files for which it is true. None: every file.
    """

    feature: str
    where: Expression | None = None


class WriteCheckpoint(Struct, frozen=True):
    """Write a checkpoint of the latest version."""

    feature: str


class AwaitRetention(Struct, frozen=True):
    """Stop until the versions that use the feature are older than the log's retention; dropping resumes then."""

    feature: str


class TruncateHistory(Struct, frozen=True):
    """Remove the versions that use the feature from the log."""

    feature: str


FeatureStep = Union[
    ChangeProtocol, SetProperties, ReAddFiles, RewriteFiles, WriteCheckpoint, AwaitRetention, TruncateHistory
]
