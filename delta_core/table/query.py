"""SQL over tables, by whichever engine is installed: DataFusion, else DuckDB."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Protocol

import pyarrow as pa

from delta_core.catalogs import NameCatalog, open_catalog
from delta_core.errors import ArgumentInterfaceError, DeltaError, EngineError, MissingDependencyError
from delta_core.kernel.commit.options import kind_name
from delta_core.runtime.arguments import check_kinds, is_of_deltalake
from delta_core.runtime.patterns import lazy_pattern
from delta_core.runtime.processes import PerProcess, num_forks
from delta_core.scan.rows import Scannable
from delta_core.table import interop
from delta_core.table.any_format import open_table
from delta_core.table.delta_table import DeltaTable
from delta_core.table.names_in_sql import quoted_name, replace_names

__all__ = ["QueryBuilder"]

#: How long a forked process waits for DataFusion's first answer, which takes milliseconds.
PATIENCE_S = 10
#: The command that installs an engine.
_EXTRA = "'delta-core-lake[sql]'"


class QueryBuilder:
    """Register tables by name, then execute SQL over them.

    Columns and filters are pushed into the tables' scans, so every table that this library reads can be queried.

    Parameters
    ----------
    session_config : Mapping, optional
        Settings of the engine: DataFusion's session configuration, or DuckDB's.
    engine : "datafusion" or "duckdb", optional
        Which engine; by default the first of them that is installed.
    catalog : NameCatalog, str or path, optional
        Resolves the names of tables, such as ``schema.table``, at each execution; a place is opened as by
        `delta_core.catalogs.open_catalog`.

    Raises
    ------
    MissingDependencyError
        If neither is installed.

    Examples
    --------
    >>> query = QueryBuilder(engine="duckdb").register("events", table)
    >>> found = query.execute("SELECT city, sum(amount) AS total FROM events GROUP BY city ORDER BY city")
    >>> found.read_all().to_pylist()
    [{'city': 'Oslo', 'total': 40.0}, {'city': 'Rome', 'total': 20.0}]
    """

    def __init__(
        self,
        session_config: Mapping[str, str] | None = None,
        *,
        engine: str | None = None,
        catalog: NameCatalog | str | os.PathLike[str] | None = None,
    ) -> None:
        check_kinds([("session_config", session_config)])
        name = engine or next((n for n in _SESSIONS if find_spec(n) is not None), "")
        if name and name not in _SESSIONS:
            raise MissingDependencyError(f"Found the engine {name!r}, expected datafusion or duckdb.", engine=name)
        if not name or find_spec(name) is None:
            missing = f"{name}, which is not installed" if name else "DataFusion or DuckDB, and neither is installed"
            raise MissingDependencyError(f"SQL needs {missing}. Run: pip install {name or _EXTRA}", engine=name)
        self._name = name
        self._settings = dict(session_config or {})
        self._tables: dict[str, Any] = {}
        self._catalog = open_catalog(catalog) if isinstance(catalog, (str, os.PathLike)) else catalog
        self._session = PerProcess(self._open)
        self._session.get()

    def _open(self) -> _Session:
        session = _SESSIONS[self._name](self._settings)
        for name, dataset in self._tables.items():
            session.register(name, dataset)
        return session

    def register(self, table_name: str, delta_table: DeltaTable | Scannable) -> QueryBuilder:
        """Make a table of any format, at the version that it is on now, known by a name; returns the builder.

        Parameters
        ----------
        table_name : str
            The name in SQL.
        delta_table : DeltaTable or a table of another format
            The table, at the version that is loaded.

        Raises
        ------
        ArgumentInterfaceError
            For another object than a table.

        Examples
        --------
        >>> query = QueryBuilder(engine="duckdb").register("events", table).register("cities", by_city)
        >>> query.execute("SELECT count(*) AS n FROM events JOIN cities USING (id)").read_all().to_pylist()
        [{'n': 3}]
        """
        check_kinds([("table_name", table_name)])
        session = self._session.get()
        if is_of_deltalake(delta_table, "DeltaTable"):
            peer: Any = delta_table
            delta_table = DeltaTable(peer.table_uri, version=peer.version(), storage_options=peer._storage_options)
        if not isinstance(delta_table, DeltaTable) and not hasattr(delta_table, "format_name"):
            raise ArgumentInterfaceError(f"Found delta_table as {kind_name(delta_table)}, expected a table.")
        dataset = self._tables[table_name] = session.dataset(delta_table)
        session.register(table_name, dataset)
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """Run a query and stream its result.

        Parameters
        ----------
        sql : str
            A query, in the dialect of the engine.

        Raises
        ------
        EngineError
            If the engine can't run it: for one, DataFusion in a forked process whose parent used it.
        CatalogError
            If the catalog fails, or has no table of a name.

        Examples
        --------
        >>> query = QueryBuilder(engine="duckdb").register("events", table)
        >>> query.execute("SELECT max(id) AS id FROM events").read_all().to_pylist()
        [{'id': 3}]
        """
        check_kinds([("sql", sql)])
        if self._catalog is not None:
            sql, names = replace_names(sql, self._name, self._catalog.depth)
            for registered, name in names.items():
                found = self._catalog.table(name)
                self.register(registered, open_table(found.uri, storage_options=found.storage_options))
        reader = self._session.get().execute(sql)
        return pa.RecordBatchReader.from_batches(reader.schema, _reported(reader, sql))


def _reported(reader: pa.RecordBatchReader, sql: str) -> Iterator[pa.RecordBatch]:
    """Yield batches; what fails only while the engine runs is reported like what fails at once."""
    try:
        yield from reader
    except DeltaError:
        raise
    except Exception as e:
        raise EngineError(f"The query failed while it ran: {_plain(e)}", sql=sql) from e


def _dataset(table: DeltaTable | Scannable, *, encoded: bool) -> Any:
    return (
        table.dataset(encoded=encoded)
        if isinstance(table, DeltaTable)
        else interop.scan_dataset(table, encoded=encoded)
    )


class _Session(Protocol):
    def __init__(self, settings: dict[str, str]) -> None: ...
    def dataset(self, table: DeltaTable | Scannable) -> Any: ...
    def register(self, name: str, dataset: Any) -> None: ...
    def execute(self, sql: str) -> pa.RecordBatchReader: ...


class _DataFusion:
    def __init__(self, settings: dict[str, str]) -> None:
        import datafusion

        # columns are found as they are written, in upper case too
        settings = {"datafusion.sql_parser.enable_ident_normalization": "false", **settings}
        self._context = datafusion.SessionContext(datafusion.SessionConfig(settings))

    def dataset(self, table: DeltaTable | Scannable) -> Any:
        return _dataset(table, encoded=False)

    def register(self, name: str, dataset: Any) -> None:
        # in lower case too, which is how DataFusion keeps names that are not quoted
        for known in dict.fromkeys((name, name.lower())):
            quoted = quoted_name(known)
            if self._context.table_exist(quoted):
                self._context.deregister_table(quoted)
            self._context.register_dataset(quoted, dataset)

    def execute(self, sql: str) -> pa.RecordBatchReader:
        if not _has_threads.get():
            raise EngineError(
                "DataFusion does not run in this process: the process that forked it used DataFusion, whose threads "
                "did not come along. Start processes by multiprocessing's 'forkserver' or 'spawn', or use "
                "QueryBuilder(engine='duckdb').",
                sql=sql,
            )
        try:
            return pa.RecordBatchReader.from_stream(self._context.sql(sql))
        except Exception as e:
            raise EngineError(f"DataFusion can't run the query: {_plain(e)}", sql=sql) from e


#: The text that DataFusion puts before and around an error.
_WRAPPERS = lazy_pattern(
    r"^(?:(?:SQL|Schema|Execution|External|Arrow|DataFusion|Plan) error|Error during planning|Parser error): "
)
_PARSER_ERROR = lazy_pattern(r'^(?:ParserError|TokenizerError)\("(.*)"\)$', re.DOTALL)


def _plain(error: Exception) -> str:
    """Return what is wrong, without the names of DataFusion's own types."""
    text = str(error).rpartition("caused by")[2].strip()
    while (match := _WRAPPERS.match(text)) is not None:
        text = text[match.end() :]
    text = _PARSER_ERROR.sub(r"\1", text).replace('\\"', '"').replace("datafusion.public.", "")
    return " ".join(text.split())


def _answers() -> bool:
    """Whether DataFusion's threads, one set a process, are there; only forked processes have to try."""
    if not num_forks():
        return True
    import datafusion

    answered = threading.Event()

    def run_query() -> None:
        pa.RecordBatchReader.from_stream(datafusion.SessionContext().sql("SELECT 1")).read_all()
        answered.set()

    threading.Thread(target=run_query, name="delta-probe", daemon=True).start()
    return answered.wait(PATIENCE_S)


_has_threads = PerProcess(_answers)


class _DuckDB:
    def __init__(self, settings: dict[str, str]) -> None:
        import duckdb

        self._connection = duckdb.connect(config=settings)

    def dataset(self, table: DeltaTable | Scannable) -> Any:
        return _dataset(table, encoded=True)

    def register(self, name: str, dataset: Any) -> None:
        self._connection.register(name, dataset)

    def execute(self, sql: str) -> pa.RecordBatchReader:
        try:
            found = self._connection.sql(sql)
            if found is None:
                raise EngineError("DuckDB returned no rows for the text, expected a query such as SELECT.", sql=sql)
            return pa.RecordBatchReader.from_stream(found)
        except EngineError:
            raise
        except Exception as e:
            raise EngineError(f"DuckDB can't run the query: {e}", sql=sql) from e


_SESSIONS: Mapping[str, type[_Session]] = {"datafusion": _DataFusion, "duckdb": _DuckDB}
