"""From a filter of Spark's plan to the files that may hold a row for which it is true."""

from __future__ import annotations

import json

from delta_core.engines.spark.plan.filter_texts import read_filter
from delta_core.engines.spark.plan.names import constant_name
from delta_core.errors import DeltaError
from delta_core.expressions.ast import Column, Expression, all_of
from delta_core.expressions.binding import bind
from delta_core.expressions.skipping import SkippingPlan
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.plugins.encodings import encoded_names
from delta_core.kernel.scan.plan import plan_table_skipping
from delta_core.kernel.scan.scan import Scan
from delta_core.schema.fields import Path
from delta_core.schema.types import StructType

__all__ = ["SparkFilePruner", "FilterReader"]


class FilterReader:
    """From a filter over the raw columns, as the file index writes it, to what it requires of files.

    Parameters
    ----------
    shown, logical : StructType
        The columns as plans name them (the fields within them by the names of the table), and in parallel as users
        do; columns beyond those of ``logical`` are no columns of the table.
    """

    def __init__(self, scan: Scan, shown: StructType, logical: StructType) -> None:
        self._scan = scan
        self._shown = {a.name: (a.type, b.name) for a, b in zip(shown.members, logical.members, strict=False)}
        self._encoded = encoded_names(scan.source.state)
        self._constants = {constant_name(i): leaf for i, leaf in enumerate(scan.plan.constants)}

    def plan(self, text: str) -> SkippingPlan:
        """Return the tests of files."""
        parts = [p for node in json.loads(text) if (p := read_filter(node, self._column)) is not None]
        state = self._scan.source.state
        try:
            bound = [bind(p, state.schema, {}) for p in parts]
        except DeltaError:  # of a type that has no order here: the rows are still filtered
            return SkippingPlan(None, None)
        return plan_table_skipping(state, all_of(bound))

    def _column(self, names: list[str]) -> Expression | None:
        if names[0] in self._constants:
            return self._constants[names[0]]
        # the values of an encoded column are not those that Spark compares below its decoding
        if names[0] not in self._shown or names[0] in self._encoded:
            return None
        kind, first = self._shown[names[0]]
        for name in names[1:]:
            if not isinstance(kind, StructType) or name not in kind.names:
                return None
            kind = kind.members[kind.names.index(name)].type
        path: Path = (first, *names[1:])
        return Column(path)


class SparkFilePruner:
    """Chooses files of a set for a filter over the raw columns."""

    def __init__(self, scan: Scan, files: FileSet, filters: FilterReader) -> None:
        self._source = scan.source
        self._files = files
        self._filters = filters

    def __call__(self, text: str) -> FileSet | None:
        """Return the files that may hold such a row; None if the filter contains nothing of files."""
        if text == "[]":
            return self._files
        if self._files.keep is not None:
            return None
        plan = self._filters.plan(text)
        if plan.partition is None and plan.statistics is None:
            return None
        evaluator, zone = self._source.engine.evaluator, self._source.timezone
        left = self._files.where(plan.partition, evaluator, zone, exact=True)
        return left.where(plan.statistics, evaluator, zone)
