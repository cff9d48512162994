"""acme.functions: functions for expressions."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.api import Function, TableFeature, hookimpl

__all__ = ["FEATURE"]

FEATURE = TableFeature("acme.functions", "writer", "Expressions have more functions.")


@hookimpl
def functions() -> Iterable[Function]:
    # functions of rules and expressions are at module level, so that they can be sent to other processes
    return [Function(FEATURE.name, "acme_functions_initial", _text, _initial, "substring({0}, 1, 1)")]


def _text(types: list[pa.DataType]) -> pa.DataType:
    """Return the type of the result from those of the arguments."""
    if [*map(pa.types.is_string, types)] != [True]:
        raise TypeError("expected one text")
    return pa.string()


def _initial(texts: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(texts, 0, 1)
