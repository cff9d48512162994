"""Writing a table with Spark: the modes, definition, conflicts and commit of `operations.write`, rows by DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.chars import with_declared_types
from delta_core.engines.spark.conditions import empty_rows
from delta_core.engines.spark.failures import failing_as, reason
from delta_core.engines.spark.latest import fixed_rows
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.relations import SparkRelation
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.table_columns import TableColumns
from delta_core.engines.spark.write.files import FrameOptions, write_frame
from delta_core.engines.spark.write.rows import given_schema
from delta_core.errors import DeltaError, InvalidArgumentError
from delta_core.expressions.ast import Expression
from delta_core.expressions.printing import quote_name
from delta_core.kernel.commit.intents import READ_TO_REMOVE, read_columns
from delta_core.kernel.commit.transaction import CommitResult
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.scan.plan import ROW_INDEX
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernel.write.files import Written
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.operations.changes import FILE_NUMBER, Dropped
from delta_core.operations.facts import live_rows
from delta_core.operations.replace import check_replacing, replaced_columns, replacing_parameters
from delta_core.operations.rewrite import carried_columns
from delta_core.operations.row_changes import with_numbers
from delta_core.operations.write import TableWrite, WriteOptions, run_write
from delta_core.schema.types import PrimitiveType, StructType

__all__ = ["FrameWriteOptions", "write_rows"]

_PLACE = "_file_path"


class FrameWriteOptions(Struct, frozen=True):
    """Options of a write with Spark beside `WriteOptions`.

    Parameters
    ----------
    replace_using : sequence of str
        With ``overwrite``: rows of the table that are equal to a new row in these columns are replaced; null equals
        nothing.
    replace_on : str or Column, optional
        With ``overwrite``: rows of the table for which the condition holds with a new row are replaced. The table's
        columns are those of ``t``, the new rows' those of ``s``.
    """

    replace_using: Sequence[str] = ()
    replace_on: str | Column | None = None
    files: FrameOptions = field(default_factory=FrameOptions)

    @property
    def replaces(self) -> bool:
        """Whether new rows choose what they replace."""
        return bool(self.replace_using) or self.replace_on is not None


def write_rows(
    context: TableContext, rows: DataFrame, options: WriteOptions, own: FrameWriteOptions
) -> CommitResult[Snapshot] | None:
    """Write a DataFrame's rows and commit them; as `operations.write.write_table`."""
    if own.replaces:
        check_replacing(options, own.replace_using, own.replace_on)
    with failing_as(f"Spark failed to write {context.log.uri}", path=context.log.uri):
        return run_write(context, options, lambda base: _FrameWrite(context, base, rows, options, own))


class _FrameWrite(TableWrite):
    def __init__(
        self,
        context: TableContext,
        base: Snapshot | None,
        source: DataFrame,
        options: WriteOptions,
        own: FrameWriteOptions,
    ) -> None:
        self.own = own
        self.spark = source.sparkSession
        self.read = fixed_rows(source, base)
        options = options if base is None else self._compared_options(base, options)
        super().__init__(context, base, self.read.rows, options)
        self.read_version = self.read.read_version
        if base is not None:
            self.read.note_in(self.transaction, base)

    def _compared_options(self, base: Snapshot, options: WriteOptions) -> WriteOptions:
        """Return options whose condition compares columns as a query of the session does."""
        where = options.replace_where
        if where is None or isinstance(where, (list, tuple)):
            return options
        columns = TableColumns(self.spark, base, None, session_settings(self.spark))
        given = columns.condition(where) if isinstance(where, (str, Column)) else columns.padded(where)
        return replace(options, replace_where=given)

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), **replacing_parameters(self.own.replace_using, self.own.replace_on)}

    def moved_to(self, base: Snapshot) -> TableWrite:
        """Return the same write for a table that another writer created meanwhile."""
        return _FrameWrite(self.context, base, self.source, self.options, self.own)

    # --- rows ---

    def given_schema(self) -> StructType:
        """Return the DataFrame's schema, every part nullable."""
        return given_schema(self.source)

    def write_new(self, plan: WritePlan) -> Written:
        """Write the DataFrame's rows."""
        return self._write(plan, self.source, data_change=self.options.data_change)

    def _write_changes(self, plan: WritePlan, parts: Sequence[DataFrame]) -> Written:
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionByName(part)
        return self._write(plan, rows, origin="changes")

    def _write(self, plan: WritePlan, rows: DataFrame, origin: Origin = "new", data_change: bool = True) -> Written:
        return write_frame(self.spark, self.engine, plan, rows, self.own.files, data_change=data_change, origin=origin)

    # --- what new rows replace ---

    def _write_rows(self, predicate: Expression | None) -> None:
        if self.own.replaces and self.base is not None:
            self._check_condition()
        super()._write_rows(predicate)

    def _check_condition(self) -> None:
        """Reject a condition that Spark can't resolve, before rows are written."""
        table = self.transaction.table
        rows = empty_rows(self.spark, table.schema, table.types)
        try:
            rows.alias("t").join(rows.alias("s"), self._condition(table.schema), "left_semi").schema  # noqa: B018 (Connect analyses it here)
        except DeltaError:
            raise
        except Exception as e:
            raise InvalidArgumentError(
                f"replace_on={self.own.replace_on!s} is no condition on t, the table, and s, the new rows: {reason(e)}"
            ) from e

    def _replace(self, base: Snapshot, predicate: Expression | None) -> None:
        if self.own.replaces:
            self._replace_matching(base)
        else:
            super()._replace(base, predicate)

    def _replace_matching(self, base: Snapshot) -> None:
        """Remove what matches a new row: files that hold such rows are written again without them.

        The new rows are read from the files just written: computed twice, a query may return others.
        """
        plan = self.transaction.plan
        new = FileSet.of(self.written[0].adds)
        self.dropped = Dropped(0)
        # a match may turn up in any file, and in one that comes meanwhile
        self.transaction.read(None)
        if not new.count:
            return
        source = self._compared(base, base.scan(files=new)).alias("s")
        if plan.remove_rows is not None:
            self._drop_matching(base, source)
            return
        target = self._compared(base, base.scan(metadata=(_PLACE,)))
        hit = target.alias("t").join(source, self._condition(base.schema), "left_semi")
        places = [r[0] for r in hit.select(_PLACE).distinct().collect()]
        if not places:
            return
        removed = self._of_places(base, places)
        touched = FileSet.of(removed)
        num_rows = live_rows(touched, removed)
        carried = carried_columns(plan)
        old = self._compared(base, base.scan(metadata=tuple(carried), files=touched)).alias("t")
        remaining = old.join(source, self._condition(base.schema), "left_anti")
        self.written.append(self._write(plan, _renamed(remaining, carried), origin="moved"))
        self.dropped = Dropped(num_rows, self._stage_last().num_rows)
        if plan.capture is not None:
            every = self._compared(base, base.scan(files=touched)).alias("t")
            gone = every.join(source, self._condition(base.schema), "left_semi")
            column = plan.capture.change_column
            parts = [(gone, "delete"), (frame(self.spark, base.scan(files=new)), "insert")]
            changes = [rows.withColumn(column, F.lit(kind)) for rows, kind in parts]
            self.changes.append(self._write_changes(plan, changes))
            self.transaction.add_change_files(self.changes[-1].files)
        self._remove(removed)

    def _drop_matching(self, base: Snapshot, source: DataFrame) -> None:
        """Drop the rows that match a new row, without rewriting their files."""
        files = base.files.columns(read_columns(base.action_fields))
        scan = base.scan(
            metadata=(ROW_INDEX,),
            files=FileSet.of(with_numbers(files)),
            constants={FILE_NUMBER: (FILE_NUMBER, PrimitiveType("long"))},
        )
        hit = self._compared(base, scan).alias("t").join(source, self._condition(base.schema), "left_semi")
        changes = self._begin_changes(base)
        found = SparkRelation(hit.select(f"t.{FILE_NUMBER}", f"t.{ROW_INDEX}"))
        rows = changes.relations.positions(found, files.num_rows, lambda _: None)
        num_rows = int(rows.cardinalities().sum())
        if num_rows:
            changes.drop(files, deleted=rows)
        self._finish_changes(changes, Dropped(num_rows + changes.num_copied, changes.num_copied))

    def _compared(self, base: Snapshot, scan: Scan) -> DataFrame:
        """Return rows as conditions compare them."""
        return with_declared_types(frame(self.spark, scan), base.schema, session_settings(self.spark))

    def _of_places(self, base: Snapshot, places: Sequence[str]) -> pa.Table:
        """Return the files that lie at these places, as they are removed."""
        table = base.files.columns([*READ_TO_REMOVE, "stats"])  # which count the rows
        requested = set(places)
        uris = map(self.engine.storage.uri_for_engine, decode_paths(table.column("path")))
        return table.filter(pa.array([u in requested for u in uris], pa.bool_()))

    def _condition(self, schema: StructType) -> Column:
        on = self.own.replace_on
        if on is not None:
            return F.expr(on) if isinstance(on, str) else on
        found: Column | None = None
        for name in replaced_columns(schema, self.own.replace_using):
            quoted = quote_name(name)
            part = F.col(f"t.{quoted}") == F.col(f"s.{quoted}")
            found = part if found is None else found & part
        assert found is not None
        return found


def _renamed(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    return rows.withColumnsRenamed(dict(names)) if names else rows
