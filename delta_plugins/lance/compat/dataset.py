"""Datasets with pylance's names; each call is one of our own dataset's."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.api import CommitProperties, InvalidArgumentError, SchemaMismatchError, TableNotFoundError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.changes import manifest_scheme
from delta_plugins.lance.commit.commits import commit_operation
from delta_plugins.lance.commit.operations import Append, Delete, Operation, Overwrite, RowRemoval
from delta_plugins.lance.compat.fragments import FragmentMetadata, LanceFragment, LanceOperation, staged_fragments
from delta_plugins.lance.compat.merging import MergeInsertBuilder, rows_of, without_uris
from delta_plugins.lance.compat.rejections import NotOfferedError, OfferedNames, not_offered, reject, translated
from delta_plugins.lance.compat.scanner import LanceScanner, make_scanner
from delta_plugins.lance.compat.sql import condition, required, value
from delta_plugins.lance.compat.upkeep import UpkeepMethods
from delta_plugins.lance.dataset import LanceDataset as Dataset
from delta_plugins.lance.format import open_dataset
from delta_plugins.lance.projection import METADATA
from delta_plugins.lance.refs import MAIN, Tag
from delta_plugins.lance.write.fragments_writer import MAX_BYTES, MAX_ROWS
from delta_plugins.lance.write.write_lance import write_lance

__all__ = ["LanceDataset", "dataset", "write_dataset", "write_fragments"]

_RETRIES = 10
#: Versions of data files by pylance's names.
_FILE_VERSIONS = {"stable": "2.2", "2.0": "2.0", "2.1": "2.1", "2.2": "2.2"}
_MESSAGE = "__lance_commit_message"
_RETRY_SECONDS = 30


class LanceDataset(OfferedNames, UpkeepMethods):
    """One version of a dataset, with pylance's names.

    Parameters
    ----------
    uri : str
        Its root.
    version : int or str, optional
        A version, or a tag.
    storage_options : Mapping of str to str, optional
        As of `delta_core.DeltaTable`.

    Attributes
    ----------
    ours : delta_plugins.lance.dataset.LanceDataset
        The same version, with all our calls.
    """

    def __init__(
        self,
        uri: str | Path,
        version: int | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        asof: Any = None,
        ours: Dataset | None = None,
    ) -> None:
        self._options = storage_options
        self.ours = _opened(str(uri), version, asof, storage_options) if ours is None else ours

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.ours, self._options)

    def __getattr__(self, name: str) -> Any:
        if name == "ours":  # requested before it is assigned, as by copies
            raise AttributeError(name)
        return super().__getattr__(name)

    def __repr__(self) -> str:
        return f"LanceDataset({self.ours!r})"

    def __len__(self) -> int:
        return self.count_rows()

    def _of(self, ours: Dataset) -> LanceDataset:
        return LanceDataset(ours.uri, None, self._options, ours=ours)

    # --- what it is ------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """The root of the dataset."""
        return self.ours.uri

    @property
    def version(self) -> int:
        """The version."""
        return self.ours.version

    @property
    def latest_version(self) -> int:
        """The latest version of the branch."""
        return self.ours.versions()[-1]

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.ours.schema()

    @property
    def data_storage_version(self) -> str:
        """The version of its data files."""
        return ".".join(map(str, self.ours.manifest.file_version))

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows have ids that stay."""
        return self.ours.manifest.has_stable_row_ids

    @property
    def tags(self) -> Tags:
        """The tags of the dataset."""
        return Tags(self.ours)

    @property
    def stats(self) -> LanceStats:
        """The sizes of the version."""
        return LanceStats(self.ours)

    @property
    def optimize(self) -> DatasetOptimizer:
        """The maintenance of data files."""
        return DatasetOptimizer(self)

    @translated
    def versions(self) -> list[dict[str, Any]]:
        """Return the versions, oldest first: number, local time and sizes."""
        found = []
        for number in self.ours.versions():
            one = self.ours.checkout(number)
            moment = datetime.fromtimestamp(one.manifest.timestamp_us / 1e6, UTC).astimezone().replace(tzinfo=None)
            found.append({"version": number, "timestamp": moment, "metadata": _summary(one)})
        return found

    def config(self) -> dict[str, str]:
        """Return the configuration."""
        return dict(self.ours.manifest.message["config"])

    @translated
    def checkout_version(self, version: int | str | tuple[str | None, int | None]) -> LanceDataset:
        """Return a version by its number, by a tag, or by a branch and its number."""
        if isinstance(version, str):
            return self._of(self.ours.checkout(tag=version))
        if isinstance(version, tuple):
            branch, number = version
            return self._of(self.ours.checkout(number, branch=branch or MAIN))
        return self._of(self.ours.checkout(version))

    @translated
    def restore(self) -> None:
        """Commit this version as the latest one."""
        self.ours.restore(self.version)

    # --- rows ------------------------------------------------------------------------------

    @translated
    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Any = None,
        full_text_query: Any = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Any = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[Any] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
    ) -> LanceScanner:
        """Return a scan.

        Parameters
        ----------
        columns, filter, limit, offset, batch_size, strict_batch_size, blob_handling, order_by
            As of `LanceScanner`.
        scan_in_order, prefilter : bool, optional
            Rows are always in order, and filters always come before limits.
        fragments : iterable of LanceFragment, optional
            Only these are read.
        with_row_id, with_row_address : bool, optional
            Whether ``_rowid`` and ``_rowaddr`` come after the columns.
        use_scalar_index : bool, optional
            Whether indices are used, True by default.
        nearest, batch_size_bytes, batch_readahead, fragment_readahead, index_segments, full_text_query, use_stats
            Not offered.
        fast_search, io_buffer_size, late_materialization, include_deleted_rows, scan_stats_callback
            Not offered.
        disable_scoring_autoprojection, row_addr_allowlist, row_addr_blocklist
            Not offered.
        """
        return make_scanner(
            self.ours,
            "LanceDataset.scanner",
            columns,
            filter,
            limit,
            offset,
            batch_size,
            None if fragments is None else [f.fragment_id for f in fragments],
            scan_in_order=scan_in_order,
            prefilter=prefilter,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            use_scalar_index=use_scalar_index,
            blob_handling=blob_handling,
            strict_batch_size=strict_batch_size,
            order_by=order_by,
            nearest=nearest,
            batch_size_bytes=batch_size_bytes,
            batch_readahead=batch_readahead,
            fragment_readahead=fragment_readahead,
            index_segments=index_segments,
            full_text_query=full_text_query,
            use_stats=use_stats,
            fast_search=fast_search,
            io_buffer_size=io_buffer_size,
            late_materialization=late_materialization,
            include_deleted_rows=include_deleted_rows,
            scan_stats_callback=scan_stats_callback,
            disable_scoring_autoprojection=disable_scoring_autoprojection,
            row_addr_allowlist=row_addr_allowlist,
            row_addr_blocklist=row_addr_blocklist,
        )

    def to_table(self, columns: Any = None, filter: Any = None, *arguments: Any, **named: Any) -> pa.Table:
        """Return rows; arguments as of `scanner`, in the same order as far as ``scan_in_order``."""
        found: pa.Table = self.scanner(columns, filter, *arguments, **named).to_table()
        return found

    def to_batches(
        self, columns: Any = None, filter: Any = None, *arguments: Any, **named: Any
    ) -> Iterator[pa.RecordBatch]:
        """Return rows in batches; arguments as of `scanner`, in the same order as far as ``scan_in_order``."""
        found: Iterator[pa.RecordBatch] = self.scanner(columns, filter, *arguments, **named).to_batches()
        return found

    def to_pandas(self, columns: Any = None, filter: Any = None, *, blob_mode: str = "lazy", **named: Any) -> Any:
        """Return rows as a data frame; arguments as of `scanner`."""
        return self.scanner(columns, filter, **named).to_pandas(blob_mode=blob_mode)

    @translated
    def count_rows(self, filter: Any = None, **others: Any) -> int:
        """Return how many rows there are, or pass."""
        reject("LanceDataset.count_rows", others)
        return self.ours.count(condition(filter, self.ours.schema()))

    def head(self, num_rows: int, **named: Any) -> pa.Table:
        """Return the first rows; other arguments as of `scanner`."""
        return self.to_table(limit=num_rows, **named)

    @translated
    def take(self, indices: Any, columns: Any = None) -> pa.Table:
        """Return chosen rows in their order."""
        numbers = indices.to_pylist() if hasattr(indices, "to_pylist") else list(indices)
        if isinstance(columns, Mapping) or {*METADATA} & {*(columns or ())}:
            return self.scanner(columns).of_rows(numbers)
        return self.ours.take(numbers, None if columns is None else list(dict.fromkeys(columns)))

    @translated
    def sample(self, num_rows: int, columns: Any = None, randomize_order: bool = True, **others: Any) -> pa.Table:
        """Return rows chosen at random, in random order unless ``randomize_order`` is False.

        Raises
        ------
        CompatError, InvalidArgumentError
            There are fewer rows.
        """
        reject("LanceDataset.sample", others)
        total = self.ours.count()
        if isinstance(num_rows, bool) or not 0 <= num_rows <= total:
            raise InvalidArgumentError(f"Found {num_rows!r} rows to choose, expected at most all {total}.")
        chosen = random.sample(range(total), num_rows)
        return self.take(chosen if randomize_order else sorted(chosen), columns)

    # --- changes ---------------------------------------------------------------------------

    @translated
    def delete(self, predicate: Any, *, conflict_retries: int = _RETRIES, retry_timeout: Any = None) -> dict[str, int]:
        """Delete rows, and return how many."""
        _check_timeout("LanceDataset.delete", retry_timeout)
        done = self.ours.delete(
            condition(required(predicate), self.ours.schema()), commit_properties=_retrying(conflict_retries)
        )
        return {"num_deleted_rows": done["num_deleted_rows"]}

    @translated
    def update(
        self,
        updates: Mapping[str, str],
        where: Any = None,
        conflict_retries: int = _RETRIES,
        retry_timeout: Any = None,
        data_storage_version: str | None = None,
    ) -> dict[str, int]:
        """Set columns to SQL, and return of how many rows."""
        _check_timeout("LanceDataset.update", retry_timeout)
        reject("LanceDataset.update", {"data_storage_version": data_storage_version})
        found: dict[str, Any] = {name: value(text) for name, text in updates.items()}
        done = self.ours.update(
            found, predicate=condition(where, self.ours.schema()), commit_properties=_retrying(conflict_retries)
        )
        return {"num_rows_updated": done["num_updated_rows"]}

    @translated
    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Return a merge, to which clauses are added; its ``execute`` runs it."""
        return MergeInsertBuilder(self.ours, on)

    @translated
    def insert(self, data: Any, *, mode: str = "append", **named: Any) -> None:
        """Append rows, or write them in place of all others; arguments as of `write_dataset`."""
        options = named.pop("storage_options", self._options)
        self.ours = write_dataset(data, self, mode=mode, storage_options=options, **named).ours

    @translated
    def add_columns(
        self,
        transforms: Any,
        read_columns: list[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns: SQL by name, fields whose values are null, or rows in the order of the dataset."""
        reject("LanceDataset.add_columns", {"read_columns": read_columns, "batch_size": batch_size})
        if isinstance(transforms, Mapping):
            transforms = {name: value(text) for name, text in transforms.items()}
        elif isinstance(transforms, list) and all(isinstance(f, pa.Field) for f in transforms):
            transforms = pa.schema(transforms)
        elif not isinstance(transforms, (pa.Field, pa.Schema)):
            transforms = rows_of(transforms, reader_schema)
        self.ours.add_columns(transforms)

    @translated
    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns."""
        self.ours.drop_columns(columns)

    @translated
    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Rename and cast columns: dicts of ``path``, ``name`` and ``data_type``; each change is a version.

        Raises
        ------
        CompatError, InvalidArgumentError
            A change has other keys, or a column is not there.
        """
        for given in alterations:
            others = {k: v for k, v in given.items() if k not in ("path", "name", "data_type")}
            reject("LanceDataset.alter_columns", others)
            if "path" not in given or not {"name", "data_type"} & {*given}:
                raise InvalidArgumentError(f"Found {dict(given)!r}, expected path, and name or data_type.")
        for given in alterations:
            if given.get("data_type") is not None:
                self.ours.cast_column(given["path"], given["data_type"])
            if given.get("name") is not None:
                self.ours.rename_column(given["path"], given["name"])

    @translated
    def update_config(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Set keys of the configuration, None removes one; return all of it."""
        reject("LanceDataset.update_config", {"replace": replace or None})
        self.ours.set_config(values)
        return self.config()

    # --- fragments -------------------------------------------------------------------------

    @translated
    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return the fragments."""
        reject("LanceDataset.get_fragments", {"filter": filter})
        return [LanceFragment(self.ours, i) for i in self.ours.manifest.fragments.id.tolist()]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return a fragment by its id, None if there is none."""
        try:
            return LanceFragment(self.ours, fragment_id)
        except InvalidArgumentError:
            return None

    @staticmethod
    @translated
    def commit(
        base_uri: str | Path | LanceDataset,
        operation: Any,
        read_version: int | None = None,
        commit_lock: Any = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        **others: Any,
    ) -> LanceDataset:
        """Commit fragments that were written or changed before.

        Parameters
        ----------
        base_uri : str, Path or LanceDataset
            The dataset.
        operation : LanceOperation.Append, Overwrite or Delete
            The fragments.
        read_version : int
            The version that they were made for.
        storage_options : Mapping of str to str, optional
            As of `delta_core.DeltaTable`.
        max_retries : int
            How often another version is tried if other writers commit.
        commit_message : str, optional
            Kept in the transaction.
        commit_lock, enable_v2_manifest_paths, detached, enable_stable_row_ids
            Not offered.
        **others : object
            Not offered.

        Raises
        ------
        CompatError, InvalidArgumentError
            Fragments are of another version, or there is none.
        CommitConflictError
            Another writer's commit contradicts this one.
        NotOfferedError
            For a new dataset, and for arguments that are not offered.
        """
        given = {"commit_lock": commit_lock, "detached": detached or None, **others}
        given["enable_v2_manifest_paths"] = False if enable_v2_manifest_paths is False else None
        given["enable_stable_row_ids"] = enable_stable_row_ids
        reject("LanceDataset.commit", given)
        uri, branch = _place(base_uri)
        is_overwrite = isinstance(operation, LanceOperation.Overwrite)
        if read_version is None and not is_overwrite:
            raise InvalidArgumentError("read_version is needed: the version that the fragments were made for.")
        base = _base(uri, read_version, storage_options, is_overwrite, branch)
        if base is None:
            raise NotOfferedError("commit makes no new dataset: create it with write_dataset.", name="commit")
        done = commit_operation(
            base.storage,
            _operation(operation, base),
            base.manifest,
            below=base.files.below,
            scheme=manifest_scheme(base.manifest.path),
            properties={} if commit_message is None else {_MESSAGE: commit_message},
            max_attempts=max_retries + 1,
        )
        return LanceDataset(uri, None, storage_options, ours=base.at(done.manifest))


def _place(of: str | Path | LanceDataset) -> tuple[str, str | None]:
    """Return the root of a dataset, and the branch that is written."""
    return (of.uri, of.ours.branch) if isinstance(of, LanceDataset) else (str(of), None)


def _base(uri: str, version: int | None, options: Any, is_overwrite: bool, branch: str | None = None) -> Dataset | None:
    try:
        return _opened(uri, version, None, options, branch)
    except TableNotFoundError:
        if is_overwrite:
            return None
        raise


def _operation(given: Any, base: Dataset) -> Operation:
    if isinstance(given, LanceOperation.Append):
        return Append([_written(f) for f in given.fragments])
    if isinstance(given, LanceOperation.Overwrite):
        reject("LanceOperation.Overwrite", {"initial_bases": given.initial_bases})
        return Overwrite([_written(f) for f in given.fragments], lance_fields(given.new_schema, 0))
    if isinstance(given, LanceOperation.Delete):
        rows = {f.id: RowSet.from_roaring(f.deleted, 32) for f in given.updated_fragments if f.deleted}
        for fragment in given.updated_fragments:
            if fragment.version != base.version:
                raise InvalidArgumentError(
                    f"Fragment {fragment.id} is of version {fragment.version}, found read_version {base.version}."
                )
        indices = base.manifest.fragments.find(_ids(rows)).tolist()
        earlier = zip(rows, base.files.deleted_rows(indices), strict=True)
        removal = RowRemoval(base.manifest, rows, {i: r for i, r in earlier if r is not None})
        return Delete(removal, list(given.deleted_fragment_ids), given.predicate)
    raise not_offered(type(given).__name__, "LanceOperation")


def _ids(rows: Mapping[int, Any]) -> Any:
    return pa.array(list(rows), pa.int64()).to_numpy()


def _written(fragment: FragmentMetadata) -> Any:
    if fragment.written is None:
        raise InvalidArgumentError(
            f"Fragment {fragment.id} is of the dataset already, expected one of write_fragments."
        )
    return fragment.written


def _again(ours: Dataset, options: Any) -> LanceDataset:
    return LanceDataset(ours.uri, None, options, ours=ours)


def _summary(one: Dataset) -> dict[str, str]:
    stats = one.stats()
    found = {
        "total_data_file_rows": stats.num_rows + stats.num_deleted_rows,
        "total_data_files": stats.num_data_files,
        "total_deletion_file_rows": stats.num_deleted_rows,
        "total_deletion_files": stats.num_deletion_files,
        "total_files_size": stats.size_bytes or 0,
        "total_fragments": stats.num_fragments,
        "total_rows": stats.num_rows,
    }
    return {k: str(v) for k, v in found.items()}


def _retrying(retries: int) -> CommitProperties:
    return CommitProperties(max_commit_retries=retries)


def _check_timeout(call: str, timeout: Any) -> None:
    is_default = getattr(timeout, "total_seconds", lambda: None)() == _RETRY_SECONDS
    reject(call, {"retry_timeout": None if is_default else timeout})


def _opened(
    uri: str, version: int | str | None, asof: Any, options: Mapping[str, str] | None, branch: str | None = None
) -> Dataset:
    if isinstance(version, str):
        return open_dataset(uri, tag=version, storage_options=options)
    return open_dataset(uri, version=version, timestamp=_moment(asof), branch=branch, storage_options=options)


def _moment(asof: Any) -> Any:
    """Return a point in time with its zone; one without a zone is local."""
    found = datetime.fromisoformat(asof) if isinstance(asof, str) else asof
    return found.astimezone() if isinstance(found, datetime) and found.tzinfo is None else found


class Tags:
    """The tags of a dataset, with pylance's names.

    Parameters
    ----------
    dataset : delta_plugins.lance.dataset.LanceDataset
        The version.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    @translated
    def create(self, tag: str, reference: Any = None) -> None:
        """Create a tag of a version: its number, a tag, or a branch and its number; by default the latest version."""
        number, branch = self._place(reference)
        self._dataset.tags.create(tag, number, branch=branch)

    @translated
    def update(self, tag: str, reference: Any = None) -> None:
        """Move a tag; ``reference`` as of `create`."""
        number, branch = self._place(reference)
        self._dataset.tags.update(tag, number, branch=branch)

    @translated
    def delete(self, tag: str) -> None:
        """Delete a tag."""
        self._dataset.tags.delete(tag)

    @translated
    def get_version(self, tag: str) -> int:
        """Return the version of a tag.

        Raises
        ------
        CompatError, InvalidArgumentError
            There is no such tag.
        """
        if tag not in (found := self._dataset.tags()):
            raise InvalidArgumentError(f"There is no tag {tag!r}.", tag=tag)
        return found[tag].version

    @translated
    def list(self) -> dict[str, dict[str, Any]]:
        """Return the tags by name."""
        return {name: _described(tag) for name, tag in self._dataset.tags().items()}

    @translated
    def list_ordered(self, order: str | None = None) -> Sequence[tuple[str, dict[str, Any]]]:
        """Return the tags by version, the latest one first unless ``order`` is ``asc``.

        Raises
        ------
        CompatError, InvalidArgumentError
            The order is another one.
        """
        if order not in (None, "asc", "desc"):
            raise InvalidArgumentError(f"Found order {order!r}, expected 'asc' or 'desc'.")
        found = sorted(self.list().items(), key=lambda t: t[1]["version"], reverse=order != "asc")
        return [*found]

    @translated
    def replace_metadata(self, tag: str, metadata: dict[str, str]) -> None:
        """Replace the metadata of a tag.

        Raises
        ------
        CompatError, InvalidArgumentError
            There is no such tag.
        """
        before = self._dataset.tags().get(tag)
        if before is None:
            raise InvalidArgumentError(f"There is no tag {tag!r}.", tag=tag)
        self._dataset.tags.update(tag, before.version, branch=before.branch or MAIN, metadata=metadata)

    def _place(self, reference: Any) -> tuple[int | None, str]:
        own = self._dataset.branch or MAIN
        if isinstance(reference, str):
            found = self._dataset.tags().get(reference)
            if found is None:
                raise InvalidArgumentError(f"There is no tag {reference!r}.", tag=reference)
            return found.version, found.branch or MAIN
        if isinstance(reference, tuple):
            branch, number = reference
            return number, branch or MAIN
        return reference, own


def _described(tag: Tag) -> dict[str, Any]:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": _parsed(tag.created_at),
        "updated_at": _parsed(tag.updated_at),
        "manifest_size": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }


def _parsed(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


class LanceStats(OfferedNames):
    """The sizes of a version, with pylance's names.

    Parameters
    ----------
    dataset : delta_plugins.lance.dataset.LanceDataset
        The version.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    @translated
    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Return deleted rows, fragments, and fragments with fewer than that number of rows."""
        stats, rows = self._dataset.stats(), self._dataset.files.all_rows()
        return {
            "num_deleted_rows": stats.num_deleted_rows,
            "num_fragments": stats.num_fragments,
            "num_small_files": int((rows < max_rows_per_group).sum()),
        }


class CompactionMetrics(Struct, frozen=True):
    """The result of a compaction.

    Parameters
    ----------
    fragments_removed, fragments_added : int
        Fragments that were written again, and the new ones.
    files_removed, files_added : int
        Their data files and deletion files.
    """

    fragments_removed: int
    fragments_added: int
    files_removed: int
    files_added: int


class DatasetOptimizer(OfferedNames):
    """The maintenance of data files, with pylance's names.

    Parameters
    ----------
    dataset : LanceDataset
        The dataset.
    """

    def __init__(self, dataset: LanceDataset) -> None:
        self._dataset = dataset

    @translated
    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        **others: Any,
    ) -> CompactionMetrics:
        """Join small fragments, and leave out deleted rows where there are many.

        Parameters
        ----------
        target_rows_per_fragment, max_bytes_per_file : int, optional
            A fragment with as many rows, or bytes, is not touched.
        materialize_deletions : bool, optional
            Whether fragments are written again for their deleted rows alone, True by default.
        materialize_deletions_threshold : float, optional
            The share of deleted rows from which on they are, 0.1 by default.
        **others : object
            Not offered.
        """
        reject("DatasetOptimizer.compact_files", others)
        ours = self._dataset.ours
        share = 0.1 if materialize_deletions_threshold is None else materialize_deletions_threshold
        before = ours.stats()
        done = ours.compact(
            target_rows=MAX_ROWS if target_rows_per_fragment is None else target_rows_per_fragment,
            max_bytes=MAX_BYTES if max_bytes_per_file is None else max_bytes_per_file,
            materialize_deletions=None if materialize_deletions is False else share,
        )
        after, added = ours.stats(), done["num_added_fragments"]
        files = [s.num_data_files + s.num_deletion_files for s in (before, after)]
        return CompactionMetrics(done["num_removed_fragments"], added, files[0] - files[1] + added, added)


@translated
def dataset(
    uri: str | Path | None = None,
    version: int | str | None = None,
    asof: Any = None,
    block_size: int | None = None,
    commit_lock: Any = None,
    index_cache_size: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    default_scan_options: Mapping[str, Any] | None = None,
    **others: Any,
) -> LanceDataset:
    """Open a version of a dataset.

    Parameters
    ----------
    uri : str or Path
        Its root.
    version : int or str, optional
        The version, or a tag.
    asof : datetime or str, optional
        The latest version that was committed until then; local time unless it has a zone.
    storage_options : Mapping of str to str, optional
        As of `delta_core.DeltaTable`.
    block_size, commit_lock, index_cache_size, default_scan_options
        Not offered.
    **others : object
        Not offered.

    Raises
    ------
    CompatError, InvalidArgumentError
        There is no such dataset or version.
    """
    given = {"block_size": block_size, "commit_lock": commit_lock, "index_cache_size": index_cache_size}
    reject("dataset", {**given, "default_scan_options": default_scan_options, **others})
    if uri is None:
        raise InvalidArgumentError("Found no uri, expected the root of a dataset.")
    return LanceDataset(str(uri), version, storage_options, asof=asof)


@translated
def write_dataset(
    data_obj: Any,
    uri: str | Path | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = MAX_ROWS,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int = MAX_BYTES,
    storage_options: Mapping[str, str] | None = None,
    data_storage_version: str | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    **others: Any,
) -> LanceDataset:
    """Write rows as one version.

    Parameters
    ----------
    data_obj : anything with the Arrow PyCapsule interface, a data frame, dict, list of dict, or iterable of batches
        The rows.
    uri : str, Path or LanceDataset
        The root.
    schema : pyarrow.Schema, optional
        The columns; needed for an iterable of batches.
    mode : "create", "append" or "overwrite"
        As of `write_lance`; ``append`` creates a dataset if there is none.
    max_rows_per_file, max_bytes_per_file : int
        As of `write_lance`.
    storage_options : Mapping of str to str, optional
        As of `delta_core.DeltaTable`.
    data_storage_version : "stable", "2.0", "2.1" or "2.2", optional
        Of a new dataset.
    enable_stable_row_ids : bool
        Whether the rows of a new dataset have ids that stay.
    commit_message : str, optional
        Kept in the transaction.
    transaction_properties : Mapping of str to str, optional
        Kept in the transaction.
    allow_external_blob_outside_bases : bool
        Whether blobs may be given by URIs; places as of ``allow_external`` of `write_lance`.
    max_rows_per_group, enable_v2_manifest_paths, external_blob_mode
        Not offered.
    **others : object
        Not offered.

    Raises
    ------
    CompatError, InvalidArgumentError, SchemaMismatchError
        There is no place, the dataset exists or does not, or the rows do not fit.
    NotOfferedError
        For arguments that are not offered.
    """
    given: dict[str, Any] = {
        "max_rows_per_group": max_rows_per_group,
        "enable_v2_manifest_paths": enable_v2_manifest_paths,
    }
    given |= {"external_blob_mode": external_blob_mode, **others}
    defaults = {"max_rows_per_group": 1024, "enable_v2_manifest_paths": True, "external_blob_mode": "reference"}
    reject("write_dataset", given, defaults)
    if uri is None or mode not in ("create", "append", "overwrite"):
        raise InvalidArgumentError(f"Found uri {uri!r} and mode {mode!r}, expected a root, and one of pylance's modes.")
    if data_storage_version not in (None, *_FILE_VERSIONS):
        reject("write_dataset", {"data_storage_version": data_storage_version})
    where, branch = _place(uri)
    file_version = None if data_storage_version is None else _FILE_VERSIONS[data_storage_version]
    rows = rows_of(data_obj, schema)
    if not allow_external_blob_outside_bases:
        rows = without_uris(rows)
    properties = {**(transaction_properties or {}), **({} if commit_message is None else {_MESSAGE: commit_message})}
    options: dict[str, Any] = {
        "file_version": file_version,
        "max_rows_per_file": max_rows_per_file,
        "max_bytes_per_file": max_bytes_per_file,
        "properties": properties,
        "storage_options": storage_options,
        "stable_row_ids": enable_stable_row_ids or None,
        "branch": branch,
    }
    found = _base(where, None, storage_options, True, branch) if mode == "append" else None
    if mode == "append" and found is None:
        mode = "create"
    if mode == "append":
        assert found is not None
        if schema is not None and schema.names != [n for n in found.schema().names if n in schema.names]:
            raise SchemaMismatchError("The schema that is passed is not that of the dataset. Leave it out.")
        ours = write_lance(where, rows, "append", **options)
    else:
        ours = write_lance(where, rows, "create" if mode == "create" else "overwrite", schema=schema, **options)
    return LanceDataset(where, None, storage_options, ours=ours)


@translated
def write_fragments(
    data: Any,
    dataset_uri: str | Path | LanceDataset,
    schema: pa.Schema | None = None,
    *,
    mode: str = "append",
    max_rows_per_file: int = MAX_ROWS,
    max_bytes_per_file: int = MAX_BYTES,
    storage_options: Mapping[str, str] | None = None,
    **others: Any,
) -> list[FragmentMetadata]:
    """Write rows as fragments, which `LanceDataset.commit` commits.

    Parameters
    ----------
    data : as of `write_dataset`
        The rows.
    dataset_uri : str, Path or LanceDataset
        A dataset that is there.
    schema : pyarrow.Schema, optional
        The columns, with ``overwrite``.
    mode : "append" or "overwrite"
        Whether the rows have the columns of the dataset, or their own.
    max_rows_per_file, max_bytes_per_file, storage_options
        As of `write_dataset`.
    **others : object
        Not offered.

    Raises
    ------
    CompatError, InvalidArgumentError
        The mode is another one, or the rows do not fit.
    """
    reject("write_fragments", {"max_rows_per_group": others.pop("max_rows_per_group", None), **others})
    if mode not in ("append", "overwrite"):
        raise InvalidArgumentError(f"Found mode {mode!r}, expected 'append' or 'overwrite'.")
    where, branch = _place(dataset_uri)
    base = _opened(where, None, None, storage_options, branch)
    limits = {"max_rows": max_rows_per_file, "max_bytes": max_bytes_per_file}
    return staged_fragments(base, without_uris(rows_of(data, schema)), schema, limits, mode)
