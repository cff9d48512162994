"""Names of ``deltalake.fs``: a table's folder as a file system of PyArrow, for libraries that write files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from pyarrow.fs import FSSpecHandler

from delta_core.errors import ArgumentTypeError
from delta_core.kernel.commit.options import kind_name
from delta_core.runtime.arguments import check_kinds
from delta_core.storage.filesystems import open_chain, open_filesystem
from delta_core.storage.places import LINK, LOCAL_SCHEMES, local_root, scheme_of
from delta_core.storage.stores import open_storage
from delta_core.table.raw_table import RawTable

__all__ = ["DeltaStorageHandler"]


class DeltaStorageHandler(FSSpecHandler):  # type: ignore[misc]  # PyArrow has no types
    """The folder of a table, for ``pyarrow.fs.PyFileSystem``. Paths are those from the table's root.

    Parameters
    ----------
    table_uri : str
        The table's place.
    options : Mapping, optional
        Options of the file system, as for `DeltaTable`.
    known_sizes : Mapping, optional
        Accepted for programs written for `deltalake`; without effect, since sizes are requested from the store.
    """

    def __init__(
        self, table_uri: str, options: Mapping[str, Any] | None = None, known_sizes: Mapping[str, int] | None = None
    ) -> None:
        del known_sizes
        open_storage(table_uri, options)  # rejects a place that no table has, as one with a password
        if scheme_of(table_uri) in LOCAL_SCHEMES:
            root, inner = local_root(table_uri), LocalFileSystem(auto_mkdir=True)
        elif LINK in table_uri:
            inner, root = open_chain(table_uri, dict(options or {}))
        else:
            inner = open_filesystem(table_uri, dict(options or {}))
            root = inner._strip_protocol(table_uri.rstrip("/"))
        super().__init__(DirFileSystem(root, inner))
        self._arguments = (table_uri, options)

    def equals(self, other: object) -> bool:
        """Return whether another handler has the same files.

        Parameters
        ----------
        other : DeltaStorageHandler
            The other one.

        Raises
        ------
        ArgumentTypeError
            It is none.
        """
        if not isinstance(other, DeltaStorageHandler):
            raise ArgumentTypeError(f"Found other as {kind_name(other)}, expected a DeltaStorageHandler.")
        return self._arguments == other._arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeltaStorageHandler) and self.equals(other)

    def __hash__(self) -> int:
        return hash(self._arguments[0])

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Create a folder.

        Parameters
        ----------
        path : str
            From the table's root.
        recursive : bool
            Whether the folders above it are created too.
        """
        check_kinds([("recursive", recursive)])
        super().create_dir(path, recursive)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    @classmethod
    def from_table(
        cls, table: RawTable, options: Mapping[str, Any] | None = None, known_sizes: Mapping[str, int] | None = None
    ) -> Self:
        """Return the folder of a table that is open.

        Parameters
        ----------
        table : RawTable
            ``DeltaTable._table``.
        options : Mapping, optional
            Options of the file system.
        known_sizes : Mapping, optional
            As for the class.
        """
        return cls(table.table_uri(), options, known_sizes)
