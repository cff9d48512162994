"""How a table was opened, so that a pickle of it can be opened again elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from delta_core.errors import EngineError, UnsupportedOperationError
from delta_core.handles.secrets import secret_names, shown_uri, without_secrets

__all__ = ["Opening", "Pickled"]

#: Arguments that are objects of the caller's.
_OBJECTS = ("engine", "commits", "plugins", "committer")


class Pickled(Struct, frozen=True):
    """The arguments that a pickle of a table, snapshot or scan holds.

    Parameters
    ----------
    arguments : Mapping
        Those of `open_snapshot`, but for the version.
    left_out : tuple of str
        Storage options that were secrets.
    """

    arguments: Mapping[str, Any]
    version: int
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Pickled({shown_uri(self.arguments.get('uri', ''))!r}, version={self.version})"

    def explained(self, error: EngineError) -> EngineError:
        """Return a store's error, with the options that the pickle lacks, if any."""
        if not self.left_out:
            return error
        return EngineError(
            f"{error.message} The storage options {', '.join(self.left_out)} were left out when the table was pickled: "
            "set them in the environment of this process, or open the table with pickle_secrets=True before it is "
            "pickled.",
            **error.facts,
        )


class Opening(Struct, frozen=True):
    """The arguments that a table was opened with, as of `open_snapshot`.

    Parameters
    ----------
    uri, storage_options, engine, commits, plugins, timezone, committer, allow_external, pickle_secrets, cache
        The arguments of `open_snapshot`.
    """

    uri: str
    storage_options: Mapping[str, Any] | None = None
    engine: Any = "arrow"
    commits: Any = None
    plugins: Any = None
    timezone: str = "UTC"
    committer: Any = None
    allow_external: Any = None
    pickle_secrets: bool = False
    cache: Any = None

    def __repr__(self) -> str:
        return f"Opening({shown_uri(self.uri)!r}, storage_options={without_secrets(self.storage_options or {})!r})"

    def pickled(self, version: int) -> Pickled:
        """Return what goes into a pickle of a version.

        Parameters
        ----------
        version : int
            The version.

        Raises
        ------
        UnsupportedOperationError
            If an object that the table was opened with can't be pickled.
        """
        arguments = asdict(self)
        for name in _OBJECTS:
            _check(name, arguments[name])
        if ":" not in self.uri.partition("/")[0]:
            # a path, and another process may run in another folder
            from pathlib import Path  # takes as long as 20 modules of ours, which a first read would wait for

            try:
                arguments["uri"] = str(Path(self.uri).expanduser().absolute())
            except FileNotFoundError as e:
                raise UnsupportedOperationError(
                    f"The table was opened by the relative path {self.uri!r}, and the working directory is not there "
                    "any more: it can't be pickled. Open it by an absolute path.",
                    path=self.uri,
                ) from e
        options = self.storage_options or {}
        if self.pickle_secrets or not options:
            return Pickled(arguments, version)
        return Pickled(
            {**arguments, "storage_options": without_secrets(options)}, version, tuple(secret_names(options))
        )


def _check(name: str, value: Any) -> None:
    if value is None or isinstance(value, str):
        return
    try:
        pickle.dumps(value)
    except Exception as e:
        raise UnsupportedOperationError(
            f"A table that was opened with {name}={type(value).__name__}() can't be pickled, since that object can't: "
            f"{e}. Pickle its URI and version, and open it again.",
            argument=name,
        ) from e
