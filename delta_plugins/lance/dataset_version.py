"""A version of a dataset as the modules see it that its class imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from delta_core.api import Engine, Function, Schema, Storage, TypeDef
    from delta_plugins.lance.manifest import Manifest
    from delta_plugins.lance.version_files import VersionFiles

__all__ = ["DatasetVersion"]


class DatasetVersion(Protocol):
    """The members of `LanceDataset` that changes, compaction and cleanup need."""

    files: VersionFiles

    @property
    def uri(self) -> str:
        """The dataset, as the user named it."""
        ...

    @property
    def version(self) -> int:
        """The number of the version."""
        ...

    @property
    def manifest(self) -> Manifest:
        """The manifest."""
        ...

    @property
    def schema(self) -> Schema:
        """The columns with logical types."""
        ...

    @property
    def types(self) -> Mapping[str, TypeDef]:
        """The types of the columns."""
        ...

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions of predicates."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine of the dataset's place."""
        ...

    @property
    def storage(self) -> Storage:
        """The dataset's place."""
        ...

    def latest(self) -> Any:
        """Return the latest version of the branch."""
        ...

    def at(self, manifest: Manifest) -> Any:
        """Return another version of the same branch."""
        ...

    def has_applied(self, transactions: Mapping[str, int]) -> bool:
        """Whether the dataset has versions of applications, or later ones."""
        ...

    def begin_rewrites(self, parameters: Mapping[str, Any], options: Any) -> Any:
        """Begin to write fragments again."""
        ...

    def count(self, predicate: Any = None) -> int:
        """Return how many rows there are, or how many rows pass a predicate."""
        ...
