"""Delta Lake tables in Python, with every table feature as a plugin.

``from delta_core import DeltaTable`` is the way in. Names are resolved on first use, so that importing the
package costs nothing.

The examples of docstrings use the names of this package and of `delta_core.transaction`, ``pa`` for ``pyarrow``, and

- ``rows``: an Arrow table with ``id`` (1, 2, 3), ``city`` (Oslo, Rome, Oslo) and ``amount`` (10.0, 20.0, 30.0),
- ``table``: a `DeltaTable` with these rows, whose version 0 has the first two and version 1 all; in the
  folder ``table``,
- ``by_city``: the same rows, partitioned by ``city``,
- ``tracked``: the same rows with the change data feed, row tracking and deletion vectors; version 1 deletes ``id = 2``,
- ``mapped``: the same rows with column mapping and type widening; ``id`` is an integer of 32 bits.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core import exceptions as exceptions
    from delta_core.deltalake_names.finder import install_as_deltalake as install_as_deltalake
    from delta_core.engines.writer_properties import (
        BloomFilterProperties as BloomFilterProperties,
        ColumnProperties as ColumnProperties,
        WriterProperties as WriterProperties,
    )
    from delta_core.kernel.log.cache_folder import SnapshotCache as SnapshotCache
    from delta_core.kernel.log.position import StreamPosition as StreamPosition
    from delta_core.schema.fields import Schema as Schema
    from delta_core.schema.types import (
        ArrayType as ArrayType,
        DataType as DataType,
        Field as Field,
        MapType as MapType,
        PrimitiveType as PrimitiveType,
        StructType as StructType,
        VariantType as VariantType,
    )
    from delta_core.table.alterer import TableFeatures as TableFeatures
    from delta_core.table.any_format import open_table as open_table
    from delta_core.table.conversion import convert as convert
    from delta_core.table.delta_table import (
        DeltaTable as DeltaTable,
        Metadata as Metadata,
        TableMetadata as TableMetadata,
    )
    from delta_core.table.named_tuples import ProtocolVersions as ProtocolVersions
    from delta_core.table.query import QueryBuilder as QueryBuilder
    from delta_core.table.transaction import (
        AppTransaction as AppTransaction,
        CommitProperties as CommitProperties,
        PostCommitHookProperties as PostCommitHookProperties,
        Transaction as Transaction,
    )
    from delta_core.table.writer import convert_to_deltalake as convert_to_deltalake, write_deltalake as write_deltalake
    from delta_core.version import __version__ as __version__
