"""Steps that enable or drop a feature: what the hook ``feature_steps`` returns. A closed set of frozen records.

Each step can be run again: it does nothing if the table is already as it would leave it. An operation that was
interrupted is therefore finished by calling it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Union

from msgspec import Struct

from delta_core.schema.fields import Path, Schema

__all__ = [
    "AddTombstones", "ChangeSchema", "FeatureStep",
    "FeatureUse", "ReAddFiles", "RemoveDomains", "RemoveProperties", "RewriteFiles",
    "SetProperties",
]  # fmt: skip


class FeatureUse(Struct, frozen=True):
    """Changes that users must make before the feature can be dropped: nothing is done to the table.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    users : tuple of str
        The user of the feature, such as ``column a``.
    advice : str
        The first step, as a sentence.
    """

    feature: str
    users: tuple[str, ...]
    advice: str


class SetProperties(Struct, frozen=True):
    """Commit table properties before the next step, so that no other writer goes on using the feature.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    properties : Mapping of str to str or None
        None removes a property.
    """

    feature: str
    properties: Mapping[str, str | None]


class RewriteFiles(Struct, frozen=True):
    """Write the rows of some live files to new files, in commits of their own.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    column : str, optional
        A field of the log's adds: the files in which it is not null.
    columns : tuple of Path
        Columns of the table, at any depth (parts of arrays and maps are ``element``, ``key`` and ``value``): the files
        in which one of them has another type than in the table. Found in the files' footers.
    """

    feature: str
    column: str | None = None
    columns: tuple[Path, ...] = ()


class AddTombstones(Struct, frozen=True):
    """Add tombstones of files that the tombstones of other files name, such as deletion vectors.

    VACUUM of programs without the feature then keeps them for older versions as long as those other files. Files that
    have a tombstone already, and files outside the table's folder, are left out.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    column : str
        A field of the log's adds and removes, for which the feature's `file_references` returns the files.
    operation : str
        The name of the commit for history.
    """

    feature: str
    column: str
    operation: str


class ReAddFiles(Struct, frozen=True):
    """Add live files again without changing data, in commits of a bounded number of files.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    columns : tuple of str
        Fields of the log's adds.
    clear : bool
        True: files in which one of them is not null, and it becomes null. False: files in which one of them is null,
        and the commit rules of the feature set it.
    operation : str
        The name of the commits for history.
    """

    feature: str
    columns: tuple[str, ...]
    clear: bool
    operation: str


class RemoveProperties(Struct, frozen=True):
    """Remove table properties in the commit that removes the feature.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    names : tuple of str
        The properties.
    """

    feature: str
    names: tuple[str, ...]


class RemoveDomains(Struct, frozen=True):
    """Remove domains, in a commit of their own; every domain of the table if none is named.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    names : tuple of str
        The domains; empty: every domain of the table.
    """

    feature: str
    names: tuple[str, ...] = ()


class ChangeSchema(Struct, frozen=True):
    """Change the schema, and remove properties with it, in one commit; the steps before it are complete then.

    The feature's rules for changes of the definition do not apply to this commit. It is made again if another writer
    commits meanwhile.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    change : function(Schema) -> Schema
        Returns the schema without what the feature added; the same one if there is nothing.
    operation : str
        The name of the commit for history.
    properties : tuple of str
        Table properties that are removed.
    rewrite : bool
        Whether the same commit replaces every file: the files have another layout under the new schema.
    """

    feature: str
    change: Callable[[Schema], Schema]
    operation: str = "CHANGE SCHEMA"
    properties: tuple[str, ...] = ()
    rewrite: bool = False


FeatureStep = Union[
    FeatureUse, SetProperties, RewriteFiles, AddTombstones, ReAddFiles, RemoveProperties, RemoveDomains, ChangeSchema
]
