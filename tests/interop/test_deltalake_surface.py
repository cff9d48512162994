"""deltalake's public behaviour, call by call: its recorded answers, compared with those of this library.

A run of all tests tries a fixed part of the scripts; ``DELTA_CORE_LONG=1`` tries all of them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.docs.blocks import ROOT
from tests.example_counts import IS_LONG
from tests.interop.deltalake_surface import comparing, values

PAGE = (ROOT / "docs" / "moving-from-deltalake.md").read_text(encoding="utf-8")
#: One of so many scripts in a run of all tests, and the processes' share of them.
EVERY, PARTS = (1, 2) if IS_LONG else (25, 2)
LIBRARIES = ("pandas", "polars", "arro3", "datafusion")


def run(*arguments: str) -> str:
    """Run the command in a process of its own: this one may have imported the real package."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.interop.deltalake_surface", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_those_of_deltalake_or_listed(part: int) -> None:
    missing = [n for n in LIBRARIES if importlib.util.find_spec(n) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    found = json.loads(run("answer", "--sample", str(EVERY * PARTS), "--start", str(part * EVERY), "--workers", "1"))
    result = comparing.compare(found)
    assert result.compared > 200
    assert result.is_explained, result.text(comparing.recorded().answers, found)


@pytest.mark.slow
@pytest.mark.skipif(not IS_LONG, reason="needs the answers to all scripts: DELTA_CORE_LONG=1")
def test_every_listed_difference_is_needed_and_the_share_is_as_stated() -> None:
    found = json.loads(run("answer", "--workers", "2"))
    result = comparing.compare(found)
    assert set(result.listed) == {d.name for d in comparing.differences()}
    assert (f"{result.share:.1%}", f"{result.share_or_better:.1%}") == comparing.stated_shares()


def test_listed_differences_are_of_recorded_answers_and_on_the_page() -> None:
    theirs = {n: json.dumps(a) for n, a in comparing.recorded().answers.items()}
    for difference in comparing.differences():
        assert any(re.search(difference.script, n) and re.search(difference.theirs, a) for n, a in theirs.items()), (
            difference.name
        )
        assert difference.reason in PAGE, f"{difference.name} is not on the page: {difference.reason}"
    equal, or_better = (share.replace("%", " %") for share in comparing.stated_shares())
    assert f"{equal} of {len(theirs):,}" in PAGE
    assert f"{or_better} are the same or better on purpose" in PAGE


def test_an_error_where_deltalake_answers_is_better_only_where_its_answer_is_wrong_or_others_can_not_read_it() -> None:
    answered = [d for d in comparing.differences() if d.better and not d.theirs.startswith('^."raises"')]
    assert {d.name for d in answered if not d.ours.startswith('^."value"')} == {
        "append-only",
        "change-feed-of-other-tables",
        "conditions",
        "constraints-as-properties",
        "converted-rows",
        "files-that-are-not-there",
        "manifests",
        "overflows",
        "predicate-of-appends",
        "property-values",
        "required-columns",
        "unknown-columns",
    }


def test_every_callable_is_called_with_every_parameter() -> None:
    surface = comparing.recorded().surface
    for name, parameters in surface.items():
        if (
            parameters
            and not name.endswith((".count", ".index", ".with_traceback", ".add_note"))
            or name in values.CALLS
        ):
            assert (name in values.CALLS) != (name in values.NOT_CALLED), name
    scripts = "\n".join(c.script for c in comparing.recorded_cells())
    for name, (call, _) in values.CALLS.items():
        for parameter in (p.lstrip("*") for p in surface[name] or [] if not p.startswith("**")):
            assert parameter == "args" or f"{parameter}=" in scripts, f"{name}({parameter}=)"
        assert f"{call}(" in scripts


def test_scripts_are_those_that_were_recorded() -> None:
    assert [c.name for c in comparing.recorded_cells()] == list(comparing.recorded().answers)


@pytest.mark.peer
def test_recorded_names_are_those_of_the_release() -> None:
    pytest.importorskip("deltalake")
    module = "tests.interop.deltalake_surface.surface"
    code = f"import json; from {module} import public_surface; print(json.dumps(public_surface()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert comparing.recorded().version == importlib.metadata.version("deltalake")
    assert json.loads(done.stdout) == comparing.recorded().surface


def test_an_exception_equals_one_that_the_same_handlers_catch() -> None:
    from tests.interop.deltalake_surface.answers import is_equal

    def raised(*names: str, **others: Any) -> Any:
        return {"raises": list(names), "message": "x", **others}

    assert is_equal(raised("DeltaError"), raised("DeltaError", "ValueError"))
    assert not is_equal(raised("ValueError"), raised("DeltaError"))
    assert not is_equal(raised("DeltaError"), raised("DeltaError", "SchemaMismatchError"))
    assert not is_equal(raised("DeltaError"), {"value": None})
    assert not is_equal(raised("DeltaError"), raised("DeltaError", table={"files": 1}))
    assert not is_equal({"value": [1]}, {"value": {"tuple": [1]}})
