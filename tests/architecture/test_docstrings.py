"""Docstrings list errors in NumPy sections, each with its cause."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import delta_core.api
from tests.architecture.source import ROOT, modules, tree
from tests.docs.api_members import methods, public_objects

DOCUMENTED = (ast.FunctionDef, ast.ClassDef)
DEFINITIONS = (*DOCUMENTED, ast.AsyncFunctionDef)
#: Errors that a caller can do nothing about.
BUGS = {"AssertionError", "InternalError", "NotImplementedError"}
SECTION = re.compile(r"\n\nRaises\n------\n(?P<lines>.*?)(?=\n\n|\Z)", re.DOTALL)
ERRORS = re.compile(r"\w+(?:\.\w+)?(?:, \w+)*\n    \S")


def _docstrings(module: str) -> list[tuple[str, str]]:
    """Return the docstrings of public functions and classes, by their place."""
    nodes = [n for n in ast.walk(tree(module)) if isinstance(n, DOCUMENTED) and not n.name.startswith("_")]
    return [(f"{module}:{n.lineno} {n.name}", ast.get_docstring(n) or "") for n in nodes]


@pytest.mark.parametrize("package", ["delta_core", "delta_plugins"])
def test_errors_are_listed_in_a_section(package: str) -> None:
    inline = re.compile(r"(?:^|\. |\n)Raises,? [A-Za-z]")
    texts = [found for m in modules() if m.startswith(package) for found in _docstrings(m)]
    assert len(texts) > 100
    assert [where for where, text in texts if inline.search(text) and "function(" not in text] == []


@pytest.mark.parametrize("package", ["delta_core", "delta_plugins"])
def test_each_listed_error_has_its_cause(package: str) -> None:
    sections = [
        (where, found["lines"])
        for m in modules()
        if m.startswith(package)
        for where, text in _docstrings(m)
        if (found := SECTION.search(text))
    ]
    assert len(sections) > 10
    for where, lines in sections:
        for entry in re.split(r"\n(?=\S)", lines):
            assert ERRORS.match(entry), f"{where}: {entry!r} has no cause"


@dataclass(frozen=True)
class Errors:
    """Which errors functions raise, by their code.

    Parameters
    ----------
    makers : Mapping of str to str
        The class of the error that a function of this name returns, for ``raise misfit(...)``.
    """

    makers: Mapping[str, str]

    def raised(self, node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[str]:
        """Yield the errors that a body raises and does not catch, without those of the functions inside."""
        for name, value in ast.iter_fields(node):
            handlers = getattr(node, "handlers", []) if name == "body" else []
            names = caught | {n.id for h in handlers for n in ast.walk(h.type or h) if isinstance(n, ast.Name)}
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.Raise):
                    yield from self._classes(child) - names
                elif isinstance(child, ast.AST) and not isinstance(child, (*DEFINITIONS, ast.Lambda)):
                    yield from self.raised(child, names)

    def _classes(self, statement: ast.Raise) -> set[str]:
        called = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        names = ast.unparse(called).split(".") if isinstance(called, (ast.Name, ast.Attribute)) else []
        classes = {n for n in names if n[0].isupper()} or {self.makers[n] for n in names[-1:] if n in self.makers}
        return classes - BUGS


def _sources() -> dict[str, ast.Module]:
    """Return the syntax trees of our modules, and of those of the examples."""
    examples = sorted((ROOT / "examples" / "plugins").glob("*/delta_row_*/*.py"))
    found = {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in examples}
    assert len(found) > 3
    return {module: tree(module) for module in modules()} | found


def _makers(trees: Iterable[ast.Module]) -> dict[str, str]:
    """Return the class of the errors that functions make, by the functions' names."""
    functions = [n for t in trees for n in ast.walk(t) if isinstance(n, ast.FunctionDef) and n.returns is not None]
    found = {f.name: ast.unparse(f.returns).strip("'\"") for f in functions if f.returns is not None}
    return {name: result for name, result in found.items() if re.fullmatch(r"\w+Error", result)}


def _public(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public functions of a module, and the methods of its public classes; help texts are no docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DEFINITIONS) and (not child.name.startswith("_") or child.name == "__call__"):
            if isinstance(child, ast.ClassDef):
                yield from _public(child)
            elif not any("command" in ast.unparse(d) for d in child.decorator_list):
                yield child


def test_public_functions_list_the_errors_that_they_raise() -> None:
    sources = _sources()
    shared = _makers(sources.values())
    checked = 0
    for module, parsed in sources.items():
        errors = Errors({**shared, **_makers([parsed])})
        for function in _public(parsed):
            text = ast.get_docstring(function)
            section = SECTION.search(text or "")
            listed = set(re.findall(r"\w+", " ".join(re.findall(r"(?m)^\S.*", section["lines"] if section else ""))))
            raised = set(errors.raised(function))
            checked += len(raised)
            assert text is None or raised <= listed, f"{module}:{function.lineno} {function.name}"
    assert checked > 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("raise LogError(1)", {"LogError"}),
        ("raise misfit(1)", {"ExpressionError"}),
        ("raise LogChangedError.of(1)", {"LogChangedError"}),
        ("raise pa.ArrowInvalid(1)", {"ArrowInvalid"}),
        ("try:\n  raise ValueError\nexcept (ValueError, KeyError) as e:\n  raise LogError(1) from e", {"LogError"}),
        ("def inner():\n  raise LogError(1)", set()),
        ("raise InternalError(1)", set()),
    ],
)
def test_errors_that_a_function_raises_are_found(body: str, expected: set[str]) -> None:
    assert set(Errors({"misfit": "ExpressionError"}).raised(ast.parse(body))) == expected


# --- parameters and shapes -----------------------------------------------------------------

#: Packages and modules whose public functions document every parameter, beside the API for users and for plugins.
ROOMS = ("delta_core.kernels", "delta_core.kernel.log", "delta_core.kernel.plugins.hookspecs")
PARAMETERS = re.compile(r"(?:\A|\n\n)Parameters\n----------\n(?P<lines>.*?)(?=\n\n\S|\Z)", re.DOTALL)
FIELDS = re.compile(r"(?:\A|\n\n)(?:Parameters|Attributes)\n----------\n(?P<lines>.*?)(?=\n\n\S|\Z)", re.DOTALL)
#: Annotations of arrays, and of tables and batches.
ARRAYS = re.compile(r"NDArray|ArrayLike|Array\b|Strings\b|Rows\b|RecordBatch|pa\.Table")
#: ``**shape (n,)**``, ``int64[n_files]``, or the number of rows of a table.
SHAPE = re.compile(r"shape \(\w|\w\[\w|\*\*\w+ rows")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield the public functions of a module and the methods of its public classes, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DEFINITIONS) and not child.name.startswith("_"):
            if isinstance(child, ast.ClassDef):
                yield from _functions(child, f"{prefix}{child.name}.")
            else:
                yield f"{prefix}{child.name}", child


def _arguments(function: Function) -> dict[str, str]:
    """Return the annotation of each parameter of a function, but for ``self`` and ``cls``."""
    given = function.args
    rest = [a for a in (given.vararg, given.kwarg) if a is not None]
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]
    return {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in every if a.arg not in ("self", "cls")}


def _documented(function: Function) -> dict[str, str]:
    """Return the line that names it, such as ``first, second : int``, of each parameter in a docstring's section."""
    return _named(ast.get_docstring(function) or "", PARAMETERS)


def _named(text: str, section: re.Pattern[str]) -> dict[str, str]:
    lines = [line for found in section.finditer(text) for line in re.findall(r"(?m)^\S.*$", found["lines"])]
    return {name.strip(" *"): line for line in lines for name in line.split(" : ")[0].split(",")}


def _in_rooms(*rooms: str) -> Iterator[tuple[str, Function]]:
    for module in modules():
        if any(module == room or module.startswith(f"{room}.") for room in rooms):
            for name, function in _functions(tree(module)):
                yield f"{module}:{name}", function


def _api_objects() -> list[Any]:
    """Return the classes, functions and constants of the API for users and of that for plugins."""
    return [*public_objects().values(), *(getattr(delta_core.api, name) for name in delta_core.api.__all__)]


def _of_the_api() -> Iterator[tuple[str, Function]]:
    """Yield the functions, and the methods of classes, of the API for users and of that for plugins."""
    places = set()
    for found in _api_objects():
        for function in [f for _, f in methods(found)] if inspect.isclass(found) else [found]:
            places.add((getattr(function, "__module__", None), getattr(function, "__qualname__", None)))
    for module in sorted({m for m, _ in places if m in modules()}):
        for name, function in _functions(tree(module)):
            if (module, name) in places:
                yield f"{module}:{name}", function


def test_every_parameter_of_kernels_log_and_api_is_documented() -> None:
    functions = dict([*_in_rooms(*ROOMS), *_of_the_api()])
    assert len(functions) > 450
    lacking = {where: set(_arguments(f)) - set(_documented(f)) for where, f in functions.items()}
    assert {where: names for where, names in lacking.items() if names} == {}


def test_every_field_of_the_classes_of_the_api_is_documented() -> None:
    lacking, checked = {}, 0
    for found in {o for o in _api_objects() if inspect.isclass(o)}:
        fields = getattr(found, "__struct_fields__", None) or getattr(found, "_fields", ())
        texts = [inspect.cleandoc(vars(base).get("__doc__") or "") for base in found.__mro__]
        documented = {name for text in texts for name in _named(text, FIELDS)}
        lacking[found.__qualname__] = set(fields) - documented
        checked += len(fields)
    assert checked > 300
    assert {name: fields for name, fields in lacking.items() if fields} == {}


def test_parameters_of_kernels_that_are_arrays_have_shapes() -> None:
    arrays = {
        f"{where}({name})": _documented(function).get(name, "")
        for where, function in _in_rooms("delta_core.kernels")
        for name, annotation in _arguments(function).items()
        if ARRAYS.search(annotation)
    }
    assert len(arrays) > 80
    assert {where: line for where, line in arrays.items() if not SHAPE.search(line)} == {}


def test_results_of_kernels_that_are_arrays_have_shapes() -> None:
    results = {
        where: ast.get_docstring(function) or ""
        for where, function in _in_rooms("delta_core.kernels")
        if function.returns is not None and ARRAYS.search(ast.unparse(function.returns))
    }
    assert len(results) > 50
    assert [where for where, text in results.items() if not SHAPE.search(PARAMETERS.sub("", text))] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Sum.\n\nParameters\n----------\na, b : int\n    Numbers.\n*rest : int\n    More.", {"a", "b", "rest"}),
        ("Parameters as of `other`.", set()),
        ("Sum.\n\nReturns\n-------\na : int\n    Parameters.", set()),
    ],
)
def test_parameters_that_a_docstring_documents_are_found(text: str, names: set[str]) -> None:
    (function,) = ast.parse(f'def f(a, b, *rest):\n    """{text}"""').body
    assert isinstance(function, ast.FunctionDef)
    assert set(_documented(function)) == names
