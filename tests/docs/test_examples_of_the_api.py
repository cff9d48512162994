"""Every public member of the API has an example in its docstring, which runs here and shows a result."""

from __future__ import annotations

import doctest
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core
from delta_core import DeltaTable, transaction, write_deltalake
from tests.docs.api_members import OF_THE_KERNEL, Member, members

#: What an example needs that may not be installed.
NEEDED = {"to_pandas": "pandas", "to_polars": "polars", "QueryBuilder": "duckdb"}


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
NAMES = {name: getattr(home, name) for home in (transaction, delta_core) for name in home.__all__} | {
    "pa": pa,
    "rows": ROWS,
}


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
        "ChangeMethods.merge",
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
