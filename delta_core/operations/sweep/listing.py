"""The files below a table's root that nothing references, listed here or on other machines."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.engine import Engine
from delta_core.engines.interface import Storage
from delta_core.engines.records import WALKED_FILE, FolderFiles
from delta_core.errors import EngineError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, mask_of
from delta_core.operations.sweep.paths import PathSet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WINDOW", "SweptPlaces", "check_witness", "deletable", "garbage", "joined"]

#: The number of files that are looked for, or deleted, at a time.
WINDOW = 8_192
#: Folders that are enough to divide the work of listing those below them.
_ENOUGH_FOLDERS = 64
#: The findings of another machine: files that are to be deleted, or a note about a folder (``size`` is a count).
_FOUND = WALKED_FILE.append(pa.field("note", pa.string()))
_EMPTY, _RESERVED, _LISTED = "empty", "reserved", "listed"


class SweptPlaces(Protocol):
    """The folders of a format that are swept. It is pickled where other machines list folders.

    Attributes
    ----------
    num_folders : int
        The folders that were listed.
    empty : list of str
        Folders without a file.
    reserved : set of str
        Folders and files that stay with all that is in them, as found so far: `garbage` may yield files in them.
    """

    num_folders: int
    empty: list[str]
    reserved: set[str]

    def skips(self, folder: str) -> bool:
        """Whether a folder stays, if the one above it is swept."""
        ...

    def keeps(self, paths: pa.Array) -> NDArray[np.bool_]:
        """Return which files stay whatever references them, by their names: hidden ones, for example."""
        ...

    def note(self, part: FolderFiles) -> None:
        """Take in what a listing found beside files."""
        ...

    def forget(self) -> None:
        """Drop what was noted: it was reported."""
        ...


def garbage(
    engine: Engine, referenced: PathSet, places: SweptPlaces, cutoff: int, witness: str | None
) -> Iterator[pa.RecordBatch]:
    """Yield the files below the root that are old and not referenced; ``places.reserved`` may hold some of them.

    Folders are divided among the engine's other machines if it has any and there are many.

    Parameters
    ----------
    engine : Engine
        Of the table's place.
    referenced : PathSet
        Files that stay.
    places : SweptPlaces
        Which folders are swept; notes empty ones, and those that stay.
    cutoff : int
        Files of this time (ms since the epoch) or later stay.
    witness : str, optional
        A file that each other machine must find before it takes any other for missing.
    """
    storage, spread = engine.storage, engine.spread
    work = _Listing(storage, referenced, places, cutoff)
    if spread is None:
        yield from work.files([""])
        return
    work = replace(work, witness=witness)
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


class _Listing(Struct, frozen=True):
    """Lists folders, here or on another machine."""

    storage: Storage
    referenced: PathSet
    places: SweptPlaces
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
                yield deletable(joined(waiting), self.referenced, self.places, self.cutoff)
                waiting = []
        if waiting:
            yield deletable(joined(waiting), self.referenced, self.places, self.cutoff)

    def take(self, part: FolderFiles) -> pa.RecordBatch:
        """Return the files of some folders that are to be deleted."""
        self.places.note(part)
        return deletable(part.files, self.referenced, self.places, self.cutoff)


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


def deletable(batch: pa.RecordBatch, referenced: PathSet, places: SweptPlaces, cutoff: int) -> pa.RecordBatch:
    """Return the files that are old, not referenced and not kept by their names. A file without a time stays."""
    old = mask_of(pc.less(batch.column("modified_ms"), cutoff))
    if not old.all():
        batch = batch.filter(bool_array(old))
    if not batch.num_rows:
        return batch
    paths = batch.column("path")
    gone = ~(referenced.contains(paths) | places.keeps(paths))
    return batch if gone.all() else batch.filter(bool_array(gone))


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of `WALKED_FILE` as one."""
    columns = [pa.concat_arrays([b.column(i) for b in batches]) for i in range(len(WALKED_FILE))]
    return pa.RecordBatch.from_arrays(columns, schema=WALKED_FILE)
