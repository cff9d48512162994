"""Tables like those of TPC-H, with simpler values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.sizes import Sizes
from benchmarks.tpch_queries import TABLES

__all__ = ["SCALE", "make_tpch", "tpch_table"]

#: Rows at scale 1, of the tables that grow.
_ROWS = {"supplier": 10_000, "customer": 150_000, "part": 200_000, "orders": 1_500_000}
_FILES = 4
#: TPC-H's scale if that of the benchmarks is 1.
SCALE = 0.3
_NATIONS = (
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN",
    "IRAQ",
    "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "ARABIA", "VIETNAM", "RUSSIA",
    "KINGDOM",
    "STATES",
)  # fmt: skip
_REGION_OF = (0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1)
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_SIZES, _KINDS = ("SM", "MED", "LG", "JUMBO", "WRAP"), ("BOX", "CASE", "PACK", "BAG")
_FINISHES, _METALS = (
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
_TYPES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_COLOURS = ("almond", "azure", "blue", "forest", "green", "ivory", "lemon", "plum", "rose", "white")
_WORDS = (
    "carefully",
    "special",
    "final",
    "requests",
    "ironic",
    "pending",
    "accounts",
    "quickly",
    "deposits",
    "packages",
)
#: Days since 1970 of 1992-01-01, and the days of order after it.
_FIRST_DAY, _DAYS = 8035, 2405
_TODAY = 9298

Random = np.random.Generator
Ints = NDArray[np.int64]


def tpch_table(scale: float, name: str) -> pa.Table:
    """Return one of `TABLES`; the same rows for the same scale."""
    return _MAKERS[name](np.random.default_rng(TABLES.index(name)), scale)


def make_tpch(folder: Path, sizes: Sizes) -> None:
    """The eight tables at TPC-H's scale 0.3, each in a folder of its own, the larger ones in four files."""
    from delta_core import write_deltalake

    for name in TABLES:
        table = tpch_table(sizes.scale * SCALE, name)
        step = table.num_rows if table.num_rows < 1_000 else -(-table.num_rows // _FILES)
        for start in range(0, table.num_rows, step):
            write_deltalake(folder / name, table.slice(start, step), mode="append")


def _count(scale: float, name: str) -> int:
    return max(50, int(_ROWS[name] * scale))


def _pick(random: Random, values: tuple[str, ...], rows: int) -> pa.Array:
    codes = pa.array(random.integers(0, len(values), rows, np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array(values)).cast(pa.string())


def _joined(*parts: pa.Array | str, by: str = " ") -> pa.Array:
    return pc.binary_join_element_wise(*parts, by)


def _numbered(prefix: str, keys: Ints) -> pa.Array:
    return _joined(prefix, pc.utf8_lpad(pc.cast(pa.array(keys), pa.string()), 9, "0"), by="#")


def _money(random: Random, rows: int, least: float, most: float) -> pa.Array:
    return _decimals(random.integers(int(least * 100), int(most * 100), rows))


def _decimals(hundredths: Ints) -> pa.Array:
    words = np.stack([hundredths, hundredths >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(hundredths), [None, pa.py_buffer(words.tobytes())])


def _days(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32), pa.date32())


def _comment(random: Random, rows: int) -> pa.Array:
    return _joined(*(_pick(random, _WORDS, rows) for _ in range(5)))


def _region(random: Random, scale: float) -> pa.Table:
    del random, scale
    return pa.table({"r_regionkey": np.arange(5), "r_name": list(_REGIONS)})


def _nation(random: Random, scale: float) -> pa.Table:
    del random, scale
    return pa.table({"n_nationkey": np.arange(25), "n_name": list(_NATIONS), "n_regionkey": np.array(_REGION_OF)})


def _supplier(random: Random, scale: float) -> pa.Table:
    rows = _count(scale, "supplier")
    keys = np.arange(1, rows + 1)
    return pa.table(
        {
            "s_suppkey": keys,
            "s_name": _numbered("Supplier", keys),
            "s_nationkey": random.integers(0, 25, rows),
            "s_acctbal": _money(random, rows, -999, 9999),
            "s_comment": _comment(random, rows),
        }
    )


def _customer(random: Random, scale: float) -> pa.Table:
    rows = _count(scale, "customer")
    keys, nation = np.arange(1, rows + 1), random.integers(0, 25, rows)
    code, rest = (
        pc.cast(pa.array(nation + 10), pa.string()),
        pc.cast(pa.array(random.integers(100, 999, rows)), pa.string()),
    )
    return pa.table(
        {
            "c_custkey": keys,
            "c_name": _numbered("Customer", keys),
            "c_nationkey": nation,
            "c_phone": _joined(code, rest, by="-"),
            "c_acctbal": _money(random, rows, -999, 9999),
            "c_mktsegment": _pick(random, _SEGMENTS, rows),
            "c_address": _comment(random, rows),
            "c_comment": _comment(random, rows),
        }
    )


def _part(random: Random, scale: float) -> pa.Table:
    rows = _count(scale, "part")
    brand = pc.cast(pa.array(random.integers(1, 6, rows) * 10 + random.integers(1, 6, rows)), pa.string())
    return pa.table(
        {
            "p_partkey": np.arange(1, rows + 1),
            "p_name": _joined(*(_pick(random, _COLOURS, rows) for _ in range(3))),
            "p_mfgr": _pick(random, ("Manufacturer#1", "Manufacturer#2", "Manufacturer#3"), rows),
            "p_brand": _joined("Brand", brand, by="#"),
            "p_type": _joined(*(_pick(random, v, rows) for v in (_TYPES, _FINISHES, _METALS))),
            "p_size": random.integers(1, 51, rows).astype(np.int32),
            "p_container": _joined(_pick(random, _SIZES, rows), _pick(random, _KINDS, rows)),
            "p_retailprice": _money(random, rows, 900, 2000),
        }
    )


def _suppliers_of(part: Ints, which: Ints, suppliers: int) -> Ints:
    """Return the suppliers of parts: each part has four, by ``which``."""
    return (part + which * (suppliers // 4 + 1)) % suppliers + 1


def _partsupp(random: Random, scale: float) -> pa.Table:
    part = np.repeat(np.arange(1, _count(scale, "part") + 1), 4)
    rows = len(part)
    return pa.table(
        {
            "ps_partkey": part,
            "ps_suppkey": _suppliers_of(part, np.arange(rows) % 4, _count(scale, "supplier")),
            "ps_availqty": random.integers(1, 10_000, rows).astype(np.int32),
            "ps_supplycost": _money(random, rows, 1, 1000),
            "ps_comment": _comment(random, rows),
        }
    )


def _order_days(scale: float) -> Ints:
    return _FIRST_DAY + np.random.default_rng(99).integers(0, _DAYS, _count(scale, "orders"))


def _orders(random: Random, scale: float) -> pa.Table:
    rows, days = _count(scale, "orders"), _order_days(scale)
    customers = _count(scale, "customer")
    # a third of the customers order nothing
    customer = random.integers(0, customers // 3 + 1, rows) * 3 + random.integers(1, 3, rows)
    return pa.table(
        {
            "o_orderkey": np.arange(1, rows + 1),
            "o_custkey": np.minimum(customer, customers),
            "o_orderstatus": pc.if_else(pa.array(days < _TODAY), "F", "O"),
            "o_totalprice": _money(random, rows, 900, 500_000),
            "o_orderdate": _days(days),
            "o_orderpriority": _pick(random, _PRIORITIES, rows),
            "o_shippriority": np.zeros(rows, np.int32),
            "o_comment": _comment(random, rows),
        }
    )


def _lineitem(random: Random, scale: float) -> pa.Table:
    orders = _count(scale, "orders")
    lines = random.integers(1, 8, orders)
    order = np.repeat(np.arange(1, orders + 1), lines)
    rows = len(order)
    part = random.integers(1, _count(scale, "part") + 1, rows)
    shipped = np.repeat(_order_days(scale), lines) + random.integers(1, 122, rows)
    received = shipped + random.integers(1, 31, rows)
    return pa.table(
        {
            "l_orderkey": order,
            "l_partkey": part,
            "l_suppkey": _suppliers_of(part, random.integers(0, 4, rows), _count(scale, "supplier")),
            "l_linenumber": (np.arange(rows) - np.repeat(np.cumsum(lines) - lines, lines) + 1).astype(np.int32),
            "l_quantity": _decimals(random.integers(1, 51, rows) * 100),
            "l_extendedprice": _money(random, rows, 900, 100_000),
            "l_discount": _decimals(random.integers(0, 11, rows)),
            "l_tax": _decimals(random.integers(0, 9, rows)),
            "l_returnflag": pc.if_else(pa.array(received < _TODAY), _pick(random, ("A", "R"), rows), "N"),
            "l_linestatus": pc.if_else(pa.array(shipped < _TODAY), "F", "O"),
            "l_shipdate": _days(shipped),
            "l_commitdate": _days(shipped + random.integers(-60, 60, rows)),
            "l_receiptdate": _days(received),
            "l_shipinstruct": _pick(random, _INSTRUCTIONS, rows),
            "l_shipmode": _pick(random, _MODES, rows),
            "l_comment": _joined(*(_pick(random, _WORDS, rows) for _ in range(3))),
        }
    )


_MAKERS: Mapping[str, Callable[[Random, float], pa.Table]] = {
    "region": _region,
    "nation": _nation,
    "supplier": _supplier,
    "customer": _customer,
    "part": _part,
    "partsupp": _partsupp,
    "orders": _orders,
    "lineitem": _lineitem,
}
