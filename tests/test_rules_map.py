"""Every rule of the specification is proven by a test that exists, or waits for a later step of the roadmap."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAP = tomllib.loads((ROOT / "tests" / "rules.toml").read_text())
STEPS = {
    "Spark: read, plan, write",
    "administer",
    "change rows",
    "Spark: change and stream",
    "Lance",
    "for those who extend, embed and tune",
}
RULES = [str(number) for number in range(1, 66)]
#: The rows of the table of faults measured on a peer.
NUM_FAULTS = 12
#: Rules that concern readers: a step alone is not enough.
READERS = [*range(1, 31), 33, 38, 39, 40, 43, 48, 50, 53, 54, 55, *range(57, 63), 65]
ENTRIES = {**{f"rule {k}": v for k, v in MAP["rules"].items()}, **{f"fault {k}": v for k, v in MAP["faults"].items()}}


@cache
def known_tests(path: str) -> frozenset[str]:
    """Return the names of a file's tests: functions, and Class::method."""
    place = ROOT / path
    if not place.is_file():
        return frozenset()
    tree = ast.parse(place.read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(name for name in names if name.rpartition("::")[2].startswith("test_"))


def test_every_rule_is_mapped() -> None:
    assert sorted(MAP["rules"], key=int) == RULES
    assert len(MAP["faults"]) == NUM_FAULTS


@pytest.mark.parametrize("name", ENTRIES)
def test_mapped_tests_exist(name: str) -> None:
    entry = ENTRIES[name]
    assert set(entry) <= {"title", "tests", "step"}
    assert entry.get("tests") or entry.get("step"), f"{name} is mapped to nothing"
    for test in entry.get("tests", ()):
        path, _, function = test.partition("::")
        assert function in known_tests(path), f"{name} names {test}, which does not exist"


@pytest.mark.parametrize("name", ENTRIES)
def test_mapped_steps_are_those_of_the_roadmap(name: str) -> None:
    assert ENTRIES[name].get("step") in {None, *STEPS}


@pytest.mark.parametrize("number", READERS)
def test_rules_for_readers_have_tests(number: int) -> None:
    assert MAP["rules"][str(number)].get("tests")
