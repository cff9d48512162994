"""How data files are written: the properties of a Parquet file that callers can choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from delta_core.errors import ArgumentTypeError, InvalidArgumentError
from delta_core.runtime.arguments import check_number
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["BloomFilterProperties", "ColumnProperties", "WriterProperties", "default_level"]


class BloomFilterProperties(Struct):
    """A Parquet bloom filter.

    Parameters
    ----------
    set_bloom_filter_enabled : bool, optional
        Whether the column gets a filter.
    fpp : float, optional
        The rate of false positives, between 0 and 1.
    ndv : int, optional
        How many distinct values to expect in a row group. By default the most rows of a row group:
        ``max_row_group_size``, or 1,048,576. A filter takes a byte or two for each of them in memory until the file
        is closed; in the file it is as small as the values that it holds permit.

    Examples
    --------
    >>> bloom = BloomFilterProperties(set_bloom_filter_enabled=True, fpp=0.01)
    >>> properties = WriterProperties(column_properties={"city": ColumnProperties(bloom_filter_properties=bloom)})
    >>> write_deltalake("events", rows, writer_properties=properties)
    >>> DeltaTable("events").scan(predicate="city = 'Oslo'").count()
    2
    """

    set_bloom_filter_enabled: bool | None = None
    fpp: float | None = None
    ndv: int | None = None

    def __post_init__(self) -> None:
        if self.fpp is not None and not 0 < self.fpp < 1:
            raise InvalidArgumentError(f"Found fpp={self.fpp}, expected a number between 0 and 1.")

    def check(self) -> None:
        """Reject values that no file can be written with; calls that write do, since properties may be changed.

        Raises
        ------
        InvalidArgumentError, ArgumentTypeError
            For such a value; the latter if it is of another type.

        Examples
        --------
        >>> BloomFilterProperties(set_bloom_filter_enabled=True, ndv=0).check()
        Traceback (most recent call last):
        delta_core.errors.InvalidArgumentError: Found ndv=0, expected a whole number from 1 on.
        """
        self.__post_init__()
        _check_kind("set_bloom_filter_enabled", self.set_bloom_filter_enabled, bool)
        check_number("ndv", self.ndv, 1)


class ColumnProperties(Struct):
    """How one column is written to Parquet; None leaves the choice to the writer.

    Parameters
    ----------
    dictionary_enabled : bool, optional
        Whether values are stored in a dictionary where that is smaller.
    statistics_enabled : str, optional
        NONE, CHUNK (bounds of each row group) or PAGE (of each page too).
    bloom_filter_properties : BloomFilterProperties, optional
        The column's bloom filter.
    encoding : str, optional
        PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY or BYTE_STREAM_SPLIT, for values that
        are not in a dictionary.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> plain = ColumnProperties(dictionary_enabled=False)
    >>> write_deltalake("events", rows, writer_properties=WriterProperties(column_properties={"city": plain}))
    >>> pq.read_metadata(DeltaTable("events").file_uris()[0]).row_group(0).column(1).has_dictionary_page
    False
    """

    dictionary_enabled: bool | None = None
    statistics_enabled: str | None = None
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: str | None = None

    def check(self) -> None:
        """Reject values that no file can be written with; calls that write do, since properties may be changed.

        Raises
        ------
        InvalidArgumentError, ArgumentTypeError
            For such a value; the latter if it is of another type.

        Examples
        --------
        >>> ColumnProperties(statistics_enabled="SOME").check()
        Traceback (most recent call last):
        delta_core.errors.InvalidArgumentError: Found statistics_enabled='SOME', expected one of NONE, CHUNK, PAGE.
        """
        _check_kind("dictionary_enabled", self.dictionary_enabled, bool)
        _among("statistics_enabled", self.statistics_enabled, ("NONE", "CHUNK", "PAGE"))
        _among("encoding", self.encoding, _ENCODINGS)
        _check_kind("bloom_filter_properties", self.bloom_filter_properties, BloomFilterProperties)


class WriterProperties(Struct):
    """How data files are written to Parquet; None leaves the choice to the table's properties, then to the writer.

    Parameters
    ----------
    data_page_size_limit : int, optional
        Bytes of a data page, about.
    dictionary_page_size_limit : int, optional
        Bytes of a dictionary; further values are stored without it.
    data_page_row_count_limit : int, optional
        Rows of a data page, at most.
    write_batch_size : int, optional
        Values that the encoder takes at a time.
    max_row_group_size : int, optional
        Rows.
    compression : str, optional
        UNCOMPRESSED, SNAPPY, GZIP, BROTLI, LZ4, ZSTD or LZ4_RAW.
    compression_level : int, optional
        1 to 9 for GZIP (by default 6), 0 to 11 for BROTLI (1), 1 to 22 for ZSTD (1), 1 to 12 for LZ4 and LZ4_RAW; the
        other codecs have no levels.
    statistics_truncate_length : int, optional
        How many characters of a string's bounds go into the table's log.
    default_column_properties : ColumnProperties, optional
        Of the columns that ``column_properties`` does not name.
    column_properties : Mapping of str to ColumnProperties
        By column name, dotted for fields of structs.
    data_page_version : str, optional
        ``1.0`` or ``2.0``.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> properties = WriterProperties(compression="ZSTD", compression_level=3)
    >>> write_deltalake("events", rows, writer_properties=properties)
    >>> pq.read_metadata(DeltaTable("events").file_uris()[0]).row_group(0).column(0).compression
    'ZSTD'
    """

    data_page_size_limit: int | None = None
    dictionary_page_size_limit: int | None = None
    data_page_row_count_limit: int | None = None
    write_batch_size: int | None = None
    max_row_group_size: int | None = None
    compression: str | None = None
    compression_level: int | None = None
    statistics_truncate_length: int | None = None
    default_column_properties: ColumnProperties | None = None
    column_properties: Mapping[str, ColumnProperties] | None = None
    data_page_version: str | None = None

    def __post_init__(self) -> None:
        self._split_level()
        _among("compression", self.compression, _COMPRESSIONS)
        if self.compression is not None and self.compression_level is not None:
            _check_level(self.compression, self.compression_level)

    def check(self) -> None:
        """Reject values that no file can be written with; calls that write do, since properties may be changed.

        Raises
        ------
        InvalidArgumentError, ArgumentTypeError
            For such a value; the latter if it is of another type.

        Examples
        --------
        >>> WriterProperties(max_row_group_size=0).check()
        Traceback (most recent call last):
        delta_core.errors.InvalidArgumentError: Found max_row_group_size=0, expected a whole number from 1 on.
        """
        self.__post_init__()
        _among("data_page_version", self.data_page_version, ("1.0", "2.0"))
        for name in _NUMBERS:
            check_number(name, getattr(self, name), 1)
        _check_kind("default_column_properties", self.default_column_properties, ColumnProperties)
        _check_kind("column_properties", self.column_properties, Mapping)
        for name, each in (self.column_properties or {}).items():
            _check_kind(f"column_properties[{name!r}]", each, ColumnProperties)

    def _split_level(self) -> None:
        """Take a codec with its level, such as ``ZSTD(3)``, apart."""
        found = _CODEC_WITH_LEVEL.match(self.compression) if isinstance(self.compression, str) else None
        if found:
            self.compression, self.compression_level = found[1], int(found[2])


#: The properties of `WriterProperties` that are counts.
_NUMBERS = (
    "data_page_size_limit",
    "dictionary_page_size_limit",
    "data_page_row_count_limit",
    "write_batch_size",
    "max_row_group_size",
    "statistics_truncate_length",
)
_CODEC_WITH_LEVEL = lazy_pattern(r"(\w+)\((\d+)\)\Z")
#: The levels that each codec has; an encoder takes some others for its nearest one, or fails in the middle of a file.
_CODEC_LEVELS = {
    "GZIP": range(1, 10),
    "BROTLI": range(12),
    "ZSTD": range(1, 23),
    "LZ4": range(1, 13),
    "LZ4_RAW": range(1, 13),
}


def _check_level(codec: str, level: object) -> None:
    known = _CODEC_LEVELS.get(codec.upper())
    if known is None:
        raise InvalidArgumentError(
            f"Found compression_level={level!r} with {codec}, which has no levels. Leave the level out, or choose "
            f"{', '.join(_CODEC_LEVELS)}."
        )
    if isinstance(level, bool) or not isinstance(level, int) or level not in known:
        raise InvalidArgumentError(
            f"Found compression_level={level!r}, expected a whole number from {known[0]} to {known[-1]} for {codec}."
        )


#: PyArrow's own are 9 and 8, which take seven times as long for files that are a hundredth and a tenth smaller.
_LEVELS = {"GZIP": 6, "BROTLI": 1}


def default_level(codec: str) -> int | None:
    """Return the level of a codec if none is given, as zlib and other writers have it; None is PyArrow's."""
    return _LEVELS.get(codec.upper())


_COMPRESSIONS = ("UNCOMPRESSED", "NONE", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_ENCODINGS = ("PLAIN", "RLE", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")


def _check_kind(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise ArgumentTypeError(f"Found {name} as {type(value).__name__}, expected {kind.__name__}.")


def _among(name: str, value: str | None, allowed: Iterable[str]) -> None:
    if value is None:
        return
    _check_kind(name, value, str)
    if value.upper() not in allowed:
        raise InvalidArgumentError(f"Found {name}={value!r}, expected one of {', '.join(allowed)}.")
