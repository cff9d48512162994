"""The lower bounds of pyproject.toml are the versions that tests/oldest.txt pins."""

from __future__ import annotations

import re
import tomllib

from delta_core.scan.interop import OLDEST
from tests.architecture.source import ROOT

_BOUND = re.compile(r"([a-z0-9_-]+)(?:\[.*\])?>=([0-9.]+)")
#: Extras for users; the others are for tests and benchmarks.
_EXTRAS = ("spark", "s3", "gcs", "azure", "pandas", "polars", "sql", "numba")


def _padded(version: str) -> tuple[int, ...]:
    found = [int(n) for n in version.split(".")]
    return tuple(found + [0] * (3 - len(found)))


def test_oldest_versions_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # a bound of one system is above that of all
    lines = project["dependencies"] + [d for e in _EXTRAS for d in project["optional-dependencies"][e]]
    bounds = {m[1]: _padded(m[2]) for line in lines if "; sys_platform" not in line and (m := _BOUND.match(line))}
    texts = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in texts if not line.startswith("#"))
    assert {name: _padded(version) for name, version in pinned.items()} == bounds
    assert {name: (*version, 0) for name, version in OLDEST.items()}.items() <= bounds.items()
