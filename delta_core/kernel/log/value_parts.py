"""Loaded on first use (`runtime.lazy`): partition values, decimal bounds, statistics as text, tests of row groups."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.log.decimal_bounds import widen_bounds as widen_bounds
    from delta_core.kernel.log.group_tests import plan_group_test as plan_group_test
    from delta_core.kernel.log.partition_values import (
        parse_dictionary as parse_dictionary,
        parse_partition_values as parse_partition_values,
        time_zone as time_zone,
    )
    from delta_core.kernel.log.stats_text import statistics_text as statistics_text
