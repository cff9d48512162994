"""Dropped rows to vector files and descriptors, and what commits with vectors keep to."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.api import DELETION_VECTOR, EncodedRows, InvalidArgumentError, TableState, UnsupportedOperationError
from delta_core.kernels.roaring import DV_FILE_VERSION, encode_dv_payload, format_dv_block
from delta_core.kernels.row_set import RowSet
from delta_plugins.deletion_vectors import z85

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["INLINE_BELOW", "SWITCH", "check_commit", "encode", "inline_below"]

NAME = "deletionVectors"
SWITCH = "delta.enableDeletionVectors"
INLINE_BELOW = "delta_core.inlineVectorsBelow"
#: Above this Delta on Spark can't read the change feed of inline vectors.
_MOST_INLINE = 65_536
#: Offsets in descriptors have 32 bits.
_LARGEST_FILE = 2**31 - 1


def inline_below(table: TableState) -> int:
    """Return the size, in bytes, below which vectors are put into the log; 0, none, unless the table requires it.

    Raises
    ------
    InvalidArgumentError
        If the property is no such number of bytes.
    """
    text = table.property(INLINE_BELOW, "0") or "0"
    if not text.isdecimal() or int(text) > _MOST_INLINE:
        raise InvalidArgumentError(
            f"Table property {INLINE_BELOW} is {text!r}; expected bytes from 0 to {_MOST_INLINE}.",
            property=INLINE_BELOW,
        )
    return int(text)


def encode(rows: Sequence[RowSet], prefix: str, inline: int = 0) -> EncodedRows:
    """Return one vector file for all row sets, and their descriptors in the same order.

    Parameters
    ----------
    rows : sequence of RowSet
        The deleted rows of each file.
    prefix : str
        The directory below the table's root; empty for none.
    inline : int
        Vectors of fewer bytes go into their descriptors.

    Raises
    ------
    InvalidArgumentError
        If the file would exceed what descriptors can name.

    Protocol
    --------
    Deletion Vector File Storage Format
    """
    name = uuid.uuid4()
    text = prefix + z85.encode(name.bytes)
    parts, offset = [bytes([DV_FILE_VERSION])], 1
    descriptors = []
    for own in rows:
        payload = encode_dv_payload(own)
        if len(payload) < inline:
            descriptors.append(_descriptor("i", z85.encode(payload, pad=True), None, payload, own))
            continue
        block = format_dv_block(payload)
        descriptors.append(_descriptor("u", text, offset, payload, own))
        parts.append(block)
        offset += len(block)
    if offset > _LARGEST_FILE:
        raise InvalidArgumentError(
            f"The vectors of {len(rows)} files take {offset} bytes, more than one vector file holds. Drop the rows in "
            "several commits."
        )
    column = pa.array(descriptors, DELETION_VECTOR)
    if len(parts) == 1:
        return EncodedRows(None, b"", column)
    return EncodedRows("/".join(p for p in (prefix, f"deletion_vector_{name}.bin") if p), b"".join(parts), column)


def _descriptor(kind: str, text: str, offset: int | None, payload: bytes, rows: RowSet) -> dict[str, object]:
    return {
        "storageType": kind,
        "pathOrInlineDv": text,
        "offset": offset,
        "sizeInBytes": len(payload),
        "cardinality": len(rows),
    }


def check_commit(attempt: AttemptView) -> None:
    """Reject adds with vectors that lack a count of rows or claim tight bounds, and new vectors if none are allowed.

    Raises
    ------
    InvalidArgumentError
        If the statistics of an add with a vector lack ``numRecords``, or do not have ``tightBounds=false``.

    Protocol
    --------
    Writer Requirement for Deletion Vectors
    """
    vectors = attempt.adds.column("deletionVector")
    if vectors.null_count == len(vectors):
        return
    files = attempt.adds.select(["path", "stats"]).filter(vectors.is_valid())
    for path, text in zip(files.column("path").to_pylist(), files.column("stats").to_pylist(), strict=True):
        stats = json.loads(text) if text else {}
        count = stats.get("numRecords")
        if not isinstance(count, int) or count < 0:
            raise InvalidArgumentError(
                f"The add of {path} has a deletion vector but no numRecords in its statistics.", path=path
            )
        if stats.get("tightBounds") is not False:
            raise InvalidArgumentError(
                f"The add of {path} has a deletion vector, and statistics that claim tight bounds; expected false.",
                path=path,
            )
    if not attempt.table.is_active(NAME):
        _check_old(attempt, set(files.column("path").to_pylist()))


def _check_old(attempt: AttemptView, paths: set[str]) -> None:
    changed = sorted(paths & set(attempt.removes.column("path").to_pylist()))
    if changed:
        raise UnsupportedOperationError(
            f"The commit passes {changed[0]} a new deletion vector, but {SWITCH} is not true. Set it, or rewrite the file.",
            path=changed[0],
            property=SWITCH,
        )
