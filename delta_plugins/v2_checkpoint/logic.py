"""Which sidecars a checkpoint names."""

from collections.abc import Iterable
from urllib.parse import unquote

from delta_core.api import CorruptTableError

__all__ = ["sidecar_names"]


def sidecar_names(checkpoint: str, paths: Iterable[str | None]) -> list[str]:
    """Return the bare names, under ``_delta_log/_sidecars``, of the files that ``sidecar`` actions name.

    Sidecars stand nowhere else, so that of a longer path only the name counts. Raises CorruptTableError for a
    path without a name.
    """
    names = [unquote(path or "").rpartition("/")[2] for path in paths]
    if not all(names) or ".." in names:
        raise CorruptTableError(f"Checkpoint {checkpoint} names a sidecar without a file name.", path=checkpoint)
    return names
