"""The plan of a vacuum: files in the order in which they were found, in memory or on this machine's disk."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa
from msgspec import Struct

from delta_core import handles
from delta_core.engines.records import WALKED_FILE
from delta_core.errors import InvalidArgumentError
from delta_core.operations.sweep.found_files import FoundFiles

__all__ = ["PlanFacts", "VacuumPlan"]

_FACTS = b"delta_core.vacuum"


class PlanFacts(Struct, frozen=True):
    """The subject of a plan.

    Parameters
    ----------
    table_id : str
        The ``id`` of the table's metadata.
    version : int
        The version whose files, and those of its tombstones, stay.
    cutoff_ms : int
        Files and tombstones of this time (ms since the epoch) or later stay.
    retention_ms, configured_ms : int
        The retention that was requested (None: none was), and the table's own.
    enforced : bool
        Whether a shorter retention than the table's was rejected.
    lite : bool
        Whether the files come from the log alone.
    keep_versions : tuple of int
        Versions whose files stay.
    keep_for : tuple of str
        Tables whose files stay.
    covered : int or None
        The last commit whose removed files the plan covers, if it covers all of them.
    num_files, num_bytes, num_folders : int
        The files to be deleted, their bytes, and the folders that were listed.
    """

    table_id: str
    version: int
    cutoff_ms: int
    retention_ms: int | None
    configured_ms: int
    enforced: bool
    lite: bool
    keep_versions: tuple[int, ...] = ()
    keep_for: tuple[str, ...] = ()
    covered: int | None = None
    num_files: int = 0
    num_bytes: int = 0
    num_folders: int = 0


class VacuumPlan:
    """The files that a vacuum would delete. Nothing is deleted before it runs.

    Parameters
    ----------
    facts : PlanFacts
        The subject that it was made for.
    files : FoundFiles or str
        The files, or the path of a saved plan.
    empty_folders : tuple of str
        Folders in which there is nothing.

    Examples
    --------
    >>> table.optimize.compact()["numFilesRemoved"]
    2
    >>> plan = table.plan_vacuum(retention_hours=0, enforce_retention_duration=False)
    >>> len(table.vacuum(plan=plan, dry_run=False))
    2
    """

    def __init__(self, facts: PlanFacts, files: FoundFiles | str, empty_folders: tuple[str, ...] = ()) -> None:
        self.facts = facts
        self.empty_folders = empty_folders
        self._files = files

    def __repr__(self) -> str:
        facts = self.facts
        return f"VacuumPlan(version={facts.version}, files={facts.num_files}, bytes={facts.num_bytes})"

    def _repr_html_(self) -> str:
        facts = {"version": self.facts.version, "files": f"{self.num_files:,}", "bytes": f"{self.num_bytes:,}"}
        most = handles.MOST_ROWS
        files = (file for batch in self.batches() for file in batch.slice(0, most).to_pylist())
        rows = [(f["path"], "" if f["size"] is None else f"{f['size']:,}") for f in islice(files, most)]
        left = self.num_files - len(rows)
        more = f'<tr><td colspan="2">and {left:,} more</td></tr>' if left > 0 else ""
        return handles.page("Files that a vacuum would delete", facts, handles.grid(("path", "bytes"), rows, more))

    def paths(self) -> list[str]:
        """Return the paths of the files, and of the empty folders with a slash at their ends.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> plan = table.plan_vacuum(retention_hours=0, enforce_retention_duration=False)
        >>> len(plan.paths())
        2
        """
        return [*self.to_table().column("path").to_pylist(), *(f"{folder}/" for folder in self.empty_folders)]

    @property
    def num_files(self) -> int:
        """The number of files.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> table.plan_vacuum(retention_hours=0, enforce_retention_duration=False).num_files
        2
        """
        return self.facts.num_files

    @property
    def num_bytes(self) -> int:
        """Their bytes; of files that the log alone names, as far as it states them.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> table.plan_vacuum(retention_hours=0, enforce_retention_duration=False).num_bytes > 1000
        True
        """
        return self.facts.num_bytes

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the files: ``path`` from the table's root, not encoded, ``size``, ``modified_ms``.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> plan = table.plan_vacuum(retention_hours=0, enforce_retention_duration=False)
        >>> [batch.num_rows for batch in plan.batches()]
        [2]
        """
        if isinstance(self._files, FoundFiles):
            yield from self._files.batches()
            return
        with pa.OSFile(self._files, "rb") as source, pa.ipc.open_file(source) as reader:
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)

    def to_table(self) -> pa.Table:
        """Return the files as one table.

        Examples
        --------
        >>> table.plan_vacuum().to_table().column_names
        ['path', 'size', 'modified_ms']
        """
        return pa.Table.from_batches(list(self.batches()), WALKED_FILE)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file of this machine (an Arrow file), to look at it and to run it later.

        Parameters
        ----------
        path : str or path
            A local file, which is replaced if it exists.

        Raises
        ------
        OSError
            If the file can't be written.

        Examples
        --------
        >>> table.plan_vacuum().save("plan.arrow")
        >>> table.vacuum(plan="plan.arrow", dry_run=False)
        []
        """
        target = os.fspath(path)
        saved = {_FACTS: msgspec.json.encode((self.facts, self.empty_folders))}
        temporary = f"{target}.{uuid.uuid4().hex}.tmp"
        try:
            with pa.OSFile(temporary, "wb") as sink, pa.ipc.new_file(sink, WALKED_FILE.with_metadata(saved)) as writer:
                for batch in self.batches():
                    writer.write_batch(batch)
            Path(temporary).replace(target)
        finally:
            Path(temporary).unlink(missing_ok=True)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> VacuumPlan:
        """Return a saved plan.

        Parameters
        ----------
        path : str or path
            A local file.

        Raises
        ------
        InvalidArgumentError
            If the file is no plan.
        FileNotFoundError
            If there is no such file.

        Examples
        --------
        >>> from delta_core.operations import VacuumPlan
        >>> table.plan_vacuum().save("plan.arrow")
        >>> VacuumPlan.load("plan.arrow").num_files
        0
        """
        source = os.fspath(path)
        try:
            with pa.OSFile(source, "rb") as file, pa.ipc.open_file(file) as reader:
                schema = reader.schema
            if not schema.equals(WALKED_FILE):
                raise InvalidArgumentError(f"{source} has the columns {schema.names}, expected a saved VacuumPlan.")
            text = (schema.metadata or {})[_FACTS]
            facts, empty = msgspec.json.decode(text, type=tuple[PlanFacts, tuple[str, ...]])
        except (pa.ArrowInvalid, KeyError, msgspec.DecodeError) as e:
            raise InvalidArgumentError(f"{source} is no saved VacuumPlan: {e}.", path=source) from e
        return VacuumPlan(facts, source, empty)
