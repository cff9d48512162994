"""Calls of the functions of a `FileReference`, whose results decide which files stay: each is an array as expected."""

from __future__ import annotations

import pyarrow as pa

from delta_core.kernel.plugins.answers import check_array
from delta_core.kernel.plugins.rules import FileReference
from delta_core.runtime.plugin_errors import plugin_errors

__all__ = ["absolute_files", "named_files", "relocated_files"]

_HOOK = "file_references"


def named_files(reference: FileReference, values: pa.Array) -> pa.Array:
    """Return the decoded paths that a column of a file table names, null for none.

    Parameters
    ----------
    reference : FileReference
        The rule.
    values : pyarrow.Array, **shape (n,)**
        Its column.

    Raises
    ------
    HookContractError
        If its function returns anything but a text for each value.
    """
    return _called(reference, "paths", pa.string(), values)


def absolute_files(reference: FileReference, values: pa.Array) -> pa.Array:
    """Return which of the paths do not begin at the table's root.

    Parameters
    ----------
    reference : FileReference
        The rule.
    values : pyarrow.Array, **shape (n,)**
        Its column.

    Raises
    ------
    HookContractError
        If its function returns anything but a boolean for each value.
    """
    return _called(reference, "absolute", pa.bool_(), values)


def relocated_files(reference: FileReference, values: pa.Array, uris: pa.Array) -> pa.Array:
    """Return a column with the files that it names at other URIs.

    Parameters
    ----------
    reference : FileReference
        The rule, with ``relocated``.
    values : pyarrow.Array, **shape (n,)**
        Its column.
    uris : pyarrow.Array, **shape (n,)**
        The absolute URIs, null to leave a value as it is.

    Raises
    ------
    HookContractError
        If its function returns anything but a value of the column's type for each.
    """
    return _called(reference, "relocated", values.type, values, uris)


def _called(reference: FileReference, name: str, kind: pa.DataType, *arguments: pa.Array) -> pa.Array:
    part = f"FileReference.{name}"
    with plugin_errors(reference.feature, f"{part} of hook {_HOOK}", _HOOK):
        found = getattr(reference, name)(*arguments)
    check_array(found, len(arguments[0]), kind, reference.feature, _HOOK, part)
    return found
