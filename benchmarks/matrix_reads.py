"""Reads of the matrix, in SQL that all sides understand."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from benchmarks.matrix_tables import Shape

__all__ = ["READS", "Read"]


class Read(Struct, frozen=True):
    """What is read of a table.

    Parameters
    ----------
    named : tuple of str, optional
        Columns to read; None: all that the shape specifies.
    through : str
        How our side's rows are taken: ``scan``, or handed to ``polars`` or ``duckdb``, which run the SQL.
    """

    title: str
    where: str | None = None
    named: tuple[str, ...] | None = None
    limit: int | None = None
    counts: bool = False
    through: str = "scan"

    def columns(self, shape: Shape) -> tuple[str, ...] | None:
        """Return the columns to read of a table; None: all."""
        return self.named or shape.columns

    def sql(self, shape: Shape, table: str = "t") -> str:
        """Return the read as SQL."""
        what = "count(*) as n" if self.counts else ", ".join(self.columns(shape) or ("*",))
        where = f" where {self.where}" if self.where else ""
        return f"select {what} from {table}{where}" + ("" if self.limit is None else f" limit {self.limit}")


_KEYS = ", ".join(str(7919 * i) for i in range(100))
READS: Mapping[str, Read] = {
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
