"""From the domain's text to the check that every row has to pass."""

import json
from dataclasses import dataclass

import pyarrow as pa

from delta_core.api import (
    ActionField,
    ActionKind,
    Call,
    Column,
    CorruptTableError,
    FileConstant,
    Literal,
    PhysicalColumn,
    PrimitiveType,
    ReadCheck,
    TableState,
    any_of,
    find,
)

__all__ = ["AUDIT", "DOMAIN", "FUNCTION_FIELD", "Coverage", "coverage", "read_check"]

NAME = DOMAIN = "example.rowChecksum"
#: A field of ``add``: the function by which the file's rows were summed; null where they were not.
FUNCTION_FIELD = ActionField("add", "rowChecksumFunction", pa.string())
#: Who verified all rows, and up to which version: the latest of each auditor counts.
AUDIT = ActionKind(
    "rowChecksumAudit",
    pa.struct([("auditor", pa.string()), ("version", pa.int64()), ("rows", pa.int64())]),
    key=("auditor",),
)
FUNCTIONS = ("xxhash64",)
_STRING, _LONG = PrimitiveType("string"), PrimitiveType("long")


@dataclass(frozen=True)
class Coverage:
    """Which columns the checksum covers, in order, and the hidden physical column that holds it."""

    columns: tuple[tuple[str, ...], ...]
    hidden: str


def coverage(table: TableState) -> Coverage | None:
    """Return what the domain declares, None for a table without it.

    Raises CorruptTableError for a domain that can't be read, ColumnNotFoundError for a column that is not there.
    """
    text = table.domains.get(DOMAIN)
    if text is None:
        return None
    try:
        declared = json.loads(text)
        paths = [tuple(path) for path in declared["columns"]]
        hidden = declared["hiddenColumn"]
        if not paths or not all(paths) or not isinstance(hidden, str):
            raise ValueError(text)
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptTableError(
            f"Domain {DOMAIN} is {text!r}, expected columns (a list of paths) and hiddenColumn (a name).", domain=DOMAIN
        ) from e
    return Coverage(tuple(find(table.schema, path)[0] for path in paths), hidden)


def read_check(covered: Coverage) -> ReadCheck:
    """Return the check: a row of a file that has checksums holds the one that its columns give."""
    function = FileConstant(FUNCTION_FIELD.name, _STRING)
    stored = PhysicalColumn(covered.hidden, _LONG)
    # <=> is false, not null, where a checksum is missing
    matches = [
        Call("and", (Call("=", (function, Literal(name, _STRING))), Call("<=>", (stored, _sum(name, covered)))))
        for name in FUNCTIONS
    ]
    passes = any_of([Call("isnull", (function,)), *matches])
    assert passes is not None
    return ReadCheck(NAME, "row checksum", passes, "a row does not have the checksum of its columns")


def _sum(function: str, covered: Coverage) -> Call:
    return Call(function, tuple(Column(path) for path in covered.columns))
