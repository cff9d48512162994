"""``_last_checkpoint``: a hint that may be missing, torn, stale or wrong, and never fails a load.

Protocol: Last Checkpoint File, JSON checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from delta_core.engines.records import RangeRequest
from delta_core.errors import EngineError, IrregularFileError
from delta_core.kernel.log.names import LAST_CHECKPOINT, LOG_DIRECTORY, MOST_VERSION
from delta_core.runtime.json_text import decode_json

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage

__all__ = ["EMBEDDED", "Hint", "canonical_checksum", "format_hint", "parse_hint", "read_hint", "write_hint"]

#: The key of what the hint embeds of a V2 checkpoint.
EMBEDDED = "v2Checkpoint"
#: Lists of a V2 checkpoint that are longer are not embedded: the hint is to stay small.
EMBEDDED_LIMIT = 30
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Hint(Struct, frozen=True):
    """The content of ``_last_checkpoint``.

    Parameters
    ----------
    parts : int
        Of a multi-part checkpoint, else 0.
    embedded : dict or None
        The ``v2Checkpoint`` object: path, nonFileActions, sidecarFiles.
    trusted : bool
        False if a checksum is there and fits neither way of computing it.
    """

    version: int
    parts: int = 0
    embedded: dict[str, Any] | None = None
    trusted: bool = True


def parse_hint(data: bytes) -> Hint | None:
    """Return the hint, None if the bytes are not one.

    Parameters
    ----------
    data : bytes
        The content of ``_last_checkpoint``.
    """
    try:
        value = decode_json(data)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    version, parts, embedded = value.get("version"), value.get("parts"), value.get(EMBEDDED)
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version <= MOST_VERSION:
        return None
    checksum = value.get("checksum")
    trusted = not isinstance(checksum, str) or _fits(value, checksum)
    return Hint(
        version,
        parts if isinstance(parts, int) and not isinstance(parts, bool) and 0 < parts <= MOST_VERSION else 0,
        embedded if trusted and isinstance(embedded, dict) else None,
        trusted,
    )


def _fits(value: dict[str, Any], checksum: str) -> bool:
    try:
        return checksum in (canonical_checksum(value, sort_pairs=False), canonical_checksum(value, sort_pairs=True))
    except (UnicodeEncodeError, RecursionError):  # half of a surrogate pair; deeper than a writer's own
        return False


def read_hint(storage: Storage) -> Hint | None:
    """Read ``_last_checkpoint``; None if it is missing, is not one or can't be read. One call.

    Parameters
    ----------
    storage : Storage
        The table's store.
    """
    try:
        (data,) = storage.read([RangeRequest(f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}")])
    except (FileNotFoundError, EngineError, IrregularFileError):
        return None
    return parse_hint(bytes(data))


def write_hint(storage: Storage, value: Mapping[str, Any], *, again: bool = True) -> bool:
    """Write ``_last_checkpoint``, unless it points at a later version already, or at this one and not ``again``.

    Parameters
    ----------
    storage : Storage
        The table's store.
    value : Mapping
        The fields of the hint.
    again : bool
        Whether a hint at the same version is replaced.
    """
    present = read_hint(storage)
    if present is not None and present.trusted and present.version >= value["version"] + again:
        return False
    storage.put(f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}", format_hint(value))
    return True


def format_hint(value: Mapping[str, Any]) -> bytes:
    """Return the hint's JSON: ``version``, ``size`` and ``parts`` first, long lists left out, its checksum last.

    The checksum is left out too if readers compute it in two ways that differ here.

    Parameters
    ----------
    value : Mapping
        The fields of the hint.
    """
    out = dict(value)
    embedded = out.get(EMBEDDED)
    if isinstance(embedded, dict):
        out[EMBEDDED] = {k: v for k, v in embedded.items() if not isinstance(v, list) or len(v) <= EMBEDDED_LIMIT}
    checksum = canonical_checksum(out, sort_pairs=False)
    if checksum == canonical_checksum(out, sort_pairs=True):
        out["checksum"] = checksum
    first = {k: out.pop(k) for k in ("version", "size", "parts") if k in out}
    return json.dumps({**first, **out}, separators=(",", ":"), ensure_ascii=False).encode()


def canonical_checksum(value: dict[str, Any], sort_pairs: bool) -> str:
    """Return the MD5 of an object's canonical form, its ``checksum`` key left out.

    Parameters
    ----------
    value : dict
        The object as it was decoded from JSON.
    sort_pairs : bool
        Sort whole ``path=value`` texts, as Spark does, and not paths alone, as the protocol specifies. They differ for
        arrays of more than ten scalars.
    """
    pairs: list[tuple[str, str]] = []

    def visit(path: str, v: Any) -> None:
        if isinstance(v, dict):
            for key, item in v.items():
                visit(f"{path}+{_canonical(key)}" if path else _canonical(key), item)
        elif isinstance(v, list):
            for i, item in enumerate(v):
                visit(f"{path}+{i}", item)
        else:
            pairs.append((path, _canonical(v)))

    visit("", {k: v for k, v in value.items() if k != "checksum"})
    texts = sorted(f"{p}={t}" for p, t in pairs) if sort_pairs else [f"{p}={t}" for p, t in sorted(pairs)]
    import hashlib  # loads OpenSSL

    return hashlib.md5(",".join(texts).encode(), usedforsecurity=False).hexdigest()


def _canonical(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    return '"' + "".join(chr(b) if b in _SAFE else f"%{b:02X}" for b in value.encode()) + '"'
