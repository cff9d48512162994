"""Fresh row ids and commit versions for an attempt's files, and the columns that carry those of rows that move."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core.api import (
    ActionColumn,
    CommitInfoField,
    CorruptTableError,
    ExtraAction,
    FeatureStep,
    HiddenColumn,
    InvalidArgumentError,
    Literal,
    Metadata,
    PrimitiveType,
    ReAddFiles,
    RemainingFilesCheck,
    RemoveDomains,
    RemoveProperties,
    SchemaError,
    SetProperties,
    TableState,
    decode_json,
)
from delta_core.kernels.arrow_buffers import int64_values, is_valid, mask_of, number_array, one_array, scalar_of
from delta_core.kernels.row_ids import LAST_ROW_ID, assign_base_row_ids, take_values
from delta_plugins.row_tracking.logic import COMMIT_VERSION_COLUMN, DOMAIN, ROW_ID_COLUMN

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = [
    "REQUEST",
    "SUSPENDED",
    "SWITCH",
    "check_metadata",
    "commit_rules",
    "feature_steps",
    "hidden_columns",
    "high_water_mark",
    "rebase_files",
    "with_column_names",
]

NAME = "rowTracking"
SWITCH = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
#: Never stored: a new table that is to have row ids.
REQUEST = "delta.requestedRowIds"
MARK = "rowIdHighWaterMark"
_FIELDS = ("baseRowId", "defaultRowCommitVersion")
_LONG = PrimitiveType("long")
#: The field ids of the hidden columns in tables that Iceberg takes over. Protocol: IcebergCompatV3.
_FIELD_IDS = {ROW_ID_COLUMN: 2147483540, COMMIT_VERSION_COLUMN: 2147483539}
_BACKFILL = (
    "of the table have no row ids: the feature was added after them. Add the feature first, assign every file its ids "
    f"(backfill), and then set {SWITCH}."
)


def commit_rules(attempt: AttemptView) -> Iterator[ActionColumn | CommitInfoField | RemainingFilesCheck | ExtraAction]:
    """Yield what an attempt writes: ids for files that have none, the new mark, whether rows kept theirs.

    Protocol: Writer Requirements for Row Tracking.
    """
    table = attempt.table
    if attempt.adds.num_rows and not table.flag(SUSPENDED):
        yield from _assigned(attempt)
    if not table.is_active(NAME):
        return
    # whatever moves rows carries their ids along, or is rejected
    yield CommitInfoField(NAME, "tags", {"delta.rowTracking.preserved": "true"})
    if attempt.previous is not None and not attempt.previous.is_active(NAME):
        yield RemainingFilesCheck(NAME, "baseRowId", _BACKFILL)
        yield RemainingFilesCheck(NAME, "defaultRowCommitVersion", _BACKFILL)


def rebase_files(adds: pa.Table, removes: pa.Table, winner: pa.Table) -> Iterator[ActionColumn]:
    """Yield the row ids of staged files that a winner assigned: with its add of the same path."""
    for action, files in (("add", adds), ("remove", removes)):
        for field, values in zip(_FIELDS, take_values(files, winner, _FIELDS), strict=False):
            yield ActionColumn(NAME, action, field, values)


def _assigned(attempt: AttemptView) -> Iterator[ActionColumn | ExtraAction]:
    adds = attempt.adds
    given, versions, counts = (
        one_array(adds.column(n)) for n in ("baseRowId", "defaultRowCommitVersion", "numRecords")
    )
    fresh = mask_of(one_array(adds.column("fresh")))
    needed = np.flatnonzero(fresh | ~is_valid(given))
    rows = int64_values(counts.fill_null(scalar_of(0, counts.type)))
    old = max(high_water_mark(state) for state in (attempt.previous, attempt.table) if state is not None)
    # files of another table, or of a version whose mark was lost, provide ids that must not be given again
    brought = np.delete(int64_values(given.fill_null(scalar_of(-1, given.type))) + rows - 1, needed)
    # rows that were converted keep ids of their own, in a hidden column
    _, kept = attempt.reported.get(("_row_id",), (-1, -1))
    start = max(old, int(brought.max(initial=-1)), kept)
    try:
        base, mark = assign_base_row_ids(rows[needed], start, is_valid(counts)[needed])
    except InvalidArgumentError as e:
        path = adds.column("path")[int(needed[e.row])].as_py()
        raise InvalidArgumentError(f"{path} can't be given row ids: {e.message}.", path=path, feature=NAME) from e
    ids = int64_values(given.fill_null(scalar_of(0, given.type))).copy()
    ids[needed] = base
    yield ActionColumn(NAME, "add", "baseRowId", number_array(ids))
    since = int64_values(versions.fill_null(scalar_of(attempt.version, versions.type))).copy()
    since[needed] = attempt.version
    yield ActionColumn(NAME, "add", "defaultRowCommitVersion", number_array(since))
    if mark > old:
        configuration = json.dumps({MARK: mark}, separators=(",", ":"))
        yield ExtraAction(NAME, "domainMetadata", {"domain": DOMAIN, "configuration": configuration, "removed": False})


def high_water_mark(table: TableState) -> int:
    """Return the highest row id that was given, -1 for none.

    Raises
    ------
    CorruptTableError
        If the domain holds no such number.
    """
    text = table.domains.get(DOMAIN)
    if text is None:
        return -1
    try:
        mark = decode_json(text).get(MARK)
    except (ValueError, AttributeError):
        mark = None
    if not isinstance(mark, int) or isinstance(mark, bool) or not -1 <= mark <= LAST_ROW_ID:
        raise CorruptTableError(
            f"Domain {DOMAIN} is {text[:200]!r}, expected JSON with {MARK}: a whole number from -1 to {LAST_ROW_ID}.",
            domain=DOMAIN,
        )
    return mark


def hidden_columns(table: TableState) -> Iterable[HiddenColumn]:
    """Return the columns that hold ids and versions of rows which were moved here."""
    numbers = _FIELD_IDS if table.is_active("icebergCompatV3") else {}
    nothing = Literal(None, _LONG)
    if name := table.property(ROW_ID_COLUMN):
        yield HiddenColumn(NAME, name, _LONG, nothing, field_id=numbers.get(ROW_ID_COLUMN), carries="_row_id")
    if name := table.property(COMMIT_VERSION_COLUMN):
        # a row that changes gets the version of the commit that changes it
        yield HiddenColumn(
            NAME,
            name,
            _LONG,
            nothing,
            field_id=numbers.get(COMMIT_VERSION_COLUMN),
            carries="_row_commit_version",
            on_update="clear",
        )


def with_column_names(metadata: Metadata, previous: TableState | None) -> Metadata:
    """Return the metadata with names for the hidden columns, once they are needed, and then for ever."""
    found = dict(metadata.configuration)
    if found.pop(REQUEST, None) is not None:
        found[SWITCH] = "true"
    is_on = found.get(SWITCH, "").strip().lower() == "true"
    for key, prefix in ((ROW_ID_COLUMN, "_row-id-col"), (COMMIT_VERSION_COLUMN, "_row-commit-version-col")):
        known = None if previous is None else previous.property(key)
        if key not in found and (known or is_on):
            found[key] = known or f"{prefix}-{uuid.uuid4()}"
    return replace(metadata, configuration=found) if found != metadata.configuration else metadata


def check_metadata(table: TableState, previous: TableState | None) -> None:
    """Reject ids that are on and suspended at once, and names of hidden columns that change or are taken.

    Raises
    ------
    InvalidArgumentError
        If row tracking is both on and suspended, or the name of a hidden column changes.
    SchemaError
        If a hidden column has the name of another column.
    """
    if table.is_active(NAME) and table.flag(SUSPENDED):
        raise InvalidArgumentError(f"Found {SWITCH}=true and {SUSPENDED}=true, expected at most one of the two.")
    taken = {f.name.lower() for f in (*table.column_map.physical, *table.schema)}
    for key in (ROW_ID_COLUMN, COMMIT_VERSION_COLUMN):
        name = table.property(key)
        if name is None:
            continue
        if name.lower() in taken:
            raise SchemaError(
                f"Table property {key} is {name!r}, which is a column's name too; expected one of its own."
            )
        taken.add(name.lower())
        known = None if previous is None else previous.property(key)
        if known is not None and known != name:
            raise InvalidArgumentError(f"Table property {key} is {known!r} and can't become {name!r}: files hold it.")


def feature_steps(table: TableState, change: str) -> Iterator[FeatureStep]:
    """Yield how files get their ids before these are relied upon, and lose them when no rule assigns them any more.

    Protocol: Row Tracking, Writer Requirements for Row Tracking.
    """
    if change == "enable":
        if table.flag(SUSPENDED):
            yield SetProperties(NAME, {SUSPENDED: None})
        yield ReAddFiles(NAME, _FIELDS, False, "ROW TRACKING BACKFILL")
        return
    yield SetProperties(NAME, {SWITCH: "false", SUSPENDED: "true"})
    yield ReAddFiles(NAME, _FIELDS, True, "ROW TRACKING UNBACKFILL")
    yield RemoveDomains(NAME, (DOMAIN,))
    yield RemoveProperties(NAME, (SWITCH, SUSPENDED, ROW_ID_COLUMN, COMMIT_VERSION_COLUMN))
