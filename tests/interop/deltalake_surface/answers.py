"""An answer in JSON: the value that a script ends with or what it raised, and the table afterwards.

Values that differ from run to run are replaced by what they are: places, names of files, identifiers, sizes of files,
durations and times of now. Rows are sorted. Of an exception there are the classes that a program can catch it by.
"""

from __future__ import annotations

import builtins
import datetime as dt
import decimal
import enum
import json
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pad

__all__ = ["commits_of", "describe", "describe_error", "describe_table", "is_equal"]

#: Keys of metrics and histories.
_MASKED_KEYS = re.compile(r"time|_ms$|Ms$|duration|[sS]ize|^path$|timestamp|^clientVersion$|^engineInfo$|^txnId$")
_MASKED_COLUMNS = {"path", "size_bytes", "modification_time", "_commit_timestamp"}
_FILE = re.compile(
    r"(part-|cdc-|deletion_vector_|[0-9a-f-]{36})[^/'\"\s]*\.(parquet|bin)|[0-9]{20}[^/'\"\s]*\.(json|parquet)"
)
_IDENTIFIER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PEER_ERRORS = ("CommitFailedError", "DeltaError", "DeltaProtocolError", "SchemaMismatchError", "TableNotFoundError")
#: What results of this library have beside the peer's keys and attributes.
_FURTHER = frozenset(
    (
        "fs",
        "numDeletionVectorRowsRemoved",
        "numDeletionVectorsRemoved",
        "rewrite_time_ms",
        "num_removed_bytes",
        "num_added_bytes",
        "num_deletion_vectors_added",
        "num_deletion_vectors_updated",
        "num_deletion_vectors_removed",
        "num_added_change_files",
        "num_target_rows_matched_updated",
        "num_target_rows_not_matched_by_source_updated",
        "num_target_rows_matched_deleted",
        "num_target_rows_not_matched_by_source_deleted",
        "num_target_change_files_added",
        "num_target_bytes_added",
        "num_target_bytes_removed",
        "num_target_deletion_vectors_added",
        "num_target_deletion_vectors_updated",
        "num_target_deletion_vectors_removed",
        "steps",
        "compression_level",
        "data_page_version",
        "auto_compact",
        "auto_compact_min_files",
        "auto_compact_max_file_size",
        "post_commit",
        "retries",
        "transactions",
    )
)
#: Classes of this library whose names, but not their use, differ.
_NAMES = {
    "AppTransaction": "Transaction",
    "CommitError": "CommitFailedError",
    "ProtocolError": "DeltaProtocolError",
    "Scan": "RecordBatchReader",
    "TableMetadata": "Metadata",
}
#: How many files and batches a writer makes of the same rows, or looks at, is its choice.
_COUNTS = frozenset(
    (
        "files",
        "num_added_files",
        "num_target_files_added",
        "num_target_files_scanned",
        "num_target_files_skipped_during_scan",
        "numBatches",
    )
)
#: What differs in every entry of a history: names of writers, and metrics, which have Spark's names here.
_OF_COMMITS = frozenset(
    (
        "clientVersion",
        "engineInfo",
        "isBlindAppend",
        "isolationLevel",
        "operationMetrics",
        "operationParameters",
        "readVersion",
        "txnId",
    )
)
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_SCALARS = (bool, int, float, str, bytes, type(None))
_LEVELS = 8


def describe(value: Any, root: Path) -> Any:
    """Return a value in JSON; places below ``root`` are masked."""
    return _Describer(root).value(value)


class _Describer:
    def __init__(self, root: Path) -> None:
        self._root = str(root)

    def text(self, value: str) -> str:
        text = value.replace(f"file://{self._root}", "<root>").replace(self._root, "<root>")
        return _IDENTIFIER.sub("<id>", _FILE.sub("<file>", text))

    def value(self, value: Any, level: int = 0) -> Any:
        if level > _LEVELS:
            return "..."
        if isinstance(value, enum.Enum) or type(value).__name__ == "TableFeatures":
            return {"enum": str(value)}
        if isinstance(value, float) and value != value:
            return "NaN"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int) and not isinstance(value, bool) and value > 1_600_000_000_000:
            return _masked_time(value)
        if isinstance(value, _SCALARS):
            return {"bytes": value.hex()} if isinstance(value, bytes) else value
        if isinstance(value, (dt.datetime, dt.date, dt.timedelta, decimal.Decimal)):
            return {type(value).__name__: str(value)}
        if isinstance(value, type):
            return {"class": value.__name__}
        if isinstance(value, Path):
            return {"path": self.text(str(value))}
        if hasattr(value, "_fields"):  # a named tuple
            named = {n: self.value(getattr(value, n), level + 1) for n in value._fields}
            return {type(value).__name__: {n: sorted(v) if isinstance(v, list) else v for n, v in named.items()}}
        if isinstance(value, Mapping):
            return {str(k): self._item(str(k), v, level) for k, v in value.items()}
        if isinstance(value, (set, frozenset)):
            return {"set": _sorted(self.value(v, level + 1) for v in value)}
        if isinstance(value, tuple):
            return {"tuple": [self.value(v, level + 1) for v in value]}
        if isinstance(value, list):
            listed = [self.value(v, level + 1) for v in value]
            return _sorted(listed) if all(isinstance(v, str) and "<file>" in v for v in listed) else listed
        return self._object(value, level)

    def _item(self, key: str, value: Any, level: int) -> Any:
        if key in ("filesAdded", "filesRemoved") and isinstance(value, str):  # JSON in deltalake's metrics
            return {"json": {k: v if k == "totalFiles" else "<number>" for k, v in json.loads(value).items()}}
        if _MASKED_KEYS.search(key) and isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return f"<{type(value).__name__}>"
        return self.value(value, level + 1)

    def _object(self, value: Any, level: int) -> Any:
        name = _NAMES.get(type(value).__name__, type(value).__name__)
        module = type(value).__module__
        if name == "DeltaTable":
            return {name: value.version()}
        if isinstance(value, BaseException):
            return {name: str(value)}
        if isinstance(value, pad.Dataset):
            return {"dataset": self._table(value.to_table())}
        if module.startswith("pandas"):
            if name == "DataFrame":
                types = {str(c): str(t) for c, t in value.dtypes.items()}
                return {"frame": types, "rows": self._rows(pa.Table.from_pandas(value, preserve_index=False))}
            return {name: str(value)}
        if hasattr(value, "__arrow_c_stream__") and name in ("Table", "RecordBatchReader", "ChunkedArray"):
            return {name: self._table(pa.RecordBatchReader.from_stream(value).read_all())}
        if hasattr(value, "__arrow_c_array__"):
            return {name: [self.value(v, level + 1) for v in pa.array(value).to_pylist()]}
        if hasattr(value, "to_json") and hasattr(value, "__arrow_c_schema__"):
            return {name: json.loads(value.to_json())}
        if hasattr(value, "__arrow_c_schema__"):
            return {name if name in ("Schema", "Field") else "DataType": _arrow_type(value, name)}
        if module.startswith(("deltalake", "delta_core")) or module == "builtins":
            public = {n: v for n in dir(value) if not n.startswith("_") and not callable(v := getattr(value, n, None))}
            if name in ("TableMerger", "TableAlterer", "TableOptimizer", "QueryBuilder"):
                return {name: {}}
            return {name: {n: self.value(v, level + 1) for n, v in public.items()}}
        return {name: "object"}

    def _table(self, table: pa.Table) -> Any:
        return {"schema": [_field(f) for f in table.schema], "rows": self._rows(table)}

    def _rows(self, table: pa.Table) -> Any:
        rows = []
        for row in table.to_pylist():
            rows.append([f"<{type(v).__name__}>" if n in _MASKED_COLUMNS else self._cell(v) for n, v in row.items()])
        return _sorted(rows)

    def _cell(self, value: Any) -> Any:
        return self.value(value)


def _masked_time(value: int) -> Any:
    """Return what a number that is a time of now in milliseconds is; times of the tables stay."""
    now = time.time() * 1000
    return "<now>" if abs(value - now) < 86_400_000 else value


def _field(field: pa.Field) -> str:
    metadata = {k.decode(): v.decode() for k, v in (field.metadata or {}).items()}
    return f"{field.name}: {field.type}{'' if field.nullable else ' not null'}{f' {metadata}' if metadata else ''}"


def _arrow_type(value: Any, name: str) -> Any:
    if name == "Schema":
        return [_field(f) for f in pa.schema(value)]
    if name == "Field":
        return _field(pa.field(value))
    try:
        return str(pa.DataType._import_from_c_capsule(value.__arrow_c_schema__()))
    except (AttributeError, TypeError, pa.ArrowInvalid):
        return [_field(f) for f in pa.schema(value)]


def _sorted(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=lambda v: json.dumps(v, sort_keys=True, default=str))


def describe_error(error: BaseException, errors: Any, root: Path) -> Any:
    """Return the classes of ``deltalake.exceptions`` and of Python that catch an exception, and its first words."""
    classes = {n for n in _PEER_ERRORS if isinstance(error, getattr(errors, n))}
    for cls in type(error).__mro__:
        if getattr(builtins, cls.__name__, None) is cls and cls not in (object, BaseException, Exception):
            classes.add(cls.__name__)
    if not isinstance(error, Exception):
        classes.add(type(error).__name__)
    words = _Describer(root).text(str(error)).split()[:8]
    return {"raises": sorted(classes), "message": " ".join(words)[:80]}


def commits_of(place: Path) -> list[Path]:
    """Return the commits in a table's log, by version."""
    return sorted(p for p in (place / "_delta_log").glob("[0-9]*.json") if p.name.count(".") == 1)


def describe_table(place: Path, root: Path, before: str) -> Any:
    """Return what the commits after one of a table did, if there are any, and the table's files and rows then."""
    commits = commits_of(place)
    checkpoints = len(list((place / "_delta_log").glob("*.checkpoint*.parquet")))
    if not commits or commits[-1].name == before:
        return {"checkpoints": checkpoints} if checkpoints else None
    found: dict[str, Any] = {"operations": [], "transactions": {}}
    definition: dict[str, Any] = {}
    old: dict[str, Any] = {}
    live: set[Any] = set()
    for path in commits:
        operation = None
        for line in path.read_text(encoding="utf-8").splitlines():
            for kind, action in (json.loads(line) if line.strip() else {}).items():
                if kind == "commitInfo":
                    operation = action.get("operation")
                elif kind == "add":
                    live.add(action["path"])
                elif kind == "remove":
                    live.discard(action["path"])
                elif kind == "cdc":
                    found["changes"] = True
                elif kind == "txn":
                    found["transactions"][action["appId"]] = action["version"]
                elif kind == "protocol":
                    definition["protocol"] = {k: sorted(v) if isinstance(v, list) else v for k, v in action.items()}
                elif kind == "metaData":
                    definition["metadata"] = _metadata(action)
        if path.name == before:
            old = dict(definition)
        found["operations"].append(operation)
    found |= {k: v for k, v in definition.items() if old.get(k) != v}
    return {**found, "files": len(live), "checkpoints": checkpoints, "rows": _rows_of(place, root)}


def _metadata(action: Mapping[str, Any]) -> Any:
    return {
        "name": action.get("name"),
        "description": action.get("description"),
        "partitionColumns": action["partitionColumns"],
        "configuration": action.get("configuration", {}),
        "schema": json.loads(action["schemaString"])["fields"],
    }


def _rows_of(place: Path, root: Path) -> Any:
    """Return the rows of a table by one reader, whichever package wrote them."""
    from delta_core import DeltaTable

    try:
        return describe(DeltaTable(str(place)).to_pyarrow_table(), root)["Table"]["rows"]
    except Exception as error:  # noqa: BLE001
        return {"unreadable": type(error).__name__}


def is_equal(theirs: Any, ours: Any) -> bool:
    """Return whether an answer is what a program for deltalake expects.

    An exception is if whatever catches the peer's catches it too, and it is of no other class of
    ``deltalake.exceptions``; its words are not compared.
    """
    if "raises" not in theirs or "raises" not in ours:
        further = _FURTHER - _keys(theirs)
        return bool(_comparable(theirs, further) == _comparable(ours, further))
    names, found = set(theirs["raises"]), set(ours["raises"])
    named = (found - names) & set(_PEER_ERRORS) - {"DeltaError"}
    tables = [_comparable(answer.get("table"), frozenset()) for answer in (theirs, ours)]
    return names <= found and not named and tables[0] == tables[1]


def _keys(value: Any) -> set[str]:
    """Return all keys within a value."""
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set[str]().union(*map(_keys, value)) if isinstance(value, list) else set()


def _comparable(value: Any, further: frozenset[str]) -> Any:
    """Leave out further keys and addresses of objects; text is one type, in whichever layout of Arrow."""
    if isinstance(value, dict):
        left = further | _OF_COMMITS if "operationParameters" in value else further
        return {
            k: "<count>" if k in _COUNTS and isinstance(v, int) else _comparable(v, left)
            for k, v in value.items()
            if k not in left
        }
    if isinstance(value, list):
        listed = [_comparable(v, further) for v in value]
        # partitions have no order
        return _sorted(listed) if all(isinstance(v, dict) and _is_partition(v) for v in listed) else listed
    if isinstance(value, str):
        return _ADDRESS.sub("0x", value).replace("string_view", "string").replace("binary_view", "binary")
    return value


def _is_partition(value: Mapping[str, Any]) -> bool:
    return all(v is None or isinstance(v, str) for v in value.values())
