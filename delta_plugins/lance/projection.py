"""Requested columns, and the files of a fragment that have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs

from delta_core.api import ColumnNotFoundError, CorruptTableError, InvalidArgumentError
from delta_plugins.lance.fragments import Layout
from delta_plugins.lance.schema import LanceField, blob_kind, is_packed, walk_fields

__all__ = ["METADATA", "Columns", "FilePart", "ShapePlan", "find_path", "plan_shape", "pruned", "select_fields"]

#: Metadata columns, as of pylance.
METADATA = ("_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version")


Columns = Sequence[str | tuple[str, ...]] | None
"""Names of columns, or their paths."""


def select_fields(fields: Sequence[LanceField], columns: Columns) -> tuple[LanceField, ...]:
    """Return the fields that names request, in their order.

    Parameters
    ----------
    fields : sequence of LanceField
        The fields at the top of the schema.
    columns : sequence of str or path, optional
        Names; one that no column has itself reaches into structs by its dots, and returns the struct with that field
        alone. Case counts, unless only one column has a name in another case. None: all.

    Raises
    ------
    ColumnNotFoundError
        If there is no such column.
    InvalidArgumentError
        For a text instead of a sequence, or a name that is requested twice.
    """
    if columns is None:
        return tuple(fields)
    if isinstance(columns, str):
        raise InvalidArgumentError(f"columns is the text {columns!r}, expected a sequence of names.")
    found: dict[str, LanceField] = {}
    for name in columns:
        if not (isinstance(name, str) or (isinstance(name, tuple) and name and all(isinstance(p, str) for p in name))):
            raise InvalidArgumentError(f"A column is requested by {name!r}, expected a name or a path.")
        path = find_path(fields, name)
        top = pruned(path)
        before = found.get(top.name)
        if before is not None and len(path) == 1:
            raise InvalidArgumentError(f"Column {name!r} is requested twice, or with a field of its own.", column=name)
        found[top.name] = top if before is None else _merged(before, top, name)
    return tuple(found.values())


def find_path(fields: Sequence[LanceField], name: str | tuple[str, ...]) -> list[LanceField]:
    """Return the fields from the top to the one of a name or a path.

    Raises
    ------
    ColumnNotFoundError
        If there is none.
    """
    if name in METADATA:
        raise ColumnNotFoundError(
            f"{name} is no column of the dataset but a metadata column: request it in metadata, not in columns.",
            column=name,
        )
    top = _named(fields, name) if isinstance(name, str) else None
    if top is not None:
        return [top]
    path: list[LanceField] = []
    level: Sequence[LanceField] = fields
    for part in name.split(".") if isinstance(name, str) else name:
        field = _named(level, part)
        if field is None or (path and path[-1].logical_type != "struct"):
            names = ", ".join(f.name for f in fields[:20])
            raise ColumnNotFoundError(
                f"There is no column {name!r}; the columns are {names}{', ...' if len(fields) > 20 else ''}.",
                column=name,
            )
        path.append(field)
        level = field.children
    return path


def _named(fields: Iterable[LanceField], name: str) -> LanceField | None:
    listed = list(fields)
    exact = next((f for f in listed if f.name == name), None)
    if exact is not None:
        return exact
    alike = [f for f in listed if f.name.lower() == name.lower()]
    if len(alike) > 1:
        names = " and ".join(repr(f.name) for f in alike)
        raise ColumnNotFoundError(f"Column {name!r} may be {names}: spell it as one of them.", column=name)
    return alike[0] if alike else None


def pruned(path: Sequence[LanceField]) -> LanceField:
    """Return the first field of a path with only what leads to the last one."""
    if any(is_packed(f) or blob_kind(f) for f in path[:-1]):
        # its fields lie in one column: the file can't read one of them alone
        path = path[: 1 + next(i for i, f in enumerate(path) if is_packed(f) or blob_kind(f))]
    found = path[-1]
    for field in reversed(path[:-1]):
        found = structs.replace(field, children=(found,))
    return found


def _merged(first: LanceField, second: LanceField, name: str | tuple[str, ...]) -> LanceField:
    """Return a struct with the requested fields of both, in the order of the requests."""
    if not first.children or not second.children or first.logical_type != "struct":
        raise InvalidArgumentError(f"Column {name!r} is requested twice, or with a field of its own.", column=name)
    children = {c.name: c for c in first.children}
    for child in second.children:
        before = children.get(child.name)
        children[child.name] = child if before is None else _merged(before, child, name)
    return structs.replace(first, children=tuple(children.values()))


class FilePart(Struct, frozen=True):
    """The fields that are read of one file of a fragment.

    Parameters
    ----------
    file : int
        Which of the fragment's files.
    fields : tuple of LanceField
        Top-level fields, without those below them that are in other files.
    column_of : Mapping of int to int
        The column of each field in the file; of version 0.1 the field's id.
    """

    file: int
    fields: tuple[LanceField, ...]
    column_of: Mapping[int, int]


class ShapePlan(Struct, frozen=True):
    """How requested fields are read of all fragments whose files have the same layouts.

    Parameters
    ----------
    parts : tuple of FilePart
        The files that have some of the fields.
    sources : tuple
        Of each requested field: (part, number of the field in it) for each file that has it, or has some of the fields
        below it; empty for a field that no file has, which is null.
    """

    parts: tuple[FilePart, ...]
    sources: tuple[tuple[tuple[int, int], ...], ...]


def plan_shape(
    layouts: Sequence[Layout], fields: Sequence[LanceField], path: str, ids_are_unique: bool = True
) -> ShapePlan:
    """Return how fields are read of fragments whose files have certain layouts.

    Parameters
    ----------
    layouts : sequence of Layout
        Of the files of a fragment.
    fields : sequence of LanceField
        The requested fields.
    path : str
        The manifest, for errors.
    ids_are_unique : bool
        See `manifest.Manifest`.

    Raises
    ------
    CorruptTableError
        If two files have the same field, or a file has it twice.
    """
    columns = [_columns(layout, path) for layout in layouts]
    if not ids_are_unique:
        columns = [
            {f: c for f, c in has.items() if not any(f in x for x in columns[:i])} for i, has in enumerate(columns)
        ]
    parts: list[FilePart] = []
    sources: list[list[tuple[int, int]]] = [[] for _ in fields]
    for file, has in enumerate(columns):
        listed = [(i, part) for i, f in enumerate(fields) if (part := _part_in(f, has)) is not None]
        if not listed:
            continue
        for number, (i, _) in enumerate(listed):
            sources[i].append((len(parts), number))
        parts.append(FilePart(file, tuple(part for _, part in listed), has))
    for i, found in enumerate(sources):
        if len(found) > 1:
            _check_apart(fields[i], [columns[parts[p].file] for p, _ in found], path)
        elif found:
            [(p, number)] = found
            parts[p] = _with_field(parts[p], number, fields[i])
    return ShapePlan(tuple(parts), tuple(tuple(s) for s in sources))


def _with_field(part: FilePart, number: int, field: LanceField) -> FilePart:
    """Return a part that has all of a field: the file's reader makes those below it null that the file lacks."""
    listed = list(part.fields)
    listed[number] = field
    return structs.replace(part, fields=tuple(listed))


def _columns(layout: Layout, path: str) -> dict[int, int]:
    """Return the column of each field of a file; a column without a field does not count."""
    indices = layout.columns or layout.fields
    pairs = [(f, c) for f, c in zip(layout.fields, indices, strict=True) if f not in (-1, -2) and c >= 0]
    pairs = pairs if layout.columns else [(f, f) for f in layout.fields if f >= 0]
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(f for i, (f, _) in enumerate(pairs) if f in {g for g, _ in pairs[:i]})
        raise CorruptTableError(f"Manifest {path} is damaged: a data file has field {twice} twice.", path=path)
    return found


def _is_leaf(field: LanceField) -> bool:
    return not field.children or is_packed(field) or blob_kind(field) is not None


def _part_in(field: LanceField, has: Mapping[int, int]) -> LanceField | None:
    """Return a field with those below it that a file has; None if it has none of them."""
    if _is_leaf(field):
        return field if field.id in has else None
    children = tuple(part for c in field.children if (part := _part_in(c, has)) is not None)
    return structs.replace(field, children=children) if children else None


def _check_apart(field: LanceField, files: Sequence[Mapping[int, int]], path: str) -> None:
    for leaf in walk_fields([field]):
        if _is_leaf(leaf) and sum(leaf.id in has for has in files) > 1:
            raise CorruptTableError(
                f"Manifest {path} is damaged: two data files of a fragment have field {leaf.name!r} (id {leaf.id}).",
                path=path,
                id=leaf.id,
            )
