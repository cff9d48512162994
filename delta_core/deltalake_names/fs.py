"""Names of ``deltalake.fs``: a table's folder as a file system of PyArrow, for libraries that write files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from pyarrow.fs import FSSpecHandler

from delta_core.errors import ArgumentTypeError, TableNotFoundError, UnsupportedOperationError
from delta_core.kernel.commit.options import kind_name
from delta_core.runtime.arguments import check_kinds, check_names
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
        check_kinds([("known_sizes", known_sizes)])
        if not isinstance(table_uri, str):
            raise ArgumentTypeError(f"Found table_uri as {kind_name(table_uri)}, expected text.")
        open_storage(table_uri, options)  # rejects a place that no table has, as one with a password
        if scheme_of(table_uri) in LOCAL_SCHEMES:
            root, inner = local_root(table_uri), LocalFileSystem(auto_mkdir=True)
            if not inner.isdir(root):
                raise TableNotFoundError(
                    f"There is no folder at {root}, expected that of a table. Create the table first.", path=root
                )
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

    def get_type_name(self) -> str:
        """Return the name of the kind of file systems."""
        return "object-store"

    def normalize_path(self, path: str) -> str:
        """Return a path as it is.

        Parameters
        ----------
        path : str
            From the table's root.
        """
        check_kinds([("path", path)])
        return path

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """Return what PyArrow reports of paths.

        Parameters
        ----------
        paths : list of str
            From the table's root.
        """
        check_names("paths", paths)
        return list(super().get_file_info(paths))

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Create a folder.

        Parameters
        ----------
        path : str
            From the table's root.
        recursive : bool
            Whether the folders above it are created too.
        """
        check_kinds([("path", path), ("recursive", recursive)])
        super().create_dir(path, recursive)

    def delete_dir(self, path: str) -> None:
        """Delete a folder with all that is in it; nothing if there is none, as in an object store.

        Parameters
        ----------
        path : str
            From the table's root.
        """
        check_kinds([("path", path)])
        with suppress(FileNotFoundError):
            super().delete_dir(path)

    def delete_dir_contents(self, path: str, *, accept_root_dir: bool = False, missing_dir_ok: bool = False) -> None:
        """Delete all that is in a folder.

        Parameters
        ----------
        path : str
            From the table's root.
        accept_root_dir : bool
            Whether it may be the root itself.
        missing_dir_ok : bool
            Whether it may be missing.
        """
        check_kinds([("path", path), ("accept_root_dir", accept_root_dir), ("missing_dir_ok", missing_dir_ok)])
        if accept_root_dir and not path.strip("/"):
            super().delete_root_dir_contents()
        else:
            super().delete_dir_contents(path, missing_dir_ok)

    def delete_file(self, path: str) -> None:
        """Delete a file.

        Parameters
        ----------
        path : str
            From the table's root.
        """
        check_kinds([("path", path)])
        super().delete_file(path)

    def move(self, src: str, dest: str) -> None:
        """Move a file or folder.

        Parameters
        ----------
        src, dest : str
            From the table's root.
        """
        check_kinds([("src", src), ("dest", dest)])
        super().move(src, dest)

    def open_input_stream(self, path: str) -> Any:
        """Open a file to read.

        Parameters
        ----------
        path : str
            From the table's root.
        """
        check_kinds([("path", path)])
        return super().open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        """Open a file to read at any position.

        Parameters
        ----------
        path : str
            From the table's root.
        """
        check_kinds([("path", path)])
        return super().open_input_file(path)

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> Any:
        """Open a file to write.

        Parameters
        ----------
        path : str
            From the table's root.
        metadata : Mapping of str to str, optional
            Accepted for programs written for `deltalake`; without effect.

        Raises
        ------
        ArgumentTypeError
            For values that are no text.
        """
        check_kinds([("path", path), ("metadata", metadata)])
        for name, value in (metadata or {}).items():
            if not isinstance(value, str):
                raise ArgumentTypeError(f"Found the metadata {name}={value!r}, expected text.")
        return super().open_output_stream(path, metadata)

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None) -> Any:
        """Reject appending to a file, which object stores can't.

        Parameters
        ----------
        path, metadata
            As of `open_output_stream`.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        del metadata
        raise UnsupportedOperationError(
            f"{path} can't be appended to: files of tables are written once. Write another."
        )

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

        Raises
        ------
        ArgumentTypeError
            For another object than such a table.
        """
        if not isinstance(table, RawTable):
            raise ArgumentTypeError(f"Found table as {kind_name(table)}, expected the _table of a DeltaTable.")
        return cls(table.table_uri(), options, known_sizes)
