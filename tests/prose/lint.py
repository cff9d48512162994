"""Find words and phrases to replace in the project's texts, names and messages.

``words.toml`` contains the list. Texts are the pages, comments, docstrings, error messages and help texts; names are
those of tests, and the public ones of modules, classes, functions and fields.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Finding", "Words", "check_page", "check_python", "check_source", "check_tree", "read_words"]

ROOT = Path(__file__).resolve().parents[2]
#: Folders of the project with text; a folder's tests, examples and build files included.
FOLDERS = ("benchmarks", "delta_core", "delta_plugins", "docs", "examples", "ext", "tests")
#: Of texts and of sources.
SUFFIXES = (".md", ".py", ".pyx", ".pxi", ".pyi", ".hpp", ".h", ".cpp", ".java")
#: Folders that builds leave behind: copies of files that are checked already.
MADE = frozenset({"build", "dist", "__pycache__"})
#: The list of this project.
WORDS = Path(__file__).with_name("words.toml")
_CODE = re.compile(
    r"^ *(?:>>>|\.\.\.) [^\n]*|``.+?``|`[^`]*`|\]\([^)]*\)|<!--.*?-->|https?://\S+|\"[^\"]*\"", re.DOTALL | re.MULTILINE
)
#: Consecutive lines of comments are one text, as sentences continue on the next line. Docstrings are those of Cython.
_COMMENT = re.compile(
    r'"""(.*?)"""|//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/|(?<!\S)#:? [^\n]*(?:\n[ \t]*#:? [^\n]*)*', re.DOTALL
)
#: A space in a text: a line break too, with the mark of a comment.
_SPACE = r"\s+(?:(?:#:?|//|\*)\s+)?"
_NAME_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MESSAGES = re.compile(
    r"(Error|Warning|error|warn|warning|info|debug|skip|echo|option|argument|command|Option|Argument)$"
)
_HELP = ("help", "short_help", "epilog", "reason", "summary", "message")


class Words(NamedTuple):
    """The word list.

    Parameters
    ----------
    text : Mapping of str to str
        Patterns that match whole words of texts, with what to write instead.
    names : Mapping of str to str
        The same for parts of names: ``door`` matches ``plugin_door`` and ``PluginDoor``.
    reference : Mapping of str to str
        As ``text``, for the folders in ``reference_folders`` only.
    reference_folders : tuple of str
        Folders whose comments and docstrings are written as those of a reference.
    allowed : tuple of str
        Phrases that are not searched.
    allowed_names : tuple of str
        Names that stay, as aliases.
    """

    text: Mapping[str, str]
    names: Mapping[str, str]
    allowed: tuple[str, ...] = ()
    allowed_names: tuple[str, ...] = ()
    reference: Mapping[str, str] = {}
    reference_folders: tuple[str, ...] = ()

    def patterns(self, path: str) -> Mapping[str, str]:
        """Return the patterns for the texts of a file."""
        is_reference = any(path.startswith(f"{folder}/") for folder in self.reference_folders)
        return {**self.text, **self.reference} if is_reference else self.text


class Finding(NamedTuple):
    """A place with a word to replace."""

    path: str
    line: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: write {self.instead}"


def read_words(path: Path = WORDS) -> Words:
    """Read a word list."""
    made = tomllib.loads(path.read_text(encoding="utf-8"))
    return Words(
        made["text"],
        made["names"],
        tuple(made["allowed"]["phrases"]),
        tuple(made["allowed"]["names"]),
        made["reference"],
        tuple(made["allowed"]["reference_folders"]),
    )


def check_tree(words: Words, root: Path = ROOT) -> list[Finding]:
    """Check every page and source file of a project."""
    found: list[Finding] = []
    places = [*root.glob("*.md"), *(path for folder in FOLDERS for path in root.glob(f"{folder}/**/*"))]
    for path in sorted(p for p in places if p.suffix in SUFFIXES and not MADE.intersection(p.relative_to(root).parts)):
        name, text = str(path.relative_to(root)), path.read_text(encoding="utf-8")
        check = {".md": check_page, ".py": check_python}.get(path.suffix, check_source)
        found += check(name, text, words)
    return found


def check_page(path: str, text: str, words: Words) -> list[Finding]:
    """Check a page of Markdown; blocks of code are not text."""
    without_blocks = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return _search(path, 1, without_blocks, words)


def check_source(path: str, text: str, words: Words) -> list[Finding]:
    """Check the comments, and the docstrings of Cython, of a file in another language than Python."""
    found: list[Finding] = []
    for match in _COMMENT.finditer(text):
        said = match[0] if match[1] is None else match[1]
        found += _search(path, text.count("\n", 0, match.start()) + 1, said, words)
    return found


def check_python(path: str, text: str, words: Words) -> list[Finding]:
    """Check comments, docstrings, messages and names of a Python module."""
    found = [f for part in Path(path).with_suffix("").parts for f in _search_name(path, 1, part, words)]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            found += _search(path, token.start[0], token.string, words)
    tree = ast.parse(text)
    for line, said in _texts(tree):
        found += _search(path, line, said, words)
    for line, name in _names(tree):
        found += _search_name(path, line, name, words)
    return sorted(set(found))


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[0] if node.body else None
            if (
                isinstance(body, ast.Expr)
                and isinstance(body.value, ast.Constant)
                and isinstance(body.value.value, str)
            ):
                yield body.lineno, body.value.value
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            everything = _MESSAGES.search(called) is not None
            for part in [*node.args, *(k for k in node.keywords)]:
                if everything or isinstance(part, ast.keyword) and part.arg in _HELP:
                    yield from _constants(part)


def _constants(node: ast.AST) -> Iterator[tuple[int, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names of tests, and the public ones of a module and its classes."""
    for scope in [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]:
        for node in scope.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                yield node.lineno, node.name
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
                yield node.lineno, node.target.id


def _search(path: str, line: int, text: str, words: Words) -> list[Finding]:
    plain = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for phrase in words.allowed:
        plain = plain.replace(phrase, " " * len(phrase))
    return [
        Finding(path, line + plain.count("\n", 0, match.start()), " ".join(match[0].split()), instead)
        for pattern, instead in words.patterns(path).items()
        for match in re.finditer(rf"(?<![\w'-])(?:{pattern})(?![\w-])".replace(" ", _SPACE), plain, re.IGNORECASE)
    ]


def _search_name(path: str, line: int, name: str, words: Words) -> list[Finding]:
    if name in words.allowed_names:
        return []
    parts = [part.lower() for part in _NAME_PARTS.findall(name)]
    return [Finding(path, line, name, instead) for word, instead in words.names.items() if word in parts]
