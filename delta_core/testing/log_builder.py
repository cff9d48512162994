"""LogBuilder: a Delta log written file by file, with nothing in it that the caller did not request."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import fsspec
import pyarrow as pa

from delta_core.schema.fields import Schema
from delta_core.testing.checkpoint_files import (
    CheckpointKind,
    StatisticsForm,
    checkpoint_rows,
    hint_checksum,
    json_bytes,
    parquet_bytes_of,
)
from delta_core.testing.log_state import Action, LogState, reconcile

__all__ = ["LogBuilder"]


class LogBuilder:
    """The log of a table under construction: commits, checkpoints, hints, compacted files, checksums.

    Every operation writes at once and returns the builder. Commit ``n`` is stamped ``start_ms + n * step_ms``, in
    ``commitInfo``, as in-commit timestamp if switched on, and as file time.

    Parameters
    ----------
    path : str or os.PathLike
        The table's root, or an fsspec URI such as ``memory://t``.
    seed : int
        Of the names of files; two builders with one seed write the same log.
    """

    def __init__(
        self,
        path: Any,
        *,
        storage_options: Mapping[str, Any] | None = None,
        start_ms: int = 1_700_000_000_000,
        step_ms: int = 1_000,
        seed: int = 0,
    ) -> None:
        self.uri: str = os.fspath(path)
        self._fs, self._root = fsspec.core.url_to_fs(self.uri, **(storage_options or {}))
        self._start_ms, self._step_ms = start_ms, step_ms
        self._random = random.Random(seed)  # noqa: S311 (names of files)
        self.commits: dict[int, list[Action]] = {}
        self.state: LogState = LogState()
        #: The bytes of every commit, staged ones included.
        self.bodies: dict[int, bytes] = {}
        #: Path of a file in the log to its typed partition values by physical name.
        self._partitions: dict[str, dict[str, Any]] = {}

    # --- what was written ------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The last version written, -1 before the first."""
        return max(self.commits, default=-1)

    def timestamp_ms(self, version: int) -> int:
        """Return the time that a version's commit is stamped with unless specified otherwise."""
        return self._start_ms + version * self._step_ms

    def state_at(self, version: int | None = None) -> LogState:
        """Return what the log adds up to at a version."""
        last = self.version if version is None else version
        return reconcile(self.commits[v] for v in sorted(self.commits) if v <= last)

    # --- bytes -----------------------------------------------------------------------------

    def location(self, path: str) -> str:
        """Return where a path below the root lies on the file system."""
        return f"{self._root}/{path}" if path else str(self._root)

    def write(self, path: str, data: bytes, mtime_ms: int | None = None) -> Self:
        """Write any file below the root."""
        place = self.location(path)
        self._fs.makedirs(place.rsplit("/", 1)[0], exist_ok=True)
        self._fs.pipe_file(place, data)
        return self if mtime_ms is None else self.touch(path, mtime_ms)

    def write_log(self, name: str, data: bytes | str, mtime_ms: int | None = None) -> Self:
        """Write any file below ``_delta_log``."""
        return self.write(f"_delta_log/{name}", data.encode() if isinstance(data, str) else data, mtime_ms)

    def touch(self, path: str, mtime_ms: int) -> Self:
        """Set a file's modification time; a file system that can't keep one is left alone."""
        place = self.location(path)
        if "file" in self._fs.protocol:
            os.utime(place, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
        return self

    def drop(self, path: str) -> Self:
        """Delete a file below the root."""
        self._fs.rm_file(self.location(path))
        return self

    def _uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    # --- commits ---------------------------------------------------------------------------

    def commit(
        self,
        *actions: Action,
        operation: str = "WRITE",
        info: Mapping[str, Any] | None = None,
        version: int | None = None,
        mtime_ms: int | None = None,
        text: str | None = None,
        publish: Literal["log", "staged", "no"] = "log",
    ) -> Self:
        """Write the next commit from any actions.

        Parameters
        ----------
        *actions : dict
            As JSON has them: each the kind and its fields.
        operation : str
            The operation of ``commitInfo``.
        info : Mapping, optional
            Further fields of ``commitInfo``.
        version : int, optional
            Another version than the next, to make gaps.
        mtime_ms : int, optional
            The file's modification time, in ms since epoch UTC; the commit's timestamp unless given.
        text : str, optional
            The commit's text instead of what the actions return; the builder still believes the actions.
        publish : str
            ``staged`` writes under ``_staged_commits``, ``no`` only into `bodies`, for a catalog to hand out.
        """
        v = self.version + 1 if version is None else version
        self.state.apply(actions)
        stamp = self.timestamp_ms(v)
        about: dict[str, Any] = {"timestamp": stamp, "operation": operation, "operationParameters": {}}
        if self.state.metadata.get("configuration", {}).get("delta.enableInCommitTimestamps") == "true":
            about = {"inCommitTimestamp": stamp, **about}
        if "catalogManaged" in (self.state.protocol.get("writerFeatures") or ()):
            about["txnId"] = str(self._uuid())
        full: list[Action] = [{"commitInfo": {**about, **(info or {})}}, *actions]
        body = "".join(json.dumps(a, separators=(",", ":")) + "\n" for a in full) if text is None else text
        self.commits[v], self.bodies[v] = full, body.encode()
        if publish == "log":
            self.write_log(f"{v:020d}.json", body, stamp if mtime_ms is None else mtime_ms)
        elif publish == "staged":
            self.write_log(
                f"_staged_commits/{v:020d}.{self._uuid()}.json", body, stamp if mtime_ms is None else mtime_ms
            )
        return self

    # --- checkpoints and what is beside commits ----------------------------------------

    def checkpoint(
        self,
        kind: CheckpointKind = "v1",
        *,
        version: int | None = None,
        parts: int = 2,
        sidecars: int = 0,
        statistics: StatisticsForm = "json",
        hint: bool | Mapping[str, Any] = True,
        checksum: bool = True,
        embed: bool = False,
        extra: Mapping[str, tuple[pa.DataType, Sequence[Any]]] | None = None,
        **parquet: Any,
    ) -> Self:
        """Write a checkpoint and the hint to it.

        Parameters
        ----------
        kind : str
            ``v1``, ``v1-multipart``, ``v2-json``, ``v2-parquet``, or ``v2-classic`` for a V2 one with the name of a V1.
        version : int, optional
            The version; the latest unless given.
        parts, sidecars : int
            Number of files of a multi-part checkpoint; of sidecars of a V2 one, 0 for file actions inline.
        statistics : str
            ``json``, ``struct`` (with parsed partition values), ``both`` or ``none``.
        hint : bool or dict
            Whether to write ``_last_checkpoint``; a dict replaces entries of it.
        checksum : bool
            Whether the hint has a checksum of its own content.
        embed : bool
            Whether the hint embeds the V2 checkpoint's actions.
        extra : Mapping, optional
            An external package's kinds of action: name to (struct, values).
        parquet
            Options of `pyarrow.parquet.write_table`.
        """
        v = self.version if version is None else version
        state = self.state_at(v)
        types = {name: t for name, (t, _) in (extra or {}).items()}
        small = state.small_actions() + [{n: value} for n, (_, values) in (extra or {}).items() for value in values]
        schema = Schema.from_json(state.metadata["schemaString"])
        partition = tuple(state.metadata["partitionColumns"])
        files = checkpoint_rows(state.file_actions(), schema, statistics)

        def encode(rows: Sequence[Mapping[str, Any]]) -> bytes:
            return parquet_bytes_of(rows, schema, partition, statistics, types, self._partitions, **parquet)

        stem = f"{v:020d}.checkpoint"
        about: dict[str, Any] = {"version": v, "size": len(small) + len(files)}
        if kind == "v1":
            self.write_log(f"{stem}.parquet", encode([*small, *files]))
        elif kind == "v1-multipart":
            about["parts"] = parts
            for number, rows in enumerate(_deal([*small, *files], parts), 1):
                self.write_log(f"{stem}.{number:010d}.{parts:010d}.parquet", encode(rows))
        else:
            about |= self._write_v2(kind, stem, small, files, sidecars, embed, encode)
        if hint is False:
            return self
        return self.last_checkpoint({**about, **(hint if isinstance(hint, Mapping) else {})}, checksum=checksum)

    def _write_v2(
        self,
        kind: CheckpointKind,
        stem: str,
        small: list[dict[str, Any]],
        files: list[dict[str, Any]],
        sidecars: int,
        embed: bool,
        encode: Callable[[Sequence[Mapping[str, Any]]], bytes],
    ) -> dict[str, Any]:
        when = self.timestamp_ms(self.version)
        named = []
        for rows in _deal(files, sidecars) if sidecars else []:
            name, data = f"{self._uuid()}.parquet", encode(rows)
            self.write_log(f"_sidecars/{name}", data)
            named.append({"path": name, "sizeInBytes": len(data), "modificationTime": when})
        top = [{"checkpointMetadata": {"version": int(stem[:20])}}, *small, *({"sidecar": s} for s in named)]
        ending = {"v2-json": f".{self._uuid()}.json", "v2-parquet": f".{self._uuid()}.parquet"}.get(kind, ".parquet")
        rows = top if named else [*top, *files]
        data = json_bytes(rows) if kind == "v2-json" else encode(rows)
        self.write_log(stem + ending, data)
        about: dict[str, Any] = {"sizeInBytes": len(data), "numOfAddFiles": sum("add" in f for f in files)}
        if embed:
            about["v2Checkpoint"] = {
                "path": stem + ending,
                "sizeInBytes": len(data),
                "modificationTime": when,
                "nonFileActions": [a for a in top if "sidecar" not in a],
                "sidecarFiles": named,
            }
        return about

    def last_checkpoint(self, value: Mapping[str, Any] | str, *, checksum: bool = True) -> Self:
        """Write ``_last_checkpoint`` from fields, or any text at all."""
        if isinstance(value, str):
            return self.write_log("_last_checkpoint", value)
        extra = {"checksum": hint_checksum(value)} if checksum else {}
        return self.write_log("_last_checkpoint", json.dumps({**value, **extra}))

    def compact(self, start: int, end: int) -> Self:
        """Write a log compaction file; it keeps every remove and removed domain. Protocol: Log Compaction Files."""
        state = reconcile(self.commits[v] for v in range(start, end + 1))
        body = json_bytes([*state.small_actions(removed_domains=True), *state.file_actions()])
        return self.write_log(f"{start:020d}.{end:020d}.compacted.json", body)

    def checksum(self, version: int | None = None, **fields: Any) -> Self:
        """Write a version's ``.crc``; ``fields`` replace what the log adds up to, None leaves one out."""
        v = self.version if version is None else version
        state = self.state_at(v)
        value: dict[str, Any] = {
            "tableSizeBytes": sum(a["size"] for a in state.files.values()),
            "numFiles": len(state.files),
            "numMetadata": 1,
            "numProtocol": 1,
            "setTransactions": list(state.txns.values()),
            "metadata": state.metadata,
            "domainMetadata": [d for d in state.domains.values() if not d.get("removed")],
            "protocol": state.protocol,
        }
        stamp = self.commits[v][0]["commitInfo"].get("inCommitTimestamp") if v in self.commits else None
        merged = {**value, "inCommitTimestampOpt": stamp, **fields}
        return self.write_log(f"{v:020d}.crc", json.dumps({k: x for k, x in merged.items() if x is not None}))

    def cleanup_before(self, version: int) -> Self:
        """Delete log files below a version, as metadata cleanup does."""
        for place in self._fs.ls(self.location("_delta_log"), detail=False):
            name = place.rsplit("/", 1)[-1]
            if name[:20].isdigit() and int(name[:20]) < version:
                self._fs.rm_file(place)
        self._fs.invalidate_cache()
        return self


def _deal(rows: Sequence[Any], parts: int) -> list[list[Any]]:
    """Deal rows into ``count`` runs of about one length."""
    step = -(-len(rows) // parts) or 1
    return [list(rows[n * step : (n + 1) * step]) for n in range(parts)]
