"""StreamPosition: where to continue with the changes of a table, in the JSON form of Spark's streaming offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from delta_core.errors import InvalidArgumentError, shortened
from delta_core.runtime.json_text import decode_json

__all__ = ["StreamPosition"]

_KEYS = {"sourceVersion": int, "reservoirId": str, "reservoirVersion": int, "index": int, "isStartingVersion": bool}
#: The indexes before the first file of a version in sources of version 3: at its begin, at a change of the schema in
#: it, and after that.
_INDEXES_3 = (-100, -20, -19)


class StreamPosition(Struct, frozen=True):
    """The place before the first file that was not read yet.

    Parameters
    ----------
    table_id : str
        The ``id`` of the table's metadata.
    version : int
        The version that contains the file.
    index : int
        The number of the last file of this version that was read; -1: none.
    is_initial_snapshot : bool
        Whether ``index`` counts the files that the table has at this version, not those of the version's commit.

    Examples
    --------
    >>> StreamPosition("5f8b", 7).version
    7
    """

    table_id: str
    version: int
    index: int = -1
    is_initial_snapshot: bool = False

    def to_json(self) -> str:
        """Return the position as Spark's ``DeltaSourceOffset`` is stored in checkpoints of streams.

        Examples
        --------
        >>> StreamPosition("5f8b", 7).to_json()
        '{"sourceVersion":1,"reservoirId":"5f8b","reservoirVersion":7,"index":-1,"isStartingVersion":false}'
        """
        values = (1, self.table_id, self.version, self.index, self.is_initial_snapshot)
        return json.dumps(dict(zip(_KEYS, values, strict=True)), separators=(",", ":"))

    @classmethod
    def parse(cls, value: StreamPosition | str | bytes | Mapping[str, Any]) -> StreamPosition:
        """Return the position that a JSON text, or the object in it, describes.

        Parameters
        ----------
        value : StreamPosition, str, bytes or Mapping
            The position, its JSON text, or the object in it.

        Raises
        ------
        InvalidArgumentError
            If it is no such text.

        Examples
        --------
        >>> StreamPosition.parse(StreamPosition("5f8b", 7).to_json())
        StreamPosition(table_id='5f8b', version=7, index=-1, is_initial_snapshot=False)
        """
        if isinstance(value, StreamPosition):
            return value
        found: Any = value
        try:
            if isinstance(value, (str, bytes)):
                found = decode_json(value)
            version, table_id, *rest = (_typed(found, key, kind) for key, kind in _KEYS.items())
        except (ValueError, KeyError, TypeError) as e:
            raise InvalidArgumentError(
                f"Found the position {shortened(value)!r}, expected JSON such as {cls('<table id>', 7).to_json()}."
            ) from e
        if version not in (1, 3) or rest[0] < 0 or rest[1] < -1 and (version != 3 or rest[1] not in _INDEXES_3):
            raise InvalidArgumentError(
                f"Found the position {shortened(value)!r}; expected sourceVersion 1 or 3, a reservoirVersion from 0 "
                "on, and an index from -1 on."
            )
        return cls(table_id, rest[0], max(rest[1], -1), rest[2])


def _typed(found: Any, key: str, kind: type) -> Any:
    value = found[key]
    if type(value) is not kind:
        raise TypeError(key)
    return value
