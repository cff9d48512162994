"""Layouts of written pages of versions 2.1 and 2.2 as messages (`layouts` parses them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_plugins.lance.files.layouts import CONSTANT, FULL_ZIP
from delta_plugins.lance.files.leaves import ValueLayout
from delta_plugins.lance.wire import Message

__all__ = ["page_layout"]

_FLAT, _VARIABLE, _INLINE, _FSST, _RLE, _SPLIT = 1, 2, 5, 6, 8, 9


def page_layout(facts: Mapping[str, Any], layout: ValueLayout, *, has_large_chunks: bool) -> Message:
    """Return the PageLayout of a page.

    Parameters
    ----------
    facts : Mapping
        The result of ``_page_writer.PageCollector.write``.
    layout : ValueLayout
        That of the values.
    has_large_chunks : bool
        Whether chunks have 32-bit words and sizes.
    """
    layers = facts["layers"]
    if facts["layout"] == CONSTANT:
        return {"constant": {"layers": layers, "inline_value": facts["constant"]}}
    if facts["layout"] == FULL_ZIP:
        return {"full_zip": _full_zip(facts, layout)}
    has_dictionary = facts["num_dictionary_items"] is not None
    return {
        "mini_block": {
            "rep_compression": _levels(facts["rep_bits"]),
            "def_compression": _levels(facts["def_bits"]),
            "value_compression": _value(facts, layout, is_code=has_dictionary),
            "dictionary": _dictionary(facts, layout) if has_dictionary else None,
            "num_dictionary_items": facts["num_dictionary_items"] or 0,
            "layers": layers,
            "num_buffers": facts["num_buffers"],
            "repetition_index_depth": int(facts["rep_bits"] > 0),
            "num_items": facts["num_items"],
            "has_large_chunk": has_large_chunks,
        }
    }


def _flat(bits: int) -> Message:
    return {"flat": {"bits_per_value": bits}}


def _variable(bits: int) -> Message:
    return {"variable": {"offsets": _flat(bits)}}


def _levels(bits: int) -> Message | None:
    if bits in (0, 16):
        return _flat(16) if bits else None
    return {"out_of_line_bitpacking": {"uncompressed_bits_per_value": 16, "values": _flat(bits)}}


def _dictionary(facts: Mapping[str, Any], layout: ValueLayout) -> Message:
    found = _flat(layout.bits) if layout.bits else _variable(64 if layout.is_wide else 32)
    return _compressed(found, facts["dictionary_scheme"])


def _compressed(found: Message, scheme: int) -> Message:
    return {"general": {"compression": {"scheme": scheme}, "values": found}} if scheme else found


def _value(facts: Mapping[str, Any], layout: ValueLayout, *, is_code: bool = False) -> Message:
    bits = facts["value_bits"]
    kind = facts["value"]
    if kind == _INLINE:
        found: Message = {"inline_bitpacking": {"uncompressed_bits_per_value": bits}}
    elif kind == _RLE:
        found = {"rle": {"values": _flat(bits), "run_lengths": _flat(8)}}
    elif kind == _SPLIT:
        found = {"byte_stream_split": {"values": _flat(bits)}}
    elif kind == _FSST:
        found = {"fsst": {"symbol_table": facts["table"], "values": _variable(bits)}}
    elif kind == _VARIABLE:
        found = _variable(bits)
    else:
        found = _flat(bits)
    if not is_code:
        found = _nested(found, facts, layout)
    return _compressed(found, facts["scheme"])


def _nested(found: Message, facts: Mapping[str, Any], layout: ValueLayout) -> Message:
    """Return a compression within the lists of a fixed size, or the packed struct, that values are."""
    if layout.children and not layout.bits:
        return {"variable_packed_struct": {"fields": [_packed_field(c) for c in layout.children]}}
    if layout.children:
        widths = [_width(c) for c in layout.children]
        found = {"packed_struct": {"bits_per_value": widths, "values": found}}
    validity: Sequence[bool] = facts["list_validity"] or [False] * len(layout.list_sizes)
    for size, has_validity in reversed(list(zip(layout.list_sizes, validity, strict=True))):
        found = {"fixed_size_list": {"items_per_value": size, "values": found, "has_validity": has_validity}}
    return found


def _packed_field(layout: ValueLayout) -> Message:
    """Return a field of a packed struct of values of any length."""
    if not layout.bits:
        bits = 64 if layout.is_wide else 32
        return {"value": _variable(bits), "bits_per_length": bits}
    found = _flat(layout.bits)
    for size in reversed(layout.list_sizes):
        found = {"fixed_size_list": {"items_per_value": size, "values": found, "has_validity": False}}
    return {"value": found, "bits_per_value": _width(layout)}


def _width(layout: ValueLayout) -> int:
    bits = layout.bits
    for size in layout.list_sizes:
        bits *= size
    return bits


def _full_zip(facts: Mapping[str, Any], layout: ValueLayout) -> Message:
    is_fixed = layout.bits > 0
    return {
        "bits_rep": facts["rep_bits"],
        "bits_def": facts["def_bits"],
        "bits_per_value": facts["bits_per_value"] if is_fixed else None,
        "bits_per_offset": None if is_fixed else facts["bits_per_offset"],
        "num_items": facts["num_entries"],
        "num_visible_items": facts["num_items"],
        "value_compression": _value(facts, layout),
        "layers": facts["layers"],
    }
