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
    "collate": "F.collate(c('s'), 'UTF8_LCASE')",
    "create_map": "F.create_map(c('i'), c('s'))",
    "elt": "F.elt(c('i'), c('s'), c('k'))",
    "flatten": "F.flatten(F.array(c('a'), c('a')))",
    "greatest": "F.greatest(c('i'), c('l'))",
    "is_valid_variant": "F.is_valid_variant(F.parse_json(c('k')))",
    "is_variant_null": "F.is_variant_null(F.parse_json(c('k')))",
    "least": "F.least(c('i'), c('l'))",
    "make_timestamp": "F.make_timestamp(c('i'), c('i'), c('i'), c('i'), c('i'), c('i'))",
    "make_timestamp_ntz": "F.make_timestamp_ntz(c('i'), c('i'), c('i'), c('i'), c('i'), c('i'))",
    "map_from_entries": "F.map_from_entries(F.array(F.struct(c('i'), c('s'))))",
    "named_struct": "F.named_struct(F.lit('x'), c('i'))",
    "reflect": "F.reflect(F.lit('java.lang.Math'), F.lit('abs'), c('i'))",
    "schema_of_variant": "F.schema_of_variant(F.parse_json(c('k')))",
    "sha2": "F.sha2(c('s'), 256)",
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
