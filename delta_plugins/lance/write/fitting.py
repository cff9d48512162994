"""Rows as users pass them, in the columns and the types of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_core.api import SchemaMismatchError, UnsupportedFeatureError, conversion
from delta_plugins.lance.schema import LanceField, arrow_field, blob_kind

__all__ = ["fit_batches", "fitted_schema", "sorted_columns"]

Fit = Callable[[pa.Array], pa.Array]
_T = pa.types


def fitted_schema(fields: Sequence[LanceField]) -> pa.Schema:
    """Return the columns that data files are written from: those of a scan, without extension types, and with bytes."""
    return pa.schema([arrow_field(f, blobs="bytes") for f in fields])


def sorted_columns(found: Sequence[str], fields: Sequence[LanceField]) -> list[int | None]:
    """Return where each column of a dataset is among those of the rows; None for one that they lack.

    Case counts, unless only one column has a name in another case.

    Raises
    ------
    SchemaMismatchError
        For a column that is there twice, one that the dataset does not have, and one that is missing although it takes
        no nulls.
    """
    places: dict[str, int] = {}
    for at, name in enumerate(found):
        own = _own_name(name, fields)
        if own is None:
            names = ", ".join(f.name for f in fields[:20])
            raise SchemaMismatchError(
                f"The rows have a column {name!r}, which the dataset does not have; its columns are {names}. Leave it "
                "out, or add the column first.",
                column=name,
            )
        if own in places:
            raise SchemaMismatchError(f"The rows have two columns {own!r}. Leave one of them out.", column=own)
        places[own] = at
    for field in fields:
        if field.name not in places and not field.nullable:
            raise SchemaMismatchError(
                f"The rows have no column {field.name!r}, which takes no nulls. Add it to the rows.", column=field.name
            )
    return [places.get(f.name) for f in fields]


def _own_name(name: str, fields: Sequence[LanceField]) -> str | None:
    if any(f.name == name for f in fields):
        return name
    alike = [f.name for f in fields if f.name.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def fit_batches(
    batches: Iterator[pa.RecordBatch], found: pa.Schema, fields: Sequence[LanceField], rest: Sequence[str] = ()
) -> Iterator[tuple[pa.RecordBatch, Mapping[str, pa.Array]]]:
    """Yield rows in the columns and types of a dataset; columns that they lack are null.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        The rows.
    found : pyarrow.Schema
        Their columns.
    fields : sequence of LanceField
        The columns of the dataset.
    rest : sequence of str
        Other columns of the rows, which come beside them as they are.

    Raises
    ------
    SchemaMismatchError
        For other columns (`sorted_columns`), and types or values that don't fit.
    """
    names = [n for n in found.names if n not in rest]
    at = [found.names.index(n) for n in names] if rest else list(range(len(names)))
    places = [None if p is None else at[p] for p in sorted_columns(names, fields)]
    schema = fitted_schema(fields)
    changes = [
        None if p is None else (_blob_fit if blob_kind(f) == 2 else fit)(found.field(p).type, to.type, (to.name,))
        for p, to, f in zip(places, schema, fields, strict=True)
    ]
    for batch in batches:
        columns = [
            pa.nulls(batch.num_rows, f.type) if p is None else _changed(batch.column(p), c)
            for p, c, f in zip(places, changes, schema, strict=True)
        ]
        arrays = [_unified(a, f.type) for a, f in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema), {n: batch.column(n) for n in rest}


def _changed(array: pa.Array, change: Fit | None) -> pa.Array:
    return array if change is None else change(array)


def _unified(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Return an array with the names that the type has for parts of lists and maps."""
    return array if array.type.equals(type, check_metadata=False) else array.cast(type)


def _blob_fit(found: Any, target: Any, path: tuple[str, ...]) -> Fit | None:
    """Return what turns blobs as users pass them, as bytes or as structs of the extension type, into their bytes."""
    if isinstance(found, pa.BaseExtensionType):
        inner = _blob_fit(found.storage_type, target, path)
        return (lambda x: x.storage) if inner is None else (lambda x: inner(x.storage))
    if not _T.is_struct(found) or [f.name for f in found][:2] != ["data", "uri"]:
        return fit(found, target, path)
    change = fit(found.field(0).type, target, path)

    def bytes_of(array: Any) -> pa.Array:
        data, uris, *_ = array.flatten()
        if uris.null_count < len(uris):
            raise UnsupportedFeatureError(
                f"Column {path[0]} has blobs that are given by a URI, which are not written. Pass their bytes.",
                feature="external blobs",
                column=path[0],
            )
        if data.null_count > array.null_count:
            raise SchemaMismatchError(
                f"Column {path[0]} has blobs with neither bytes nor a URI. Pass null in place of the whole blob.",
                column=path[0],
            )
        return data if change is None else change(data)

    return bytes_of


def fit(found: Any, target: Any, path: tuple[str, ...]) -> Fit | None:
    """Return what turns arrays of one type into another without losing a value; None if they can stay as they are.

    Parameters
    ----------
    found, target : pyarrow.DataType
        The types.
    path : tuple of str
        The column, for messages.

    Raises
    ------
    SchemaMismatchError
        If the types don't fit; the function itself raises it for a value that does not fit.
    """
    if isinstance(found, pa.BaseExtensionType):
        inner = fit(found.storage_type, target, path)
        return (lambda x: x.storage) if inner is None else (lambda x: inner(x.storage))
    if found.equals(target):
        return None
    if _T.is_null(found):
        return lambda x: pa.nulls(len(x), target)
    if not _has_own_layout(target):
        return conversion(found, target, path)
    _check_parts(found, target, path)
    if _T.is_dictionary(target):
        plain = fit(found, target.value_type, path)
        return lambda x: _encoded(x if plain is None else plain(x), target, path)
    return lambda x: _cast(x, target, path)


def _has_own_layout(of: Any) -> bool:
    """Whether a type has a part that conversions to the types of Delta do not support."""
    if _T.is_dictionary(of) or _T.is_large_list(of) or _T.is_fixed_size_list(of):
        return True
    return any(_has_own_layout(of.field(i).type) for i in range(of.num_fields))


def _check_parts(found: Any, target: Any, path: tuple[str, ...]) -> None:
    """Check that parts of nested types fit, which a cast alone would parse or cut."""
    if _T.is_dictionary(target):
        fit(found, target.value_type, path)
        return
    if _is_list(target) and _is_list(found):
        fit(found.value_type, target.value_type, (*path, "item"))
        return
    if _T.is_struct(target) and _T.is_struct(found) and [f.name for f in found] == [f.name for f in target]:
        for a, b in zip(found, target, strict=True):
            fit(a.type, b.type, (*path, b.name))
        return
    if _T.is_map(target) and _T.is_map(found):
        fit(found.key_type, target.key_type, (*path, "key"))
        fit(found.item_type, target.item_type, (*path, "value"))
        return
    raise _mismatch(found, target, path, "")


def _is_list(of: Any) -> bool:
    return bool(_T.is_list(of) or _T.is_large_list(of) or _T.is_fixed_size_list(of))


def _cast(array: pa.Array, target: pa.DataType, path: tuple[str, ...]) -> pa.Array:
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise _mismatch(array.type, target, path, f": {e}") from e


def _encoded(array: pa.Array, target: Any, path: tuple[str, ...]) -> pa.Array:
    found = array.dictionary_encode()
    try:
        keys = found.indices.cast(target.index_type)
    except pa.ArrowInvalid as e:
        raise _mismatch(array.type, target, path, f": {e}") from e
    return pa.DictionaryArray.from_arrays(keys, found.dictionary, ordered=target.ordered)


def _mismatch(found: Any, target: Any, path: tuple[str, ...], why: str) -> SchemaMismatchError:
    column = ".".join(path)
    return SchemaMismatchError(
        f"Column {column} comes as {found}, which does not fit the dataset's type {target}{why}. Cast it before "
        "writing.",
        column=column,
        found=str(found),
        expected=str(target),
    )
