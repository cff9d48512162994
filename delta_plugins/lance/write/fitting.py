"""Rows as users pass them, in the columns and the types of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.api import SchemaMismatchError, UnsupportedFeatureError, conversion, open_source
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array
from delta_core.kernels.nested import struct_of
from delta_plugins.lance.external_blobs import Targets, encode_reference
from delta_plugins.lance.schema import BLOB_VALUES, LanceField, arrow_field, blob_kind, has_blobs, walk_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fit_batches", "fitted_schema", "sorted_columns", "with_blob_values"]

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
    batches: Iterator[pa.RecordBatch],
    found: pa.Schema,
    fields: Sequence[LanceField],
    targets: Targets,
    rest: Sequence[str] = (),
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
    targets : Targets
        Of URIs of external blobs.
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
        None if p is None else _field_fit(f, found.field(p).type, to.type, (to.name,), targets)
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
    if array.type.equals(type, check_metadata=False):
        return array
    if _T.is_struct(type) and _T.is_struct(array.type):
        # earlier versions of PyArrow do not cast to fields that are not nullable
        children = [_unified(a, f.type) for a, f in zip(array.flatten(), type, strict=True)]
        return struct_of(list(type), children, array)
    return array.cast(type)


def _field_fit(field: LanceField, found: Any, target: Any, path: tuple[str, ...], targets: Targets) -> Fit | None:
    """Return what turns arrays of a column, as users pass it, into the type of a field; see `fit`."""
    if blob_kind(field) == 2:
        return _blob_fit(found, target, path, targets)
    if field.logical_type != "struct" or not has_blobs(field) or blob_kind(field) or not _T.is_struct(found):
        return fit(found, target, path)
    names = [c.name for c in field.children]
    if [f.name for f in found] != names:
        raise _mismatch(found, target, path, ": it has other fields")
    parts = [
        _field_fit(c, f.type, t.type, (*path, c.name), targets)
        for c, f, t in zip(field.children, found, target, strict=True)
    ]
    if not any(parts):
        return fit(found, target, path)

    def changed(array: Any) -> pa.Array:
        children = [_unified(_changed(a, p), t.type) for a, p, t in zip(array.flatten(), parts, target, strict=True)]
        return struct_of(list(target), children, array)

    return changed


def with_blob_values(source: Any, fields: Sequence[LanceField], targets: Targets | None) -> Any:
    """Return rows whose blobs of the extension type are bytes and references, which expressions can compare and assign.

    Parameters
    ----------
    source : object
        Rows as `open_source` takes them; returned as they are if none of their columns has such blobs.
    fields : sequence of LanceField
        The columns of the dataset.
    targets : Targets, optional
        Of URIs of external blobs; None rejects them, since rows are compared, or values computed of them.
    """
    own = {f.name.lower(): f for f in fields if any(blob_kind(x) == 2 for x in walk_fields([f]))}
    if not own:
        return source
    rows = open_source(source)
    changes = [
        _value_fit(own[f.name.lower()], f.type, (f.name,), targets) if f.name.lower() in own else None
        for f in rows.schema
    ]
    if not any(changes):
        return rows
    schema = pa.schema([f if c is None else pa.field(f.name, c[0]) for f, c in zip(rows.schema, changes, strict=True)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
            columns = [a if c is None else c[1](a) for a, c in zip(batch.columns, changes, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    if isinstance(rows, pa.Table):
        return pa.Table.from_batches(batches(), schema)
    return pa.RecordBatchReader.from_batches(schema, batches())


def _value_fit(
    field: LanceField, found: Any, path: tuple[str, ...], targets: Targets | None
) -> tuple[pa.DataType, Fit] | None:
    """Return the type of a column with values of blobs, and what turns arrays into it; None if it has none."""
    if blob_kind(field) == 2:
        storage = found.storage_type if isinstance(found, pa.BaseExtensionType) else found
        change = _blob_fit(found, pa.large_binary(), path, targets) if _T.is_struct(storage) else None
        return None if change is None else (pa.large_binary(), change)
    if field.logical_type != "struct" or not _T.is_struct(found):
        return None
    children = {c.name: c for c in field.children}
    parts = [
        _value_fit(children[f.name], f.type, (*path, f.name), targets) if f.name in children else None for f in found
    ]
    if not any(parts):
        return None
    fields = [f if p is None else pa.field(f.name, p[0]) for f, p in zip(found, parts, strict=True)]

    def changed(array: Any) -> pa.Array:
        arrays = [a if p is None else p[1](a) for a, p in zip(array.flatten(), parts, strict=True)]
        return struct_of(fields, arrays, array)

    return pa.struct(fields), changed


def _blob_fit(found: Any, target: Any, path: tuple[str, ...], targets: Targets | None) -> Fit | None:
    """Return what turns blobs as users pass them, as bytes or as structs of the extension type, into their bytes.

    External ones become references (`external_blobs.encode_reference`).
    """
    if isinstance(found, pa.BaseExtensionType):
        inner = _blob_fit(found.storage_type, target, path, targets)
        return (lambda x: x.storage) if inner is None else (lambda x: inner(x.storage))
    if not _T.is_struct(found):
        return fit(found, target, path)
    names = [f.name for f in BLOB_VALUES]
    if [f.name for f in found] not in (names, names[:2]):
        raise _mismatch(found, BLOB_VALUES, path, ": it has other fields")
    changes = [fit(f.type, t.type, (*path, f.name)) for f, t in zip(found, BLOB_VALUES, strict=False)]

    def bytes_of(array: Any) -> pa.Array:
        data, uris, *places = [_changed(a, c) for a, c in zip(array.flatten(), changes, strict=True)]
        is_bytes, is_uri = np.asarray(data.is_valid()), np.asarray(uris.is_valid())
        if not (is_bytes | is_uri | np.asarray(array.is_null())).all():
            raise SchemaMismatchError(
                f"Column {'.'.join(path)} has blobs with neither bytes nor a URI. Pass null in place of the whole "
                "blob.",
                column=".".join(path),
            )
        if (is_bytes & is_uri).any():
            raise SchemaMismatchError(
                f"Column {'.'.join(path)} has blobs with both bytes and a URI. Pass one of them for each blob.",
                column=".".join(path),
            )
        if not is_uri.any():
            return _unified(data, target)
        if targets is None:
            raise UnsupportedFeatureError(
                f"Column {'.'.join(path)} has blobs that are given by a URI, and rows are compared with those of the "
                "dataset, or values computed of them. Pass the bytes of the blobs, or append the rows.",
                feature="external blobs",
                column=".".join(path),
            )
        return _with_references(_unified(data, target), is_uri, [uris, *places], ".".join(path), targets)

    return bytes_of


def _with_references(
    data: pa.Array, is_uri: NDArray[np.bool_], places: Sequence[pa.Array], column: str, targets: Targets
) -> pa.Array:
    """Return the bytes of blobs, with references in place of those that have a URI, a position and a size."""
    mask = bool_array(is_uri)
    given = [p.filter(mask).to_pylist() for p in places]
    given += [[None] * len(given[0])] * (3 - len(given))
    found = [encode_reference(targets.reference(u, at, n, column)) for u, at, n in zip(*given, strict=True)]
    return pc.replace_with_mask(data, mask, pa.array(found, data.type))


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
    if _is_same_struct(found, target):
        return _struct_fit(found, target, path)
    _check_parts(found, target, path)
    if _T.is_dictionary(target):
        return conversion(found, target, path)
    return lambda x: _cast(x, target, path)


def _is_same_struct(found: Any, target: Any) -> bool:
    return _T.is_struct(target) and _T.is_struct(found) and [f.name for f in found] == [f.name for f in target]


def _struct_fit(found: Any, target: Any, path: tuple[str, ...]) -> Fit:
    """Return what turns structs into others by their fields: Arrow's cast rejects null structs with required fields."""
    parts = [fit(f.type, t.type, (*path, t.name)) for f, t in zip(found, target, strict=True)]

    def changed(array: Any) -> pa.Array:
        children = [_changed(a, p) for a, p in zip(array.flatten(), parts, strict=True)]
        for child, t in zip(children, target, strict=True):
            if not t.nullable and child.null_count > array.null_count:
                raise _mismatch(found, target, path, f": {t.name} is null where its struct is not")
        return struct_of(list(target), [_unified(c, t.type) for c, t in zip(children, target, strict=True)], array)

    return changed


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
    if _is_same_struct(found, target):
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


def _mismatch(found: Any, target: Any, path: tuple[str, ...], why: str) -> SchemaMismatchError:
    column = ".".join(path)
    return SchemaMismatchError(
        f"Column {column} comes as {found}, which does not fit the dataset's type {target}{why}. Cast it before "
        "writing.",
        column=column,
        found=str(found),
        expected=str(target),
    )
