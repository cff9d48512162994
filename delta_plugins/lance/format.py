"""How the core finds and opens Lance datasets: the entry point of the group ``delta_core.formats``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from delta_core.api import CorruptTableError, Engine, Opening, make_engine
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.names import MANIFESTS, list_latest

__all__ = ["FORMAT", "LanceFormat", "open_dataset"]


class LanceFormat:
    """The format (`delta_core.api.TableFormat`)."""

    name = "lance"
    split_options: Mapping[str, type[int | str]] = {"version": int, "timestamp": str, "tag": str, "branch": str}

    def recognise(self, engine: Engine) -> bool:
        """Whether the engine's place has manifests of Lance: one listing."""
        try:
            return list_latest(engine.storage) is not None
        except CorruptTableError:  # manifests of two naming schemes: a dataset, which `open` rejects
            return True

    def open_if_there(self, engine: Engine, uri: str, **options: Any) -> LanceDataset | None:
        """Open a dataset as `open` does, with the listing that recognises it; None if the place has no manifests."""
        found = list_latest(engine.storage)
        return None if found is None else self.open(engine, uri, listed=found, **options)

    def open(self, engine: Engine, uri: str, **options: Any) -> LanceDataset:
        """Open a dataset; the options are those of `LanceDataset.open`: version, timestamp, tag, branch."""
        # the options of another store are not known here, without which it can't be opened again
        is_local = engine.storage.local_path(MANIFESTS) is not None
        return LanceDataset.open(engine, uri, opening=Reopening(Opening(uri)) if is_local else None, **options)


FORMAT = LanceFormat()


class Reopening:
    """Opens a version of a dataset again, in another process; storage options that are secrets are not pickled.

    Parameters
    ----------
    opening : Opening
        How the dataset was opened.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def __call__(self, version: int, branch: str | None) -> LanceDataset:
        engine = _engine_of(self._opening)
        return LanceDataset.open(engine, self._opening.uri, version=version, branch=branch, opening=self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopening, (dict(self._opening.pickled(0).arguments),)


def _reopening(arguments: dict[str, Any]) -> Reopening:
    return Reopening(Opening(**arguments))


def _engine_of(opening: Opening) -> Engine:
    if isinstance(opening.engine, Engine):
        return opening.engine
    return make_engine(opening.engine, opening.uri, opening.storage_options, opening.allow_external)


def open_dataset(
    uri: str,
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
    uri : str
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
    opening = Opening(uri, storage_options, engine, allow_external=allow_external, pickle_secrets=pickle_secrets)
    return LanceDataset.open(
        _engine_of(opening),
        uri,
        version=version,
        timestamp=timestamp,
        tag=tag,
        branch=branch,
        opening=Reopening(opening),
    )
