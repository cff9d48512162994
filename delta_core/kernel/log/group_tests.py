"""From a test of files to a test of checkpoint row groups: what the footer specifies may rule out a whole group.

A group is ruled out only if its footer proves the test false for each of its rows: no value that the test looks at
is null there, no count is below 0 (which means that it is unknown), and the least and greatest values decide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.expressions.ast import (
    Call,
    Column,
    Expression,
    FileStatistic,
    Leaf,
    Literal,
    PartitionValue,
    Values,
    all_parts,
    leaves,
    transform,
)
from delta_core.expressions.skipping import plan_skipping
from delta_core.kernel.log.decimal_bounds import is_rounded
from delta_core.kernel.log.file_columns import statistic_path
from delta_core.schema.fields import ColumnMap, Path
from delta_core.schema.types import Field, PrimitiveType, StructType

if TYPE_CHECKING:
    from delta_core.engines.interface import CheckpointHandle, Compiled, Evaluator

__all__ = ["GroupTest", "plan_group_test"]

_LONG = PrimitiveType("long")
#: Functions whose result is null only if an argument is.
_STRICT = frozenset({"and", "or", "not", "in", "=", "!=", "<", "<=", ">", ">="})


class GroupTest:
    """A test of the row groups of checkpoint files.

    Parameters
    ----------
    compiled : Compiled
        Over FileStatistic leaves whose paths are fields of the checkpoint; false rules a group out.
    paths : sequence of Path
        The fields that must not be null.
    counts : sequence of Path
        Those of them that count rows.
    """

    def __init__(self, compiled: Compiled, paths: Sequence[Path], counts: Sequence[Path] = ()) -> None:
        self._compiled = compiled
        self._counts = [FileStatistic("min", path, _LONG) for path in counts]
        self._nulls = [FileStatistic("nullCount", path, _LONG) for path in paths]
        self._results: dict[int, tuple[CheckpointHandle, list[bool]]] = {}

    def keeps(self, handle: CheckpointHandle, group: int) -> bool:
        """Whether a group may hold a file that passes. Each file's footer is queried once.

        Parameters
        ----------
        handle : CheckpointHandle
            The file of the checkpoint.
        group : int
            The number of the row group.
        """
        found = self._results.get(id(handle))
        if found is None:
            found = self._results[id(handle)] = (handle, self._test_groups(handle))
        return found[1][group]

    def _test_groups(self, handle: CheckpointHandle) -> list[bool]:
        requested: list[Any] = [*self._compiled.leaves, *self._nulls, *self._counts]
        bounds = handle.group_bounds(requested)
        tested = len(self._compiled.leaves)
        passed = self._compiled(bounds[:tested], len(handle.group_rows)).to_pylist()
        known = [column.to_pylist() for column in bounds[tested:]]
        nulls, least = known[: len(self._nulls)], known[len(self._nulls) :]
        return [
            p is not False or any(n[g] != 0 for n in nulls) or any(low[g] is None or low[g] < 0 for low in least)
            for g, p in enumerate(passed)
        ]


def plan_group_test(expression: Expression, evaluator: Evaluator, exact: bool) -> GroupTest | None:
    """Plan the test of groups that a test of files allows; None if it allows none.

    Parameters
    ----------
    expression : Expression
        Over PartitionValue and FileStatistic leaves.
    evaluator : Evaluator
        The engine's, which compiles the test.
    exact : bool
        Whether files are dropped for which it is null.
    """
    found = leaves(expression)
    paths = [_field(leaf) for leaf in found]
    if not found or None in paths or not (exact or _is_strict(expression)):
        return None
    known: list[Path] = [p for p in paths if p is not None]
    # types: leaves of files have one each
    schema = StructType(Field(str(i), leaf.type) for i, leaf in enumerate(found))  # type: ignore[union-attr]
    columns = {leaf: Column((str(i),)) for i, leaf in enumerate(found)}
    over_rows = transform(expression, lambda leaf: columns[leaf])
    test = plan_skipping(over_rows, schema, ColumnMap.identity(schema), ()).statistics
    if test is None:
        return None
    test = transform(test, lambda leaf: _of_group(leaf, known))
    types: dict[Leaf, pa.DataType] = {leaf: leaf.type.to_arrow() for leaf in leaves(test)}  # type: ignore[union-attr]
    counts = [
        p for p, leaf in zip(known, found, strict=True) if getattr(leaf, "kind", "") in ("nullCount", "numRecords")
    ]
    return GroupTest(evaluator.compile(test, types), known, counts)


def _field(leaf: Leaf) -> Path | None:
    """Return the checkpoint's field for a leaf."""
    if isinstance(leaf, FileStatistic):
        if leaf.kind in ("min", "max") and is_rounded(leaf.type.to_arrow()):
            return None
        return ("add", "stats_parsed", *statistic_path(leaf))
    if isinstance(leaf, PartitionValue) and leaf.type != PrimitiveType("timestamp"):
        return ("add", "partitionValues_parsed", leaf.name)
    # the text of a timestamp may name no zone: its parser may have meant another one
    return None


def _is_strict(e: Expression) -> bool:
    return all(map(_keeps_strict, all_parts(e)))


def _keeps_strict(e: Expression) -> bool:
    if isinstance(e, Call):
        return e.function in _STRICT
    if isinstance(e, Values):
        return not e.has_null
    return isinstance(e, (FileStatistic, PartitionValue)) or (isinstance(e, Literal) and e.value is not None)


def _of_group(leaf: Leaf, paths: Sequence[Path]) -> Expression:
    assert isinstance(leaf, FileStatistic)
    return FileStatistic(leaf.kind, paths[int(leaf.path[0])] if leaf.path else (), leaf.type)
