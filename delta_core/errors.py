"""Every exception that delta_core raises.

A message states what was found, what was expected, where, and what to do. The facts of it
(``path``, ``version``, ``feature`` ...) are attributes, and they survive pickling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = [
    "AccessDeniedError",
    "AppendOnlyError",
    "ArgumentEmptyError",
    "ArgumentInterfaceError",
    "ArgumentRangeError",
    "ArgumentTypeError",
    "ArrowTypeError",
    "CatalogAuthenticationError",
    "CatalogConflictError",
    "CatalogError",
    "CatalogNameNotFoundError",
    "CatalogPermissionError",
    "CatalogRequiredError",
    "CatalogResponseError",
    "CatalogUnavailableError",
    "CheckpointError",
    "ColumnNotFoundError",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConstraintViolationError",
    "CorruptTableError",
    "DataFileError",
    "DataFileNotFoundError",
    "DeltaError",
    "EngineError",
    "ExpressionError",
    "ExternalPathError",
    "FeatureRequirementError",
    "HookContractError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidPlaceError",
    "LogChangedError",
    "LogError",
    "MetadataChangedError",
    "MultipleMatchesError",
    "MissingDependencyError",
    "PluginConflictError",
    "PluginError",
    "ProtocolChangedError",
    "ProtocolError",
    "RowsChangedError",
    "SchemaError",
    "SchemaMismatchError",
    "TableExistsError",
    "TableNotFoundError",
    "TooManyAttemptsError",
    "SpillError",
    "SpillLimitError",
    "StreamError",
    "StreamRestartError",
    "StreamSchemaError",
    "TypeChangeError",
    "TypeKindError",
    "UnsupportedDatasetError",
    "UnsupportedExpressionError",
    "UnsupportedFeatureError",
    "UnsupportedOperationError",
    "UnsupportedVersionError",
    "VersionNotFoundError",
    "did_you_mean",
    "shortened",
]

#: Among more names than this, a search for similar ones would take longer than a second.
_MOST_NAMES = 20_000


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the known name that is most similar, empty if none is."""
    import difflib

    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), by_lower, 1, 0.7) if len(by_lower) <= _MOST_NAMES else []
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


#: The user and the password of a URI, up to the last @: the password itself may have slashes and @. A port is none. A
#: URI that was misspelt with one slash has a password too; github://organisation:repository@branch has none.
_USER = r"(?<!github://)(?:(?<=://)|(?<=\w\w:/)(?<!file:/)(?!/))[^/@:\s'\"]*:(?!\d+(?:/|\s|$))[^\s'\"]*(?=@)"
#: The signature or token of a URI that is signed, as Azure, S3 and Google Cloud Storage name them.
_SIGNATURE = r"(?i)(?<=[?&])(sig|signature|(?:x-(?:amz|goog)-)(?:signature|security-token))=[^&\s'\"]+"


def without_passwords(text: str) -> str:
    """Return text as it may be shown: without the users, passwords and signatures of the URIs in it."""
    if ":/" not in text:
        return text
    text = re.sub(_USER, "***", text) if "@" in text else text
    return re.sub(_SIGNATURE, r"\1=***", text) if "=" in text else text


class DeltaError(Exception):
    """The root of every error of this library.

    Parameters
    ----------
    message : str
        The state that was found, the expected one, the place, and the remedy.
    **facts
        The values in the message; each becomes an attribute.
    """

    def __init__(self, message: str, **facts: Any) -> None:
        message = without_passwords(message)
        super().__init__(message)
        self.message = message
        self.facts: dict[str, Any] = {
            name: without_passwords(v) if isinstance(v, str) else v for name, v in facts.items()
        }

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.facts)

    def __str__(self) -> str:
        return self.message


def shortened(value: object, most: int = 300) -> str:
    """Return a value as text for a message, of at most ``most`` characters."""
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _rebuild(kind: type[DeltaError], message: str, facts: dict[str, Any]) -> DeltaError:
    return kind(message, **facts)


# --- the caller requested something that is not there, or not possible ---------------------


class TableNotFoundError(DeltaError, FileNotFoundError):
    """There is no Delta log at the given place."""


class TableExistsError(DeltaError, FileExistsError):
    """There is a table if one was to be created."""


class VersionNotFoundError(DeltaError, LookupError, ValueError):
    """The version does not exist, or the log no longer holds what is needed to build it."""


class ColumnNotFoundError(DeltaError, LookupError, ValueError):
    """A column that was named is not in the table's schema."""


class InvalidArgumentError(DeltaError, ValueError):
    """An argument's value is not one the call takes."""


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument is of another type than the call takes."""


class ArgumentInterfaceError(ArgumentTypeError, AttributeError):
    """An argument is an object without the attributes or methods that the call needs."""


class ArgumentEmptyError(ArgumentInterfaceError, IndexError):
    """An argument is a sequence without items, where what the call needs is in the items."""


class InvalidPlaceError(InvalidArgumentError, TableNotFoundError):
    """A text is no place that a table can have."""


class ArgumentRangeError(InvalidArgumentError, OverflowError):
    """An argument is a number out of the range that the call takes."""


class UnsupportedOperationError(DeltaError, NotImplementedError):
    """The call can't be served for this table; the message states what serves instead."""


class MissingDependencyError(DeltaError, ImportError):
    """An optional package is needed; the message states what to install."""


# --- what the table's protocol requires ----------------------------------------------------


class ProtocolError(DeltaError):
    """The table's protocol requires something that can't be met."""


class UnsupportedDatasetError(UnsupportedOperationError, ProtocolError):
    """A table has features for which a library that reads its files itself would return wrong rows."""


class UnsupportedVersionError(ProtocolError):
    """The table's minReaderVersion or minWriterVersion is not known."""


class UnsupportedFeatureError(ProtocolError):
    """The table needs a feature that no installed plugin provides."""


class FeatureRequirementError(ProtocolError):
    """A feature is listed without another one that it requires."""


class CatalogRequiredError(UnsupportedFeatureError):
    """A catalog-managed table was opened by path, without its catalog."""


# --- a catalog of names --------------------------------------------------------------------


class CatalogError(DeltaError):
    """A catalog of names rejects a request, or fails on it.

    Attributes
    ----------
    endpoint : str
        The catalog's address, without secrets.
    name : str
        The subject of the request, such as ``table main.sales.orders``.
    """


class CatalogNameNotFoundError(CatalogError, TableNotFoundError, LookupError):
    """A catalog has no table, schema or catalog of a name."""


class CatalogConflictError(CatalogError, TableExistsError):
    """A name, or a version of a table, is taken already."""


class CatalogAuthenticationError(CatalogError):
    """A catalog does not accept the token."""


class CatalogPermissionError(CatalogError, PermissionError):
    """A catalog does not permit the request."""


class CatalogUnavailableError(CatalogError, ConnectionError):
    """A catalog can't be reached, or can't serve the request now; it may have acted on it."""


class CatalogResponseError(CatalogError):
    """The answer of a catalog is not as its API specifies."""


# --- what is on disk breaks the protocol ---------------------------------------------------


class CorruptTableError(DeltaError):
    """The files on disk break the protocol."""


class LogError(CorruptTableError):
    """A commit, or the sequence of commits, breaks the protocol."""


class CheckpointError(CorruptTableError):
    """A checkpoint that is needed can't be read or is not complete."""

    @classmethod
    def of_missing(cls, path: str) -> LogChangedError:
        """Return the error of a checkpoint file that was listed and is not there."""
        return LogChangedError(
            f"Checkpoint file {path} is missing. If the log was cleaned up meanwhile, open the table again; "
            "otherwise restore the file.",
            path=path,
        )

    @classmethod
    def of_unreadable(cls, path: str, why: object) -> CheckpointError:
        """Return the error of a checkpoint file that an engine can't read; ``why`` is what the engine specifies."""
        text = (
            f"Checkpoint file {path} can't be read: {why}. No older files replace it. If a writer was replacing it, "
            "open the table again; otherwise restore the file from a backup."
        )
        return cls(text, path=path)


class LogChangedError(CheckpointError, LogError):
    """A file of the log was replaced or deleted while the table was open, and reading it again did not help."""

    @classmethod
    def of_replaced(cls, path: str) -> LogChangedError:
        """Return the error of a file that is not the one that was opened first."""
        return cls(f"{path} was replaced by another process while the table was open. Open the table again.", path=path)


class DataFileError(CorruptTableError):
    """A data file holds something that can't be read as the table's schema specifies."""


class IrregularFileError(CheckpointError, LogError, DataFileError):
    """A pipe, a socket or a device has the name of a file of the table: reading it might never end."""

    @classmethod
    def of(cls, path: str) -> IrregularFileError:
        """Return the error of a path."""
        return cls(
            f"{path} is a pipe, a socket or a device; expected a regular file. Delete it, or restore the file from a "
            "copy.",
            path=path,
        )


class DataFileNotFoundError(DataFileError, FileNotFoundError):
    """A file that the log names is not there."""

    @classmethod
    def of(cls, path: str) -> DataFileNotFoundError:
        """Return the error of a data file, or of a file of the change data feed.

        Parameters
        ----------
        path : str
            The file.
        """
        if "_change_data" in path.split("/"):
            # no operation removes it from the log, and the rows of the table are whole without it
            text = f"Change data file {path!r}, which the log names, is not there. Restore it, or read the changes of "
            return cls(f"{text}versions before and after its own.", path=path)
        text = f"Data file {path!r}, which the log names, is not there. If the table was vacuumed since it was loaded, "
        return cls(
            f"{text}load its latest version; otherwise restore the file, or remove it from the table.", path=path
        )


# --- schema, expressions, constraints ------------------------------------------------------


class SchemaError(DeltaError, ValueError):
    """The schema can't be interpreted; the message names column and type."""


class TypeKindError(SchemaError, TypeError):
    """A type is of another kind than the call takes, such as a list instead of a map."""


class ArrowTypeError(TypeKindError):
    """An Arrow type is of another kind than the Delta type that is made of it."""


class SchemaMismatchError(SchemaError):
    """Data does not fit the table's schema."""


class TypeChangeError(SchemaError):
    """A column's type was changed in a way that is not supported."""


class ExpressionError(DeltaError, ValueError):
    """An expression can't be parsed, or does not fit the columns it names."""


class UnsupportedExpressionError(ExpressionError):
    """An expression can't be evaluated with Spark's semantics here; the message names the part."""


class ConstraintViolationError(DeltaError):
    """Rows broke a named check."""


class MultipleMatchesError(DeltaError):
    """Several rows of a merge's source match one row of the table; ``row`` shows one of them."""


class StreamError(DeltaError):
    """A followed table changed so that its stream can't go on; ``position`` is where the stream stopped."""


class RowsChangedError(StreamError):
    """A commit deletes or changes rows, which a stream of appended rows can't show; ``version`` is the commit's."""


class StreamSchemaError(StreamError, SchemaError):
    """The schema of a followed table changed; ``version`` is the commit's."""


class StreamRestartError(StreamSchemaError):
    """The schema of a table changed, and was stored for its stream: start the query again to go on with it."""


# --- commits -------------------------------------------------------------------------------


class CommitError(DeltaError):
    """A commit did not land."""


class AppendOnlyError(CommitError, UnsupportedOperationError):
    """A commit would remove or change rows of an append-only table."""


class TooManyAttemptsError(CommitError):
    """Every attempt lost its race; trying again later may succeed."""


class CommitStateUnknownError(CommitError):
    """The commit may have landed: nothing was deleted."""


class CommitConflictError(CommitError):
    """A winning commit contradicts this one: rerun the query, not the commit."""


class ConcurrentAppendError(CommitConflictError):
    """A winning commit added files that this transaction would have read."""


class ConcurrentDeleteReadError(CommitConflictError):
    """A winning commit removed files that this transaction read."""


class ConcurrentDeleteDeleteError(CommitConflictError):
    """A winning commit removed files that this transaction removes."""


class ConcurrentTransactionError(CommitConflictError):
    """A winning commit carries the same application id."""


class MetadataChangedError(CommitConflictError):
    """A winning commit changed the table's metadata."""


class ProtocolChangedError(CommitConflictError):
    """A winning commit changed the table's protocol."""


# --- engines, plugins, bugs ----------------------------------------------------------------


class EngineError(DeltaError):
    """A backend failed; its own error is the cause."""


class SpillError(EngineError):
    """Temporary files can't be written or read, as on a full disk; ``path`` is their directory."""


class SpillLimitError(SpillError):
    """Temporary files would take more space than an argument allows; ``limit`` in bytes."""


class AccessDeniedError(EngineError, PermissionError):
    """The store does not let this user read or write a file; whether it is sound is not known."""

    @classmethod
    def of(cls, path: str, cause: object) -> AccessDeniedError:
        """Return the error of a file that may not be read; ``cause`` is what the store specifies."""
        return cls(
            f"{path!r} may not be read: {cause}. Let this user read it, or use the credentials of one who may.",
            path=path,
        )


class ExternalPathError(EngineError):
    """A path of the log leads out of the table to a place that is not followed; ``path`` is its text."""


class PluginError(DeltaError):
    """A plugin breaks the rules of the plugin API."""


class HookContractError(PluginError):
    """A hook returned what its specification does not allow."""


class PluginConflictError(PluginError):
    """Two plugins claim the same column, action field or answer."""


class InternalError(DeltaError):
    """A bug in delta_core: please report it."""
