"""Delta's types under their name in the `deltalake` package; they live in `delta_core.schema.types`."""

from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType

__all__ = ["ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "StructType", "VariantType"]
