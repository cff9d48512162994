"""Everything that a program may do with a table, one step after the other; each may fail with a DeltaError only."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.cli import main
from delta_core.errors import DeltaError, InternalError, PluginError

__all__ = ["Rows", "use"]

#: A table's rows without their order, None if an error was raised.
Rows = list[str] | None


def use(uri: str, step: Callable[[str], None], writes: bool) -> Rows:
    """Take the steps and return the table's rows; ``step`` is reported each one's name before it begins."""
    tables: list[DeltaTable] = []
    rows: list[Rows] = [None]

    def read() -> None:
        found = tables[0].to_pyarrow_table()
        try:
            rows[0] = sorted(map(repr, found.to_pylist()))
        except (OverflowError, ValueError):  # times beyond Python's
            rows[0] = [str(found.num_rows)]

    def opened() -> None:
        tables.append(DeltaTable(uri))

    for name, work in [
        ("open", opened),
        ("rows", read),
        *_reads(uri, tables),
        *(_writes(uri, tables) if writes else ()),
    ]:
        if tables or name in ("open", "info", "is_deltatable", "version 1"):
            step(name)
            # what a bug is, not a damaged table, is not passed over
            with contextlib.suppress(DeltaError):
                try:
                    work()
                except (InternalError, PluginError) as e:
                    raise AssertionError(f"{type(e).__name__}: {e}") from e
    return rows[0]


def _reads(uri: str, tables: list[DeltaTable]) -> Iterator[tuple[str, Callable[[], Any]]]:
    def table() -> DeltaTable:
        return tables[0]

    def program(*arguments: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            code = main([*arguments, uri])
        assert code in (0, 1, 2), told.getvalue()
        assert "Traceback" not in told.getvalue(), told.getvalue()

    yield "is_deltatable", lambda: DeltaTable.is_deltatable(uri)
    yield "version 1", lambda: DeltaTable(uri, version=1).to_pyarrow_table()
    yield "by time", lambda: table().load_as_version("2024-01-01T00:00:00Z")
    yield (
        "describe",
        lambda: (
            repr(table()),
            table().metadata(),
            table().protocol(),
            table().schema().to_json(),
            table().partitions(),
        ),
    )
    yield "filter", lambda: table().to_pyarrow_table(filters="id > 3 and id < 40")
    yield "partition filter", lambda: table().to_pyarrow_table(columns=["id"], filters="kind = 'a' or kind is null")
    yield "prune", lambda: table().file_uris(file_pruning_predicate="id = 5")
    yield "count", lambda: table().snapshot().scan().count()
    yield "limit", lambda: table().snapshot().scan(metadata=["_file_path", "_file_row_index"], limit=3).to_table()
    yield "add actions", lambda: table().get_add_actions(flatten=True)
    yield "add actions, nested", lambda: table().get_add_actions()
    yield "vectors", lambda: table().deletion_vectors().read_all()
    yield "history", lambda: table().history()
    yield (
        "tombstones",
        lambda: (table().snapshot().tombstones(), table().snapshot().domains(), table().snapshot().transactions()),
    )
    yield "changes", lambda: table().load_cdf(0).read_all()
    yield "update", lambda: table().update_incremental()
    yield "info", lambda: program("info")
    yield "log", lambda: program("log")
    yield "history of the program", lambda: program("history")
    yield "files", lambda: program("files")


def _writes(uri: str, tables: list[DeltaTable]) -> Iterator[tuple[str, Callable[[], Any]]]:
    def write(**how: Any) -> None:
        rows = pa.Table.from_pylist([], pa.schema(tables[0].schema()))
        write_deltalake(DeltaTable(uri), rows, **how)

    yield "append", lambda: write(mode="append")
    yield "overwrite", lambda: write(mode="overwrite", predicate="id = 4")
    yield "checkpoint", lambda: DeltaTable(uri).create_checkpoint()
    yield "rows again", lambda: DeltaTable(uri).to_pyarrow_table()
