"""Table properties: the known ones typed and checked, all others kept as they are.

A property's text is what ``metaData.configuration`` holds. Properties that switch a feature on belong to the feature's
plugin; here are those that the core acts on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from delta_core.errors import InvalidArgumentError

__all__ = [
    "MANIFESTS",
    "PROPERTIES",
    "TableProperty",
    "check_properties",
    "is_same_value",
    "normalize_properties",
    "parse_columns",
    "parse_duration_ms",
    "parse_size",
    "read_property",
]

#: Whether each commit writes symlink manifests.
MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"


class TableProperty(Struct, frozen=True):
    """A property that is known.

    Parameters
    ----------
    parse : function(str) -> value
        Raises ValueError, with what was expected as its message.
    default : object
        The value if the table does not set it.
    settable : tuple, optional
        The values that may be set, if that are fewer than tables may have.
    """

    name: str
    parse: Callable[[str], Any]
    default: Any = None
    settable: tuple[Any, ...] | None = None


def read_property(configuration: Mapping[str, str], name: str) -> Any:
    """Return a known property's typed value, or its default.

    Parameters
    ----------
    configuration : Mapping of str to str
        The table properties.
    name : str
        A property that the core defines.

    Raises
    ------
    InvalidArgumentError
        If the text is no value of it.
    """
    known = PROPERTIES[name]
    text = configuration.get(name)
    return known.default if text is None else _parse(known, text)


def normalize_properties(configuration: Mapping[str, str], declared: Iterable[str] = ()) -> dict[str, str]:
    """Return properties as they are stored: known names spelled as the protocol does, every known value checked.

    Parameters
    ----------
    configuration : Mapping of str to str
        The properties as they were passed.
    declared : iterable of str
        Names that plugins declare; they are spelled so too.

    Raises
    ------
    InvalidArgumentError
        For a property that is given twice in different spellings.

    Notes
    -----
    Names that are unknown stay as they are: they are the user's own.
    """
    spelled = {name.lower(): name for name in (*declared, *PROPERTIES)}
    found: dict[str, str] = {}
    for given, text in configuration.items():
        name = spelled.get(given.lower(), given)
        if name in found and found[name] != text:
            raise InvalidArgumentError(
                f"Table property {name} is given twice: {found[name]!r} and {text!r}.", property=name
            )
        found[name] = text
    check_properties(found)
    return found


def check_properties(configuration: Mapping[str, str]) -> None:
    """Reject a known property with a value that it can't have, naming both.

    Raises
    ------
    InvalidArgumentError
        For a value that the property can't have.
    """
    for name, text in configuration.items():
        if not isinstance(text, str):
            raise InvalidArgumentError(f"Table property {name} is {text!r}; expected text.", property=name)
        known = _known(name)
        if known is None:
            continue
        value = _parse(known, text)
        if known.settable is not None and value not in known.settable:
            raise InvalidArgumentError(
                f"Table property {name} is {text!r}; expected {' or '.join(map(str, known.settable))}, the only value "
                "that Delta on Spark lets be set. Leave it out for the default.",
                property=name,
                value=text,
            )


def is_same_value(name: str, one: str, other: str) -> bool:
    """Return whether two texts are the same value of a property, such as ``true`` and ``TRUE`` of a flag."""
    known = _known(name)
    return one == other or (known is not None and bool(_parse(known, one) == _parse(known, other)))


def _known(name: str) -> TableProperty | None:
    known = PROPERTIES.get(name)
    return TableProperty(name, _boolean) if known is None and name.startswith("delta.enable") else known


def _parse(known: TableProperty, text: str) -> Any:
    try:
        return known.parse(text.strip())
    except ValueError as e:
        raise InvalidArgumentError(
            f"Table property {known.name} is {text!r}; expected {e}.", property=known.name, value=text
        ) from None


# --- kinds of values -----------------------------------------------------------------------


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _integer(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"[+-]?\d+", text, re.ASCII) is None or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} on")
        return int(text)

    return parse


def _one_of(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for value in values:
            if value.lower() == text.lower():
                return value
        raise ValueError(f"one of {', '.join(values)}")

    return parse


def _format_version(text: str) -> str:
    if re.fullmatch(r"[12](\.\d{1,9}){2}", text.strip(), re.ASCII) is None:
        raise ValueError("a version of Parquet such as 1.0.0 or 2.12.0")
    return text.strip()


_UNITS = {"": 1, "b": 1, **{u + s: 1024**p for p, u in enumerate("kmgt", 1) for s in ("", "b")}}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``134217728``, ``128mb`` or ``1g``.

    Raises
    ------
    ValueError
        For text that is not a size above 0; the message is what was expected.
    """
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower(), re.ASCII)
    if match is None or match[2] not in _UNITS or int(match[1]) == 0:
        raise ValueError("a size above 0 such as 134217728, 128mb or 1g")
    size: int = int(match[1]) * _UNITS[match[2]]
    return size


_DURATION_MS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}


def parse_duration_ms(text: str) -> int:
    """Return the ms of an interval such as ``interval 1 week`` or ``2 days 12 hours``; ValueError for other text.

    Months and years have no fixed length and are rejected, as Spark does.

    Raises
    ------
    ValueError
        For text that is not an interval; the message is what was expected.
    """
    expected = "an interval such as 'interval 7 days' (weeks, days, hours, minutes, seconds, milliseconds)"
    words = re.sub(r"^interval\s+", "", text.strip().lower()).split()
    if not words or len(words) % 2:
        raise ValueError(expected)
    total = 0
    for number, unit in zip(words[::2], words[1::2], strict=True):
        length = _DURATION_MS.get(unit.removesuffix("s"))
        if length is None or re.fullmatch(r"\d+", number, re.ASCII) is None:
            raise ValueError(expected)
        total += int(number) * length
    return total


def parse_columns(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the column paths of a list such as ``a, b.c, `d.e`.f``.

    Parameters
    ----------
    text : str
        Names, separated by commas.

    Raises
    ------
    ValueError
        For text that is not a list of columns; the message is what was expected.
    """
    paths: list[tuple[str, ...]] = []
    rest = text.strip()
    while rest:
        path: list[str] = []
        while True:
            match = re.match(r"\s*(?:`((?:[^`]|``)+)`|([^`.,]+))\s*", rest)
            if match is None:
                raise ValueError("column names joined by commas, names with dots or commas in backticks")
            path.append(match[1].replace("``", "`") if match[1] is not None else match[2].strip())
            rest = rest[match.end() :]
            if not rest.startswith("."):
                break
            rest = rest[1:]
        paths.append(tuple(path))
        if rest and not rest.startswith(","):
            raise ValueError("column names joined by commas, names with dots or commas in backticks")
        rest = rest[1:].strip()
    return tuple(paths)


_CODECS = ("none", "uncompressed", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "zstd")
#: By name.
PROPERTIES: Mapping[str, TableProperty] = {
    p.name: p
    for p in (
        TableProperty("delta.autoOptimize.autoCompact", _one_of("true", "false", "auto", "legacy")),
        TableProperty("delta.autoOptimize.optimizeWrite", _boolean),
        TableProperty("delta.checkpoint.writeStatsAsJson", _boolean, True),
        TableProperty("delta.checkpoint.writeStatsAsStruct", _boolean, True),
        TableProperty("delta.checkpointInterval", _integer(1), 10),
        TableProperty("delta.checkpointPolicy", _one_of("classic", "v2"), "classic"),
        TableProperty("delta.dataSkippingNumIndexedCols", _integer(-1), 32),
        TableProperty("delta.dataSkippingStatsColumns", parse_columns),
        TableProperty("delta.dataSkippingStringPrefixLength", _integer(0), 32),
        TableProperty("delta.deletedFileRetentionDuration", parse_duration_ms, 7 * 86_400_000),
        TableProperty("delta.dropFeatureTruncateHistory.retentionDuration", parse_duration_ms, 86_400_000),
        TableProperty("delta.enableExpiredLogCleanup", _boolean, True),
        TableProperty(
            "delta.isolationLevel",
            _one_of("Serializable", "WriteSerializable", "SnapshotIsolation"),
            settable=("Serializable",),
        ),
        TableProperty("delta.logRetentionDuration", parse_duration_ms, 30 * 86_400_000),
        TableProperty("delta.minReaderVersion", _integer(1)),
        TableProperty("delta.minWriterVersion", _integer(1)),
        TableProperty("delta.parquet.compression.codec", _one_of(*_CODECS), "snappy"),
        TableProperty("delta.parquet.format.version", _format_version, "1.0.0"),
        TableProperty(MANIFESTS, _boolean, False),
        TableProperty("delta.randomizeFilePrefixes", _boolean, False),
        TableProperty("delta.randomPrefixLength", _integer(1, 32), 2),
        TableProperty("delta.setTransactionRetentionDuration", parse_duration_ms),
        TableProperty("delta.targetFileSize", parse_size),
        TableProperty("delta.tuneFileSizesForRewrites", _boolean),
        TableProperty("delta.writePartitionColumnsToParquet", _boolean, False),
    )
}
