"""placeholder"""
from __future__ import annotations
import pyarrow as pa
def is_variant(t: pa.DataType) -> bool:
    return bool(pa.types.is_struct(t)) and t.num_fields == 2 and {t.field(0).name, t.field(1).name} == {"metadata", "value"}
def unshred(a: pa.Array, wanted: pa.DataType) -> pa.Array:
    raise NotImplementedError
