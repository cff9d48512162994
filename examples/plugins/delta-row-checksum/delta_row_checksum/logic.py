"""From the domain's text to the column that writes fill, and the check that every row has to pass."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from msgspec.structs import replace

from delta_core.api import (
    ActionColumn,
    ActionField,
    ActionKind,
    Call,
    Column,
    CorruptTableError,
    DomainMetadata,
    FileConstant,
    Function,
    HiddenColumn,
    InvalidArgumentError,
    Literal,
    Metadata,
    PhysicalColumn,
    PrimitiveType,
    ReadCheck,
    TableState,
    any_of,
    find,
)
from delta_row_checksum.sums import result_type, row_checksum

__all__ = [
    "AUDIT",
    "CHECKSUM",
    "DOMAIN",
    "FUNCTION_FIELD",
    "REQUEST",
    "Coverage",
    "coverage",
    "declared",
    "function_column",
    "hidden_column",
    "read_check",
    "without_request",
]

NAME = DOMAIN = "example.rowChecksum"
#: The property by which columns are requested.
REQUEST = "example.rowChecksum.columns"
HIDDEN = "_row_checksum"
#: A field of ``add``: the function by which the file's rows were summed; null if they were not.
FUNCTION_FIELD = ActionField("add", "rowChecksumFunction", pa.string())
#: Who verified all rows, and up to which version: the latest of each auditor counts.
AUDIT = ActionKind(
    "rowChecksumAudit",
    pa.struct([("auditor", pa.string()), ("version", pa.int64()), ("rows", pa.int64())]),
    key=("auditor",),
)
#: The function by which rows are summed, as files name it: Spark has it, elsewhere it is our own.
FUNCTION = "xxhash64"
CHECKSUM = Function(NAME, "example_row_checksum", result_type, row_checksum, spark="xxhash64({arguments})")
_STRING, _LONG = PrimitiveType("string"), PrimitiveType("long")


@dataclass(frozen=True)
class Coverage:
    """Which columns the checksum covers, in order, and the hidden physical column that holds it."""

    columns: tuple[tuple[str, ...], ...]
    hidden: str


def coverage(table: TableState) -> Coverage | None:
    """Return what the domain declares, None for a table without it.

    Raises
    ------
    CorruptTableError
        If the domain can't be read.
    ColumnNotFoundError
        If the table lacks a column that the domain names.
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
    """Return the check: a row of a file that has checksums holds the one that its columns return."""
    function = FileConstant(FUNCTION_FIELD.name, _STRING)
    stored = PhysicalColumn(covered.hidden, _LONG)
    # <=> is false, not null, if a checksum is missing
    matches = Call("and", (Call("=", (function, Literal(FUNCTION, _STRING))), Call("<=>", (stored, _sum(covered)))))
    passes = any_of([Call("isnull", (function,)), matches])
    assert passes is not None
    return ReadCheck(NAME, "row checksum", passes, "a row does not have the checksum of its columns")


def _sum(covered: Coverage) -> Call:
    return Call(CHECKSUM.name, tuple(Column(path) for path in covered.columns))


# --- writing ---


def without_request(metadata: Metadata) -> Metadata:
    """Return metadata without the request, which the domain answers."""
    kept = {k: v for k, v in metadata.configuration.items() if k != REQUEST}
    return metadata if len(kept) == len(metadata.configuration) else replace(metadata, configuration=kept)


def declared(table: TableState, requested: Mapping[str, str]) -> list[DomainMetadata]:
    """Return the domain that answers a request, nothing if there is none.

    Raises
    ------
    InvalidArgumentError
        If other columns are covered already: their files could no longer be verified.
    ColumnNotFoundError
        If the table lacks a column.
    """
    if REQUEST not in requested:
        return []
    names = [name.strip() for name in requested[REQUEST].split(",")]
    paths = [list(find(table.schema, (name,))[0]) for name in names]
    before = coverage(table)
    if before is not None and [list(path) for path in before.columns] != paths:
        raise InvalidArgumentError(
            f"{REQUEST} is {requested[REQUEST]!r}, but the table's checksums cover {before.columns} already."
        )
    hidden = HIDDEN if before is None else before.hidden
    return [DomainMetadata(DOMAIN, json.dumps({"columns": paths, "hiddenColumn": hidden}))]


def hidden_column(covered: Coverage) -> HiddenColumn:
    """Return the rule that sums each row; a row that moves is summed again."""
    return HiddenColumn(NAME, covered.hidden, _LONG, _sum(covered), on_rewrite="recompute")


def function_column(adds: pa.Table) -> ActionColumn:
    """Return the rule that specifies for new files how rows are summed; files added again keep theirs."""
    import pyarrow.compute as pc

    name = FUNCTION_FIELD.name
    return ActionColumn(NAME, "add", name, pc.if_else(adds["fresh"], FUNCTION, adds[name]))
