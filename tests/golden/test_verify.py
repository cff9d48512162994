"""Verify over every recorded table: sound ones have no finding, the others are named with their faults."""

from __future__ import annotations

from typing import Any

import pytest

from delta_core import DeltaTable
from tests.corpus.records import path_of, records
from tests.golden.conftest import is_opened

pytestmark = pytest.mark.golden

#: The tables that break each rule. Their makers broke these on purpose, unless a remark explains it.
BROKEN: dict[str, tuple[str, ...]] = {
    "hint-unreadable": (
        "spark/last_checkpoint_stale",
        "spark/last_checkpoint_corrupt",
        "spark/last_checkpoint_empty",
        "golden/corrupted-last-checkpoint-kernel",
    ),
    "hint-wrong": (
        "spark/last_checkpoint_of_a_missing_file",
        "spark/multipart_checkpoint_incomplete",
        "spark/multipart_checkpoint_incomplete_after_another",
    ),
    "checksum-unreadable": (
        "spark/checksum_no_json",
        "spark/checksum_cut_off",
        "spark/checksum_with_text_behind",
        "trino/deltalake__checksum_invalid_json",
        "trino/deltalake__checksum_trailing_json_content",
    ),
    "checksum-differs": (
        "trino/deltalake__checksum_invalid_json_mapping",
        # its checksum is that of a table with files
        "kernel-rs/crc-full",
    ),
    "feature-missing": (
        # a writer that lists no invariants for NOT NULL columns
        "delta-examples/notebooks__delta-rs__delta-table",
        # generated and identity columns in protocols that do not have them
        "delta/spark__dbr_8_0_non_generated_columns",
        "delta/spark__identity_test_written_by_version_5",
    ),
    # times that were edited by hand
    "commit-time-wrong": ("delta-rs/cdc_ict_table",),
    # adds and removes a file in one commit
    "action-repeated": ("dremio/newPlanDataset",),
    # its compacted files have adds that their commits removed again
    "compacted-differs": ("kernel-rs/compacted-log-files-table",),
    # a checkpoint of another table
    "checkpoint-differs": ("kernel-rs/parquet_row_group_skipping",),
}
#: Tables whose data files are not all in the corpus.
INCOMPLETE = {"data-file-missing", "vector-missing"}


def rules_of(record: Any) -> set[str]:
    return DeltaTable(path_of(record)).verify().rules() - INCOMPLETE


def test_only_broken_tables_have_findings() -> None:
    cases = {r["id"]: r for r in records() if is_opened(r)}
    if not cases:
        pytest.skip("no corpus")
    found = {(name, rule) for name, record in cases.items() for rule in rules_of(record)}
    assert found == {(name, rule) for rule, names in BROKEN.items() for name in names if name in cases}
