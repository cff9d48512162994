"""Every public name of deltalake is here, with parameters that take the same calls, or in peer_signatures.toml."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import delta_core

deltalake = pytest.importorskip("deltalake")
pytestmark = pytest.mark.peer

LISTED = tomllib.loads(Path(__file__).with_name("peer_signatures.toml").read_text(encoding="utf-8"))
ABSENT = LISTED["never"]
#: The modules that scripts import from, and the classes whose members are called. VariantType makes a PrimitiveType
#: here, whose members are compared.
MODULES = ("schema", "exceptions", "query", "table", "transaction", "writer", "fs")
CLASSES = (
    "DeltaTable",
    "Schema",
    "Field",
    "StructType",
    "ArrayType",
    "MapType",
    "PrimitiveType",
    "QueryBuilder",
    "Metadata",
)


def _exported(module: Any) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n, v in vars(module).items() if inspect.isclass(v) and v.__module__ == module.__name__]
    return [n for n in names if not n.startswith("_")]


def _members(cls: type) -> list[str]:
    own = [n for n in dir(cls) if not n.startswith("_")]
    return [*own, *(n for n in ("__datafusion_table_provider__", "__arrow_c_schema__") if hasattr(cls, n))]


def _names() -> Iterator[tuple[str, Any]]:
    """Yield every public name of the peer with what it represents."""
    for name in _exported(deltalake):
        yield name, getattr(deltalake, name)
    for module in MODULES:
        loaded = importlib.import_module(f"deltalake.{module}")
        for name in _exported(loaded):
            yield f"{module}.{name}", getattr(loaded, name)
    for name in CLASSES:
        cls = getattr(importlib.import_module("deltalake.schema"), name, None) or getattr(deltalake, name)
        yield name, cls
        for member in _members(cls):
            yield f"{name}.{member}", inspect.getattr_static(cls, member)


PEER = dict(_names())


def _ours(name: str) -> Any:
    """Find a dotted name here; None if it is not."""
    first, _, rest = name.partition(".")
    if first in MODULES:
        try:
            module = importlib.import_module(f"delta_core.{first}")
        except ModuleNotFoundError:
            return None
        return getattr(module, rest, None)
    holder = getattr(delta_core, first, None)
    if not rest or holder is None:
        return holder
    return inspect.getattr_static(holder, rest, None)


def _parameters(value: Any) -> list[inspect.Parameter] | None:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if not callable(value):
        return None
    try:
        found = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError):
        return None
    return [p for p in found if p.name not in ("self", "cls")]


def test_the_peer_is_the_version_that_the_list_describes() -> None:
    assert deltalake.__version__ == "1.6.6"


@pytest.mark.parametrize("name", PEER)
def test_public_name_is_here_or_listed_with_a_reason(name: str) -> None:
    if name in LISTED["never"]:
        assert _ours(name) is None, f"{name} exists now: take it off the list"
    else:
        assert _ours(name) is not None, f"{name} is neither here nor listed"


CALLABLE = [
    n for n, v in PEER.items() if n not in ABSENT and _parameters(v) is not None and not n.startswith("exceptions.")
]


@pytest.mark.parametrize("name", CALLABLE)
def test_call_forms_of_the_peer_are_taken(name: str) -> None:
    theirs, ours = _parameters(PEER[name]), _parameters(_ours(name))
    assert theirs is not None
    assert ours is not None, f"{name} can't be called here"
    if name.endswith("Metadata"):
        return  # made by metadata() only
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    order = [p.name for p in ours if p.kind in positional]
    expected = [p.name for p in theirs if p.kind in positional]
    renamed = {"json": "text", "type": "data_type", "field": "arrow_field", "delta_table": "table"}
    assert [renamed.get(n, n) for n in order][: len(expected)] == [renamed.get(n, n) for n in expected]
    by_name = {p.name: p for p in ours}
    for p in theirs:
        if p.kind is inspect.Parameter.KEYWORD_ONLY:
            assert p.name in by_name
        # some defaults of the peer are objects that remember whether the argument was given
        default = getattr(p.default, "value", p.default)
        if default is not inspect.Parameter.empty and p.name in by_name:
            assert by_name[p.name].default == default, f"{name}({p.name}=) has another default"
    required = [p.name for p in ours if p.default is inspect.Parameter.empty and p.kind in positional]
    assert len(required) <= len([p for p in theirs if p.default is inspect.Parameter.empty])


def test_listed_names_are_the_peers_and_have_reasons() -> None:
    assert set(ABSENT) <= set(PEER)
    assert all(reason.strip() for reason in LISTED["never"].values())
