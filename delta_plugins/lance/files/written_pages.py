"""The pages of a column that were written, as the metadata of its file describe them."""

from __future__ import annotations

from collections.abc import Sequence

from delta_plugins.lance.wire import Message, encode

__all__ = ["WrittenPages"]

_COLUMN_ENCODING = b"\x0a\x00"
#: Values that are blobs.
_BLOB_COLUMN_ENCODING = b"\x1a\x04\x0a\x02\x0a\x00"


class WrittenPages:
    """Pages of one column.

    Parameters
    ----------
    kind : str
        The type of the encodings of pages.
    has_priority : bool
        Whether pages specify their first row.
    is_blob : bool
        Whether the column is marked as one of blobs.
    """

    def __init__(self, kind: str, *, has_priority: bool, is_blob: bool = False) -> None:
        self._kind = kind
        self._has_priority = has_priority
        self._encoding = _BLOB_COLUMN_ENCODING if is_blob else _COLUMN_ENCODING
        self._pages: list[Message] = []
        self._rows = 0

    def __len__(self) -> int:
        return len(self._pages)

    def add(self, places: Sequence[tuple[int, int]], encoding: bytes, rows: int) -> None:
        """Add a page: the (offset, size) of its buffers, its encoding, and its rows."""
        page = {
            "buffer_offsets": [at for at, _ in places],
            "buffer_sizes": [n for _, n in places],
            "length": rows,
            "encoding": _direct(self._kind, encoding),
        }
        if self._has_priority:
            page["priority"] = self._rows
        self._pages.append(page)
        self._rows += rows

    def metadata(self) -> Message:
        """Return the ColumnMetadata."""
        return {"encoding": _direct("/lance.encodings.ColumnEncoding", self._encoding), "pages": self._pages}


def _direct(kind: str, value: bytes) -> Message:
    return {"direct": {"encoding": encode("Any", {"type_url": kind, "value": value})}}
