"""The report of a dataset: manifests and deletion files are read, pages of data files are not."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from msgspec.structs import replace

from delta_core.api import (
    Compaction,
    CorruptTableError,
    DeltaError,
    InvalidArgumentError,
    TableReport,
    UnsupportedFeatureError,
    VersionSize,
    histogram,
    table_checks,
)
from delta_core.kernels.arrow_buffers import int64_values
from delta_plugins.lance.compacting import CompactOptions, plan_compaction

__all__ = ["report_of"]

#: Versions that a report shows at most; the manifest of each is read.
MOST_VERSIONS = 50


def report_of(dataset: Any, *, store: bool = True) -> TableReport:
    """Return the report of a version.

    Parameters
    ----------
    dataset : LanceDataset
        The version.
    store : bool
        Whether the store is listed, for files that are in no version.
    """
    start = perf_counter()
    stats, fragments = dataset.stats(), dataset.manifest.fragments
    sizes = fragments.file_size[fragments.file_size > 0]
    facts = {k: _text(v) for k, v in dataset.describe().items() if k not in ("Rows", "Files", "Size", "Deleted rows")}
    report = TableReport(
        uri=dataset.uri,
        format="Lance",
        version=dataset.version,
        timestamp=dataset.manifest.timestamp_us // 1000 or None,
        facts=facts,
        files=stats.num_data_files,
        size_bytes=int(sizes.sum()),
        rows=stats.num_rows,
        deleted_rows=stats.num_deleted_rows,
        sizes=histogram(sizes),
        compaction=_compaction(dataset),
        versions=_versions(dataset),
        unused=_unused(dataset) if store else None,
        findings=tuple(dataset.verify().findings.to_pylist()),
    )
    return replace(report, checks=table_checks(report), seconds=perf_counter() - start)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} = {v}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _compaction(dataset: Any) -> Compaction | None:
    try:
        groups = plan_compaction(dataset, CompactOptions())
    except UnsupportedFeatureError:
        return None  # the dataset has something that is not written
    size = sum(int(int64_values(g.files.column("size")).sum()) for g in groups)
    return Compaction(sum(g.files.num_rows for g in groups), size, sum(g.num_bins for g in groups))


def _versions(dataset: Any) -> tuple[VersionSize, ...]:
    found = []
    for made in reversed(dataset.history(MOST_VERSIONS)):
        version = made["version"]
        try:
            fragments = dataset.checkout(version).manifest.fragments
            sizes = fragments.file_size
            size = int(sizes.sum()) if (sizes > 0).all() else None
            found.append(VersionSize(version, made["timestamp"], made["operation"], fragments.num_files, size))
        except DeltaError:
            # a damaged version, or one that a cleanup removed meanwhile
            found.append(VersionSize(version, made["timestamp"], made["operation"], None, None))
    return tuple(found)


def _unused(dataset: Any) -> tuple[int, int] | None:
    try:
        found = dataset.cleanup(dry_run=True)
    except (CorruptTableError, InvalidArgumentError, UnsupportedFeatureError):
        return None  # a cleanup rejects what is not certain, and a branch that was opened by its folder
    return found["num_files"], found["num_bytes"]
