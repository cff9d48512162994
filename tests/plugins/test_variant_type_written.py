"""Features variantType and variantShredding, written: whole variants in files, and where none may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, Field, PrimitiveType, Schema, StructType, write_deltalake
from delta_core.errors import SchemaError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import VARIANT
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.testing.variant_bytes import encode_metadata, encode_value
from tests.bundled import needs
from tests.plugins.written import append, create, rows

FIELDS: list[dict[str, Any]] = [{"name": "id", "type": "long"}, {"name": "v", "type": "variant"}]


def variants(*values: Any) -> pa.Array:
    """Variants of plain values; None is a null variant."""
    names: list[str] = sorted({k for v in values if isinstance(v, dict) for k in v})
    metadata = encode_metadata(names)
    pairs = [None if v is None else {"metadata": metadata, "value": encode_value(v, names)} for v in values]
    return pa.array(pairs, VARIANT.arrow)


def protocol(uri: str) -> tuple[Any, ...]:
    found = open_snapshot(uri).protocol
    return found.min_reader_version, found.min_writer_version, found.reader_features


def test_type_requires_the_feature_at_any_depth(tmp_path: Path) -> None:
    uri = create(tmp_path / "a", FIELDS)
    assert protocol(uri) == (3, 7, ("variantType",))
    nested = {"type": "array", "elementType": "variant", "containsNull": True}
    assert protocol(create(tmp_path / "b", [{"name": "l", "type": nested}])) == (3, 7, ("variantType",))


@pytest.mark.parametrize("properties", [{}, {"delta.enableVariantShredding": "true"}])
def test_variants_lie_whole_in_files_whether_or_not_they_may_be_shredded(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=properties)
    values = [{"a": 1, "b": "x"}, None, 3, "text"]
    append(uri, pa.table({"id": [1, 2, 3, 4], "v": variants(*values)}))
    (path,) = Path(uri).glob("*.parquet")
    stored = pq.read_schema(path).field("v").type
    assert {f.name: f.type for f in stored} == {"metadata": pa.binary(), "value": pa.binary()}
    table = open_snapshot(uri).scan().to_table()
    assert table.column("v").to_pylist() == variants(*values).to_pylist()
    assert open_snapshot(uri).scan(predicate="variant_json(v) = '3'").to_table().column("id").to_pylist() == [3]


def test_statistics_count_nulls_of_the_whole_variant_and_have_no_bounds(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS)
    append(uri, pa.table({"id": [1, 2, 3], "v": variants({"a": 1}, None, None)}))
    (text,) = open_snapshot(uri).files.columns(["stats"]).column("stats").to_pylist()
    found = json.loads(text)
    assert (found["nullCount"], found["minValues"], found["maxValues"]) == ({"id": 0, "v": 2}, {"id": 1}, {"id": 3})
    assert rows(uri, "id") == [1, 2, 3]


@pytest.mark.parametrize(
    ("notes", "partitions", "message"),
    [
        ({}, ["v"], "partition the table"),
        ({"delta.generationExpression": "parse_json('1')"}, [], "be generated"),
        ({"CURRENT_DEFAULT": "parse_json('1')"}, [], "have the default"),
    ],
)
def test_variant_may_not_partition_be_generated_or_have_a_default(
    notes: dict[str, str], partitions: list[str], message: str
) -> None:
    contract = FeatureContract()
    contract.name = "variantType"
    fields = [FIELDS[0], {**FIELDS[1], "metadata": notes}]
    with pytest.raises(SchemaError, match=f"Column v is a variant, which can't {message}"):
        contract.check_metadata(table_state(["variantType"], fields=fields, partition_by=partitions))


@pytest.mark.parametrize("default", ["NULL", "null", "CAST(NULL AS VARIANT)"])
def test_default_null_is_fine(default: str) -> None:
    contract = FeatureContract()
    contract.name = "variantType"
    contract.check_metadata(table_state(["variantType"], [{**FIELDS[1], "metadata": {"CURRENT_DEFAULT": default}}]))


@needs("clustering")
def test_variant_can_not_cluster(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="variant"):
        create(tmp_path / "t", FIELDS, properties={"delta.clusterBy": '["v"]'})


def test_switch_of_shredding_provides_both_features(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS[:1], properties={"delta.enableVariantShredding": "true"})
    assert protocol(uri) == (3, 7, ("variantShredding", "variantType"))


@pytest.mark.parametrize("nested", [False, True], ids=["column", "field of a struct"])
@pytest.mark.parametrize("given", ["nothing", "nulls"])
def test_rows_that_leave_a_variant_out_have_null_there(tmp_path: Path, nested: bool, given: str) -> None:
    variant = PrimitiveType("variant")
    kind = StructType([Field("n", "long"), Field("v", variant)]) if nested else variant
    DeltaTable.create(tmp_path / "t", Schema([Field("id", "long"), Field("c", kind)]))
    rows = [pa.table({"id": [1]}) if given == "nothing" else pa.table({"id": [1], "c": pa.nulls(1)})]
    rows += [pa.table({"id": [2], "c": [{"n": 5}]})] if nested else []
    for part in rows:
        write_deltalake(tmp_path / "t", part, mode="append")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()
    expected = {1: None, 2: {"n": 5, "v": None}}
    assert {r["id"]: r["c"] for r in found.to_pylist()} == {i: expected[i] for i in range(1, len(rows) + 1)}
    write_deltalake(tmp_path / "t", found, mode="overwrite")
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == len(rows)
