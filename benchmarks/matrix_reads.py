"""Reads of the matrix, in SQL that all sides understand."""

from __future__ import annotations

from msgspec import Struct

from benchmarks.matrix_tables import Shape

__all__ = ["QUERIES", "READS", "Read"]


class Read(Struct, frozen=True):
    """What is read of a table.

    Parameters
    ----------
    named : tuple of str, optional
        Columns to read; None: all that the shape specifies.
    through : str
        How our side's rows are taken: ``scan``, or handed to ``polars`` or ``duckdb``, which run the SQL.
    select, group : str, optional
        What a query of them returns instead of columns, and by what it groups them.
    join : str, optional
        A JOIN clause, in which ``{table}`` is the table.
    checked : str
        The column of integers whose sum all sides must share.
    """

    title: str
    where: str | None = None
    named: tuple[str, ...] | None = None
    limit: int | None = None
    counts: bool = False
    through: str = "scan"
    select: str | None = None
    group: str | None = None
    checked: str | None = "id"
    join: str | None = None

    def columns(self, shape: Shape) -> tuple[str, ...] | None:
        """Return the columns to read of a table; None: all."""
        return self.named or shape.columns

    def sql(self, shape: Shape, table: str = "t") -> str:
        """Return the read as SQL."""
        what = self.select or ("count(*) as n" if self.counts else ", ".join(self.columns(shape) or ("*",)))
        where = f" where {self.where}" if self.where else ""
        group = f" group by {self.group}" if self.group else ""
        join = f" {self.join.format(table=table)}" if self.join else ""
        return f"select {what} from {table}{join}{where}{group}" + (
            "" if self.limit is None else f" limit {self.limit}"
        )


_KEYS = ", ".join(str(7919 * i) for i in range(100))
READS: dict[str, Read] = {
    "all": Read("all rows"),
    "two": Read("two columns", named=("id", "value")),
    "0.002%": Read("0.002 % of the rows", "value < 0.00002"),
    "0.2%": Read("0.2 %", "value < 0.002"),
    "1%": Read("1 %", "value < 0.01"),
    "10%": Read("10 %", "value < 0.1"),
    "50%": Read("50 %", "value < 0.5"),
    "string": Read("a string", "name = 'n7'"),
    "in": Read("100 keys", f"id in ({_KEYS})"),
    "null": Read("nulls", "opt is null"),
    "count": Read("count of 10 %", "value < 0.1", counts=True),
    "limit": Read("10 rows", limit=10),
    "polars": Read("1 % through Polars", "value < 0.01", through="polars"),
    "duckdb": Read("1 % through DuckDB", "value < 0.01", through="duckdb"),
}


def _query(
    title: str, select: str, where: str | None = None, group: str | None = None, join: str | None = None
) -> dict[str, Read]:
    """Return a query through each library, by its name and theirs."""
    return {
        f"{title} {name}": Read(f"{title} through {shown}", where, None, None, False, name, select, group, "n", join)
        for name, shown in (("polars", "Polars"), ("duckdb", "DuckDB"))
    }


#: Queries of whole tables that people run in these libraries.
QUERIES: dict[str, Read] = {
    **_query("sum", "count(value) as n, sum(value) as s"),
    **_query("group", "name, count(*) as n, avg(value) as a", group="name"),
    **_query("group half", "name, count(*) as n, max(id) as m", "value < 0.5", "name"),
    **_query("distinct", "count(distinct name) as n"),
    **_query(
        "join",
        "count(*) as n, max(id) as m",
        "value > least",
        join="join (select name as key, min(value) as least from {table} group by name) as g on {table}.name = g.key",
    ),
    "strings polars": Read("strings to Polars", named=("name",), through="polars", checked=None),
}
