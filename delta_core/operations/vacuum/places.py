"""The folders of a Delta table that a vacuum cleans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import FolderFiles
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import mask_of, values_of

__all__ = ["CleanedPlaces", "witness_of"]

#: The number of folders that are remembered.
_MOST_FOLDERS = 100_000
#: Names that begin so are cleaned although they begin with an underscore.
_CLEANED = ("_change_data", "_delta_index")
_UNIFORM = "delta.universalFormat.enabledFormats"
#: A file whose name begins with a dot or an underscore.
_HIDDEN_FILE = r"(?:^|/)[._][^/]*$"
_FOLDER = r"(?s)/?[^/]*$"


class CleanedPlaces:
    """Which folders are cleaned."""

    def __init__(self, snapshot: Snapshot) -> None:
        state = snapshot.state
        names = {
            *state.partition_columns,
            *(state.column_map.physical_path(state.schema, (c,))[0] for c in state.partition_columns),
        }
        self._cleaned = (*_CLEANED, *(f"{n}=" for n in names))
        self._is_uniform = bool(state.configuration.get(_UNIFORM))
        self._known: dict[str, bool] = {"": False}
        #: Folders and files that stay with all that is in them: tables of their own, and what links lead to.
        self.reserved: set[str] = set()
        self.empty: list[str] = []
        self.num_folders: int = 0

    def skips(self, folder: str) -> bool:
        """Whether a folder stays, if the one above it is cleaned."""
        above, _, name = folder.rpartition("/")
        if name == LOG_DIRECTORY and above:
            self.reserved.add(above)
        if name == "metadata" and not above and self._is_uniform:
            return True
        return name.startswith(("_", ".")) and not name.startswith(self._cleaned)

    def are_skipped(self, paths: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which files are in folders that stay."""
        folders = pc.dictionary_encode(pc.replace_substring_regex(paths, _FOLDER, ""))
        skipped = np.array([self._is_skipped(f) for f in folders.dictionary.to_pylist()], bool)
        return skipped[values_of(folders.indices)] if len(paths) else np.zeros(0, bool)

    def _is_skipped(self, folder: str) -> bool:
        found = self._known.get(folder)
        if found is None:
            if len(self._known) > _MOST_FOLDERS:
                self._known = {"": False}
            # both are called: each folder above may be that of a table
            above, own = self._is_skipped(folder.rpartition("/")[0]), self.skips(folder)
            found = self._known[folder] = above or own
        return found

    def reserves(self, paths: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which files or folders are, or are in, what stays."""
        found = np.zeros(len(paths), bool)
        for place in self.reserved:
            if not place:
                return np.ones(len(paths), bool)
            found |= mask_of(pc.equal(paths, place)) | mask_of(pc.starts_with(paths, f"{place}/"))
        return found

    def keeps(self, paths: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which files are hidden."""
        return mask_of(pc.match_substring_regex(paths, _HIDDEN_FILE))

    def note(self, part: FolderFiles) -> None:
        """Take in what a listing found beside files."""
        self.empty += part.empty
        self.reserved.update(part.linked)
        self.num_folders += part.num_folders

    def forget(self) -> None:
        """Drop what was noted: it was reported."""
        self.reserved, self.empty, self.num_folders = set(), [], 0


def witness_of(storage: Storage) -> str | None:
    """Return a file of the log that every machine sees which sees the table; None if there is none yet."""
    names = [n for n in storage.list_from(LOG_DIRECTORY).names if n[:20].isdigit()]
    return f"{LOG_DIRECTORY}/{names[-1]}" if names else None
