"""TableState: what one version of a table is, without its files. Frozen; change is a pure function."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.plugins.rules import ColumnEncoding
from delta_core.kernel.protocol.actions import Metadata, Protocol
from delta_core.schema.fields import ColumnMap, Schema
from delta_core.schema.types import BASE_TYPES, TypeDef

__all__ = ["TableState", "advance"]


class TableState(Struct, frozen=True):
    """One version of a table, as hooks see it.

    Parameters
    ----------
    version : int
        The table's version; -1 for a table that is about to be created.
    protocol : Protocol
        The protocol action.
    metadata : Metadata
        The metadata action.
    schema : Schema
        The logical schema.
    features : frozenset of str
        Canonical names of every feature the protocol supports, legacy versions spelled out.
    reader_features : frozenset of str
        Those of them that a reader must understand.
    active : frozenset of str
        Those of them that are also switched on by metadata.
    column_map : ColumnMap
        Logical to physical names; the identity until the features were queried.
    types : Mapping
        Every primitive type name that the table may use.
    domains : Mapping
        Domain name to configuration text, of the domains that the features declare; no removed ones.
    functions : Mapping
        The functions that the features add to expressions, by name.
    encodings : Mapping
        Of each column that files store in another form, by logical name: ``decode`` is over the column of the file.
    """

    version: int
    protocol: Protocol
    metadata: Metadata
    schema: Schema
    features: frozenset[str] = frozenset()
    reader_features: frozenset[str] = frozenset()
    active: frozenset[str] = frozenset()
    column_map: ColumnMap = None  # type: ignore[assignment]  # set in __post_init__
    types: Mapping[str, TypeDef] = field(default_factory=lambda: dict(BASE_TYPES))
    domains: Mapping[str, str] = {}
    functions: Mapping[str, Function] = {}
    encodings: Mapping[str, ColumnEncoding] = {}

    def __post_init__(self) -> None:
        if self.column_map is None:
            force_setattr(self, "column_map", ColumnMap.identity(self.schema))

    def is_supported(self, feature: str) -> bool:
        """Whether the table's protocol has the feature.

        Parameters
        ----------
        feature : str
            The protocol's name of the feature.
        """
        return feature in self.features

    def is_active(self, feature: str) -> bool:
        """Whether the feature is supported and switched on by the table's metadata.

        Parameters
        ----------
        feature : str
            The protocol's name of the feature.
        """
        return feature in self.active

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean table property; text other than ``true`` is false, as for Spark.

        Parameters
        ----------
        name : str
            The property.
        default : bool
            The value if the table does not set it.
        """
        value = self.metadata.configuration.get(name)
        return default if value is None else value.strip().lower() == "true"

    @property
    def configuration(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.configuration

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names of the partition columns, spelled as in the schema."""
        return tuple(
            f.name if (f := self.schema.get(name)) is not None else name for name in self.metadata.partition_columns
        )

    # is last: its name hides the decorator from what follows it
    def property(self, name: str, default: str | None = None) -> str | None:
        """Return a table property's text.

        Parameters
        ----------
        name : str
            The property.
        default : str or None
            The value if the table does not set it.
        """
        return self.metadata.configuration.get(name, default)


def advance(state: TableState, version: int, domains: Mapping[str, str]) -> TableState:
    """Return the state of a later version whose commits changed neither protocol nor metadata.

    Parameters
    ----------
    state : TableState
        The state of the earlier version.
    version : int
        The later version.
    domains : Mapping
        The domains that the features declare, as the later version has them.
    """
    return replace(state, version=version, domains=dict(domains))
