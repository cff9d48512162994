"""Which rows the indices of a version leave for a predicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from delta_core import api
from delta_core.api import DataFileError, UnsupportedFeatureError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.index.conditions import Condition
from delta_plugins.lance.index.exact import bitmap_rows, btree_rows, label_rows
from delta_plugins.lance.index.listing import OF_ROWS, Index, listed_indices
from delta_plugins.lance.index.zones import bloom_filter_rows, zone_map_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.api import Column, Expression
    from delta_plugins.lance.predicates import Predicate
    from delta_plugins.lance.version_files import VersionFiles

__all__ = ["IndexPlan", "plan_indices"]

_LOOKUPS: Mapping[str, Callable[[VersionFiles, Index, Condition], Any]] = {
    "BTree": btree_rows,
    "Bitmap": bitmap_rows,
    "LabelList": label_rows,
    "ZoneMap": zone_map_rows,
    "BloomFilter": bloom_filter_rows,
}
_LOW = (1 << 32) - 1


class _Rows(Struct, frozen=True):
    """Rows for which a condition may be true.

    Parameters
    ----------
    rows : RowSet
        The index of the fragment times 2**32, plus the position. No row of a fragment that is not covered.
    covered : bool[n_fragments]
        The fragments whose rows are known; all rows of the others may pass.
    exact : bool[n_fragments]
        Those of them in which the condition is true for each of the rows.
    """

    rows: RowSet
    covered: NDArray[np.bool_]
    exact: NDArray[np.bool_]

    def within(self, chosen: NDArray[np.bool_]) -> RowSet:
        """Return the rows of some fragments."""
        if not (self.covered & ~chosen).any():
            return self.rows
        positions = self.rows.positions()
        return RowSet.from_positions(positions[chosen[positions >> 32]])

    def and_also(self, other: _Rows) -> _Rows:
        """Return the rows for which both conditions may be true."""
        rows = (self.rows & other.rows) | self.within(~other.covered) | other.within(~self.covered)
        return _Rows(rows, self.covered | other.covered, self.exact & other.exact)

    def or_else(self, other: _Rows) -> _Rows:
        """Return the rows for which one of the conditions may be true."""
        both = self.covered & other.covered
        return _Rows(self.within(both) | other.within(both), both, self.exact & other.exact)

    def as_superset(self) -> _Rows:
        """Return the same rows; some of them may not pass."""
        return _Rows(self.rows, self.covered, np.zeros_like(self.exact))


class IndexPlan:
    """The rows that indices leave for a predicate.

    Attributes
    ----------
    notes : tuple of (str, str)
        Each index, with whether it is used and why.
    """

    def __init__(self, found: _Rows | None, notes: Mapping[str, str]) -> None:
        self._found = found
        self._positions = None if found is None else found.rows.positions()
        self.notes = tuple(notes.items())

    def left(self, fragments: Sequence[int]) -> list[int]:
        """Return those of some fragments, given by index, that may have a row that passes."""
        if self._found is None or self._positions is None:
            return list(fragments)
        may_pass = ~self._found.covered
        may_pass[self._positions >> 32] = True
        chosen = np.asarray(fragments, np.int64)
        found: list[int] = chosen[may_pass[chosen]].tolist()
        return found

    def positions(self, fragment: int) -> NDArray[np.int64] | None:
        """Return the positions of the rows of a fragment that may pass, deleted ones too; None: all rows."""
        if self._found is None or self._positions is None or not self._found.covered[fragment]:
            return None
        first, last = np.searchsorted(self._positions, [fragment << 32, (fragment + 1) << 32])
        return self._positions[first:last] & _LOW

    def is_exact(self, fragment: int) -> bool:
        """Whether all of these rows pass."""
        return self._found is not None and bool(self._found.exact[fragment])


def plan_indices(dataset: VersionFiles, predicate: Predicate) -> IndexPlan:
    """Look a predicate up in the indices of a version.

    Raises
    ------
    DataFileError, DataFileNotFoundError
        If a file of an index is damaged or missing.
    CorruptTableError
        If the list of indices is damaged.
    """
    if dataset.manifest.message["index_section"] is None:
        return IndexPlan(None, {})
    lookup = _Lookup(dataset, predicate)
    if not any(i.reason is None for i in lookup.indices):
        return IndexPlan(None, lookup.notes)
    if api.may_raise(predicate.expression, api.types_in(predicate.schema)):
        # whether it fails must not depend on the indices
        lookup.note_all("the predicate may fail for a row")
        return IndexPlan(None, lookup.notes)
    return IndexPlan(lookup.find(predicate.expression, False), lookup.notes)


class _Lookup:
    """Looks conditions up; a condition and its opposite are looked up apart, as both are not true for some nulls."""

    def __init__(self, dataset: VersionFiles, predicate: Predicate) -> None:
        self._dataset = dataset
        self._predicate = predicate
        self.indices = listed_indices(dataset)
        self.notes: dict[str, str] = {}
        for i in self.indices:
            self._note(i, i.reason or "the predicate has no condition on its column", False)

    def note_all(self, reason: str) -> None:
        """Record why indices that can be used are not."""
        for i in self.indices:
            if i.reason is None:
                self._note(i, reason, False)

    def find(self, e: Expression, is_negated: bool) -> _Rows | None:
        """Return the rows for which a condition may be true, or false if it is negated; None if nothing is known."""
        if isinstance(e, api.Call) and e.function == "not":
            return self.find(e.args[0], not is_negated)
        columns = [*dict.fromkeys(api.leaves(e))]
        if len(columns) == 1 and isinstance(columns[0], api.Column):
            found = self._of_column(api.Call("not", (e,)) if is_negated else e, columns[0])
            if found is not None:
                return found
        if not isinstance(e, api.Call) or e.function not in ("and", "or"):
            return None
        if (e.function == "and") == is_negated:
            return self._of_any(e.args, is_negated)
        known = [found for a in e.args if (found := self.find(a, is_negated)) is not None]
        if not known:
            return None
        joined = reduce(_Rows.and_also, known)
        return joined if len(known) == len(e.args) else joined.as_superset()

    def _of_any(self, parts: Sequence[Expression], is_negated: bool) -> _Rows | None:
        """Return the rows for which one of several conditions may be true, or false; None if one is not known."""
        before, known = dict(self.notes), []
        for part in parts:
            found = self.find(part, is_negated)
            if found is None:
                # what was found for the others is of no use
                self.notes |= before
                return None
            known.append(found)
        return reduce(_Rows.or_else, known)

    def _of_column(self, e: Expression, column: Column) -> _Rows | None:
        """Return the rows for which a condition on one column may be true, from all indices of the column."""
        dataset = self._dataset
        found: _Rows | None = None
        for index in self.indices:
            if index.reason is not None or index.column != column.path:
                continue
            new = index.fragments if found is None else index.fragments & ~found.covered
            if not new.any():
                continue
            condition = Condition(
                e, column, self._predicate.type_of(column), self._predicate.schema, dataset.engine.evaluator
            )
            try:
                ids = _LOOKUPS[index.kind](dataset, index, condition)
            except UnsupportedFeatureError:
                ids = "its files have a version that is not read"
            if isinstance(ids, str):
                self._note(index, ids, False)
                continue
            rows = RowSet.from_positions(self._places(index, ids, new))
            exact = new if index.kind in OF_ROWS else np.zeros_like(new)
            self._note(index, f"for {int(new.sum())} of {len(new)} fragments: {len(rows)} rows", True)
            some = _Rows(rows, new, exact)
            found = some if found is None else _Rows(found.rows | rows, found.covered | new, found.exact | exact)
        return found

    def _places(self, index: Index, ids: NDArray[np.uint64], covered: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the fragments, times 2**32, and positions of rows of covered fragments."""
        dataset = self._dataset
        if index.has_addresses or index.kind not in OF_ROWS:
            fragment = dataset.manifest.fragments.find((ids >> np.uint64(32)).astype(np.int64))
            position = (ids & np.uint64(_LOW)).astype(np.int64)
        else:
            matches = dataset.numbers_of("row_ids").find(ids)
            fragment, position = matches.fragment, matches.position
        is_chosen = (fragment >= 0) & covered[fragment]
        fragment, position = fragment[is_chosen], position[is_chosen]
        rows = dataset.rows_of(fragment)
        for i in np.flatnonzero(position >= rows)[:1].tolist():
            raise DataFileError(
                f"Index {index.name!r} is damaged: it lists row {position[i]} of fragment "
                f"{dataset.manifest.fragments.id[fragment[i]]}, which has {rows[i]} rows. Create the index again, or "
                "scan with use_indices=False.",
                path=index.folder,
            )
        return (fragment << 32) | position

    def _note(self, index: Index, text: str, is_used: bool) -> None:
        key = f"index {index.name!r}"
        before = self.notes.get(key, "")
        if before.startswith("used"):
            text = f"{before}; {text}" if is_used and text not in before else before
        else:
            text = f"used {text}" if is_used else f"not used: {text}"
        self.notes[key] = text
