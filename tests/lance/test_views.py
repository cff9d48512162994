"""Other libraries read the rows of a dataset, and push filters into the scan."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import open_dataset


@pytest.fixture
def dataset() -> LanceDataset:
    return open_dataset(str(Path(__file__).parent / "fixtures" / "plain"))


def test_views_have_the_rows_of_the_dataset(dataset: LanceDataset) -> None:
    pl = pytest.importorskip("polars")
    pytest.importorskip("pandas")
    expected = dataset.to_pyarrow_table(["id"], "id > 3")["id"].to_pylist()
    assert expected
    assert dataset.to_polars().filter(pl.col("id") > 3).select("id").collect()["id"].to_list() == expected
    assert dataset.to_pandas(["id"], "id > 3")["id"].tolist() == expected
    assert dataset.dataset().to_table(columns=["id"]).num_rows == dataset.count()


def test_duckdb_filters_the_dataset(dataset: LanceDataset) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = dataset.dataset()
    found = duckdb.sql("select count(*) from rows where id > 3").fetchall()
    assert rows is not None
    assert found == [(dataset.count("id > 3"),)]
