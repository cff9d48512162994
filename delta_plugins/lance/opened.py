"""Datasets that are opened again, in this process or in another one."""

from __future__ import annotations

from typing import Any

from delta_core.api import Engine, Opening, make_engine
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.names import MANIFESTS

__all__ = ["Reopening", "engine_of", "reopening_of"]


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
        """Open a version."""
        engine = engine_of(self._opening)
        return LanceDataset.open(engine, self._opening.uri, version=version, branch=branch, opening=self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopening, (dict(self._opening.pickled(0).arguments),)


def _reopening(arguments: dict[str, Any]) -> Reopening:
    return Reopening(Opening(**arguments))


def engine_of(opening: Opening) -> Engine:
    """Return the engine of a dataset's place."""
    if isinstance(opening.engine, Engine):
        return opening.engine
    return make_engine(opening.engine, opening.uri, opening.storage_options, opening.allow_external)


def reopening_of(engine: Engine, uri: str) -> Reopening | None:
    """Return what opens a dataset again; None on a store, whose options are not known here."""
    return Reopening(Opening(uri)) if engine.storage.local_path(MANIFESTS) is not None else None
