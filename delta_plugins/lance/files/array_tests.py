"""Tests of values of files of versions 0.1 and 2.0, before the columns of a condition are built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import structs
from numpy.typing import NDArray

from delta_plugins.lance import _pages
from delta_plugins.lance.files.array_pages import ArrayPage, Ranges, Steps, numbers_of, read_array, read_codes
from delta_plugins.lance.files.leaves import LeafTest
from delta_plugins.lance.schema import arrow_field
from delta_plugins.lance.wire import Message, chosen

if TYPE_CHECKING:
    from delta_plugins.lance.schema import LanceField

__all__ = ["ArrayTest", "mark_page"]


class ArrayTest:
    """A test of arrays that are decoded page by page.

    Parameters
    ----------
    test : LeafTest
        The test.

    Attributes
    ----------
    test : LeafTest
        The test.
    field : LanceField
        The field as it is read: texts as bytes with 64-bit offsets, which need no check.
    type : pyarrow.DataType
        Its type.
    """

    def __init__(self, test: LeafTest) -> None:
        of = arrow_field(test.leaf).type
        is_text = test.bits == 0 and not pa.types.is_dictionary(of)
        self.test = test
        self.type: pa.DataType = pa.large_binary() if is_text else of
        self.field: LanceField = (
            structs.replace(test.leaf, logical_type="large_binary", metadata={}) if is_text else test.leaf
        )
        self._tested = _pages.TestedColumn(1, test.bits, is_text or test.is_wide, test.test)

    def mark(self, array: pa.Array[Any], flags: NDArray[np.uint8]) -> None:
        """Set the flags of values to 1 for those that pass, else to 0; each entry of a dictionary is tested once.

        Raises
        ------
        DamagedPageError
            If a code of a dictionary is too large.
        """
        if array.null_count == len(array):
            flags[:] = self.test.passes_null
        elif isinstance(array, pa.DictionaryArray):
            codes = array.indices
            # a null has any code
            numbers = numbers_of(codes if codes.null_count == 0 else codes.fill_null(0))
            self.mark_codes(numbers, array.dictionary, flags)
            if codes.null_count:
                flags[np.asarray(codes.is_null())] = self.test.passes_null
        else:
            buffers = array.buffers()
            validity = buffers[0] if array.null_count else None
            offsets = buffers[1] if len(buffers) == 3 else None
            self._tested.mark(validity, offsets, buffers[-1], flags)

    def mark_codes(
        self, codes: NDArray[Any], entries: pa.Array[Any], flags: NDArray[np.uint8], *, has_null: bool = False
    ) -> None:
        """Set the flags of codes of a dictionary; with ``has_null`` code 0 is null, and the entries begin at 1.

        Raises
        ------
        DamagedPageError
            If a code is too large.
        """
        verdicts = np.full(len(entries) + has_null, self.test.passes_null, np.uint8)
        self.mark(entries, verdicts[int(has_null) :])
        if len(codes) and int(codes.max()) >= len(verdicts):
            raise _pages.DamagedPageError("a code of its dictionary is too large")
        np.take(verdicts, codes, out=flags, mode="clip")


def mark_page(page: ArrayPage, encoding: Message, tested: ArrayTest, ranges: Ranges, flags: NDArray[np.uint8]) -> Steps:
    """Set the flags of ranges of rows of a page of version 2.0 to 1 for those that pass, else to 0."""
    plain = encoding
    while plain["nullable"] is not None and plain["nullable"]["no_nulls"] is not None:
        values = plain["nullable"]["no_nulls"]["values"]
        if values is None:
            break
        plain = values
    if plain["nullable"] is not None and chosen(plain["nullable"]) == "all_nulls":
        flags[:] = tested.test.passes_null
    elif plain["dictionary"] is not None and not pa.types.is_dictionary(tested.type):
        codes, entries = yield from read_codes(page, plain["dictionary"], tested.type, ranges)
        tested.mark_codes(codes, entries, flags, has_null=True)
    else:
        array = yield from read_array(page, encoding, tested.type, ranges)
        tested.mark(array, flags)
