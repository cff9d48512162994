"""Loaded on first use (`runtime.lazy`): partition values, statistics as text, tests of a checkpoint's row groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.log.group_tests import plan_group_test
    from delta_core.kernel.log.partition_values import parse_dictionary, parse_partition_values, time_zone
    from delta_core.kernel.log.stats_text import statistics_text

__all__ = ["parse_dictionary", "parse_partition_values", "plan_group_test", "statistics_text", "time_zone"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernel.log.group_tests": "plan_group_test",
        "delta_core.kernel.log.partition_values": "parse_dictionary parse_partition_values time_zone",
        "delta_core.kernel.log.stats_text": "statistics_text",
    },
)
