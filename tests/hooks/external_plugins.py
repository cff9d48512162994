"""Plugins made on the spot, as an external package would write them, and tables that name their feature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from delta_core.api import TableFeature, hookimpl
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.testing.table_builder import TableBuilder

PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["probe"], "writerFeatures": ["probe"]}


class ExternalPlugin:
    """A plugin object; pluggy reads its attributes as it reads a module's."""

    def __init__(self, name: str, after: tuple[str, ...] = (), **hooks: Callable[..., Any]) -> None:
        self.FEATURE = TableFeature(name=name, kind="reader+writer", after=after)
        for hook, function in hooks.items():
            assert not inspect.isbuiltin(function)
            setattr(self, hook, hookimpl(function))


def plugin_set(*strangers: ExternalPlugin) -> PluginSet:
    """Return the set that serves a table with all of these features."""
    return PluginSet({s.FEATURE.name: s for s in strangers}, frozenset())


def registry(**hooks: Callable[..., Any]) -> PluginRegistry:
    """Return what is installed if only the feature ``probe`` is."""
    return PluginRegistry([ExternalPlugin("probe", **hooks)], installed=False)


def table_of(path: Any, schema: Any = None) -> TableBuilder:
    """Create a table with the reader feature ``probe``."""
    return TableBuilder(path).create(schema or {"id": "long", "kind": "string"}, protocol=PROTOCOL)
