"""What happens to a file of a table: bytes change, its end is missing, its JSON or its rows specify something else."""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Damage", "do_damage"]

Bytes = Callable[[random.Random, bytes], bytes]
_DEEP = 3000
#: Values of every kind, at and beyond the bounds of what readers take.
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40,
    10**5000,
    0.5, 1e308, float("nan"), float("inf"), "", "a", "0", "1", "null", "-1", " 1", "1e5", "9" * 5000, "\x00", "\ud800",
    "ü",
    "a" * 100_000,
    "%", "%bf", "%zz", "%00", "../x", "/x", "x/../../y", ".", "..", "a/b", "memory://x/y", "nope://x/y", "file:///nope",
    "s3:",
    "2024-13-45", "2024-01-01", "99999-01-01", "2024-01-01 00:00:00", "true", "NaN", "Infinity",
    "__HIVE_DEFAULT_PARTITION__",
    "long", "decimal(99,99)", "decimal(38,38)", "struct", "variant", "timestamp_ntz", "deletionVectors", "none", "name",
    "id",
    [], {}, [None], [[]], [1, 2], ["a", "a"], [{}], {"a": 1}, {"": ""}, {"type": "struct", "fields": []},
    {"type": "array", "elementType": "long", "containsNull": True}, "[", "{", "{}", "[]", '{"a":',
)  # fmt: skip


class Damage(NamedTuple):
    """What was done to a table.

    Parameters
    ----------
    text : str
        For people.
    is_visible : bool
        A reader can report that the file is damaged, or does not need it: it must not return other rows.
    """

    text: str
    is_visible: bool


def do_damage(rng: random.Random, root: Path) -> Damage:
    """Damage one file of a table, maybe in several places."""
    files = sorted((p for p in root.rglob("*") if p.is_file()), key=lambda p: (_kind(p), p.name))
    kind = rng.choice(sorted({_kind(p) for p in files}))
    path = rng.choice([p for p in files if _kind(p) == kind])
    data = path.read_bytes()
    name = f"{path.relative_to(root)}"
    if rng.random() < 0.06:
        return _replace(rng, path, name, kind)
    form = "json" if path.suffix in (".json", ".crc") or kind == "hint" else path.suffix[1:]
    choices = _CHOICES.get(form, _CHOICES["bin"])
    change = rng.choices([c for c, _ in choices], [w for _, w in choices])[0]
    try:
        new = change(rng, data)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        new, change = _cut(rng, data), _cut
    path.write_bytes(new)
    return Damage(
        f"{change.__name__.strip('_')}: {name}, {len(data)} -> {len(new)} bytes", _is_visible(kind, change, data, new)
    )


def _kind(path: Path) -> str:
    if path.name == "_last_checkpoint":
        return "hint"
    if path.suffix == ".crc":
        return "checksum"
    if "_sidecars" in path.parts:
        return "sidecar"
    if ".checkpoint." in path.name:
        return "checkpoint"
    if "_delta_log" in path.parts:
        return "commit"
    if path.suffix == ".bin":
        return "vectors"
    return "changes" if "_change_data" in path.parts else "data"


def _is_visible(kind: str, change: Bytes, data: bytes, new: bytes) -> bool:
    if kind in ("hint", "vectors", "changes") or new == data:
        return True
    if kind == "checksum":
        return not new.strip()
    if kind in ("commit", "checkpoint") and data[:1] == b"{":
        # what ends with a line is whole, as far as anybody can report
        return (
            change is _cut and bool(new.strip()) and not data[len(new) :].startswith(b"\n") and not new.endswith(b"\n")
        )
    return change is _cut


# --- files as a whole ----------------------------------------------------------------------


def _replace(rng: random.Random, path: Path, name: str, kind: str) -> Damage:
    """Delete a file, or put something else there."""
    what = rng.choice(["gone", "folder", "loop", "dangling", "stray"])
    if what == "stray":
        stray = path.with_name(rng.choice(_STRAY))
        if not stray.exists():
            shutil.copy(path, stray)
        return Damage(f"stray: {name} as {stray.name}", kind not in ("commit", "checkpoint"))
    path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "loop":
        path.symlink_to(path)
    elif what == "dangling":
        path.symlink_to(path.with_name("nowhere"))
    return Damage(f"{what}: {name}", kind not in ("commit", "checksum"))


_STRAY = (
    "99999999999999999999.json",
    "18446744073709551616.json",
    "9223372036854775807.json",
    "00000000000000000009.json",
    "00000000000000000002.checkpoint.0000000001.9999999999.parquet",
    "00000000000000000002.checkpoint.parquet",
    "00000000000000000003.checkpoint.0000000000.0000000000.parquet",
    "00000000000000000009.checkpoint.parquet",
    "00000000000000000001.00000000000000000900.compacted.json",
    "00000000000000000003.00000000000000000001.compacted.json",
    "00000000000000000001.x.json",
    "00000000000000000001.json.tmp",
    "x.json",
    "\udcff.json",
    "00000000000000000004.crc",
    "00000000000000000002.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
    "_commits",
)


# --- bytes ---------------------------------------------------------------------------------


def _flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data or b"\0")
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        out[_place(rng, len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _overwrite(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data or b"\0")
    at = _place(rng, len(out))
    new = rng.choice(
        [b"\xff", b"\0", b"\x7f", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", rng.randbytes(4), rng.randbytes(40)]
    )
    out[at : at + len(new)] = new
    return bytes(out)


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.choice([0, 1, 4, 8, rng.randrange(len(data) + 1), max(0, len(data) - rng.randrange(1, 16))])]


def _splice(rng: random.Random, data: bytes) -> bytes:
    """Drop, repeat or move a stretch."""
    start, end, at = (rng.randrange(len(data) + 1) for _ in range(3))
    start, end = min(start, end), min(max(start, end), min(start, end) + 200)
    part = data[start:end]
    rest = data[:start] + data[end:]
    return rng.choice([rest, data[:end] + part * 3 + data[end:], rest[:at] + part + rest[at:]])


def _place(rng: random.Random, size: int) -> int:
    """Return an offset; the head and the end of a file specify what the rest means."""
    span = rng.choice([size, size, min(size, 64), min(size, 600)])
    return size - 1 - rng.randrange(span) if rng.random() < 0.7 else rng.randrange(span)


# --- JSON ----------------------------------------------------------------------------------


def _rewrite(rng: random.Random, data: bytes) -> bytes:
    """Change values, keys and the order of one or several lines."""
    lines = [json.loads(line) for line in data.splitlines() if line.strip()]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(lines))
        lines[at] = _changed(rng, lines[at])
    if rng.random() < 0.1:
        rng.shuffle(lines)
    if rng.random() < 0.1:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice([*lines, *_VALUES]))
    return b"\n".join(_text(rng, line) for line in lines)


def _nest(rng: random.Random, data: bytes) -> bytes:
    """Put a value at a random place that is nested deeper than any reader recurses."""
    lines = data.splitlines() or [b"{}"]
    at = rng.randrange(len(lines))
    places = [i for i, c in enumerate(lines[at]) if c in b":,["] or [0]
    place = rng.choice(places) + 1
    deep = rng.choice([b"[" * _DEEP + b"]" * _DEEP, b'{"a":' * _DEEP + b"1" + b"}" * _DEEP, b"[" * 200_000])
    lines[at] = lines[at][:place] + deep + b"," + lines[at][place:]
    return b"\n".join(lines)


def _changed(rng: random.Random, value: Any) -> Any:
    """Return a JSON value with one place changed; text that is JSON itself may be changed within."""
    if isinstance(value, str) and value[:1] in ("{", "[") and rng.random() < 0.8:
        try:
            return _text(rng, _changed(rng, json.loads(value))).decode()
        except ValueError:
            return rng.choice(_VALUES)
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.1:
        return _other(rng, value)
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = rng.choice(keys)
    done = rng.random()
    out: Any = dict(value) if isinstance(value, dict) else list(value)
    if done < 0.12:
        del out[key]
    elif done < 0.2 and isinstance(out, dict):
        out[rng.choice([*_KEYS, *out])] = out.pop(key)
    elif done < 0.26:
        if isinstance(out, dict):
            out[rng.choice(_KEYS)] = rng.choice(_VALUES)
        else:
            out.insert(key, rng.choice([out[key], *_VALUES]))
    else:
        out[key] = _changed(rng, value[key])
    return out


_KEYS = (
    "", "x", "path", "add", "remove", "metaData", "protocol", "cdc", "txn", "stats", "stats_parsed", "partitionValues",
    "version",
    "name", "type", "metadata", "delta.columnMapping.physicalName", "delta.columnMapping.id",
    "delta.columnMapping.mode",
    "delta.typeChanges", "delta.invariants", "delta.generationExpression", "delta.identity.step", "CURRENT_DEFAULT",
    "delta.enableChangeDataFeed", "delta.checkpointInterval", "delta.dataSkippingNumIndexedCols",
    "delta.logRetentionDuration",
    "delta.dataSkippingStatsColumns", "delta.constraints.x", "delta.minReaderVersion", "delta.randomPrefixLength",
    "a" * 10_000,
)  # fmt: skip


def _other(rng: random.Random, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.4:
        return value + rng.choice([-1, 1, 2**31, -(2**40), 2**62])
    if isinstance(value, str) and value and rng.random() < 0.4:
        at = rng.randrange(len(value))
        return value[:at] + rng.choice(["", "\x00", "\ud800", "%bf", "é", "/", "'", '"', value]) + value[at + 1 :]
    return rng.choice(_VALUES)


def _text(rng: random.Random, value: Any) -> bytes:
    plain = rng.random() < 0.5
    text = json.dumps(value, separators=(",", ":") if plain else None, ensure_ascii=rng.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


# --- rows of Parquet files -----------------------------------------------------------------


def _rows(rng: random.Random, data: bytes) -> bytes:
    """Change values of rows, kept in the file's types if they fit."""
    table = pq.read_table(io.BytesIO(data))
    rows = table.to_pylist(maps_as_pydicts="lossy")
    at = rng.randrange(len(rows))
    changed = _changed(rng, rows[at])
    rows[at] = changed if isinstance(changed, dict) else {}
    try:
        new = pa.Table.from_pylist(rows, table.schema)
    except (pa.ArrowException, OverflowError, ValueError, TypeError, AttributeError):
        new = pa.Table.from_pylist(rows)
    return _parquet(rng, new)


def _columns(rng: random.Random, data: bytes) -> bytes:
    """Drop, rename, repeat, retype or nest a column, or a field of a struct."""
    table = pq.read_table(io.BytesIO(data))
    at = rng.randrange(table.num_columns)
    field, column = table.schema.field(at), table.column(at).combine_chunks()
    new = _retyped(rng, column)
    name = rng.choice([field.name, field.name, field.name, "x", "", field.name.upper(), "a.b", "add", "remove"])
    change = rng.choice(["set", "set", "set", "drop", "repeat"])
    if change == "drop":
        return _parquet(rng, table.remove_column(at))
    if change == "repeat":
        return _parquet(rng, table.append_column(name, new))
    return _parquet(rng, table.set_column(at, name, new))


def _retyped(rng: random.Random, column: pa.Array) -> pa.Array:
    if pa.types.is_struct(column.type) and column.type.num_fields and rng.random() < 0.85:
        fields = [column.type.field(i) for i in range(column.type.num_fields)]
        parts = list(column.flatten())
        at = rng.randrange(len(parts))
        if rng.random() < 0.25:
            del parts[at], fields[at]
        else:
            parts[at] = _retyped(rng, parts[at])
        names = [f.name for f in fields]
        return pa.StructArray.from_arrays(parts, names, mask=column.is_null()) if parts else pa.nulls(len(column))
    types = [
        pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float64(), pa.string(), pa.large_string(), pa.binary(),
        pa.bool_(),
        pa.decimal128(38, 10), pa.timestamp("ns"), pa.date32(), pa.list_(pa.int32()), pa.struct([("a", pa.int32())]),
        pa.map_(pa.string(), pa.string()), pa.dictionary(pa.int32(), pa.string()), pa.binary(16), pa.time64("us"),
        pa.string_view(),
    ]  # fmt: skip
    wanted = rng.choice(types)
    try:
        return column.cast(wanted)
    except (pa.ArrowException, ValueError):
        return pa.nulls(len(column), wanted)


def _parquet(rng: random.Random, table: pa.Table) -> bytes:
    out = io.BytesIO()
    options: dict[str, Any] = rng.choice(
        [
            {},
            {"row_group_size": 1},
            {"compression": "none"},
            {"compression": "zstd"},
            {"use_dictionary": False},
            {"data_page_version": "2.0"},
            {"write_statistics": False},
            {"version": "1.0"},
        ]
    )
    pq.write_table(table, out, **options)
    return out.getvalue()


_CHOICES: dict[str, list[tuple[Bytes, int]]] = {
    "json": [(_rewrite, 10), (_flip, 2), (_overwrite, 2), (_cut, 2), (_splice, 2), (_nest, 1)],
    "parquet": [(_flip, 6), (_overwrite, 6), (_cut, 2), (_splice, 2), (_rows, 3), (_columns, 3)],
    "bin": [(_flip, 3), (_overwrite, 2), (_cut, 1), (_splice, 1)],
}
