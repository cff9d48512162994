"""Schemas under their name in the `deltalake` package; they live in `delta_core.protocol.schema`."""

from delta_core.protocol.schema import Schema
from delta_core.protocol.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType

__all__ = ["ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "Schema", "StructType", "VariantType"]
