"""Parts of a predicate that are tested on the encoded values of data files, before a column is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

# the expressions are loaded with the first predicate
from delta_core import api
from delta_plugins.lance.files import LeafTest, is_leaf, layout_to_test
from delta_plugins.lance.predicates import Predicate
from delta_plugins.lance.projection import pruned
from delta_plugins.lance.schema import LanceField

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import ColumnTest, Evaluator, Expression, Leaf, RowCondition

__all__ = ["EncodedTests", "plan_tests"]

#: Returns the positions, of some that rise or of a range, whose values of a field pass.
Passing = Callable[[LeafTest, Any], "NDArray[np.int64]"]


class _Joined(Struct, frozen=True):
    """Several tests: a row passes any of them, or all."""

    parts: tuple[LeafTest | _Joined, ...]
    is_any: bool


class EncodedTests(Struct, frozen=True):
    """The parts of a predicate that are tested on encoded values, and the others.

    Parameters
    ----------
    root : LeafTest or _Joined
        The tests.
    tested : tuple of Expression
        The parts of the predicate that they replace.
    rest : Predicate, optional
        The other parts, which AND joins; for rows that pass the tests.
    """

    root: LeafTest | _Joined
    tested: tuple[Expression, ...]
    rest: Predicate | None

    def leaves(self) -> Iterator[LeafTest]:
        """Yield the tests of columns."""
        left: list[LeafTest | _Joined] = [self.root]
        while left:
            node = left.pop()
            if isinstance(node, LeafTest):
                yield node
            else:
                left.extend(node.parts)

    def positions(self, rows: Any, passing: Passing) -> NDArray[np.int64]:
        """Return the positions of rows that pass; ``passing`` tests one column."""
        return _positions(self.root, rows, passing)


def _positions(node: LeafTest | _Joined, rows: Any, passing: Passing) -> NDArray[np.int64]:
    if isinstance(node, LeafTest):
        return passing(node, rows)
    if node.is_any:
        found = [_positions(part, rows, passing) for part in node.parts]
        return np.unique(np.concatenate(found))
    for part in node.parts:
        # a later column is read for rows that passed before
        rows = _positions(part, rows, passing)
        if not len(rows):
            break
    return np.asarray(rows, np.int64)


def plan_tests(predicate: Predicate, fields: Sequence[LanceField], evaluator: Evaluator) -> EncodedTests | None:
    """Return the parts of a predicate that can be tested on encoded values; None if there is none.

    Parameters
    ----------
    predicate : Predicate
        The condition.
    fields : sequence of LanceField
        The columns that it needs.
    evaluator : Evaluator
        Of the engine, for the other parts.

    Notes
    -----
    A predicate that may fail for a row is evaluated as a whole: whether it fails must not depend on the files.
    """
    if api.may_raise(predicate.expression, api.types_in(predicate.schema)):
        return None
    targets = {x: _Target(path, predicate.type_of(x)) for x in predicate.columns if (path := _path(fields, x.path))}
    # tests name their targets by number
    listed = list(targets.values())
    sources: dict[Leaf, Any] = {x: api.PhysicalSource(i) for i, x in enumerate(targets)}
    types: dict[Leaf, Any] = {x: target.type for x, target in targets.items()}
    tested, found, rest = [], [], []
    for part in api.conjuncts(predicate.expression):
        is_known = all(x in targets for x in api.leaves(part))
        test = api.part_test(part, sources, types) if is_known else None
        if test is None or _joined(api.joined_test([test]), fields, listed) is None:
            rest.append(part)
        else:
            tested.append(part)
            found.append(test)
    joined = api.joined_test(found) if found else None
    root = _joined(joined, fields, listed)
    if root is None:
        return None
    left = api.all_of(rest)
    return EncodedTests(root, tuple(tested), None if left is None else predicate.part(left, evaluator))


class _Target(NamedTuple):
    """A field that can be tested.

    Parameters
    ----------
    path : tuple of LanceField
        The field at the top of the schema, and the structs and the field within it.
    type : pyarrow.DataType
        Of the field.
    """

    path: tuple[LanceField, ...]
    type: Any


def _path(fields: Sequence[LanceField], names: Sequence[str]) -> tuple[LanceField, ...]:
    """Return the fields of a path; empty if one of them is not there, or lies in the column of another one."""
    found: list[LanceField] = []
    for name in names:
        if found and (found[-1].logical_type != "struct" or is_leaf(found[-1])):
            return ()
        field = next((f for f in fields if f.name == name), None)
        if field is None:
            return ()
        found.append(field)
        fields = field.children
    return tuple(found)


def _joined(
    test: ColumnTest | RowCondition | None, fields: Sequence[LanceField], targets: Sequence[_Target]
) -> LeafTest | _Joined | None:
    """Return a test as data files take it; None if a part of it can't be tested."""
    if test is None:
        return None
    if isinstance(test, api.RowCondition):
        parts = [_joined(part, fields, targets) for part in test.parts]
        known = tuple(part for part in parts if part is not None)
        return _Joined(known, test.is_any) if len(known) == len(parts) else None
    path, of = targets[test.column]
    layout = layout_to_test(path[-1])
    if layout is None:
        return None
    if layout.is_wide:
        # the tests of texts do not depend on the width of offsets
        of = pa.binary()
    compiled = api.compiled_test(_signed(test, layout.bits) if pa.types.is_unsigned_integer(of) else test, of)
    if compiled is None:
        return None
    width = 1 if layout.bits == 1 else layout.bits // 8
    if not compiled.fits_form(width, int(layout.bits == 1)):
        return None
    column = fields.index(path[0])
    return LeafTest(column, pruned(path), path[-1], layout.bits, layout.is_wide, compiled, api.passes_null(test))


def _signed(test: ColumnTest, bits: int) -> ColumnTest:
    """Return the test of numbers without a sign as one of the numbers with a sign that have the same bits."""
    if isinstance(test, api.JoinedTest):
        parts: Any = tuple(_signed(part, bits) for part in test.parts)
        return replace(test, parts=parts)
    if isinstance(test, api.ValueSet):
        keys = np.asarray(test.keys, np.int64)
        return api.ValueSet(test.column, np.unique(keys.astype(f"i{bits // 8}").astype(np.int64)))
    if not isinstance(test, api.ValueRange):
        return test
    above, least, most = 1 << (bits - 1), int(test.least), int(test.most)
    if most < above:
        return test
    if least >= above:
        return api.ValueRange(test.column, least - 2 * above, most - 2 * above)
    parts = (api.ValueRange(test.column, least, above - 1), api.ValueRange(test.column, -above, most - 2 * above))
    return api.JoinedTest(test.column, parts, is_any=True)
