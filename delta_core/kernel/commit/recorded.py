"""How the history names changes of an engine's statements, which the core runs as operations of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from msgspec import Struct

__all__ = ["Recorded", "recorded", "recording"]


class Recorded(Struct, frozen=True):
    """The name and parameters that ``commitInfo`` contains instead of those of an operation of the core.

    Parameters
    ----------
    operation : str
        The name of the operation.
    parameters : Mapping
        Parameters beside those of the core's operation, whose values they replace.
    without : tuple of str
        The core's parameters that are left out.
    """

    operation: str
    parameters: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()


_names: ContextVar[Mapping[str, Recorded]] = ContextVar("recorded", default=MappingProxyType({}))


@contextmanager
def recording(names: Mapping[str, Recorded]) -> Iterator[None]:
    """Have commits of this thread record other names for operations of the core, until the block ends.

    Parameters
    ----------
    names : Mapping of str to Recorded
        By the core's name of the operation: upkeep that follows a commit keeps its own.
    """
    token = _names.set({**_names.get(), **names})
    try:
        yield
    finally:
        _names.reset(token)


def recorded(operation: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what ``commitInfo`` contains as the name and the parameters of an operation of the core."""
    found = _names.get().get(operation)
    if found is None:
        return operation, dict(parameters)
    kept = {name: value for name, value in parameters.items() if name not in found.without}
    return found.operation, {**kept, **found.parameters}
