"""How the core finds and opens Lance datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from delta_core.api import CorruptTableError, Engine, Storage, open_context
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.names import MANIFESTS, parse_versions

if TYPE_CHECKING:
    from delta_core.api import TableContext

__all__ = ["open_dataset", "open_with", "recognise"]


def recognise(storage: Storage, uri: str) -> bool:
    """Whether there is a Lance dataset at the root of a storage: one listing.

    Parameters
    ----------
    storage : Storage
        Of an engine.
    uri : str
        The root as the user named it, for errors.
    """
    try:
        return parse_versions(storage.list_from(MANIFESTS).names, uri) is not None
    except CorruptTableError:  # manifests of two naming schemes: a dataset, which opening rejects
        return True


def open_with(engine: Engine, uri: str, **arguments: Any) -> LanceDataset:
    """Open a dataset with an engine; the other arguments are those of `LanceDataset.open`."""
    return LanceDataset.open(engine, uri, **arguments)


class _Reopening:
    """Opens a version of a dataset again, in another process; storage options that are secrets are not pickled.

    Parameters
    ----------
    context : TableContext
        How the dataset was opened.
    """

    def __init__(self, context: TableContext) -> None:
        self._context = context

    def __call__(self, version: int, branch: str | None) -> LanceDataset:
        engine, opening = self._context.log.engine, self._context.opening
        assert opening is not None
        return open_with(engine, opening.uri, version=version, branch=branch, opening=self)

    def __reduce__(self) -> tuple[Any, ...]:
        assert self._context.opening is not None
        return _reopening, (dict(self._context.opening.pickled(0).arguments),)


def _reopening(arguments: dict[str, Any]) -> _Reopening:
    return _Reopening(open_context(**arguments))


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
    context = open_context(uri, storage_options, engine, allow_external=allow_external, pickle_secrets=pickle_secrets)
    return open_with(
        context.log.engine,
        uri,
        version=version,
        timestamp=timestamp,
        tag=tag,
        branch=branch,
        opening=_Reopening(context),
    )
