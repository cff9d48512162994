"""How the core finds and opens Lance datasets: the entry point of the group ``delta_core.formats``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from delta_core.api import Engine, Opening, path_text
from delta_plugins.lance import exchanges
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.names import has_manifests, list_latest
from delta_plugins.lance.opened import Reopening, engine_of, reopening_of

if TYPE_CHECKING:
    from delta_core.api import Incoming, Outgoing, SpreadWrite

__all__ = ["FORMAT", "LanceFormat", "open_dataset"]


class LanceFormat:
    """The format (`delta_core.api.TableFormat`)."""

    name = "lance"
    split_options: Mapping[str, type[int | str]] = {"version": int, "timestamp": str, "tag": str, "branch": str}
    write_options: Mapping[str, type[int | str | bool]] = {
        "file_version": str,
        "max_rows_per_file": int,
        "max_bytes_per_file": int,
        "stable_row_ids": bool,
        "branch": str,
    }

    def recognise(self, engine: Engine) -> bool:
        """Whether the engine's place has manifests of Lance: one listing."""
        return has_manifests(engine.storage)

    def open_if_there(self, engine: Engine, uri: str, **options: Any) -> LanceDataset | None:
        """Open a dataset as `open` does, with the listing that recognises it; None if the place has no manifests."""
        found = list_latest(engine.storage)
        return None if found is None else self.open(engine, uri, listed=found, **options)

    def open(self, engine: Engine, uri: str, **options: Any) -> LanceDataset:
        """Open a dataset; the options are those of `LanceDataset.open`: version, timestamp, tag, branch."""
        return LanceDataset.open(engine, uri, opening=reopening_of(engine, uri), **options)

    def begin_spread_write(
        self, engine: Engine, uri: str, schema: Any, mode: str, options: Mapping[str, Any]
    ) -> SpreadWrite:
        """See `delta_core.api.SpreadFormat.begin_spread_write`."""
        return exchanges.begin_spread_write(engine, uri, schema, mode, options)

    def outgoing(self, table: Any, columns: Sequence[str] | None, row_ids: bool) -> Outgoing:
        """See `delta_core.api.ExchangeFormat.outgoing`."""
        return exchanges.outgoing_dataset(table, columns, row_ids)

    def incoming(self, engine: Engine, uri: str, outgoing: Outgoing, options: Mapping[str, Any]) -> Incoming:
        """See `delta_core.api.ExchangeFormat.incoming`."""
        return exchanges.incoming_dataset(engine, uri, outgoing, options)


FORMAT = LanceFormat()


def open_dataset(
    uri: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: Any = None,
    tag: str | None = None,
    branch: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    engine: str | Engine = "arrow",
    allow_external: Sequence[str] | Literal[False] | None = None,
    pickle_secrets: bool = False,
) -> LanceDataset:
    """Open a dataset.

    Parameters
    ----------
    uri : str or path
        Its root.
    version, timestamp, tag, branch
        See `LanceDataset.open`.
    storage_options, engine, allow_external, pickle_secrets
        As of `delta_core.DeltaTable`.

    Raises
    ------
    TableNotFoundError
        If there is no dataset.
    VersionNotFoundError
        If there is no such version.
    CorruptTableError, UnsupportedFeatureError, SchemaError
        If it can't be read.
    """
    uri = path_text(uri)
    opening = Opening(uri, storage_options, engine, allow_external=allow_external, pickle_secrets=pickle_secrets)
    return LanceDataset.open(
        engine_of(opening),
        uri,
        version=version,
        timestamp=timestamp,
        tag=tag,
        branch=branch,
        opening=Reopening(opening),
    )
