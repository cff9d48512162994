"""Delta's types under the name by which `deltalake`'s users know them; they live in `delta_core.protocol.types`."""

from delta_core.protocol.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType

__all__ = ["ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "StructType", "VariantType"]
