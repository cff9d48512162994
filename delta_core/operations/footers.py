"""Footers of many files: read on executors if the engine has some, else in this process."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.engines.interface import DataFiles
from delta_core.kernel.write.files import FooterStatistics
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array, strings_of

__all__ = ["ManyFooters"]

#: The footers of fewer files are read here, even if there are executors.
_MANY = 1_000
_DESCRIBED = pa.schema([("path", pa.string()), ("stats", pa.string())])
_SCHEMAS = pa.schema([("path", pa.string()), ("schema", pa.string())])


class ManyFooters:
    """The footers of files, each read at most twice.

    Parameters
    ----------
    engine : Engine
        The engine that reads them.
    paths : string array
        As storage takes them, in ascending order.
    """

    def __init__(self, engine: Engine, paths: pa.Array) -> None:
        self._paths, self._data = paths, engine.data
        self._spread = engine.spread if len(paths) >= _MANY else None
        self._footers = None if self._spread is not None else engine.data.footers(paths.to_pylist())

    def schemas(self) -> list[tuple[pa.Schema, int]]:
        """Return the different Arrow schemas, each with the number of its first file, in their order.

        Raises
        ------
        DataFileNotFoundError, DataFileError
            For a file that is not there, or is no Parquet file.
        """
        if self._footers is not None:
            return self._footers.schemas()
        assert self._spread is not None
        found = self._spread(_ReadSchemas(self._data), self._paths, _SCHEMAS)
        numbers = pc.index_in(found.column("path"), value_set=self._paths).to_pylist()
        first: dict[str, int] = {}
        for number, text in zip(numbers, found.column("schema").to_pylist(), strict=True):
            first[text] = min(number, first.get(text, number))
        read = pa.ipc.read_schema
        return [(read(pa.py_buffer(base64.b64decode(t))), n) for t, n in sorted(first.items(), key=lambda i: i[1])]

    def statistics(self, described: FooterStatistics, report: Callable[[int], None] | None = None) -> pa.ChunkedArray:
        """Return the statistics of all files as the log has them, in the order of the paths.

        Parameters
        ----------
        described : FooterStatistics
            The statistics that they are to contain.
        report : function(int), optional
            Called with numbers of files whose footers were read.

        Raises
        ------
        DataFileNotFoundError, DataFileError, SchemaMismatchError
            For a file that is not there, is no Parquet file, or has columns of other types.
        """
        if self._footers is not None:
            return described.texts(self._footers, report)
        assert self._spread is not None
        found = self._spread(_ReadStatistics(self._data, described), self._paths, _DESCRIBED)
        if report is not None:
            report(len(self._paths))
        return found.column("stats").take(pc.index_in(self._paths, value_set=one_array(found.column("path"))))


class _ReadSchemas(Struct, frozen=True):
    """Reads the schemas of files, on another machine: returns each with the first file that has it."""

    data: DataFiles

    def __call__(self, paths: pa.Array) -> Iterator[pa.RecordBatch]:
        names: list[Any] = sorted(paths.to_pylist())
        found = self.data.footers(names).schemas()
        texts = [base64.b64encode(schema.serialize()).decode() for schema, _ in found]
        columns = [strings_of([names[n] for _, n in found]), strings_of(texts)]
        yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMAS)


class _ReadStatistics(Struct, frozen=True):
    """Reads the statistics of files, on another machine."""

    data: DataFiles
    described: FooterStatistics

    def __call__(self, paths: pa.Array) -> Iterator[pa.RecordBatch]:
        texts = self.described.texts(self.data.footers(paths.to_pylist()))
        yield pa.RecordBatch.from_arrays([paths, one_array(texts)], schema=_DESCRIBED)
