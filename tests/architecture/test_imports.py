"""One direction: who may import whom (docs/architecture.md)."""

from __future__ import annotations

import ast
import builtins
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, imports, is_ours, modules, tree

#: From top to bottom: a module imports only what is above it. A folder is as a whole (of `engines` its seam is by
#: itself); inside it only cycles are forbidden. Names that a package loads on first use count as imported.
LAYOUT = (
    "errors", "exceptions", "runtime", "schema", "types", "kernels", "expressions", "engine seam", "handles",
    "catalogs", "storage", "scan", "formats", "parquet", "kernel", "snapshot", "operations", "api", "table",
    "interop", "transaction", "alterer", "optimizer", "writer", "query", "version", "deltalake_names",
    "distributed", "", "as_deltalake", "cli", "__main__", "testing", "engines", "spark", "dask", "ray",
)  # fmt: skip
#: What the core imports of `engines`.
SEAM = tuple(
    ["engines", name] for name in ("conditions", "engine", "interface", "opening", "records", "writer_properties")
)
#: The only module that imports by text.
BY_TEXT = {
    "delta_core.runtime.lazy": "the helper",
    "delta_core.runtime.entry_points": "what installed packages offer",
    "delta_core.as_deltalake": "runs the module that its command line names",
}
#: What reaches for files or another process's engine, and who may: engines, and the public modules whose task it is.
OUTWARD = ("fsspec", "pyarrow.fs", "pyarrow.json", "pyarrow.parquet", "pyarrow.dataset", "pyspark")
OUTWARD_FACES = {
    "delta_core.engines": "engines do the I/O",
    "delta_core.storage": "places",
    "delta_core.parquet": "data files",
    "delta_core.testing": "makes tables for contract suites, independently of what it tests",
    "delta_core.scan.interop": "hands rows to other libraries as their own objects",
    "delta_core.table.interop": "hands a table to other libraries as their own objects",
    "delta_core.deltalake_names": "offers a table's folder as a file system of PyArrow",
    "delta_core.cli": "writes what the user requested to a file",
}


def _under(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _place(name: str) -> int:
    parts = name.split(".")[1:]
    part = "engine seam" if parts in SEAM else next(iter(parts), "")
    assert part in LAYOUT, f"{name} has no place in the layout: add it to docs/architecture.md and LAYOUT"
    return LAYOUT.index(part)


def test_modules_form_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for i in imports():
        if i.imported in graph and i.imported != i.importer:
            graph[i.importer].add(i.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as e:
        pytest.fail(" <- ".join(e.args[1]))


def test_own_packages_are_imported_at_module_level_only() -> None:
    inside = [str(i) for i in imports() if i.function and is_ours(i.imported)]
    assert not inside, "\n".join(inside)


def _calls(module: str) -> list[tuple[str, ast.Call]]:
    """Return the calls of a module, each with the function's own name; methods by the name behind the last dot."""
    calls = [node for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func).rpartition(".")[2], node) for node in calls]


def test_modules_import_by_text_in_one_place() -> None:
    importing = {"import_module", "__import__", "spec_from_file_location", "resolve_name", "run_module"}
    wrong = [f"{m}:{c.lineno}" for m in modules() if m not in BY_TEXT for name, c in _calls(m) if name in importing]
    assert wrong == []


def test_only_plugins_texts_are_loaded_as_objects() -> None:
    found = [(m, c) for m in modules() for name, c in _calls(m) if name == "load_object"]
    assert found
    assert [f"{m}:{c.lineno}" for m, c in found if isinstance(c.args[0], (ast.Constant, ast.JoinedStr))] == []


def _blocks(module: str) -> list[ast.With]:
    """Return the blocks of a module whose imports are loaded late."""
    found = [n for n in tree(module).body if isinstance(n, ast.With)]
    return [n for n in found if ast.unparse(n.items[0].context_expr) == "lazy_imports(__name__)"]


#: By their text: each worker that runs tests evaluates it, and parsing all modules takes seconds.
LATE = [m for m, path in modules().items() if "\nwith lazy_imports(__name__):" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("module", LATE)
def test_module_has_the_names_that_load_late(module: str) -> None:
    (block,) = _blocks(module)
    assert block is tree(module).body[-1], "names are defined before the block"
    names = [a.asname for node in block.body if isinstance(node, ast.ImportFrom) for a in node.names]
    assert all(isinstance(node, ast.ImportFrom) for node in block.body)
    assert None not in names
    made = import_module(module)
    assert set(names) <= set(made.__all__) <= set(dir(made))
    if module != "delta_core.engines.spark":
        assert [name for name in names if getattr(made, str(name), None) is None] == []


def test_names_load_late_by_one_kind_of_block() -> None:
    assert len(LATE) > 20
    assert [m for m in modules() if any(m.endswith(f".{n}") for n in ("parts",)) and m not in LATE] == []


def test_module_without_such_a_name_reports_it() -> None:
    with pytest.raises(AttributeError, match=r"module 'delta_core\.operations' has no attribute 'nothing'"):
        _ = import_module("delta_core.operations").nothing


def test_threads_that_import_meanwhile_get_their_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a block runs, `__import__` is another function: other modules' imports pass through it."""
    (tmp_path / "late_one.py").write_text(
        "from delta_core.runtime.lazy import lazy_imports\nimport other_one\n"
        "with lazy_imports(__name__):\n    from other_one import value as value\n"
    )
    (tmp_path / "other_one.py").write_text("import json\nvalue = json.dumps({})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = builtins.__import__
    made = import_module("late_one")
    assert builtins.__import__ is before
    assert made.value == "{}"
    assert made.__all__ == ["value"]


def test_core_imports_only_what_is_above() -> None:
    wrong = [
        str(i)
        for i in imports()
        if _under(i.importer, "delta_core") and _under(i.imported, "delta_core")
        if _place(i.imported) > _place(i.importer)
    ]
    assert not wrong, "\n".join(wrong)


def test_core_imports_no_plugin() -> None:
    wrong = [str(i) for i in imports() if _under(i.importer, "delta_core") and _under(i.imported, "delta_plugins")]
    assert not wrong, "\n".join(wrong)


def test_plugins_import_the_api_the_kernels_and_themselves_only() -> None:
    wrong = []
    for i in imports():
        if _under(i.importer, "delta_plugins") and is_ours(i.imported):
            own = ".".join(i.importer.split(".")[:2])
            if not any(_under(i.imported, p) for p in ("delta_core.api", "delta_core.kernels", own)):
                wrong.append(str(i))
    assert not wrong, "\n".join(wrong)


def test_kernels_that_serve_one_plugin_are_in_its_folder() -> None:
    users: dict[str, set[str]] = {m: set() for m in modules() if m.startswith("delta_core.kernels.")}
    for i in imports():
        if i.imported in users and i.imported != i.importer:
            parts = i.importer.split(".")
            users[i.imported].add(".".join(parts[:2]) if parts[0] == "delta_plugins" else parts[0])
    alone = {m for m, found in users.items() if len(found) == 1 and "delta_core" not in found}
    # what several plugins may use: row sets as bytes, for any RowSelector; row ids
    assert alone <= {"delta_core.kernels.roaring", "delta_core.kernels.row_ids"}


def _imports_of_example(path: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    found = [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    for n in nodes:
        if isinstance(n, ast.ImportFrom) and n.module:
            # the package itself contains nothing: its modules are imported by name
            found += [f"{n.module}.{a.name}" for a in n.names] if n.module == "delta_core" else [n.module]
    return [name for name in found if is_ours(name)]


@pytest.mark.parametrize("package", sorted(p.name for p in (ROOT / "examples" / "plugins").iterdir()))
@pytest.mark.parametrize("part", ["source", "tests"])
def test_example_plugins_import_the_plugin_api_only(package: str, part: str) -> None:
    folder = package.replace("-", "_") if part == "source" else part
    paths = [p for p in (ROOT / "examples" / "plugins" / package).glob(f"{folder}/*.py") if "build" not in p.parts]
    # tests use what users do
    public = ("delta_core.testing", "delta_core.DeltaTable", "delta_core.write_deltalake", "delta_core.open_table")
    allowed = ("delta_core.api", "delta_core.kernels", *(public if part == "tests" else ()))
    found = [(path.name, name) for path in paths for name in _imports_of_example(path)]
    assert found
    assert [f for f in found if not any(_under(f[1], a) for a in allowed)] == []


def test_plugins_do_no_io() -> None:
    wrong = [
        str(i) for i in imports() if _under(i.importer, "delta_plugins") and any(_under(i.imported, o) for o in OUTWARD)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_engines_and_public_apis_reach_outward() -> None:
    wrong = [
        str(i)
        for i in imports()
        if any(_under(i.imported, o) for o in OUTWARD) and not any(_under(i.importer, f) for f in OUTWARD_FACES)
    ]
    assert not wrong, "\n".join(wrong)
