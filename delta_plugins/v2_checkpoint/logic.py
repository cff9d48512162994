"""Which sidecars a checkpoint names, and how the next one is written."""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from delta_core.api import SIDECAR_ACTIONS, CheckpointPlan, CorruptTableError, read_property

__all__ = ["plan_checkpoint", "sidecar_names"]

#: If sidecars are, in the log's directory.
DIRECTORY = "_sidecars"
#: One of this many checkpoints has the classic name.
CLASSIC_EVERY = 10


def plan_checkpoint(version: int, configuration: Mapping[str, str]) -> CheckpointPlan:
    """Return how the checkpoint of a version is written: a unique name, JSON, file actions in sidecars.

    Every tenth one by the table's interval (versions 100, 200 ... for the usual 10) gets the classic name: clients that
    do not support the feature find the protocol in it and fail as they should.
    """
    interval = read_property(configuration, "delta.checkpointInterval")
    if version > 0 and version % (interval * CLASSIC_EVERY) == 0:
        return CheckpointPlan("v2", "classic", "parquet", SIDECAR_ACTIONS)
    return CheckpointPlan("v2", "uuid", "json", SIDECAR_ACTIONS)


def sidecar_names(checkpoint: str, paths: Iterable[str | None]) -> list[str]:
    """Return the plain names, under ``_delta_log/_sidecars``, of the files that ``sidecar`` actions name.

    Sidecars are nowhere else, so that of a URI or longer path only the name counts, and it must lead into a directory
    ``_sidecars``.

    Raises
    ------
    CorruptTableError
        For a path that leads elsewhere, or has no name.
    """
    return [_sidecar_name(checkpoint, path) for path in paths]


def _sidecar_name(checkpoint: str, path: str | None) -> str:
    *directories, name = unquote(path or "").split("/")
    if not name:
        raise CorruptTableError(
            f"Checkpoint {checkpoint} names a sidecar without a file name: {path!r}.", path=checkpoint
        )
    if {".", ".."} & {*directories, name} or directories and directories[-1] != DIRECTORY:
        raise CorruptTableError(
            f"Checkpoint {checkpoint} names a sidecar that leads elsewhere: {path!r}; expected the name of a file in "
            f"_delta_log/{DIRECTORY}, or a path that ends in {DIRECTORY}/<name>.",
            path=checkpoint,
        )
    return name
