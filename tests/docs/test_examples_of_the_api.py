"""Every public member of the API has an example in its docstring, which runs here and shows a result."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import delta_core
from delta_core import DeltaTable, write_deltalake

#: Members that no program calls: only commits and operations of the library do, with objects of the kernel.
OF_THE_KERNEL = {
    "Snapshot.check_id_of",
    "Snapshot.dropped_rows",
    "Snapshot.redefined",
    "Snapshot.reload",
    "Snapshot.row_sets",
    "Snapshot.tombstone_tables",
    "Snapshot.with_checkpoint",
    "Snapshot.with_checksum",
    "Snapshot.with_commits",
}
#: What an example needs that may not be installed.
NEEDED = {"to_pandas": "pandas", "to_polars": "polars", "QueryBuilder": "duckdb"}


class Member(NamedTuple):
    """A class or function of the public API, or a public method or property of such a class."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name


# --- the members ---------------------------------------------------------------------------


def _function(value: Any) -> Any:
    """Return what carries the docstring of a method or property."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return getattr(value, "func", value)  # of a cached property


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties, and ``__iter__``, of a class and of its bases in delta_core."""
    bases = [b for b in kind.__mro__ if b.__module__.startswith("delta_core")]
    found = {name: _function(value) for base in reversed(bases) for name, value in vars(base).items()}
    for name, function in found.items():
        if inspect.isfunction(function) and (name == "__iter__" or not name.startswith("_")):
            yield name, function


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name that each name of a module is imported from, also for type checkers alone."""
    parsed = ast.parse(inspect.getsource(importlib.import_module(module)))
    statements = [n for n in ast.walk(parsed) if isinstance(n, ast.ImportFrom) and n.module]
    return {a.asname or a.name: (str(n.module), a.name) for n in statements for a in n.names}


def _returned(function: Any) -> Iterator[type]:
    """Yield the public classes of delta_core that an annotation names as returned."""
    module = importlib.import_module(function.__module__)
    for dotted in re.findall(r"[A-Za-z_][\w.]*", str(function.__annotations__.get("return", ""))):
        owner, _, name = dotted.rpartition(".")
        holder = vars(module).get(owner, module) if owner else module
        found = getattr(holder, name, None)
        if found is None and name in _imports(function.__module__):
            home, original = _imports(function.__module__)[name]
            found = getattr(importlib.import_module(home), original) if home.startswith("delta_core") else None
        if inspect.isclass(found) and found.__module__.startswith("delta_core") and not name.startswith("_"):
            yield found


def _objects() -> dict[str, Any]:
    """Return the classes and functions of the package, and the classes that a table and its streams return."""
    offered = {name: getattr(delta_core, name) for name in delta_core.__all__}
    found = {name: value for name, value in offered.items() if inspect.isclass(value) or inspect.isfunction(value)}
    stream = next(kind for kind in _returned(DeltaTable.follow) if kind.__name__ == "TableStream")
    for kind in (DeltaTable, stream):
        for name, function in _methods(kind):
            if name != "__iter__" or kind is stream:
                found |= {k.__name__: k for k in _returned(function)}
    return found


def members() -> list[Member]:
    """Return every member, those that two classes share once."""
    found: dict[str, Member] = {}
    for name, value in _objects().items():
        found.setdefault(f"{value.__module__}.{value.__qualname__}", Member(name, inspect.getdoc(value) or ""))
        for method, function in _methods(value) if inspect.isclass(value) else ():
            if method != "__iter__":
                own = Member(f"{function.__qualname__}", inspect.cleandoc(function.__doc__ or ""))
                found.setdefault(f"{function.__module__}.{function.__qualname__}", own)
    return [m for m in found.values() if m.name not in OF_THE_KERNEL]


MEMBERS = members()

# --- the objects that examples use ---------------------------------------------------------

ROWS = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"], "amount": [10.0, 20.0, 30.0]})
TRACKED = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
}
MAPPED = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}


def _table(place: Path) -> None:
    write_deltalake(place, ROWS.slice(0, 2))
    write_deltalake(place, ROWS.slice(2), mode="append")


def _tracked(place: Path) -> None:
    write_deltalake(place, ROWS, configuration=TRACKED)
    DeltaTable(place).delete("id = 2")


def _mapped(place: Path) -> None:
    schema = ROWS.schema.set(0, pa.field("id", pa.int32()))
    write_deltalake(place, ROWS.cast(schema), configuration=MAPPED)


def _by_city(place: Path) -> None:
    write_deltalake(place, ROWS, partition_by=["city"])


#: The tables of examples, by the names of the variables. The folders have these names too.
TABLES: dict[str, Callable[[Path], None]] = {
    "table": _table,
    "tracked": _tracked,
    "mapped": _mapped,
    "by_city": _by_city,
}
NAMES = {**{name: getattr(delta_core, name) for name in delta_core.__all__}, "pa": pa, "rows": ROWS}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with each of the tables."""
    folder = tmp_path_factory.mktemp("tables")
    for name, make in TABLES.items():
        make(folder / name)
    return folder


def namespace(text: str, made: Path, folder: Path) -> dict[str, Any]:
    """Return the names that an example may use, with copies of those tables that it names."""
    names = dict(NAMES)
    for name in TABLES:
        if re.search(rf"\b{name}\b", text):
            shutil.copytree(made / name, folder / name)
            names[name] = DeltaTable(name)
    return names


# --- the tests -----------------------------------------------------------------------------


def _examples(member: Member) -> list[doctest.Example]:
    section = re.search(r"^Examples\n--------\n(.*?)(?=\n\n\S|\Z)", member.text, re.DOTALL | re.MULTILINE)
    return doctest.DocTestParser().get_examples(section[1]) if section else []


def test_members_of_the_api_are_found() -> None:
    names = {m.name for m in MEMBERS}
    assert len(names) > 190
    assert names >= {
        "DeltaTable",
        "DeltaTable.merge",
        "TableMerger.when_matched_update_all",
        "TableAlterer.add_column",
        "TableOptimizer.compact",
        "PlannedRows.to_table",
        "StreamBatch.to_table",
        "VacuumPlan.save",
        "StructType.index",
        "QueryBuilder.execute",
        "write_deltalake",
    }
    assert {m.name for m in members()}.isdisjoint(OF_THE_KERNEL)


def test_every_member_of_the_api_has_an_example_with_a_result() -> None:
    assert [m.name for m in MEMBERS if not any(e.want for e in _examples(m))] == []


def test_no_example_is_skipped() -> None:
    skipped = [m.name for m in MEMBERS for e in _examples(m) if doctest.SKIP in e.options]
    assert skipped == []


@pytest.mark.parametrize("member", [m for m in MEMBERS if _examples(m)], ids=str)
def test_example_shows_what_it_returns(
    member: Member, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for word, package in NEEDED.items():
        if word in member.name:
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = namespace(member.text, made, tmp_path)
    report: list[str] = []
    example = doctest.DocTest(_examples(member), names, member.name, None, None, member.text)
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append).failed
    assert not failed, "".join(report)


def test_example_that_shows_a_wrong_result_fails(made: Path, tmp_path: Path) -> None:
    text = "Return one.\n\nExamples\n--------\n>>> 1\n2\n"
    (example,) = _examples(Member("one", text))
    assert (
        doctest.DocTestRunner(verbose=False)
        .run(doctest.DocTest([example], {}, "one", None, None, text), out=lambda _: None)
        .failed
    )
