"""File actions to the JSON lines of a commit."""

from __future__ import annotations

import json

import pyarrow as pa

__all__ = ["format_actions"]


def format_actions(kind: str, table: pa.Table) -> bytes:
    """Return one line ``{"<kind>":{...}}`` a row; null columns are left out, maps become objects.

    Parameters
    ----------
    table : pyarrow.Table
        Columns by the action's field names: strings, integers, booleans, string maps, structs of these.
    """
    lines = []
    for row in table.to_pylist(maps_as_pydicts="strict"):
        value = {k: v for k, v in row.items() if v is not None}
        if isinstance(value.get("deletionVector"), dict):
            value["deletionVector"] = {k: v for k, v in value["deletionVector"].items() if v is not None}
        lines.append(json.dumps({kind: value}, separators=(",", ":"), ensure_ascii=False))
    return "".join(line + "\n" for line in lines).encode()
