"""acme.origin: each data file records the machine that wrote it."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.api import (
    ActionColumn,
    ActionField,
    FileConstant,
    MetadataColumn,
    PrimitiveType,
    TableFeature,
    hookimpl,
)

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "acme.origin",
    "writer",
    "Each data file records the machine that wrote it.",
    fields=(ActionField("add", "origin", pa.string()),),
)


@hookimpl
def read_rules() -> Iterable[MetadataColumn]:
    text = PrimitiveType("string")
    return [MetadataColumn(FEATURE.name, "_origin", text, FileConstant("origin", text))]


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[ActionColumn]:
    files = attempt.adds  # new files, and files that are added again, which keep their value
    origin = pc.if_else(files["fresh"], platform.node(), files["origin"])
    return [ActionColumn(FEATURE.name, "add", "origin", origin)]
