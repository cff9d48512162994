"""Manifests: the container and its sections, and what a version consists of. Protocol: Manifest."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from delta_core.api import CorruptTableError, UnsupportedFeatureError
from delta_core.kernels.arrow_buffers import distinct_numbers
from delta_plugins.lance import flags
from delta_plugins.lance._metadata import split_manifest
from delta_plugins.lance.fragments import NOWHERE, Fragments, fragments_of
from delta_plugins.lance.schema import LanceField, field_tree
from delta_plugins.lance.wire import Message, decode

__all__ = ["BasePath", "Manifest", "field_of", "file_version", "parse_manifest", "read_section"]

FileVersion = tuple[int, int]
"""Major and minor version of a data file: (0, 1), (2, 0), (2, 1) or (2, 2)."""

_TAIL = struct.Struct("<QHH4s")
#: The versions of data files, as manifests spell them in each DataFile: (0, 3) is version 2.0.
_FILE_VERSIONS: Mapping[tuple[int, int], FileVersion] = {
    (0, 0): (0, 1),
    (0, 1): (0, 1),
    (0, 2): (0, 1),
    (0, 3): (2, 0),
    (2, 0): (2, 0),
    (2, 1): (2, 1),
    (2, 2): (2, 2),
}
#: As the field data_format spells them.
_FORMATS: Mapping[str, FileVersion] = {"0.1": (0, 1), "2.0": (2, 0), "2.1": (2, 1), "2.2": (2, 2)}
#: Up to this version, writers stored wrong numbers of rows.
_WRONG_ROWS = (0, 8, 0)
#: Before this version, writers used ids of dropped fields again for new ones.
_UNIQUE_IDS = (0, 11, 0)


def _without_store(path: str) -> str:
    """Return the place of files without the manifest store that the writer of a base path opened it with."""
    scheme, separator, rest = path.partition("+ddb://")
    return f"{scheme}://{rest.partition('?ddbTableName=')[0]}" if separator and scheme == "s3" else path


class BasePath(Struct, frozen=True):
    """Another place that files of a dataset are in.

    Parameters
    ----------
    id : int
        The number that files refer to.
    path : str
        An absolute path or URI; of ``s3+ddb://bucket/path?ddbTableName=table`` the place of the files.
    is_dataset_root : bool
        Whether the files are in the folders of a dataset there, rather than directly in it.
    name : str, optional
        An alias.
    """

    id: int
    path: str
    is_dataset_root: bool
    name: str | None = None


class Manifest(Struct, frozen=True):
    """One version of a dataset.

    Parameters
    ----------
    path : str
        The file, relative to the root.
    file : memoryview
        The bytes of the file.
    data : memoryview
        Those of the message in it.
    message : dict
        The decoded message without fragments and fields.
    fields : tuple of LanceField
        The fields at the top of the schema.
    fragments : Fragments
        The fragments.
    file_version : tuple of int
        Of the data files that the dataset is written with.
    base_paths : Mapping of int to BasePath
        By id.
    rows_are_known : bool
        Whether the numbers of rows of fragments are right; early writers stored wrong ones.
    ids_are_unique : bool
        Whether two files of a fragment never have the same field; early writers used ids of dropped fields again for
        new ones. The first file counts then, as for pylance.
    """

    path: str
    file: memoryview
    data: memoryview
    message: Message
    fields: tuple[LanceField, ...]
    fragments: Fragments
    file_version: FileVersion
    base_paths: Mapping[int, BasePath]
    rows_are_known: bool
    ids_are_unique: bool

    @property
    def version(self) -> int:
        """The version's number."""
        return int(self.message["version"])

    @property
    def timestamp_us(self) -> int:
        """When it was committed, in microseconds since the epoch; 0 if the manifest does not specify it."""
        found = self.message["timestamp"]
        return found["seconds"] * 1_000_000 + found["nanos"] // 1000 if found else 0

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows have ids that stay when rows are moved."""
        return bool(self.message["reader_feature_flags"] & flags.STABLE_ROW_IDS)

    @property
    def transaction_position(self) -> int | None:
        """Where the transaction is in the file, None if it is not there."""
        found: int | None = self.message["transaction_section"]
        earlier: int | None = self.message["earlier_transaction_section"]
        return earlier if found is None else found


def field_of(message: Mapping[str, Any]) -> LanceField:
    """Return the field that a decoded message represents, without children."""
    metadata = dict(message["metadata"])
    if message["extension_name"]:
        metadata.setdefault("ARROW:extension:name", message["extension_name"].encode())
    position = message["dictionary"]
    return LanceField(
        message["id"],
        message["parent_id"],
        message["name"],
        message["logical_type"],
        message["nullable"],
        metadata,
        (position["offset"], position["length"]) if position and position["length"] else None,
        (),
        message["encoding"],
        message["storage_class"],
        _position(message, "primary"),
        _position(message, "clustering"),
    )


def _position(message: Mapping[str, Any], key: str) -> int:
    position: int = message[f"unenforced_{key}_key_position"]
    return position or (-1 if message[f"unenforced_{key}_key"] else 0)


def parse_manifest(data: bytes | memoryview, path: str) -> Manifest:
    """Parse the bytes of a manifest file.

    Parameters
    ----------
    data : bytes-like
        The whole file.
    path : str
        The file, for errors.

    Raises
    ------
    CorruptTableError
        If it is cut or damaged, or contradicts itself.
    UnsupportedFeatureError
        For a feature flag, or a version of data files, that is not supported.
    SchemaError
        For a schema that is too deep.
    """
    view = memoryview(data).cast("B")
    start, end = _body(view, path)
    body = view[start:end]
    try:
        rest, columns = split_manifest(body)
        message = decode("Manifest", rest, f"Manifest {path}")
        reader, writer = message["reader_feature_flags"], message["writer_feature_flags"]
        flags.check_readable(reader, writer, path)
        fragments = fragments_of(columns, path)
        fields = field_tree(field_of(f) for f in message.pop("fields"))
    except CorruptTableError as e:
        raise e if path in e.message else _damaged(path, str(e)) from None
    found = Manifest(
        path,
        view,
        body,
        message,
        fields,
        fragments,
        _dataset_version(message, fragments, path),
        {
            b["id"]: BasePath(b["id"], _without_store(b["path"]), b["is_dataset_root"], b["name"])
            for b in message["base_paths"]
        },
        _is_after(message, _WRONG_ROWS),
        _is_after(message, _UNIQUE_IDS),
    )
    _check(found)
    return found


def _damaged(path: str, why: str) -> CorruptTableError:
    return CorruptTableError(f"Manifest {path} is damaged: {why}. Restore the file from a copy.", path=path)


def _body(view: memoryview, path: str) -> tuple[int, int]:
    if len(view) < _TAIL.size:
        raise _damaged(path, f"it has {len(view)} bytes, expected at least {_TAIL.size}")
    position, _, _, magic = _TAIL.unpack(view[-_TAIL.size :])
    if magic != b"LANC":
        raise _damaged(path, f"it ends with {magic!r}, expected b'LANC'")
    start, end = _section(view, position, path, "message")
    if end != len(view) - _TAIL.size:
        raise _damaged(path, f"its message ends at byte {end}, expected {len(view) - _TAIL.size}")
    return start, end


def _section(view: memoryview, position: int, path: str, what: str) -> tuple[int, int]:
    room = len(view) - _TAIL.size
    if position > room - 4:
        raise _damaged(path, f"its {what} begins at byte {position} of {room}")
    size = int.from_bytes(view[position : position + 4], "little")
    if size > room - 4 - position:
        raise _damaged(path, f"its {what} at byte {position} has {size} bytes, but only {room - 4 - position} follow")
    return position + 4, position + 4 + size


def read_section(data: bytes | memoryview, position: int, path: str, what: str) -> memoryview:
    """Return the bytes of a section of a manifest file, such as its indices or its transaction.

    Raises
    ------
    CorruptTableError
        If the section is not within the file.
    """
    view = memoryview(data).cast("B")
    start, end = _section(view, position, path, what)
    return view[start:end]


def file_version(major: int, minor: int, path: str) -> FileVersion:
    """Return the version of a data file that the manifest spells so.

    Raises
    ------
    UnsupportedFeatureError
        For a version that is not read.
    """
    if (major, minor) not in _FILE_VERSIONS:
        raise UnsupportedFeatureError(
            f"Manifest {path} has data files of version {major}.{minor}; versions 0.1, 2.0, 2.1 and 2.2 are read. "
            "Use a version of this library that supports it, or write the dataset in one of these versions.",
            path=path,
            feature=f"data files of version {major}.{minor}",
        )
    return _FILE_VERSIONS[major, minor]


def _dataset_version(message: Message, fragments: Fragments, path: str) -> FileVersion:
    """Return the version that data files are written in. That of the files counts more than that of data_format."""
    found = list(dict.fromkeys(file_version(x.major, x.minor, path) for x in fragments.layouts))
    listed = message["data_format"]
    if listed is not None and listed["file_format"] not in ("lance", ""):
        raise UnsupportedFeatureError(
            f"Manifest {path} has data files of the format {listed['file_format']!r}, expected 'lance'.",
            path=path,
            feature=listed["file_format"],
        )
    is_mixed = bool(message["reader_feature_flags"] & flags.MIXED_VERSIONS)
    if len(found) > 1 and not is_mixed:
        texts = " and ".join(f"{a}.{b}" for a, b in found)
        raise _damaged(
            path, f"its data files have versions {texts}, but feature flag {flags.MIXED_VERSIONS} is not set"
        )
    if found and not is_mixed:
        return found[0]
    if listed is None:
        return found[0] if found else ((2, 0) if message["writer_feature_flags"] & flags.EARLIER_V2 else (0, 1))
    if listed["version"] not in _FORMATS:
        raise UnsupportedFeatureError(
            f"Manifest {path} has the data format {listed['version']!r}; versions {', '.join(_FORMATS)} are read.",
            path=path,
            feature=f"data files of version {listed['version']}",
        )
    return _FORMATS[listed["version"]]


def _is_after(message: Message, version: tuple[int, int, int]) -> bool:
    """Whether a manifest is of a later writer; one that does not specify it may be of any."""
    writer = message["writer_version"]
    if writer is None:
        return False
    if writer["library"] != "lance":
        return True
    parts = writer["version"].split("-")[0].split(".")
    if len(parts) < 3 or not all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts[:3]):
        return True
    return tuple(int(p) for p in parts[:3]) > version


def _check(manifest: Manifest) -> None:
    fragments, path = manifest.fragments, manifest.path
    if manifest.has_stable_row_ids and (fragments.row_ids.place == NOWHERE).any():
        i = int((fragments.row_ids.place == NOWHERE).argmax())
        raise _damaged(
            path, f"fragment {fragments.id[i]} has no row ids, which feature flag {flags.STABLE_ROW_IDS} requires"
        )
    listed = distinct_numbers(np.concatenate([fragments.file_base, fragments.deletion_base]))
    bases = {int(b) for b in listed if b >= 0}
    if missing := bases - {*manifest.base_paths}:
        raise _damaged(path, f"a file refers to the base path {min(missing)}, which is not listed")
    for layout in fragments.layouts:
        if file_version(layout.major, layout.minor, path) != (0, 1) and len(layout.columns) != len(layout.fields):
            raise _damaged(
                path, f"a data file has {len(layout.fields)} fields, but {len(layout.columns)} indices of columns"
            )
