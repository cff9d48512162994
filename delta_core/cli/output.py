"""The output of commands: JSON documents, and tables and facts for readers."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from delta_core.kernels import compute as pc

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = [
    "confirm",
    "console",
    "is_json",
    "plain",
    "print_facts",
    "print_json",
    "print_note",
    "print_rows",
    "print_table",
    "quantity",
    "row_dicts",
    "to_text",
    "values",
]

_UTC_TIMES, _NANOSECONDS = pa.timestamp("us", "UTC"), pa.time64("ns")
#: Control characters are shown, never sent: a value must not steer the terminal.
_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {9: "\\t", 10: "\\n", 13: "\\r"}


#: Characters of a line if there is no terminal.
_WIDEST = 100_000
#: The variables that make rich take a pipe for a terminal, or for one of some width.
_TERMINALS = frozenset({"COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "JUPYTER_COLUMNS", "JUPYTER_LINES"})


def console(stderr: bool = False) -> Console:
    """Return where text goes. Without a terminal there are no colours, and no line is cut or wrapped."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDEST
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def plain(value: Any) -> Any:
    """Return a value as JSON can represent it.

    Times become ISO 8601 text, decimals text, bytes base64, maps objects, NaN and the infinities text.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return (
            value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        )
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else to_text(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, frozenset, set)):
        return [plain(v) for v in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value) if isinstance(value, (decimal.Decimal, dt.timedelta, uuid.UUID)) else repr(value)


def row_dicts(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Return rows as JSON can represent them."""
    names, columns = batch.schema.names, [[plain(v) for v in values(c)] for c in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column's values as Python's; of a map's equal keys the last counts.

    A map whose keys are nested becomes a list of ``key`` and ``value``. A time beyond what Python has dates for becomes
    the text of its number: days, or microseconds, since 1970. A time of day in nanoseconds, which Python's
    lacks, becomes text.
    """
    if column.type == _UTC_TIMES and isinstance(column, pa.ChunkedArray):
        # PyArrow imports pandas for a value with a zone
        local = [v for part in column.chunks for v in values(part.view(pa.timestamp("us")))]
        return [v.replace(tzinfo=dt.UTC) if isinstance(v, dt.datetime) else v for v in local]
    if "time64[ns]" in str(column.type) and (texts := _with_leaves(column.type, _text_type)) != column.type:
        column = pc.cast(column, texts)
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = [_value(scalar) for scalar in column]
    return [_with_objects(v, column.type) for v in found] if _has_objects(column.type) else found


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        number = pc.cast(scalar, _with_leaves(scalar.type, _number_type)).as_py()
        return str(number) if isinstance(number, int) else number


def _has_objects(kind: pa.DataType) -> bool:
    """Whether a type has a map or JSON text at any depth."""
    if pa.types.is_map(kind) or is_json(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_objects(kind.field(i).type) for i in range(kind.num_fields))


def is_json(kind: pa.DataType) -> bool:
    """Whether a type is the extension type of JSON text."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json"


def _number(text: str) -> float | str:
    """Return a number of JSON; the text of one that has more digits than a double keeps."""
    found = float(text)
    return found if decimal.Decimal(text) == decimal.Decimal(repr(found)) else text


def _with_objects(value: Any, kind: pa.DataType) -> Any:
    """Return a value with dicts for maps that are lists of pairs, if the keys allow it, and values for JSON text."""
    if value is None:
        return None
    if is_json(kind):
        return json.loads(value, parse_float=_number)
    if pa.types.is_map(kind):
        pairs = [(_with_objects(k, kind.key_type), _with_objects(v, kind.item_type)) for k, v in value]
        return [{"key": k, "value": v} for k, v in pairs] if pa.types.is_nested(kind.key_type) else dict(pairs)
    if pa.types.is_struct(kind):
        return {f.name: _with_objects(value[f.name], f.type) for f in kind}
    return [_with_objects(v, kind.value_type) for v in value] if pa.types.is_nested(kind) else value


def _number_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of numbers instead of times."""
    if pa.types.is_temporal(kind):
        return pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
    return kind


def _text_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of texts instead of times of day in nanoseconds."""
    return pa.string() if kind == _NANOSECONDS else kind


def _with_leaves(kind: Any, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with others in place of those that have no parts."""

    def part(f: pa.Field) -> pa.Field:
        return f.with_type(_with_leaves(f.type, change))

    if pa.types.is_struct(kind):
        return pa.struct([part(f) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(part(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(part(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(part(kind.value_field), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(part(kind.key_field), part(kind.item_field))
    return change(kind)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def to_text(value: Any) -> str:
    """Return a value as one line of text; null is empty."""
    if value is None:
        return ""
    value = plain(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.translate(_SHOWN)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    numeric: Sequence[str] = (),
    null: str = "",
    whole: Sequence[str] = (),
) -> None:
    """Print a table; numeric columns are set to the right, long values fold unless their column is kept whole."""
    lines = _plain_lines(columns, rows := list(rows), numeric, null) if _is_plain() else None
    if lines is not None:
        sys.stdout.write("".join(line.rstrip() + "\n" for line in lines))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in columns:
        justify: Any = "right" if name in numeric else "left"
        table.add_column(Text(to_text(name)), justify=justify, overflow="fold", no_wrap=name in whole)
    for row in rows:
        table.add_row(*(_cell(v, null) for v in row))
    _show(console(), table)


def _is_plain() -> bool:
    """Whether output goes to a pipe or a file, without colours, and no line is cut or wrapped."""
    return not sys.stdout.isatty() and not _TERMINALS & os.environ.keys()


def _plain_lines(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[str], null: str
) -> list[str] | None:
    """Return the lines of a table as rich has them; None for texts other than ASCII, whose width only rich reports.

    The import of rich takes longer than a small read.
    """
    texts = [[to_text(name) for name in columns], *([null if v is None else to_text(v) for v in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    if (
        not columns
        or 0 in widths
        or sum(widths) + 3 * len(widths) > _WIDEST
        or not all(t.isascii() for row in texts for t in row)
    ):
        return None
    places = [">" if name in numeric else "<" for name in columns]
    head, *body = (
        "   ".join(f"{t:{place}{width}}" for t, place, width in zip(row, places, widths, strict=True)) for row in texts
    )
    return [head, "\u2500" * len(head), *body]


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[str] = ()) -> None:
    """Print rows of data: as a table if the terminal is wide enough for one, else field by field."""
    if _is_plain():
        print_table(columns, rows, numeric, null="NULL")
        return
    from rich.text import Text

    out = console()
    texts = [[to_text(v) for v in row] for row in rows]
    widths = [max(map(len, (name, *column))) for name, *column in zip(columns, *texts, strict=True)]
    if not out.is_terminal or sum(min(w, 20) + 3 for w in widths) <= out.width:
        print_table(columns, rows, numeric, null="NULL")
        return
    pad = max(map(len, columns))
    for number, row in enumerate(rows, 1):
        out.print(Text(f"row {number}", style="dim"))
        for name, value in zip(columns, row, strict=True):
            out.print(Text.assemble((to_text(name).ljust(pad + 2), "bold"), _cell(value, "NULL")))


def _cell(value: Any, null: str) -> Text:
    from rich.text import Text

    return Text(null, style="dim") if value is None else Text(to_text(value))


def _show(out: Console, table: Any) -> None:
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one a line; a Mapping or list as value takes a line each."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        lines: list[Any] = [value]
        if isinstance(value, Mapping):
            lines = [f"{k} = {to_text(v)}" for k, v in value.items()] or ["-"]
        elif isinstance(value, (list, tuple)):
            lines = list(value) or ["-"]
        for i, line in enumerate(lines):
            grid.add_row(Text("" if i else name), Text("-" if line is None else to_text(line)))
    _show(console(), grid)


def print_note(text: str) -> None:
    """Print a remark on stderr, so that it never mixes with data."""
    from rich.text import Text

    console(stderr=True).print(Text(text, style="dim"))


def confirm(question: str) -> None:
    """Require a confirmation before something that can't be undone; end the program unless the answer is yes.

    Raises
    ------
    click.UsageError
        If the input has no answer.
    click.Abort
        If the answer is no.
    """
    click.echo(f"{question} [y/N]: ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise click.UsageError("Nothing was changed: a confirmation is required, and there was no input. Pass --yes.")
    if answer.strip().lower() not in ("y", "yes"):
        raise click.Abort


def quantity(size: int | None) -> str:
    """Return bytes in readable units: ``1.5 MiB``."""
    if size is None:
        return "-"
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:,.1f} {unit}"
