"""The part of `FeatureContract` about columns that files store in another form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.expressions.ast import Expression, leaves
from delta_core.kernel.plugins.rules import ColumnEncoding
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.layout import arrow_type
from delta_core.testing.contract_base import ContractBase
from delta_core.testing.feature_tables import MadeTable

__all__ = ["EncodingContract"]

_HOOK = "column_encodings"


class EncodingContract(ContractBase):
    """Tests that encoded values are decoded to the same values, once, and that files and log do not show them."""

    def test_encoded_values_are_decoded_to_the_same(self, tmp_path: Path) -> None:
        for made in self._encoded_tables(tmp_path):
            snapshot = made.snapshot
            for name, rule in self._own(snapshot):
                found = made.read(columns=[name]).column(0).combine_chunks()
                values = pa.concat_arrays([found, pa.nulls(1, found.type), found.slice(0, 1)])
                stored = self._evaluate(snapshot, rule, "encode", values)
                self._check_nulls(name, "encode", values, stored)
                again = self._evaluate(snapshot, rule, "decode", stored)
                self._check_nulls(name, "decode", stored, again)
                if not again.equals(values):
                    self.fault(
                        _HOOK,
                        f"column {name!r} is decoded to other values than were encoded: {again.to_pylist()}, expected "
                        f"{values.to_pylist()}",
                    )

    def test_columns_are_encoded_once_and_have_no_bounds(self, tmp_path: Path) -> None:
        for made in self._encoded_tables(tmp_path):
            for is_moved in (False, True):
                if is_moved:
                    with self.step("replacing some rows, which moves the others"):
                        made.move()
                snapshot = made.snapshot
                for name, rule in self._own(snapshot):
                    self._check_files(made, snapshot, name, rule)
                    self._check_log(snapshot, rule)

    def _encoded_tables(self, folder: Path) -> Iterator[MadeTable]:
        """Yield the tables of `tables` whose columns the feature encodes."""
        for made in self.made_tables(folder):
            if any(self._own(made.snapshot)):
                yield made

    def _own(self, snapshot: Snapshot) -> Iterator[tuple[str, ColumnEncoding]]:
        return ((n, r) for n, r in snapshot.state.encodings.items() if r.feature == self.name)

    def _evaluate(self, snapshot: Snapshot, rule: ColumnEncoding, part: str, values: pa.Array) -> Any:
        expression: Expression = getattr(rule, part)
        (leaf,) = leaves(expression)
        with self.step(f"evaluating ColumnEncoding.{part} of column {rule.column[0]!r} (hook {_HOOK})"):
            compiled = snapshot.engine.evaluator.compile(expression, {leaf: values.type}, snapshot.plugins.functions)
            found = compiled([values], len(values))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def _check_nulls(self, name: str, part: str, before: pa.Array, after: pa.Array) -> None:
        for i in range(len(before)):
            if before[i].is_valid != after[i].is_valid:
                self.fault(
                    _HOOK,
                    f"ColumnEncoding.{part} of column {name!r} returns {after[i].as_py()!r} for {before[i].as_py()!r}; "
                    "expected null for null, and for nothing else",
                )

    def _check_files(self, made: MadeTable, snapshot: Snapshot, name: str, rule: ColumnEncoding) -> None:
        """Check that files hold the stored form of the values that reads return."""
        (leaf,) = leaves(rule.decode)
        wanted = arrow_type(rule.stored, snapshot.state.types)
        held: list[Any] = []
        for path in snapshot.scan().plan_files().files.column("local_path").to_pylist():
            column = pq.read_table(path, columns=[leaf.name], partitioning=None).column(0)  # type: ignore[union-attr]
            if column.type != wanted:
                self.fault(_HOOK, f"files hold values of {column.type} for column {name!r}; expected {wanted}")
            held += self._evaluate(snapshot, rule, "decode", column.combine_chunks()).to_pylist()
        lost = [v for v in made.read(columns=[name]).column(0).to_pylist() if v not in held]
        if lost:
            self.fault(
                _HOOK,
                f"the values of column {name!r} in files are not encoded once: {held} are decoded, expected {lost} "
                "among them",
            )

    def _check_log(self, snapshot: Snapshot, rule: ColumnEncoding) -> None:
        (leaf,) = leaves(rule.decode)
        physical = leaf.name  # type: ignore[union-attr]
        for text in snapshot.files.columns(["stats"]).column(0).to_pylist():
            statistics = json.loads(text or "{}")
            for kind in ("minValues", "maxValues"):
                if physical in statistics.get(kind, {}):
                    self.fault(_HOOK, f"the log has {kind} of column {rule.column[0]!r}: {text}; expected none")
