"""LIKE patterns and Java's regular expressions, converted to RE2 if both mean the same, else rejected by name."""

from __future__ import annotations

import re

from delta_core.errors import ExpressionError, UnsupportedExpressionError

__all__ = ["java_regex", "java_replacement", "like_regex", "parse_like"]

#: The ends of a line for Java: its dot matches none of them, its dollar may precede the last.
_LINE_ENDS = "\n\r\u0085\u2028\u2029"
_SAME_ESCAPES = frozenset("dDwWtnrfa\\.^$|?*+()[]{}-/ \"'#&@!%,:;<=>_~`")


def parse_like(pattern: str, escape: str = "\\") -> list[str | None]:
    """Split a LIKE pattern into single characters, ``""`` for ``_`` and None for ``%``.

    Raises
    ------
    ExpressionError
        If the escape character precedes anything but ``%``, ``_`` or itself.
    """
    if len(escape) != 1:
        raise ExpressionError(f"The ESCAPE of LIKE must be one character, found {escape!r}.")
    out: list[str | None] = []
    rest = iter(pattern)
    for character in rest:
        if character == escape:
            following = next(rest, None)
            if following is None or following not in ("%", "_", escape):
                raise ExpressionError(
                    f"In the LIKE pattern {pattern!r} the escape character {escape!r} must precede %, _ or itself."
                )
            out.append(following)
        else:
            out.append(None if character == "%" else "" if character == "_" else character)
    return out


def like_regex(parts: list[str | None]) -> str:
    """Return the regular expression of a parsed LIKE pattern; it must match the whole text."""
    body = "".join(".*" if p is None else "." if p == "" else _quote(p) for p in parts)
    return rf"(?s)\A{body}\z"


def _quote(character: str) -> str:
    return "\\" + character if re.match(r"[!-/:-@\[-^`{-~]", character) else character


def java_regex(pattern: str, *, anchored_end: bool = True) -> str:
    """Translate a Java pattern to RE2.

    Parameters
    ----------
    pattern : str
        A pattern of ``java.util.regex``, as Spark takes it.
    anchored_end : bool
        Whether ``$`` may be: only if the matched text itself does not matter.

    Raises
    ------
    UnsupportedExpressionError
        If RE2 has no pattern that matches the same texts.
    """
    out: list[str] = []
    i, in_class = 0, False
    while i < len(pattern):
        c, pair = pattern[i], pattern[i : i + 2]
        if c == "\\":
            out.append(_escape(pattern, pair, in_class))
            i += 2
            continue
        if in_class:
            if c == "[" or pair == "&&":
                raise _unsupported(pattern, pair)
            in_class = c != "]"
        elif c == "[":
            in_class = True
            if pattern[i + 1 : i + 2] == "]" or pattern[i + 1 : i + 3] == "^]":
                raise _unsupported(pattern, "[]")
        elif _is_special(pattern[i : i + 3]):
            raise _unsupported(pattern, pattern[i : i + 3])
        elif c == ".":
            c = f"[^{_LINE_ENDS}]"
        elif c == "$":
            c = _end(pattern, anchored_end)
        out.append(c)
        i += 1
    return "".join(out)


def _end(pattern: str, anchored_end: bool) -> str:
    if not anchored_end:
        raise _unsupported(pattern, "$")
    return rf"(?:\r\n|[{_LINE_ENDS}])?\z"


def _escape(pattern: str, pair: str, in_class: bool) -> str:
    if len(pair) < 2 or (pair[1] not in _SAME_ESCAPES and not (pair[1] in "sS" and not in_class)):
        raise _unsupported(pattern, pair)
    # Java counts the vertical tab as a blank, RE2 does not.
    return {"\\s": r"[\s\x0b]", "\\S": r"[^\s\x0b]"}.get(pair, pair)


def _is_special(part: str) -> bool:
    """Whether a special group or a possessive quantifier begins here."""
    return (part[:2] == "(?" and part[2:] != ":") or (part[0] in "?*+}" and part[1:2] == "+")


def java_replacement(text: str) -> str:
    r"""Translate a Java replacement (``$1``, ``\$``) to RE2's (``\1``).

    Raises
    ------
    UnsupportedExpressionError
        If ``$`` has no group number after it, or ``\\`` nothing.
    """
    out: list[str] = []
    rest = iter(text)
    for c in rest:
        following = next(rest, None) if c in "\\$" else None
        if c == "\\" and following is not None:
            out.append("\\\\" if following == "\\" else following)
        elif c == "$" and following is not None and following.isdigit():
            out.append("\\" + following)
        elif c in "\\$":
            raise UnsupportedExpressionError(f"The replacement {text!r} holds {c!r} if no group number follows.")
        else:
            out.append(c)
    return "".join(out)


def _unsupported(pattern: str, part: str) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"The regular expression {pattern!r} holds {part!r}, which is not evaluated as Java does here. "
        "Rewrite it without, e.g. with like, startswith or contains.",
        pattern=pattern,
        part=part,
    )
