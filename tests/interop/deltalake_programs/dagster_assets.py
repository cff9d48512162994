"""Dagster's IO managers store assets of pandas and Polars, partitioned too."""

import sys

import pandas as pd
import polars as pl
from dagster import StaticPartitionsDefinition, asset, materialize
from dagster_deltalake import LocalConfig
from dagster_deltalake_pandas import DeltaLakePandasIOManager
from dagster_deltalake_polars import DeltaLakePolarsIOManager
from deltalake import DeltaTable

root = sys.argv[1]


@asset
def people():
    return pd.DataFrame({"id": [1, 2, 3]})


@asset
def doubled(people: pd.DataFrame):
    return people * 2


@asset(partitions_def=StaticPartitionsDefinition(["a", "b"]), metadata={"partition_expr": "kind"})
def by_kind(context):
    return pl.DataFrame({"kind": [context.partition_key] * 2, "v": [1, 2]})


pandas_io = DeltaLakePandasIOManager(root_uri=f"{root}/pandas", storage_options=LocalConfig(), schema="m")
assert materialize([people, doubled], resources={"io_manager": pandas_io}).success
assert DeltaTable(f"{root}/pandas/m/doubled").to_pandas()["id"].tolist() == [2, 4, 6]

polars_io = DeltaLakePolarsIOManager(root_uri=f"{root}/polars", storage_options=LocalConfig(), schema="m")
for kind in ("a", "b", "a"):
    assert materialize([by_kind], partition_key=kind, resources={"io_manager": polars_io}).success
assert pl.read_delta(f"{root}/polars/m/by_kind").sort("kind")["kind"].to_list() == ["a", "a", "b", "b"]
