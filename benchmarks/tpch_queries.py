"""Queries like those of TPC-H, with fixed parameters. It imports nothing: every side's interpreter reads it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["QUERIES", "TABLES"]

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_REVENUE = "sum(l_extendedprice * (1 - l_discount))"
#: By TPC-H's own numbers.
QUERIES: Mapping[str, str] = {
    "q1": """
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
          sum(l_extendedprice * (1 - l_discount)),
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
        WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
          AND s_nationkey = a.n_nationkey
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
          SELECT sum(ps_supplycost * ps_availqty) * 0.0001 FROM partsupp, supplier, nation
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
          (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity BETWEEN 1 AND 11
            AND p_size <= 5)
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
