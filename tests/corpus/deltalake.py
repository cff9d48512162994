"""deltalake as a writer of tables, and as the reader that returns the rows its own tables must have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.corpus.rows import canonical_rows
from tests.corpus.tables import Step

__all__ = ["Deltalake"]


class Deltalake:
    """The package of this name."""

    name = "deltalake"

    @contextmanager
    def configured(self, conf: Mapping[str, str]) -> Iterator[None]:
        assert not conf, "deltalake has no session"
        yield

    def run(self, steps: Sequence[Step], path: Path) -> None:
        for step in steps:
            assert callable(step)
            step(self, path)

    def state(self, path: Path) -> dict[str, Any]:
        """Return the latest snapshot as a record of the manifest has it."""
        from deltalake import DeltaTable

        table = DeltaTable(path)
        protocol, metadata = table.protocol(), table.metadata()
        features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
        files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        apps = {"app-1", "app-2"}
        found = {app: table.transaction_version(app) for app in apps}
        return {
            "latest_version": table.version(),
            "protocol": {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                **{key: names for key, names in features.items() if names is not None},
            },
            "partition_columns": metadata.partition_columns,
            "column_mapping": metadata.configuration.get("delta.columnMapping.mode", "none"),
            "schema": json.loads(table.schema().to_json()),
            "files": [(f["path"], "", json.dumps({"numRecords": f.get("num_records")})) for f in files],
            "txns": {app: version for app, version in sorted(found.items()) if version is not None},
            "domain_metadata": {},
        }

    def rows(self, path: Path, version: int) -> list[str]:
        """Return the rows of a version in canonical form."""
        from deltalake import DeltaTable, QueryBuilder

        table = DeltaTable(path, version=version)
        schema = json.loads(table.schema().to_json())
        if table.protocol().min_reader_version < 3:
            return canonical_rows(table.to_pyarrow_table(), schema)
        query = QueryBuilder().register("t", table)
        return canonical_rows(pa.table(query.execute("SELECT * FROM t")), schema)

    def changes(self, path: Path, start: int, end: int, schema: dict[str, Any]) -> list[str]:
        from deltalake import DeltaTable

        return canonical_rows(pa.table(DeltaTable(path).load_cdf(start, end)), schema)
