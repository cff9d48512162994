"""The files of an index, which are data files that describe their own columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.api import CorruptTableError, DataFileError, DataFileNotFoundError
from delta_core.kernels.arrow_buffers import one_array
from delta_plugins.lance.files import Rows, open_described_file
from delta_plugins.lance.manifest import field_of
from delta_plugins.lance.schema import LanceField, arrow_field, field_tree
from delta_plugins.lance.sources import StoredFile

if TYPE_CHECKING:
    from delta_plugins.lance.index.listing import Index
    from delta_plugins.lance.version_files import VersionFiles

__all__ = ["IndexFile"]


class IndexFile:
    """An opened file of an index.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    index : Index
        The index.
    name : str
        Of the file.

    Raises
    ------
    DataFileNotFoundError
        If it is missing.
    DataFileError
        If it is damaged.
    """

    def __init__(self, dataset: VersionFiles, index: Index, name: str) -> None:
        self.path = dataset.other_path(index.base, f"{index.folder}/{name}")
        try:
            # early writers do not list the sizes of files
            size = index.sizes.get(name, 0) or dataset.engine.storage.stat([self.path])[0][0]
            source = StoredFile(dataset.engine.storage, self.path, size)
            self._file, descriptor = open_described_file(source, size, path=self.path)
        except (FileNotFoundError, DataFileNotFoundError) as e:
            raise DataFileNotFoundError(
                f"File {self.path!r} of index {index.name!r} is not there. If the dataset was cleaned up since it was "
                "opened, open its latest version; otherwise create the index again, or scan with use_indices=False.",
                path=self.path,
            ) from e
        try:
            schema = descriptor["schema"]
            self._fields = {f.name: f for f in field_tree(field_of(f) for f in schema["fields"])}
            self.metadata: Mapping[str, bytes] = dict(schema["metadata"])
        except (CorruptTableError, TypeError) as e:
            raise self.damaged(f"its schema can't be decoded, {e}") from None
        self._columns = {f.id: i for i, f in enumerate(self._fields.values())}

    @property
    def num_rows(self) -> int:
        """The rows of the file."""
        return self._file.num_rows

    def first_of(self, *names: str) -> str:
        """Return the first of several names that a column has; the last one if none does."""
        return next((n for n in names if n in self._fields), names[-1])

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return arrow_field(self._field(name)).type

    def read(self, names: Sequence[str], rows: Rows = None) -> list[Any]:
        """Return columns.

        Raises
        ------
        DataFileError
            If the file does not have them, or is damaged.
        """
        return [one_array(a) for a in self._file.read([self._field(n) for n in names], self._columns, rows)]

    def read_as(self, name: str, of: pa.DataType) -> Any:
        """Return a column that has a type and no nulls.

        Raises
        ------
        DataFileError
            If it is another one, or the file is damaged.
        """
        if self.type_of(name) != of:
            raise self.damaged(f"its column {name!r} has the type {self.type_of(name)}, expected {of}")
        [found] = self.read([name])
        if found.null_count:
            raise self.damaged(f"its column {name!r} has {found.null_count} nulls")
        return found

    def damaged(self, why: str) -> DataFileError:
        """Return the error of a file that can't be used."""
        return DataFileError(
            f"Index file {self.path!r} is damaged: {why}. Create the index again, or scan with use_indices=False.",
            path=self.path,
        )

    def _field(self, name: str) -> LanceField:
        if name not in self._fields:
            raise self.damaged(f"it has no column {name!r}")
        found = self._fields[name]
        if found.children:
            raise self.damaged(f"its column {name!r} has the type {found.logical_type}")
        return found
