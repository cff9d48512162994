"""Commands that print, export or explain rows: head, cat, explain, count, changes, diff, sql."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from delta_core import operations
from delta_core.catalogs import open_catalog
from delta_core.cli.follow import followed_changes
from delta_core.cli.json_values import values_as_json
from delta_core.cli.options import (
    Number,
    Target,
    WholeNumber,
    as_json,
    catalog_option,
    opening_options,
    selection,
    table_command,
)
from delta_core.cli.output import print_json, print_note, print_rows, row_dicts, values
from delta_core.cli.sinks import FORMATS, STDOUT, export, format_of
from delta_core.errors import EngineError, ExpressionError, InvalidArgumentError
from delta_core.formats import FormatTable
from delta_core.kernel.snapshot import Snapshot
from delta_core.schema.fields import Schema, arrow_schema
from delta_core.schema.types import Field, TypeDef
from delta_core.table.query import QueryBuilder

__all__ = ["cat", "changes", "count", "diff", "explain", "head", "sql"]

#: Turns values into JSON, of types that people and text formats get so.
_Texts = Callable[[pa.RecordBatchReader], pa.RecordBatchReader]
_METADATA = click.option(
    "--metadata",
    metavar="A,B",
    help="Metadata columns to add, such as _file_path, _row_id.",
    callback=lambda c, p, v: tuple(v.split(",")) if v else (),
)


def _destination(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--output",
        "-o",
        metavar="FILE",
        type=click.Path(dir_okay=False, allow_dash=True),
        help="Write to a file, which appears when it is complete, or to - (standard output). Its ending is the format.",
    )(command)
    return click.option("--format", "-f", "kind", type=click.Choice(FORMATS), help="How rows are written.")(command)


@click.command()
@table_command()
@click.option("--limit", "-n", type=WholeNumber(min=0), default=10, show_default=True, help="How many rows.")
@selection
@_METADATA
@as_json
def head(
    target: Target,
    limit: int,
    columns: list[str] | None,
    where: str | None,
    metadata: tuple[str, ...],
    json_output: bool,
) -> None:
    """Show some rows.

    \b
    Examples:
      delta-core head sales
      delta-core head sales -n 3 --columns id,amount --where "amount > 100"
    """
    table = target.readable()
    scan = table.scan(columns, metadata=metadata, predicate=where, limit=limit)
    _show(_texts_of(table)(scan.to_reader()).read_all(), json_output)


def _show(table: pa.Table, json_output: bool) -> None:
    if json_output:
        print_json(row_dicts(table))
        return
    numeric = [
        f.name
        for f in table.schema
        if pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
    ]
    rows = list(zip(*map(values, table.columns), strict=True))
    print_rows(table.column_names, rows, numeric)


@click.command()
@table_command()
@selection
@_METADATA
@click.option("--limit", "-n", type=WholeNumber(min=0), help="How many rows.")
@_destination
def cat(
    target: Target,
    columns: list[str] | None,
    where: str | None,
    metadata: tuple[str, ...],
    limit: int | None,
    kind: str | None,
    output: str | None,
) -> None:
    """Write rows as CSV, JSON lines, Parquet or Arrow, streaming.

    The format is --format, else the ending of --output, else CSV.

    \b
    Examples:
      delta-core cat sales > sales.csv
      delta-core cat sales -o may.parquet --where "month(day) = 5"
      delta-core cat sales --format json --columns id,amount --limit 100 | jq .amount
    """
    table = target.readable()
    scan = table.scan(columns, metadata=metadata, predicate=where, limit=limit)
    _export(scan.to_reader(), format_of(output, kind, "csv"), output, _texts_of(table))


@click.command()
@table_command()
@click.option("--limit", "-n", type=WholeNumber(min=0), help="How many rows.")
@selection
@_METADATA
@click.option("--run", is_flag=True, help="Read the rows too, and show counts and times.")
@as_json
def explain(
    target: Target,
    limit: int | None,
    columns: list[str] | None,
    where: str | None,
    metadata: tuple[str, ...],
    run: bool,
    json_output: bool,
) -> None:
    """Show which files and rows a read would touch, and why.

    \b
    Examples:
      delta-core explain sales --where "day = '2024-05-01' and amount > 100"
      delta-core explain sales --columns id --run
    """
    report = target.readable().scan(columns, metadata=metadata, predicate=where, limit=limit).explain(run)
    if json_output:
        print_json(report.to_dict())
    else:
        click.echo(str(report))


@click.command()
@table_command()
@click.option("--where", metavar="SQL", help="Count rows for which a predicate is true (Spark's SQL).")
@as_json
def count(target: Target, where: str | None, json_output: bool) -> None:
    """Count the rows, exactly.

    Rows are read only if the statistics of the files are not enough.

    \b
    Examples:
      delta-core count sales
      delta-core count sales --where "amount > 100"
    """
    rows = target.readable().scan([], predicate=where).count()
    if json_output:
        print_json({"count": rows})
    else:
        click.echo(rows)


@click.command()
@table_command(versioned=False)
@click.option("--start", type=WholeNumber(min=0), help="First version.  [default: 0]")
@click.option("--end", type=WholeNumber(min=0), help="Last version, inclusive.  [default: the latest]")
@click.option("--start-timestamp", metavar="TIME", help="Begin with the first commit at or after a time (ISO 8601).")
@click.option("--end-timestamp", metavar="TIME", help="End with the last commit at or before a time.")
@click.option("--follow", is_flag=True, help="Go on with later commits as they arrive, as JSON lines.")
@click.option("--interval", type=Number(min=0), default=1.0, help="With --follow: seconds between looks.")
@click.option("--timeout", type=Number(min=0), metavar="SECONDS", help="With --follow: stop after so long idle.")
@selection
@click.option("--limit", "-n", type=WholeNumber(min=0), help="How many rows.  [default: 50 as a table, else all]")
@_destination
@as_json
def changes(
    target: Target,
    start: int | None,
    end: int | None,
    start_timestamp: str | None,
    end_timestamp: str | None,
    follow: bool,
    interval: float,
    timeout: float | None,
    columns: list[str] | None,
    where: str | None,
    limit: int | None,
    kind: str | None,
    output: str | None,
    json_output: bool,
) -> None:
    """Show or write the rows that changed, commit by commit.

    Rows carry _change_type, _commit_version and _commit_timestamp. They are shown as a table unless --format
    or --output specify otherwise.

    \b
    Examples:
      delta-core changes sales --start 3 --end 5
      delta-core changes sales --start-timestamp 2024-05-01 --where "_change_type = 'delete'"
      delta-core changes sales --start 3 -o changes.parquet
      delta-core changes sales --start 3 --follow | jq ._change_type
    """
    if start is not None and start_timestamp is not None:
        raise click.UsageError("--start and --start-timestamp exclude each other.")
    if end is not None and end_timestamp is not None:
        raise click.UsageError("--end and --end-timestamp exclude each other.")
    found = target.table()
    if follow:
        others = {
            "--end": end,
            "--end-timestamp": end_timestamp,
            "--limit": limit,
            "--format": kind,
            "--output": output,
        }
        given = next((name for name, value in others.items() if value is not None), None)
        if given is not None or json_output:
            raise click.UsageError(f"--follow prints JSON lines without an end: it excludes {given or '--json'}.")
        options = {"start_version": start, "start_timestamp": start_timestamp, "columns": columns, "predicate": where}
        for step in followed_changes(found, interval, timeout, **options):
            export(_texts_of(found.snapshot())(step.to_reader()), "json", None)
        return
    reader = found.load_cdf(start or 0, end, start_timestamp, end_timestamp, columns, where)
    _show_or_export(reader, _texts_of(found.snapshot()), limit, kind, output, json_output)


@click.command()
@table_command(versioned=False)
@click.argument("start", type=WholeNumber(min=0))
@click.argument("end", type=WholeNumber(min=0), required=False)
@selection
@click.option("--limit", "-n", type=WholeNumber(min=0), help="How many rows.  [default: 50 as a table, else all]")
@_destination
@as_json
def diff(
    target: Target,
    start: int,
    end: int | None,
    columns: list[str] | None,
    where: str | None,
    limit: int | None,
    kind: str | None,
    output: str | None,
    json_output: bool,
) -> None:
    """Show or write the rows in which two versions differ, by their row ids.

    END is the latest version unless it is given. The table needs row tracking, and no change data feed. Rows
    carry _change_type, _row_id and _row_commit_version; rows that were only moved to other files are no difference.

    \b
    Examples:
      delta-core diff sales 3 5
      delta-core diff sales 3 --where "country = 'DE'" -o changed.parquet
    """
    found = target.table()
    reader = found.diff(start, end, columns, where).to_reader()
    _show_or_export(reader, _texts_of(found.snapshot()), limit, kind, output, json_output)


@click.command()
@click.argument("query")
@click.argument("tables", nargs=-1, metavar="[NAME=]TABLE...")
@opening_options
@catalog_option("Resolve the names schema.table of the query in a catalog")
@click.option("--engine", type=click.Choice(["datafusion", "duckdb"]), help="By default the first that is installed.")
@click.option("--limit", "-n", type=WholeNumber(min=0), help="How many rows.  [default: 50 as a table, else all]")
@_destination
@as_json
def sql(
    query: str,
    tables: tuple[str, ...],
    storage_options: dict[str, str],
    timezone: str,
    allow_external: Any,
    catalog: str | None,
    engine: str | None,
    limit: int | None,
    kind: str | None,
    output: str | None,
    json_output: bool,
) -> None:
    """Run a SQL query over tables, with DataFusion or DuckDB.

    A table is known in the query by NAME, by the last part of its path, or by its name in the catalog.

    \b
    Examples:
      delta-core sql "SELECT day, sum(amount) FROM sales GROUP BY day" data/sales
      delta-core sql "SELECT * FROM s JOIN customers c ON s.customer = c.id" s=data/sales data/customers -o
      joined.parquet
      delta-core sql "SELECT count(*) FROM sales.cities" --catalog names.db
    """
    if not tables and catalog is None:
        raise click.UsageError("Pass the tables of the query, or --catalog.")
    named = _named(tables)
    builder = QueryBuilder(engine=engine, catalog=None if catalog is None else open_catalog(catalog, storage_options))
    columns: dict[str, tuple[Field, str]] = {}
    types: dict[str, TypeDef] = {}
    for name, uri in named.items():
        target = Target(uri, None, None, storage_options, timezone, allow_external, "sql")
        table = target.readable()
        if not isinstance(table, Snapshot):
            builder.register(name, table)
            continue
        builder.register(name, target.table())
        stored = arrow_schema(table.schema, table.state.types)
        columns |= {f.name: (f, _text(s.type)) for f, s in zip(table.schema.members, stored, strict=True)}
        types |= table.state.types
    try:
        reader = builder.execute(query)
    except EngineError as e:
        text = " ".join(str(e).split()).rstrip(".")
        known = f" The query's tables are: {', '.join(named)}." if named else ""
        raise ExpressionError(f"{text}.{known}") from e
    # columns of the tables that the result has under their name and type: their types decide how values are shown
    found = {f.name: _text(f.type) for f in reader.schema}
    same = Schema([f for name, (f, text) in columns.items() if found.get(name) == text])
    texts = partial(values_as_json, schema=same, types=types)
    _show_or_export(reader, texts, limit, kind, output, json_output)


def _texts_of(table: Snapshot | FormatTable) -> _Texts:
    types = table.state.types if isinstance(table, Snapshot) else {}
    return partial(values_as_json, schema=table.schema, types=types)


def _text(kind: pa.DataType) -> str:
    return str(kind).replace(" not null", "")


def _named(tables: tuple[str, ...]) -> dict[str, str]:
    """Return URIs by the names that a query uses."""
    found: dict[str, str] = {}
    for text in tables:
        match = re.fullmatch(r"([A-Za-z_]\w*)=(.+)", text)
        if match is not None and not Path(text).exists():
            name, uri = match[1], match[2]
        else:
            last = re.sub(r"\W", "_", text.rstrip("/").rpartition("/")[2])
            name, uri = (f"_{last}" if not last or last[0].isdigit() else last), text
        if name.lower() in map(str.lower, found):
            raise InvalidArgumentError(f"Two tables are named {name!r}; name one of them: NAME={uri}.", name=name)
        found[name] = uri
    return found


def _show_or_export(
    reader: pa.RecordBatchReader,
    texts: _Texts,
    limit: int | None,
    kind: str | None,
    output: str | None,
    json_output: bool,
) -> None:
    if kind is not None or output is not None:
        _export(_limited(reader, limit), format_of(output, kind, "csv"), output, texts)
        return
    shown = 50 if limit is None and not json_output else limit
    rows = texts(_limited(reader, None if shown is None else shown + 1))
    table = rows.read_all()
    _show(table if shown is None else table.slice(0, shown), json_output)
    if shown is not None and table.num_rows > shown and not json_output:
        print_note(f"The first {shown} rows; --limit or --format shows more.")


def _limited(reader: pa.RecordBatchReader, limit: int | None) -> pa.RecordBatchReader:
    if limit is None:
        return reader

    def batches() -> Iterator[pa.RecordBatch]:
        left = limit
        for batch in reader if left else itertools.chain():
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _export(reader: pa.RecordBatchReader, kind: str, output: str | None, texts: _Texts) -> None:
    if output in (None, STDOUT) and kind in ("parquet", "arrow") and sys.stdout.isatty():
        raise click.UsageError(f"{kind} is binary: name a file with --output, or send it on to a program.")
    if kind in ("csv", "json"):
        reader = texts(reader)
    # a bar would be drawn between rows on the same terminal
    with nullcontext() if output in (None, STDOUT) else operations.progress_bar() as advance:
        rows = export(reader, kind, output, None if advance is None else _counted(advance))
    if output not in (None, STDOUT):
        print_note(f"{rows:,} rows written to {output}")


def _counted(advance: Callable[..., None]) -> Callable[[int], None]:
    """Return what is called with the rows of each batch."""
    total = 0

    def add(rows: int) -> None:
        nonlocal total
        total += rows
        advance(f"write: {total:,} rows")

    return add
