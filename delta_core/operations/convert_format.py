"""Convert a table of one format into a new table of another, by the parts that `scan.exchange` defines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.errors import (
    ColumnNotFoundError,
    InvalidArgumentError,
    SchemaError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.formats import ExchangeFormat, check_place_is_free, format_named
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.rules import MetadataColumn
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import Snapshot, TableContext, open_context
from delta_core.kernel.write.convert import conversion
from delta_core.kernel.write.files import write_files
from delta_core.kernel.write.plan import Origin
from delta_core.kernel.write.schema_checks import CHAR_VARCHAR
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid, one_array
from delta_core.operations.convert import ConvertOptions, convert_folder
from delta_core.operations.create import column_names, stage_definition
from delta_core.operations.progress import OperationProgress, ProgressReport
from delta_core.operations.temporary import temporary_files
from delta_core.runtime.json_text import compact_json
from delta_core.runtime.progress_bars import shows_progress
from delta_core.scan.exchange import ColumnChange, Incoming, Outgoing, TableFacet, check_losses, column_changes
from delta_core.schema.fields import Schema, with_field_metadata
from delta_core.schema.types import Field, StructType, arrow_to_type, spark_name

__all__ = ["DELTA", "Conversion", "ConversionOptions", "convert_table", "folder_snapshot"]

_OPERATION = "CREATE TABLE AS SELECT"
#: Metadata of fields that belong to features: they are reported as features, or mean nothing elsewhere.
_OF_FEATURES = ("delta.", "CURRENT_DEFAULT", "EXISTS_DEFAULT", "__", "parquet.", "PARQUET:", "ARROW:", "lance")


class ConversionOptions(Struct, frozen=True):
    """How a table is converted.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns; all unless given.
    row_ids : bool, optional
        Whether rows keep their stable ids: None, if the source has them; True, and new ones if it has none.
    without : sequence of str
        The names of all that may be lost.
    dry_run : bool
        Whether everything is checked, and nothing written.
    destination : Mapping
        Options of the format of the destination.
    progress : function(OperationProgress), optional
        Called while rows are written.
    """

    columns: Sequence[str] | None = None
    row_ids: bool | None = None
    without: Sequence[str] = ()
    dry_run: bool = False
    destination: Mapping[str, Any] = {}
    progress: Callable[[OperationProgress], None] | None = None


class Conversion(Struct, frozen=True):
    """The result of a conversion.

    Parameters
    ----------
    table : object or None
        The new table, as its format opens it; None with ``dry_run``.
    num_rows : int
        Rows that were written.
    columns : tuple of ColumnChange
        The change of each column.
    facets : tuple of TableFacet
        The other parts of the source, and whether the new table has them.
    """

    table: Any
    num_rows: int
    columns: tuple[ColumnChange, ...]
    facets: tuple[TableFacet, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "rows": self.num_rows,
            "columns": [
                {"column": c.column, "found": c.found, "becomes": c.becomes, "losses": list(c.losses)}
                for c in self.columns
            ],
            "facets": [{"name": f.name, "outcome": f.outcome, "detail": f.detail} for f in self.facets],
        }


@shows_progress
def convert_table(
    source: Any, origin: Engine, engine: Engine, uri: str, to: str, options: ConversionOptions
) -> Conversion:
    """Write the rows of a version to a new table.

    Parameters
    ----------
    source : Snapshot or FormatTable
        The version.
    origin : Engine
        Of the place of the source.
    engine : Engine
        Of the place of the new table.
    uri : str
        That place.
    to : str
        The name of its format.
    options : ConversionOptions
        How.

    Raises
    ------
    TableExistsError
        If there is a table at the place.
    UnsupportedFeatureError
        For parts that the new table would lack and ``without`` does not name.
    SchemaError
        For a column whose type has no counterpart.
    UnsupportedOperationError
        If one of the formats does not take part in conversions.
    InvalidArgumentError
        For arguments that contradict each other.

    Notes
    -----
    Rows are streamed, in bounded memory. The new table can't be opened before all of them are written; if that fails,
    the files are deleted.
    """
    _check_place(origin, engine, uri)
    outgoing = _exchange(source.format_name).outgoing(source, options.columns, options.row_ids is not False)
    keeps = outgoing.row_id is not None and options.row_ids is not False
    given = {**options.destination, "row_ids": keeps or options.row_ids is True}
    incoming = _exchange(to).incoming(engine, uri, outgoing, given)
    changes = column_changes(outgoing, incoming)
    facets = (*outgoing.facets, *incoming.facets, *_of_rows(outgoing, keeps))
    check_losses(facets, changes, options.without, shown_uri(origin.storage.uri("")), to)
    done = None
    report = ProgressReport(options.progress)
    counted = _Counted(outgoing.rows)
    if not options.dry_run:
        report.begin("write")
        done = incoming.write(report.counted(counted.reader()))
    return Conversion(done, counted.num_rows, tuple(changes), facets)


def _of_rows(outgoing: Outgoing, keeps: bool) -> Iterator[TableFacet]:
    if outgoing.row_id is not None:
        yield TableFacet("stableRowIds", "stable ids of rows", "kept" if keeps else "lost")
    yield TableFacet("history", "earlier versions; only the rows of this one are converted", "not needed")


class _Counted:
    """Rows that are counted as they are read."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.num_rows = 0

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._rows.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows.batches():
            self.num_rows += batch.num_rows
            yield batch


def _check_place(origin: Engine, engine: Engine, uri: str) -> None:
    """Check that the place is free, and not within the source."""
    place = engine.storage.uri("").rstrip("/")
    try:
        version = open_context(uri, engine=engine).read().version
    except TableNotFoundError:
        check_place_is_free(engine)
    else:
        raise TableExistsError(
            f"There is a Delta table at {shown_uri(place)} (version {version}); a conversion makes a new table. Choose "
            "another place.",
            path=place,
        )
    old = origin.storage.uri("").rstrip("/")
    if f"{place}/".startswith(f"{old}/") or f"{old}/".startswith(f"{place}/"):
        raise InvalidArgumentError(
            f"The new table at {shown_uri(place)} and the source at {shown_uri(old)} would share a folder. Choose a "
            "place outside of the source.",
            path=place,
        )


def _exchange(name: str) -> ExchangeFormat:
    """Return the format of a name, as conversions use it."""
    found = DELTA if name == DELTA.name else format_named(name)
    if not (hasattr(found, "outgoing") and hasattr(found, "incoming")):
        raise UnsupportedOperationError(
            f"Tables of the format {name!r} are not converted: its package offers no conversion.", format=name
        )
    return found  # type: ignore[return-value]  # checked above


# --- folders of Parquet files ----------------------------------------------------------------


@contextmanager
def folder_snapshot(folder: TableContext, options: ConvertOptions) -> Iterator[Snapshot]:
    """Return a folder of Parquet files as a version of a table whose log is a temporary file.

    Parameters
    ----------
    folder : TableContext
        The folder.
    options : ConvertOptions
        Its partition columns.
    """
    given = None if folder.opening is None else folder.opening.storage_options
    with temporary_files(), tempfile.TemporaryDirectory(prefix="delta-core-convert-") as place:
        allowed = [folder.log.engine.storage.uri("")]
        into = open_context(place, given, allow_external=allowed)
        found = convert_folder(folder, None, options, into=into).snapshot
        assert found is not None
        yield found


# --- Delta -----------------------------------------------------------------------------------


class DeltaExchange:
    """Delta as a format of conversions (`formats.ExchangeFormat`)."""

    name = "delta"

    def outgoing(self, table: Any, columns: Sequence[str] | None, row_ids: bool) -> Outgoing:
        """See `formats.ExchangeFormat.outgoing`."""
        snapshot: Snapshot = table
        fields = _chosen(snapshot.schema, columns)
        rule = _row_id_column(snapshot.state, snapshot.plugins) if row_ids else None
        metadata = [] if rule is None else [rule.name]
        rows = snapshot.scan([(f.name,) for f in fields], metadata=metadata)
        arrow = pa.schema([rows.schema.field(i) for i in range(len(fields))])
        for field, stored in zip(fields, arrow, strict=True):
            _check_arrow(field, stored)
        return Outgoing(
            rows,
            _with_metadata(fields, arrow),
            [spark_name(f.type) for f in fields],
            None if rule is None else rule.name,
            list(_facets(snapshot, rule, fields)),
            properties={k: v for k, v in snapshot.metadata.configuration.items() if not k.startswith("delta.")},
            name=snapshot.metadata.name,
            description=snapshot.metadata.description,
        )

    def incoming(self, engine: Engine, uri: str, outgoing: Outgoing, options: Mapping[str, Any]) -> Incoming:
        """See `formats.ExchangeFormat.incoming`."""
        return _NewTable(engine, uri, outgoing, **_known(options, ("row_ids", "partition_by", "properties")))


DELTA = DeltaExchange()


def _row_id_column(table: TableState, plugins: PluginSet) -> MetadataColumn | None:
    """Return the metadata column that has stable ids of rows; None if the table has none."""
    rules = plugins.collect("read_rules", table=table, request=ReadRequest())
    found = (r for r in rules if isinstance(r, MetadataColumn) and r.identifies and table.is_active(r.feature))
    return next(found, None)


def _known(options: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    strange = next((n for n in options if n not in names), None)
    if strange is not None:
        raise InvalidArgumentError(
            f"Found the argument {strange}, which a new Delta table does not take; it takes {', '.join(names)}."
            f"{did_you_mean(strange, names)}",
            argument=strange,
        )
    return options


def _chosen(schema: StructType, columns: Sequence[str] | None) -> list[Field]:
    if columns is None:
        return list(schema.members)
    found = []
    for name in column_names("columns", columns):
        field = schema.get(name)
        if field is None:
            raise ColumnNotFoundError(
                f"Column {name!r} is not in the table; its columns are: {', '.join(schema.names[:20])}."
                f"{did_you_mean(name, schema.names)}",
                column=name,
            )
        found.append(field)
    return found


def _check_arrow(field: Field, stored: pa.Field) -> None:
    """Check that the values of a column have the meaning of their Arrow type, unlike the bytes of a variant."""
    try:
        is_plain = _bare(arrow_to_type(stored.type)) == _bare(field.type)
    except SchemaError:
        is_plain = False
    if not is_plain:
        raise SchemaError(
            f"Column {field.name} is {spark_name(field.type)}, a type of Delta that other formats lack. Leave it out "
            "with columns=, or cast it to another type first.",
            column=field.name,
        )


def _bare(of: Any) -> Any:
    """Return a type without nullability and metadata of its parts."""
    return StructType(with_field_metadata(StructType([Field("x", of, True, {})]), lambda f: {}).members)


def _with_metadata(fields: Sequence[Field], arrow: pa.Schema) -> pa.Schema:
    """Return the columns with the texts that users added to them."""
    kept = [
        {k: str(v) for k, v in f.metadata.items() if isinstance(v, str) and not k.startswith(_OF_FEATURES)}
        for f in fields
    ]
    return pa.schema(
        [a.with_nullable(f.nullable).with_metadata(m or None) for a, f, m in zip(arrow, fields, kept, strict=True)]
    )


def _facets(snapshot: Snapshot, rule: MetadataColumn | None, fields: Sequence[Field]) -> Iterator[TableFacet]:
    """Yield the parts of a table beside rows and columns."""
    state, plugins = snapshot.state, snapshot.plugins
    for name, feature in plugins.features.items():
        if state.is_active(name) and not (rule is not None and rule.feature == name):
            yield TableFacet(name, feature.summary, "not needed" if feature.arranges_only(state) else "lost")
    for name in sorted(plugins.unknown):
        yield TableFacet(name, "a feature that no installed plugin provides")
    if state.partition_columns:
        yield TableFacet("partitions", f"partitioned by {', '.join(state.partition_columns)}")
    lengths = [f.name for f in fields if CHAR_VARCHAR in f.metadata]
    if lengths:
        yield TableFacet("lengths", f"the lengths of char and varchar in {', '.join(lengths)}")
    system = {d for f in snapshot.registry.everything.features.values() for d in f.domains}
    domains = sorted(d for d in snapshot.domains() if d not in system)
    if domains:
        yield TableFacet("domains", f"domain metadata {', '.join(domains)}")
    settings = sorted(k for k in snapshot.metadata.configuration if k.startswith("delta."))
    if settings:
        yield TableFacet("settings", f"table properties {', '.join(settings)}", "not needed")


class _NewTable:
    """A Delta table that is about to be created (`scan.exchange.Incoming`)."""

    facets: Sequence[TableFacet] = ()

    def __init__(
        self,
        engine: Engine,
        uri: str,
        outgoing: Outgoing,
        *,
        row_ids: bool = False,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._context = open_context(uri, engine=engine)
        self._row_id = outgoing.row_id if row_ids else None
        schema = _delta_schema(outgoing.schema)
        self._transaction: Transaction[Snapshot] = Transaction(
            self._context,
            None,
            _OPERATION,
            {
                "mode": "ErrorIfExists",
                "partitionBy": compact_json(list(partition_by)),
                "source": repr(outgoing.rows.source),
            },
        )
        asked = {**outgoing.properties, **(properties or {})}
        stage_definition(
            self._transaction,
            schema,
            partition_by=column_names("partition_by", partition_by),
            name=outgoing.name,
            description=outgoing.description,
            properties=asked,
            row_ids=row_ids,
        )
        self.types = [spark_name(f.type) for f in schema.members]
        self.schema = schema.to_arrow()

    def write(self, rows: pa.RecordBatchReader) -> Snapshot:
        """See `Incoming.write`."""
        transaction = self._transaction
        plan = transaction.plan
        hidden = [] if self._row_id is None else list(plan.carried("moved"))
        column = _row_id_column(transaction.table, transaction.plugins) if hidden else None
        carried = {h.name: column is not None and h.carries == column.name for h in hidden}
        stream = _Carrying(rows, self.schema, self._row_id, carried)
        engine = self._context.log.engine
        origin: Origin = "moved" if hidden else "new"
        written = write_files(engine, plan, stream.reader(), origin=origin, beside_reads=True, syncs=transaction.syncs)
        try:
            transaction.add_written(written)
            if stream.bounds is not None and column is not None:
                transaction.intents.report({(column.name,): stream.bounds})
            transaction.metrics.update(
                numFiles=written.adds.num_rows, numOutputRows=written.num_rows, numOutputBytes=written.num_bytes
            )
            return transaction.commit(None, {}, 0).snapshot
        except BaseException:
            if not transaction.in_doubt:
                written.cleanup()
            raise


def _delta_schema(arrow: pa.Schema) -> Schema:
    try:
        plain = [
            f.with_metadata({k: v for k, v in (f.metadata or {}).items() if not k.decode().startswith(_OF_FEATURES)})
            for f in arrow
        ]
        return Schema.from_arrow(pa.schema([_stored(f) for f in plain]))
    except SchemaError as e:
        raise SchemaError(f"{e} Or leave the column out with columns=.", **e.facts) from e


def _stored(field: pa.Field) -> pa.Field:
    """Return a field with the storage type in place of an extension type."""
    of = field.type
    return field.with_type(of.storage_type) if isinstance(of, pa.BaseExtensionType) else field


def _no_values(batch: pa.RecordBatch) -> pa.Array:
    return pa.nulls(batch.num_rows, pa.int64())


class _Carrying:
    """Rows in the types of a new table, with its hidden columns, by name: whether they are the ids of rows.

    Attributes
    ----------
    bounds : (int, int) or None
        The least and the greatest id so far.
    """

    def __init__(
        self, rows: pa.RecordBatchReader, schema: pa.Schema, row_id: str | None, hidden: Mapping[str, bool]
    ) -> None:
        self._rows = rows
        self._schema = schema
        self._row_id = row_id
        self._hidden = hidden
        self._changes = [conversion(rows.schema.field(f.name).type, f.type, (f.name,)) for f in schema]
        self.bounds: tuple[int, int] | None = None

    def reader(self) -> pa.RecordBatchReader:
        fields = [*self._schema, *(pa.field(n, pa.int64()) for n in self._hidden)]
        schema = pa.schema(fields)
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            if not batch.num_rows:
                continue
            columns = [
                batch.column(f.name) if change is None else change(batch.column(f.name))
                for f, change in zip(self._schema, self._changes, strict=True)
            ]
            columns += [self._ids(batch) if has_ids else _no_values(batch) for has_ids in self._hidden.values()]
            yield pa.RecordBatch.from_arrays([one_array(c) for c in columns], schema=schema)

    def _ids(self, batch: pa.RecordBatch) -> pa.Array:
        found = one_array(batch.column(self._row_id))
        try:
            ids = found.cast(pa.int64())
        except pa.ArrowInvalid as e:
            raise SchemaError(
                f"A row id is too large for a Delta table, which has ids of 63 bits: {e}. Pass row_ids=False."
            ) from e
        if not is_valid(ids).all():
            raise SchemaError("A row of the source has no id. Pass row_ids=False.")
        some = pc.min_max(ids)
        low, high = some["min"].as_py(), some["max"].as_py()
        self.bounds = (low, high) if self.bounds is None else (min(low, self.bounds[0]), max(high, self.bounds[1]))
        return ids
