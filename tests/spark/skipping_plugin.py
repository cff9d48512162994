"""A plugin whose selector drops rows by a field of its own: no deletion vector is involved."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_core.api import VECTOR_LOCATION, ActionField, RowSelector, TableFeature, hookimpl
from delta_core.kernels.row_set import RowSet

NAME, FIELD = "acme.skips", "acmeSkips"
FEATURE = TableFeature(
    NAME,
    "reader+writer",
    "Files name the rows that are skipped, joined by blanks.",
    fields=(ActionField("add", FIELD, pa.string()),),
)


def locate(files: pa.Table) -> pa.Table:
    """Return the texts themselves as vectors."""
    found = [(i, text.encode()) for i, text in enumerate(files[FIELD].to_pylist()) if text is not None]
    numbers, texts = [i for i, _ in found], [text for _, text in found]
    none = [None] * len(found)
    return pa.table([numbers, none, none, none, texts, none], schema=VECTOR_LOCATION)


def decode(data: Any, cardinality: int | None, where: str) -> RowSet:
    """Return the rows that a text names."""
    return RowSet.from_positions([int(number) for number in bytes(data).split()])


@hookimpl
def read_rules() -> list[Any]:
    return [RowSelector(NAME, (FIELD,), locate, decode)]
