"""How many requests for a remote dataset depend on each other: footers, metadata of columns, pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import open_table
from delta_plugins.lance import write_lance
from delta_plugins.lance.dataset import LanceDataset
from tests.stores import stepped

pytestmark = pytest.mark.skipif(not stepped.IS_SUPPORTED, reason="steps are counted by what /proc reports")

ROWS = 200_000
VERSIONS = ["2.0", "2.1", "2.2"]


def few_columns() -> pa.Table:
    random = np.random.default_rng(0)
    texts = pa.array([f"{n:07d}" for n in random.integers(0, 10**7, ROWS)])
    lists = pa.array([[1, None, 3] if i % 5 else None for i in range(ROWS)])
    return pa.table({"i": np.arange(ROWS), "d": random.random(ROWS), "s": texts, "l": lists})


def many_columns() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table({f"c{i}": np.arange(20_000) if i % 2 else random.random(20_000) for i in range(1000)})


SHAPES: dict[str, Callable[[], pa.Table]] = {"few": few_columns, "many": many_columns}


@pytest.fixture(scope="module", params=[f"{shape} {v}" for shape in SHAPES for v in VERSIONS])
def remote(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table]:
    shape, version = request.param.split()
    rows = SHAPES[shape]()
    folder = tmp_path_factory.mktemp("remote") / "t"
    write_lance(str(folder), rows, file_version=version)
    uri = f"stepped://{folder}"
    open_table(uri).head(1)  # what the first read loads
    return uri, rows


def steps_of(work: Callable[[], Any]) -> tuple[Any, int]:
    with stepped.counted() as steps:
        found = work()
    return found, len(steps)


def test_dataset_is_opened_by_a_listing_and_its_manifest(remote: tuple[str, pa.Table]) -> None:
    opened, steps = steps_of(lambda: open_table(remote[0]))
    assert (opened.version, steps) == (1, 2)


def test_read_without_condition_takes_at_most_three_steps(remote: tuple[str, pa.Table]) -> None:
    uri, rows = remote
    dataset: Any = open_table(uri)
    chosen = [7, 1000, 19_999]
    last = rows.column_names[-1]
    works: dict[str, tuple[Callable[[], pa.Table], pa.Table]] = {
        "all": (dataset.to_pyarrow_table, rows),
        "one column": (lambda: dataset.to_pyarrow_table([last]), rows.select([last])),
        "rows": (lambda: dataset.take(chosen), rows.take(chosen)),
        "first rows": (lambda: dataset.head(10), rows.slice(0, 10)),
    }
    for name, (work, expected) in works.items():
        found, steps = steps_of(work)
        # version 2.0 has ends of lists beside their items, which may be in another column
        has_ends = (
            name in ("rows", "first rows") and "l" in rows.column_names and dataset.manifest.file_version == (2, 0)
        )
        assert 0 < steps <= 3 + has_ends, name
        assert found.to_pydict() == expected.to_pydict() if name != "all" else found.equals(expected), name


def test_condition_takes_one_step_more(remote: tuple[str, pa.Table]) -> None:
    uri, rows = remote
    dataset: Any = open_table(uri)
    name = "i" if "i" in rows.column_names else "c501"
    found, steps = steps_of(lambda: dataset.to_pyarrow_table([name, rows.column_names[2]], f"{name} = 777"))
    has_ends = "s" in rows.column_names and dataset.manifest.file_version == (2, 0)
    assert 0 < steps <= 4 + has_ends
    assert found[name].to_pylist() == [777]


def test_local_files_are_not_read_ahead(tmp_path: Path) -> None:
    write_lance(str(tmp_path / "t"), few_columns())
    dataset = open_table(str(tmp_path / "t"))
    assert isinstance(dataset, LanceDataset)
    read: list[int] = []
    before = type(dataset.storage).read

    def counted(self: Any, requests: Any, *arguments: Any, **options: Any) -> Any:
        read.extend(r.length for r in requests)
        return before(self, requests, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(dataset.storage), "read", counted)
        assert dataset.take([7], ["d"])["d"].to_pylist() == [few_columns()["d"][7].as_py()]
    assert sum(read) < 500_000
