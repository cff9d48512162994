"""The fields of a Lance schema: a tree by id, its Arrow types, and the resolution of column paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct, structs

from delta_core.api import CorruptTableError, InvalidArgumentError, SchemaError

__all__ = [
    "BLOB_V2",
    "BLOB_VALUES",
    "DESCRIPTOR_V2",
    "LanceField",
    "arrow_field",
    "arrow_schema",
    "blob_kind",
    "field_tree",
    "fields_of_schema",
    "has_blobs",
    "is_packed",
    "message_of",
    "registered",
    "walk_fields",
    "walk_paths",
]

#: Deeper schemas are rejected: every step over a schema is recursive, in Arrow too.
MOST_LEVELS = 64
TOP = -1
"""The parent of a top-level field."""

_PLAIN: Mapping[str, Callable[[], pa.DataType]] = {
    "null": pa.null,
    "bool": pa.bool_,
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "halffloat": pa.float16,
    "float": pa.float32,
    "double": pa.float64,
    "string": pa.string,
    "binary": pa.binary,
    "large_string": pa.large_string,
    "large_binary": pa.large_binary,
    "json": pa.large_binary,
    "date32:day": pa.date32,
    "date64:ms": pa.date64,
}
_LISTS = {"list": False, "list.struct": False, "large_list": True, "large_list.struct": True}
_UNITS = {"time32": ("s", "ms"), "time64": ("us", "ns"), "duration": ("s", "ms", "us", "ns")}
_BLOB = "lance-encoding:blob"
BLOB_V2 = "lance.blob.v2"
_EXTENSION = "ARROW:extension:name"
#: Where the bytes of a blob of the extension type are.
INLINE, PACKED, DEDICATED, EXTERNAL = range(4)
#: The type that blobs of the extension type are passed as.
BLOB_VALUES = pa.struct(
    [("data", pa.large_binary()), ("uri", pa.string()), ("position", pa.uint64()), ("size", pa.uint64())]
)
#: The type that a blob of either kind is read as: where its bytes are.
_DESCRIPTOR = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
DESCRIPTOR_V2 = pa.struct(
    [
        pa.field("kind", pa.uint8(), False),
        pa.field("position", pa.uint64(), False),
        pa.field("size", pa.uint64(), False),
        pa.field("blob_id", pa.uint32(), False),
        pa.field("blob_uri", pa.string(), False),
    ]
)


class LanceField(Struct, frozen=True, dict=True):
    """A field of a schema, with the fields below it.

    Parameters
    ----------
    id : int
        The number that data files refer to; unique in a schema, 0 or more.
    parent_id : int
        The id of the field that it belongs to, -1 at the top.
    name : str
        Unique among the fields of its parent.
    logical_type : str
        The type as the format spells it, such as ``timestamp:us:UTC``.
    nullable : bool
        Whether values may be null.
    metadata : Mapping of str to bytes
        Requests for encodings, extension types and what users added.
    dictionary : tuple of int, optional
        Files of version 0.1: where the values of a dictionary are, and how many they are.
    children : tuple of LanceField
        In the order of the schema.
    encoding : int
        Files of version 0.1: 0 none, 1 plain, 2 variable, 3 dictionary, 4 runs.
    storage_class : str
        Written by earlier versions; empty or ``default`` for a field like any other.
    key_position : int
        The place in an unenforced primary key, counted from 1; 0 if it is not part of one, -1 without a place.
    cluster_position : int
        The place in an unenforced clustering key, as of ``key_position``.
    """

    id: int
    parent_id: int
    name: str
    logical_type: str
    nullable: bool = True
    metadata: Mapping[str, bytes] = {}
    dictionary: tuple[int, int] | None = None
    children: tuple[LanceField, ...] = ()
    encoding: int = 0
    storage_class: str = ""
    key_position: int = 0
    cluster_position: int = 0

    @cached_property
    def arrow(self) -> pa.Field:
        """The field in Arrow, with descriptors of blobs; each file that has the field needs it."""
        return _arrow_field(self, "descriptor")


def field_tree(fields: Iterable[LanceField]) -> tuple[LanceField, ...]:
    """Return the top-level fields of a list in which each field comes after its parent, with their children.

    Raises
    ------
    CorruptTableError
        For an id that is negative or repeated, a parent that does not come before its child, two children of one name,
        a type without the children that it needs, or a schema that is too deep.

    Protocol
    --------
    Manifest, field 1
    """
    listed = list(fields)
    below: dict[int, list[LanceField]] = {TOP: []}
    levels = {TOP: 0}
    for field in listed:
        _check_place(field, levels)
        levels[field.id] = levels[field.parent_id] + 1
        below[field.id] = []
        below[field.parent_id].append(field)
    # children come after their parents, so that the last field is complete first
    complete: dict[int, LanceField] = {}
    for field in reversed(listed):
        complete[field.id] = _with_children(field, tuple(complete[c.id] for c in below[field.id]))
    tops = tuple(complete[f.id] for f in below[TOP])
    _check_names("the schema", tops)
    return tops


def _check_place(field: LanceField, levels: Mapping[int, int]) -> None:
    if field.id < 0 or field.id in levels:
        why = "is negative" if field.id < 0 else "belongs to two fields"
        raise CorruptTableError(f"The schema is damaged: id {field.id} of field {field.name!r} {why}.", id=field.id)
    if field.parent_id not in levels:
        raise CorruptTableError(
            f"The schema is damaged: field {field.name!r} (id {field.id}) has the parent {field.parent_id}, which does "
            "not come before it.",
            id=field.id,
        )
    if levels[field.parent_id] >= MOST_LEVELS:
        raise SchemaError(
            f"Field {field.name!r} (id {field.id}) lies deeper than {MOST_LEVELS} levels, the most that are read.",
            id=field.id,
        )


#: How many children a type has, if that is fixed.
_CHILDREN = {**dict.fromkeys(_LISTS, 1), "map": 1}


def _with_children(field: LanceField, children: tuple[LanceField, ...]) -> LanceField:
    kind = field.logical_type
    expected = 1 if is_list_of_structs(kind) else _CHILDREN.get(kind, None if kind == "struct" else 0)
    if expected is not None and len(children) != expected:
        raise CorruptTableError(
            f"The schema is damaged: field {field.name!r} (id {field.id}) of type {kind!r} has {len(children)} "
            f"children, expected {expected}.",
            id=field.id,
        )
    if kind == "map" and (children[0].logical_type != "struct" or len(children[0].children) != 2):
        raise CorruptTableError(
            f"The schema is damaged: the entries of map {field.name!r} (id {field.id}) are "
            f"{children[0].logical_type!r} with {len(children[0].children)} children, expected a struct of two.",
            id=field.id,
        )
    _check_names(f"field {field.name!r}", children)
    return structs.replace(field, children=children) if children else field


def _check_names(where: str, fields: Sequence[LanceField]) -> None:
    names = {f.name for f in fields}
    if len(names) != len(fields):
        twice = next(f.name for i, f in enumerate(fields) if f.name in {g.name for g in fields[:i]})
        raise CorruptTableError(f"The schema is damaged: {where} has two fields {twice!r}.", name=twice)


def fields_of_schema(fields: Iterable[LanceField]) -> Iterator[LanceField]:
    """Yield fields in the order in which a schema lists them: each one before those below it, without children."""
    for field in fields:
        yield structs.replace(field, children=())
        yield from fields_of_schema(field.children)


def message_of(field: LanceField) -> dict[str, Any]:
    """Return the message of a field, without children: the opposite of `manifest.field_of`.

    Protocol
    --------
    Manifest, field 1
    """
    place = None if field.dictionary is None else dict(zip(("offset", "length"), field.dictionary, strict=True))
    return {
        "id": field.id,
        "parent_id": field.parent_id,
        "name": field.name,
        "logical_type": field.logical_type,
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
        "dictionary": place,
        "encoding": field.encoding,
        "storage_class": field.storage_class,
        "unenforced_primary_key": field.key_position != 0,
        "unenforced_primary_key_position": max(field.key_position, 0),
        "unenforced_clustering_key": field.cluster_position != 0,
        "unenforced_clustering_key_position": max(field.cluster_position, 0),
    }


def walk_fields(fields: Iterable[LanceField]) -> Iterator[LanceField]:
    """Yield fields, each one before those below it."""
    for field in fields:
        yield field
        yield from walk_fields(field.children)


def walk_paths(
    fields: Iterable[LanceField], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], LanceField]]:
    """Yield the path of each field that is not in a list or map, and the field."""
    for field in fields:
        yield (*above, field.name), field
        if field.logical_type == "struct":
            yield from walk_paths(field.children, (*above, field.name))


def is_list_of_structs(logical_type: str) -> bool:
    """Whether a type is a list of fixed size of structs, the only one whose items are a field of their own."""
    return logical_type.startswith("fixed_size_list:struct:")


def is_packed(field: LanceField) -> bool:
    """Whether the children of a struct lie in one column of a file, row by row."""
    return field.metadata.get("packed") == b"true" or "lance-encoding:packed" in field.metadata


def blob_kind(field: LanceField) -> Literal[1, 2] | None:
    """Return how the bytes of a blob column lie: 1 = all in the data file, 2 = each one where its kind specifies.

    None for a column that has no blobs.
    """
    if field.metadata.get(_EXTENSION) == BLOB_V2.encode():
        return 2
    return 1 if field.metadata.get(_BLOB) == b"true" else None


def has_blobs(field: LanceField) -> bool:
    """Whether a field is a column of blobs, or one of the fields below it is."""
    return blob_kind(field) is not None or (not is_packed(field) and any(has_blobs(c) for c in field.children))


def arrow_schema(
    fields: Iterable[LanceField], metadata: Mapping[str, bytes] | None = None, *, blobs: str = "descriptor"
) -> pa.Schema:
    """Return the Arrow schema of fields; ``blobs`` as in `arrow_field`."""
    return pa.schema([arrow_field(f, blobs=blobs) for f in fields], metadata=dict(metadata or {}) or None)


def arrow_field(field: LanceField, *, blobs: str = "descriptor") -> pa.Field:
    """Return the Arrow field of a field and all below it.

    Extension types are storage types whose metadata specify the extension (`registered`).

    Parameters
    ----------
    field : LanceField
        With its children.
    blobs : "descriptor" or "bytes"
        Whether columns of blobs are structs that specify where the bytes are, or the bytes.

    Raises
    ------
    SchemaError
        For a type that is not known.
    """
    return field.arrow if blobs == "descriptor" else _arrow_field(field, blobs)


def _arrow_field(field: LanceField, blobs: str) -> pa.Field:
    metadata = dict(field.metadata)
    kind = blob_kind(field)
    if kind == 2:
        # neither a descriptor nor the bytes are what the extension type consists of
        metadata = {k: v for k, v in metadata.items() if not k.startswith("ARROW:extension:")}
        # so that descriptors are not taken for values of the rows
        metadata |= {_BLOB: b"true"} if blobs == "descriptor" else {}
    of = _blob_type(field, blobs) if kind else _arrow_type(field, blobs)
    return pa.field(field.name, of, field.nullable, metadata or None)


def _blob_type(field: LanceField, blobs: str) -> pa.DataType:
    if blobs not in ("descriptor", "bytes"):
        raise InvalidArgumentError(f"blobs is {blobs!r}, expected 'descriptor' or 'bytes'.")
    if blobs == "bytes":
        return pa.large_binary()
    return DESCRIPTOR_V2 if blob_kind(field) == 2 else _DESCRIPTOR


def _arrow_type(field: LanceField, blobs: str) -> pa.DataType:
    kind = field.logical_type
    if kind == "struct":
        return pa.struct([arrow_field(c, blobs=blobs) for c in field.children])
    if kind in _LISTS:
        return (pa.large_list if _LISTS[kind] else pa.list_)(arrow_field(field.children[0]))
    if kind == "map":
        key, value = field.children[0].children
        return pa.map_(arrow_field(key).with_nullable(False), arrow_field(value))
    if is_list_of_structs(kind):
        return pa.list_(arrow_field(field.children[0]), _number(kind, kind.rpartition(":")[2], 1, 2**31 - 1))
    try:
        return leaf_type(kind)
    except SchemaError as e:
        raise SchemaError(
            f"Field {field.name!r} (id {field.id}) can't be read: {e}", id=field.id, logical_type=kind
        ) from None


@cache
def leaf_type(logical_type: str) -> pa.DataType:
    """Return the Arrow type of a logical type without children.

    Raises
    ------
    SchemaError
        For a type that is not known.
    """
    return _leaf_type(logical_type, 0)


def _leaf_type(text: str, level: int) -> pa.DataType:
    if text in _PLAIN:
        return _PLAIN[text]()
    kind, _, rest = text.partition(":")
    if kind in _PARAMETERS and level < MOST_LEVELS:
        return _PARAMETERS[kind](text, rest, level)
    raise _unknown(text)


def _unknown(text: str) -> SchemaError:
    shown = text if len(text) < 100 else f"{text[:100]}…"
    return SchemaError(f"the logical type {shown!r} is not known.", logical_type=shown)


def _number(text: str, digits: str, low: int, high: int) -> int:
    plain = digits.removeprefix("-")
    if not (plain.isascii() and plain.isdigit() and len(plain) < 12 and low <= int(digits) <= high):
        raise _unknown(text)
    return int(digits)


def _decimal(text: str, rest: str, _: int) -> pa.DataType:
    bits, *numbers = rest.split(":")
    if bits not in ("128", "256") or len(numbers) != 2:
        raise _unknown(text)
    precision = _number(text, numbers[0], 1, 38 if bits == "128" else 76)
    scale = _number(text, numbers[1], -128, 127)
    return (pa.decimal128 if bits == "128" else pa.decimal256)(precision, scale)


def _timestamp(text: str, rest: str, level: int) -> pa.DataType:
    unit, _, zone = rest.partition(":")
    if unit not in _UNITS["duration"] or not zone:
        raise _unknown(text)
    return pa.timestamp(unit, None if zone == "-" else zone)


def _of_unit(text: str, rest: str, _: int) -> pa.DataType:
    kind = text.partition(":")[0]
    if rest not in _UNITS[kind]:
        raise _unknown(text)
    return getattr(pa, kind)(rest)


def _fixed_binary(text: str, rest: str, _: int) -> pa.DataType:
    return pa.binary(_number(text, rest, 0, 2**31 - 1))


def _fixed_list(text: str, rest: str, level: int) -> pa.DataType:
    inner, _, size = rest.rpartition(":")
    return pa.list_(_leaf_type(inner, level + 1), _number(text, size, 0, 2**31 - 1))


def _dictionary(text: str, rest: str, level: int) -> pa.DataType:
    parts = rest.rsplit(":", 2)
    if len(parts) != 3 or parts[2] not in ("true", "false"):
        raise _unknown(text)
    values, keys = _leaf_type(parts[0], level + 1), _leaf_type(parts[1], level + 1)
    if not pa.types.is_integer(keys) or pa.types.is_dictionary(values):
        raise _unknown(text)
    return pa.dictionary(keys, values, ordered=parts[2] == "true")


_PARAMETERS: Mapping[str, Callable[[str, str, int], pa.DataType]] = {
    "decimal": _decimal,
    "timestamp": _timestamp,
    **dict.fromkeys(_UNITS, _of_unit),
    "fixed_size_binary": _fixed_binary,
    "fixed_size_list": _fixed_list,
    "dict": _dictionary,
}


class _SchemaCapsule:
    """A schema as other libraries get it: PyArrow then looks up extension types in its registry."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()


class _BatchCapsule(_SchemaCapsule):
    def __init__(self, batch: pa.RecordBatch) -> None:
        super().__init__(batch.schema)
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


def registered(data: Any) -> Any:
    """Return a schema or a batch with the extension types that its metadata names, if they are in PyArrow's registry.

    Nothing is copied; without such metadata the argument itself is returned.

    Raises
    ------
    SchemaError
        If the metadata of an extension type does not fit its storage.
    """
    schema = data if isinstance(data, pa.Schema) else data.schema
    if not any(_names_extension(f) for f in schema):
        return data
    try:
        return pa.schema(_SchemaCapsule(data)) if data is schema else pa.record_batch(_BatchCapsule(data))
    except (pa.ArrowException, LookupError, TypeError, ValueError) as e:
        names = ", ".join(repr(f.name) for f in schema if _names_extension(f))
        raise SchemaError(
            f"The extension types of the columns {names} can't be made: {e}. Read the other columns, or restore the "
            "manifest from a copy."
        ) from e


def _names_extension(field: pa.Field) -> bool:
    if field.metadata and _EXTENSION.encode() in field.metadata:
        return True
    return any(_names_extension(field.type.field(i)) for i in range(field.type.num_fields))
