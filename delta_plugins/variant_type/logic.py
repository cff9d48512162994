"""Variants as arrays: JSON text, and the layouts in which files store them."""

import pyarrow as pa

from delta_core.api import VARIANT, ExpressionError
from delta_plugins.variant_type.binary_form import to_json, unshred

__all__ = ["json_type", "unshred", "variant_to_json"]

variant_to_json = to_json


def json_type(arguments: list[pa.DataType]) -> pa.DataType:
    """Return the type of ``variant_json(v)``.

    Raises
    ------
    ExpressionError
        If the function's arguments are not one variant.
    """
    if arguments != [VARIANT.arrow]:
        raise ExpressionError(f"variant_json takes one variant, found {', '.join(map(str, arguments)) or 'nothing'}.")
    return pa.string()
