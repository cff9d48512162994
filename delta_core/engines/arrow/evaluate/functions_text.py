"""Functions over text and bytes. Positions and lengths count characters (code points), as Spark's do."""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.engines.arrow.evaluate.compute import CallInfo, Kernel, Maker, by_value, named, on_arrays, plain
from delta_core.engines.arrow.evaluate.result_size import check_size, text_bytes
from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions.coercion import is_integral, name_of
from delta_core.expressions.patterns import java_regex, java_replacement, like_regex, parse_like
from delta_core.schema.types import spark_name

__all__ = ["MAKERS"]

_TEXT, _INT, _LONG, _BYTES = pa.string(), pa.int32(), pa.int64(), pa.binary()


def _values(function: Callable[..., Any], result: pa.DataType) -> Maker:
    """Return the maker of a Python function that runs once a distinct value."""
    return lambda call: by_value(function, result, call.name)


# --- case and blanks -----------------------------------------------------------------------


def _change_case(ascii_name: str, function: Callable[[str], str]) -> Maker:
    # Java maps case fully (a sharp s becomes SS), as Python does and Arrow does not.
    slow = by_value(function, _TEXT)

    def kernel(x: Any) -> Any:
        is_ascii = pc.string_is_ascii(x)
        plainly = is_ascii.as_py() if isinstance(x, pa.Scalar) else pc.all(is_ascii).as_py()
        return slow(x) if plainly is False else getattr(pc, ascii_name)(x)

    return plain(kernel)


def _trim(call: CallInfo) -> Kernel:
    name = {"trim": "utf8_trim", "btrim": "utf8_trim", "ltrim": "utf8_ltrim", "rtrim": "utf8_rtrim"}[call.name]
    if len(call.args) == 1:
        return lambda x: getattr(pc, name)(x, characters=" ")
    method = {"utf8_trim": str.strip, "utf8_ltrim": str.lstrip, "utf8_rtrim": str.rstrip}[name]

    def trimmed(text: Any, characters: Any) -> Any:
        # an empty set of characters trims nothing, if Python's methods want at least one
        return method(text, characters) if characters else text

    # as in Spark, btrim alone has the text first
    is_first = name == "utf8_trim"
    return by_value(trimmed if is_first else lambda characters, text: trimmed(text, characters), _TEXT)


def _initcap(text: str) -> str:
    return " ".join(word[:1].upper() + word[1:].lower() for word in text.split(" "))


# --- parts ---------------------------------------------------------------------------------


def _slice(text: Any, position: int, length: int | None = None) -> Any:
    """Return ``length`` characters from a position that counts from 1, or from the end if negative."""
    start = position - 1 if position > 0 else position + len(text) if position < 0 else 0
    stop = len(text) if length is None else start + length
    return text[max(start, 0) : max(stop, 0)]


def _substring(call: CallInfo) -> Kernel:
    binary = name_of(call.inputs[0]) == "binary"
    if not call.is_constant(*range(1, len(call.args))):
        return by_value(_slice, _BYTES if binary else _TEXT)
    position, length = call.constant(1), call.constant(2) if len(call.args) > 2 else None
    start = position - 1 if position > 0 else position
    if length is not None and length <= 0:
        return lambda x, *_: pc.if_else(pc.is_null(x), x, pa.scalar(b"" if binary else "", x.type))
    stop = None if length is None else start + length
    if stop is not None and start < 0 <= stop:
        stop = None
    cut: Kernel = pc.binary_slice if binary else pc.utf8_slice_codeunits
    return lambda x, *_: cut(x, start, stop)


def _split_part(text: str, delimiter: str, part: int) -> str:
    if part == 0:
        raise ExpressionError(
            "split_part counts parts from 1, or from the end with -1; found 0.", condition="INVALID_INDEX"
        )
    parts = text.split(delimiter) if delimiter else [text]
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def _pad(name: str) -> Callable[..., str]:
    def pad(text: str, width: int, filler: str = " ") -> str:
        width = max(width, 0)
        check_size(width, name)
        missing = width - len(text)
        if missing <= 0 or not filler:
            return text[:width]
        added = (filler * (missing // len(filler) + 1))[:missing]
        return added + text if name == "lpad" else text + added

    return pad


def _repeat(text: str, times: int) -> str:
    check_size(len(text) * max(times, 0), "repeat")
    return text * max(times, 0)


def _translate(text: str, characters: str, replacements: str) -> str:
    table: dict[int, str | None] = {}
    for i, c in enumerate(characters):
        table.setdefault(ord(c), replacements[i] if i < len(replacements) else None)
    return text.translate(table)


# --- search --------------------------------------------------------------------------------


def _search(call: CallInfo) -> Kernel:
    if call.is_constant(1):
        name = {"startswith": "starts_with", "endswith": "ends_with", "contains": "match_substring"}[call.name]
        return lambda x, pattern: getattr(pc, name)(x, pattern=pattern.as_py())
    test: dict[str, Callable[[Any, Any], bool]] = {
        "startswith": lambda text, part: text.startswith(part),
        "endswith": lambda text, part: text.endswith(part),
        "contains": lambda text, part: part in text,
    }
    return by_value(test[call.name], pa.bool_())


def _like(call: CallInfo) -> Kernel:
    pattern = call.constant(1)
    escape = call.constant(2) if len(call.args) > 2 else "\\"
    if pattern is None or escape is None:
        return lambda x, *_: pa.scalar(None, pa.bool_()) if isinstance(x, pa.Scalar) else pa.nulls(len(x), pa.bool_())
    fold = call.name == "ilike"
    test = _like_test(parse_like(pattern.lower() if fold else pattern, escape))
    lower = _change_case("ascii_lower", str.lower)(call)
    return (lambda x, *_: test(lower(x))) if fold else (lambda x, *_: test(x))


def _like_test(parts: list[str | None]) -> Kernel:
    """Choose the cheapest kernel: equality, prefix, suffix, substring, or a regular expression."""
    inner = parts[parts[:1] == [None] : len(parts) - (parts[-1:] == [None])]
    if any(not p for p in inner):
        regex = like_regex(parts)
        return lambda x: pc.match_substring_regex(x, pattern=regex)
    text = "".join(p or "" for p in inner)
    before, after = parts[:1] == [None], parts[-1:] == [None]
    if not before and not after:
        return lambda x: pc.equal(x, text)
    name = "match_substring" if before and after else "ends_with" if before else "starts_with"
    return lambda x: getattr(pc, name)(x, pattern=text)


def _rlike(call: CallInfo) -> Kernel:
    pattern = call.constant(1)
    if pattern is None:
        return lambda x, _: pa.scalar(None, pa.bool_()) if isinstance(x, pa.Scalar) else pa.nulls(len(x), pa.bool_())
    regex = _compiled(java_regex(pattern), pattern)
    return lambda x, _: pc.match_substring_regex(x, pattern=regex)


def _compiled(regex: str, pattern: str) -> str:
    try:
        pc.match_substring_regex(pa.array([""]), pattern=regex)
    except pa.ArrowInvalid as e:
        raise ExpressionError(f"The regular expression {pattern!r} is not valid: {e}", pattern=pattern) from e
    return regex


def _regexp_replace(call: CallInfo) -> Kernel:
    pattern, replacement = call.constant(1), call.constant(2)
    if pattern is None or replacement is None:
        return lambda x, *_: pc.if_else(pc.is_null(x), x, pa.scalar(None, _TEXT))
    regex, into = _compiled(java_regex(pattern, anchored_end=False), pattern), java_replacement(replacement)
    if pc.match_substring_regex(pa.scalar(""), pattern=regex).as_py():
        raise UnsupportedExpressionError(
            f"regexp_replace with {pattern!r}, which matches empty text, is not supported."
        )

    def kernel(x: Any, *_: Any) -> Any:
        if into:
            _check_replaced(x, pc.count_substring_regex(x, pattern=regex), into, "regexp_replace")
        return pc.replace_substring_regex(x, pattern=regex, replacement=into)

    return kernel


def _regexp_extract(call: CallInfo) -> Kernel:
    pattern, group = call.constant(1), call.constant(2) if len(call.args) > 2 else 1
    if pattern is None or group is None:
        return lambda x, *_: pc.if_else(pc.is_null(x), x, pa.scalar(None, _TEXT))
    regex = re.compile(java_regex(pattern, anchored_end=False), re.ASCII)
    if not 0 <= group <= regex.groups:
        raise ExpressionError(f"The pattern {pattern!r} has {regex.groups} groups; group {group} was requested.")

    def extract(text: str) -> str:
        match = regex.search(text)
        return (match[group] or "") if match else ""

    found = by_value(extract, _TEXT)
    return lambda x, *_: found(x)


def _replace(call: CallInfo) -> Kernel:
    if call.is_constant(*range(1, len(call.args))) and call.constant(1):
        part, into = call.constant(1), call.constant(2) if len(call.args) > 2 else ""

        def kernel(x: Any, *_: Any) -> Any:
            _check_replaced(x, pc.count_substring(x, pattern=part), into, "replace")
            return pc.replace_substring(x, pattern=part, replacement=into)

        return kernel

    def replace(text: str, part: str, into: str = "") -> str:
        if not part:
            return text
        check_size(text.count(part) * len(into), "replace")
        return text.replace(part, into)

    return by_value(replace, _TEXT, "replace")


def _check_replaced(x: Any, counts: Any, into: str, name: str) -> None:
    """Check the size of a text after ``counts`` parts are replaced with ``into``, which may repeat parts of a match."""
    found = counts if isinstance(x, pa.Scalar) else pc.sum(counts)
    repeats = len(re.findall(r"\\\d", into)) if name == "regexp_replace" else 0
    check_size((found.as_py() or 0) * len(into.encode()) + text_bytes(x, 1) * (1 + repeats), name)


# --- joining -------------------------------------------------------------------------------


def _check_joined(values: Sequence[Any], name: str) -> None:
    rows = next((len(v) for v in values if not isinstance(v, pa.Scalar)), 1)
    check_size(sum(text_bytes(v, rows) for v in values), name)


def _concat(*values: Any) -> Any:
    _check_joined(values, "concat")
    return pc.binary_join_element_wise(*values, "", null_handling="emit_null")


def _concat_ws(separator: Any, *values: Any) -> Any:
    _check_joined([*values, *[separator] * (len(values) - 1)], "concat_ws")
    out = pa.nulls(len(separator), _TEXT)
    for value in values:
        # Not null_handling="skip", which drops the rows if all are null.
        joined = pc.binary_join_element_wise(out, value, separator, null_handling="emit_null")
        out = pc.coalesce(joined, out, value)
    return pc.if_else(pc.is_null(separator), pa.scalar(None, _TEXT), pc.coalesce(out, ""))


# --- codes ---------------------------------------------------------------------------------


def _hex(call: CallInfo) -> Kernel:
    source = call.inputs[0]
    if is_integral(source):
        return by_value(lambda v: format(v & (2**64 - 1), "X"), _TEXT)
    if name_of(source) == "string":
        return by_value(lambda v: v.encode().hex().upper(), _TEXT, "hex")
    if name_of(source) == "binary":
        return by_value(lambda v: v.hex().upper(), _TEXT, "hex")
    raise UnsupportedExpressionError(f"hex of {spark_name(source)} is not supported.", function="hex")


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
    except ValueError as e:
        raise ExpressionError(
            f"unhex got {text[:50]!r}, which is not hexadecimal.", condition="CONVERSION_INVALID_INPUT"
        ) from e


def _digest(name: str, value: bytes) -> str:
    import hashlib  # OpenSSL takes longer to load than most predicates to run

    return hashlib.new(name, value, usedforsecurity=False).hexdigest()


def _sha2(value: bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if name is None else _digest(name, value)


def _chr(code: int) -> str:
    return "" if code < 0 else chr(code & 0xFF)


MAKERS: Mapping[str, Maker] = {
    "upper": _change_case("ascii_upper", str.upper), "lower": _change_case("ascii_lower", str.lower),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim"), _trim),
    "initcap": _values(_initcap, _TEXT), "reverse": named("utf8_reverse"),
    "length": named("utf8_length"), "octet_length": named("binary_length"),
    "bit_length": plain(lambda x: pc.multiply(pc.binary_length(x), pa.scalar(8, _INT))),
    "ascii": _values(lambda v: ord(v[0]) if v else 0, _INT), "chr": _values(_chr, _TEXT),
    "substring": _substring, "right": _values(lambda v, n: v[max(len(v) - n, 0) :] if n > 0 else "", _TEXT),
    **dict.fromkeys(("startswith", "endswith", "contains"), _search),
    "like": _like, "ilike": _like, "rlike": _rlike, "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
    "replace": _replace, "translate": _values(_translate, _TEXT), "split_part": _values(_split_part, _TEXT),
    "lpad": _values(_pad("lpad"), _TEXT), "rpad": _values(_pad("rpad"), _TEXT),
    "repeat": _values(_repeat, _TEXT), "instr": _values(lambda v, part: v.find(part) + 1, _INT),
    "concat": plain(_concat), "concat_ws": plain(on_arrays(_concat_ws)),
    "hex": _hex, "unhex": _values(_unhex, _BYTES), "base64": _values(_base64, _TEXT),
    "md5": _values(lambda v: _digest("md5", v), _TEXT),
    "sha1": _values(lambda v: _digest("sha1", v), _TEXT),
    "sha2": _values(_sha2, _TEXT), "crc32": _values(zlib.crc32, _LONG),
}  # fmt: skip
