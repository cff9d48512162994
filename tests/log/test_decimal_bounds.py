"""Bounds of decimals that were rounded to doubles, or cut to 64 bits, by their writer skip no file with a match."""

from decimal import Decimal, localcontext

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable
from delta_core.kernel.log.decimal_bounds import widen_bounds
from delta_core.testing.table_builder import TableBuilder


@st.composite
def decimals(draw):
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    size = 10 ** draw(st.integers(0, precision)) - 1
    unscaled = draw(st.lists(st.none() | st.integers(-size, size), min_size=1, max_size=9))
    with localcontext(prec=50):
        return pa.array(
            [None if n is None else Decimal(n).scaleb(-scale) for n in unscaled], pa.decimal128(precision, scale)
        )


@given(values=decimals(), skipped=st.integers(0, 2))
def test_widened_bounds_are_a_rounding_error_away(values, skipped):
    values = values.slice(min(skipped, len(values) - 1))
    low, high = widen_bounds(values, False), widen_bounds(values, True)
    low.validate(full=True)
    high.validate(full=True)
    assert low.type == high.type == values.type
    for value, least, most in zip(values.to_pylist(), low.to_pylist(), high.to_pylist(), strict=True):
        if value is None or abs(value) < Decimal(10) ** 15 * Decimal(1).scaleb(-values.type.scale):
            assert least == most == value
            continue
        with localcontext(prec=60):
            step = Decimal(1).scaleb(-values.type.scale)
            limit = (10**values.type.precision - 1) * step
            for bound, sign in ((least, -1), (most, 1)):
                if bound is None:
                    assert value in (2**63 - 1, -(2**63))
                elif bound != limit * sign:
                    assert (
                        abs(value) * Decimal(2) ** -51
                        <= (bound - value) * sign
                        <= abs(value) * Decimal(2) ** -49 + step
                    )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ((18, 4), ["177409.2679", "-61856140615358.5704", "61856140615358.5004"]),
        ((20, 2), ["-795310791004509.28", "795310791004509.28"]),
        ((38, 10), ["-9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"]),
        ((38, 0), ["-5665057265703067165224719353156", "29163642203933922416221798524312305"]),
        ((38, 38), ["0.00000000000065499349987015489278941351", "0.00000000000000000000000000000006832326"]),
    ],
)
@pytest.mark.parametrize("is_checkpoint", [False, True])
def test_each_value_is_found_in_a_table_of_deltalake(tmp_path, kind, values, is_checkpoint):
    deltalake.write_deltalake(tmp_path, pa.table({"d": pa.array([Decimal(v) for v in values], pa.decimal128(*kind))}))
    if is_checkpoint:
        table = DeltaTable(str(tmp_path))
        table.alter.set_table_properties({"delta.checkpoint.writeStatsAsStruct": "true"})
        table.create_checkpoint()
    table = DeltaTable(str(tmp_path))
    for value in values:
        found = table.scan(predicate=f"d = CAST('{value}' AS DECIMAL({kind[0]}, {kind[1]}))").to_table()
        assert found["d"].to_pylist() == [Decimal(value)]
    whole = table.to_pyarrow_dataset()
    assert whole.count_rows(filter=pa.compute.field("d") == pa.scalar(Decimal(values[0]), pa.decimal128(*kind))) == 1


def test_files_far_from_a_decimal_are_still_skipped(tmp_path):
    table = TableBuilder(tmp_path).create({"d": "decimal(38,2)"})
    for value in (10**20, 2 * 10**20, 3 * 10**20):
        table.append([{"d": Decimal(value)}])
    assert len(DeltaTable(str(tmp_path)).file_uris(file_pruning_predicate=f"d = {2 * 10**20}")) == 1
