"""Make the pages of the manual that come from the code, and the links between pages and the rest of the repository.

mkdocs calls the functions ``on_*`` (``hooks`` in mkdocs.yml). Pages are made of docstrings, the hook specifications,
the installed plugins, the error classes and the commands, so that they can't differ from the code.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File

from delta_core import errors, exceptions
from delta_core.cli.app import COMMANDS, cli
from delta_core.kernel.plugins import hookspecs
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.protocol.legacy_versions import IMPLIED_BY_READER, IMPLIED_BY_WRITER

ROOT = Path(__file__).resolve().parent.parent
_FENCES = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
#: A link to a path, without those to other sites and to places of the same page.
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:)([^)\s#]+)(#[^)\s]*)?\)")
#: Pages of the repository outside of docs/ that the manual contains too, under ``project/``.
OTHER_PAGES = ("*.md", "benchmarks/*.md", "tests/*.md", "delta_core/**/*.md", "examples/**/*.md")
#: Pages of the public API: the module, and the names on the page.
API_PAGES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "table": ("DeltaTable", "delta_core", ("DeltaTable", "open_table", "TableMetadata", "ProtocolVersions")),
    "write": (
        "Writing",
        "delta_core",
        (
            "write_deltalake",
            "convert",
            "convert_to_deltalake",
            "WriterProperties",
            "ColumnProperties",
            "BloomFilterProperties",
            "CommitProperties",
            "PostCommitHookProperties",
            "AppTransaction",
            "install_as_deltalake",
        ),
    ),
    "schema": (
        "Schemas and types",
        "delta_core",
        ("Schema", "Field", "PrimitiveType", "StructType", "ArrayType", "MapType", "VariantType"),
    ),
    "query": ("SQL", "delta_core", ("QueryBuilder",)),
    "catalogs": (
        "Catalogs of names",
        "delta_core.catalogs",
        ("NameCatalog", "CatalogTable", "open_catalog", "split_name", "check_encodable"),
    ),
    "transaction": ("Actions of one's own", "delta_core.transaction", ()),
    "returned": (
        "Objects that a table returns",
        "delta_core",
        (
            "kernel.snapshot.snapshot.Snapshot",
            "kernel.scan.scan.Scan",
            "kernel.scan.scan_files.ScanFiles",
            "scan.report.ScanReport",
            "operations.merge.builder.TableMerger",
            "table.alterer.TableAlterer",
            "TableFeatures",
            "table.optimizer.TableOptimizer",
            "operations.vacuum.plan.VacuumPlan",
            "operations.verify.operation.VerifyReport",
            "operations.report.table_report.TableReport",
            "table.interop.changes.ChangeFeed",
            "operations.follow.TableStream",
            "operations.follow.StreamBatch",
            "SnapshotCache",
            "StreamPosition",
            "table.named_tuples.DeltaTableConfig",
        ),
    ),
    "lance": ("Lance", "delta_plugins.lance", ("write_lance", "open_dataset", "dataset.LanceDataset")),
    "spark": ("Spark", "delta_core.spark", ()),
    "dask": ("Dask", "delta_core.dask", ()),
    "ray": ("Ray", "delta_core.ray", ()),
}
#: Pages of the API of plugins, by the packages of their names.
PLUGIN_PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "features": ("Features, rules and hooks", ("kernel.plugins",)),
    "log": ("Log, commits and snapshots", ("kernel.",)),
    "expressions": ("Expressions", ("expressions",)),
    "schemas": ("Schemas", ("schema",)),
    "engines": ("Engines, storage and scans", ("engines", "storage", "scan", "parquet")),
    "formats": ("Formats", ("formats", "handles")),
    "operations": ("Operations", ("operations",)),
    "tools": ("Tools", ("runtime",)),
}


# --- pages that come from the code ---------------------------------------------------------


def _imported(module: str) -> Iterator[str]:
    """Yield the dotted names that a module imports to export them."""
    path = ROOT / (module.replace(".", "/") + ".py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                if alias.asname == alias.name and alias.name != "lazy_imports":
                    yield f"{node.module}.{alias.name}"


def _address(dotted: str) -> str:
    """Return where a class or function is defined; the dotted name itself for other values."""
    module, _, name = dotted.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    home = getattr(value, "__module__", None)
    if isinstance(home, str) and home.startswith("delta_") and hasattr(value, "__qualname__"):
        return f"{home}.{value.__qualname__}"
    return dotted


def _reference(title: str, lead: str, names: Iterable[str]) -> str:
    blocks = "\n".join(f"::: {name}\n" for name in dict.fromkeys(names))
    return f"# {title}\n\n{lead}\n\n{blocks}"


def _api_pages() -> Iterator[tuple[str, str]]:
    described = set[str]()  # what two modules offer is on one page
    for page, (title, module, names) in API_PAGES.items():
        listed = names or tuple(importlib.import_module(module).__all__)
        found = [a for name in listed if (a := _address(f"{module}.{name}")) not in described]
        described.update(found)
        yield f"reference/{page}.md", _reference(title, f"Import these names from `{module}`.", found)
    yield from _plugin_pages(described)


def _plugin_pages(described: Collection[str]) -> Iterator[tuple[str, str]]:
    found = dict.fromkeys(_address(dotted) for dotted in _imported("delta_core.api"))
    left = [a for a in found if a not in described and not a.startswith("delta_core.errors.")]
    for page, (title, packages) in PLUGIN_PAGES.items():
        of_page = [a for a in left if a.startswith(tuple(f"delta_core.{p}" for p in packages))]
        left = [a for a in left if a not in of_page]
        lead = "Plugins import these names from `delta_core.api`."
        yield f"reference/plugins/{page}.md", _reference(title, lead, of_page)
    if left:
        names = ", ".join(left)
        raise ValueError(f"names of delta_core.api are on no page: {names}; add their package to PLUGIN_PAGES")


def _contract_page() -> tuple[str, str]:
    found = []
    for path in sorted(ROOT.glob("delta_core/testing/*_contract.py")):
        module = importlib.import_module(f"delta_core.testing.{path.stem}")
        found += [f"{module.__name__}.{name}" for name in module.__all__]
    lead = "Tests of plugins subclass a contract: pytest then runs all its tests with the plugin."
    return "reference/plugins/contracts.md", _reference("Contracts", lead, found)


def _hook_page() -> tuple[str, str]:
    lead = str(inspect.getdoc(hookspecs)).partition("\n\n")[2]
    addresses = [f"{hookspecs.__name__}.{name}" for name in hookspecs.RESULTS]
    return "reference/hooks.md", _reference("Hooks", lead, addresses)


def _features_page() -> tuple[str, str]:
    registry = PluginRegistry()
    rows = []
    by_name = {(plugin := registry.load(name)).FEATURE.name: plugin for name in registry.names()}
    versions = (("reader", IMPLIED_BY_READER), ("writer", IMPLIED_BY_WRITER))
    for name, plugin in sorted(by_name.items()):
        feature = plugin.FEATURE
        hooks = [hook for hook in hookspecs.RESULTS if hasattr(plugin, hook)]
        legacy = [f"{side} {v}" for side, added in versions for v, names in added.items() if name in names]
        cells = (
            f"`{name}`",
            feature.kind,
            ", ".join(legacy),
            _codes(feature.requires),
            _codes(feature.properties),
            _codes(feature.operations),
            _codes(hooks),
            f"`{plugin.__name__.partition('.')[0]}`",
        )
        rows.append(f"| {' | '.join(cells)} |")
    head = "| feature | kind | without lists | requires | properties | operations | hooks | package |"
    lead = (
        "---\nhide: [toc]\n---\n\n# Features and their plugins\n\nMade from the installed plugins."
        " [Table features](../features.md) describes how each feature is read and written.\n"
    )
    return "reference/features.md", "\n".join([lead, head, "| --- " * 8 + "|", *rows, ""])


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _errors_page() -> tuple[str, str]:
    lead = (
        "# Index of errors\n\nEvery error of this library is a `DeltaError`. Its message states what was found, what"
        " was expected, where, and what to do. Handlers of the classes in the second column catch it too.\n"
    )
    parts = [lead, "| error | is also | cause |\n| --- | --- | --- |"]
    described = []
    for name in errors.__all__:
        kind = getattr(errors, name)
        if not (inspect.isclass(kind) and issubclass(kind, Exception)):
            continue
        also = [b for b in kind.__mro__[1:] if issubclass(b, Exception) and b not in (Exception, errors.DeltaError)]
        own = _codes(b.__name__ for b in also if b.__name__ in vars(builtins) or b.__module__ == errors.__name__)
        (first, *_) = str(inspect.getdoc(kind)).split("\n\n")
        parts.append(f"| [`{name}`][{errors.__name__}.{name}] | {own} | {' '.join(first.split())} |")
        described.append(f"{errors.__name__}.{name}")
    parts.append("\n## deltalake's names\n\n| `delta_core.exceptions` | catches |\n| --- | --- |")
    for name in exceptions.__all__:
        kind = getattr(exceptions, name)
        caught = [k for k in errors.__all__ if inspect.isclass(e := getattr(errors, k)) and issubclass(e, kind)]
        parts.append(f"| `{name}` | {_codes(caught)} |")
    parts.append("\n## Attributes\n")
    parts += [f"::: {name}\n    options: {{members: false}}\n" for name in described]
    return "reference/errors.md", "\n".join(parts)


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    with click.Context(command, info_name=name, max_content_width=100, terminal_width=100) as context:
        yield name, command.get_help(context)
        if isinstance(command, click.Group):
            for child in command.list_commands(context):
                found = command.get_command(context, child)
                if found is not None and not found.hidden:
                    yield from _commands(found, f"{name} {child}")


def _commands_page() -> tuple[str, str]:
    lines = ["# Commands\n\nThe help of every command. [Command line](../cli.md) shows how they are used.\n"]
    lines += [f"- [`delta-core {name}`](#delta-core-{name}): {text}" for name, text in COMMANDS.items()]
    for name, text in _commands(cli, "delta-core"):
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
        lines.append(f"\n{'##' if name.count(' ') < 2 else '###'} {name}\n\n```text\n{plain}\n```")
    return "reference/commands.md", "\n".join(lines)


def _example_pages() -> Iterator[tuple[str, str]]:
    """Yield the sources of the example plugins, as they are tested."""
    for folder in sorted((ROOT / "examples" / "plugins").iterdir()):
        sources = [*sorted(folder.glob("*.toml")), *sorted(folder.rglob("*.py"))]
        parts = [
            f"# The source of {folder.name}\n\n[About this plugin](../project/examples/plugins/{folder.name}.md)\n"
        ]
        for path in sources:
            language = {".toml": "toml", ".py": "python"}[path.suffix]
            text = path.read_text(encoding="utf-8").strip()
            if text:
                parts.append(f"## {path.relative_to(folder).as_posix()}\n\n````{language}\n{text}\n````\n")
        yield f"reference/example-{folder.name}.md", "\n".join(parts)


def pages() -> dict[str, str]:
    """Return the pages that come from the code, by their paths in the manual.

    Returns
    -------
    dict of str to str
        The Markdown of each page.
    """
    made = [
        *_api_pages(),
        _contract_page(),
        _hook_page(),
        _features_page(),
        _errors_page(),
        _commands_page(),
        *_example_pages(),
    ]
    return dict(made)


# --- pages of the repository outside of docs/ ----------------------------------------------


def other_pages() -> dict[str, str]:
    """Return the paths in the manual of pages outside of docs/, by their paths in the repository.

    Returns
    -------
    dict of str to str
        ``{"benchmarks/README.md": "project/benchmarks.md"}``.
    """
    found = {}
    for pattern in OTHER_PAGES:
        for path in ROOT.glob(pattern):
            name = path.relative_to(ROOT).as_posix()
            if path.name == "README.md":
                place = path.parent.relative_to(ROOT).as_posix()
                found[name] = f"project/{'readme' if place == '.' else place}.md"
            else:
                found[name] = f"project/{name.lower()}"
    return found


def relinked(text: str, page: str, in_manual: Mapping[str, str]) -> str:
    """Return the Markdown of a page with links to where pages of the repository are in the manual.

    A link to a file of the repository that is no page becomes its text.

    Parameters
    ----------
    text : str
        The Markdown.
    page : str
        The path of the page in the manual.
    in_manual : Mapping of str to str
        The result of `other_pages`.
    """
    origins = {place: name for name, place in in_manual.items()}
    folder = posixpath.dirname(origins.get(page, f"docs/{page}"))

    def replaced(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        place = in_manual.get(path) or in_manual.get(f"{path}/README.md")
        if place is None and path.startswith("docs/") and path.endswith(".md"):
            place = path.removeprefix("docs/")
        if place is not None:
            return f"[{label}]({os.path.relpath(place, posixpath.dirname(page) or '.')}{anchor})"
        return label if (ROOT / path).exists() else match[0]

    parts = _FENCES.split(text)  # code is at odd places
    parts[::2] = [_LINK.sub(replaced, part) for part in parts[::2]]
    return "".join(parts)


# --- events of mkdocs ----------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that come from the code, and those of the repository outside of docs/."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for name, path in other_pages().items():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return a page with its links to the repository changed to those of the manual."""
    del config, files
    return relinked(markdown, page.file.src_uri, other_pages())
