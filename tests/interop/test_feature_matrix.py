"""Each feature alone and in pairs: written here, read here from commits and checkpoint, and by deltalake if it can."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import DeltaError
from delta_core.kernel.plugins.registry import default_registry
from delta_core.kernel.snapshot import open_snapshot
from tests.interop.feature_matrix import (
    OURS,
    OWN_PAIRS,
    PAIRS,
    RECIPES,
    REJECTED,
    WITHOUT_RECIPE,
    Row,
    make,
    model,
    recipe_of,
)

#: What keeps deltalake 1.6.6 from reading a table, as its error states.
PEER_LACKS = {"vacuumProtocolCheck": "VacuumProtocolCheck", "typeWidening": "TypeWidening"}
ALLOWED = [pair for pair in PAIRS if frozenset(pair) not in REJECTED]


def by_id(table: pa.Table) -> list[Row]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def test_every_pair_is_there() -> None:
    count = len(RECIPES) + len(OURS)
    assert len(set(map(frozenset, PAIRS + OWN_PAIRS))) == count * (count + 1) // 2
    assert all(names <= {*RECIPES, *OURS} for names in REJECTED)


def test_every_bundled_feature_has_a_recipe_or_a_reason() -> None:
    registry = default_registry()
    features = registry.everything.features.values()
    bundled = {f.name for f in features if registry.load(f.name).__name__.startswith("delta_plugins.")}  # type: ignore[union-attr]
    assert {name.partition(" ")[0] for name in RECIPES} | OURS.keys() | WITHOUT_RECIPE.keys() == bundled


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """Assign the table of a pair, written once."""

    @cache
    def write(first: str, second: str) -> str:
        uri = str(tmp_path_factory.mktemp("matrix") / "t")
        make(uri, recipe_of(first, second))
        return uri

    return write


@pytest.mark.parametrize(("first", "second"), PAIRS + OWN_PAIRS, ids=lambda name: name.replace(" ", "-"))
def test_features_together_return_back_their_rows(written: Callable[[str, str], str], first: str, second: str) -> None:
    recipe = recipe_of(first, second)
    refusal = REJECTED.get(frozenset((first, second)))
    if refusal is not None:
        with pytest.raises(DeltaError, match=refusal):
            written(first, second)
        return
    uri = written(first, second)
    latest = open_snapshot(uri)
    assert by_id(latest.scan().to_table()) == model(recipe, 3, recipe.drops)
    assert latest.segment.checkpoint is not None, "part of the rows come from the checkpoint"
    assert by_id(open_snapshot(uri, 1).scan().to_table()) == model(recipe, 1, dropped=False)
    assert by_id(open_snapshot(uri, 2).scan().to_table()) == model(recipe, 2, dropped=False)
    assert {name.partition(" ")[0] for name in (first, second)} <= latest.plugins.features.keys()


@pytest.mark.peer
@pytest.mark.parametrize(("first", "second"), ALLOWED, ids=lambda name: name.replace(" ", "-"))
def test_deltalake_reads_features_together(written: Callable[[str, str], str], first: str, second: str) -> None:
    deltalake: Any = pytest.importorskip("deltalake")
    lacking = [PEER_LACKS[name] for name in (first, second) if name in PEER_LACKS]
    uri = written(first, second)

    def read() -> pa.Table:
        rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute("select * from t")
        return pa.table(rows)

    if lacking:
        with pytest.raises(Exception, match="|".join(lacking)):
            read()
        return
    recipe = recipe_of(first, second)
    assert by_id(read()) == model(recipe, 3, recipe.drops)
