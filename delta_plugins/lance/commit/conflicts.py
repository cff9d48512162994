"""Which operations contradict each other when both began with the same version. Protocol: Transaction, conflicts.

A conflict that `check` finds is either final, or the operation can run again on the latest version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Literal

from delta_core.api import CommitConflictError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.commit.operations import (
    Append,
    CreateIndex,
    Delete,
    Operation,
    Overwrite,
    Rewrite,
    Update,
    UpdateConfig,
)
from delta_plugins.lance.wire import Message

__all__ = ["Winner", "check", "is_retryable", "removed_version", "rows_conflict", "touched_fragments"]

#: The mode of an update that writes columns of fragments again, in place of moving rows.
_REWRITES_COLUMNS = 1

#: The operation can't land any more; it has to run again; or both can.
Verdict = Literal["final", "again", "fine"]
#: Of my operation, and of the winner's message.
Rule = Callable[[Any, Message], Verdict]


def is_retryable(error: CommitConflictError) -> bool:
    """Whether the operation can run again on the latest version."""
    return bool(error.facts.get("is_retryable"))


class Winner:
    """A version that was committed since mine began.

    Parameters
    ----------
    version : int
        The version.
    operation : str, optional
        Its operation, None if its transaction is missing or not known.
    body : Message
        The message of the operation.
    uuid : str
        Of the transaction.
    """

    def __init__(self, version: int, operation: str | None, body: Message, uuid: str) -> None:
        self.version = version
        self.operation = operation
        self.body = body
        self.uuid = uuid


def touched_fragments(operation: str, body: Message) -> set[int]:
    """Return the ids of the fragments that a committed operation changed, removed or rewrote."""
    if operation == "delete":
        return {*body["deleted_fragment_ids"], *(f["id"] for f in body["updated_fragments"])}
    if operation == "update":
        return {*body["removed_fragment_ids"], *(f["id"] for f in body["updated_fragments"])}
    if operation == "rewrite":
        groups = [f["id"] for g in body["groups"] for f in g["old_fragments"]]
        return {*groups, *(f["id"] for f in body["old_fragments"])}
    if operation == "data_replacement":
        return {r["fragment_id"] for r in body["replacements"]}
    return set()


def _mine(operation: Operation) -> set[int]:
    if isinstance(operation, (Delete, Update)):
        return {*operation.removal.rows, *operation.whole}
    if isinstance(operation, Rewrite):
        return {f for g in operation.groups for f in g.old}
    return set()


# --- rules ---------------------------------------------------------------------------------


def _always(verdict: Verdict) -> Rule:
    return lambda mine, body: verdict


def _if_shared(name: str) -> Rule:
    def rule(mine: Operation, body: Message) -> Verdict:
        return "again" if _mine(mine) & touched_fragments(name, body) else "fine"

    return rule


def _rows_and_whole(name: str) -> Rule:
    """Rows of one fragment may go in both, as the commit finds out; a fragment that one removes may not."""

    def rule(mine: Delete | Update, body: Message) -> Verdict:
        return "again" if {*mine.whole} & touched_fragments(name, body) else "fine"

    return rule


def _if_reads_all(then: Rule | None = None) -> Rule:
    def rule(mine: Update, body: Message) -> Verdict:
        if mine.reads_all:
            return "again"
        return "fine" if then is None else then(mine, body)

    return rule


def _new_rows(mine: Update, body: Message) -> Verdict:
    """Judge an update, whose new fragments may have rows that mine would have matched."""
    if mine.reads_all and body["new_fragments"]:
        return "again"
    return _rows_and_whole("update")(mine, body)


def _index_of_groups(mine: Rewrite, body: Message) -> Verdict:
    moved = RowSet.from_positions(sorted(_mine(mine)))
    for index in body["new_indices"]:
        bitmap = index["fragment_bitmap"]
        if not bitmap:
            return "again"
        met = (RowSet.from_roaring(bitmap, 32) & moved).cardinality
        if met and (not mine.base.has_stable_row_ids or met < moved.cardinality):
            return "again"
    return "fine"


def _projected(mine: Update, body: Message) -> Verdict:
    kept = {f["id"] for f in body["schema"]}
    return _may_require(mine, body) if kept.issuperset(mine.fields_modified) else "again"


def _may_require(mine: Operation, body: Message) -> Verdict:
    """Judge rows, which may have nulls, or no value, in columns that the winner may have made required."""
    return "fine" if body["preserves_nullability"] else "again"


def _replaced_columns(mine: Append, body: Message) -> Verdict:
    """Judge rows that may have values in columns that the winner wrote again under other ids, as casts do."""
    kept = {f["id"] for f in body["schema"]}
    written = {i for fragment in mine.fragments for file in fragment.files for i in file["fields"] if i >= 0}
    return _may_require(mine, body) if kept.issuperset(written) else "again"


def _describes_columns(body: Message) -> bool:
    """Whether an operation changes the metadata of the schema or of fields."""
    _, _, schema, fields, _ = _config_keys(body)
    return bool(schema or fields)


def _described(mine: Operation, body: Message) -> Verdict:
    """Judge a schema, which has none of the metadata that the winner set."""
    return "again" if _describes_columns(body) else "fine"


def _described_then_restored(mine: Operation, body: Message) -> Verdict:
    return "final" if _describes_columns(body) else "fine"


def _if_describing(verdict: Verdict) -> Rule:
    def rule(mine: UpdateConfig, body: Message) -> Verdict:
        return verdict if mine.schema or mine.fields else "fine"

    return rule


def _config_keys(body: Message) -> tuple[set[str], set[str], set[str], set[int], bool]:
    """Return the keys that an operation sets: of config, table, schema, the fields, and whether of all."""

    def keys(update: Message | None) -> set[str]:
        return {e["key"] for e in update["update_entries"]} if update else set()

    parts = [body.get(f"{n}_updates") for n in ("config", "table_metadata", "schema_metadata")]
    config = keys(parts[0]) | set(body["upsert_values"]) | set(body["delete_keys"])
    schema = keys(parts[2]) | set(body["schema_metadata"])
    fields = {*body["field_metadata"], *body["field_metadata_updates"]}
    replaces = any(p is not None and p["replace"] for p in parts)
    return config, keys(parts[1]), schema, fields, replaces


def _same_keys(mine: UpdateConfig, body: Message) -> Verdict:
    config, table, schema, fields, replaces = _config_keys(body)
    meets = [config & {*mine.config}, table & {*mine.table}, schema & {*mine.schema}, fields & {*mine.fields}]
    return "final" if replaces or any(meets) else "fine"


def _config_of_overwrite(mine: UpdateConfig, body: Message) -> Verdict:
    is_met = bool({*mine.config} & {*body["config_upsert_values"]})
    return "final" if is_met or mine.schema or mine.fields else "fine"


def _overwritten_config(mine: Overwrite, body: Message) -> Verdict:
    return "final" if {*mine.config} & {*body["config_upsert_values"]} else "again"


def _updated_config(mine: Overwrite, body: Message) -> Verdict:
    return "final" if {*mine.config} & _config_keys(body)[0] else "fine"


def _same_index(mine: CreateIndex, body: Message) -> Verdict:
    names = {i["name"] for i in (*mine.new, *mine.removed)}
    return "fine" if names.isdisjoint(i["name"] for i in (*body["new_indices"], *body["removed_indices"])) else "again"


def _indexed_fragments(mine: CreateIndex) -> RowSet:
    maps = [RowSet.from_roaring(i["fragment_bitmap"], 32) for i in mine.new]
    return reduce(RowSet.__or__, maps, RowSet.empty())


def _indexed_fields(mine: CreateIndex) -> set[int]:
    return {f for i in mine.new for f in i["fields"]}


def _moved_rows(mine: CreateIndex, body: Message) -> Verdict:
    moved = RowSet.from_positions(sorted(touched_fragments("rewrite", body)))
    return "fine" if moved.isdisjoint(_indexed_fragments(mine)) else "again"


def _replaced_values(mine: CreateIndex, body: Message) -> Verdict:
    replaced = {f for r in body["replacements"] for f in (r["new_file"] or {"fields": []})["fields"]}
    return "fine" if _indexed_fields(mine).isdisjoint(replaced) else "again"


def _values_in_place(mine: CreateIndex, body: Message) -> Verdict:
    """Judge an update, which may have written columns of fragments again instead of moving rows."""
    if body["update_mode"] != _REWRITES_COLUMNS or _indexed_fields(mine).isdisjoint(body["fields_modified"]):
        return "fine"
    changed = RowSet.from_positions(sorted(f["id"] for f in body["updated_fragments"]))
    return "fine" if changed.isdisjoint(_indexed_fragments(mine)) else "again"


def _indexed_columns(mine: CreateIndex, body: Message) -> Verdict:
    return "fine" if _indexed_fields(mine) <= {f["id"] for f in body["schema"]} else "again"


_FINAL, _AGAIN = _always("final"), _always("again")
_NEVER = {"overwrite": _FINAL, "restore": _FINAL, "update_mem_wal_state": _FINAL}
_OF_ROWS: Mapping[str, Rule] = {
    **_NEVER,
    "rewrite": _if_shared("rewrite"),
    "data_replacement": _if_shared("data_replacement"),
    "merge": _AGAIN,
    "delete": _rows_and_whole("delete"),
    "update": _rows_and_whole("update"),
}
_ALL_DATA = ("append", "delete", "update", "rewrite", "merge", "data_replacement", "data_overlay")
#: My operation, and the winners that it does not go with; it goes with all others that are known.
RULES: Mapping[str, Mapping[str, Rule]] = {
    "append": {**_NEVER, "project": _may_require, "merge": _replaced_columns},
    "delete": _OF_ROWS,
    "update": {**_OF_ROWS, "append": _if_reads_all(), "update": _new_rows, "project": _projected},
    "rewrite": {
        **_NEVER,
        **{n: _if_shared(n) for n in ("delete", "update", "rewrite", "data_replacement")},
        "data_overlay": _AGAIN,
        "merge": _AGAIN,
        "create_index": _index_of_groups,
    },
    "merge": {**_NEVER, **dict.fromkeys(_ALL_DATA, _AGAIN), "project": _FINAL, "update_config": _described},
    # no projection of ours makes a column required, so that rows of others go with it
    "project": {**_NEVER, "merge": _AGAIN, "project": _AGAIN, "update_config": _described},
    "overwrite": {"overwrite": _overwritten_config, "update_config": _updated_config, "update_mem_wal_state": _FINAL},
    "create_index": {
        **_NEVER,
        "create_index": _same_index,
        "rewrite": _moved_rows,
        "update": _values_in_place,
        "data_replacement": _replaced_values,
        "data_overlay": _AGAIN,
        "merge": _indexed_columns,
        "project": _indexed_columns,
    },
    "restore": {"update_mem_wal_state": _FINAL, "update_config": _described_then_restored},
    "reserve_fragments": _NEVER,
    "update_config": {
        "update_config": _same_keys,
        "overwrite": _config_of_overwrite,
        "merge": _if_describing("again"),
        "restore": _if_describing("final"),
    },
}


def check(mine: Operation, winner: Winner) -> None:
    """Check that an operation may land after a version that was committed since it began.

    Raises
    ------
    CommitConflictError
        If it may not; the fact ``is_retryable`` specifies whether it can run again on the latest version.
    """
    if winner.operation is None:
        raise _conflict(mine, winner, "final", "what it did is not known")
    rule = RULES[mine.name].get(winner.operation)
    verdict = "fine" if rule is None else rule(mine, winner.body)
    if verdict != "fine":
        raise _conflict(mine, winner, verdict, f"it did {winner.operation}")


def rows_conflict(mine: Operation, version: int, why: str) -> CommitConflictError:
    """Return the error of rows that a winner changed too."""
    return _error(mine, version, None, "again", why)


def removed_version(mine: Operation, version: int) -> CommitConflictError:
    """Return the error of a version whose operation is not known, because a cleanup removed it."""
    return _error(mine, version, None, "again", "a cleanup removed it, so that what it did is not known")


def _conflict(mine: Operation, winner: Winner, verdict: Verdict, why: str) -> CommitConflictError:
    return _error(mine, winner.version, winner.operation, verdict, why)


def _error(mine: Operation, version: int, operation: str | None, verdict: Verdict, why: str) -> CommitConflictError:
    remedy = "Run it again." if verdict == "again" else "Open the latest version, and decide whether it is still due."
    return CommitConflictError(
        f"Version {version} was committed since this {mine.name} began, and {why}: nothing was committed. {remedy}",
        version=version,
        operation=operation,
        is_retryable=verdict == "again",
    )
