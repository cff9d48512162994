"""The operations of commits: each one changes a draft of the next version and returns its part of the transaction.

Protocol: Transaction, and the effects of its operations on manifests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct, structs

from delta_core.api import InternalError
from delta_plugins.lance.commit.draft import Draft, NewFragment, fragment_message
from delta_plugins.lance.commit.indices import after_moves, decoded_index, of_fields
from delta_plugins.lance.manifest import Manifest
from delta_plugins.lance.schema import LanceField, fields_of_schema, message_of, walk_fields
from delta_plugins.lance.wire import Message, encode

if TYPE_CHECKING:
    from delta_core.kernels.row_set import RowSet

__all__ = [
    "Append",
    "CreateIndex",
    "Delete",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RowRemoval",
    "Update",
    "UpdateConfig",
]


#: The number of the field of a RewriteGroup.
_OLD_FRAGMENTS = 1


class Operation(Protocol):
    """One operation, which can be applied to several versions until a commit lands."""

    @property
    def name(self) -> str:
        """The alternative of the message Transaction, such as ``append``."""
        ...

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """Change a draft, and return the message of the operation."""
        ...


class DeletionWriter(Protocol):
    """Writes deletion files for an attempt."""

    def write(self, fragment: int, read_version: int, rows: RowSet) -> Message:
        """Write a file that lists the deleted rows of a fragment, and return its message."""
        ...


class RowRemoval(Struct, frozen=True):
    """Rows that a commit deletes.

    Parameters
    ----------
    base : Manifest
        The version that they were found in.
    rows : Mapping of int to RowSet
        Physical positions by the id of the fragment; none of them was deleted in the base.
    earlier : Mapping of int to RowSet
        The deleted rows of the same fragments in the version that the commit is based on; without those that have none.
    """

    base: Manifest
    rows: Mapping[int, RowSet]
    earlier: Mapping[int, RowSet]

    def apply(self, draft: Draft, deletions: DeletionWriter) -> tuple[list[int], list[Message]]:
        """Change a draft, and return the fragments that have no row any more and the messages of the others."""
        removed: list[int] = []
        changed: list[Message] = []
        for fragment, mine in self.rows.items():
            index = draft.index_of(fragment)
            if draft.base is None or index < 0:
                raise InternalError(f"Fragment {fragment} is not in version {draft.version - 1}.", fragment=fragment)
            before = self.earlier.get(fragment)
            rows = mine if before is None else before | mine
            message = fragment_message(draft.base, index)
            if rows.cardinality >= message["physical_rows"]:
                removed.append(fragment)
                continue
            message["deletion_file"] = deletions.write(fragment, draft.version - 1, rows)
            changed.append(message)
            draft.replace(fragment, [message])
        draft.remove(removed)
        return removed, changed


class Append(Struct, frozen=True):
    """New fragments."""

    fragments: Sequence[NewFragment]
    name = "append"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        return {"fragments": draft.append(self.fragments)}


class Overwrite(Struct, frozen=True):
    """Another content, also that of a new dataset.

    Parameters
    ----------
    fragments : sequence of NewFragment
        All there is afterwards.
    fields : tuple of LanceField
        The schema.
    schema_metadata : Mapping of str to bytes
        Of the schema.
    config : Mapping of str to str
        Added to the configuration.
    data_format : str, optional
        The version of data files of a new dataset, such as ``2.2``.
    """

    fragments: Sequence[NewFragment]
    fields: tuple[LanceField, ...]
    schema_metadata: Mapping[str, bytes] = {}
    config: Mapping[str, str] = {}
    data_format: str | None = None
    name = "overwrite"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        draft.remove_all()
        draft.indices = []
        draft.set_fields(self.fields)
        draft.message["schema_metadata"] = dict(self.schema_metadata)
        draft.message["config"] = {**(draft.message.get("config") or {}), **self.config}
        if self.data_format is not None:
            draft.message["data_format"] = {"file_format": "lance", "version": self.data_format}
        return {
            "fragments": draft.append(self.fragments),
            "schema": [message_of(f) for f in fields_of_schema(self.fields)],
            "schema_metadata": dict(self.schema_metadata),
            "config_upsert_values": dict(self.config),
        }


class Delete(Struct, frozen=True):
    """Rows, or whole fragments, that go."""

    removal: RowRemoval
    whole: Sequence[int] = ()
    predicate: str = ""
    name = "delete"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        removed, changed = self.removal.apply(draft, deletions)
        draft.remove(self.whole)
        return {
            "updated_fragments": changed,
            "deleted_fragment_ids": sorted([*removed, *self.whole]),
            "predicate": self.predicate,
        }


class Update(Struct, frozen=True):
    """Rows that go and rows that come, of updates and merges.

    Parameters
    ----------
    removal : RowRemoval
        Rows that go, or are in new fragments.
    fragments : sequence of NewFragment
        The rows that come.
    whole : sequence of int
        The ids of fragments all of whose rows go.
    fields_modified : sequence of int
        Ids of the fields that updated rows have other values of.
    reads_all : bool
        Whether rows that another commit adds could have changed what this one does.
    """

    removal: RowRemoval
    fragments: Sequence[NewFragment]
    whole: Sequence[int] = ()
    fields_modified: Sequence[int] = ()
    reads_all: bool = False
    name = "update"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        removed, changed = self.removal.apply(draft, deletions)
        draft.remove(self.whole)
        return {
            "removed_fragment_ids": sorted([*removed, *self.whole]),
            "updated_fragments": changed,
            "new_fragments": draft.append(self.fragments),
            "fields_modified": list(self.fields_modified),
        }


class RewriteGroup(Struct, frozen=True):
    """Fragments, and those that have their rows instead.

    Parameters
    ----------
    old : sequence of int
        Ids, in the order of the manifest.
    new : sequence of NewFragment
        With ids that were reserved.
    """

    old: Sequence[int]
    new: Sequence[NewFragment]


class Rewrite(Struct, frozen=True):
    """The same rows in other fragments.

    Parameters
    ----------
    base : Manifest
        The version whose fragments are rewritten.
    groups : sequence of RewriteGroup
        The groups.
    """

    base: Manifest
    groups: Sequence[RewriteGroup]
    name = "rewrite"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        groups = []
        moved: list[tuple[Sequence[int], list[int]]] = []
        for group in self.groups:
            new = [draft.complete(f) for f in group.new]
            groups.append(draft.copied(group.old, _OLD_FRAGMENTS) + encode("RewriteGroup", {"new_fragments": new}))
            draft.remove(group.old)
            draft.insert(new)
            moved.append((group.old, [f["id"] for f in new]))
        draft.indices = after_moves(draft.indices, moved, has_stable_ids=draft.has_stable_ids)
        return {"groups": groups}


class ReserveFragments(Struct, frozen=True):
    """Ids that fragments of a later commit get."""

    count: int
    name = "reserve_fragments"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        draft.message["max_fragment_id"] = draft.next_fragment + self.count - 1
        return {"num_fragments": self.count}


class Merge(Struct, frozen=True):
    """Another schema, and further data files of some fragments.

    Parameters
    ----------
    base : Manifest
        The version that the files were made from.
    fields : tuple of LanceField
        The schema.
    files : Mapping of int to sequence of Message
        The data files of those fragments that get others, by id: all files of the fragment.
    schema_metadata : Mapping of str to bytes, optional
        By default that of the base.
    fragments : sequence of NewFragment
        Further rows.
    """

    base: Manifest
    fields: tuple[LanceField, ...]
    files: Mapping[int, Sequence[Message]]
    schema_metadata: Mapping[str, bytes] | None = None
    fragments: Sequence[NewFragment] = ()
    name = "merge"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        assert draft.base is not None
        messages = []
        for index, fragment in enumerate(draft.base.fragments.id.tolist()):
            message = fragment_message(draft.base, index)
            if fragment in self.files:
                message["files"] = list(self.files[fragment])
                draft.replace(fragment, [message])
            messages.append(message)
        messages += draft.append(self.fragments)
        preserves_nullability = _preserves_nullability(draft.fields, self.fields)
        draft.set_fields(self.fields)
        if self.schema_metadata is not None:
            draft.message["schema_metadata"] = dict(self.schema_metadata)
        draft.indices = of_fields(draft.indices, {f.id for f in walk_fields(self.fields)})
        return {
            "fragments": messages,
            "schema": [message_of(f) for f in fields_of_schema(self.fields)],
            "schema_metadata": dict(draft.message.get("schema_metadata") or {}),
            "preserves_nullability": preserves_nullability,
        }


def _preserves_nullability(before: Sequence[LanceField], after: Sequence[LanceField]) -> bool:
    """Whether rows that fit the earlier fields have a value wherever the later ones require it.

    If not, other writers don't commit rows that they wrote with the earlier fields.
    """
    required = {f.id for f in walk_fields(before) if not f.nullable}
    return all(f.nullable or f.id in required for f in walk_fields(after))


class Project(Struct, frozen=True):
    """Fewer columns, or other names. Files whose fields are all gone are dropped.

    None of the columns is required that was not required before.
    """

    fields: tuple[LanceField, ...]
    name = "project"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        assert draft.base is not None
        kept = {f.id for f in walk_fields(self.fields)}
        listed = draft.base.fragments
        # layouts are few: fragments whose files all keep a field stay as they are
        is_left = np.array(
            [not kept.isdisjoint(layout.fields) or _is_lineage(layout.fields) for layout in listed.layouts], np.bool_
        )
        for shape, layouts in enumerate(listed.shapes):
            if all(is_left[i] for i in layouts):
                continue
            for index in np.flatnonzero(listed.shape == shape).tolist():
                message = fragment_message(draft.base, index)
                message["files"] = [f for f, i in zip(message["files"], layouts, strict=True) if is_left[i]]
                draft.replace(int(listed.id[index]), [message])
        preserves_nullability = _preserves_nullability(draft.fields, self.fields)
        draft.set_fields(self.fields)
        draft.indices = of_fields(draft.indices, kept)
        return {
            "schema": [message_of(f) for f in fields_of_schema(self.fields)],
            "preserves_nullability": preserves_nullability,
        }


def _is_lineage(fields: Sequence[int]) -> bool:
    """Whether a file has a hidden column."""
    return any(f < -2 for f in fields)


class CreateIndex(Struct, frozen=True):
    """Indices that come, and others that go; their files are written.

    Parameters
    ----------
    new : sequence of Message
        Those that come.
    removed : sequence of Message
        Those that go, as they were when the operation began.
    """

    new: Sequence[Message] = ()
    removed: Sequence[Message] = ()
    name = "create_index"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        gone = [i["uuid"] for i in self.removed]
        draft.indices = [i for i in draft.indices if decoded_index(i)["uuid"] not in gone]
        draft.indices += [encode("IndexMetadata", i) for i in self.new]
        return {"new_indices": list(self.new), "removed_indices": list(self.removed)}


class Restore(Struct, frozen=True):
    """An earlier version as the next one.

    Parameters
    ----------
    manifest : Manifest
        The earlier version.
    indices : sequence of bytes
        The messages of its indices.
    """

    manifest: Manifest
    indices: Sequence[bytes] = ()
    name = "restore"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        draft.restore(self.manifest, self.indices)
        return {"version": self.manifest.version}


class UpdateConfig(Struct, frozen=True):
    """Other values of the configuration, or of the metadata of the table, the schema or fields.

    Parameters
    ----------
    config, table, schema : Mapping of str to (str or None)
        Values by key; None removes one.
    fields : Mapping of int to Mapping
        The same, by field id.
    """

    config: Mapping[str, str | None] = {}
    table: Mapping[str, str | None] = {}
    schema: Mapping[str, str | None] = {}
    fields: Mapping[int, Mapping[str, str | None]] = {}
    name = "update_config"

    def apply(self, draft: Draft, deletions: DeletionWriter) -> Message:
        """See `Operation.apply`."""
        draft.message["config"] = _updated(draft.message.get("config"), self.config)
        draft.message["table_metadata"] = _updated(draft.message.get("table_metadata"), self.table)
        as_bytes = {k: None if v is None else v.encode() for k, v in self.schema.items()}
        draft.message["schema_metadata"] = _updated(draft.message.get("schema_metadata"), as_bytes)
        if self.fields:
            draft.set_fields(tuple(_with_metadata(f, self.fields) for f in draft.fields))
        found: dict[str, Any] = {
            "config_updates": _entries(self.config),
            "table_metadata_updates": _entries(self.table),
            "schema_metadata_updates": _entries(self.schema),
            "field_metadata_updates": {i: _entries(m) for i, m in self.fields.items()},
        }
        return {k: v for k, v in found.items() if v}


def _updated(before: Mapping[str, Any] | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**(before or {}), **changes}
    return {k: v for k, v in merged.items() if v is not None}


def _entries(changes: Mapping[str, str | None]) -> Message | None:
    entries = [{"key": k, "value": v} for k, v in changes.items()]
    return {"update_entries": entries} if entries else None


def _with_metadata(field: LanceField, changes: Mapping[int, Mapping[str, str | None]]) -> LanceField:
    children = tuple(_with_metadata(c, changes) for c in field.children)
    mine = {k: None if v is None else v.encode() for k, v in changes.get(field.id, {}).items()}
    return structs.replace(field, children=children, metadata=_updated(field.metadata, mine))
