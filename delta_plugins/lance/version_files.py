"""The files of one version: where they are, which of their rows are deleted, and the numbers of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.api import DataFileError, Engine, InvalidArgumentError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, number_array
from delta_plugins.lance.deletions import read_deletions
from delta_plugins.lance.external_blobs import Reference, file_of_uri
from delta_plugins.lance.files import open_data_file
from delta_plugins.lance.fragments import NOWHERE
from delta_plugins.lance.manifest import Manifest
from delta_plugins.lance.names import deletion_name
from delta_plugins.lance.refs import branch_folder
from delta_plugins.lance.row_ids import Kind, RowNumbers, load_numbers
from delta_plugins.lance.sources import Places, StoredFile, missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.kernels.row_set import RowSet
    from delta_plugins.lance.files import DataFile

__all__ = ["Opening", "VersionFiles"]

#: Opens a version and a branch of a dataset again, in another process; it can be pickled.
Opening = Callable[[int, "str | None"], Any]


class VersionFiles:
    """The files of one version of a dataset; deleted rows and row ids are kept once they are loaded.

    Parameters
    ----------
    engine : Engine
        Reads files and evaluates predicates; its storage's root is that of the dataset.
    uri : str
        The dataset, as the user named it.
    manifest : Manifest
        The version.
    branch : str, optional
        The branch that it is of, None for the main one.
    opening : callable, optional
        The function that a pickle has in place of the engine.
    """

    def __init__(
        self, engine: Engine, uri: str, manifest: Manifest, branch: str | None = None, opening: Opening | None = None
    ) -> None:
        self.engine = engine
        self.uri = uri
        self.manifest = manifest
        self.branch = branch
        self.opening = opening
        self.below = branch_folder(branch)
        self._places = Places(self.below, engine.storage.root, manifest.base_paths)
        self._deleted: dict[int, RowSet] = {}
        self._numbers: dict[Kind, RowNumbers] = {}
        self._rows: NDArray[np.int64] = (
            manifest.fragments.physical_rows.copy()
            if manifest.rows_are_known
            else np.full(len(manifest.fragments), -1, np.int64)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if self.opening is None:
            raise InvalidArgumentError(
                "This dataset was opened with an engine of its own, so it can't be pickled: pickle its URI and version."
            )
        return _opened_again, (self.opening, self.manifest.version, self.branch)

    def __repr__(self) -> str:
        branch = f", branch={self.branch!r}" if self.branch else ""
        return f"{self.uri!r}, version={self.manifest.version}{branch}"

    def file_path(self, fragment: int, file: int) -> str:
        """Return the path of a fragment's file, as the storage takes it; both are indices."""
        fragments = self.manifest.fragments
        number = int(fragments.first_file[fragment]) + file
        return self._places.data(int(fragments.file_base[number]), fragments.paths[number].as_py())

    def first_file_path(self, fragment: int) -> str:
        """Return the path of a fragment's first file; that of the manifest if the fragment has none."""
        first, last = self.manifest.fragments.first_file[fragment : fragment + 2]
        return self.file_path(fragment, 0) if last > first else self.manifest.path

    def local_paths(self, files: NDArray[np.int64]) -> list[str] | None:
        """Return the absolute paths of data files, given by their numbers; None if one is not on this machine."""
        fragments = self.manifest.fragments
        bases, names = fragments.file_base[files], fragments.paths.take(number_array(files)).to_pylist()
        if len(files) and (bases == bases[0]).all():
            prefix = self._places.data(int(bases[0]), "")
            paths = [prefix + name for name in names]
        else:
            paths = [self._places.data(base, name) for base, name in zip(bases.tolist(), names, strict=True)]
        found = self.engine.storage.local_paths(paths)
        return None if None in found else [p for p in found if p is not None]

    def data_paths(self) -> pa.Array:
        """Return the paths of all data files, as the storage takes them."""
        fragments = self.manifest.fragments
        bases, found = fragments.file_base, fragments.paths
        for base in np.unique(bases).tolist():
            own = pc.binary_join_element_wise(self._places.data(base, ""), fragments.paths, "")
            found = pc.if_else(bool_array(bases == base), own, found)
        return found

    def external_path(self, base: int, uri: str, path: str, column: str) -> str:
        """Return the path of a file with an external blob, as the storage takes it.

        Parameters
        ----------
        base : int
            The base path that the URI is relative to, 0 = none.
        uri : str
            The file.
        path, column : str
            The data file that refers to it, and its column, for errors.

        Raises
        ------
        DataFileError
            For a base path that the manifest lacks, or a relative URI without one.
        """
        if base in self.manifest.base_paths:
            return self._places.other(base, uri)
        if base or not (uri.startswith("/") or "://" in uri):
            expected = f"base path {base} of the manifest, which is not there" if base else "an absolute path or URI"
            raise DataFileError(
                f"Data file {path!r} has an external blob of column {column!r} in {uri!r}; expected {expected}. "
                "Restore the file from a copy, or request blobs='descriptor'.",
                path=path,
            )
        return file_of_uri(uri)

    def carried_blob(self, reference: Reference, field: int, path: str, column: str) -> bytes | None:
        """Return the value of an external blob in rows that are written again; None: the bytes of the blob.

        Parameters
        ----------
        reference : Reference
            The blob.
        field : int
            The id of the column.
        path, column : str
            As of `external_path`.
        """
        return None

    def open_file(self, fragment: int, file: int) -> DataFile:
        """Open a fragment's file; both are indices.

        Raises
        ------
        DataFileNotFoundError
            If it is missing.
        DataFileError
            If it is damaged.
        """
        fragments = self.manifest.fragments
        number = int(fragments.first_file[fragment]) + file
        layout = fragments.layouts[int(fragments.layout[number])]
        path, size = self.file_path(fragment, file), int(fragments.file_size[number])
        if not size:
            try:
                [(size, _)] = self.engine.storage.stat([path])
            except FileNotFoundError as e:
                raise missing(path) from e
        source = StoredFile(self.engine.storage, path, size, len(layout.fields))
        return open_data_file(source, size, path=path, major=layout.major, minor=layout.minor)

    # --- rows of fragments -----------------------------------------------------------------

    def physical_rows(self, fragment: int) -> int:
        """Return the rows of a fragment, deleted ones too; of early writers as its first file specifies."""
        found = int(self._rows[fragment])
        if found < 0:
            fragments = self.manifest.fragments
            if fragments.first_file[fragment] == fragments.first_file[fragment + 1]:
                found = max(int(fragments.physical_rows[fragment]), 0)
            else:
                found = self.open_file(fragment, 0).num_rows
            self._rows[fragment] = found
        return found

    def deleted_rows(self, fragments: Sequence[int]) -> list[RowSet | None]:
        """Return the deleted rows of fragments, given by index; None for one without.

        Raises
        ------
        DataFileNotFoundError, DataFileError
            See `deletions.read_deletions`.
        """
        listed = self.manifest.fragments
        wanted = np.asarray(fragments, np.int64)
        missing_ones = [int(i) for i in wanted[listed.deletion_kind[wanted] >= 0] if int(i) not in self._deleted]
        if missing_ones:
            paths = [self.deletion_path(i) for i in missing_ones]
            known = listed.num_deleted if self.manifest.rows_are_known else np.full(len(listed), -1, np.int64)
            kinds = listed.deletion_kind[missing_ones].tolist()
            rows = [self.physical_rows(i) for i in missing_ones]
            found = read_deletions(self.engine.storage, paths, kinds, known[missing_ones].tolist(), rows)
            self._deleted |= dict(zip(missing_ones, found, strict=True))
        return [self._deleted.get(int(i)) for i in wanted]

    def deletion_path(self, i: int) -> str:
        """Return the path of the deletion file of a fragment, given by index."""
        listed = self.manifest.fragments
        name = deletion_name(
            int(listed.id[i]), int(listed.deletion_version[i]), int(listed.deletion_id[i]), int(listed.deletion_kind[i])
        )
        return self._places.other(int(listed.deletion_base[i]), name)

    def other_path(self, base: int, path: str) -> str:
        """Return the path of a file below a base path (-1 = the dataset's own), as the storage takes it."""
        return self._places.other(base, path)

    def rows_of(self, fragments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows each of some fragments has, deleted ones too; they are given by index."""
        found = self._rows[fragments]
        for i in np.unique(fragments[found < 0]).tolist():
            self.physical_rows(i)
        return self._rows[fragments]

    def all_rows(self) -> NDArray[np.int64]:
        """Return how many rows each fragment has, deleted ones too, int64[n_fragments]."""
        for i in np.flatnonzero(self._rows < 0).tolist():
            self.physical_rows(i)
        return self._rows

    def live_rows(self) -> NDArray[np.int64]:
        """Return how many rows of each fragment are not deleted, int64[n_fragments]."""
        listed, rows_of = self.manifest.fragments, self.all_rows()
        deleted = listed.num_deleted.copy()
        is_unknown = (deleted < 0) | ((listed.deletion_kind >= 0) & (not self.manifest.rows_are_known))
        unknown: list[int] = np.flatnonzero(is_unknown).tolist()
        for i, rows in zip(unknown, self.deleted_rows(unknown), strict=True):
            deleted[i] = 0 if rows is None else rows.cardinality
        return rows_of - deleted

    def row_numbers(
        self, name: str, kind: Kind | None, fragment: int, positions: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Return ids, addresses or versions of rows of a fragment, which are not in a hidden column.

        Parameters
        ----------
        name : str
            The metadata column.
        kind : "row_ids", "created", "last_updated" or None
            Its sequence; None for addresses.
        fragment : int
            The index of the fragment.
        positions : int64[n]
            Rows, which rise.
        """
        listed = self.manifest.fragments
        place = NOWHERE if kind is None else int(getattr(listed, kind).place[fragment])
        if place == NOWHERE or not self.manifest.has_stable_row_ids:
            if kind in ("created", "last_updated"):
                return np.ones(len(positions), np.uint64)
            return positions.astype(np.uint64) | np.uint64(int(listed.id[fragment]) << 32)
        assert kind is not None
        if not len(positions):
            return np.zeros(0, np.uint64)
        start, stop = int(positions[0]), int(positions[-1]) + 1
        found = self.numbers_of(kind).numbers(fragment, start, stop)
        return found if len(found) == len(positions) else found[positions - start]

    def numbers_of(self, kind: Kind) -> RowNumbers:
        """Return the ids, or the versions, of the rows of all fragments."""
        if kind not in self._numbers:
            manifest = self.manifest
            self._numbers[kind] = load_numbers(
                manifest.fragments, kind, manifest.data, self.engine.storage, manifest.path, self.below
            )
        return self._numbers[kind]

    def count(self) -> int:
        """Return how many rows are not deleted."""
        return int(self.live_rows().sum())


def _opened_again(opening: Opening, version: int, branch: str | None) -> VersionFiles:
    found: VersionFiles = opening(version, branch).files
    return found
