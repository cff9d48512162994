"""Templates of plugins: the packages of ``examples/plugins`` that `KINDS` names."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from delta_core.errors import InternalError, InvalidArgumentError

__all__ = ["KINDS", "make_plugin", "template_folder"]

#: The package that is the template of each kind of plugin.
KINDS = {
    "feature": "acme-origin",
    "engine": "acme-engine",
    "format": "acme-format",
    "committer": "acme-committer",
    "functions": "acme-functions",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LEFT_OUT = ("__pycache__", "build", ".pytest_cache")


def template_folder(kind: str) -> Path:
    """Return the package that is the template of a kind.

    Parameters
    ----------
    kind : str
        One of `KINDS`.

    Raises
    ------
    InvalidArgumentError
        If there is no such kind.
    InternalError
        If the installed package lacks its templates.
    """
    if kind not in KINDS:
        raise InvalidArgumentError(f"There is no kind of plugin {kind!r}; expected one of {', '.join(KINDS)}.")
    here = Path(__file__).resolve()
    # in an installed package, and in a clone
    for folder in (here.parent / "templates", here.parents[2] / "examples" / "plugins"):
        if (folder / KINDS[kind]).is_dir():
            return folder / KINDS[kind]
    raise InternalError("The templates of plugins are not there: reinstall delta-core-lake.")


def make_plugin(name: str, kind: str, folder: Path) -> list[Path]:
    """Make a package with a working plugin, its tests, and a file for continuous integration.

    Parameters
    ----------
    name : str
        The name of the distribution, such as ``my-stamps``. Its package is ``my_stamps``, and a feature is
        ``my.stamps``.
    kind : str
        One of `KINDS`.
    folder : pathlib.Path
        The folder to make.

    Returns
    -------
    list of pathlib.Path
        The files.

    Raises
    ------
    InvalidArgumentError
        For a name that is none, or that another package has, and for a folder that is not empty.
    """
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"Found the name {name!r}; expected words of lower-case letters and digits, joined by hyphens, such as "
            "my-stamps."
        )
    if importlib.util.find_spec(module) is not None:
        raise InvalidArgumentError(f"There is a module {module} already. Choose another name than {name}.")
    template = template_folder(kind)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgumentError(f"{folder} exists and is not empty. Choose another folder.")
    old = KINDS[kind]
    names = {old: name, old.replace("-", "_"): module, old.replace("-", "."): feature_name(name)}
    made = []
    for source in sorted(template.rglob("*")):
        part = source.relative_to(template)
        if source.is_dir() or any(p in _LEFT_OUT or p.endswith(".egg-info") for p in part.parts):
            continue
        target = folder / _renamed(part.as_posix(), names)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_renamed(source.read_text("utf-8"), names), "utf-8")
        made.append(target)
    return made


def feature_name(name: str) -> str:
    """Return the name of a feature for that of a distribution: ``my.rowStamps`` for ``my-row-stamps``.

    Parameters
    ----------
    name : str
        The name of the distribution.
    """
    first, *words = name.split("-")
    return ".".join([first, *([words[0] + "".join(w.capitalize() for w in words[1:])] if words else [])])


def _renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text
