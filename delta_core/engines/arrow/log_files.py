"""LogFiles of the Arrow engine: commits through the compiled parser, checkpoints as Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow import parts
from delta_core.engines.records import ActionQuery, FileIdentity, ParquetForm, RangeRequest
from delta_core.errors import DeltaError, LogChangedError
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernels.json_actions import ActionParser, ParsedActions
from delta_core.storage.places import store_error

if TYPE_CHECKING:
    from delta_core.engines.arrow.checkpoint_files import ParquetCheckpoint
    from delta_core.engines.interface import Storage

__all__ = ["ArrowLogFiles"]

Map = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]


class ArrowLogFiles:
    """Actions of commits and checkpoints as Arrow.

    Parameters
    ----------
    map : function
        Runs a function over items on threads.
    """

    def __init__(self, storage: Storage, map: Map) -> None:
        self._storage = storage
        self._map = map

    def read_commits(self, files: Sequence[LogFile], query: ActionQuery) -> ParsedActions:
        """Read commits in the order given: local ones in one compiled loop, remote ones concurrently.

        Raises
        ------
        LogChangedError
            If a file is gone since it was listed.
        EngineError
            If the store fails.
        """
        parser = ActionParser(
            query.columns,
            kinds=query.kinds,
            skip_kinds=query.skip,
            partition_keys=query.partition_keys,
            extra_fields=query.extra_fields,
        )
        try:
            self._feed(parser, files)
        except FileNotFoundError as e:
            raise LogChangedError(
                f"{e.filename or e} was listed but is gone. If the log was cleaned up meanwhile, or the catalog's "
                "commit was published, open the table again; otherwise restore the file, which its version needs.",
                path=str(e.filename or e),
            ) from e
        except OSError as e:
            if isinstance(e, DeltaError):
                raise
            raise store_error("read", str(e.filename or LOG_DIRECTORY), self._storage.root, e) from e
        return parser.finish()

    def write_parquet(
        self, path: str, schema: pa.Schema, groups: Iterable[pa.Table], form: ParquetForm, *, replace: bool = True
    ) -> int:
        """Write a checkpoint or sidecar, a row group per table, as they come; return its size in bytes."""
        return parts.write_parquet(self._storage, path, schema, groups, form, replace)

    def write_lines(self, path: str, pieces: Iterable[bytes]) -> int:
        """Write a JSON checkpoint from pieces of its text; return its size in bytes."""
        return parts.write_lines(self._storage, path, pieces)

    def _feed(self, parser: ActionParser, files: Sequence[LogFile]) -> None:
        directory = self._storage.local_path(LOG_DIRECTORY)
        if directory is not None and not any(f.data is not None for f in files):
            versions = np.array([f.end_version for f in files], np.int64)
            parser.feed_files([f"{directory}/{f.name}" for f in files], versions)
            return
        paths = [f"{LOG_DIRECTORY}/{f.name}" for f in files]
        stored = [i for i, f in enumerate(files) if f.data is None]
        found = dict(zip(stored, self._storage.read([RangeRequest(paths[i]) for i in stored]), strict=True))
        for i, f in enumerate(files):
            parser.feed(f.end_version, found[i] if f.data is None else f.data, paths[i])

    def open_checkpoints(
        self, paths: Sequence[str], sizes: Sequence[int | None], listed: Sequence[FileIdentity | None] = ()
    ) -> list[ParquetCheckpoint]:
        """Open checkpoint parts or sidecars, footers read concurrently."""
        files = list(zip(paths, sizes, listed or [None] * len(paths), strict=True))
        found = self._map(lambda p: parts.ParquetCheckpoint(self._storage, *p), files)
        if len(found) > 1:
            # parts are replaced one after the other: all must be of one checkpoint
            self._map(lambda file: file.check_name(), found)
        return found
