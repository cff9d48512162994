"""The requests in the metadata of a field about the pages that store it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from delta_core.api import InvalidArgumentError
from delta_plugins.lance.files.layouts import FULL_ZIP, MINI_BLOCK
from delta_plugins.lance.files.leaves import ValueLayout, is_leaf
from delta_plugins.lance.schema import LanceField, is_packed

__all__ = ["Requests", "check_array_requests", "check_requests", "requests_of"]

_SCHEMES = {"lz4": 1, "zstd": 2}
_STRUCTURES = {"miniblock": MINI_BLOCK, "fullzip": FULL_ZIP}
_PREFIX = "lance-encoding:"
_KEYS = (
    "compression",
    "compression-level",
    "structural-encoding",
    "bss",
    "rle-threshold",
    "minichunk-size",
    "dict-divisor",
    "dict-size-ratio",
    "dict-values-compression",
    "dict-values-compression-level",
)
#: Keys that are no requests for pages: those of structs and of blobs.
_KINDS = (
    "packed",
    "blob",
    "blob-inline-size-threshold",
    "blob-dedicated-size-threshold",
    "blob-pack-file-size-threshold",
)
#: Bytes of values in a mini-block; those of version 2.1 have at most 32 KiB with their levels.
_MOST_CHUNK = {(2, 1): 8 << 10, (2, 2): 1 << 20}


class Requests(NamedTuple):
    """How the values of a field are stored, as far as its metadata specify it.

    Parameters
    ----------
    scheme : int
        0 none, 1 lz4, 2 zstd.
    codec : pyarrow.Codec, optional
        That of the scheme.
    structure : int
        0 as the values suggest, 1 mini-blocks, 3 full-zip.
    wants_fsst, needs_fsst : bool
        Whether texts may, and have to, be stored as symbols.
    splits_bytes : bool
        Whether the bytes of floating-point numbers are stored in planes if they are compressed.
    run_threshold : float
        Runs are stored if there are at most this many for each value.
    chunk_bytes : int
        The bytes of values that a mini-block has, about; at most 4,096 values.
    wants_dictionary : bool
        Whether compressed values may have a dictionary too.
    dictionary_divisor : float
        A page has a dictionary only if it has at least this many values for each distinct one.
    dictionary_ratio : float
        And if codes and dictionary have at most this many bytes for each byte of the values; 0 = as the values suggest.
    dictionary_scheme : int
        The compression of dictionaries, as of ``scheme``.
    dictionary_codec : pyarrow.Codec, optional
        That of the scheme.
    keys : tuple of str
        The requests that there are.
    """

    scheme: int
    codec: Any
    structure: int
    wants_fsst: bool
    needs_fsst: bool
    splits_bytes: bool
    run_threshold: float
    chunk_bytes: int
    wants_dictionary: bool
    dictionary_divisor: float
    dictionary_ratio: float
    dictionary_scheme: int
    dictionary_codec: Any
    keys: tuple[str, ...]


def requests_of(field: LanceField) -> Iterator[Requests]:
    """Yield the requests of the leaves of a field, in the order of `leaves.leaves_of`.

    The requests of a field hold for the fields below it, which can have others.

    Raises
    ------
    InvalidArgumentError
        For a request that is not known, a value that it does not have, or a field that it does not apply to.
    """
    return _requests_below(field, {})


def _requests_below(field: LanceField, above: Mapping[str, str]) -> Iterator[Requests]:
    own = {
        k.removeprefix(_PREFIX): v.decode(errors="replace") for k, v in field.metadata.items() if k.startswith(_PREFIX)
    }
    for key, found in own.items():
        if key not in (*_KEYS, *_KINDS):
            listed = ", ".join(map(repr, _KEYS))
            raise _rejected(field, key, found, f"one of the requests {listed}")
    texts = {**above, **{k: v for k, v in own.items() if k not in _KINDS}}
    if not is_leaf(field):
        for child in field.children:
            yield from _requests_below(child, texts)
        return
    if is_packed(field):
        for child in field.children:
            for key in (k for k in child.metadata if k.startswith(_PREFIX)):
                expected = f"no request within the packed struct {field.name!r}"
                raise _rejected(
                    child, key.removeprefix(_PREFIX), child.metadata[key].decode(errors="replace"), expected
                )
    yield _requests(field, texts)


def _requests(field: LanceField, texts: Mapping[str, str]) -> Requests:
    name = texts.get("compression", "")
    _check(field, "compression", name, ("", "none", "fsst", *_SCHEMES))
    structure = texts.get("structural-encoding", "")
    _check(field, "structural-encoding", structure, ("", *_STRUCTURES))
    split = texts.get("bss", "auto")
    _check(field, "bss", split, ("auto", "on", "off"))
    of_dictionary = texts.get("dict-values-compression", name if name in _SCHEMES else "")
    _check(field, "dict-values-compression", of_dictionary, ("", "none", *_SCHEMES))
    scheme, dictionary_scheme = _SCHEMES.get(name, 0), _SCHEMES.get(of_dictionary, 0)
    level = texts.get("compression-level")
    if level is not None and name != "zstd":
        raise _rejected(field, "compression-level", level, "a level only with the compression 'zstd'")
    dictionary_level = texts.get("dict-values-compression-level", level if of_dictionary == name else None)
    if dictionary_level is not None and of_dictionary != "zstd":
        key = "dict-values-compression-level"
        raise _rejected(field, key, dictionary_level, "a level only with dictionaries that are compressed with 'zstd'")
    is_floating = field.logical_type in ("float", "double")
    return Requests(
        scheme,
        _codec(field, "compression-level", name, level) if scheme else None,
        _STRUCTURES.get(structure, 0),
        name in ("", "fsst"),
        name == "fsst",
        split == "on" or (split == "auto" and is_floating),
        _number(field, texts, "rle-threshold", 0.5, 0, 1),
        int(_number(field, texts, "minichunk-size", 8 << 10, 1, 1 << 30)),
        any(k.startswith("dict-") for k in texts),
        _number(field, texts, "dict-divisor", 4, 1, 1 << 30),
        _number(field, texts, "dict-size-ratio", 0, 0, 1),
        dictionary_scheme,
        _codec(field, "dict-values-compression-level", of_dictionary, dictionary_level) if dictionary_scheme else None,
        tuple(texts),
    )


def check_requests(field: LanceField, requests: Requests, layout: ValueLayout, version: tuple[int, int]) -> None:
    """Reject requests that the pages of a version can't fulfil for values of a type.

    Raises
    ------
    InvalidArgumentError
        If there is one.
    """
    is_text = not layout.bits and not layout.children
    if layout.children and not layout.bits:
        for key in requests.keys:
            if key != "structural-encoding" or requests.structure == MINI_BLOCK:
                raise _rejected(field, key, "…", "only 'fullzip' for packed structs with values of any length")
    has_codes = field.logical_type.startswith("dict:")
    if requests.needs_fsst and (not is_text or has_codes):
        raise _rejected(field, "compression", "fsst", "'lz4' or 'zstd', since only strings and binary have symbols")
    if requests.structure == FULL_ZIP and (layout.bits == 1 or has_codes):
        what = "dictionaries" if has_codes else "values of one bit"
        raise _rejected(field, "structural-encoding", "fullzip", f"'miniblock' for {what}")
    if requests.structure == FULL_ZIP and requests.scheme and layout.bits:
        expected = "'miniblock' for compressed values of a fixed size"
        raise _rejected(field, "structural-encoding", "fullzip", expected)
    most = _MOST_CHUNK.get(version, 0)
    if requests.chunk_bytes > most:
        raise _rejected(field, "minichunk-size", str(requests.chunk_bytes), f"at most {most} in files of the version")
    width = layout.bits // 8 * math.prod(layout.list_sizes)
    if version < (2, 2) and width > most and (requests.scheme or requests.structure == MINI_BLOCK):
        key = "compression" if requests.scheme else "structural-encoding"
        raise _rejected(field, key, f"for values of {width} bytes", f"values of at most {most} bytes in version 2.1")


def check_array_requests(field: LanceField, requests: Requests, layout: ValueLayout) -> None:
    """Reject requests that pages of version 2.0 can't fulfil.

    Raises
    ------
    InvalidArgumentError
        If there is one.
    """
    for key in requests.keys:
        if not key.startswith("compression"):
            raise _rejected(field, key, "…", "only 'compression' in files of version 2.0")
    if requests.needs_fsst:
        raise _rejected(field, "compression", "fsst", "'lz4' or 'zstd' in files of version 2.0")
    has_codes = field.logical_type.startswith("dict:")
    if requests.scheme and (layout.children or has_codes or layout.bits == 1):
        what = "packed structs" if layout.children else "dictionaries" if has_codes else "values of one bit"
        raise _rejected(field, "compression", "…", f"no compression of {what} in files of version 2.0")


def _check(field: LanceField, key: str, found: str, expected: tuple[str, ...]) -> None:
    if found not in expected:
        raise _rejected(field, key, found, "one of " + ", ".join(repr(e) for e in expected if e))


def _codec(field: LanceField, key: str, name: str, level: str | None) -> Any:
    if name == "lz4":
        return pa.Codec("lz4_raw")
    try:
        return pa.Codec("zstd", int(level) if level is not None else None)
    except (ValueError, pa.ArrowInvalid) as e:
        raise _rejected(field, key, str(level), "a level of zstd") from e


def _number(field: LanceField, texts: Mapping[str, str], key: str, default: float, least: float, most: float) -> float:
    if key not in texts:
        return default
    try:
        found = float(texts[key])
    except ValueError:
        found = math.nan
    if not least <= found <= most:
        raise _rejected(field, key, texts[key], f"a number from {least} to {most}")
    return found


def _rejected(field: LanceField, key: str, found: str, expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The metadata of field {field.name!r} (id {field.id}) request {_PREFIX + key!r} = {found!r}, expected "
        f"{expected}. Change the request; of a dataset that is there, remove it with "
        f"set_config(field_metadata={{{field.name!r}: {{{_PREFIX + key!r}: None}}}})."
    )
