"""Rows split by partition, vectorised: each distinct combination of values gets a number and a text once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.kernel.write.partition_text import format_partition_values
from delta_core.kernels.arrow_buffers import number_array, scalar_of, values_of
from delta_core.schema.types import DataType

__all__ = ["Partitions"]

Key = tuple["str | None", ...]
#: Codes below it are sorted in one pass over the rows for each byte.
_FEW = 1 << 16


class Partitions:
    """The partitions that a write has met, numbered from 0; safe to use from several threads.

    Parameters
    ----------
    columns : sequence of (str, DataType)
        Physical name and type of each partition column, in the table's order.
    """

    def __init__(self, columns: Sequence[tuple[str, DataType]]) -> None:
        self.columns: tuple[tuple[str, DataType], ...] = tuple(columns)
        self.keys: list[Key] = []
        self._numbers: dict[Key, int] = {}
        self._lock = threading.Lock()

    def number(self, key: Key) -> int:
        """Return the number of a combination of values."""
        with self._lock:
            found = self._numbers.get(key)
            if found is None:
                found = self._numbers[key] = len(self.keys)
                self.keys.append(key)
            return found

    def split(self, values: Sequence[pa.Array], batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """Return the rows of each partition, in their order.

        Parameters
        ----------
        values : sequence of pyarrow.Array
            The partition columns, as long as the batch.
        batch : pyarrow.RecordBatch
            The same rows, as files hold them.
        """
        if not self.columns:
            return [(self.number(()), batch)]
        codes, texts = zip(
            *(self._coded(v, *column) for v, column in zip(values, self.columns, strict=True)), strict=True
        )
        rows, counts, firsts = _grouped(codes)
        keys = [tuple(t[c[first]] for c, t in zip(codes, texts, strict=True)) for first in firsts]
        numbers = [self.number(key) for key in keys]
        if len(numbers) == 1:
            return [(numbers[0], batch)]
        if rows is not None:
            batch = batch.take(number_array(rows))
        starts = np.concatenate([[0], np.cumsum(counts)])
        return [(n, batch.slice(int(starts[i]), int(counts[i]))) for i, n in enumerate(numbers)]

    @staticmethod
    def _coded(values: pa.Array, name: str, t: DataType) -> tuple[Any, list[str | None]]:
        """Return a number per row, and the text that each number represents; null is the last one."""
        coded = values.dictionary_encode()
        texts = format_partition_values(coded.dictionary, t, name)
        codes = coded.indices
        if codes.null_count:
            codes = codes.fill_null(scalar_of(len(texts), codes.type))
        return values_of(codes), [*texts, None]


def _grouped(codes: Sequence[Any]) -> tuple[Any | None, Any, Any]:
    """Group rows by their codes.

    Returns
    -------
    rows : int64[n] or None
        The rows in order of their group; None if they lie so already.
    counts, firsts : int64[groups]
        Each group's size, and a row of it.
    """
    joined = codes[0]
    for more in codes[1:]:
        # dense again after each column, so that the product never overflows
        _, joined = np.unique(joined, return_inverse=True)
        joined = joined * (int(more.max()) + 1) + more
    starts = np.concatenate([[0], np.flatnonzero(joined[1:] != joined[:-1]) + 1])
    if int(joined.max()) >= max(len(joined), _FEW):
        _, joined = np.unique(joined, return_inverse=True)
    sizes = np.bincount(joined)
    groups = np.flatnonzero(sizes)
    if len(groups) == len(starts):
        return None, np.diff(np.concatenate([starts, [len(joined)]])), starts
    small = np.uint8 if len(sizes) <= 256 else np.uint16 if len(sizes) <= _FEW else np.int64
    rows = np.argsort(joined.astype(small), kind="stable")  # a radix sort for the small types
    counts = sizes[groups]
    firsts = rows[np.concatenate([[0], np.cumsum(counts)[:-1]])]
    return rows, counts, firsts
