"""Loaded on first use (`runtime.lazy`): what few commits need, such as checkpoints, cleanup and symlink manifests."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.commit.cleanup import clean_after_checkpoint as clean_after_checkpoint
    from delta_core.kernel.commit.manifests import check_manifests as check_manifests, keep_manifests as keep_manifests
    from delta_core.kernel.log.checkpoint_writer import write_checkpoint as write_checkpoint
    from delta_core.kernel.plugins.encodings import check_encodings as check_encodings
    from delta_core.kernel.scan.plan import plan_table_skipping as plan_table_skipping
