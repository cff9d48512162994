"""Names of ``deltalake.schema``."""

from delta_core.schema.fields import Schema
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType, VariantType

__all__ = ["ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "Schema", "StructType", "VariantType"]
