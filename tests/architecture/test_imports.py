"""One direction: who may import whom (docs/architecture.md)."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, imports, is_ours, modules, names_of, texts, tree

#: From top to bottom: a module imports only what is above it. A folder is as a whole (of `engines` its seam is by
#: itself); inside it only cycles are forbidden. Names that a package loads on first use count as imported.
LAYOUT = (
    "errors", "exceptions", "runtime", "schema", "types", "kernels", "expressions", "engine seam", "handles", "storage",
    "scan", "formats", "parquet", "kernel", "snapshot", "operations", "api", "table", "interop", "transaction",
    "alterer", "optimizer", "writer", "query", "version", "", "cli", "testing", "engines", "spark",
)  # fmt: skip
#: What the core imports of `engines`.
SEAM = tuple(
    ["engines", name] for name in ("conditions", "engine", "interface", "opening", "records", "writer_properties")
)
#: The only module that imports by text.
BY_TEXT = {"delta_core.runtime.lazy": "the helper", "delta_core.runtime.entry_points": "what installed packages offer"}
#: What reaches for files or another process's engine, and who may: engines, and the public modules whose task it is.
OUTWARD = ("fsspec", "pyarrow.fs", "pyarrow.json", "pyarrow.parquet", "pyarrow.dataset", "pyspark")
OUTWARD_FACES = {
    "delta_core.engines": "engines do the I/O",
    "delta_core.storage": "places",
    "delta_core.parquet": "data files",
    "delta_core.testing": "makes tables for contract suites, independently of what it tests",
    "delta_core.scan.interop": "hands rows to other libraries as their own objects",
    "delta_core.table.interop": "hands a table to other libraries as their own objects",
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


def _late_imports(module: str) -> set[str]:
    """Return the modules that type checkers see a module import."""
    blocks = [n for n in tree(module).body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {i for block in blocks for node in ast.walk(block) for i in names_of(node, module)}


def test_names_that_load_late_are_seen_as_imports() -> None:
    faces = [m for m in modules() if any(name == "lazy_names" for name, _ in _calls(m))]
    assert len(faces) > 5
    for face in faces:
        homes = {text for _, text in texts(face) if text in modules()}
        assert homes
        assert homes <= _late_imports(face), face


@pytest.mark.parametrize("module", [m for m in modules() if m.rpartition(".")[2].endswith("parts")])
def test_modules_of_names_that_load_late_list_the_same_names(module: str) -> None:
    [(_, call)] = [(name, c) for name, c in _calls(module) if name == "lazy_names"]
    homes = ast.literal_eval(call.args[1])
    seen = {
        (node.module, alias.name)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing", "delta_core.runtime.lazy")
        for alias in node.names
    }
    assert seen == {(home, name) for home, names in homes.items() for name in names.split()}
    assert sorted(import_module(module).__all__) == sorted(name for _, name in seen)


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
    # row sets as bytes, in the formats that any plugin with a RowSelector may store
    assert alone == {"delta_core.kernels.roaring"}


def _imports_of_example(path: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    found = [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    for n in nodes:
        if isinstance(n, ast.ImportFrom) and n.module:
            # the package itself contains nothing: its modules are imported by name
            found += [f"{n.module}.{a.name}" for a in n.names] if n.module == "delta_core" else [n.module]
    return [name for name in found if is_ours(name)]


@pytest.mark.parametrize("package", ["delta-row-checksum", "delta-row-ttl"])
@pytest.mark.parametrize("part", ["delta_*", "tests"])
def test_example_plugins_import_the_plugin_api_only(package: str, part: str) -> None:
    paths = [p for p in (ROOT / "examples" / "plugins" / package).glob(f"{part}/*.py") if "build" not in p.parts]
    allowed = ("delta_core.api", "delta_core.kernels", *(["delta_core.testing"] if part == "tests" else []))
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
