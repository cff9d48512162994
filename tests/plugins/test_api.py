"""The plugin API itself: what plugins may import, and what they do import."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import delta_core.api
import delta_plugins
from delta_core.kernel.plugins.registry import PluginRegistry

ROOT = Path(delta_plugins.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
FOLDERS = sorted(p.name for p in ROOT.iterdir() if (p / "__init__.py").exists())
#: Committers of stores, found by an entry point of their own; the other folders are table features.
COMMITTERS = {"dynamodb"}
FORMATS = {"lance"}
CATALOGS = {"sqlite_catalog", "unity_catalog"}
NEEDED = {"msgspec", "numpy", "pyarrow"}  # msgspec: what records are made of
#: What a committer's store needs: extras, imported when a store is used.
CLIENTS = {"dynamodb": {"boto3", "botocore"}, "unity_catalog": {"google"}}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            # the package itself contains nothing: its modules are imported by name
            names = [f"delta_core.{n.name}" for n in node.names] if node.module == "delta_core" else [str(node.module)]
            yield from names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_plugins_import_the_api_and_kernels_and_themselves_only(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    own = f"delta_plugins.{folder}"
    for name in imports(path):
        top = name.partition(".")[0]
        allowed = (
            top in NEEDED | CLIENTS.get(folder, set())
            or top in sys.stdlib_module_names
            or name in ("delta_core.api", own)
            or name.startswith(("delta_core.kernels", f"{own}."))
        )
        assert allowed, f"{path} imports {name}"


def exported() -> set[str]:
    """Return the names that type checkers see."""
    tree = ast.parse(Path(delta_core.api.__file__).read_text())
    return {
        str(name.asname)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("delta_core.")
        if node.module != "delta_core.runtime.lazy"
        for name in node.names
    }


def test_names_for_type_checkers_are_those_that_load() -> None:
    assert exported() == set(delta_core.api.__all__)


@pytest.mark.parametrize("name", delta_core.api.__all__)
def test_every_name_loads_from_its_home(name: str) -> None:
    assert getattr(delta_core.api, name) is not None


@pytest.mark.parametrize("name", delta_core.api.__all__)
def test_help_shows_every_name(name: str) -> None:
    found = getattr(delta_core.api, name)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__name__ in pydoc.render_doc(found, renderer=pydoc.plaintext)


def test_help_of_a_struct_names_its_fields_and_types() -> None:
    engine = inspect.signature(delta_core.api.Engine)
    assert engine.parameters["storage"].annotation == "Storage"
    assert engine.parameters["storage"].default is inspect.Parameter.empty
    assert engine.parameters["rejected_in_names"].default == ""


def test_every_name_loads_without_the_extras() -> None:
    code = (
        "import sys\n"
        "for name in ('polars', 'duckdb', 'numba', 'pyspark', 'dask', 'ray', 'boto3'):\n"
        "    sys.modules[name] = None\n"
        "from delta_core.api import *\n"
        "print(scan_polars.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "scan_polars\n", done.stderr


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = delta_core.api.nothing


def bundled() -> dict[str, str]:
    """Module by feature name; features that share their rules are modules of one folder."""
    registry = PluginRegistry()
    plugins = [registry.load(name) for name in registry.names()]
    return {p.FEATURE.name: p.__name__ for p in plugins if p.__name__.startswith("delta_plugins.")}


def test_every_folder_is_found_by_the_names_of_its_features() -> None:
    assert {module.split(".")[1] for module in bundled().values()} == set(FOLDERS) - COMMITTERS - FORMATS - CATALOGS


def test_every_bundled_feature_has_its_tests() -> None:
    here = Path(__file__).parent
    names = [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removesuffix("-preview")).lower() for name in bundled()]
    assert [name for name in names if not (here / f"test_{name}.py").exists()] == []
