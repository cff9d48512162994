"""An engine: what answers for each part of the interface."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from delta_core.runtime.structs import PublicStruct

if TYPE_CHECKING:
    from delta_core.engines.interface import DataFiles, Evaluator, LogFiles, Relations, RemoteRows, Spread, Storage
    from delta_core.errors import DeltaError

__all__ = ["CommitDefaults", "Engine", "ForbiddenFeature"]


class ForbiddenFeature(PublicStruct, frozen=True):
    """A use of a feature that no new definition of a table may make.

    Parameters
    ----------
    name : str
        The protocol's name of the feature.
    what : "use" or "end"
        ``use``: have it switched on; ``end``: switch it off in a table that has it, unless that is replaced.
    error : DeltaError
        Is raised for such a definition.
    """

    name: str
    what: Literal["use", "end"]
    error: DeltaError

    def concerns(self, old: Collection[str], new: Collection[str]) -> bool:
        """Return whether a definition does that, by the features that are switched on before and with it."""
        return self.name in new if self.what == "use" else self.name in old and self.name not in new


class CommitDefaults(Struct, frozen=True):
    """The defaults of commits and new tables.

    Parameters
    ----------
    user_metadata : str, optional
        ``userMetadata`` of a commit.
    properties : Mapping of str to str
        Table properties of a table that is created or replaced; those that the caller passes go before them.
    allow_unknown : bool
        Whether a table may be created with properties ``delta.*`` that neither the core nor a feature declares.
    forbidden : tuple of ForbiddenFeature
        Uses of features that no definition makes that is committed.
    replaces_protocol : bool
        Whether a table that is replaced gets the protocol of a new table; otherwise it keeps the features that it has.
    feature_names : Mapping of str to str
        Other names of features, under which a definition that needs them adds them to a table that lacks them.
    """

    user_metadata: str | None = None
    properties: Mapping[str, str] = {}
    allow_unknown: bool = False
    forbidden: tuple[ForbiddenFeature, ...] = ()
    replaces_protocol: bool = False
    feature_names: Mapping[str, str] = {}


class Engine(PublicStruct, frozen=True):
    """The engine that an entry point of the group ``delta_core.engines`` makes from ``(uri, storage_options)``.

    ``allow_external`` is handed over by its name if the user passed it: see `open_snapshot`.

    Parameters
    ----------
    name : str
        The name of the entry point.
    storage : Storage
        Lists, reads and writes files.
    logs : LogFiles
        Reads files of the log.
    data : DataFiles
        Reads and writes data files.
    evaluator : Evaluator
        Compiles expressions.
    relations : Relations or None
        Operations on rows of several tables, for changes of rows.
    spread : Spread or None
        Runs the work of operations on other machines; None: on this one.
    remote_rows : RemoteRows or None
        Reads rows that stay on other machines.
    map : function(function, iterable) -> list
        Calls a function for each item, several at once if the engine has threads, and returns the results in order.
    defaults : function() -> CommitDefaults
        Returns what commits of this engine have unless a caller passes it.
    committed : function()
        Called after each commit.
    rejected_in_names : str
        Characters that names of new columns may not have, unless files have the columns under other names.
    """

    name: str
    storage: Storage
    logs: LogFiles
    data: DataFiles
    evaluator: Evaluator
    relations: Relations | None = None
    #: Set if the engine has other machines to work on.
    spread: Spread | None = None
    #: Set if other machines read the rows.
    remote_rows: RemoteRows | None = None
    map: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = lambda f, items: [f(x) for x in items]
    #: Called for each commit and each new table.
    defaults: Callable[[], CommitDefaults] = CommitDefaults
    #: Called when a version is in the log; an error of it is logged.
    committed: Callable[[], None] = lambda: None
    #: Every engine reads such columns; Spark alters no table that has them.
    rejected_in_names: str = ""
