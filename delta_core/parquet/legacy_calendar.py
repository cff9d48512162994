"""Dates and timestamps that old Spark wrote in the hybrid Julian and Gregorian calendar.

Spark before 3.0 (INT96: before 3.1), and later releases on request, wrote days before 1582-10-15 by the Julian
calendar. The file's metadata reports. Dates are rebased exactly; timestamps are, if the writer's zone was
UTC. Instants before 1900 of another or an unknown zone depend on that zone's history in Java and are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.kernels import compute as pc

__all__ = ["Calendar", "read_calendar"]

_VERSION = b"org.apache.spark.version"
_DATETIME = b"org.apache.spark.legacyDateTime"
_INT96 = b"org.apache.spark.legacyINT96"
_ZONE = b"org.apache.spark.timeZone"
_UTC = frozenset(("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "UCT", "Zulu", "Etc/UCT", "+00:00", ""))
#: 1582-10-15, the first day of the Gregorian calendar.
_FIRST_DAY = -141_427
_DAY_US = 86_400_000_000
#: 1900-01-01T00:00:00Z: from here on the calendars agree in every zone.
_SAFE_US = -2_208_988_800_000_000


class Calendar(Struct, frozen=True):
    """The values of a file that are in the hybrid calendar.

    Parameters
    ----------
    datetimes : bool
        Dates and 64-bit timestamps are.
    int96 : frozenset of int
        The Parquet columns of type INT96 that are.
    int96_columns : frozenset of int
        Every INT96 column.
    zone : str or None
        The writer's zone, if the file reports.
    """

    datetimes: bool
    int96: frozenset[int]
    int96_columns: frozenset[int]
    zone: str | None

    def rebase(self, found: pa.DataType, wanted: pa.DataType, leaf: int) -> Callable[[pa.Array], pa.Array] | None:
        """Return the rebasing of one column, None if it needs none. Times without a zone never do."""
        if pa.types.is_date(found):
            return _rebase_dates if self.datetimes else None
        if not pa.types.is_timestamp(found) or not pa.types.is_timestamp(wanted) or wanted.tz is None:
            return None
        legacy = leaf in self.int96 if leaf in self.int96_columns else self.datetimes
        return self._rebase_timestamps if legacy else None

    def _rebase_timestamps(self, a: pa.Array) -> pa.Array:
        micros = a.view(pa.int64())
        low = pc.min(micros).as_py()
        if low is None or low >= _SAFE_US:
            return a
        if self.zone not in _UTC:
            raise ValueError(
                f"the file has instants before 1900 in the hybrid Julian calendar of zone {self.zone or 'unknown'}; "
                "rewrite it with a current Spark"
            )
        values = np.asarray(pc.fill_null(micros, 0))
        days, rest = np.divmod(values, _DAY_US)
        return pa.array(_gregorian(days) * _DAY_US + rest, mask=_mask(a)).view(a.type)


def read_calendar(metadata: Mapping[bytes, bytes] | None, int96: frozenset[int]) -> Calendar | None:
    """Return what a file's key-value metadata specifies, None if nothing is in the hybrid calendar."""
    if not metadata:
        return None
    match = re.match(rb"(\d+)\.(\d+)", metadata.get(_VERSION, b""))
    # Files without a version are taken as they are, as Spark does by default.
    version = (int(match[1]), int(match[2])) if match else (99, 0)
    datetimes = version < (3, 0) or (match is not None and _DATETIME in metadata)
    legacy96 = int96 if version < (3, 1) or (match is not None and _INT96 in metadata) else frozenset[int]()
    if not datetimes and not legacy96:
        return None
    zone = metadata.get(_ZONE)
    return Calendar(datetimes, legacy96, int96, None if zone is None else zone.decode())


def _mask(a: pa.Array) -> np.ndarray | None:
    return np.asarray(pc.is_null(a)) if a.null_count else None


def _rebase_dates(a: pa.Array) -> pa.Array:

    days = pc.cast(a, pa.date32()).view(pa.int32())
    low = pc.min(days).as_py()
    if low is None or low >= _FIRST_DAY:
        return a
    values = np.asarray(pc.fill_null(days, 0)).astype(np.int64)
    return pc.cast(pa.array(_gregorian(values).astype(np.int32), mask=_mask(a)).view(pa.date32()), a.type)


def _gregorian(days: np.ndarray) -> np.ndarray:
    """Return the days of the same year, month and day in the proleptic Gregorian calendar.

    A 29 February that only the Julian calendar has becomes 1 March.
    """
    shift = days + 719_470  # days since 0000-03-01 of the Julian calendar
    cycle, day_of_cycle = np.divmod(shift, 1461)
    year_of_cycle = np.minimum(day_of_cycle // 365, 3)
    day_of_year = day_of_cycle - year_of_cycle * 365
    year = cycle * 4 + year_of_cycle
    return np.where(days < _FIRST_DAY, year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719_468, days)
