"""The errors of calls with pylance's names, and what is not offered by them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar

from delta_core import api
from delta_core.api import DeltaError, UnsupportedOperationError

__all__ = [
    "OURS",
    "CommitConflictError",
    "CompatError",
    "NotOfferedError",
    "OfferedNames",
    "not_offered",
    "reject",
    "translated",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class CompatError(DeltaError, OSError, ValueError):
    """An error of a call; scripts catch it as the OSError or the ValueError that pylance raises. Its cause is ours."""


class CommitConflictError(CompatError):
    """Another writer's commit contradicts this one."""


class NotOfferedError(UnsupportedOperationError, AttributeError):
    """A name, or an argument, of pylance that is not offered; the message names our call."""


#: Our call, or why an argument is not needed, by argument and by name.
OURS: Mapping[str, str] = {
    "nearest": "search vectors with pylance",
    "full_text_query": "search texts with pylance",
    "fast_search": "rows that no index has are always read",
    "batch_readahead": "reads are bounded by memory, leave it out",
    "fragment_readahead": "reads are bounded by memory, leave it out",
    "io_buffer_size": "reads are bounded by memory, leave it out",
    "batch_size_bytes": "pass batch_size",
    "late_materialization": "columns are always read for rows that pass, leave it out",
    "use_stats": "leave it out; use_scalar_index=False reads without indices",
    "include_deleted_rows": "open the version before the rows were deleted",
    "disable_scoring_autoprojection": "search texts with pylance",
    "scan_stats_callback": "call open_table(uri).scan(...).explain(run=True)",
    "index_segments": "leave it out: all indices that answer are used",
    "row_addr_allowlist": "call open_table(uri).take(addresses, by='address')",
    "row_addr_blocklist": "filter the rows of open_table(uri).scan(metadata=['_rowaddr'])",
    "retry_timeout": "pass conflict_retries",
    "commit_lock": "leave it out: commits create a manifest if there is none; see docs/stores.md for committers",
    "default_scan_options": "pass the options with each scan",
    "read_columns": "pass SQL by column, or rows",
    "when_matched_fail": "count the rows that match before merging",
    "use_index": "call open_table(uri).merge",
    "max_rows_per_group": "leave it out: data files have pages, not groups",
    "data_storage_version": "datasets are written in their own version, and created in '2.0' to '2.2'",
    "enable_v2_manifest_paths": "leave it out: new datasets have names of the second scheme",
    "create_index": "create scalar indices with create_scalar_index, others with pylance",
    "describe_indices": "call list_indices",
    "optimize_indices": "call create_scalar_index, which replaces the index",
    "train": "leave it out: indices are created of the rows that are there",
    "delete_rate_limit": "leave it out, or call open_table(uri).cleanup",
    "delete_concurrency": "leave it out, or call open_table(uri).cleanup",
    "versions": "call open_table(uri).cleanup with older_than or keep_versions",
    "take_blobs": "call open_table(uri).take_blobs",
    "sql": "call delta_core.QueryBuilder",
    "validate": "call open_table(uri).verify()",
    "branches": "call open_table(uri).branches()",
    "replace_field_metadata": "call open_table(uri).set_config(field_metadata=...)",
    "update_metadata": "call open_table(uri).set_config(table_metadata=...)",
    "update_schema_metadata": "call open_table(uri).set_config(schema_metadata=...)",
    "update_field_metadata": "call open_table(uri).set_config(field_metadata=...)",
    "delete_config_keys": "call update_config with None for each key",
    "fragments": "call open_table(uri).fragments()",
    "max_source_fragments": "call open_table(uri).compact",
    "data_stats": "call open_table(uri).stats()",
}
_OTHERWISE = "use delta_core.open_table(uri), whose calls docs/lance.md lists beside those of pylance"


def not_offered(name: str, of: str) -> NotOfferedError:
    """Return the error of a name that is not offered."""
    return NotOfferedError(f"{of}.{name} of pylance is not offered: {OURS.get(name, _OTHERWISE)}.", name=name)


def reject(call: str, given: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
    """Reject arguments that are not offered, unless they are None or have their default value.

    Parameters
    ----------
    call : str
        The call, for the message.
    given : Mapping of str to object
        Values by argument.
    defaults : Mapping of str to object, optional
        Default values of arguments that are not None.

    Raises
    ------
    NotOfferedError
        For the first argument with another value.
    """
    for name, value in given.items():
        if value is not None and not (defaults and name in defaults and value == defaults[name]):
            raise NotOfferedError(
                f"{call} was called with {name}={value!r:.80}, which is not offered: {OURS.get(name, _OTHERWISE)}.",
                name=name,
            )


class OfferedNames:
    """Base of the classes with pylance's names: any other name is rejected with the way that this library has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise not_offered(name, type(self).__name__)


def translated(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function whose errors are of the classes that scripts for pylance catch."""

    @functools.wraps(call)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return call(*args, **kwargs)
        except (CompatError, NotOfferedError):
            raise
        except DeltaError as e:
            raise_translated(e)

    return run


def raise_translated(error: DeltaError) -> NoReturn:
    """Raise an error as the class that scripts for pylance catch."""
    kind = CommitConflictError if isinstance(error, api.CommitConflictError) else CompatError
    raise kind(str(error), **error.facts) from error
