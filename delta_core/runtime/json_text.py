"""JSON texts as Python values, however deep; `json.loads` ends at the interpreter's limit of recursion."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # the stubs lack it
from typing import Any

from delta_core.runtime.patterns import lazy_pattern

__all__ = ["compact_json", "decode_json", "load_json"]

#: Levels of lists and objects: those of a type of `recursion.MOST_NESTED` levels, each of which takes three, and some
#: more.
_MOST_NESTED = 10_000
_BLANKS = lazy_pattern(r"[ \t\n\r]*")
_WORD = lazy_pattern(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|NaN|-?Infinity", re.ASCII)


def decode_json(text: str | bytes) -> Any:
    """Decode JSON of the log as ``json.loads`` does, of a depth that whatever is done with the values can follow.

    Parameters
    ----------
    text : str or bytes
        The JSON text.

    Raises
    ------
    ValueError
        For text that is nested too deeply, too.
    """
    try:
        return json.loads(text)
    except RecursionError as e:  # deeper than what writes, prints or compares the value goes
        raise ValueError("it is nested too deeply") from e


def compact_json(value: Any) -> str:
    """Return a value as JSON without blanks between its parts, with characters as they are."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def load_json(text: str | bytes | bytearray | memoryview) -> Any:
    """Return the value of a JSON text; ValueError if it is none, or is nested too deep.

    Of equal keys the last one counts.
    """
    plain = bytes(text) if isinstance(text, memoryview) else text
    try:
        return json.loads(plain)
    except RecursionError:
        return _load_deep(plain if isinstance(plain, str) else plain.decode(json.detect_encoding(plain)))


def _load_deep(text: str) -> Any:
    """Read a text that is nested deep, with lists and objects under construction on a list."""
    at = _skip(text, 0)
    open_: list[tuple[Any, str | None]] = []  # a list, or an object and the key whose value comes next
    while True:
        character = text[at : at + 1]
        if character and character in "[{":
            holder: Any = [] if character == "[" else {}
            if len(open_) == _MOST_NESTED:
                raise ValueError(f"nested more than {_MOST_NESTED} levels deep")
            at = _skip(text, at + 1)
            if text[at : at + 1] != ("]" if character == "[" else "}"):
                key, at = (None, at) if character == "[" else _key(text, at)
                open_.append((holder, key))
                continue
            value, at = holder, at + 1
        else:
            value, at = _plain_value(text, at)
        ended, value, at = _close(text, at, open_, value)
        if ended:
            return value


def _plain_value(text: str, at: int) -> tuple[Any, int]:
    """Return the string, number or word at a place, and where it ends."""
    if text[at : at + 1] == '"':
        value: tuple[str, int] = scanstring(text, at + 1, True)
        return value
    found = _WORD.match(text, at)
    if found is None:
        raise json.JSONDecodeError("Expecting value", text, at)
    return json.loads(found[0]), found.end()


def _close(text: str, at: int, open_: list[tuple[Any, str | None]], value: Any) -> tuple[bool, Any, int]:
    """Add a value to its list or object, and each list or object that ends after it to its own.

    Returns whether the text ends there, the outermost value that ended, and where the next value begins.
    """
    while open_:
        at = _skip(text, at)
        holder, key = open_.pop()
        if key is None:
            holder.append(value)
        else:
            holder[key] = value
        following = text[at : at + 1]
        at = _skip(text, at + 1)
        if following == ",":
            key, at = (None, at) if key is None else _key(text, at)
            open_.append((holder, key))
            return False, value, at
        if following != ("]" if key is None else "}"):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        value = holder
    at = _skip(text, at)
    if at != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return True, value, at


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
    key, at = scanstring(text, at + 1, True)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    return key, _skip(text, at + 1)
