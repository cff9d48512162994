"""The case of the shared cache runs, and answers with a share."""

from __future__ import annotations

from pathlib import Path

from benchmarks.shared_cache import cached_over_plain
from delta_core.testing.table_builder import TableBuilder


def test_listing_from_the_cache_is_a_share_of_listing_from_the_log(tmp_path: Path) -> None:
    for name in ("table", "small"):
        TableBuilder(tmp_path / name).create({"id": "long"}).append([{"id": 1}])
    # tiny tables, beside other processes: a limit would fail by chance
    assert cached_over_plain(tmp_path / "table", tmp_path / "small", 1) > 0
