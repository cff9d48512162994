"""Tables that tests of features write through the operations, and read again, here and by a peer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable as PeerTable

from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.snapshot import Snapshot, open_context, open_snapshot
from delta_core.operations.create import create_table
from delta_core.operations.write import WriteOptions, write_table
from delta_core.schema.fields import Schema


def create(
    path: Path,
    fields: Sequence[Mapping[str, Any]],
    *,
    properties: Mapping[str, str] | None = None,
    features: Iterable[str] = (),
    partition_by: Sequence[str] = (),
) -> str:
    """Create a table of fields as in a schemaString and return where it is."""
    filled = [{"nullable": True, "metadata": {}, **f} for f in fields]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": filled}))
    create_table(open_context(str(path)), schema, properties=properties, features=features, partition_by=partition_by)
    return str(path)


def append(uri: str, columns: Mapping[str, Any] | pa.Table, **options: Any) -> CommitResult:
    """Append columns; lists of Python ints become int64."""
    done = write_table(open_context(uri), pa.table(columns), WriteOptions(mode="append", **options))
    assert done is not None
    return done


def overwrite(uri: str, columns: Mapping[str, Any], **options: Any) -> CommitResult:
    """Overwrite the table, or what ``replace_where`` selects."""
    done = write_table(open_context(uri), pa.table(columns), WriteOptions(mode="overwrite", **options))
    assert done is not None
    return done


def begin(uri: str, operation: str = "WRITE", **options: Any) -> Transaction:
    """Begin a transaction on the latest version."""
    snapshot = open_snapshot(uri)
    return Transaction(snapshot.context, snapshot, operation, **options)


def rows(source: str | Snapshot, *columns: str) -> list[Any]:
    """Return the rows as tuples in order of files, single columns as values."""
    snapshot = open_snapshot(source) if isinstance(source, str) else source
    table = snapshot.scan(columns or None).to_table()
    found = [tuple(r.values()) for r in table.to_pylist()]
    return [r[0] for r in found] if len(table.schema.names) == 1 else found


def peer_rows(uri: str, *columns: str) -> list[Any]:
    """Return the rows as deltalake reads them, sorted."""
    table = PeerTable(uri).to_pyarrow_table()
    table = table.select(list(columns or table.column_names))
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def field_metadata(uri: str, name: str) -> Mapping[str, Any]:
    """Return a column's metadata at the latest version."""
    found = open_snapshot(uri).schema.get(name)
    assert found is not None
    return found.metadata


def files_of(uri: str) -> int:
    """Return the number of data files on disk, whether the log has them or not."""
    return len(list(Path(uri).rglob("*.parquet"))) - len(list((Path(uri) / "_delta_log").rglob("*.parquet")))
