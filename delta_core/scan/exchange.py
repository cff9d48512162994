"""The parts of a table that one format hands another if it is converted: rows, columns, and the names of all else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import pyarrow as pa
from msgspec import Struct

from delta_core.errors import InvalidArgumentError, UnsupportedFeatureError, did_you_mean
from delta_core.scan.rows import PlannedRows

__all__ = ["LOSSES", "ColumnChange", "Incoming", "Outgoing", "TableFacet", "check_losses", "column_changes"]

#: The losses of types, by the names with which callers allow them.
LOSSES: Mapping[str, str] = {
    "types": "the exact type; values are the same",
    "vectors": "the fixed size of lists",
    "dictionaries": "the dictionary encoding of values",
    "extensions": "the extension type; values are those of its storage",
    "blobs": "blobs as files; the column has their bytes",
}
_T = pa.types


class TableFacet(Struct, frozen=True):
    """A part of a table beside rows and columns.

    Parameters
    ----------
    name : str
        As callers allow it to be lost, such as ``checkConstraints`` or ``partitions``.
    detail : str
        Its subject.
    outcome : "lost", "kept" or "not needed"
        Whether the converted table has it; ``not needed``: it is about the files of its format, and the rows are the
        same without it.
    """

    name: str
    detail: str
    outcome: Literal["lost", "kept", "not needed"] = "lost"


class ColumnChange(Struct, frozen=True):
    """The change of a column's type.

    Parameters
    ----------
    column : str
        Its name.
    found, becomes : str
        The type in the source and in the destination.
    losses : tuple of str
        The losses: names in `LOSSES`.
    """

    column: str
    found: str
    becomes: str
    losses: tuple[str, ...] = ()


class Outgoing(Struct, frozen=True):
    """One version of a table, as its format hands it over.

    Parameters
    ----------
    rows : PlannedRows
        The rows, with the columns of ``schema`` and then ``row_id``.
    schema : pyarrow.Schema
        The columns, with the metadata of fields that other formats can keep.
    types : sequence of str
        Their types, as the format spells them.
    row_id : str, optional
        The column of ``rows`` that has stable ids, whole numbers; None if the table has none.
    facets : sequence of TableFacet
        The other parts of the table.
    losses : Mapping of str to tuple of str
        By column: names in `LOSSES` that apply whatever the destination is.
    properties : Mapping of str to str
        Properties that users added to the table.
    name, description : str, optional
        Texts of the table.
    """

    rows: PlannedRows
    schema: pa.Schema
    types: Sequence[str]
    row_id: str | None = None
    facets: Sequence[TableFacet] = ()
    losses: Mapping[str, tuple[str, ...]] = {}
    properties: Mapping[str, str] = {}
    name: str | None = None
    description: str | None = None


class Incoming(Protocol):
    """A table that is about to be created from an `Outgoing`; nothing was written yet.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns as it stores them.
    types : sequence of str
        Their types, as the format spells them.
    facets : sequence of TableFacet
        Properties and texts of the source that it can't keep.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns as they are stored."""
        ...

    @property
    def types(self) -> Sequence[str]:
        """Their types, as the format spells them."""
        ...

    @property
    def facets(self) -> Sequence[TableFacet]:
        """Properties and texts of the source that the format has no place for."""
        ...

    def write(self, rows: pa.RecordBatchReader) -> Any:
        """Write all rows and create the table, which can't be opened before; return it.

        Parameters
        ----------
        rows : pyarrow.RecordBatchReader
            Those of the source, with the column of row ids if the table is to keep them.
        """
        ...


def column_changes(outgoing: Outgoing, incoming: Incoming) -> list[ColumnChange]:
    """Return the change of each column."""
    pairs = zip(outgoing.schema, incoming.schema, outgoing.types, incoming.types, strict=True)
    return [
        ColumnChange(f.name, found, becomes, _ordered({*_losses(f, t), *outgoing.losses.get(f.name, ())}))
        for f, t, found, becomes in pairs
    ]


def _ordered(losses: set[str]) -> tuple[str, ...]:
    return tuple(n for n in LOSSES if n in losses)


def _losses(found: pa.Field, target: pa.Field) -> Iterator[str]:
    """Yield the losses of a type that becomes another."""
    of, to = found.type, target.type
    was, name = (_extension(f) for f in (found, target))
    if was is not None and was != name:
        yield "extensions"
    of, to = (t.storage_type if isinstance(t, pa.BaseExtensionType) else t for t in (of, to))
    if _T.is_dictionary(of) and not _T.is_dictionary(to):
        yield "dictionaries"
        of = of.value_type
    if _T.is_fixed_size_list(of) and not _T.is_fixed_size_list(to):
        yield "vectors"
    if of.num_fields and of.num_fields == to.num_fields:
        for i in range(of.num_fields):
            yield from _losses(of.field(i), to.field(i))
    elif _plain(of) != _plain(to):
        yield "types"


def _extension(field: pa.Field) -> bytes | None:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name).encode()
    found: bytes | None = (field.metadata or {}).get(b"ARROW:extension:name")
    return found


def _plain(of: pa.DataType) -> pa.DataType:
    """Return a type without the layout that it has in Arrow alone."""
    if _T.is_large_string(of) or _T.is_string_view(of):
        return pa.string()
    if _T.is_large_binary(of) or _T.is_binary_view(of):
        return pa.binary()
    if _T.is_timestamp(of) and of.tz in ("UTC", "Etc/UTC", "+00:00", "Z"):
        return pa.timestamp(of.unit, "UTC")
    return of


def check_losses(
    facets: Sequence[TableFacet], changes: Sequence[ColumnChange], allowed: Sequence[str], place: str, to: str
) -> None:
    """Check that everything which would be lost was allowed by name.

    Parameters
    ----------
    facets, changes
        The parts of the table, and the changes of its columns.
    allowed : sequence of str
        Names of facets and of `LOSSES`; ``all`` for all of them.
    place, to : str
        The source, and the format of the destination, for messages.

    Raises
    ------
    InvalidArgumentError
        For a name that is neither.
    UnsupportedFeatureError
        For losses that were not allowed; the message names all of them.
    """
    lost = {f.name: f.detail for f in facets if f.outcome == "lost"}
    for change in changes:
        for loss in change.losses:
            text = f"{change.column} ({change.found} becomes {change.becomes})"
            lost[loss] = f"{lost[loss]}, {text}" if loss in lost else f"{LOSSES[loss]}: {text}"
    known = [*LOSSES, *(f.name for f in facets), "all"]
    strange = next((n for n in allowed if n not in known), None)
    if strange is not None:
        shown = ", ".join(lost) or "nothing"
        raise InvalidArgumentError(
            f"Found {strange!r} in without, the names of all that may be lost; {place} would lose {shown}."
            f"{did_you_mean(strange, known)}",
            argument="without",
        )
    rejected = {} if "all" in allowed else {n: d for n, d in lost.items() if n not in allowed}
    if rejected:
        listed = "; ".join(f"{name}: {detail.rstrip('.')}" for name, detail in rejected.items())
        names = ", ".join(repr(n) for n in rejected)
        raise UnsupportedFeatureError(
            f"{place} has what a table of the format {to!r} lacks: {listed}. Nothing was written. To convert the rows "
            f"without it, pass without=[{names}] (on the command line --without NAME, repeatable).",
            feature=next(iter(rejected)),
            features=tuple(rejected),
        )
