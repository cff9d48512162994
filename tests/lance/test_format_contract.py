"""The Lance plugin passes FormatContract, and the contract catches deliberate mistakes of a format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core import open_table
from delta_core.engines.opening import make_engine
from delta_core.testing.format_contract import FormatContract, FormatExample
from delta_plugins.lance.format import FORMAT, LanceFormat

STABLE = str(Path(__file__).parent / "fixtures" / "stable")


def made_example() -> FormatExample:
    rows = open_table(STABLE).scan().to_table()
    return FormatExample(STABLE, rows, "id > 5", rows.filter(pc.field("id") > 5))


@pytest.fixture
def example() -> FormatExample:
    return made_example()


class TestLance(FormatContract):
    @pytest.fixture
    def table_format(self) -> Any:
        return FORMAT


class Wrong:
    """A format with one mistake in its tables."""

    name = "lance"
    split_options = LanceFormat.split_options

    def __init__(self, **changed: Any) -> None:
        self._changed = changed

    def recognise(self, engine: Any) -> bool:
        found: bool = self._changed.get("recognise", FORMAT.recognise)(engine)
        return found

    def open(self, engine: Any, uri: str, **options: Any) -> Any:
        own = self._changed.get("open")
        return _Table(FORMAT.open(engine, uri, **options) if own is None else own(engine, uri, options), self._changed)


class _Table:
    def __init__(self, table: Any, changed: Any) -> None:
        self.__dict__.update(table=table, changed=changed)

    def __getattr__(self, name: str) -> Any:
        changed = self.__dict__["changed"].get(name)
        found = getattr(self.__dict__["table"], name)
        return found if changed is None else changed(found)


def twice(engine: Any) -> bool:
    return FORMAT.recognise(engine) and FORMAT.recognise(engine)


def known_only(engine: Any, uri: str, options: Any) -> Any:
    return FORMAT.open(engine, uri, **{n: v for n, v in options.items() if n == "version"})


def latest(engine: Any, uri: str, options: Any) -> Any:
    return FORMAT.open(engine, uri)


def scan_without(name: str) -> Callable[[Any], Any]:
    return lambda scan: lambda *a, **o: scan(*a, **{n: v for n, v in o.items() if n != name})


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("recognises by two listings", {"recognise": twice}, "test_own_table_is_recognised_by_one_listing"),
    ("ignores options", {"open": known_only}, "test_unknown_option_is_a_type_error"),
    ("opens another version", {"open": latest}, "test_version_that_is_not_there_is_an_error"),
    ("ignores predicates", {"scan": scan_without("predicate")}, "test_counts_equal_the_rows"),
    ("ignores limits", {"scan": scan_without("limit")}, "test_limit_is_exact"),
    (
        "orders columns itself",
        {"scan": lambda scan: lambda c=None, **o: scan(c and sorted(c), **o)},
        "test_scan_has_the_requested_columns_in_their_order",
    ),
    (
        "history from the oldest",
        {"history": lambda history: lambda limit=None: history(limit)[::-1]},
        "test_history_is_newest_first_up_to_the_version",
    ),
    (
        "plans rows twice",
        {"plan_splits": lambda plan: lambda *a: pa.concat_tables([plan(*a), plan(*a)])},
        "test_splits_hold_each_row_once",
    ),
    (
        "ignores the part",
        {"scan_split": lambda scan: lambda split, *a, **o: scan({**split, "first_fragment": 0}, *a, **o)},
        "test_splits_hold_each_row_once",
    ),
    (
        "ignores predicates of parts",
        {"scan_split": lambda scan: lambda split, c=None, **o: scan(split, c)},
        "test_splits_have_columns_and_predicates_of_scans",
    ),
    (
        "pins the latest version",
        {"pinned": lambda pinned: {}},
        "test_pinned_options_open_this_version_in_another_process",
    ),
    ("names no command", {"commands": lambda commands: frozenset({*commands, "dance"})}, "test_commands_exist"),
    ("changes by no command", {"changes": lambda changes: frozenset({*changes, "purge"})}, "test_commands_exist"),
    ("describes by objects", {"describe": lambda describe: lambda: {"x": object()}}, "test_description_is_json"),
]


@pytest.mark.parametrize(("mistake", "changed", "test"), CASES, ids=[c[0] for c in CASES])
def test_mistake_is_caught(example: FormatExample, mistake: str, changed: dict[str, Any], test: str) -> None:
    def run(table_format: Any) -> None:
        check = getattr(FormatContract(), test)
        given = {
            "table_format": table_format,
            "example": example,
            "table": table_format.open(make_engine("arrow", STABLE, None), STABLE),
        }
        given["split_table"] = given["table"]
        code = check.__func__.__code__
        check(**{n: given[n] for n in code.co_varnames[1 : code.co_argcount]})

    run(Wrong())
    with pytest.raises((AssertionError, TypeError, pytest.fail.Exception)):
        run(Wrong(**changed))


def test_place_that_is_no_table_and_is_recognised_is_caught(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        FormatContract().test_other_places_are_not_recognised(Wrong(recognise=lambda engine: True), tmp_path)
