"""Column functions of PySpark in an update, a merge and a delete: cells of `statement_program`.

``statement_functions.tsv`` has a call of each function on the columns of `TABLE`. Running this module searches one that
Spark accepts for every function in ``pyspark.sql.functions``; delta-spark's answers have to be recorded then.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

CALLS = Path(__file__).with_name("statement_functions.tsv")
#: Columns of a table, each with its values in three rows.
TABLE = (
    "i INT",
    "s STRING",
    "d DOUBLE",
    "t TIMESTAMP",
    "e DATE",
    "a ARRAY<INT>",
    "m MAP<STRING, INT>",
    "r STRUCT<x: INT, y: STRING>",
    "b BINARY",
    "c DECIMAL(9, 2)",
    "l BIGINT",
    "o BOOLEAN",
    "g ARRAY<STRING>",
    "k STRING",
)
ROWS = """
(1, 'a,b', 0.5D, TIMESTAMP'2024-01-02 03:04:05', DATE'2024-01-02', array(3, 1), map('x', 1), struct(1 AS x, 'p' AS y),
 X'4142', 1.25BD, 7L, true, array('v', 'u'), '{"x": 1}'),
(2, 'Cd 2', 0.25D, TIMESTAMP'2020-12-31 23:59:59', DATE'2020-12-31', array(5), map('y', 2), struct(2 AS x, 'q' AS y),
 X'43', 20.00BD, 8L, false, array('w'), '{"x": 5}'),
(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
#: Arguments in the order in which they are tried; ``c`` makes a column, with the table's alias in a merge.
COLUMNS = [f"c('{each.split()[0]}')" for each in TABLE]
LAMBDAS = ("lambda x: x", "lambda x, y: x", "lambda x: x > 1", "lambda x, y: x > y", "lambda x, y, z: x")
PLAIN = (
    "2",
    "'x'",
    "','",
    "'yyyy-MM-dd'",
    "'day'",
    "'UTC'",
    "'x INT'",
    "'$.x'",
    "'utf-8'",
    "16",
    "True",
    "[1, 2]",
    "'i'",
)
#: Calls that the search does not find.
GIVEN = {
    "add_months": "F.add_months(c('e'), 2)",
    "approx_percentile": "F.approx_percentile(c('i'), 0.5)",
    "array_insert": "F.array_insert(c('g'), 1, 'i')",
    "atan2": "F.atan2(c('i'), c('l'))",
    "call_function": "F.call_function('length', c('s'))",
    "call_udf": "F.call_udf('length', c('s'))",
    "collate": "F.collate(c('s'), 'UTF8_LCASE')",
    "concat_ws": "F.concat_ws('-', c('s'), c('k'))",
    "convert_timezone": "F.convert_timezone(F.lit('UTC'), F.lit('Asia/Tokyo'), c('t'))",
    "count_min_sketch": "F.count_min_sketch(c('s'), F.lit(0.5), F.lit(0.5), F.lit(1))",
    "create_map": "F.create_map(c('i'), c('s'))",
    "cume_dist": "F.cume_dist()",
    "date_sub": "F.date_sub(c('e'), 2)",
    "date_trunc": "F.date_trunc('day', c('t'))",
    "dense_rank": "F.dense_rank()",
    "element_at": "F.element_at(c('m'), 'x')",
    "elt": "F.elt(c('i'), c('s'), c('k'))",
    "endswith": "F.endswith(c('s'), F.lit('b'))",
    "explode": "F.explode(c('a'))",
    "explode_outer": "F.explode_outer(c('a'))",
    "find_in_set": "F.find_in_set(c('k'), c('s'))",
    "flatten": "F.flatten(F.array(c('a'), c('a')))",
    "from_csv": "F.from_csv(c('s'), 'x STRING, y STRING')",
    "from_json": "F.from_json(c('k'), 'x INT')",
    "from_utc_timestamp": "F.from_utc_timestamp(c('t'), 'Asia/Tokyo')",
    "from_xml": "F.from_xml(F.lit('<p><x>1</x></p>'), 'x INT')",
    "get": "F.get(c('g'), 0)",
    "greatest": "F.greatest(c('i'), c('l'))",
    "grouping": "F.grouping('i')",
    "grouping_id": "F.grouping_id()",
    "ilike": "F.ilike(c('s'), F.lit('A%'))",
    "inline": "F.inline(F.array(c('r')))",
    "inline_outer": "F.inline_outer(F.array(c('r')))",
    "instr": "F.instr(c('s'), 'b')",
    "is_valid_variant": "F.is_valid_variant(F.parse_json(c('k')))",
    "is_variant_null": "F.is_variant_null(F.parse_json(c('k')))",
    "java_method": "F.java_method(F.lit('java.lang.Math'), F.lit('abs'), c('i'))",
    "json_tuple": "F.json_tuple(c('k'), 'x')",
    "kll_sketch_agg_float": "F.kll_sketch_agg_float(c('d').cast('float'))",
    "lag": "F.lag(c('i'))",
    "lead": "F.lead(c('i'))",
    "least": "F.least(c('i'), c('l'))",
    "like": "F.like(c('s'), F.lit('a%'))",
    "make_time": "F.make_time(c('i'), c('i'), c('i'))",
    "make_timestamp": "F.make_timestamp(c('i'), c('i'), c('i'), c('i'), c('i'), c('i'))",
    "make_timestamp_ntz": "F.make_timestamp_ntz(c('i'), c('i'), c('i'), c('i'), c('i'), c('i'))",
    "map_from_entries": "F.map_from_entries(F.array(F.struct(c('i'), c('s'))))",
    "map_zip_with": "F.map_zip_with(c('m'), c('m'), lambda k, x, y: x + y)",
    "max_by": "F.max_by(c('i'), c('d'))",
    "min_by": "F.min_by(c('i'), c('d'))",
    "named_struct": "F.named_struct(F.lit('x'), c('i'))",
    "next_day": "F.next_day(c('e'), 'Mon')",
    "nth_value": "F.nth_value(c('i'), 1)",
    "ntile": "F.ntile(2)",
    "overlay": "F.overlay(c('s'), c('k'), 2)",
    "percent_rank": "F.percent_rank()",
    "percentile": "F.percentile(c('i'), 0.5)",
    "percentile_approx": "F.percentile_approx(c('i'), 0.5)",
    "pmod": "F.pmod(c('l'), c('i'))",
    "posexplode": "F.posexplode(c('a'))",
    "posexplode_outer": "F.posexplode_outer(c('a'))",
    "pow": "F.pow(c('i'), c('l'))",
    "rank": "F.rank()",
    "reflect": "F.reflect(F.lit('java.lang.Math'), F.lit('abs'), c('i'))",
    "regexp": "F.regexp(c('s'), F.lit('a.*'))",
    "regexp_count": "F.regexp_count(c('s'), F.lit('[a-z]'))",
    "regexp_instr": "F.regexp_instr(c('s'), F.lit('[0-9]'))",
    "regexp_like": "F.regexp_like(c('s'), F.lit('a.*'))",
    "regexp_substr": "F.regexp_substr(c('s'), F.lit('[a-z]+'))",
    "repeat": "F.repeat(c('s'), 2)",
    "rlike": "F.rlike(c('s'), F.lit('a.*'))",
    "row_number": "F.row_number()",
    "rpad": "F.rpad(c('s'), 6, 'x')",
    "schema_of_variant": "F.schema_of_variant(F.parse_json(c('k')))",
    "schema_of_variant_agg": "F.schema_of_variant_agg(F.parse_json(c('k')))",
    "schema_of_xml": "F.schema_of_xml('<p><x>1</x></p>')",
    "session_window": "F.session_window(c('t'), '5 minutes')",
    "sha2": "F.sha2(c('s'), 256)",
    "shiftrightunsigned": "F.shiftrightunsigned(c('i'), 1)",
    "slice": "F.slice(c('g'), 1, 1)",
    "split": "F.split(c('s'), ',')",
    "split_part": "F.split_part(c('s'), F.lit(','), F.lit(1))",
    "st_asbinary": "F.st_asbinary(F.st_geomfromwkb(F.unhex(F.lit('0101000000000000000000F03F0000000000000040'))))",
    "st_geogfromwkb": "F.st_geogfromwkb(F.unhex(F.lit('0101000000000000000000F03F0000000000000040')))",
    "st_geomfromwkb": "F.st_geomfromwkb(F.unhex(F.lit('0101000000000000000000F03F0000000000000040')))",
    "st_setsrid": "F.st_setsrid(F.st_geomfromwkb(F.unhex(F.lit('0101000000000000000000F03F0000000000000040'))), 4326)",
    "st_srid": "F.st_srid(F.st_geomfromwkb(F.unhex(F.lit('0101000000000000000000F03F0000000000000040'))))",
    "stack": "F.stack(F.lit(2), c('i'), c('l'))",
    "time_bucket": "F.time_bucket(F.expr(\"INTERVAL '1' HOUR\"), c('t'))",
    "time_diff": "F.time_diff(F.lit('HOUR'), F.to_time(F.lit('01:02:03')), F.to_time(F.lit('01:02:03')))",
    "time_from_micros": "F.time_from_micros(c('l'))",
    "time_from_millis": "F.time_from_millis(c('l'))",
    "time_from_seconds": "F.time_from_seconds(c('l'))",
    "time_to_micros": "F.time_to_micros(F.to_time(F.lit('01:02:03')))",
    "time_to_millis": "F.time_to_millis(F.to_time(F.lit('01:02:03')))",
    "time_to_seconds": "F.time_to_seconds(F.to_time(F.lit('01:02:03')))",
    "time_trunc": "F.time_trunc(F.lit('HOUR'), F.to_time(F.lit('01:02:03')))",
    "timestamp_add": "F.timestamp_add('DAY', c('i'), c('t'))",
    "timestamp_diff": "F.timestamp_diff('DAY', c('t'), c('t'))",
    "to_char": "F.to_char(c('c'), F.lit('999.99'))",
    "to_number": "F.to_number(F.lit('12'), F.lit('99'))",
    "to_time": "F.to_time(F.lit('01:02:03'))",
    "to_timestamp": "F.to_timestamp(c('s'))",
    "to_utc_timestamp": "F.to_utc_timestamp(c('t'), 'Asia/Tokyo')",
    "try_make_timestamp": "F.try_make_timestamp(c('i'), c('i'), c('i'), c('i'), c('i'), c('i'))",
    "try_make_timestamp_ntz": "F.try_make_timestamp_ntz(c('i'), c('i'), c('i'), c('i'), c('i'), c('i'))",
    "try_reflect": "F.try_reflect(F.lit('java.lang.Math'), F.lit('abs'), c('i'))",
    "try_to_number": "F.try_to_number(F.lit('12'), F.lit('99'))",
    "try_to_time": "F.try_to_time(F.lit('01:02:03'))",
    "try_variant_get": "F.try_variant_get(F.parse_json(c('k')), '$.x', 'int')",
    "tuple_difference_integer": "F.tuple_difference_integer(c('b'), c('b'))",
    "uniform": "F.uniform(2, 5, 0).isNotNull()",
    "unwrap_udt": "F.unwrap_udt(c('i'))",
    "variant_get": "F.variant_get(F.parse_json(c('k')), '$.x', 'int')",
    "when": "F.when(c('o'), c('s'))",
    "window": "F.window(c('t'), '1 day')",
    "window_time": "F.window_time(F.window(c('t'), '1 day'))",
    "xpath": "F.xpath(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('a/b/text()'))",
    "xpath_boolean": "F.xpath_boolean(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('a/b'))",
    "xpath_double": "F.xpath_double(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('sum(a/b)'))",
    "xpath_float": "F.xpath_float(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('sum(a/b)'))",
    "xpath_int": "F.xpath_int(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('sum(a/b)'))",
    "xpath_long": "F.xpath_long(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('sum(a/b)'))",
    "xpath_number": "F.xpath_number(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('sum(a/b)'))",
    "xpath_short": "F.xpath_short(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('sum(a/b)'))",
    "xpath_string": "F.xpath_string(F.lit('<a><b>1</b><b>2</b></a>'), F.lit('a/b'))",
    "zip_with": "F.zip_with(c('a'), c('a'), lambda x, y: x + y)",
}
#: Functions whose values differ from run to run.
VARYING = re.compile(
    r"rand|uuid|now|current_|curdate|local|unix_|session|user|version|shuffle|monoton|input_file|spark_"
)


def _candidates(parameter: inspect.Parameter) -> list[str]:
    kind = str(parameter.annotation)
    if "Callable" in kind:
        return list(LAMBDAS)
    found = list(COLUMNS) if "Column" in kind else []
    if re.search(r"\bint\b|\bstr\b|\bbool\b|Any|float|DataType", kind.replace("ColumnOrName", "")) or not found:
        found += PLAIN
    return found + [f"F.lit({each})" for each in ("'x'", "2", "'$.x'", "'day'", "'UTC'", "'yyyy-MM-dd'")]


def calls_of(name: str) -> Iterator[str]:
    """Yield calls of a function, the simplest ones first."""
    parameters = list(inspect.signature(getattr(F, name)).parameters.values())
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    lists = [_candidates(p) for p in needed]
    products = list(itertools.islice(itertools.product(*lists), 200_000))
    if len(lists) > 1:
        random.Random(name).shuffle(products)
    for arguments in products:
        yield f"F.{name}({', '.join(arguments)})"


def value(call: str, alias: str = "") -> Any:
    """Return the column of a call, as a text."""
    made = eval(call, {"F": F, "c": lambda name: F.col(alias + name)})
    name = call[2 : call.index("(")]
    return made.isNotNull().cast("string") if VARYING.search(name) else made.cast("string")


def functions() -> list[str]:
    """Return the names of the public functions that return a column."""
    found = []
    for name in dir(F):
        each = getattr(F, name)
        if name[0] == "_" or inspect.isclass(each) or not callable(each) or name not in F.__all__:
            continue
        if "Column" in str(inspect.signature(each).return_annotation):
            found.append(name)
    return found


def cells() -> dict[str, Callable[[Any], Any]]:
    """Return a cell for each call, of the functions that this PySpark has."""
    lines = (line.split("\t") for line in CALLS.read_text(encoding="utf-8").splitlines())
    return {f"function_{n}": lambda cell, call=call: _changes(cell, call) for n, call in lines if hasattr(F, n)}


def _changes(c: Any, call: str) -> Any:
    c.run("CREATE TABLE {t} USING delta AS " + rows_of_table())
    table = c.table.forPath(c.spark, c.p).alias("t")

    def update() -> None:
        table.update(set={"v": value(call)})

    def merge() -> None:
        found = table.merge(c.spark.range(2, 4).alias("s"), F.col("t.i") == F.col("s.id"))
        when = F.coalesce(value(call, "t.") >= "0", F.lit(True))
        found.whenMatchedUpdate(when, {"w": value(call, "t.")}).execute()

    def delete() -> None:
        table.delete((value(call) < "4") & (F.col("i") != 3))

    errors = [c.outcome(change) for change in (update, merge, delete)]
    return [*errors, c.answer(c.load(c.p).select("i", "v", "w"))]


def rows_of_table() -> str:
    """Return a query of the rows of `TABLE`, and of two columns to fill."""
    columns = ", ".join(each.split()[0] for each in TABLE)
    return f"SELECT *, CAST(NULL AS STRING) v, CAST(NULL AS STRING) w FROM VALUES {ROWS} AS t({columns})"


def main() -> None:
    """Search a call of each function that Spark accepts."""
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.sql(rows_of_table())
    lines = []
    for name in functions():
        analyzed = GIVEN.get(name)
        for number, call in enumerate(() if analyzed else calls_of(name)):
            if number > 400 or (analyzed and number > 60):
                break
            try:
                frame = rows.select(value(call))
            except Exception:  # noqa: BLE001 (this call is none)
                continue
            analyzed = analyzed or call
            try:
                if any(row[0] is not None for row in frame.collect()):
                    analyzed = call
                    break
            except Exception:  # noqa: BLE001 (this call fails on these values)
                pass
        print(name, analyzed, file=sys.stderr, flush=True)
        if analyzed is not None:
            lines.append(f"{name}\t{analyzed}\n")
    CALLS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
