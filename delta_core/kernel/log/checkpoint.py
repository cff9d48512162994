"""Reading one checkpoint: its parts, its own actions, and the chunks of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import CheckpointHandle, LogFiles
from delta_core.engines.records import ActionQuery, FileIdentity
from delta_core.errors import AccessDeniedError, CheckpointError, LogChangedError
from delta_core.kernel.log.checkpoint_chunks import CheckpointChunk
from delta_core.kernel.log.commit_chunks import BASE_COLUMNS, CommitChunk, json_values
from delta_core.kernel.log.files import Chunk
from delta_core.kernel.log.names import LOG_DIRECTORY, SIDECAR_DIRECTORY
from delta_core.kernel.plugins.plans import Checkpoint, LogFile
from delta_core.kernel.protocol.actions import ActionField, parse_action
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, is_valid, one_array
from delta_core.kernels.json_actions import ParsedActions
from delta_core.runtime.processes import cached_property

__all__ = ["CheckpointReader", "read_removes"]

#: From sidecar actions (path, sizeInBytes, modificationTime) to the names of the files, or None.
Sidecars = Callable[[str, pa.Table], "Iterable[str] | None"]
_SIDECAR = pa.schema([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])


class CheckpointReader:
    """One checkpoint; opens its files on first use and keeps their footers.

    Notes
    -----
    A JSON checkpoint is read whole, at once. Of a Parquet one the footers are read, then the row groups that may
    hold what is requested. The parts of a V2 checkpoint that ``_last_checkpoint`` embeds save reading its main file.
    """

    def __init__(self, logs: LogFiles, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._logs = logs
        self._sidecar_handles: list[CheckpointHandle] | None = None

    @cached_property
    def _handles(self) -> list[CheckpointHandle]:
        files = self.checkpoint.files
        paths = [f"{LOG_DIRECTORY}/{f.name}" for f in files]
        listed = [None if f.size is None else FileIdentity(f.size, f.tag, f.modified_ms) for f in files]
        return list(self._logs.open_checkpoints(paths, [f.size for f in files], listed))

    @property
    def num_own_rows(self) -> int:
        """The number of actions in the checkpoint's own Parquet files, without sidecars."""
        return sum(sum(h.group_rows) for h in self._handles)

    @property
    def _json(self) -> LogFile | None:
        (first, *_) = self.checkpoint.files
        return first if first.format == "json" else None

    @cached_property
    def _parsed(self) -> ParsedActions:
        (file,) = self.checkpoint.files
        try:
            found = self._logs.read_commits([file], ActionQuery(BASE_COLUMNS))
        except (LogChangedError, AccessDeniedError, MemoryError):
            raise
        except Exception as e:
            raise CheckpointError(f"Checkpoint {file.name} can't be read: {e}", path=file.name) from e
        if not found.other_actions.num_rows and not found.adds.num_rows:
            raise CheckpointError(
                f"Checkpoint {file.name} is empty, expected at least checkpointMetadata.", path=file.name
            )
        return found

    def prefetch(self) -> None:
        """Read what opening a table needs: the JSON, or the footers."""
        if self._embedded("nonFileActions") is None:
            _ = self._parsed if self._json else self._handles

    def _embedded(self, name: str) -> list[dict[str, Any]] | None:
        found = (self.checkpoint.embedded or {}).get(name)
        return found if isinstance(found, list) else None

    def actions(self, *kinds: str) -> dict[str, list[dict[str, Any]]]:
        """Return the values of the checkpoint's own actions of some kinds, as decoded JSON.

        Parameters
        ----------
        *kinds : str
            The kinds, such as ``txn``.
        """
        embedded = self._embedded("nonFileActions")
        if embedded is not None and "sidecar" not in kinds:
            return {k: [a[k] for a in embedded if isinstance(a, dict) and isinstance(a.get(k), dict)] for k in kinds}
        if self._json:
            rows = self._parsed.other_actions.select(["kind", "json"]).to_pylist()
            name = self.checkpoint.files[0].name
            return {k: [parse_action(r["json"], name) for r in rows if r["kind"] == k] for k in kinds}
        out: dict[str, list[dict[str, Any]]] = {k: [] for k in kinds}
        for handle in self._handles:
            for group in range(len(handle.group_rows)):
                for k, values in _actions_of(handle, group, kinds).items():
                    out[k] += values
        return out

    def sidecars(self) -> pa.Table:
        """Return the sidecar actions; empty for a checkpoint that holds its file actions itself.

        Raises
        ------
        CheckpointError
            For sidecars that are listed in another form, or can't be read.
        """
        found = self._embedded("sidecarFiles") or self.actions("sidecar")["sidecar"]
        name = self.checkpoint.files[0].name
        for s in found:
            if not isinstance(s, dict) or not isinstance(s.get("path"), str):
                raise CheckpointError(
                    f"Checkpoint {name} lists a sidecar as {str(s)[:200]}, expected its path.", path=name
                )
        try:
            columns = [array_of([s.get(f.name) for s in found], f.type) for f in _SIDECAR]
        except (pa.ArrowException, ValueError, OverflowError) as e:
            raise CheckpointError(f"Checkpoint {name} lists sidecars that can't be read: {e}.", path=name) from e
        return pa.Table.from_arrays(columns, schema=_SIDECAR)

    def chunks(self, fields: Sequence[ActionField], sidecars: Sidecars) -> list[Chunk]:
        """Return the chunks that may hold adds.

        Parameters
        ----------
        fields : sequence of ActionField
            The fields that features add to file actions.
        sidecars : function(str, pyarrow.Table) -> iterable of str or None
            Returns the names of a checkpoint's sidecars; see the hook ``checkpoint_sidecars``.

        Raises
        ------
        CheckpointError
            If a sidecar is missing, no plugin specifies how sidecars are found, or it has no protocol or metadata.
        """
        self._check_definition()
        handles = self.file_handles(sidecars)
        if handles is None:
            (file,) = self.checkpoint.files
            return [CommitChunk(self._logs, [file], self._parsed.adds, fields, file.name)]
        groups = ((h, g) for h in handles for g in range(len(h.group_rows)))
        return [CheckpointChunk(h, g, fields) for h, g in groups if h.may_hold(g, "add")]

    def _check_definition(self) -> None:
        """Reject a checkpoint without protocol or metadata: it is none, whatever else defines the table."""
        for kind in ("protocol", "metaData"):
            if not self._has(kind):
                raise self.without(kind)

    def _has(self, kind: str) -> bool:
        if self._embedded("nonFileActions") is None and not self._json:
            groups = [(h, g) for h in self._handles for g in range(len(h.group_rows))]
            counts = [h.num_actions(g, kind) for h, g in groups]
            if None not in counts:
                return any(counts)
        return bool(self.actions(kind)[kind])

    def without(self, kind: str) -> CheckpointError:
        """Return the error of a checkpoint that has no action of a kind that every checkpoint has.

        Parameters
        ----------
        kind : str
            The kind of action.
        """
        name = self.checkpoint.files[0].name
        return CheckpointError(
            f"Checkpoint {name} has no {kind} action, which every checkpoint has: the file is not whole.",
            path=name,
            action=kind,
        )

    def removes(
        self, columns: Sequence[str], fields: Sequence[ActionField], sidecars: Sidecars
    ) -> Iterator[tuple[CheckpointHandle | None, pa.Table]]:
        """Yield the tombstones, a row group at a time, each with the file that it is in.

        The columns are ``path``, ``dvId`` and those requested.

        Parameters
        ----------
        columns : sequence of str
            Columns of ``remove``.
        fields : sequence of ActionField
            The fields that features add to file actions.
        sidecars : function(str, pyarrow.Table) -> iterable of str or None
            Returns the names of a checkpoint's sidecars; see the hook ``checkpoint_sidecars``.
        """
        names = ["path", "dvId", *(c for c in columns if c not in ("path", "dvId"))]
        handles = self.file_handles(sidecars)
        if handles is None:
            (file,) = self.checkpoint.files
            yield None, read_removes(self._logs, [file], names, fields)
        for h in handles or ():
            for g in range(len(h.group_rows)):
                if h.may_hold(g, "remove"):
                    table = pa.Table.from_arrays(CheckpointChunk(h, g, fields, "remove").load(names), names)
                    yield h, pc.filter(table, pc.is_valid(table.column("path")))

    def file_handles(self, sidecars: Sidecars) -> list[CheckpointHandle] | None:
        """Return what holds the file actions, opened once; None for a JSON checkpoint that holds them itself.

        Parameters
        ----------
        sidecars : function(str, pyarrow.Table) -> iterable of str or None
            Returns the names of a checkpoint's sidecars; see the hook ``checkpoint_sidecars``.
        """
        listed = self.sidecars()
        if not listed.num_rows:
            return None if self._json else self._handles
        if self._sidecar_handles is None:
            self._sidecar_handles = self._open_sidecars(listed, sidecars)
        return self._sidecar_handles

    def _open_sidecars(self, listed: pa.Table, sidecars: Sidecars) -> list[CheckpointHandle]:
        main = self.checkpoint.files[0].name
        names = sidecars(main, listed)
        if names is None:
            raise CheckpointError(
                f"Checkpoint {main} keeps its file actions in sidecars, but no feature of the table specifies how to "
                "find them.",
                path=main,
            )
        sizes = dict(zip(listed.column("path").to_pylist(), listed.column("sizeInBytes").to_pylist(), strict=True))
        chosen = list(names)
        paths = [f"{SIDECAR_DIRECTORY}/{n}" for n in chosen]
        return list(self._logs.open_checkpoints(paths, [sizes.get(n) for n in chosen]))


def _actions_of(handle: CheckpointHandle, group: int, kinds: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the values of actions of a group; rows after the last one are not read where the footer counts them."""
    found: dict[str, list[dict[str, Any]]] = {k: [] for k in kinds if handle.may_hold(group, k)}
    if not found:
        return found
    counts = {k: handle.num_actions(group, k) for k in found}
    with closing(handle.batches(group, [(k,) for k in found])) as batches:
        for batch in batches:
            for values, column in zip(found.values(), batch, strict=True):
                values.extend(_values(column, handle.path))
            if all(len(values) == counts[k] for k, values in found.items()):
                break
    return found


def _values(column: pa.Array, path: str) -> list[dict[str, Any]]:
    try:
        return [column[i].as_py() for i in np.flatnonzero(is_valid(column)).tolist()]
    except ValueError as e:  # texts that are no UTF-8
        raise CheckpointError.of_unreadable(path, e) from e


def read_removes(
    logs: LogFiles, files: Sequence[LogFile], names: Sequence[str], fields: Sequence[ActionField]
) -> pa.Table:
    """Return columns of the removes of commits, in their order; those of plugins with their types.

    Parameters
    ----------
    logs : LogFiles
        Reads files of the log.
    files : sequence of LogFile
        The commits, oldest first.
    names : sequence of str
        Columns of `FILE_COLUMNS`.
    fields : sequence of ActionField
        The fields that features add to file actions.
    """
    own = {f.name: f.type for f in fields if f.action == "remove"}
    query = ActionQuery(
        tuple(n for n in names if n not in own),
        kinds=frozenset({"remove"}),
        extra_fields={"remove": tuple(n for n in names if n in own)},
    )
    found = logs.read_commits(files, query).removes
    columns = [
        json_values(one_array(found.column(f"extra:{n}")), own[n]) if n in own else found.column(n) for n in names
    ]
    return pa.Table.from_arrays(columns, list(names))
