"""Settings of a session that change what Delta does: each is followed, or rejected by its name.

`delta_settings.json` lists those of delta-spark. A read of all settings is one call of the driver.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import pyspark
from msgspec import Struct

from delta_core.engines.engine import CommitDefaults, ForbiddenFeature
from delta_core.engines.spark.check_settings import set_check_settings
from delta_core.engines.spark.plan import private
from delta_core.errors import (
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.expressions.ast import Column, Expression, leaves
from delta_core.kernel.commit.options import PostCommitHookProperties
from delta_core.kernel.log.timestamps import parse_ms
from delta_core.kernel.protocol.properties import parse_size
from delta_core.operations.merge.value_fitting import FittingRules
from delta_core.schema.fields import Path, find, format_path
from delta_core.schema.types import StructType

_log = logging.getLogger(__name__)

__all__ = ["KEEPS_NULL_STRUCTS", "PLAIN_CHARS", "SessionSettings", "column_paths", "session_settings"]

#: How the names of delta-spark's settings begin, and those of the properties of new tables.
_DELTA = "spark.databricks.delta."
_DEFAULTS = f"{_DELTA}properties.defaults."
_DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
_APP, _VERSION = f"{_DELTA}write.txnAppId", f"{_DELTA}write.txnVersion"
_RESET = f"{_DELTA}write.txnVersion.autoReset.enabled"
_COMPACT = f"{_DELTA}autoCompact."
_CASE, _ASSIGNMENT = "spark.sql.caseSensitive", "spark.sql.storeAssignmentPolicy"
PLAIN_CHARS = "spark.sql.legacy.charVarcharAsString"
#: Whether null structs of other types stay null, in rows that are inserted and in values that are assigned.
KEEPS_NULL_STRUCTS, _KEEPS_ASSIGNED = "insert.preserveNullSourceStructs", "merge.preserveNullSourceStructs"
_STORES = "spark.delta.logStore."
#: How names begin that are read where a stream starts.
_STREAMS = tuple(f"{_DELTA}streaming.allowSourceColumn{kind}" for kind in ("Drop", "Rename", "TypeChange"))
#: Stores of commits that are safe beside a writer that creates each commit's file only if there is none.
_SAFE_STORES = ("HDFSLogStore", "AzureLogStore", "GCSLogStore", "LocalLogStore", "S3SingleDriverLogStore")


class _Disabled(NamedTuple):
    """A call that is rejected while a setting is false, and the condition that delta-spark's error has."""

    what: str
    condition: str
    error: type[DeltaError] = UnsupportedOperationError


#: By settings, without the beginning of all names.
_DISABLED = {
    "alterTable.dropColumn.enabled": _Disabled("DROP COLUMN", "DELTA_UNSUPPORTED_DROP_COLUMN"),
    "clone.replaceEnabled": _Disabled(
        "A clone in place of a table", "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE", InvalidArgumentError
    ),
    "dynamicPartitionOverwrite.enabled": _Disabled(
        "A dynamic partition overwrite", "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED", InvalidArgumentError
    ),
    "replaceOn.dataframe.writer.enabled": _Disabled("replaceOn", "DELTA_OPERATION_NOT_ALLOWED"),
    "replaceUsing.dataframe.writer.enabled": _Disabled("replaceUsing", "DELTA_OPERATION_NOT_ALLOWED"),
    "replaceWhere.dataColumns.enabled": _Disabled(
        "replaceWhere with columns that do not partition the table", "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    ),
}
_INTEGERS = ("byte", "short", "integer", "long")
#: The types that become others by themselves, by the values of typeWidening.allowAutomaticWidening.
_WIDENINGS: Mapping[str, Callable[[str, str], bool]] = {
    "ALWAYS": lambda old, new: True,
    "SAME_FAMILY_TYPE": lambda old, new: (
        (old not in _INTEGERS or new in _INTEGERS) and (old, new) != ("date", "timestamp_ntz")
    ),
    "NEVER": lambda old, new: False,
}


def _disabled(name: str, found: _Disabled) -> DeltaError:
    return found.error(
        f"{found.what} is not possible in this session: {name} is false.", setting=name, condition=found.condition
    )


def _forbidden(name: str, rule: Mapping[str, Any]) -> ForbiddenFeature:
    error = _disabled(name, _Disabled(rule["text"], rule["condition"]))
    return ForbiddenFeature(rule["feature"], rule["what"], error)


class SessionSettings(Struct, frozen=True):
    """The settings of a session.

    Parameters
    ----------
    texts : Mapping of str to str
        The settings by their names, without those that have their defaults.
    """

    texts: Mapping[str, str]

    @property
    def commit_defaults(self) -> CommitDefaults:
        """The defaults of commits and new tables."""
        return CommitDefaults(
            self.texts.get(f"{_DELTA}commitInfo.userMetadata"),
            self.properties,
            self.requests("allowArbitraryProperties.enabled"),
            tuple(_forbidden(name, rule) for name, rule in _rules().items() if self.flag(name) is False),
            self.requests("replace.protocolDowngradeAllowed"),
            dict(self._feature_names()),
        )

    def _feature_names(self) -> Iterator[tuple[str, str]]:
        """Yield features that definitions add under another name, with this name."""
        for name, rule in _renaming().items():
            flag = self.flag(name)
            if (rule["default"] if flag is None else flag) is rule["if"]:
                yield rule["feature"], rule["as"]

    @property
    def properties(self) -> dict[str, str]:
        """The properties of tables that are created."""
        return {f"delta.{n[len(_DEFAULTS) :]}": text for n, text in self.texts.items() if n.startswith(_DEFAULTS)}

    @property
    def transactions(self) -> dict[str, int]:
        """The application and the version of a write, none if they are not set.

        Raises
        ------
        InvalidArgumentError
            One of the two settings is missing, or the version is no whole number.
        """
        app, version = self.texts.get(_APP), self.texts.get(_VERSION)
        if app is None and version is None:
            return {}
        if app is None or version is None:
            raise InvalidArgumentError(
                f"Found only {_VERSION if app is None else _APP} in the session, expected both {_APP} and {_VERSION}, "
                "or none.",
                setting=_VERSION if app is None else _APP,
            )
        if not (version.isascii() and version.isdigit()):
            raise InvalidArgumentError(
                f"Found {version!r} for the setting {_VERSION}, expected a whole number from 0 on.", setting=_VERSION
            )
        return {app: int(version)}

    def finish_transaction(self, spark: Any) -> None:
        """Unset the version of a write that is done, if the session requests that."""
        if self.transactions and self.flag(_RESET):
            spark.conf.unset(_VERSION)

    @property
    def merges_schema(self) -> bool:
        """Whether writes and merges add columns unless they specify otherwise."""
        return self.flag(f"{_DELTA}schema.autoMerge.enabled") or False

    @property
    def optimizes_writes(self) -> bool | None:
        """Whether rows are shuffled before they are written; None: the table decides."""
        return self.flag(f"{_DELTA}optimizeWrite.enabled")

    @property
    def optimize_size(self) -> int | None:
        """The size of files that OPTIMIZE writes, in bytes."""
        return self.size(f"{_DELTA}optimize.maxFileSize")

    @property
    def compaction(self) -> PostCommitHookProperties:
        """Whether and how small files are joined after a commit."""
        enabled = self.texts.get(f"{_COMPACT}enabled")
        found: dict[str, Any] = {
            "auto_compact_min_files": self.size(f"{_COMPACT}minNumFiles"),
            "auto_compact_max_file_size": self.size(f"{_COMPACT}maxFileSize"),
        }
        given = {name: value for name, value in found.items() if value is not None}
        return PostCommitHookProperties(auto_compact=None if enabled is None else enabled.lower() != "false", **given)

    @property
    def allows_later_timestamps(self) -> bool:
        """Whether a change feed may begin and end after the last commit."""
        return self.flag(f"{_DELTA}changeDataFeed.timestampOutOfRange.enabled") or False

    @property
    def checks_retention(self) -> bool:
        """Whether vacuum keeps the files within the retention of the table."""
        return self.flag(f"{_DELTA}retentionDurationCheck.enabled") is not False

    @property
    def records_vacuum(self) -> bool:
        """Whether commits begin and end a vacuum."""
        return self.flag(f"{_DELTA}vacuum.logging.enabled") is not False

    @property
    def is_dynamic(self) -> bool:
        """Whether an overwrite replaces only the partitions of the new rows unless it specifies otherwise.

        Raises
        ------
        InvalidArgumentError
            The session rejects such overwrites, and requests them.
        """
        return self.permits_dynamic(self.texts.get(_DYNAMIC, "").lower() == "dynamic")

    def permits_dynamic(self, is_dynamic: bool) -> bool:
        """Return whether an overwrite replaces only partitions, if the session does not reject that.

        Raises
        ------
        InvalidArgumentError
            It does.
        """
        if is_dynamic:
            self.permit("dynamicPartitionOverwrite.enabled")
        return is_dynamic

    def permits(self, name: str) -> bool:
        """Return whether a setting, by its name without the beginning of all names, is not false."""
        return self.flag(f"{_DELTA}{name}") is not False

    def requests(self, name: str) -> bool:
        """Return whether a setting, by its name without the beginning of all names, is true."""
        return self.flag(f"{_DELTA}{name}") is True

    def permit(self, name: str) -> None:
        """Reject what a setting of `_DISABLED` disables.

        Parameters
        ----------
        name : str
            The setting, without the beginning of all names.

        Raises
        ------
        DeltaError
            It is false; the subclass is that of what is disabled.
        """
        error = self.disabled(name)
        if error is not None:
            raise error

    def disabled(self, name: str) -> DeltaError | None:
        """Return the error of `permit`, None if it would raise none."""
        return None if self.permits(name) else _disabled(f"{_DELTA}{name}", _DISABLED[name])

    @property
    def may_widen(self) -> Callable[[str, str], bool]:
        """Whether a write or merge that changes the schema may change a column of a type to another one.

        Raises
        ------
        InvalidArgumentError
            The setting has another value.
        """
        name = f"{_DELTA}typeWidening.allowAutomaticWidening"
        found = self.texts.get(name, "ALWAYS").strip().upper()
        if found not in _WIDENINGS:
            raise InvalidArgumentError(
                f"Found {found!r} for the setting {name}, expected one of {', '.join(_WIDENINGS)}.", setting=name
            )
        return _WIDENINGS[found]

    def change_options(self, operation: str) -> dict[str, Any]:
        """Return arguments of `ChangeOptions` for DELETE, UPDATE or MERGE, named in lower case."""
        return {
            "transactions": self.transactions,
            "deletion_vectors": self.permits(f"{operation}.deletionVectors.persistent"),
            "commits_empty": not self.permits("skipRecordingEmptyCommits"),
            "may_widen": self.may_widen,
            **({} if operation == "delete" else {"fitting": self.fitting}),
        }

    @property
    def fitting(self) -> FittingRules:
        """How values become those of structs that UPDATE and MERGE assign."""
        keeps_null = self.permits(_KEEPS_ASSIGNED)
        return FittingRules(
            not self.permits("resolveMergeUpdateStructsByName.enabled"),
            keeps_null,
            keeps_null and self.permits(f"{_KEEPS_ASSIGNED}.updateStar"),
        )

    def keeps_null_structs(self, is_stream: bool) -> bool:
        """Whether null structs of another type than that of their column stay null in rows that are written."""
        return self.permits(_KEEPS_ASSIGNED if is_stream else KEEPS_NULL_STRUCTS)

    @property
    def casts_as_queries(self) -> bool:
        """Whether values that UPDATE and MERGE assign are cast without ANSI mode, as in queries of the session."""
        is_ansi = self.flag("spark.sql.ansi.enabled") is not False
        return not is_ansi and self.requests("updateAndMergeCastingFollowsAnsiEnabledFlag")

    @property
    def drops_void_columns(self) -> bool:
        """Whether rows that are read lack the columns of type void."""
        return self.requests("createDataFrame.dropNullColumns")

    def time(self, text: str) -> str:
        """Return a point in time that a call requests; the beginning of 1970 for what is none, if that is permitted.

        Raises
        ------
        InvalidArgumentError
            The text is none, and the session rejects it.
        """
        try:
            parse_ms(text)
        except InvalidArgumentError:
            if self.permits("timeTravel.parsing.strict"):
                raise
            return "1970-01-01T00:00:00Z"
        return text

    @property
    def ignores_renames(self) -> bool:
        """Whether changes are read although columns were renamed or dropped within their range."""
        return self.requests("changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled")

    @property
    def rejects_wider_types(self) -> str | None:
        """The setting that stops every stream at a column with a wider type; None if none does."""
        name = "typeWidening.allowTypeChangeStreamingDeltaSource"
        return None if self.permits(name) else f"{_DELTA}{name}"

    @property
    def stops_at_wider_types(self) -> str | None:
        """The setting that stops a stream without tracked schemas at a column with a wider type; None if none does."""
        name = "typeWidening.enableStreamingSchemaTracking"
        return self.rejects_wider_types or (f"{_DELTA}{name}" if self.requests(name) else None)

    @property
    def batch_size(self) -> int | None:
        """How many bytes of files a commit of OPTIMIZE removes; None: one commit removes all."""
        return self.size(f"{_DELTA}optimize.batchSize")

    @property
    def changes_schema_mode(self) -> Literal["legacy", "latest", "endVersion"]:
        """Which columns the changes of a table with column mapping have.

        Raises
        ------
        InvalidArgumentError
            The setting has another value.
        """
        name = f"{_DELTA}changeDataFeed.defaultSchemaModeForColumnMappingTable"
        modes: tuple[Literal["legacy", "latest", "endVersion"], ...] = ("legacy", "latest", "endVersion")
        text = self.texts.get(name, "endVersion").strip()
        found = next((mode for mode in modes if mode.lower() == text.lower()), None)
        if found is None:
            raise InvalidArgumentError(
                f"Found {text!r} for the setting {name}, expected one of {', '.join(modes)}.", setting=name
            )
        return found

    @property
    def drops_missing_constraints(self) -> bool:
        """Whether DROP CONSTRAINT of a constraint that does not exist changes nothing."""
        return self.flag(f"{_DELTA}constraints.assumesDropIfExists.enabled") or False

    @property
    def lowers_property_names(self) -> bool:
        """Whether the names of properties that a builder gets become lower case, but for Delta's own."""
        return self.flag(f"{_DELTA}deltaTableBuilder.forceTablePropertyLowerCase.enabled") or False

    def flag(self, name: str) -> bool | None:
        """Return a setting that is true or false, None if it is not set.

        Raises
        ------
        InvalidArgumentError
            It has another value.
        """
        found = self.texts.get(name)
        if found is None:
            return None
        if found.strip().lower() not in ("true", "false"):
            raise InvalidArgumentError(f"Found {found!r} for the setting {name}, expected true or false.", setting=name)
        return found.strip().lower() == "true"

    def size(self, name: str) -> int | None:
        """Return a setting that is a number of bytes or of files, None if it is not set.

        Raises
        ------
        InvalidArgumentError
            It has another value.
        """
        found = self.texts.get(name)
        try:
            return None if found is None else parse_size(found)
        except ValueError as e:
            raise InvalidArgumentError(f"Found {found!r} for the setting {name}, expected {e}.", setting=name) from None

    @property
    def has_plain_chars(self) -> bool:
        """Whether texts of the types ``char(n)`` and ``varchar(n)`` are plain strings, of any length."""
        return self.flag(PLAIN_CHARS) or False

    @property
    def pads_chars(self) -> bool:
        """Whether texts of the type ``char(n)`` are padded where they are read."""
        return not self.has_plain_chars and self.flag("spark.sql.readSideCharPadding") is not False

    @property
    def is_case_sensitive(self) -> bool:
        """Whether the case of letters distinguishes columns."""
        return self.flag(_CASE) or False

    def check_case(self, schema: StructType, paths: Iterable[Path]) -> None:
        """Reject columns that only differ from those of a table in the case of letters, if the session regards it.

        Parameters
        ----------
        schema : StructType
            The table's columns.
        paths : iterable of tuple of str
            Columns, and fields of structs; those that the table lacks are left to others.

        Raises
        ------
        ColumnNotFoundError
            For such a column.
        """
        if not self.is_case_sensitive:
            return
        for path in paths:
            try:
                found = find(schema, path)[0]
            except ColumnNotFoundError:
                continue
            if found != tuple(path):
                raise ColumnNotFoundError(
                    f"Found column {format_path(path)}, expected {format_path(found)}, since the setting {_CASE} is "
                    "true.",
                    column=format_path(path),
                )


def column_paths(*expressions: Expression) -> list[Path]:
    """Return the columns that expressions read, as they spell them."""
    return [leaf.path for e in expressions for leaf in leaves(e) if isinstance(leaf, Column)]


def session_settings(spark: Any) -> SessionSettings:
    """Return the settings of a session, read in one call.

    Raises
    ------
    UnsupportedOperationError
        A setting is set that changes what Delta does, and that this library does not follow.
    """
    texts = private.settings(spark)
    ending = {}
    for name, text in texts.items():
        if name.startswith((_DELTA, "spark.databricks.io.")):
            if _check(name, text):
                ending[name] = text
        elif name.startswith(_STORES):
            _check_store(name, text)
    set_check_settings(ending)
    policy = texts.get(_ASSIGNMENT, "ANSI")
    if policy.upper() != "ANSI":
        raise _unknown(_ASSIGNMENT, policy, "ANSI, since values that do not fit are never changed or replaced by null")
    return SessionSettings(texts)


def _check(name: str, text: str) -> bool:
    """Reject a setting that is not followed, and return whether it ends a check of delta-spark."""
    known = _known().get(name)
    if known is None:
        if not name.startswith((_DEFAULTS, *_STREAMS)) and name.startswith(_DELTA):
            hint = did_you_mean(name, list(_known()))
            raise _unknown(name, text, f"a setting of delta-spark 4.4.0; see docs/spark-settings.md.{hint}")
    elif _is_rejected(known) and not _is_default(text, known["default"]):
        default = known["default"]
        expected = "no such setting" if default is None else f"its default {default}"
        raise _unknown(name, text, expected, known.get("condition"))
    elif known.get("is_warned") and not _is_default(text, known["default"]):
        _warn(name, text)
    return known is not None and bool(known.get("is_check")) and not _is_default(text, known["default"])


def _is_rejected(known: Mapping[str, Any]) -> bool:
    """Whether a setting is not followed; some have a meaning on some versions of Spark only."""
    return bool(known["status"] == "rejected") and pyspark.__version__.startswith(known.get("spark", ""))


@cache
def _warn(name: str, text: str) -> None:
    _log.warning("The setting %s = %s has no effect here: files have the form that the table requests.", name, text)


def _check_store(name: str, text: str) -> None:
    if not text.endswith(_SAFE_STORES):
        raise _unknown(
            name,
            text,
            "no such setting, since commits would not be made by this class. For commits through DynamoDB, pass "
            "storage_options (docs/stores.md)",
        )


def _unknown(name: str, text: str, expected: str, condition: str | None = None) -> UnsupportedOperationError:
    end = "" if expected.endswith((".", "?")) else "."
    return UnsupportedOperationError(
        f"Found the setting {name} = {text} in the session, which delta_core does not follow; expected {expected}{end} "
        f"Remove it: spark.conf.unset({name!r}).",
        setting=name,
        value=text,
        condition=condition,
    )


def _is_default(text: str, default: str | None) -> bool:
    if default is None:
        return False
    given, known = text.strip().lower(), default.strip().lower()
    if given == known:
        return True
    try:
        return parse_size(given) == parse_size(known)
    except ValueError:
        return False


@cache
def _known() -> Mapping[str, Mapping[str, Any]]:
    """Return the settings of delta-spark by their names: default, status and meaning."""
    found: dict[str, Mapping[str, Any]] = json.loads(
        files(__package__).joinpath("delta_settings.json").read_text(encoding="utf-8")
    )
    return found


@cache
def _renaming() -> Mapping[str, Mapping[str, Any]]:
    """Return which features settings rename, by their names."""
    return {name: known["renames"] for name, known in _known().items() if "renames" in known}


@cache
def _rules() -> Mapping[str, Mapping[str, Any]]:
    """Return what settings forbid that are false, by their names."""
    return {name: known["forbids"] for name, known in _known().items() if "forbids" in known}
