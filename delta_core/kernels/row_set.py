"""RowSet: a set of row positions in one file, the one exchange type for rows that are deleted or kept.

Deletion vectors, Spark's chunk bitmaps, Lance's deletion files and a lost attempt's rebase all speak it. The rows are
held as roaring containers of 65,536 positions each, so memory follows the number of rows and never their size.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np

from delta_core.errors import InvalidArgumentError
from delta_core.kernels._roaring import ManyRows, Rows
from delta_core.kernels.memory import fresh_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Buffer

__all__ = ["RowSet", "RowSets"]


class RowSet:
    """An immutable, picklable set of row positions (0 to 2**63 - 1) in one file.

    Made by `empty`, `from_positions`, `from_mask`, `from_range` and `from_roaring`; combined with ``|``, ``&``, ``-``
    and ``^``, compared with ``==``. Every call releases the GIL while it works, and a set may be used from several
    threads at once.

    Notes
    -----
    A window (``start``, ``num_rows``) costs time in proportion to the window: a scan requires batch by batch.
    """

    __slots__ = ("_rows",)
    _rows: Rows

    def __init__(self) -> None:
        self._rows = Rows()

    @classmethod
    def _of(cls, rows: Rows) -> RowSet:
        out = cls.__new__(cls)
        out._rows = rows
        return out

    @classmethod
    def empty(cls) -> RowSet:
        """Return the set without rows."""
        return cls()

    @classmethod
    def from_positions(cls, positions: ArrayLike) -> RowSet:
        """Build a set from positions in any order; repeated ones count once.

        Parameters
        ----------
        positions : integer array, **shape (n,)**
            Ascending positions are taken as they are, others are sorted first.

        Raises
        ------
        InvalidArgumentError
            Not one-dimensional, not integers, negative, or beyond 2**63 - 1.
        """
        array = np.asarray(positions)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidArgumentError(
                f"row positions are a one-dimensional array of integers, not {array.dtype} of shape {array.shape}"
            )
        if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int64).max):
            raise InvalidArgumentError(f"row positions lie within 0 and 2**63 - 1, not {array.min()} to {array.max()}")
        array = np.ascontiguousarray(array, np.int64)
        rows = Rows.from_positions(array)
        if rows is None:
            rows = Rows.from_positions(np.unique(array))
        assert rows is not None
        return cls._of(rows)

    @classmethod
    def from_mask(cls, mask: ArrayLike) -> RowSet:
        """Build the set of the indices at which a bool (or uint8) array of **shape (num_rows,)** is true.

        Parameters
        ----------
        mask : bool or uint8, **shape (num_rows,)**
            Other than 0: the row is in the set. Not kept.

        Raises
        ------
        InvalidArgumentError
            For an array of another type or shape.
        """
        array = np.asarray(mask)
        if array.ndim != 1 or (array.size and array.dtype not in (np.bool_, np.uint8)):
            raise InvalidArgumentError(
                f"a mask is a one-dimensional array of bool or uint8, not {array.dtype} of shape {array.shape}"
            )
        return cls._of(Rows.from_mask(np.ascontiguousarray(array).view(np.uint8)))

    @classmethod
    def from_range(cls, start: int, stop: int) -> RowSet:
        """Build the set of the positions from `start` up to, not including, `stop`.

        Parameters
        ----------
        start, stop : int
            From 0 to 2**63 - 1; an empty range if ``stop <= start``.
        """
        return cls._of(Rows.from_range(_position(start), _position(stop)))

    @classmethod
    def from_roaring(cls, data: Buffer, bits: int = 64, *, trailing: bool = False) -> RowSet:
        """Read portable roaring bytes.

        Parameters
        ----------
        data : bytes-like
            Copied: nothing of the caller's buffer is kept.
        bits : 64 or 32
            64: a uint64 count of buckets, each a uint32 key and a 32-bit bitmap. 32: one bitmap.
        trailing : bool
            Accept bytes after the end of the set.

        Raises
        ------
        CorruptTableError
            The bytes break the format: cut off, out of order, counts that don't add up, a key with its top bit set,
            bytes left over. ``offset`` specifies where.

        Protocol
        --------
        Deletion Vector Format (the bitmap without its magic number)
        """
        return cls._of(Rows.from_roaring(data, bits, trailing))

    def to_roaring(self, bits: int = 64) -> bytes:
        """Return portable roaring bytes, each container in the kind that takes the fewest bytes.

        Parameters
        ----------
        bits : int
            64 for the format of deletion vectors, 32 for one roaring bitmap.

        Raises
        ------
        InvalidArgumentError
            ``bits=32`` and a position of 2**32 or more.
        """
        return self._rows.to_roaring(bits)

    def __reduce__(self) -> tuple[Callable[..., RowSet], tuple[bytes]]:
        return RowSet.from_roaring, (self.to_roaring(),)

    # --- what it holds -------------------------------------------------------------------------

    @property
    def cardinality(self) -> int:
        """Number of positions."""
        return self._rows.cardinality

    @property
    def min(self) -> int | None:
        """Lowest position, None when empty."""
        return self._rows.min if self else None

    @property
    def max(self) -> int | None:
        """Highest position, None when empty. Below the file's row count, or the set isn't the file's."""
        return self._rows.max if self else None

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self._rows.nbytes

    def __len__(self) -> int:
        return self._rows.cardinality

    def __bool__(self) -> bool:
        return self._rows.cardinality > 0

    def __contains__(self, position: object) -> bool:
        try:
            at = operator.index(position)  # type: ignore[arg-type]  # raises on others
        except TypeError:
            return False
        return 0 <= at < 2**63 - 1 and self._rows.num_between(at, at + 1) == 1

    def num_between(self, start: int, stop: int) -> int:
        """Count the positions in [`start`, `stop`).

        Parameters
        ----------
        start, stop : int
            From 0 to 2**63 - 1.
        """
        return self._rows.num_between(_position(start), _position(stop))

    def check_fits(self, num_rows: int) -> None:
        """Check that every position is below `num_rows`, the number of rows of the file.

        Parameters
        ----------
        num_rows : int
            Rows of the file.

        Raises
        ------
        CorruptTableError
            A position lies beyond the file.
        """
        self._rows.check_fits(_position(num_rows))

    def positions(self) -> NDArray[np.int64]:
        """Return the positions in ascending order, int64 of **shape (cardinality,)**."""
        return self._rows.positions(fresh_array)

    def __eq__(self, other: object) -> bool:
        return self._rows.equals(other._rows) if isinstance(other, RowSet) else NotImplemented

    def __hash__(self) -> int:
        return hash((RowSet, self.cardinality, self._rows.min, self._rows.max))

    def __repr__(self) -> str:
        return f"RowSet({self.cardinality} rows, {self.min} to {self.max})" if self else "RowSet(empty)"

    # --- combining -----------------------------------------------------------------------------

    def _combine(self, other: RowSet, operation: Literal["or", "and", "sub", "xor"]) -> RowSet:
        return RowSet._of(self._rows.combine(other._rows, operation))

    def __or__(self, other: object) -> RowSet:
        return self._combine(other, "or") if isinstance(other, RowSet) else NotImplemented

    def __and__(self, other: object) -> RowSet:
        return self._combine(other, "and") if isinstance(other, RowSet) else NotImplemented

    def __sub__(self, other: object) -> RowSet:
        return self._combine(other, "sub") if isinstance(other, RowSet) else NotImplemented

    def __xor__(self, other: object) -> RowSet:
        return self._combine(other, "xor") if isinstance(other, RowSet) else NotImplemented

    def isdisjoint(self, other: RowSet) -> bool:
        """Return whether no position is in both.

        Parameters
        ----------
        other : RowSet
            Another set.
        """
        return self._rows.isdisjoint(other._rows)

    # --- windows: one byte a row ---------------------------------------------------------------

    def mask(self, num_rows: int, start: int = 0) -> NDArray[np.bool_]:
        """Return a bool array of **shape (num_rows,)**: true if row ``start + i`` is in the set.

        Parameters
        ----------
        num_rows : int
            Rows of the window.
        start : int
            Its first row.
        """
        out = np.empty(_position(num_rows), np.bool_)
        self.fill_mask(out, start)
        return out

    def fill_mask(self, out: NDArray[Any], start: int = 0) -> None:
        """Write into `out` (bool or uint8, contiguous) 1 if row ``start + i`` is in the set, else 0.

        Parameters
        ----------
        out : bool or uint8, **shape (n,)**, contiguous
            The window; all of it is written.
        start : int
            Its first row.
        """
        self._rows.fill_bytes(_bytes_of(out), _position(start), len(out), False)

    # --- windows: one bit a row ----------------------------------------------------------------

    def bits(self, num_rows: int) -> NDArray[np.uint8]:
        """Return the bit mask of a whole file, least significant bit first, padded with zeros to 8 bytes.

        Parameters
        ----------
        num_rows : int
            Rows of the file.

        Returns
        -------
        uint8, **shape (ceil(num_rows / 64) * 8,)**
            1 = the row is in the set.

        Raises
        ------
        CorruptTableError
            A position is `num_rows` or more.
        """
        self.check_fits(num_rows)
        out = np.empty((num_rows + 63) // 64 * 8, np.uint8)
        self.fill_bits(out, num_rows)
        return out

    def fill_bits(self, out: NDArray[np.uint8], num_rows: int, start: int = 0) -> None:
        """Write into `out` bit ``i`` = row ``start + i`` is in the set, and zeros up to a multiple of 64 bits.

        Parameters
        ----------
        out : uint8[n_bytes], contiguous
            At least ``num_rows`` bits rounded up to 8 bytes; bytes after these are not changed.
        num_rows : int
            How many bits are written.
        start : int
            The row of the first bit.
        """
        self._rows.fill_bits(out, _position(start), _position(num_rows), False)

    def fill_keep_bits(self, out: NDArray[np.uint8], num_rows: int, start: int = 0) -> None:
        """Write into `out` bit ``i`` = row ``start + i`` is *not* in the set; otherwise as `fill_bits`.

        Parameters
        ----------
        out : uint8, **shape (num_bytes,)**, contiguous
            At least ``num_rows`` bits rounded up to 8 bytes.
        num_rows : int
            How many bits are written.
        start : int
            The row of the first bit.
        """
        self._rows.fill_bits(out, _position(start), _position(num_rows), True)

    def chunks(self, num_rows: int = 4096) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Cut the set into chunks of `num_rows` rows and return those that hold a position.

        Parameters
        ----------
        num_rows : int
            A power of two from 64 to 65,536.

        Returns
        -------
        index : int64, **shape (k,)**
            Ascending; chunk ``c`` holds rows ``c * num_rows`` up to ``(c + 1) * num_rows``.
        words : uint64, **shape (k, num_rows / 64)**
            Bit ``i``, least significant first within each word, = row ``c * num_rows + i`` is in the set.
        """
        return self._rows.chunks(num_rows)


class RowSets(Sequence[RowSet]):
    """One set of row positions for each of several files, without a Python object a file. Immutable.

    Parameters
    ----------
    sets : iterable of RowSet
        In the order of the files.
    """

    __slots__ = ("_rows",)
    _rows: ManyRows

    def __init__(self, sets: Iterable[RowSet] = ()) -> None:
        self._rows = ManyRows.of([s._rows for s in sets])

    @classmethod
    def _of(cls, rows: ManyRows) -> RowSets:
        out = cls.__new__(cls)
        out._rows = rows
        return out

    @classmethod
    def from_positions(cls, count: int, files: ArrayLike, positions: ArrayLike) -> RowSets:
        """Build the sets of ``count`` files from pairs of a file's number and a position, in any order.

        Parameters
        ----------
        count : int
            How many files there are.
        files, positions : integer arrays, **shape (n,)**
            Repeated pairs count once. Ascending ones are taken as they are, others are sorted first.

        Raises
        ------
        InvalidArgumentError
            For a number that is not below ``count``, and for what `RowSet.from_positions` rejects.
        """
        numbers, places = _int64(files), _int64(positions)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
            raise InvalidArgumentError(f"found files {numbers.min()} to {numbers.max()}, expected 0 to {count - 1}")
        rows = ManyRows.from_positions(count, numbers, places)
        if rows is None:
            if places.min() < 0:
                raise InvalidArgumentError(f"row positions lie within 0 and 2**63 - 1, not {places.min()}")
            order = np.lexsort((places, numbers))
            numbers, places = numbers[order], places[order]
            new = np.ones(len(numbers), np.bool_)
            new[1:] = (numbers[1:] != numbers[:-1]) | (places[1:] != places[:-1])
            rows = ManyRows.from_positions(count, numbers[new], places[new])
        assert rows is not None
        return cls._of(rows)

    @classmethod
    def joined(cls, parts: Sequence[RowSets]) -> RowSets:
        """Return the sets of all parts, one part after the other.

        Parameters
        ----------
        parts : sequence of RowSets
            In the order of the result.
        """
        return cls._of(ManyRows.joined([p._rows for p in parts]))

    @classmethod
    def from_blocks(
        cls,
        count: int,
        files: NDArray[np.int64],
        data: Buffer,
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        magic: int,
    ) -> tuple[RowSets, NDArray[np.bool_]]:
        """Build the sets of ``count`` files from vectors that lie within one piece of bytes.

        Parameters
        ----------
        count : int
            How many files there are.
        files, starts, sizes : int64, **shape (n,)**
            Of each vector: the number of its file, and where it lies in ``data``.
        data : bytes-like
            The vectors: a magic number and 64-bit roaring bytes, alone or framed as `to_blocks` frames them.
        magic : int
            That number.

        Returns
        -------
        RowSets
            Files without a vector that could be read have empty sets.
        bool, **shape (n,)**
            False for a vector that breaks the format or is not its file's first: a reader of one vector reports why.

        Protocol
        --------
        Deletion Vector Format, Deletion Vector File Storage Format
        """
        bytes_of = memoryview(data).cast("B")
        view = np.frombuffer(bytes_of, np.uint8) if len(bytes_of) else np.empty(0, np.uint8)
        rows, good = ManyRows.from_blocks(count, _int64(files), view, _int64(starts), _int64(sizes), magic)
        return cls._of(rows), good.view(np.bool_)

    def __reduce__(self) -> tuple[type[RowSets], tuple[list[RowSet]]]:
        return RowSets, (list(self),)

    def __len__(self) -> int:
        return self._rows.count

    @overload
    def __getitem__(self, index: int) -> RowSet: ...
    @overload
    def __getitem__(self, index: slice) -> RowSets: ...
    def __getitem__(self, index: int | slice) -> RowSet | RowSets:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        return RowSet._of(self._rows.get(index + len(self) if index < 0 else index))

    def _combine(self, other: RowSets, operation: Literal["or", "and", "sub"]) -> RowSets:
        return RowSets._of(self._rows.combined(other._rows, operation))

    def __or__(self, other: object) -> RowSets:
        return self._combine(other, "or") if isinstance(other, RowSets) else NotImplemented

    def __and__(self, other: object) -> RowSets:
        return self._combine(other, "and") if isinstance(other, RowSets) else NotImplemented

    def __sub__(self, other: object) -> RowSets:
        return self._combine(other, "sub") if isinstance(other, RowSets) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, RowSets) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # compared by value, and never a key

    def __repr__(self) -> str:
        return f"RowSets({len(self)} files, {int(self.cardinalities().sum())} rows)"

    def with_more(self, more: Mapping[int, RowSet]) -> RowSets:
        """Return the sets with further positions in some of them, by the number of the file.

        Parameters
        ----------
        more : Mapping of int to RowSet
            The further positions, by the number of the file.
        """
        if not more:
            return self
        return RowSets._of(self._rows.replaced(_int64(list(more)), [s._rows for s in more.values()]))

    def cardinalities(self) -> NDArray[np.int64]:
        """Return the number of positions of each set, int64 of **shape (len,)**."""
        return self._rows.measure()[0]

    def last(self) -> NDArray[np.int64]:
        """Return the highest position of each set, -1 for an empty one, int64 of **shape (len,)**."""
        return self._rows.measure()[1]

    def fill_masks(self, out: NDArray[Any], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Write the mask of each file into a part of one array.

        Parameters
        ----------
        out : bool or uint8, **shape (n,)**, contiguous
            Bytes between the parts are not changed.
        starts, sizes : int64, **shape (len,)**
            Where the part of each file begins, and its rows: 1 is written if row ``i`` is in the set, else 0.

        Raises
        ------
        InvalidArgumentError
            For a part that does not lie within `out`.
        """
        self._rows.fill_bytes(_bytes_of(out), _int64(starts), _int64(sizes))

    def take(self, indices: ArrayLike) -> RowSets:
        """Return the sets of some of the files, in the given order.

        Parameters
        ----------
        indices : integer array, **shape (n,)**
            Numbers of files, in any order, repeated ones too.
        """
        return RowSets._of(self._rows.take(_int64(indices)))

    def by_number(self) -> Mapping[int, RowSet]:
        """Return the sets by the number of their file; each is made when it is looked up."""
        return _ByNumber(self)

    def to_blocks(self, magic: int) -> tuple[bytes, NDArray[np.int64]]:
        """Return each set framed with its size, a magic number and a checksum, all in one piece of bytes.

        Parameters
        ----------
        magic : int
            The magic number, below 2**32.

        Returns
        -------
        bytes
            For each set: the size of magic number and bitmap in 4 bytes (big-endian), the magic number (little-endian),
            the 64-bit roaring bytes, and the CRC-32 of magic number and bitmap (big-endian).
        int64, **shape (len,)**
            These sizes: each block is 8 bytes longer.

        Protocol
        --------
        Deletion Vector File Storage Format
        """
        return self._rows.blocks(magic)


class _ByNumber(Mapping[int, RowSet]):
    def __init__(self, sets: RowSets) -> None:
        self._sets = sets

    def __getitem__(self, number: int) -> RowSet:
        if not 0 <= number < len(self._sets):
            raise KeyError(number)
        return self._sets[number]

    def __contains__(self, number: object) -> bool:
        try:
            return 0 <= operator.index(number) < len(self._sets)  # type: ignore[arg-type]  # raises on others
        except TypeError:
            return False

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._sets)))

    def __len__(self) -> int:
        return len(self._sets)


def _int64(values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            f"numbers and positions are one-dimensional arrays of integers, not {array.dtype} of shape {array.shape}"
        )
    if array.size and array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise InvalidArgumentError(f"row positions lie within 0 and 2**63 - 1, not {array.max()}")
    return np.ascontiguousarray(array, np.int64)


def _position(value: int) -> int:
    number = operator.index(value)
    if not 0 <= number < 2**63:
        raise InvalidArgumentError(f"row positions and counts lie within 0 and 2**63 - 1, not {number}")
    return number


def _bytes_of(out: NDArray[Any]) -> NDArray[np.uint8]:
    if out.ndim != 1 or out.dtype not in (np.bool_, np.uint8) or not out.flags.c_contiguous:
        raise InvalidArgumentError(
            f"a mask is written to a contiguous bool or uint8 array, not {out.dtype} of shape {out.shape}"
        )
    return out.view(np.uint8)
