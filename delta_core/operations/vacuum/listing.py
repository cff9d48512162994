"""What a vacuum finds: the folders that it cleans, and the files in them, listed here or on other machines."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.interface import Storage
from delta_core.engines.records import WALKED_FILE, FolderFiles
from delta_core.errors import EngineError
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, mask_of, values_of
from delta_core.operations.vacuum.reachable import PathSet

__all__ = ["WINDOW", "CleanedPlaces", "check_witness", "deletable", "garbage", "joined", "witness_of"]

#: So many files are looked for, or deleted, at a time.
WINDOW = 8_192
#: So many folders are remembered.
_MOST_FOLDERS = 100_000
#: Folders that are enough to divide the work of listing those below them.
_ENOUGH_FOLDERS = 64
#: Names that begin so are cleaned although they begin with an underscore.
_CLEANED = ("_change_data", "_delta_index")
_UNIFORM = "delta.universalFormat.enabledFormats"
#: A file whose name begins with a dot or an underscore.
_HIDDEN_FILE = r"(?:^|/)[._][^/]*$"
_FOLDER = r"(?s)/?[^/]*$"
#: What another machine found: files that are to be deleted, or a note about a folder (``size`` is a count).
_FOUND = WALKED_FILE.append(pa.field("note", pa.string()))
_EMPTY, _RESERVED, _LISTED = "empty", "reserved", "listed"


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
        self.num_folders = 0

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

    def note(self, part: FolderFiles) -> None:
        """Take in what a listing found beside files."""
        self.empty += part.empty
        self.reserved.update(part.linked)
        self.num_folders += part.num_folders

    def forget(self) -> None:
        """Drop what was noted: it was reported."""
        self.reserved, self.empty, self.num_folders = set(), [], 0


def garbage(snapshot: Snapshot, reachable: PathSet, places: CleanedPlaces, cutoff: int) -> Iterator[pa.RecordBatch]:
    """Yield the files below the root that are to be deleted, as far as `CleanedPlaces.reserves` does not keep them.

    Folders are divided among the engine's other machines if it has any and there are many.

    Parameters
    ----------
    snapshot : Snapshot
        The table.
    reachable : PathSet
        Files that stay.
    places : CleanedPlaces
        Which folders are cleaned; notes empty ones, and those that stay.
    cutoff : int
        Files of this time (ms since the epoch) or later stay.
    """
    storage, spread = snapshot.engine.storage, snapshot.engine.spread
    work = _Cleaning(storage, reachable, places, cutoff)
    if spread is None:
        yield from work.files([""])
        return
    work = replace(work, witness=witness_of(storage))
    folders = [""]
    while folders and len(folders) < _ENOUGH_FOLDERS:
        part, inside = storage.list_folders(folders)
        yield work.take(part)
        folders = [f for f in inside if not places.skips(f)]
    if not folders:
        return
    found = spread(work, pa.array(folders, pa.string()), _FOUND)
    notes = found.filter(pc.is_valid(found.column("note")))
    for path, count, note in zip(*(notes.column(n).to_pylist() for n in ("path", "size", "note")), strict=True):
        if note == _LISTED:
            places.num_folders += count
        elif note == _EMPTY:
            places.empty.append(path)
        else:
            places.reserved.add(path)
    files = found.filter(pc.is_null(found.column("note"))).select(WALKED_FILE.names)
    yield from files.to_batches(max_chunksize=WINDOW)


class _Cleaning(Struct, frozen=True):
    """Lists folders, here or on another machine."""

    storage: Storage
    reachable: PathSet
    places: CleanedPlaces
    cutoff: int
    witness: str | None = None

    def __call__(self, folders: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield what is below folders: columns of `_FOUND`."""
        check_witness(self.storage, self.witness)
        self.places.forget()
        for files in self.files(folders.to_pylist()):
            yield pa.RecordBatch.from_arrays([*files.columns, pa.nulls(files.num_rows, pa.string())], schema=_FOUND)
        notes = [(path, None, None, _EMPTY) for path in self.places.empty]
        notes += [(path, None, None, _RESERVED) for path in self.places.reserved]
        columns = zip(*notes, ("", self.places.num_folders, None, _LISTED), strict=True)
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, _FOUND, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_FOUND)

    def files(self, folders: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the files below folders that are to be deleted, many folders at a time."""
        waiting: list[pa.RecordBatch] = []
        for part in self.storage.walk(self.places.skips, folders):
            self.places.note(part)
            waiting.append(part.files)
            if sum(b.num_rows for b in waiting) >= WINDOW:
                yield deletable(joined(waiting), self.reachable, self.cutoff)
                waiting = []
        if waiting:
            yield deletable(joined(waiting), self.reachable, self.cutoff)

    def take(self, part: FolderFiles) -> pa.RecordBatch:
        """Return the files of some folders that are to be deleted."""
        self.places.note(part)
        return deletable(part.files, self.reachable, self.cutoff)


def witness_of(storage: Storage) -> str | None:
    """Return a file of the log that every machine sees which sees the table; None if there is none yet."""
    names = [n for n in storage.list_from(LOG_DIRECTORY).names if n[:20].isdigit()]
    return f"{LOG_DIRECTORY}/{names[-1]}" if names else None


def check_witness(storage: Storage, witness: str | None) -> None:
    """Reject a machine that does not see a table: all its files would count as gone there.

    Raises
    ------
    EngineError
        If the file is not there.
    """
    if witness is None:
        return
    try:
        storage.stat([witness])
    except FileNotFoundError:
        raise EngineError(
            f"The machine {platform.node()} does not find {storage.uri(witness)}, which the driver sees: the files of "
            "the table would count as gone there. Let all machines reach the table's store, or call the same of "
            "delta_core.DeltaTable.",
            path=witness,
        ) from None


def deletable(batch: pa.RecordBatch, reachable: PathSet, cutoff: int) -> pa.RecordBatch:
    """Return the files that are old, not hidden and not reachable. A file without a time stays."""
    old = mask_of(pc.less(batch.column("modified_ms"), cutoff))
    if not old.all():
        batch = batch.filter(bool_array(old))
    if not batch.num_rows:
        return batch
    paths = batch.column("path")
    gone = ~(reachable.contains(paths) | mask_of(pc.match_substring_regex(paths, _HIDDEN_FILE)))
    return batch if gone.all() else batch.filter(bool_array(gone))


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of `WALKED_FILE` as one."""
    columns = [pa.concat_arrays([b.column(i) for b in batches]) for i in range(len(WALKED_FILE))]
    return pa.RecordBatch.from_arrays(columns, schema=WALKED_FILE)
