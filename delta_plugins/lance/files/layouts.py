"""The layouts of pages of versions 2.1 and 2.2, as what the kernels take."""

from __future__ import annotations

from typing import Any, NamedTuple

from delta_core.api import DataFileError
from delta_plugins.lance.wire import Message, chosen, decode

__all__ = ["Layout", "LayoutError", "parse_layout"]

_LAYOUTS = ("mini_block", "constant", "full_zip", "blob")
_CODINGS = (
    "flat", "variable", "constant", "out_of_line_bitpacking", "inline_bitpacking", "fsst", "dictionary", "rle",
    "byte_stream_split", "general", "fixed_size_list", "packed_struct", "variable_packed_struct",
)  # fmt: skip
_KINDS = {name: number for number, name in enumerate(_CODINGS, 1)}
MINI_BLOCK, CONSTANT, FULL_ZIP = 1, 2, 3
_MOST_NESTED = 12
#: No width, count or size of a coding is larger.
_MOST = 1 << 46


class LayoutError(Exception):
    """A layout that can't be interpreted; the text states why."""


class Layout(NamedTuple):
    """How the buffers of a page are interpreted; the arguments of ``_pages.Page``.

    Parameters
    ----------
    kind : int
        1 mini-blocks, 2 constant, 3 full-zip.
    layers : list of int
        The kinds of its layers, the innermost first.
    codings : list of tuple
        Its compressions.
    nodes : tuple of int
        Those of values, repetition levels, definition levels, dictionary; -1 = none.
    numbers : dict
        Further numbers.
    outer : list of int, optional
        The layers of a blob page.
    fields : list of tuple
        The fields of a packed struct of values of any length.
    packed_bits : list of int, optional
        The bits of the children of a packed struct of a fixed size.
    message : dict
        The parsed messages.
    """

    kind: int
    layers: list[int]
    codings: list[tuple[Any, ...]]
    nodes: tuple[int, int, int, int]
    numbers: dict[str, int]
    outer: list[int] | None
    fields: list[tuple[int, int, bool]]
    packed_bits: list[int] | None
    message: Message


def parse_layout(data: bytes, where: str) -> Layout:
    """Parse the bytes of a PageLayout.

    Raises
    ------
    DataFileError
        If the bytes are no such message.
    LayoutError
        If the message can't be interpreted.
    """
    return _layout(decode("PageLayout", data, where, DataFileError), None)


def _layout(message: Message, outer: list[int] | None) -> Layout:
    name = chosen(message, _LAYOUTS)
    if name is None:
        raise LayoutError("it has a layout of a kind that is not supported")
    found = message[name]
    if name == "blob":
        if outer is not None or found["inner_layout"] is None:
            raise LayoutError("it has a blob layout without values, or within another one")
        return _layout(found["inner_layout"], found["layers"])
    parts = _Codings()
    if name == "mini_block":
        return _mini_block(found, outer, parts)
    if name == "full_zip":
        return _full_zip(found, outer, parts)
    nodes = (-1, parts.add(found["rep_compression"]), parts.add(found["def_compression"]), -1)
    return Layout(CONSTANT, found["layers"], parts.found, nodes, {}, outer, [], None, found)


def _mini_block(found: Message, outer: list[int] | None, parts: _Codings) -> Layout:
    nodes = (
        parts.add(found["value_compression"]),
        parts.add(found["rep_compression"]),
        parts.add(found["def_compression"]),
        parts.add(found["dictionary"]),
    )
    numbers = {k: found[k] for k in ("num_buffers", "num_items", "num_dictionary_items")}
    numbers["is_large"] = int(found["has_large_chunk"])
    return Layout(MINI_BLOCK, found["layers"], parts.found, nodes, numbers, outer, [], parts.packed_bits, found)


def _full_zip(found: Message, outer: list[int] | None, parts: _Codings) -> Layout:
    numbers = {"bits_rep": found["bits_rep"], "bits_def": found["bits_def"]}
    width = chosen(found, ("bits_per_value", "bits_per_offset"))
    if width is None:
        raise LayoutError("it has neither a width of values nor one of lengths")
    numbers[width] = found[width]
    fields: list[tuple[int, int, bool]] = []
    value = found["value_compression"]
    if value is not None and value["variable_packed_struct"] is not None:
        fields = [_packed_field(f, parts) for f in value["variable_packed_struct"]["fields"]]
        node = -1
    else:
        node = parts.add(value)
    return Layout(
        FULL_ZIP, found["layers"], parts.found, (node, -1, -1, -1), numbers, outer, fields, parts.packed_bits, found
    )


def _packed_field(field: Message, parts: _Codings) -> tuple[int, int, bool]:
    width = chosen(field, ("bits_per_value", "bits_per_length"))
    if width is None:
        raise LayoutError("a field of a packed struct has neither a width of values nor one of lengths")
    return parts.add(field["value"]), min(field[width], _MOST), width == "bits_per_length"


class _Codings:
    """The compressions of a page, in the order in which they are met."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, ...]] = []
        self.packed_bits: list[int] | None = None

    def add(self, message: Message | None, depth: int = 0) -> int:
        """Add a compression and those within it; return its place, -1 for none."""
        if message is None:
            return -1
        name = chosen(message, _CODINGS)
        if name is None:
            raise LayoutError("it has a compression that is not supported")
        if depth > _MOST_NESTED:
            raise LayoutError("its compressions are nested too deeply")
        part = message[name]
        place = len(self.found)
        self.found.append(())
        facts = getattr(self, f"_{name}", self._other)(part, depth)
        self.found[place] = (_KINDS[name], *_complete(facts))
        return place

    def _other(self, part: Message, depth: int) -> dict[str, Any]:
        raise LayoutError("it has a compression that pages do not have")

    def _flat(self, part: Message, depth: int) -> dict[str, Any]:
        if part["data"] is not None:
            raise LayoutError("flat values are compressed in a way that is not supported")
        return {"bits": part["bits_per_value"]}

    def _variable(self, part: Message, depth: int) -> dict[str, Any]:
        if part["values"] is not None:
            raise LayoutError("values of any length are compressed in a way that is not supported")
        return {"child": self.add(part["offsets"], depth + 1)}

    def _constant(self, part: Message, depth: int) -> dict[str, Any]:
        return {"value": part["value"]}

    def _out_of_line_bitpacking(self, part: Message, depth: int) -> dict[str, Any]:
        values = part["values"]
        if values is None or values["flat"] is None:
            raise LayoutError("packed values have no width")
        return {"bits": part["uncompressed_bits_per_value"], "packed": values["flat"]["bits_per_value"]}

    def _inline_bitpacking(self, part: Message, depth: int) -> dict[str, Any]:
        if part["values"] is not None:
            raise LayoutError("packed values are compressed in a way that is not supported")
        return {"bits": part["uncompressed_bits_per_value"]}

    def _fsst(self, part: Message, depth: int) -> dict[str, Any]:
        return {"table": part["symbol_table"], "child": self.add(part["values"], depth + 1)}

    def _rle(self, part: Message, depth: int) -> dict[str, Any]:
        return {"child": self.add(part["values"], depth + 1), "other": self.add(part["run_lengths"], depth + 1)}

    def _byte_stream_split(self, part: Message, depth: int) -> dict[str, Any]:
        return {"child": self.add(part["values"], depth + 1)}

    def _general(self, part: Message, depth: int) -> dict[str, Any]:
        scheme = 0 if part["compression"] is None else part["compression"]["scheme"]
        return {"scheme": scheme, "child": self.add(part["values"], depth + 1)}

    def _fixed_size_list(self, part: Message, depth: int) -> dict[str, Any]:
        child = self.add(part["values"], depth + 1)
        return {"items": part["items_per_value"], "has_validity": part["has_validity"], "child": child}

    def _packed_struct(self, part: Message, depth: int) -> dict[str, Any]:
        self.packed_bits = part["bits_per_value"]
        return {"child": self.add(part["values"], depth + 1)}


def _complete(facts: dict[str, Any]) -> tuple[Any, ...]:
    numbers = (min(facts.get(k, 0), _MOST) for k in ("bits", "packed", "scheme", "items"))
    return (
        *numbers,
        facts.get("has_validity", False),
        facts.get("child", -1),
        facts.get("other", -1),
        facts.get("table"),
        facts.get("value"),
    )
