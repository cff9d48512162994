"""Changes of rows of a dataset in one version: what DELETE, UPDATE, MERGE and replacing writes do with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from delta_core.api import (
    FILE_NUMBER,
    ROW_INDEX,
    Changed,
    ChangeOptions,
    Column,
    ConstraintViolationError,
    Dropped,
    Literal as Constant,
    ProgressReport,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    find,
    format_sql,
    leaves,
)
from delta_core.kernels.arrow_buffers import mask_of, number_array, one_array
from delta_core.kernels.row_set import RowSet, RowSets
from delta_plugins.lance import flags
from delta_plugins.lance.chosen_rows import UnitRows
from delta_plugins.lance.commit.commits import commit_operation
from delta_plugins.lance.commit.operations import Delete, Operation, Overwrite, RowRemoval, Update
from delta_plugins.lance.external_blobs import Targets
from delta_plugins.lance.schema import walk_fields
from delta_plugins.lance.write.fitting import fit_batches, with_blob_values
from delta_plugins.lance.write.fragments_writer import FragmentsWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from delta_core.api import Expression, Path
    from delta_plugins.lance.dataset_version import DatasetVersion

__all__ = ["LanceChanges", "blob_values", "check_changeable", "manifest_scheme", "units_of"]

_ID, _CREATED = "_rowid", "_row_created_at_version"
#: The columns of written rows that these values are in.
_CARRIED = {_ID: "__kept_row_id", _CREATED: "__kept_created"}


def units_of(dataset: DatasetVersion) -> pa.Table:
    """Return the fragments of a version as units of rows: ``fragment``, the index, and ``size`` in bytes."""
    listed = dataset.manifest.fragments
    sizes = np.maximum(listed.stored_bytes(), 0)
    return pa.table({"fragment": number_array(np.arange(len(listed))), "size": number_array(sizes)})


def blob_values(dataset: DatasetVersion, source: Any, *, takes_uris: bool) -> Any:
    """Return rows for a change of a dataset, with their blobs as values (`fitting.with_blob_values`)."""
    manifest = dataset.manifest
    targets = Targets(dataset.storage, manifest.base_paths) if takes_uris else None
    return with_blob_values(source, manifest.fields, targets)


def manifest_scheme(path: str) -> int:
    """Return how the manifests of a dataset are named, 1 or 2, from the path of one."""
    return 2 if len(path.rpartition("/")[2]) == len(f"{2**64 - 1:020d}.manifest") else 1


def check_changeable(dataset: DatasetVersion) -> None:
    """Reject a dataset that can't be changed.

    Raises
    ------
    UnsupportedFeatureError
        For a feature that is not written, and for manifests of early writers without the numbers of rows.
    """
    message, path = dataset.manifest.message, dataset.manifest.path
    flags.check_writable(message["reader_feature_flags"], message["writer_feature_flags"], path)
    if len(dataset.manifest.fragments) and not dataset.manifest.rows_are_known:
        raise UnsupportedFeatureError(
            f"Manifest {path} does not specify the rows of its fragments, as those of early writers: such a dataset is "
            "only read. Write its rows to a new dataset, write_lance(new, open_table(old)), and change that one.",
            feature="fragments without numbers of rows",
        )


class LanceChanges:
    """The `TableChanges` of Lance: rows are dropped by deletion files, and written to new fragments.

    Parameters
    ----------
    dataset : LanceDataset
        The version that is changed.
    operation : str
        ``DELETE``, ``UPDATE``, ``MERGE`` or ``WRITE``.
    parameters : Mapping of str to object
        Of the operation.
    options : ChangeOptions
        How rows are changed.
    max_rows, max_bytes : int
        Of new fragments, see `FragmentsWriter`.
    """

    changes_definition = False
    computed: frozenset[str] = frozenset()

    def __init__(
        self,
        dataset: DatasetVersion,
        operation: str,
        parameters: Mapping[str, Any],
        options: ChangeOptions,
        **limits: int,
    ) -> None:
        check_changeable(dataset)
        manifest = dataset.manifest
        self.base = dataset
        self.progress = ProgressReport(options.progress)
        self.num_updated = self.num_inserted = 0
        self.carried: Mapping[str, str] = _CARRIED if manifest.has_stable_row_ids else {}
        self.carried_types: Mapping[str, pa.DataType] = dict.fromkeys(self.carried, pa.uint64())
        self._operation, self._parameters = operation, parameters
        self._properties = {k: str(v) for k, v in options.custom_metadata.items()}
        self._attempts = options.max_commit_retries + 1
        self._assigned: set[str] = set()
        self._used: set[Path] = set()
        self._dropped: dict[int, RowSet] = {}
        self._whole: list[int] = []
        self._replaces_all = False
        self._is_committing = False
        self._writer = FragmentsWriter(
            dataset.storage,
            dataset.files.below,
            manifest.fields,
            manifest.file_version,
            manifest.message["schema_metadata"],
            **limits,
        )

    @property
    def relations(self) -> Any:
        """The engine's relations.

        Raises
        ------
        UnsupportedOperationError
            If the engine has none.
        """
        found = self.base.engine.relations
        if found is None:
            raise UnsupportedOperationError("The engine changes no rows. Open the dataset with the engine 'arrow'.")
        return found

    def default_of(self, path: Path, updates: bool = False) -> Expression | None:
        """Return null, the default of every column."""
        return Constant(None, find(self.base.schema, path)[1].type)

    def check_assigned(self, names: Collection[str], used: Collection[Path] = ()) -> None:
        """Note which columns get other values, and which ones these are computed of."""
        self._assigned |= set(names)
        self._used |= set(used)

    # --- finding rows ---

    def whole_units(self, predicate: Expression | None, *, to_remove: bool) -> tuple[pa.Table, int | None] | None:
        """Return all fragments, and their rows, if there is no predicate."""
        if predicate is not None:
            return None
        return units_of(self.base), self.base.count() if to_remove else None

    def candidates(self, predicate: Expression | None) -> tuple[pa.Table, int]:
        """Return all fragments: no statistics exclude one; indices are looked up when rows are read."""
        return units_of(self.base), 0

    def read(self, predicate: Expression | None, files: pa.Table) -> None:
        """See `TableChanges.read`: rows that are changed are what conflicts are looked for in."""

    def numbered_rows(self, files: pa.Table, predicate: Expression | None, columns: Sequence[str | Path]) -> UnitRows:
        """Return rows of fragments with `FILE_NUMBER`, a column of ``files``, and `ROW_INDEX`."""
        return UnitRows(self.base, files, columns, (FILE_NUMBER, ROW_INDEX), predicate)

    def rows(
        self,
        files: pa.Table,
        rows: RowSets | None,
        columns: Sequence[str | Path] | None = None,
        metadata: Sequence[str] = (),
    ) -> UnitRows:
        """Return rows by position (None: all), with the metadata columns of `carried` and others."""
        named = (*metadata, *self.carried)
        return UnitRows(self.base, files, columns, named, rows=rows, carries=True, used=self._used)

    def positions(self, files: pa.Table, predicate: Expression | None) -> RowSets:
        """Return the physical positions, in each of some fragments, of the rows for which a predicate is true."""
        found = RowSets.from_positions(files.num_rows, np.empty(0, np.int64), np.empty(0, np.int64))
        self.progress.begin("find", files.column("size"))
        numbered = files.append_column(FILE_NUMBER, number_array(np.arange(files.num_rows)))
        for part in self.progress.parts(numbered):
            places = self.relations.scan(self.numbered_rows(part, predicate, []))
            found |= self.relations.positions(places, files.num_rows, lambda n: self.progress.add(rows=n))
        return found

    def find(self, predicate: Expression | None) -> tuple[pa.Table, RowSets]:
        """Return the fragments with rows for which a predicate is true, and these rows."""
        units = units_of(self.base)
        rows = self.positions(units, predicate)
        touched = np.flatnonzero(rows.cardinalities())
        return units.take(number_array(touched)), rows.take(touched)

    # --- dropping and writing rows ---

    def drop(self, files: pa.Table, deleted: RowSets | None = None, updated: RowSets | None = None) -> None:
        """Drop rows by position in each of the fragments; `write_updated` writes the updated ones again."""
        ids = self.base.manifest.fragments.id[files.column("fragment").to_numpy()]
        for some in (deleted, updated):
            if some is None:
                continue
            for i in np.flatnonzero(some.cardinalities()).tolist():
                before = self._dropped.get(int(ids[i]))
                self._dropped[int(ids[i])] = some[i] if before is None else before | some[i]

    def drop_files(self, files: pa.Table, updated: bool = False) -> None:
        """Remove whole fragments."""
        self._whole += self.base.manifest.fragments.id[files.column("fragment").to_numpy()].tolist()

    def drop_where(self, predicate: Expression | None) -> Dropped:
        """Drop the rows for which a predicate is true; without one, everything is replaced."""
        if predicate is None:
            self._replaces_all = True
            return Dropped(self.base.count())
        files, rows = self.find(predicate)
        self.drop(files, deleted=rows)
        return Dropped(int(rows.cardinalities().sum()))

    def write_updated(self, rows: Any) -> None:
        """Write rows of the dataset with new values; they keep their ids."""
        self.num_updated += self._write(rows, tuple(self.carried.values()))

    def write_inserted(self, rows: Any, *, task_index: int = 0, num_tasks: int = 1, checks: Sequence[Any] = ()) -> None:
        """Write new rows, which get new ids.

        Raises
        ------
        SchemaMismatchError
            For columns that don't fit, and nulls in a column that takes none.
        ConstraintViolationError
            If a row does not pass one of ``checks``.
        """
        self.num_inserted += self._write(rows, (), checks)

    def _write(self, rows: Any, kept: Sequence[str], checks: Sequence[Any] = ()) -> int:
        self.progress.begin("write")
        before = self._writer.num_rows
        stream = self.progress.counted(self.relations.stream(rows))
        manifest = self.base.manifest
        targets = Targets(self.base.storage, manifest.base_paths)
        found = fit_batches(iter(stream), stream.schema, manifest.fields, targets, kept)
        for batch, hidden in _checked(found, checks, self.base.engine.evaluator):
            if kept:
                ids, created = (one_array(hidden[n]).to_numpy() for n in kept)
                self._writer.write(batch, ids, created)
            else:
                self._writer.write(batch)
        return self._writer.num_rows - before

    def write_changes(self) -> None:
        """See `TableChanges.write_changes`: Lance keeps no records of changes."""

    # --- the end ---

    def metrics(self) -> dict[str, int]:
        """Complete the data files, and return what was done so far, named as the operation metrics of Delta."""
        self._writer.finish()
        sizes = units_of(self.base).column("size").to_numpy()
        listed = self.base.manifest.fragments
        whole = np.arange(len(listed)) if self._replaces_all else listed.find(np.array(self._whole, np.int64))
        touched = listed.find(np.array(list(self._dropped), np.int64))
        had = listed.deletion_kind[touched] >= 0
        gone = self._is_emptied()
        return {
            "numRemovedFiles": len(whole) + int(gone.sum()),
            "numRemovedBytes": int(sizes[whole].sum() + sizes[touched[gone]].sum()),
            "numAddedFiles": len(self._writer.fragments),
            "numAddedBytes": self._writer.num_bytes,
            "numCopiedRows": 0,
            "numDeletionVectorsAdded": int((~had & ~gone).sum()),
            "numDeletionVectorsUpdated": int((had & ~gone).sum()),
            "numDeletionVectorsRemoved": int((had & gone).sum()),
            "numAddedChangeFiles": 0,
        }

    def _is_emptied(self) -> Any:
        """Return which of the fragments with dropped rows have no row left, bool[n_fragments]."""
        touched = self.base.manifest.fragments.find(np.array(list(self._dropped), np.int64))
        dropped = np.array([r.cardinality for r in self._dropped.values()], np.int64)
        return dropped >= self.base.files.live_rows()[touched]

    def _removal(self) -> RowRemoval:
        whole = set(self._whole)
        rows = {f: r for f, r in self._dropped.items() if f not in whole}
        indices = self.base.manifest.fragments.find(np.array(list(rows), np.int64)).tolist()
        earlier = zip(rows, self.base.files.deleted_rows(indices), strict=True)
        return RowRemoval(self.base.manifest, rows, {f: r for f, r in earlier if r is not None})

    def _committed(self) -> Operation:
        """Return the operation of the transaction."""
        fragments = self._writer.finish()
        manifest = self.base.manifest
        if self._replaces_all:
            return Overwrite(fragments, manifest.fields, manifest.message["schema_metadata"])
        if self._operation == "DELETE":
            return Delete(self._removal(), self._whole, str(self._parameters.get("predicate", "")))
        changed = [f for f in manifest.fields if f.name in self._assigned]
        # rows that another commit adds may match those of a source that were inserted
        reads_all = self._operation == "MERGE" and self.num_inserted > 0
        return Update(
            self._removal(), fragments, self._whole, sorted(f.id for f in walk_fields(changed)), reads_all=reads_all
        )

    def commit(self, options: ChangeOptions, metrics: Mapping[str, int]) -> Changed:
        """Commit what was done.

        Raises
        ------
        CommitConflictError
            Another writer's commit contradicts this one; its fact ``is_retryable`` specifies whether the whole
            operation can run again.
        CommitStateUnknownError
            It can't be found out whether it landed; nothing is deleted then.
        """
        operation = self._committed()
        files = self.base.files
        self._is_committing = True
        done = commit_operation(
            self.base.storage,
            operation,
            self.base.manifest,
            below=files.below,
            scheme=manifest_scheme(self.base.manifest.path),
            properties=self._properties,
            max_attempts=self._attempts,
            written=self._writer.paths,
        )
        return Changed(self.base.at(done.manifest), metrics, is_committed=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and not self._is_committing:
            # a commit that did not land has deleted the files; while it may have landed, they stay
            self._writer.abandon()


def _checked(rows: Iterator[Any], checks: Sequence[Any], evaluator: Any) -> Iterator[Any]:
    """Yield rows that pass checks."""
    compiled: list[tuple[Any, Any]] | None = None
    for batch, hidden in rows:
        if compiled is None:
            compiled = [(c, evaluator.compile(c.expression, _types(c.expression, batch.schema))) for c in checks]
        for check, test in compiled:
            columns = [_column(batch, leaf.path) for leaf in test.leaves]
            passes = mask_of(one_array(test(columns, batch.num_rows)))
            if not passes.all():
                row = batch.slice(int(np.argmin(passes)), 1).to_pylist()[0]
                shown = check.sql or format_sql(check.expression)
                raise ConstraintViolationError(
                    f"A row does not fit {shown}: {str(row)[:200]}. Write rows that do, or change the condition.",
                    constraint=shown,
                )
        yield batch, hidden


def _types(expression: Expression, schema: pa.Schema) -> dict[Any, pa.DataType]:
    found = {}
    for leaf in leaves(expression):
        if isinstance(leaf, Column):
            of: Any = schema.field(leaf.path[0]).type
            for name in leaf.path[1:]:
                of = of.field(name).type
            found[leaf] = of
    return found


def _column(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    array: Any = batch.column(path[0])
    for name in path[1:]:
        array = array.flatten()[array.type.get_field_index(name)]
    return array
