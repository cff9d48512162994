"""The manual: it is built without a warning, and has every public name, hook, error and command."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest

from delta_core import api, errors
from delta_core.cli.app import COMMANDS
from delta_core.kernel.plugins import hookspecs
from tests.docs.api_members import members, public_objects
from tests.docs.blocks import ROOT

for name in ("mkdocs", "mkdocstrings", "material"):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def manual() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manual", ROOT / "docs" / "manual.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def anchors(site: Path) -> set[str]:
    """Return the names that the manual describes, by its inventory."""
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}


def _address(value: object) -> str:
    return f"{value.__module__}.{value.__qualname__}"  # type: ignore[attr-defined]


def test_every_public_object_is_described(anchors: set[str]) -> None:
    assert {_address(o) for o in public_objects().values()} - anchors == set()


def test_every_public_method_is_described(anchors: set[str]) -> None:
    described = {".".join(a.split(".")[-2:]) for a in anchors}
    names = {m.name for m in members() if "." in m.name and "._" not in m.name}
    assert len(names) > 100
    missing = {n for n in names if n not in described and not any(a.endswith(f".{n.split('.')[1]}") for a in anchors)}
    assert missing == set()


def test_every_name_for_plugins_is_described(anchors: set[str]) -> None:
    own = {
        _address(value)
        for name in api.__all__
        if hasattr(value := getattr(api, name), "__qualname__") and value.__module__.startswith("delta_core")
    }
    assert len(own) > 200
    assert own - anchors == set()


def test_every_hook_and_error_is_described(anchors: set[str]) -> None:
    assert {f"{hookspecs.__name__}.{hook}" for hook in hookspecs.RESULTS} - anchors == set()
    kinds = {n for n in errors.__all__ if isinstance(getattr(errors, n), type)}
    assert {f"{errors.__name__}.{n}" for n in kinds if issubclass(getattr(errors, n), Exception)} - anchors == set()


def test_every_command_is_described(site: Path) -> None:
    page = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f'id="delta-core-{name}"' not in page] == []


def test_search_finds_pages_of_each_kind(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    pages = {entry["location"].partition("#")[0] for entry in index["docs"]}
    expected = {"cookbook/upserts.html", "start/pandas.html", "reference/errors.html", "performance.html", "lance.html"}
    assert expected - pages == set()
    (entry,) = [
        e for e in index["docs"] if e["location"] == "reference/table.html#delta_core.table.delta_table.DeltaTable"
    ]
    assert "One version of a Delta table" in entry["text"]


def test_pages_have_no_markdown_left(site: Path) -> None:
    """A link or a directive that is not understood stays as text."""
    for page in ("reference/table.html", "reference/errors.html", "index.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert "::: " not in text, page
        assert "](" not in text, page


@pytest.mark.parametrize(
    ("text", "page", "expected"),
    [
        ("[a](../README.md)", "index.md", "[a](project/readme.md)"),
        ("[a](../../README.md#try-it)", "start/index.md", "[a](../project/readme.md#try-it)"),
        ("[a](docs/api.md)", "project/readme.md", "[a](../api.md)"),
        ("[a](../docs/api.md#sql)", "project/benchmarks.md", "[a](../api.md#sql)"),
        ("[a](../examples/plugins)", "index.md", "a"),
        ("[a](../examples/plugins/delta-row-ttl)", "index.md", "[a](project/examples/plugins/delta-row-ttl.md)"),
        ("[a](../setup.py)", "index.md", "a"),
        ("[a](nothing.md)", "project/readme.md", "[a](nothing.md)"),
        ("[a](https://delta.io)", "index.md", "[a](https://delta.io)"),
        ("[a](#here)", "index.md", "[a](#here)"),
        ("![a](../README.md)", "index.md", "![a](../README.md)"),
        ("```\nx[a](../README.md)\n```", "index.md", "```\nx[a](../README.md)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_manual(manual: ModuleType, text: str, page: str, expected: str) -> None:
    assert manual.relinked(text, page, manual.other_pages()) == expected


def test_a_name_for_plugins_that_no_page_has_is_an_error(manual: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {name: page for name, page in manual.PLUGIN_PAGES.items() if name != "schemas"}
    monkeypatch.setattr(manual, "PLUGIN_PAGES", pages)
    with pytest.raises(ValueError, match=r"names of delta_core\.api are on no page: .*ColumnMap"):
        manual.pages()
