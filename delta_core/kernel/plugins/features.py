"""Table features as data, and the rules by which a protocol's versions name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from delta_core.errors import ProtocolError, UnsupportedVersionError
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import ActionField, ActionKind, Protocol
from delta_core.kernel.protocol.legacy_versions import IMPLIED_BY_READER, IMPLIED_BY_WRITER, implied_by

__all__ = ["API_VERSION", "SupportedFeatures", "TableFeature", "supported_features"]

#: The version of the hook specifications; a plugin states the one it was written for.
API_VERSION = 1
#: The highest protocol versions that the text of the protocol defines.
READER_VERSIONS = range(1, 4)
WRITER_VERSIONS = range(1, 8)


def _always(table: TableState) -> bool:
    return True


class TableFeature(Struct, frozen=True):
    """The facts about a table feature that need none of its code.

    Parameters
    ----------
    name : str
        The protocol's name, which is also the name of the entry point.
    kind : str
        ``writer``: readers may ignore it. ``reader+writer``: readers must understand it.
    summary : str
        One sentence for ``delta-core features``.
    aliases : tuple of str
        Names of drafts and previews that mean the same.
    requires, excludes : tuple of str
        Features that must, or must not, be supported beside it.
    after : tuple of str
        Features whose hooks run before its own.
    api : int
        The version of the plugin API that the plugin was written for.
    properties : Mapping of str to str
        Table properties that it reads, each with what it does.
    flags : tuple of str
        Those of its properties that are true or false: another value that a caller passes is rejected.
    reserved : tuple of str
        Those of its properties that it sets itself: a value that a caller passes is rejected.
    log_properties : tuple of str
        Those of its properties that name versions of the table's own log: a clone does not get them.
    expressions : tuple of str
        Keys of fields' metadata, and properties such as ``delta.constraints.<name>``, whose values are SQL expressions
        (or JSON objects of them): new ones are stored without double quotes, which not all readers read alike.
    requests : Mapping of str to str
        Arguments of operations that it serves, each with the property under which its hooks get their value as JSON;
        such a property is never stored: ``{"cluster_by": "delta.clusterBy"}``.
    request_values : Mapping of str to function(TableState) -> sequence of str
        For arguments in ``requests``: the list that a table has now, for descriptions of the table.
    domains : tuple of str
        Domains whose configuration hooks need in `TableState.domains`.
    growing_domains : tuple of str
        Those of its domains whose values only grow, such as marks: restoring an older version keeps them.
    actions, fields : tuple
        Kinds of action, and fields of the core's actions, that it adds to the log.
    permits : tuple of str
        Kinds of the core's own actions, and fields of its adds (``add.deletionVector``), that commits of a table may
        hold only with it.
    active : function(TableState) -> bool
        Whether metadata switches it on; requested only if it is supported.
    operations : Mapping of str to str
        Operations of its own: ``{"changes": "package.module:function"}``.
    enabling : tuple of str
        Those of its operations that add the feature to a table which lacks it, and can be called there too.
    remedies : Mapping of str to str
        The remedy for a rejection that the feature avoids, for messages: of ``column_names`` (special characters),
        ``row_removal`` (removing rows without rewriting files), ``type_change`` or ``operations`` (a call of one of its
        operations on a table without it). ``set the table property ...``.
    in_history : bool
        Whether only readers with the feature can read versions before it is dropped; of ``reader+writer`` features
        alone.
    protects_history : str
        A property of the feature: the drop of another feature sets it to its version and adds this feature, and then
        checkpoints below that version stay. At most one feature has it.
    is_layout : bool or function(TableState) -> bool
        Whether it is about the files and the log of a table alone, so that rows which are converted to another format
        lose nothing without it. Any other active feature is lost, and a conversion has to allow that by its name.
    verbs : Mapping of str to str
        The earlier name of ``operations``; they are added to these.
    """

    name: str
    kind: Literal["writer", "reader+writer"]
    summary: str = ""
    aliases: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    api: int = API_VERSION
    properties: Mapping[str, str] = {}
    flags: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    log_properties: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    requests: Mapping[str, str] = {}
    request_values: Mapping[str, Callable[[TableState], Sequence[str]]] = {}
    domains: tuple[str, ...] = ()
    growing_domains: tuple[str, ...] = ()
    actions: tuple[ActionKind, ...] = ()
    fields: tuple[ActionField, ...] = ()
    permits: tuple[str, ...] = ()
    active: Callable[[TableState], bool] = _always
    operations: Mapping[str, str] = {}
    enabling: tuple[str, ...] = ()
    remedies: Mapping[str, str] = {}
    in_history: bool = True
    protects_history: str = ""
    is_layout: bool | Callable[[TableState], bool] = False
    verbs: Mapping[str, str] = {}

    def arranges_only(self, table: TableState) -> bool:
        """Whether it is about the files and the log of a table alone (``is_layout``).

        Parameters
        ----------
        table : TableState
            The table.
        """
        return self.is_layout if isinstance(self.is_layout, bool) else self.is_layout(table)

    def __post_init__(self) -> None:
        if self.verbs:
            force_setattr(self, "operations", {**self.verbs, **self.operations})
            force_setattr(self, "verbs", {})


class SupportedFeatures(Struct, frozen=True):
    """The names that a protocol lists or implies, as the table spells them."""

    reader: frozenset[str]
    writer: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Every name."""
        return self.reader | self.writer


def supported_features(protocol: Protocol) -> SupportedFeatures:
    """Return the feature names of a protocol.

    Parameters
    ----------
    protocol : Protocol
        The versions and, from reader version 3 or writer version 7 on, the lists of features. Older versions imply
        features, whether or not a plugin provides them.

    Raises
    ------
    UnsupportedVersionError
        For versions above the known ones.
    ProtocolError
        For lists that do not fit the versions.

    Protocol
    --------
    Table Features, Supported Features
    """
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader not in READER_VERSIONS:
        raise UnsupportedVersionError(
            f"The table needs reader version {reader}; this release reads 1 to {READER_VERSIONS[-1]}. Upgrade "
            "delta-core-lake.",
            min_reader_version=reader,
        )
    if reader == 3 and writer in WRITER_VERSIONS and writer != 7:
        raise ProtocolError(f"The protocol has reader version 3 with writer version {writer}; 3 goes with 7 only.")
    reads = frozenset(protocol.reader_features or ()) if reader == 3 else implied_by(reader, IMPLIED_BY_READER)
    if reader == 3 and protocol.reader_features is None:
        raise ProtocolError("The protocol has reader version 3 but no readerFeatures.")
    if writer >= 7:
        writes = frozenset(protocol.writer_features or ())
        if writer == 7 and protocol.writer_features is None:
            raise ProtocolError("The protocol has writer version 7 but no writerFeatures.")
    else:
        writes = implied_by(writer, IMPLIED_BY_WRITER)
    return SupportedFeatures(reads, writes)
