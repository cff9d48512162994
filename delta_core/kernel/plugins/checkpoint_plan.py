"""How checkpoints of a table are written."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from delta_core.errors import InvalidArgumentError

__all__ = ["SIDECAR_ACTIONS", "CheckpointPlan"]

#: How many file actions a sidecar is given.
SIDECAR_ACTIONS = 65_536


class CheckpointPlan(Struct, frozen=True):
    """The answer of the hook ``plan_checkpoint``. Without an answer: V1 in one classic-named Parquet file.

    Parameters
    ----------
    spec : "v1" or "v2"
    naming : "classic" or "uuid"
        How the checkpoint's own file is named.
    format : "parquet" or "json"
        Of the checkpoint's own file; JSON only under a unique name.
    sidecar_actions : int
        V2: about how many file actions a sidecar holds; 0 keeps them in the checkpoint's own file.

    Raises
    ------
    InvalidArgumentError
        For combinations that the protocol forbids.

    Protocol
    --------
    Checkpoint Naming Scheme
    """

    spec: Literal["v1", "v2"] = "v1"
    naming: Literal["classic", "uuid"] = "classic"
    format: Literal["parquet", "json"] = "parquet"
    sidecar_actions: int = 0

    def __post_init__(self) -> None:
        known = self.spec in ("v1", "v2") and self.naming in ("classic", "uuid") and self.format in ("parquet", "json")
        if not known:
            raise InvalidArgumentError(f"There is no {self}: see CheckpointPlan for the values.")
        if self.spec == "v1" and (self.naming, self.format, self.sidecar_actions) != ("classic", "parquet", 0):
            raise InvalidArgumentError("A V1 checkpoint is one Parquet file under the classic name, without sidecars.")
        if self.naming == "classic" and self.format != "parquet":
            raise InvalidArgumentError("A checkpoint under the classic name is a Parquet file.")
        if self.sidecar_actions < 0:
            raise InvalidArgumentError(
                f"Found sidecar_actions={self.sidecar_actions}, expected a whole number from 0 on."
            )
