"""The requests in the metadata of a field about the pages that store it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from delta_core.api import InvalidArgumentError
from delta_plugins.lance.files.layouts import FULL_ZIP, MINI_BLOCK
from delta_plugins.lance.schema import LanceField

__all__ = ["Requests", "requests_of"]

_SCHEMES = {"lz4": 1, "zstd": 2}
_STRUCTURES = {"miniblock": MINI_BLOCK, "fullzip": FULL_ZIP}
_PREFIX = "lance-encoding:"


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
    """

    scheme: int
    codec: Any
    structure: int
    wants_fsst: bool
    needs_fsst: bool
    splits_bytes: bool
    run_threshold: float


def requests_of(field: LanceField) -> Requests:
    """Return the requests of a field.

    Raises
    ------
    InvalidArgumentError
        For a value that a request does not have.
    """
    texts = {
        k.removeprefix(_PREFIX): v.decode(errors="replace") for k, v in field.metadata.items() if k.startswith(_PREFIX)
    }
    name = texts.get("compression", "")
    _check(field, "compression", name, ("", "none", "fsst", *_SCHEMES))
    structure = texts.get("structural-encoding", "")
    _check(field, "structural-encoding", structure, ("", *_STRUCTURES))
    split = texts.get("bss", "auto")
    _check(field, "bss", split, ("auto", "on", "off"))
    scheme = _SCHEMES.get(name, 0)
    is_floating = field.logical_type in ("float", "double")
    return Requests(
        scheme,
        _codec(field, name, texts.get("compression-level")) if scheme else None,
        _STRUCTURES.get(structure, 0),
        name in ("", "fsst"),
        name == "fsst",
        split == "on" or (split == "auto" and is_floating),
        _threshold(field, texts),
    )


def _check(field: LanceField, key: str, found: str, expected: tuple[str, ...]) -> None:
    if found not in expected:
        listed = ", ".join(repr(e) for e in expected if e)
        raise InvalidArgumentError(
            f"The metadata of field {field.name!r} (id {field.id}) request {_PREFIX + key!r} = {found!r}, expected one "
            f"of {listed}. Change or remove the request."
        )


def _codec(field: LanceField, name: str, level: str | None) -> Any:
    if name == "lz4":
        return pa.Codec("lz4_raw")
    try:
        return pa.Codec("zstd", int(level) if level is not None else None)
    except (ValueError, pa.ArrowInvalid) as e:
        raise _not_a_number(field, "compression-level", level, "a level of zstd") from e


def _threshold(field: LanceField, texts: Mapping[str, str]) -> float:
    text = texts.get("rle-threshold", "0.5")
    try:
        found = float(text)
    except ValueError as e:
        raise _not_a_number(field, "rle-threshold", text, "a number from 0 to 1") from e
    if not 0 <= found <= 1:
        raise _not_a_number(field, "rle-threshold", text, "a number from 0 to 1")
    return found


def _not_a_number(field: LanceField, key: str, found: str | None, expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The metadata of field {field.name!r} (id {field.id}) request {_PREFIX + key!r} = {found!r}, expected "
        f"{expected}. Change or remove the request."
    )
