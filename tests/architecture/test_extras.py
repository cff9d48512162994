"""What tests are skipped without is brought by the extra that CI installs, or listed here with a reason."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator

from tests.architecture.source import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
#: Which listed package brings a module of another name.
BROUGHT_BY = {"grpc": "pyspark"}
NOT_BROUGHT = {
    "delta": "delta-spark is the full tier's: it fetches jars when it first starts",
    "delta_row_checksum": "README's test command installs the examples",
    "delta_row_ttl": "README's test command installs the examples",
}


def packages(extra: str) -> Iterator[str]:
    """Yield the names of an extra's packages, and of the extras that it names."""
    for line in EXTRAS[extra]:
        name, _, inner = re.fullmatch(r"([\w-]+)(\[([\w,]+)\])?.*", line).groups()
        if name == "delta_core":
            for other in inner.split(","):
                yield from packages(other)
        else:
            yield name


def needed() -> set[str]:
    """Return the modules without which some test is skipped."""
    found = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
                argument = node.args[0]
                if isinstance(argument, ast.Constant):
                    found.add(str(argument.value).partition(".")[0])
    return found


def test_modules_that_tests_are_skipped_without_are_brought() -> None:
    found = needed() - sys.stdlib_module_names
    assert "deltalake" in found
    assert {m for m in found if BROUGHT_BY.get(m, m) not in set(packages("test"))} == set(NOT_BROUGHT)
