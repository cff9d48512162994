"""Loaded on first use (`runtime.lazy`): what few commits need: checkpoints, cleanup, symlink manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.commit.cleanup import clean_after_checkpoint
    from delta_core.kernel.commit.manifests import check_manifests, keep_manifests
    from delta_core.kernel.log.checkpoint_writer import write_checkpoint

__all__ = ["check_manifests", "clean_after_checkpoint", "keep_manifests", "write_checkpoint"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernel.commit.cleanup": "clean_after_checkpoint",
        "delta_core.kernel.commit.manifests": "check_manifests keep_manifests",
        "delta_core.kernel.log.checkpoint_writer": "write_checkpoint",
    },
)
