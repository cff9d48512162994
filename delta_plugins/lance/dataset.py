"""Datasets: one version of a Lance table, its rows and its history."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct

# views for other libraries are loaded with the first one
from delta_core import api
from delta_core.api import (
    DataFileError,
    DataFileNotFoundError,
    Engine,
    InvalidArgumentError,
    Schema,
    Storage,
    parse_version,
    require,
    schema_of_arrow,
)
from delta_core.kernels.arrow_buffers import number_array, strings_of
from delta_plugins.lance import history, parts
from delta_plugins.lance.blobs import BlobFile, Blobs
from delta_plugins.lance.changing import ChangeMethods
from delta_plugins.lance.commands import CHANGES, run_command
from delta_plugins.lance.flags import FLAGS
from delta_plugins.lance.manifest import Manifest
from delta_plugins.lance.names import Versions, list_versions
from delta_plugins.lance.predicates import lance_type
from delta_plugins.lance.projection import Columns
from delta_plugins.lance.refs import Branch, branch_folder, find_tag, read_branches
from delta_plugins.lance.scan import BATCH_ROWS, LanceScan
from delta_plugins.lance.schema import arrow_schema, registered
from delta_plugins.lance.splits import SplitScan, plan_splits
from delta_plugins.lance.take import sample_rows, take_blobs, take_rows
from delta_plugins.lance.verify import verify_dataset
from delta_plugins.lance.version_files import Opening, VersionFiles
from delta_plugins.lance.version_manifests import read_at, read_latest, read_version, read_versions

if TYPE_CHECKING:
    from delta_core.api import Function, TableReport, VerifyReport
    from delta_plugins.lance.tags import Tags

__all__ = ["DatasetStats", "LanceDataset", "LanceSchema"]


class DatasetStats(Struct, frozen=True):
    """Sizes of a version.

    Parameters
    ----------
    num_rows : int
        Rows that are not deleted.
    num_deleted_rows : int
        Rows that are deleted, and still in data files.
    num_fragments, num_data_files, num_deletion_files : int
        Their numbers.
    size_bytes : int or None
        Of the data files; None if the manifest does not specify the size of all of them.
    """

    num_rows: int
    num_deleted_rows: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    size_bytes: int | None


class LanceSchema(Schema):
    """The columns of a version with their logical types; a call returns them with Arrow's types.

    A type that Delta lacks is a primitive type of the name that Arrow or the format has for it.
    """

    __slots__ = ("_arrow",)
    _arrow: pa.Schema

    @classmethod
    def of(cls, manifest: Manifest, blobs: Blobs = "descriptor") -> LanceSchema:
        """Return the schema of a version, with columns of blobs as descriptors or as bytes."""
        arrow: pa.Schema = arrow_schema(manifest.fields, manifest.message["schema_metadata"], blobs=blobs)
        found = cls(schema_of_arrow(arrow, lance_type).members)
        object.__setattr__(found, "_arrow", registered(arrow))
        return found

    def __call__(self) -> pa.Schema:
        """Return the columns with their Arrow types, extension types, and metadata."""
        return self._arrow

    def to_arrow(self, as_large_types: bool = False, **kwargs: Any) -> pa.Schema:  # type: ignore[override]
        """Return the columns with their Arrow types, as a call does."""
        return self._arrow

    def __arrow_c_schema__(self) -> Any:
        return self._arrow.__arrow_c_schema__()


class LanceDataset(ChangeMethods):
    """One version of a Lance dataset.

    Parameters
    ----------
    files : VersionFiles
        The version; `LanceDataset.open` makes it.

    Attributes
    ----------
    format_name : str
        ``lance``.
    commands : frozenset of str
        The commands of the command line that work on it.
    changes : frozenset of str
        Those that change it.
    """

    format_name = "lance"
    commands = (
        frozenset(
            {
                "info",
                "schema",
                "head",
                "cat",
                "count",
                "files",
                "history",
                "explain",
                "log",
                "sql",
                "verify",
                "report",
                "health",
            }
        )
        | CHANGES
    )
    changes = CHANGES

    def __init__(self, files: VersionFiles) -> None:
        self.files = files

    # --- what it is ------------------------------------------------------------------------

    @property
    def storage(self) -> Storage:
        """The store that its files are read from."""
        return self.files.engine.storage

    @property
    def uri(self) -> str:
        """The dataset, as it was opened."""
        return self.files.uri

    @property
    def manifest(self) -> Manifest:
        """The manifest of the version."""
        return self.files.manifest

    @property
    def branch(self) -> str | None:
        """The branch that the version is of, None for the main one."""
        return self.files.branch

    @property
    def version(self) -> int:
        """The version's number."""
        return self.manifest.version

    @cached_property
    def schema(self) -> LanceSchema:
        """The columns: their logical types, and Arrow's when it is called."""
        return LanceSchema.of(self.manifest)

    @property
    def _target(self) -> LanceDataset:
        return _ChangedDataset(self.files)

    @property
    def functions(self) -> Mapping[str, Function]:
        """None: predicates have the functions that every format has."""
        return {}

    def __repr__(self) -> str:
        return f"LanceDataset({self.files!r})"

    def _repr_html_(self) -> str:
        stats = self.stats()
        return api.table_page(
            repr(self),
            {"version": self.version, "branch": self.branch},
            self.schema(),
            (),
            lambda: {"rows": stats.num_rows, "files": stats.num_data_files, "bytes": stats.size_bytes},
            self.head,
            self.history,
        )

    def describe(self) -> dict[str, Any]:
        """Return what the version is, as JSON values by title."""
        stats, manifest = self.stats(), self.manifest
        return {
            "Committed": datetime.fromtimestamp(manifest.timestamp_us / 1e6, UTC).isoformat(timespec="milliseconds"),
            "Branch": self.branch or "main",
            "Fragments": stats.num_fragments,
            "Files": stats.num_data_files,
            "Size": stats.size_bytes,
            "Rows": stats.num_rows,
            "Deleted rows": stats.num_deleted_rows,
            "Columns": len(manifest.fields),
            "File version": ".".join(map(str, manifest.file_version)),
            "Features": [f.meaning for f in FLAGS if f.bit & manifest.message["writer_feature_flags"]],
            "Properties": dict(sorted(manifest.message["config"].items())),
        }

    def version_files(self) -> pa.Table:
        """Return the files of metadata that the version consists of: ``file``, ``kind``, ``size`` in bytes."""
        transaction = self.manifest.message["transaction_file"]
        names = [(self.manifest.path, "manifest")]
        if transaction:
            names.append((history.transaction_path(self.files.below, transaction), "transaction"))
        fragments = self.manifest.fragments
        names += [(self.files.deletion_path(int(i)), "deletions") for i in np.flatnonzero(fragments.deletion_kind >= 0)]
        sizes, _ = self.storage.find(strings_of([n for n, _ in names]))
        return pa.table(
            {
                "file": strings_of([n for n, _ in names]),
                "kind": strings_of([k for _, k in names]),
                "size": number_array(sizes, valid=sizes >= 0),
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceDataset, (self.files,)

    # --- versions --------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        engine: Engine,
        uri: str,
        *,
        version: int | None = None,
        timestamp: Any = None,
        tag: str | None = None,
        branch: str | None = None,
        opening: Opening | None = None,
        listed: Versions | None = None,
    ) -> LanceDataset:
        """Open a version; at most one of version, timestamp and tag is specified. The latest one by default.

        Parameters
        ----------
        engine : Engine
            Its storage's root is that of the dataset.
        uri : str
            The dataset, as the user named it.
        version : int, optional
            The version.
        timestamp : str or datetime, optional
            The latest version that was committed until then.
        tag : str, optional
            The version, and the branch, that a tag names.
        branch : str, optional
            The branch; by default the main one.
        opening : callable, optional
            See `version_files.VersionFiles`.
        listed : Versions, optional
            The result of `names.list_latest` for the main branch.

        Raises
        ------
        InvalidArgumentError
            For contradictory arguments.
        TableNotFoundError
            If there is no dataset, or no such branch.
        VersionNotFoundError
            If there is no such version or tag.
        CorruptTableError, UnsupportedFeatureError, SchemaError
            See `manifest.parse_manifest`.
        """
        given = {"version": version, "timestamp": timestamp, "tag": tag}
        named = [n for n, v in given.items() if v is not None]
        if len(named) > 1:
            raise InvalidArgumentError(f"Found {' and '.join(named)}; expected one of them.")
        if tag is not None:
            found = find_tag(engine.storage, tag)
            if branch is not None and branch_folder(branch) != branch_folder(found.branch):
                raise InvalidArgumentError(
                    f"Tag {tag!r} is of branch {found.branch or 'main'!r}, not of {branch!r}: leave branch out.",
                    tag=tag,
                )
            version, branch = found.version, found.branch
        below = branch_folder(branch)
        if version is not None:
            number = parse_version(version)
            manifest = read_version(engine.storage, number, below)
        elif timestamp is not None:
            manifest = read_at(engine.storage, list_versions(engine.storage, below), below, timestamp)
        else:
            manifest = read_latest(engine.storage, below, None if below else listed)
        return cls(VersionFiles(engine, uri, manifest, branch if below else None, opening))

    def load_as_version(
        self, version: int | str | Any = None, *, tag: str | None = None, branch: str | None = None
    ) -> None:
        """Load another version into this object, as `checkout` names it; scans that were made before keep theirs.

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        InvalidArgumentError
            For contradictory arguments.
        """
        self._take(self.checkout(version, tag=tag, branch=branch))

    def update_incremental(self) -> None:
        """Load the latest version of the branch into this object."""
        self._take(self.latest())

    def checkout(
        self, version: int | str | Any = None, *, tag: str | None = None, branch: str | None = None
    ) -> LanceDataset:
        """Return another version as an object of its own, the latest one by default.

        It is named by its number, by a timestamp (text or datetime), by a tag, or by a branch.

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        InvalidArgumentError
            For contradictory arguments.
        """
        is_number = isinstance(version, (int, np.integer)) and not isinstance(version, bool)
        kind: dict[str, Any] = {} if version is None else {"version" if is_number else "timestamp": version}
        of = branch if branch is not None or tag is not None else self.branch
        return self.open(self.files.engine, self.uri, tag=tag, branch=of, opening=self.files.opening, **kind)

    def versions(self) -> list[int]:
        """Return the versions that are there, in ascending order."""
        return list(list_versions(self.storage, self.files.below).names)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the versions, newest first, each with the operation that made it.

        Parameters
        ----------
        limit : int, optional
            The most versions to return.

        Returns
        -------
        list of dict
            ``version``, ``timestamp`` (ms since the epoch, None if the manifest has none), ``operation``,
            ``operationParameters``, ``readVersion``, ``transactionId``, ``engineInfo`` and ``tags``; None for facts
            that a version does not have. A transaction that can't be decoded is the operation ``unknown``.

        Raises
        ------
        InvalidArgumentError
            For a negative limit.
        """
        if limit is not None and (isinstance(limit, bool) or limit < 0):
            raise InvalidArgumentError(f"Found limit {limit!r}, expected a number from 0 on.")
        versions = list_versions(self.storage, self.files.below)
        chosen = [v for v in reversed(versions.names) if v <= self.version][:limit]
        named: dict[int, list[str]] = {}
        for name, tag in self.tags().items():
            if branch_folder(tag.branch) == self.files.below:
                named.setdefault(tag.version, []).append(name)
        return [
            history.entry(self.storage, self.files.below, data, manifest, named.get(manifest.version, []))
            for data, manifest in read_versions(self.storage, versions, self.files.below, chosen)
        ]

    @property
    def tags(self) -> Tags:
        """The tags of the dataset by name, of all branches; a call returns a dict. They are created and moved here."""
        return parts.Tags(self.storage, lambda: (self.version, self.branch))

    def branches(self) -> dict[str, Branch]:
        """Return the branches of the dataset by name; the main one is not among them."""
        return read_branches(self.storage)

    # --- files -----------------------------------------------------------------------------

    def fragments(self) -> pa.Table:
        """Return the fragments, one row each (`fragments.Fragments.table`)."""
        return self.manifest.fragments.table()

    def file_table(self, predicate: Any = None) -> pa.Table:
        """Return the fragments that may have a row for a predicate: all, as no statistics exclude any."""
        if predicate is not None:
            self.scan([], predicate)
        return self.fragments()

    def stats(self) -> DatasetStats:
        """Return the sizes of the version; reads deletion files, or data files, whose rows the manifest lacks."""
        fragments = self.manifest.fragments
        sizes = fragments.file_size
        live = self.files.live_rows()
        return DatasetStats(
            int(live.sum()),
            int((self.files.all_rows() - live).sum()),
            len(fragments),
            fragments.num_files,
            int((fragments.deletion_kind >= 0).sum()),
            int(sizes.sum()) if (sizes > 0).all() else None,
        )

    def check_files(self) -> None:
        """Check that data files of the version are there, with their sizes, and that its deletion files can be read.

        Raises
        ------
        DataFileNotFoundError
            If some are missing; the message names the first ones.
        DataFileError
            If a data file has another size than the manifest specifies, or a deletion file is damaged.
        """
        files, listed = self.files, self.manifest.fragments
        counts = np.diff(listed.first_file).tolist()
        paths = [files.file_path(i, n) for i, count in enumerate(counts) for n in range(count)]
        deletions = np.flatnonzero(listed.deletion_kind >= 0).tolist()
        paths += [files.deletion_path(i) for i in deletions]
        sizes, _ = self.storage.find(strings_of(paths))
        gone = [paths[i] for i in np.flatnonzero(sizes < 0).tolist()]
        if gone:
            raise DataFileNotFoundError(
                f"Version {self.version} lacks {len(gone)} of its files, such as {', '.join(map(repr, gone[:3]))}. "
                "Restore them from a copy, or choose another version.",
                path=gone[0],
            )
        known, found = listed.file_size, sizes[: len(listed.file_size)]
        for i in np.flatnonzero((known > 0) & (found != known)).tolist():
            raise DataFileError(
                f"Data file {paths[i]!r} of version {self.version} has {found[i]} bytes, expected {known[i]}. "
                "Restore it from a copy, or choose another version.",
                path=paths[i],
            )
        files.deleted_rows(deletions)

    def run_command(
        self,
        command: str,
        options: Mapping[str, Any],
        confirm: Callable[[str], None],
        progress: Callable[[api.OperationProgress], None] | None,
    ) -> dict[str, Any]:
        """Run one of ``changes`` of the command line (`delta_core.formats.FormatTable.run_command`)."""
        return run_command(self, command, options, confirm, progress)

    def verify(self) -> VerifyReport:
        """Check the version's files: that they are there, their sizes, footers, rows, row ids and indices."""
        with api.progress_bar():
            return verify_dataset(self.files)

    def report(self, *, store: bool = True) -> TableReport:
        """Return how the dataset is: sizes, versions, deleted rows and findings; no rows are read.

        Parameters
        ----------
        store : bool
            Whether to list the store for files that are in no version.
        """
        found: TableReport = parts.report_of(self, store=store)
        return found

    # --- rows ------------------------------------------------------------------------------

    def count(self, predicate: Any = None) -> int:
        """Return how many rows there are, or how many rows pass a predicate."""
        return self.files.count() if predicate is None else self.scan([], predicate).count()

    def scan(
        self,
        columns: Columns = None,
        predicate: Any = None,
        *,
        metadata: Sequence[str] = (),
        limit: int | None = None,
        batch_rows: int = BATCH_ROWS,
        blobs: Blobs = "descriptor",
        use_indices: bool = True,
    ) -> LanceScan:
        """Plan a read of rows; see `LanceScan` for the arguments."""
        return LanceScan(
            self.files,
            columns,
            predicate,
            limit=limit,
            metadata=metadata,
            batch_rows=batch_rows,
            blobs=blobs,
            use_indices=use_indices,
        )

    @property
    def pinned(self) -> Mapping[str, Any]:
        """The options with which another process opens this version (`delta_core.api.SplitTable`)."""
        return {"version": self.version, **({} if self.branch is None else {"branch": self.branch})}

    def plan_splits(self, split_bytes: int, predicate: Any = None) -> pa.Table:
        """Return the parts in which several processes read the rows (`splits.plan_splits`)."""
        return plan_splits(self.files, split_bytes)

    def scan_split(
        self, split: Mapping[str, Any], columns: Columns = None, *, metadata: Sequence[str] = (), predicate: Any = None
    ) -> LanceScan:
        """Plan a read of the rows of one part (`splits.SplitScan`)."""
        return SplitScan(self.files, split, columns, predicate, metadata)

    def to_pyarrow_table(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        metadata: Sequence[str] = (),
        blobs: Blobs = "descriptor",
    ) -> pa.Table:
        """Read rows into memory; see `LanceScan` for the arguments."""
        return self.scan(columns, predicate, metadata=metadata, blobs=blobs).to_table()

    def dataset(self, *, encoded: bool = False) -> Any:
        """Return a ``pyarrow.dataset.Dataset``; DuckDB and DataFusion push columns and filters into it.

        Parameters
        ----------
        encoded : bool
            Whether top-level strings are of the type ``dictionary<int32, string>``.
        """
        return api.scan_dataset(self, encoded=encoded)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        metadata: Sequence[str] = (),
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> Any:
        """Read rows into a pandas data frame; see `LanceScan` for the arguments, pandas for ``types_mapper``."""
        require("pandas")
        return self.to_pyarrow_table(columns, predicate, metadata=metadata).to_pandas(types_mapper=types_mapper)

    def to_polars(self) -> Any:
        """Return a Polars lazy frame that pushes columns, predicate and limit into the scan."""
        require("polars")
        return api.scan_polars(self)

    def head(self, num_rows: int = 5, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the first rows."""
        return self.scan(columns, limit=num_rows).to_table()

    def take(
        self,
        rows: Any,
        columns: Sequence[str] | None = None,
        *,
        by: Literal["position", "address", "id"] = "position",
        metadata: Sequence[str] = (),
        blobs: Blobs = "descriptor",
    ) -> pa.Table:
        """Return chosen rows in the order in which they are given, repeated ones repeatedly (`take.take_rows`)."""
        return take_rows(self.files, rows, columns, by, metadata, blobs)

    def take_blobs(
        self, column: str, rows: Any, *, by: Literal["position", "address", "id"] = "position"
    ) -> list[BlobFile | None]:
        """Return the blobs of chosen rows as files for reading, None for null (`take.take_blobs`)."""
        return take_blobs(self.files, column, rows, by)

    def sample(self, num_rows: int, seed: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return rows chosen at random, without repetition, in the order of the dataset (`take.sample_rows`)."""
        return sample_rows(self.files, num_rows, random.Random(seed), columns)  # noqa: S311

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.scan().__arrow_c_stream__(requested_schema)


class _ChangedDataset(LanceDataset):
    """A version as changes of rows take it: rows that are written again have blobs as their bytes."""

    @cached_property
    def schema(self) -> LanceSchema:
        return LanceSchema.of(self.manifest, "bytes")
