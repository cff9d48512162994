"""How a commit is made and what follows it: what callers may request. Light, so that the public API can name it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from delta_core.engines.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_core.errors import ArgumentInterfaceError, ArgumentTypeError, InvalidArgumentError
from delta_core.kernel.commit.peer_options import own_option
from delta_core.runtime.arguments import check_kinds, check_number, is_of_deltalake

__all__ = [
    "MAX_COMMIT_RETRIES",
    "OWN_COMMIT_FIELDS",
    "AddAction",
    "AppTransaction",
    "CommitProperties",
    "PostCommit",
    "PostCommitHookProperties",
    "RemoveAction",
    "check_commit_fields",
    "commit_options",
    "write_arguments",
    "commit_arguments",
    "kind_name",
    "own_actions",
    "own_options",
]

_T = TypeVar("_T")

#: How often a lost race is run again.
MAX_COMMIT_RETRIES = 15
#: The fields of ``commitInfo`` that each commit sets itself.
OWN_COMMIT_FIELDS = frozenset(
    {
        "timestamp", "operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend",
        "operationMetrics", "engineInfo", "txnId",
    }
)  # fmt: skip
_OWN_LOWERED = frozenset(name.lower() for name in OWN_COMMIT_FIELDS)


class PostCommit(Struct, frozen=True):
    """Which follow-ups are requested.

    Parameters
    ----------
    create_checkpoint : bool
        Write one at each multiple of ``delta.checkpointInterval``.
    write_checksum : bool
        Write ``<version>.crc`` if the version before has one.
    clean_log : bool, optional
        Whether expired files of the log are deleted after a checkpoint; unless given, the property
        ``delta.enableExpiredLogCleanup`` decides.
    """

    create_checkpoint: bool = True
    write_checksum: bool = True
    clean_log: bool | None = None


class AppTransaction(Struct, frozen=True):
    """The version that an application reached, for writes that happen once.

    Parameters
    ----------
    app_id : str
        The application.
    version : int
        The version that it reached.
    last_updated : int, optional
        When, in milliseconds since the epoch.

    Examples
    --------
    >>> properties = CommitProperties(app_transactions=[AppTransaction("nightly", 7)])
    >>> write_deltalake(table, rows, mode="append", commit_properties=properties)
    >>> write_deltalake(table, rows, mode="append", commit_properties=properties)  # writes nothing again
    >>> table.count()
    6
    """

    app_id: str
    version: int
    last_updated: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.app_id, str):
            raise ArgumentTypeError(f"Found app_id={self.app_id!r}, expected text.")
        for name, found in (("version", self.version), ("last_updated", self.last_updated)):
            if not hasattr(found, "__index__") and (found is not None or name == "version"):
                raise ArgumentTypeError(f"Found {name}={found!r}, expected a whole number.")


class CommitProperties(Struct):
    """How a commit is made.

    Parameters
    ----------
    custom_metadata : dict, optional
        Further fields of ``commitInfo``, whose values have a form in JSON; ``userMetadata`` too.
    max_commit_retries : int, optional
        How often a lost race is run again.
    app_transactions : list of AppTransaction, optional
        Recorded with the commit; rows of versions that the table has already are not written again.

    Examples
    --------
    >>> properties = CommitProperties(custom_metadata={"job": "nightly"}, max_commit_retries=3)
    >>> write_deltalake(table, rows, mode="append", commit_properties=properties)
    >>> table.history(1)[0]["job"]
    'nightly'
    """

    custom_metadata: dict[str, Any] | None = None
    max_commit_retries: int | None = None
    app_transactions: list[AppTransaction] | None = None

    def check(self) -> None:
        """Reject values that no commit can be made with; calls that commit do, since properties may be changed.

        Raises
        ------
        InvalidArgumentError, ArgumentTypeError
            For such a value; the latter if it is of another type.

        Examples
        --------
        >>> CommitProperties(max_commit_retries=-1).check()
        Traceback (most recent call last):
        delta_core.errors.ArgumentRangeError: Found max_commit_retries=-1, expected a whole number from 0 on.
        """
        check_kinds((("custom_metadata", self.custom_metadata),))
        check_commit_fields(self.custom_metadata or {})
        check_number("max_commit_retries", self.max_commit_retries, 0)
        listed = self.app_transactions or ()
        if not isinstance(listed, Sequence) or not all(
            isinstance(t, AppTransaction) or is_of_deltalake(t, "Transaction") for t in listed
        ):
            raise ArgumentTypeError(f"Found app_transactions={listed!r}, expected a list of AppTransaction.")

    @property
    def retries(self) -> int:
        """The retries in force.

        Examples
        --------
        >>> CommitProperties(max_commit_retries=3).retries, CommitProperties().retries
        (3, 15)
        """
        return MAX_COMMIT_RETRIES if self.max_commit_retries is None else self.max_commit_retries

    @property
    def transactions(self) -> Mapping[str, int]:
        """The application ids and versions.

        Examples
        --------
        >>> CommitProperties(app_transactions=[AppTransaction("nightly", 7)]).transactions
        {'nightly': 7}
        """
        return {t.app_id: t.version for t in self.app_transactions or ()}


def check_commit_fields(custom: Mapping[str, Any]) -> None:
    """Reject fields of ``commitInfo`` that can't be written as they were passed.

    Raises
    ------
    InvalidArgumentError
        For a name that is no text, a field that the commit sets itself, and a value without a form in JSON.
    """
    for name, value in custom.items():
        if not isinstance(name, str):
            raise InvalidArgumentError(f"Found the key {name!r} in custom_metadata, expected text.")
        if name.lower() in _OWN_LOWERED:  # some readers of JSON take names in any case
            raise InvalidArgumentError(
                f"custom_metadata has the key {name!r}, which the commit sets itself. Choose another name.", key=name
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as e:
            raise InvalidArgumentError(
                f"custom_metadata[{name!r}] is {value!r}, which JSON can't hold: {e}. Pass it as text.", key=name
            ) from None


class PostCommitHookProperties(Struct):
    """The steps after a commit.

    Parameters
    ----------
    create_checkpoint : bool
        Write checkpoints at ``delta.checkpointInterval``.
    cleanup_expired_logs : bool, optional
        Whether expired files of the log are deleted when the commit writes a checkpoint; unless given, the property
        ``delta.enableExpiredLogCleanup`` decides.
    auto_compact : bool, optional
        Whether partitions in which the commit leaves many small files are compacted; unless given, the property
        ``delta.autoOptimize.autoCompact`` decides.
    auto_compact_min_files : int
        How many files below half of the maximum size a partition needs to be compacted.
    auto_compact_max_file_size : int
        Bytes of the files that compaction writes.

    Examples
    --------
    >>> hooks = PostCommitHookProperties(create_checkpoint=False, auto_compact=True, auto_compact_min_files=2)
    >>> write_deltalake(table, rows, mode="append", post_commithook_properties=hooks)
    >>> len(table.file_uris())
    1
    """

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None
    auto_compact: bool | None = None
    auto_compact_min_files: int = 50
    auto_compact_max_file_size: int = 128 << 20

    def check(self) -> None:
        """Reject values that no step can be run with; calls that commit do, since properties may be changed.

        Raises
        ------
        InvalidArgumentError, ArgumentTypeError
            For such a value; the latter if it is of another type.

        Examples
        --------
        >>> PostCommitHookProperties(auto_compact_min_files=0).check()
        Traceback (most recent call last):
        delta_core.errors.InvalidArgumentError: Found auto_compact_min_files=0, expected a whole number from 1 on.
        """
        for name in ("auto_compact_min_files", "auto_compact_max_file_size"):
            check_number(name, getattr(self, name), 1)

    @property
    def post_commit(self) -> PostCommit:
        """The same as an argument of the commit path.

        Examples
        --------
        >>> PostCommitHookProperties(create_checkpoint=False).post_commit.create_checkpoint
        False
        """
        return PostCommit(self.create_checkpoint, clean_log=self.cleanup_expired_logs)


class AddAction(Struct, frozen=True):
    """A data file that lies in its place.

    Parameters
    ----------
    path : str
        From the table's root, not encoded.
    size : int
        Its bytes.
    partition_values : Mapping
        Texts by logical name, as the log holds them.
    modification_time : int
        When it was written, in milliseconds since the epoch.
    data_change : bool
        Whether its rows are new to the table.
    stats : str
        Its statistics; empty: they are read from its footer.

    Examples
    --------
    >>> AddAction("city=Oslo/part-0.parquet", size=658, partition_values={"city": "Oslo"}).data_change
    True
    """

    path: str
    size: int
    partition_values: Mapping[str, str | None] = {}
    modification_time: int = 0
    data_change: bool = True
    stats: str = ""


class RemoveAction(Struct, frozen=True):
    """A live file to remove.

    Parameters
    ----------
    path : str
        As in the log.
    data_change : bool
        Whether its rows leave the table.
    deletion_timestamp : int, optional
        Accepted for programs written for `deltalake`: the log gets the time of the commit, and a warning reports it.

    Examples
    --------
    >>> path = table.snapshot().files.columns(["path"]).column("path")[0].as_py()
    >>> table.create_write_transaction([RemoveAction(path)], "append", table.schema())
    >>> len(table.file_uris())
    1
    """

    path: str
    data_change: bool = True
    deletion_timestamp: int | None = None


#: Classes by their names in the `deltalake` package.
_KINDS = {
    "AddAction": AddAction,
    "BloomFilterProperties": BloomFilterProperties,
    "ColumnProperties": ColumnProperties,
    "CommitProperties": CommitProperties,
    "PostCommitHookProperties": PostCommitHookProperties,
    "Transaction": AppTransaction,
    "WriterProperties": WriterProperties,
}


def own_options(argument: str, found: object, kind: type[_T]) -> _T | None:
    """Return an option that a caller passed, also one of the `deltalake` package; None if it is None.

    Raises
    ------
    ArgumentInterfaceError
        If it is of another class.
    InvalidArgumentError
        If it has a value that can't be honoured.
    """
    own = own_option(found, _KINDS)
    if own is not None and not isinstance(own, kind):
        raise ArgumentInterfaceError(f"Found {argument} as {kind_name(found)}; expected {kind.__name__} of delta_core.")
    _check(own)
    return own


def _check(option: Any) -> None:
    """Check an option and those within it."""
    if isinstance(option, Mapping):
        for value in option.values():
            _check(value)
    elif type(option) in _KINDS.values():
        if hasattr(option, "check"):
            option.check()
        for name in option.__struct_fields__:
            _check(getattr(option, name))


def write_arguments(
    commit_properties: object, writer_properties: object, post_commithook_properties: object
) -> dict[str, Any]:
    """Return what options of operations that write rows take for these properties.

    Parameters
    ----------
    commit_properties, writer_properties, post_commithook_properties : object
        As a caller passed them.

    Raises
    ------
    ArgumentInterfaceError
        If an argument is of another class.
    InvalidArgumentError
        If it has a value that can't be honoured.
    """
    commit, post = commit_options(commit_properties, post_commithook_properties)
    return {
        "writer_properties": own_options("writer_properties", writer_properties, WriterProperties),
        "transactions": commit.transactions,
        "custom_metadata": commit.custom_metadata or {},
        "max_commit_retries": commit.retries,
        "post": post.post_commit,
    }


def commit_arguments(commit_properties: object, post_commithook_properties: object) -> dict[str, Any]:
    """Return what `Transaction.commit` takes for the properties that a caller passed; raises as `write_arguments`."""
    commit, post = commit_options(commit_properties, post_commithook_properties)
    return {
        "custom_metadata": commit.custom_metadata,
        "max_retries": commit.retries,
        "post": post.post_commit,
        "transactions": commit.transactions,
    }


def commit_options(commit: object, post: object) -> tuple[CommitProperties, PostCommitHookProperties]:
    """Return how to commit and what follows, the defaults for None; raises as `write_arguments`."""
    return (
        own_options("commit_properties", commit, CommitProperties) or CommitProperties(),
        own_options("post_commithook_properties", post, PostCommitHookProperties) or PostCommitHookProperties(),
    )


def own_actions(actions: Sequence[object], *kinds: type[AddAction | RemoveAction]) -> list[Any]:
    """Return actions that a caller passed, also those of the `deltalake` package.

    Raises
    ------
    InvalidArgumentError, ArgumentTypeError
        For anything that is of none of these classes.
    """
    if isinstance(actions, (str, bytes)):
        raise ArgumentTypeError(f"Found actions={actions!r}, expected a list of actions.")
    found: list[Any] = own_option(list(actions), _KINDS)
    strange = next((a for a in found if not isinstance(a, kinds)), None)
    if strange is not None:
        expected = " or ".join(k.__name__ for k in kinds)
        raise InvalidArgumentError(
            f"Found an action as {kind_name(strange)}; expected {expected} of delta_core.table.transaction."
        )
    return found


def kind_name(value: object) -> str:
    """Return the name of a value's class, with its module unless it is Python's own."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
