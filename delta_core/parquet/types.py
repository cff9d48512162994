"""From what a Parquet file stores to the columns that are requested: matching, pruning to leaves, conversions.

`plan_file` compiles this once per distinct file schema. A requested column that the file lacks becomes nulls; a
stored type that does not hold the requested values exactly is rejected. Protocol: Column Mapping, Type Widening.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.kernels import compute as pc, parts as kernels
from delta_core.kernels.arrow_buffers import null_array
from delta_core.kernels.nested import batch_of, rebuild_list, rebuild_map, rebuild_struct, relabel
from delta_core.runtime.processes import cached_property
from delta_core.schema.fields import FIELD_ID, Path, format_path
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, TypeDef

if TYPE_CHECKING:
    from delta_core.parquet.legacy_calendar import Calendar

__all__ = ["ColumnSource", "FilePlan", "UnconvertibleError", "is_encoded_string", "num_leaves", "plan_file"]

Convert = Callable[[pa.Array], pa.Array]


class UnconvertibleError(Exception):
    """A column can't be read as requested. The reader of the file converts it into a DataFileError."""

    def __init__(self, path: Path, found: Any, wanted: Any, why: str = "") -> None:
        self.column: str = format_path(path)
        self.found: str = str(found)
        self.wanted: str = str(wanted)
        self.why: str = why
        what = f"column {self.column}" if path else "it"
        super().__init__(f"{what} holds {found}, expected {wanted}" + (f": {why}" if why else ""))


class ColumnSource(Struct, frozen=True, gc=False):
    """Where one requested column comes from.

    Parameters
    ----------
    name : str or None
        The file's top-level column; None if the file lacks it.
    leaves : tuple of int
        The Parquet columns of it to decode, ascending.
    convert : function(pyarrow.Array) -> pyarrow.Array, or None
        To the requested type, but for names within it; None: nothing to do.
    """

    name: str | None
    leaves: tuple[int, ...]
    convert: Convert | None


class FilePlan(Struct, frozen=True):
    """How to read one file's columns.

    Parameters
    ----------
    leaves : tuple of int
        The Parquet columns to decode, ascending.
    found : tuple of (int, int)
        The numbers of the requested columns that the file has, each with the first of its leaves.
    convert : function(pyarrow.RecordBatch) -> pyarrow.RecordBatch
        From a batch of the leaves to one of ``schema``.
    sources : tuple of ColumnSource
        Where each of the requested columns comes from.
    schema : pyarrow.Schema
        The requested one, with strings that may stay dictionary encoded.
    stored : Mapping of Path to (int, pyarrow.DataType)
        Where each requested leaf outside lists and maps lies: its Parquet column and stored type.
    texts : Mapping of int to str
        The top-level columns of strings that are requested as such, by leaf.
    """

    leaves: tuple[int, ...]
    found: tuple[tuple[int, int], ...]
    convert: _Plain | _Converting
    sources: tuple[ColumnSource, ...]
    schema: pa.Schema
    stored: Mapping[Path, tuple[int, pa.DataType]]
    texts: Mapping[int, str]

    @property
    def is_plain(self) -> bool:
        """Whether each requested column is one Parquet column that needs no conversion, in the file's order."""
        return isinstance(self.convert, _Plain) and len(self.leaves) == len(self.sources)

    def leaves_of(self, columns: Iterable[int]) -> list[int]:
        """Return the Parquet columns of some of the requested columns, ascending."""
        return sorted({leaf for column in columns for leaf in self.sources[column].leaves})

    def encoded(self, names: Collection[str]) -> FilePlan | None:
        """Return the plan of the same file with some columns of strings as dictionary codes.

        Parameters
        ----------
        names : collection of str
            The file's top-level columns.

        Returns
        -------
        FilePlan or None
            None if one of them is requested as another type too.
        """
        numbers = {k for k, source in enumerate(self.sources) if source.name in names}
        if any(self.sources[k].convert is not None or self.schema.field(k).type != pa.string() for k in numbers):
            return None
        coded = pa.dictionary(pa.int32(), pa.string())
        schema = pa.schema([f.with_type(coded) if k in numbers else f for k, f in enumerate(self.schema)])
        return replace(self, schema=schema, convert=replace(self.convert, schema=schema))


def is_encoded_string(t: pa.DataType) -> bool:
    """Whether it is the type in which strings may reach ``apply`` dictionary encoded."""
    # by number: it is called for each column
    return bool(t.id == pa.lib.Type_DICTIONARY and t.index_type == pa.int32() and t.value_type == pa.string())


def plan_file(
    found: pa.Schema,
    target: pa.Schema,
    columns: StructType,
    match: Literal["name", "id"] = "name",
    *,
    encoded: bool = False,
    calendar: Calendar | None = None,
    types: Mapping[str, TypeDef] | None = None,
    num_stored: int | None = None,
) -> FilePlan:
    """Compile the reading of one file schema.

    Parameters
    ----------
    found : pyarrow.Schema
        The schema of the file, as Arrow's Parquet reader names it.
    target : pyarrow.Schema
        The columns as they are to be read: `FileRead.schema`.
    columns, match
        As of `FileRead`.
    encoded : bool
        Let dictionary encoded strings through.
    calendar : Calendar, optional
        How the file's dates and timestamps are to be rebased.
    types : Mapping, optional
        The primitive types by name, for those that provide a ``decode``.
    num_stored : int, optional
        The Parquet columns of the file: if it has as many top-level ones, none of the others is looked at.

    Raises
    ------
    UnconvertibleError
        A column whose stored type can't return the requested one, an ambiguous name or id, or, matching by id, a
        file without ids.
    """
    if match == "id" and len(found) and any(FIELD_ID in f.metadata for f in columns.members) and not _has_ids(found):
        raise UnconvertibleError(
            (), "no field ids", "field ids", "the table's columns are matched by id, never by name"
        )
    if calendar is None and num_stored == len(found) and _is_alike(found, target, columns, match):
        return _plan_alike(found, target)
    matcher = _Matcher(match, encoded, calendar, types or {})
    places = _Places(found, is_flat=num_stored == len(found))
    top = matcher.fields(places, list(target), columns.members, 0, (), top=True)
    leaves = tuple(sorted(matcher.leaves))
    kept = sorted({i for i, _, _ in top if i is not None})
    position = {index: k for k, index in enumerate(kept)}
    picks = [(None if i is None else position[i], convert) for i, convert, _ in top]
    pairs = list(zip(target, top, strict=True))
    first = tuple((k, first) for k, (i, _, first) in enumerate(top) if i is not None)
    schema = target
    if encoded:
        stored = [found.field(i).type if i is not None and convert is None else w.type for w, (i, convert, _) in pairs]
        schema = pa.schema([w.with_type(t) if is_encoded_string(t) else w for w, t in zip(target, stored, strict=True)])
    plain = [p for p, _ in picks] == list(range(len(kept))) and all(c is None for _, c in picks)
    convert = _Plain(schema) if plain else _Converting(picks, schema)
    sources = _sources(found, top, leaves)
    kinds = schema.types
    texts = {leaf: name for k, leaf in first if (name := sources[k].name) and _is_text(kinds[k])}
    return FilePlan(leaves, first, convert, sources, schema, matcher.stored, texts)


def _is_alike(found: pa.Schema, target: pa.Schema, columns: StructType, match: Literal["name", "id"]) -> bool:
    """Whether a file has the requested columns and no others, flat ones of the same types in the same order."""
    names = found.names
    return bool(
        (found.equals(target) or (names == target.names and found.types == target.types))
        and len(set(names)) == len(names)
        and not any(t.num_fields or t.id == pa.lib.Type_NA for t in found.types)
        and (match == "name" or not any(FIELD_ID in f.metadata for f in columns.members))
    )


def _plan_alike(found: pa.Schema, target: pa.Schema) -> FilePlan:
    """Return the plan of a file whose columns are the requested ones: one pass over them, since tables may be wide."""
    names, types = target.names, found.types
    leaves = tuple(range(len(names)))
    sources = tuple([ColumnSource(name, (leaf,), None) for leaf, name in enumerate(names)])
    stored: dict[Path, tuple[int, pa.DataType]] = {}
    stored.update(((name,), (leaf, types[leaf])) for leaf, name in enumerate(names))
    texts = {leaf: names[leaf] for leaf, t in enumerate(types) if t.id == pa.lib.Type_STRING}
    return FilePlan(leaves, tuple(zip(leaves, leaves, strict=True)), _Plain(target), sources, target, stored, texts)


def _is_text(t: pa.DataType) -> bool:
    return bool(t == pa.string()) or is_encoded_string(t)


def _sources(
    found: pa.Schema, top: Sequence[tuple[int | None, Convert | None, int]], leaves: tuple[int, ...]
) -> tuple[ColumnSource, ...]:
    out = []
    for index, convert, first in top:
        if index is None:
            out.append(ColumnSource(None, (), None))
        else:
            f = found.field(index)
            start, stop = bisect_left(leaves, first), bisect_left(leaves, first + num_leaves(f.type))
            out.append(ColumnSource(f.name, leaves[start:stop], convert))
    return tuple(out)


class _Plain(Struct, frozen=True):
    schema: pa.Schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if batch.schema.equals(self.schema, check_metadata=True) else relabel(batch, self.schema)


class _Converting(Struct, frozen=True):
    choices: Sequence[tuple[int | None, Convert | None]]
    schema: pa.Schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        for (index, convert), f in zip(self.choices, self.schema, strict=True):
            if index is None:
                arrays.append(null_array(f.type, batch.num_rows))
            else:
                array = batch.column(index)
                arrays.append(array if convert is None else convert(array))
        return batch_of(arrays, self.schema)


def _has_ids(found: Any) -> bool:
    fields = list(found) if isinstance(found, pa.Schema) else [found.field(i) for i in range(found.num_fields)]
    return any(_field_id(f) is not None or _has_ids(f.type) for f in fields)


def _field_id(f: pa.Field) -> int | None:
    value = (f.metadata or {}).get(b"PARQUET:field_id")
    return None if value is None or int(value) < 0 else int(value)


def _storage(t: pa.DataType) -> pa.DataType:
    return _storage(t.storage_type) if isinstance(t, pa.BaseExtensionType) else t


def num_leaves(t: pa.DataType) -> int:
    """Return how many Parquet columns hold a type."""
    t = _storage(t)
    if pa.types.is_map(t):
        return num_leaves(t.key_type) + num_leaves(t.item_type)
    return sum(num_leaves(t.field(i).type) for i in range(t.num_fields)) if t.num_fields else 1


def with_instants(schema: pa.Schema, are_instants: Sequence[bool]) -> pa.Schema:
    """Return a schema with such leaves, a flag for each Parquet column, as UTC timestamps, and no other metadata."""
    flags = iter(are_instants)

    def visit(t: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(t):
            return pa.struct([t.field(i).with_type(visit(t.field(i).type)) for i in range(t.num_fields)])
        if pa.types.is_map(t):
            return pa.map_(visit(t.key_type), t.item_field.with_type(visit(t.item_type)))
        if _is_list(t):
            return pa.list_(t.value_field.with_type(visit(t.value_type)))
        return pa.timestamp("us", "UTC") if next(flags) else t

    return pa.schema([f.with_type(visit(f.type)) for f in schema])


def _same_layout(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether types are equal, or structs have the same fields, whatever they specify for nulls."""
    if not found.num_fields and not wanted.num_fields:
        return bool(found.equals(wanted))
    names = [(found.field(i).name, found.field(i).type) for i in range(found.num_fields)]
    return names == [(wanted.field(i).name, wanted.field(i).type) for i in range(wanted.num_fields)]


def _is_list(t: pa.DataType) -> bool:
    return bool(pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t))


class _Places:
    """The location of a struct's fields, by what may name them; made once, so that wide tables match in one pass.

    Parameters
    ----------
    fields : pyarrow.Schema or list of pyarrow.Field
    is_flat : bool
        Whether each field is one Parquet column.
    """

    def __init__(self, fields: Any, is_flat: bool = False) -> None:
        self.fields = fields
        self._is_flat = is_flat

    def named(self, name: str) -> list[int]:
        """Return the numbers of the fields of a name."""
        if isinstance(self.fields, pa.Schema):  # has them by name already
            return list(self.fields.get_all_field_indices(name))
        return self.by_name.get(name, [])

    def start(self, index: int) -> int:
        """Return how many Parquet columns are before those of a field."""
        return index if self._is_flat else self._starts[index]

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((num_leaves(f.type) for f in self.fields), initial=0))

    @cached_property
    def by_name(self) -> dict[Any, list[int]]:
        return _numbered([f.name for f in self.fields])

    @cached_property
    def by_lower(self) -> dict[Any, list[int]]:
        return _numbered([f.name.lower() for f in self.fields])

    @cached_property
    def by_id(self) -> dict[Any, list[int]]:
        return _numbered([_field_id(f) for f in self.fields])


def _numbered(keys: Sequence[Any]) -> dict[Any, list[int]]:
    out: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        out.setdefault(key, []).append(i)
    return out


class _Matcher:
    """One walk over a file's schema beside the requested one; collects leaves, returns conversions."""

    def __init__(
        self, match: Literal["name", "id"], encoded: bool, calendar: Calendar | None, types: Mapping[str, TypeDef]
    ) -> None:
        self.match = match
        self.types = types
        self.encoded = encoded
        self.calendar = calendar
        self.leaves: set[int] = set()
        self.stored: dict[Path, tuple[int, pa.DataType]] = {}

    def fields(
        self,
        places: _Places,
        wanted: list[pa.Field],
        columns: Sequence[Field] | None,
        first: int,
        path: Path,
        top: bool = False,
    ) -> list[tuple[int | None, Convert | None, int]]:
        """Return for each requested field the found one's index (None: none), its conversion and its first leaf."""
        found = places.fields
        out: list[tuple[int | None, Convert | None, int]] = []
        for k, w in enumerate(wanted):
            column = columns[k] if columns is not None else None
            wanted_type = w.type
            index = None if pa.types.is_null(wanted_type) else self.find(places, w, column, path)
            stored: Any = None if index is None else found[index].type
            if index is None or pa.types.is_null(stored):
                out.append((None, None, -1))
                continue
            start = first + places.start(index)
            if self.calendar is None and not stored.num_fields and stored.equals(wanted_type):
                # most columns of most files
                self.leaves.add(start)
                self.stored[*path, w.name] = start, stored
                out.append((index, None, start))
                continue
            t = column.type if column is not None else None
            out.append((index, self.column(stored, wanted_type, t, start, (*path, w.name), top), start))
        return out

    def find(self, found: _Places, wanted: pa.Field, column: Field | None, path: Path) -> int | None:
        field_id = column.metadata.get(FIELD_ID) if column is not None and self.match == "id" else None
        if field_id is not None:
            hits = found.by_id.get(int(field_id), [])
        else:
            hits = found.named(wanted.name)
            if not hits and self.match == "name":
                hits = found.by_lower.get(wanted.name.lower(), [])
        if len(hits) > 1:
            names = ", ".join(found.fields[i].name for i in hits)
            raise UnconvertibleError((*path, wanted.name), f"several candidates ({names})", "one column")
        return hits[0] if hits else None

    def column(
        self, found: pa.DataType, wanted: pa.DataType, t: DataType | None, first: int, path: Path, top: bool = False
    ) -> Convert | None:
        """Return the conversion of one column, None if there is nothing to do but to relabel."""
        if isinstance(found, pa.BaseExtensionType):
            inner = self.column(found.storage_type, wanted, t, first, path)
            return lambda a: inner(a.storage) if inner is not None else a.storage
        definition = self.types.get(t.type) if isinstance(t, PrimitiveType) else None
        if definition is not None and definition.decode is not None and not _same_layout(found, wanted):
            self.leaves.update(range(first, first + num_leaves(found)))
            return definition.decode
        if pa.types.is_struct(wanted) and pa.types.is_struct(found):
            return self.struct(found, wanted, t, first, path)
        if pa.types.is_map(wanted) and (pa.types.is_map(found) or _is_list(found)):
            return self.map(found, wanted, t, first, path)
        if pa.types.is_list(wanted) and _is_list(found):
            return self.list(found, wanted, t, first, path)
        if pa.types.is_nested(wanted) or (pa.types.is_nested(found) and not pa.types.is_dictionary(found)):
            raise UnconvertibleError(path, found, wanted)
        self.leaves.add(first)
        # bounds of the hybrid calendar are no bounds of what is read
        if self.calendar is None or self.calendar.rebase(found, wanted, first) is None:
            self.stored[path] = (first, found)
        if top and self.encoded and is_encoded_string(found) and wanted == pa.string():
            return None
        return self.leaf(found, wanted, first, path)

    def leaf(self, found: pa.DataType, wanted: pa.DataType, first: int, path: Path) -> Convert | None:
        convert = leaf_conversion(found, wanted, path)
        rebase = self.calendar.rebase(found, wanted, first) if self.calendar is not None else None
        if rebase is None:
            return convert
        before = pa.types.is_date(found) and not pa.types.is_date(wanted)
        steps = [s for s in ((rebase, convert) if before else (convert, rebase)) if s is not None]
        return lambda a: _run(steps, a, path, found, wanted)

    def struct(
        self, found: pa.DataType, wanted: pa.DataType, t: DataType | None, first: int, path: Path
    ) -> Convert | None:
        fields = [found.field(i) for i in range(found.num_fields)]
        columns = t.members if isinstance(t, StructType) else None
        parts = self.fields(_Places(fields), [wanted.field(i) for i in range(wanted.num_fields)], columns, first, path)
        kept = sorted({i for i, _, _ in parts if i is not None})
        if not kept:  # one leaf must be read to find which structs are null
            self.leaves.add(first)
            kept = [next(i for i in range(len(fields)))]
        picks = [(None if i is None else kept.index(i), convert) for i, convert, _ in parts]
        if [p for p, _ in picks] == list(range(len(kept))) and all(c is None for _, c in picks):
            return None
        return lambda a: _convert_struct(a, picks, wanted)

    def list(
        self, found: pa.DataType, wanted: pa.DataType, t: DataType | None, first: int, path: Path
    ) -> Convert | None:
        element = t.element_type if isinstance(t, ArrayType) else None
        inner = self.column(found.value_type, wanted.value_type, element, first, (*path, "element"))
        plain = pa.types.is_list(found)
        if plain and inner is None:
            return None

        def convert(array: pa.Array) -> pa.Array:
            a = array if plain else pc.cast(array, pa.list_(array.type.value_field))
            return rebuild_list(a, a.values if inner is None else inner(a.values))

        return convert

    def map(
        self, found: pa.DataType, wanted: pa.DataType, t: DataType | None, first: int, path: Path
    ) -> Convert | None:
        is_map = pa.types.is_map(found)
        entry = None if is_map else _storage(found.value_type)
        if is_map:
            key, value = found.key_type, found.item_type
        elif entry is not None and pa.types.is_struct(entry) and entry.num_fields == 2 and pa.types.is_list(found):
            key, value = entry.field(0).type, entry.field(1).type
        else:
            raise UnconvertibleError(path, found, wanted)
        types = (t.key_type, t.value_type) if isinstance(t, MapType) else (None, None)
        on_key = self.column(key, wanted.key_type, types[0], first, (*path, "key"))
        on_value = self.column(value, wanted.item_type, types[1], first + num_leaves(key), (*path, "value"))
        # Arrow needs the whole key to see that it is a map
        self.leaves.update(range(first, first + num_leaves(key)))
        if is_map and on_key is None and on_value is None:
            return None

        def convert(a: pa.Array) -> pa.Array:
            keys, items = (a.keys, a.items) if is_map else (a.values.field(0), a.values.field(1))
            keys = keys if on_key is None else on_key(keys)
            items = items if on_value is None else on_value(items)
            return rebuild_map(a, keys, items)

        return convert


def _convert_struct(a: pa.Array, picks: Sequence[tuple[int | None, Convert | None]], wanted: pa.DataType) -> pa.Array:
    children = []
    for k, (index, convert) in enumerate(picks):
        if index is None:
            children.append(pa.nulls(len(a), wanted.field(k).type))
        else:
            child = a.field(index)
            children.append(child if convert is None else convert(child))
    return rebuild_struct(a, [f.name for f in wanted], children)


def _run(steps: Sequence[Convert], a: pa.Array, path: Path, found: pa.DataType, wanted: pa.DataType) -> pa.Array:
    try:
        for step in steps:
            a = step(a)
    except (pa.ArrowInvalid, ValueError) as e:
        raise UnconvertibleError(path, found, wanted, str(e)) from e
    return a


# --- one leaf --------------------------------------------------------------------------------


def leaf_conversion(found: pa.DataType, wanted: pa.DataType, path: Path) -> Convert | None:
    """Return how values of a stored type become the requested type, None if they are it already.

    Raises
    ------
    UnconvertibleError
        For types that can't; the conversion raises it for a value that does not fit.
    """
    if found.equals(wanted):
        return None
    step = _leaf_step(found, wanted)
    if step is None:
        raise UnconvertibleError(path, found, wanted, "the stored type does not hold these values exactly")
    return lambda a: _run((step,), a, path, found, wanted)


def _leaf_step(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    t = pa.types
    if t.is_dictionary(found):
        inner = None if found.value_type.equals(wanted) else _leaf_step(found.value_type, wanted)
        if inner is None and not found.value_type.equals(wanted):
            return None
        return lambda a: a.dictionary_decode() if inner is None else inner(a.dictionary_decode())
    if t.is_timestamp(wanted):
        return _timestamp_step(found, wanted)
    if t.is_decimal(wanted) and t.is_integer(found):
        return lambda a: kernels.checked_cast(a, wanted)
    return (lambda a: kernels.checked_cast(a, wanted)) if _castable(found, wanted) else None


def _castable(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow's checked cast keeps every value or raises."""
    t = pa.types
    if t.is_integer(wanted):
        return bool(t.is_integer(found))
    if t.is_float64(wanted):
        return bool(t.is_float16(found) or t.is_float32(found) or (t.is_integer(found) and found.bit_width < 64))
    if t.is_float32(wanted):
        return bool(t.is_float16(found))
    if t.is_decimal(wanted):
        return bool(t.is_decimal(found))
    if t.is_date32(wanted):
        return bool(t.is_date(found))
    text = (t.is_string, t.is_large_string, t.is_string_view, t.is_binary, t.is_large_binary, t.is_binary_view)
    if t.is_string(wanted):
        return any(is_text(found) for is_text in text)
    if t.is_binary(wanted):
        return bool(t.is_fixed_size_binary(found)) or any(is_text(found) for is_text in text)
    return False


def _timestamp_step(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    """Timestamps keep their count since the epoch; whether the file calls them UTC does not matter, as in Spark."""
    if pa.types.is_timestamp(found):
        if found.unit == wanted.unit:
            return lambda a: a.view(wanted)
        return lambda a: pc.cast(a.view(pa.timestamp(found.unit)), pa.timestamp(wanted.unit)).view(wanted)
    if pa.types.is_date(found) and wanted.tz is None:
        return lambda a: pc.cast(a, wanted)
    return None
