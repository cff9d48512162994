"""Calls with the names of pylance, and their answers as JSON; the same calls are made of pylance and of ours.

``python -m tests.lance.compat_cases`` records the answers of pylance, and its arguments.
"""

from __future__ import annotations

import atexit
import inspect
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from delta_plugins.lance import open_dataset, write_lance

RECORDED = Path(__file__).parent / "fixtures" / "compat.json"
TYPE = pa.struct([("x", pa.float64()), ("n", pa.string())])
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("k", pa.int32()), ("p", TYPE), ("f", pa.float64())])
#: The names that are offered of each class, as the issue of the names lists them.
NAMES: Mapping[str, tuple[str, ...]] = {
    "module": ("dataset", "write_dataset"),
    "LanceDataset": (
        *("to_table", "to_batches", "scanner", "take", "count_rows", "head", "sample", "delete", "update"),
        *("merge_insert", "add_columns", "drop_columns", "alter_columns", "insert", "versions", "version"),
        *("latest_version", "checkout_version", "restore", "tags", "get_fragments", "get_fragment", "optimize"),
        *("cleanup_old_versions", "stats", "schema", "uri", "update_config", "config", "commit", "to_pandas"),
        *("create_scalar_index", "drop_index", "list_indices"),
    ),
    "LanceFragment": ("scanner", "to_table", "to_batches", "count_rows", "delete", "head", "to_pandas", "metadata"),
    "MergeInsertBuilder": (
        *("when_matched_update_all", "when_matched_delete", "when_not_matched_insert_all", "conflict_retries"),
        *("when_not_matched_by_source_delete", "execute", "retry_timeout", "when_matched_fail", "use_index"),
    ),
    "LanceScanner": (
        *("to_table", "to_batches", "to_reader", "count_rows", "head", "explain_plan", "analyze_plan"),
        *("projected_schema", "dataset_schema", "to_pandas"),
    ),
    "Tags": ("create", "update", "delete", "list", "list_ordered", "get_version", "replace_metadata"),
    "LanceStats": ("dataset_stats", "data_stats", "index_stats"),
    "DatasetOptimizer": ("compact_files",),
}


def rows(first: int, count: int) -> pa.Table:
    """Return rows with nulls, NaN, equal values and texts of several cases."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": [*ids],
            "s": [None if i % 7 == 2 else ("v" if i % 2 else "V") + str(i) for i in ids],
            "k": [None if i % 5 == 1 else i % 4 - 1 for i in ids],
            "p": [None if i % 6 == 3 else {"x": i / 2, "n": f"n{i}"} for i in ids],
            "f": [math.nan if i == 4 else i - 2.5 for i in ids],
        },
        SCHEMA,
    )


@cache
def _template() -> str:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    where = str(Path(folder) / "dataset")
    write_lance(where, rows(0, 10), max_rows_per_file=4)
    found = write_lance(where, rows(10, 3), "append")
    found.tags.create("first", 1)
    found.delete("id in (5, 11)")
    return where


def made(folder: Path) -> str:
    """Return a dataset of four fragments, with deleted rows, tags and several versions."""
    where = folder / "dataset"
    shutil.rmtree(where, ignore_errors=True)
    return str(shutil.copytree(_template(), where))


@cache
def _first_rows() -> Any:
    return plain(open_dataset(_template()).to_pyarrow_table().sort_by("id"))


class Case(NamedTuple):
    """One call; its values may be functions of the library and the dataset.

    Parameters
    ----------
    owner : str
        A key of `NAMES`.
    name : str
        A name of it.
    arguments : tuple
        Positional arguments.
    named : dict
        Others.
    """

    owner: str
    name: str
    arguments: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}
    then: Callable[[Any], Any] | None = None

    @property
    def title(self) -> str:
        """A name that stays the same."""
        shown = [*map(_shown, self.arguments), *(f"{k}={_shown(v)}" for k, v in self.named.items())]
        return f"{self.owner}.{self.name}({', '.join(shown)})" + (f".{self.then.__name__}" if self.then else "")


def _num_versions(found: Any) -> int:
    number: int = found.old_versions
    return number


class Of(NamedTuple):
    """A value that is made with the library and the dataset."""

    title: str
    make: Callable[[Any, Any], Any]


def _shown(value: Any) -> str:
    if isinstance(value, Of):
        return value.title
    if isinstance(value, pa.Table):
        return f"{value.num_rows} rows of {','.join(value.column_names)} {value.slice(0, 2).to_pylist()}"[:90]
    return repr(value.to_pylist() if isinstance(value, pa.Array) else value)[:90]


def _ordering(*parts: Any) -> Of:
    return Of(f"order{parts}", lambda lance, ds: [ordering(lance)(*parts)])


def ordering(lance: Any) -> Any:
    """Return the class that orders rows."""
    found = getattr(lance, "ColumnOrdering", None) if "delta" in lance.__name__ else None
    return found or inspect.getmodule(lance.LanceDataset).ColumnOrdering  # type: ignore[union-attr]


SECOND = Of("second", lambda lance, ds: [ds.get_fragments()[1]])
FILTERS = (
    *("id > 7", "`id` <= 3", "id = 3 or id == 4", "id != 3", "id <> 3", "id between 2 and 6", "not (k = 1)"),
    *("k is null", "k is not null", "k in (1, 2)", "k not in (1, 2)", "k in (1, null)", "s = 'v1'", 's = "v1"'),
    *("s like 'v%'", "s not like 'v%'", "s ilike 'v%'", "s >= 'v2'", "p.x > 2", "p['x'] > 2", "p is null"),
    *("id % 3 = 1", "k % 2 = -1", "-id < -8", "id + k > 9", "id * 2 - 1 > 9", "k + 2147483647 > 2147483647"),
    *("lower(s) = 'v6'", "upper(s) = 'V7'", "length(s) = 3", "coalesce(k, 9) = 9", "abs(k) = 1", "f > 1", "f < 0.5"),
    *("s || 'x' = 'v1x'", "true", "false", "id > 3 and (k > 0 or s is null)", "cast(id as string) = '3'"),
    *("case when k > 0 then id else -1 end > 5", "k = 1 is null", "s in ('v1', 'V2')", "ID > 7", "f = f"),
)
NO_SUCH = ("nope > 1", "id >", "")
COLUMNS: tuple[Any, ...] = (
    *(["id"], ["s", "id"], ["p.x"], ["p.n", "id", "p.x"], ["_rowid", "id"], ["s", "_rowaddr"], ["nope"]),
    *(["id", "id"], {"a": "id * 2"}, {"a": "k * 2", "b": "s", "c": "p.x"}, {"a": "id + k", "b": "upper(s)"}),
    *({"a": "k + k"}, {"a": "f * 1.5", "b": "-k"}, {"a": "k > 0"}, {"a": "id + 1", "b": "id"}, {"a": "nope"}),
    *(["p"], {"a": "s || '!'"}, {"a": "case when k > 0 then 1 else 2 end"}),
)
NEW = rows(20, 3)
MIXED = pa.concat_tables([rows(3, 2), rows(30, 1)]).set_column(1, "s", pa.array(["u3", "u4", "u30"]))
#: Two rows for each row that they match.
TWICE = pa.concat_tables([MIXED, MIXED])
SCANS: tuple[tuple[str, str], ...] = (
    *(("LanceDataset", n) for n in ("to_table", "to_batches", "scanner", "head", "to_pandas")),
    *(("LanceFragment", n) for n in ("to_table", "to_batches", "scanner", "to_pandas")),
)
#: Values of the arguments of scans, one for each argument that is offered.
SCAN_VALUES: Mapping[str, Any] = {
    "columns": ["s", "id"],
    "filter": "id > 1",
    "limit": 2,
    "offset": 1,
    "batch_size": 3,
    "scan_in_order": False,
    "prefilter": False,
    "with_row_id": True,
    "with_row_address": True,
    "use_scalar_index": False,
    "strict_batch_size": True,
    "blob_handling": "blobs_descriptions",
    "order_by": _ordering("s", False),
    "fragments": SECOND,
}


def num_rows_of_batches(found: Any) -> list[int]:
    """Return the rows of each batch."""
    return [b.num_rows for b in found]


def total(found: Any) -> Any:
    """Return the row count of a scan."""
    return found.count_rows()


def in_order(found: Any) -> Any:
    """Return chosen ids in order, which are chosen at random."""
    return sorted(set(found.column("id").to_pylist()) - {*range(13)}), found.num_rows, found.column_names


def _scan_cases() -> list[Case]:
    found = [Case("LanceDataset", "to_table", (), {"filter": f, "columns": ["id"]}) for f in (*FILTERS, *NO_SUCH)]
    found += [Case("LanceDataset", "count_rows", (f,)) for f in FILTERS[:8]]
    found += [Case("LanceDataset", "to_table", (c,)) for c in COLUMNS]
    found += [Case("LanceDataset", "take", ([4, 0, 4], c)) for c in COLUMNS]
    for owner, name in SCANS:
        first: tuple[Any, ...] = (4,) if name == "head" else ()
        parameters = inspect_parameters(owner, "scanner" if name == "head" else name)
        for argument, value in SCAN_VALUES.items():
            if argument in parameters and not (name == "head" and argument == "limit"):
                found.append(Case(owner, name, first, {argument: value}))
    table = [
        *({"limit": -1}, {"limit": 0}, {"offset": -1}, {"offset": 99}, {"limit": 3, "offset": 6}, {"batch_size": 0}),
        *({"limit": 3, "filter": "k > 0", "offset": 1}, {"with_row_id": True, "with_row_address": True, "limit": 9}),
        *({"columns": [], "with_row_id": True}, {"columns": {"a": "id"}, "with_row_address": True, "filter": "k = 1"}),
        *(
            {"columns": ["_rowid"], "with_row_id": True},
            {"order_by": _ordering("k", True), "columns": ["id"], "limit": 3},
        ),
        *({"order_by": _ordering("k", False, True), "columns": ["id", "k"]}, {"order_by": _ordering("nope")}),
        *({"blob_handling": "all_binary"}, {"blob_handling": "other"}, {"filter": pc.field("id") > 7}),
        *({"order_by": _ordering("f", True), "columns": ["id", "f"], "offset": 2},),
    ]
    found += [Case("LanceDataset", "to_table", (), t) for t in table]
    found += [Case("LanceDataset", "to_table", (["id"], "id > 2", 3, 1))]
    found += [Case("LanceDataset", "to_batches", (), {"batch_size": 3, "strict_batch_size": True}, num_rows_of_batches)]
    found += [Case("LanceDataset", "scanner", (), {"filter": f}, total) for f in ("id > 3", None)]
    found += [Case("LanceDataset", "scanner", (), {"limit": 3}, total)]
    found += [Case("LanceScanner", n) for n in ("to_table", "to_batches", "to_reader", "count_rows", "to_pandas")]
    found += [Case("LanceScanner", n) for n in ("projected_schema", "dataset_schema")]
    found += [Case("LanceScanner", "head", (2,))]
    found += [Case("LanceFragment", "count_rows", a) for a in ((), ("id > 5",), ("nope > 5",))]
    return [*found, Case("LanceFragment", "head", (2,))]


def _other_cases() -> list[Case]:
    merges = [
        (("when_matched_update_all", (), {}), ("when_not_matched_insert_all", (), {})),
        (("when_matched_update_all", ("target.id > 3 and source.s = 'u4'",), {}),),
        (("when_not_matched_insert_all", (), {}),),
        (("when_matched_delete", (), {}),),
        (("when_not_matched_by_source_delete", ("id < 2",), {}),),
        (("when_not_matched_by_source_delete", (), {}), ("when_matched_update_all", (), {})),
        (("when_matched_delete", (), {}), ("when_not_matched_insert_all", (), {})),
        (("conflict_retries", (3,), {}), ("when_not_matched_insert_all", (), {})),
        (),
    ]
    sources = (MIXED, MIXED.select(["id", "s"]), TWICE)
    return [
        *(Case("LanceDataset", n) for n in ("versions", "version", "latest_version", "schema", "uri", "config")),
        *(Case("LanceDataset", "take", (i,)) for i in ([7, 3, 7], pa.array([1]), [], [99])),
        *(Case("LanceDataset", "count_rows", a) for a in ((), (pc.field("id") > 7,))),
        *(Case("LanceDataset", "head", (n,)) for n in (0, 3, 99)),
        *(
            Case("LanceDataset", "sample", (3,), n, in_order)
            for n in ({}, {"columns": ["id"]}, {"randomize_order": False})
        ),
        Case("LanceDataset", "sample", (99,)),
        *(Case("LanceDataset", "delete", (p,)) for p in ("id = 3", "id > 7", "true", "id = 99", "nope = 1", "id >")),
        Case("LanceDataset", "delete", ("k = 1",), {"conflict_retries": 3}),
        Case("LanceDataset", "delete", ("k = 1",), {"retry_timeout": timedelta(seconds=30)}),
        *(
            Case("LanceDataset", "update", (u,), w)
            for u, w in (
                ({"s": "'new'"}, {"where": "id = 4"}),
                ({"s": "upper(s)", "k": "k + 1"}, {}),
                ({"k": "k * 2"}, {"where": "k is not null", "conflict_retries": 2}),
                ({"s": "'new'"}, {"where": "id = 99"}),
                ({"nope": "1"}, {}),
                ({"s": 5}, {}),
                ({"s": "'x'"}, {"where": "nope = 1"}),
                ({"f": "id + 0.5"}, {"where": "id < 3", "retry_timeout": timedelta(seconds=30)}),
            )
        ),
        *(Case("MergeInsertBuilder", "execute", (s, "id", m)) for m in merges for s in sources),
        Case("MergeInsertBuilder", "execute", (MIXED, ["id", "s"], merges[0])),
        Case("MergeInsertBuilder", "execute", (MIXED, "k", merges[2])),
        Case("MergeInsertBuilder", "execute", (MIXED.to_batches(), "id", merges[0]), {"schema": SCHEMA}),
        *(Case("LanceDataset", "merge_insert", a) for a in (("nope",), (), ([],))),
        *(
            Case("LanceDataset", "add_columns", (a,))
            for a in (
                {"x": "id * 2"},
                {"x": "k * 2", "y": "s || '!'"},
                pa.schema([("y", pa.string())]),
                pa.field("y", pa.int32()),
                [pa.field("y", pa.int32()), pa.field("z", pa.string())],
                {"id": "id * 2"},
                {"x": "nope"},
                pa.table({"r": [*range(11)]}),
                pa.table({"r": [*range(3)]}),
            )
        ),
        Case(
            *("LanceDataset", "add_columns"),
            (Of("batches", lambda lance, ds: iter(pa.table({"r": [*range(11)]}).to_batches())),),
            {"reader_schema": pa.schema([("r", pa.int64())])},
        ),
        *(Case("LanceDataset", "drop_columns", (c,)) for c in (["s"], ["p.x"], ["nope"], SCHEMA.names)),
        *(
            Case("LanceDataset", "alter_columns", a)
            for a in (
                ({"path": "s", "name": "text"},),
                ({"path": "k", "data_type": pa.int64()},),
                ({"path": "k", "data_type": pa.int64(), "name": "kk"}, {"path": "s", "name": "t"}),
                ({"path": "nope", "name": "t"},),
                ({"path": "p.x", "name": "xx"},),
                ({"path": "s"},),
            )
        ),
        *(Case("LanceDataset", "insert", (NEW,), n) for n in ({}, {"mode": "overwrite"}, {"mode": "other"})),
        Case("LanceDataset", "insert", (NEW.select(["id"]),)),
        *(Case("LanceDataset", "insert", (pa.table({c: ["a"]}),)) for c in ("nope", "id")),
        *(
            Case("LanceDataset", "checkout_version", (v,))
            for v in (1, "first", (None, 2), ("main", 1), 99, "no", (None, None))
        ),
        Case("LanceDataset", "restore"),
        *(
            Case("LanceDataset", "create_scalar_index", a, n)
            for a, n in (
                (("k", "BTREE"), {}),
                (("s", "bitmap", "mine"), {}),
                (("p.x", "ZONEMAP"), {"replace": False}),
                (("nope", "BTREE"), {}),
                (("p", "BTREE"), {}),
            )
        ),
        Case("LanceDataset", "drop_index", ("no",)),
        Case("LanceDataset", "list_indices"),
        *(
            Case("LanceDataset", "cleanup_old_versions", a, n, _num_versions)
            for a, n in (
                ((), {}),
                ((timedelta(0),), {}),
                ((timedelta(0),), {"error_if_tagged_old_versions": False, "delete_unverified": True}),
                ((None, 1), {"error_if_tagged_old_versions": False}),
                ((None, 3), {}),
                ((timedelta(days=1), 1), {}),
                ((None, 0), {}),
            )
        ),
        Case("LanceDataset", "get_fragments"),
        *(Case("LanceDataset", "get_fragment", (i,)) for i in (1, 99)),
        *(Case("LanceDataset", "update_config", (c,)) for c in ({"a": "b"}, {"a": "b", "c": None})),
        *(Case("LanceStats", "dataset_stats", a) for a in ((), (4,), (5,))),
        *(
            Case("Tags", "create", a)
            for a in (("t", 1), ("t",), ("t", "first"), ("t", ("main", 2)), ("t", (None, None)))
        ),
        *(Case("Tags", "create", a) for a in (("first", 2), ("t", 99), ("a/b", 1), ("t", "no"), ("", 1))),
        *(Case("Tags", "update", a) for a in (("first", 2), ("no", 2), ("first", 99), ("first",), ("first", "first"))),
        *(Case("Tags", "delete", (t,)) for t in ("first", "no")),
        *(Case("Tags", "get_version", (t,)) for t in ("first", "no")),
        *(Case("Tags", "list_ordered", a) for a in ((), ("asc",), ("other",))),
        Case("Tags", "list"),
        *(
            Case("DatasetOptimizer", "compact_files", (), n)
            for n in (
                {},
                {"target_rows_per_fragment": 4},
                {"target_rows_per_fragment": 2, "materialize_deletions": False},
                {"target_rows_per_fragment": 2, "materialize_deletions_threshold": 0.3},
                {"target_rows_per_fragment": 2, "materialize_deletions_threshold": 0.2},
                {"max_bytes_per_file": 1 << 30},
            )
        ),
        *(Case("Tags", "replace_metadata", a) for a in (("first", {"a": "b"}), ("no", {}))),
        *(Case("module", "dataset", (), {"version": v}) for v in (1, "first", 99, "no")),
        Case("module", "dataset", (), {"asof": datetime(2100, 1, 1, tzinfo=UTC).replace(tzinfo=None)}),
        Case("module", "dataset", (), {"asof": datetime(1999, 1, 1, tzinfo=UTC).replace(tzinfo=None)}),
        Case("module", "dataset", (), {"storage_options": {}}),
        Case("module", "dataset", (), {"uri": Of("nowhere", lambda lance, ds: ds.uri + "-no")}),
        *(
            Case("module", "write_dataset", (NEW,), {"mode": m, **n})
            for m, n in (
                ("append", {}),
                ("overwrite", {}),
                ("create", {}),
                ("other", {}),
                ("append", {"uri": Of("new", lambda lance, ds: ds.uri + "-new")}),
                ("create", {"uri": Of("new", lambda lance, ds: ds.uri + "-new"), "max_rows_per_file": 2}),
                ("create", {"uri": Of("new", lambda lance, ds: ds.uri + "-new"), "data_storage_version": "2.0"}),
                ("create", {"uri": Of("new", lambda lance, ds: ds.uri + "-new"), "data_storage_version": "stable"}),
                ("create", {"uri": Of("new", lambda lance, ds: ds.uri + "-new"), "enable_stable_row_ids": True}),
                ("append", {"commit_message": "hello", "transaction_properties": {"a": "b"}}),
                ("append", {"uri": Of("itself", lambda lance, ds: ds)}),
                ("overwrite", {"max_bytes_per_file": 1 << 30, "schema": SCHEMA}),
                ("append", {"storage_options": {}}),
            )
        ),
        Case("module", "write_dataset", ([{"a": 1}, {"a": None}],), {"mode": "overwrite"}),
        Case("module", "write_dataset", ({"a": [1, 2]},), {"mode": "overwrite"}),
        Case("module", "write_dataset", (NEW.to_batches(),), {"mode": "append", "schema": SCHEMA}),
        *(Case("LanceFragment", "delete", (p,)) for p in ("id = 4", "true", "id = 99", "nope = 1")),
        *(
            Case("LanceDataset", "commit", (Of(n, lambda lance, ds: ds.uri), Of(n, o)), {"read_version": v})
            for n, o, v in (
                ("deletion", _deletion, 3),
                ("whole", lambda lance, ds: lance.LanceOperation.Delete([], [1], "whole"), 3),
                ("append", _append, 3),
                ("append", _append, None),
                ("overwrite", _overwrite, 3),
            )
        ),
        Case(
            *("LanceDataset", "commit"),
            (Of("itself", lambda lance, ds: ds), Of("append", _append)),
            {"read_version": 1, "commit_message": "m", "max_retries": 3, "storage_options": {}},
        ),
    ]


def _deletion(lance: Any, ds: Any) -> Any:
    fragment = ds.get_fragments()[1]
    return lance.LanceOperation.Delete([fragment.delete("id = 4")], [], "id = 4")


def _append(lance: Any, ds: Any) -> Any:
    return lance.LanceOperation.Append(writer(lance)(NEW, ds.uri))


def _overwrite(lance: Any, ds: Any) -> Any:
    table = NEW.select(["id", "s"])
    return lance.LanceOperation.Overwrite(table.schema, writer(lance)(table, ds.uri, mode="overwrite"))


def writer(lance: Any) -> Any:
    """Return the function that writes fragments."""
    return getattr(lance, "write_fragments", None) or inspect.getmodule(lance.LanceFragment).write_fragments  # type: ignore[union-attr]


def recorded() -> dict[str, Any]:
    """Return what was recorded of pylance."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


_SURFACE: dict[str, Any] = {}


def inspect_parameters(owner: str, name: str) -> list[str]:
    """Return the arguments of a call of pylance."""
    if not _SURFACE:
        _SURFACE.update(json.loads(RECORDED.read_text())["surface"] if RECORDED.exists() else {})
    found: list[str] = _SURFACE[owner][name]
    return found


def cases() -> list[Case]:
    """Return all calls."""
    return [*_scan_cases(), *_other_cases()]


def classes(lance: Any, ds: Any) -> dict[str, Any]:
    """Return an object of each class that has names."""
    return {
        "module": lance,
        "LanceDataset": ds,
        "LanceFragment": ds.get_fragments()[1],
        "LanceScanner": ds.scanner(columns=["id", "s"], filter="id > 2"),
        "Tags": ds.tags,
        "LanceStats": ds.stats,
        "DatasetOptimizer": ds.optimize,
    }


def answer(lance: Any, case: Case, where: str) -> dict[str, Any]:
    """Return the answer of a call, and the dataset after it, as JSON."""
    ds = lance.dataset(where)
    shutil.rmtree(where + "-new", ignore_errors=True)
    place = {"out": None}

    def value(given: Any) -> Any:
        return given.make(lance, ds) if isinstance(given, Of) else given

    try:
        arguments, named = [value(a) for a in case.arguments], {k: value(v) for k, v in case.named.items()}
        if case.owner == "module":
            named = {"uri": where, **named}
            place["out"] = named["uri"] if isinstance(named["uri"], str) else None
        if case.owner == "MergeInsertBuilder":
            found = _merged(ds, *arguments, **named)
        else:
            target = classes(lance, ds)[case.owner]
            call = getattr(target, case.name)
            found = call(*arguments, **named) if callable(call) else call
        if case.then is not None:
            found = case.then(found)
        result: dict[str, Any] = {"answer": plain(found)}
    except BaseException as e:  # a panic of pylance is none of Exception
        if isinstance(e, KeyboardInterrupt):
            raise
        result = {"error": [c.__name__ for c in (OSError, ValueError, TypeError) if isinstance(e, c)] or ["other"]}
    latest = open_dataset(where)
    table = latest.to_pyarrow_table()
    result["rows"] = plain(table.sort_by("id") if "id" in table.column_names else table)
    if result["rows"] == _first_rows():
        result["rows"] = "as before"
    result["tags"] = {n: t.version for n, t in latest.tags().items() if latest.version != t.version or n == "t"}
    if case.name == "write_dataset" and "error" not in result:
        made_one = open_dataset(place["out"] or where)
        stats = made_one.stats()
        result["made"] = [
            *made_one.manifest.file_version,
            *(stats.num_rows, stats.num_fragments, made_one.manifest.has_stable_row_ids),
            made_one.history(1)[0]["operation"],
        ]
    return result


def _merged(ds: Any, source: Any, on: Any, clauses: Any, **named: Any) -> Any:
    builder = ds.merge_insert(on)
    for name, arguments, others in clauses:
        builder = getattr(builder, name)(*arguments, **others)
    return builder.execute(source, **named)


def plain(found: Any) -> Any:
    """Return an answer as JSON."""
    if isinstance(found, pa.Schema):
        return [f"{f.name}: {f.type}" for f in found]
    if isinstance(found, (pa.Table, pa.RecordBatch)):
        return {"schema": plain(found.schema), "rows": found.num_rows, "values": plain(found.to_pydict())}
    if isinstance(found, pa.RecordBatchReader) or inspect.isgenerator(found):
        batches = [b for b in found if b.num_rows]
        return plain(pa.Table.from_batches(batches)) if batches else []
    if isinstance(found, float) and math.isnan(found):
        return "NaN"
    if isinstance(found, Mapping):
        return {str(k): plain(v) for k, v in found.items() if k not in ("created_at", "updated_at", "manifest_size")}
    if isinstance(found, (list, tuple)):
        return [plain(v) for v in found]
    if found is None or isinstance(found, (bool, int, str, float)):
        return Path(found).name if isinstance(found, str) and found.startswith("/") else found
    if isinstance(found, datetime):
        return found.replace(tzinfo=None).isoformat(timespec="minutes")[:2]
    kind = type(found).__name__
    if kind == "DataFrame":
        return plain(pa.Table.from_pandas(found, preserve_index=False))
    if kind == "LanceDataset":
        return plain(found.to_table(columns=found.schema.names))
    if kind == "LanceScanner":
        return plain(found.to_table())
    if kind == "LanceFragment":
        return [found.fragment_id, found.count_rows()]
    if kind == "FragmentMetadata":
        return [found.id, found.physical_rows, found.num_deletions]
    if kind == "CompactionMetrics":
        return [found.fragments_removed, found.fragments_added, found.files_removed, found.files_added]
    if hasattr(found, "__next__"):
        return plain(pa.Table.from_batches([*found]))
    return kind


def surface(lance: Any) -> dict[str, dict[str, list[str]]]:
    """Return the arguments of each call of pylance, by class."""
    with tempfile.TemporaryDirectory() as folder:
        ds = lance.dataset(made(Path(folder)))
        objects = {**classes(lance, ds), "MergeInsertBuilder": ds.merge_insert("id")}
        return {owner: {n: _parameters(objects[owner], n) for n in names} for owner, names in NAMES.items()}


def _parameters(of: Any, name: str) -> list[str]:
    static = inspect.getattr_static(type(of), name, None)
    if isinstance(static, property) or not callable(getattr(of, name)):
        return []
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    try:
        listed = inspect.signature(getattr(of, name)).parameters.values()
    except ValueError:
        return []
    return [p.name for p in listed if p.kind not in variable]


def answers(lance: Any) -> dict[str, Any]:
    """Return the answers to all calls, by title."""
    with tempfile.TemporaryDirectory() as folder:
        return {c.title: answer(lance, c, made(Path(folder))) for c in cases()}


if __name__ == "__main__":
    import lance

    found = surface(lance)
    _SURFACE.update(found)
    listed = ",\n".join(f"{json.dumps(t)}: {json.dumps(a)}" for t, a in answers(lance).items())
    RECORDED.write_text(f'{{"surface": {json.dumps(found)},\n"answers": {{\n{listed}\n}}}}\n')
