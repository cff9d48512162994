"""Tables and queries like those of TPC-H: its schema and its joins, with simpler values and fixed parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.tables import Sizes

__all__ = ["QUERIES", "TABLES", "make_tpch", "tpch_table"]

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
#: Rows at scale 1, of the tables that grow.
_ROWS = {"supplier": 10_000, "customer": 150_000, "part": 200_000, "orders": 1_500_000}
_FILES = 4
_NATIONS = (
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ",
    "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "ARABIA", "VIETNAM", "RUSSIA", "KINGDOM",
    "STATES",
)  # fmt: skip
_REGION_OF = (0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1)
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_SIZES, _KINDS = ("SM", "MED", "LG", "JUMBO", "WRAP"), ("BOX", "CASE", "PACK", "BAG")
_FINISHES, _METALS = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"), ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
_TYPES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_COLOURS = ("almond", "azure", "blue", "forest", "green", "ivory", "lemon", "plum", "rose", "white")
_WORDS = ("carefully", "special", "final", "requests", "ironic", "pending", "accounts", "quickly", "deposits", "packages")
#: Days since 1970 of 1992-01-01, and the days of order after it.
_FIRST_DAY, _DAYS = 8035, 2405
_TODAY = 9298

Random = np.random.Generator
Ints = NDArray[np.int64]


def tpch_table(scale: float, name: str) -> pa.Table:
    """Return one of `TABLES`; the same rows for the same scale."""
    return _MAKERS[name](np.random.default_rng(TABLES.index(name)), scale)


def make_tpch(folder: Path, sizes: Sizes) -> None:
    """The eight tables, each in a folder of its own, the larger ones in four files."""
    from delta_core import write_deltalake

    for name in TABLES:
        table = tpch_table(sizes.scale, name)
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
    return pa.table({
        "s_suppkey": keys, "s_name": _numbered("Supplier", keys), "s_nationkey": random.integers(0, 25, rows),
        "s_acctbal": _money(random, rows, -999, 9999), "s_comment": _comment(random, rows),
    })  # fmt: skip


def _customer(random: Random, scale: float) -> pa.Table:
    rows = _count(scale, "customer")
    keys, nation = np.arange(1, rows + 1), random.integers(0, 25, rows)
    code, rest = pc.cast(pa.array(nation + 10), pa.string()), pc.cast(pa.array(random.integers(100, 999, rows)), pa.string())
    return pa.table({
        "c_custkey": keys, "c_name": _numbered("Customer", keys), "c_nationkey": nation, "c_phone": _joined(code, rest, by="-"),
        "c_acctbal": _money(random, rows, -999, 9999), "c_mktsegment": _pick(random, _SEGMENTS, rows),
        "c_address": _comment(random, rows), "c_comment": _comment(random, rows),
    })  # fmt: skip


def _part(random: Random, scale: float) -> pa.Table:
    rows = _count(scale, "part")
    brand = pc.cast(pa.array(random.integers(1, 6, rows) * 10 + random.integers(1, 6, rows)), pa.string())
    return pa.table({
        "p_partkey": np.arange(1, rows + 1), "p_name": _joined(*(_pick(random, _COLOURS, rows) for _ in range(3))),
        "p_mfgr": _pick(random, ("Manufacturer#1", "Manufacturer#2", "Manufacturer#3"), rows),
        "p_brand": _joined("Brand", brand, by="#"),
        "p_type": _joined(*(_pick(random, v, rows) for v in (_TYPES, _FINISHES, _METALS))),
        "p_size": random.integers(1, 51, rows).astype(np.int32),
        "p_container": _joined(_pick(random, _SIZES, rows), _pick(random, _KINDS, rows)),
        "p_retailprice": _money(random, rows, 900, 2000),
    })  # fmt: skip


def _suppliers_of(part: Ints, which: Ints, suppliers: int) -> Ints:
    """Return the suppliers of parts: each part has four, by ``which``."""
    return (part + which * (suppliers // 4 + 1)) % suppliers + 1


def _partsupp(random: Random, scale: float) -> pa.Table:
    part = np.repeat(np.arange(1, _count(scale, "part") + 1), 4)
    rows = len(part)
    return pa.table({
        "ps_partkey": part, "ps_suppkey": _suppliers_of(part, np.arange(rows) % 4, _count(scale, "supplier")),
        "ps_availqty": random.integers(1, 10_000, rows).astype(np.int32), "ps_supplycost": _money(random, rows, 1, 1000),
        "ps_comment": _comment(random, rows),
    })  # fmt: skip


def _order_days(scale: float) -> Ints:
    return _FIRST_DAY + np.random.default_rng(99).integers(0, _DAYS, _count(scale, "orders"))


def _orders(random: Random, scale: float) -> pa.Table:
    rows, days = _count(scale, "orders"), _order_days(scale)
    customers = _count(scale, "customer")
    # a third of the customers order nothing
    customer = random.integers(0, customers // 3 + 1, rows) * 3 + random.integers(1, 3, rows)
    return pa.table({
        "o_orderkey": np.arange(1, rows + 1), "o_custkey": np.minimum(customer, customers),
        "o_orderstatus": pc.if_else(pa.array(days < _TODAY), "F", "O"), "o_totalprice": _money(random, rows, 900, 500_000),
        "o_orderdate": _days(days), "o_orderpriority": _pick(random, _PRIORITIES, rows),
        "o_shippriority": np.zeros(rows, np.int32), "o_comment": _comment(random, rows),
    })  # fmt: skip


def _lineitem(random: Random, scale: float) -> pa.Table:
    orders = _count(scale, "orders")
    lines = random.integers(1, 8, orders)
    order = np.repeat(np.arange(1, orders + 1), lines)
    rows = len(order)
    part = random.integers(1, _count(scale, "part") + 1, rows)
    shipped = np.repeat(_order_days(scale), lines) + random.integers(1, 122, rows)
    received = shipped + random.integers(1, 31, rows)
    return pa.table({
        "l_orderkey": order, "l_partkey": part,
        "l_suppkey": _suppliers_of(part, random.integers(0, 4, rows), _count(scale, "supplier")),
        "l_linenumber": (np.arange(rows) - np.repeat(np.cumsum(lines) - lines, lines) + 1).astype(np.int32),
        "l_quantity": _decimals(random.integers(1, 51, rows) * 100),
        "l_extendedprice": _money(random, rows, 900, 100_000), "l_discount": _decimals(random.integers(0, 11, rows)),
        "l_tax": _decimals(random.integers(0, 9, rows)),
        "l_returnflag": pc.if_else(pa.array(received < _TODAY), _pick(random, ("A", "R"), rows), "N"),
        "l_linestatus": pc.if_else(pa.array(shipped < _TODAY), "F", "O"),
        "l_shipdate": _days(shipped), "l_commitdate": _days(shipped + random.integers(-60, 60, rows)),
        "l_receiptdate": _days(received), "l_shipinstruct": _pick(random, _INSTRUCTIONS, rows),
        "l_shipmode": _pick(random, _MODES, rows), "l_comment": _joined(*(_pick(random, _WORDS, rows) for _ in range(3))),
    })  # fmt: skip


_MAKERS: Mapping[str, Callable[[Random, float], pa.Table]] = {
    "region": _region, "nation": _nation, "supplier": _supplier, "customer": _customer, "part": _part,
    "partsupp": _partsupp, "orders": _orders, "lineitem": _lineitem,
}  # fmt: skip

_REVENUE = "sum(l_extendedprice * (1 - l_discount))"
#: By TPC-H's own numbers.
QUERIES: Mapping[str, str] = {
    "q1": """
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
          sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_discount), count(*)
        FROM lineitem WHERE l_shipdate <= DATE'1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "q3": f"""
        SELECT l_orderkey, {_REVENUE} AS revenue, o_orderdate, o_shippriority FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE'1995-03-15' AND l_shipdate > DATE'1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    "q4": """
        SELECT o_orderpriority, count(*) FROM orders
        WHERE o_orderdate >= DATE'1993-07-01' AND o_orderdate < DATE'1993-10-01' AND EXISTS (
          SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "q5": f"""
        SELECT n_name, {_REVENUE} AS revenue FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
          AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
          AND o_orderdate >= DATE'1994-01-01' AND o_orderdate < DATE'1995-01-01'
        GROUP BY n_name ORDER BY revenue DESC, n_name""",
    "q6": """
        SELECT sum(l_extendedprice * l_discount) FROM lineitem
        WHERE l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07
          AND l_quantity < 24""",
    "q7": f"""
        SELECT a.n_name, b.n_name, year(l_shipdate) AS y, {_REVENUE}
        FROM supplier, lineitem, orders, customer, nation a, nation b
        WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = a.n_nationkey
          AND c_nationkey = b.n_nationkey AND l_shipdate BETWEEN DATE'1995-01-01' AND DATE'1996-12-31'
          AND ((a.n_name = 'FRANCE' AND b.n_name = 'GERMANY') OR (a.n_name = 'GERMANY' AND b.n_name = 'FRANCE'))
        GROUP BY a.n_name, b.n_name, y ORDER BY a.n_name, b.n_name, y""",
    "q8": """
        SELECT y, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) FROM (
          SELECT year(o_orderdate) AS y, l_extendedprice * (1 - l_discount) AS volume, b.n_name AS nation
          FROM part, supplier, lineitem, orders, customer, nation a, nation b, region
          WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
            AND c_nationkey = a.n_nationkey AND a.n_regionkey = r_regionkey AND r_name = 'AMERICA'
            AND s_nationkey = b.n_nationkey AND o_orderdate BETWEEN DATE'1995-01-01' AND DATE'1996-12-31'
            AND p_type LIKE 'ECONOMY ANODIZED%')
        GROUP BY y ORDER BY y""",
    "q9": """
        SELECT nation, y, sum(amount) FROM (
          SELECT n_name AS nation, year(o_orderdate) AS y,
            l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
          FROM part, supplier, lineitem, partsupp, orders, nation
          WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
            AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%')
        GROUP BY nation, y ORDER BY nation, y DESC""",
    "q10": f"""
        SELECT c_custkey, c_name, {_REVENUE} AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE'1993-10-01'
          AND o_orderdate < DATE'1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
        ORDER BY revenue DESC, c_custkey LIMIT 20""",
    "q11": """
        SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
        GROUP BY ps_partkey HAVING sum(ps_supplycost * ps_availqty) > (
          SELECT sum(ps_supplycost * ps_availqty) * 0.001 FROM partsupp, supplier, nation
          WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
        ORDER BY value DESC, ps_partkey""",
    "q12": """
        SELECT l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END), count(*)
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
          AND l_shipdate < l_commitdate AND l_receiptdate >= DATE'1994-01-01' AND l_receiptdate < DATE'1995-01-01'
        GROUP BY l_shipmode ORDER BY l_shipmode""",
    "q13": """
        SELECT orders_of, count(*) AS customers FROM (
          SELECT c_custkey, count(o_orderkey) AS orders_of FROM customer LEFT OUTER JOIN orders
            ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
          GROUP BY c_custkey)
        GROUP BY orders_of ORDER BY customers DESC, orders_of DESC""",
    "q14": """
        SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
          / sum(l_extendedprice * (1 - l_discount))
        FROM lineitem, part
        WHERE l_partkey = p_partkey AND l_shipdate >= DATE'1995-09-01' AND l_shipdate < DATE'1995-10-01'""",
    "q16": """
        SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
          AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9) AND ps_suppkey NOT IN (
            SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%special%accounts%')
        GROUP BY p_brand, p_type, p_size ORDER BY suppliers DESC, p_brand, p_type, p_size""",
    "q18": """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250)
          AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
    "q19": f"""
        SELECT {_REVENUE} FROM lineitem, part
        WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
          (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity BETWEEN 1 AND 11 AND p_size <= 5)
          OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX') AND l_quantity BETWEEN 10 AND 20
            AND p_size <= 10)
          OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX') AND l_quantity BETWEEN 20 AND 30
            AND p_size <= 15))""",
    "q22": """
        SELECT code, count(*), sum(c_acctbal) FROM (
          SELECT substring(c_phone, 1, 2) AS code, c_acctbal FROM customer
          WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
            AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00
              AND substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
            AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey))
        GROUP BY code ORDER BY code""",
}
