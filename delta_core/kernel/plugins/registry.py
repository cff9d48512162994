"""The plugin API: which plugins are installed, and the set of them that serves one table.

A plugin is a module with a ``FEATURE`` and hook implementations, found by an entry point of the group
``delta_core.features`` whose name is the feature's. Only what a table's protocol names is imported.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pluggy

from delta_core import expressions
from delta_core.errors import (
    FeatureRequirementError,
    HookContractError,
    InvalidArgumentError,
    PluginConflictError,
    PluginError,
    UnsupportedFeatureError,
    did_you_mean,
)
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.plugins import hookspecs
from delta_core.kernel.plugins.answers import find_misfit
from delta_core.kernel.plugins.features import API_VERSION, SupportedFeatures, TableFeature, supported_features
from delta_core.kernel.plugins.hook_calls import guarded_hooks
from delta_core.kernel.plugins.hookspecs import PROJECT, RESULTS
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Protocol
from delta_core.runtime.entry_points import entry_groups
from delta_core.runtime.plugin_errors import FEATURES_GROUP, plugin_name
from delta_core.runtime.processes import cached_property
from delta_core.schema.types import BASE_TYPES, TypeDef

__all__ = ["FEATURES_GROUP", "PluginRegistry", "PluginSet", "default_registry"]


class PluginRegistry:
    """The installed plugins. An opened table holds one; two registries live side by side in one process.

    Parameters
    ----------
    plugins : iterable of modules or objects, optional
        Plugins given by hand, each with ``FEATURE``; they go before installed ones of the same name.
    installed : bool
        Whether to look for entry points too.
    functions : iterable of Function
        Functions that predicates, updates and merges may call, whatever features a table has. Expressions that a table
        stores can't: other readers of the table would not have them.

    Raises
    ------
    InvalidArgumentError
        A function has the name of a built-in one, or two have one name.
    """

    def __init__(self, plugins: Iterable[Any] = (), installed: bool = True, functions: Iterable[Function] = ()) -> None:
        self._functions = _named_functions(functions)
        self._given: dict[str, Any] = {}
        for plugin in plugins:
            feature = _feature_of(plugin, getattr(plugin, "__name__", repr(plugin)))
            for name in (feature.name, *feature.aliases):
                self._given[name] = plugin
        self._installed = installed
        self._loaded: dict[str, Any] = {}
        self._sets: dict[frozenset[str], PluginSet] = {}

    def __repr__(self) -> str:
        return f"PluginRegistry({', '.join(self.names())})"

    @cached_property
    def _entry_points(self) -> Mapping[str, Any]:
        """Group to name to entry point."""
        return {g: {p.name: p for p in points} for g, points in entry_groups().items()} if self._installed else {}

    @cached_property
    def _provided_twice(self) -> Mapping[str, tuple[str, str]]:
        """Feature name to two entry points that provide it with different plugins."""
        chosen = self._entry_points.get(FEATURES_GROUP, {})
        points = entry_groups().get(FEATURES_GROUP, ()) if self._installed else ()
        return {p.name: (p.value, other) for p in points if (other := chosen[p.name].value) != p.value}

    def names(self) -> list[str]:
        """Return every name, aliases included, that a plugin is installed for, sorted."""
        return sorted({*self._given, *self._entry_points.get(FEATURES_GROUP, {})})

    def supported(self, protocol: Protocol) -> SupportedFeatures:
        """Return the features that a protocol lists or implies; raises as `supported_features` does."""
        return supported_features(protocol)

    def load(self, name: str) -> Any | None:
        """Return the plugin for a feature name or alias, None if none is installed.

        Raises
        ------
        PluginError
            If its plugin can't be used: it can't be imported, or breaks the plugin API.
        PluginConflictError
            If two packages provide the feature.
        """
        if name in self._given:
            return self._given[name]
        if name not in self._loaded:
            if name in self._provided_twice:
                one, other = self._provided_twice[name]
                raise PluginConflictError(
                    f"Feature {name!r} is provided twice: by {one} and by {other}. Uninstall one of the two packages.",
                    feature=name,
                )
            point = self._entry_points.get(FEATURES_GROUP, {}).get(name)
            self._loaded[name] = None if point is None else _load(point)
        return self._loaded[name]

    def source(self, name: str) -> str | None:
        """Return the distribution that serves a feature, ``(given)`` for one given by hand, None for none."""
        if name in self._given:
            return "(given)"
        point = self._entry_points.get(FEATURES_GROUP, {}).get(name)
        if point is None:
            return None
        return f"{point.dist.name} {point.dist.version}" if point.dist is not None else str(point.value)

    def resolve(self, features: SupportedFeatures) -> PluginSet:
        """Return the set of plugins that serve a table.

        Writer features that no plugin provides stay out of the set: reading may ignore them.

        Raises
        ------
        UnsupportedFeatureError
            For a reader feature that no plugin provides.
        """
        missing = sorted(n for n in features.reader if self.load(n) is None)
        if missing:
            raise UnsupportedFeatureError(
                f"The table needs the reader feature{'s' * (len(missing) > 1)} {', '.join(missing)}, which no "
                "installed plugin provides. Install a package with an entry point of that name in the group "
                f"{FEATURES_GROUP!r}, or upgrade delta-core-lake.",
                feature=missing[0],
                features=tuple(missing),
            )
        key = features.all
        if key not in self._sets:
            plugins = {p.FEATURE.name: p for n in sorted(key) if (p := self.load(n)) is not None}
            self._sets[key] = PluginSet(
                plugins, frozenset(n for n in key if self.load(n) is None), functions=self._functions
            )
        return self._sets[key]

    def requests(self, arguments: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return lists that operations take for features, as JSON by the property that `TableFeature.requests` names.

        Raises
        ------
        UnsupportedFeatureError
            If an argument has values and no installed plugin serves it.
        """
        served = {a: p for feature in self.everything.features.values() for a, p in feature.requests.items()}
        missing = [a for a, values in arguments.items() if values and a not in served]
        if missing:
            raise UnsupportedFeatureError(
                f"No installed plugin serves the argument {missing[0]}. Install a package with a feature that does, or "
                "leave the argument out.",
                argument=missing[0],
            )
        return {served[a]: json.dumps(list(values)) for a, values in arguments.items() if a in served}

    def plugin_of(self, name: str) -> PluginSet:
        """Return the set of one plugin, for the hooks that only the feature's own plugin answers.

        Raises
        ------
        UnsupportedFeatureError
            If no installed plugin provides the feature.
        """
        plugin = self.load(name)
        if plugin is None:
            raise UnsupportedFeatureError(
                f"No installed plugin provides the feature {name!r}.{did_you_mean(name, self.names())} Installed: "
                f"{', '.join(self.names())}.",
                feature=name,
            )
        return PluginSet({plugin.FEATURE.name: plugin}, frozenset(), check=False)

    def remedies(self, kind: str) -> str:
        """Return what features offer against a rejection, to end a sentence: ``, or set ...``; empty for nothing."""
        return "".join(f", or {f.remedies[kind]}" for f in self.everything.features.values() if kind in f.remedies)

    @property
    def everything(self) -> PluginSet:
        """The set of every installed plugin that can be used, for the hooks that require all.

        Those that can't (`unusable`) are left out, and a warning names each once: a table whose protocol lists such a
        feature is rejected, all other tables do without it.
        """
        return self._survey[0]

    @property
    def unusable(self) -> Mapping[str, PluginError]:
        """The features whose installed plugin can't be used, each with the error that a table with it gets."""
        return self._survey[1]

    @cached_property
    def _survey(self) -> tuple[PluginSet, Mapping[str, PluginError]]:
        plugins: dict[str, Any] = {}
        errors: dict[str, PluginError] = {}
        for name in self.names():
            try:
                plugin: Any = self.load(name)
            except PluginError as e:
                errors[name] = e
            else:
                plugins[plugin.FEATURE.name] = plugin
        try:
            found = PluginSet(plugins, frozenset(), check=False)
        except PluginError:  # a hook that breaks its specification
            errors |= _contract_errors(plugins)
            plugins = {n: p for n, p in plugins.items() if n not in errors}
            found = PluginSet(plugins, frozenset(), check=False)
        for error in errors.values():
            warnings.warn(
                f"{error.message} Until then the feature is unavailable; tables without it are unaffected.",
                RuntimeWarning,
                stacklevel=4,
            )
        return found, errors


def _contract_errors(plugins: Mapping[str, Any]) -> dict[str, PluginError]:
    """Return the plugins that break the specification of a hook, by feature, each with its error."""
    errors: dict[str, PluginError] = {}
    for name, plugin in plugins.items():
        try:
            guarded_hooks(plugin, name)
        except PluginError as e:
            errors[name] = e
    return errors


def _named_functions(functions: Iterable[Function]) -> dict[str, Function]:
    found: dict[str, Function] = {}
    for f in functions:
        if not isinstance(f, Function):
            raise InvalidArgumentError(
                f"PluginRegistry has {f!r} among its functions, expected a Function: row_function(...).as_function()."
            )
        if expressions.is_builtin(f.name) or f.name != f.name.lower() or f.name in found:
            raise InvalidArgumentError(
                f"PluginRegistry has a function named {f.name!r}, expected a lower-case name that is neither built in "
                "nor that of another function: as_function(name) sets it."
            )
        found[f.name] = f
    return found


def _load(point: Any) -> Any:
    try:
        plugin = point.load()
    except Exception as e:
        raise PluginError(
            f"Plugin {point.value!r} for feature {point.name!r} can't be imported: {type(e).__name__}: {e}. "
            "Reinstall or remove its package.",
            feature=point.name,
        ) from e
    feature = _feature_of(plugin, point.value)
    if point.name != feature.name and point.name not in feature.aliases:
        raise PluginError(
            f"Entry point {point.name!r} leads to {point.value}, whose FEATURE is {feature.name!r} with aliases "
            f"{list(feature.aliases)}; expected one of these names.",
            feature=point.name,
        )
    return plugin


def _feature_of(plugin: Any, where: str) -> TableFeature:
    feature = getattr(plugin, "FEATURE", None)
    if not isinstance(feature, TableFeature):
        raise PluginError(f"Plugin {where} has FEATURE={feature!r}, expected a TableFeature.")
    if feature.api != API_VERSION:
        raise PluginError(
            f"Plugin {where} was written for hook API {feature.api}, this delta_core has {API_VERSION}. "
            "Install a matching release of it.",
            feature=feature.name,
        )
    misfit = find_misfit(feature)
    if misfit is not None:
        raise PluginError(
            f"FEATURE of {plugin_name(feature.name, plugin)} has {misfit}. Correct it, or report it to the plugin's "
            "authors.",
            plugin=feature.name,
            feature=feature.name,
        )
    return feature


class PluginSet:
    """The plugins that serve one set of features, in the order their ``after`` requires.

    Parameters
    ----------
    plugins : Mapping of str to plugin
        By canonical feature name.
    unknown : frozenset of str
        Writer features of the table that no plugin provides.
    functions : Mapping of str to Function
        Further functions for expressions that the table does not store.
    """

    def __init__(
        self,
        plugins: Mapping[str, Any],
        unknown: frozenset[str],
        check: bool = True,
        functions: Mapping[str, Function] | None = None,
    ) -> None:
        self._plugins = plugins
        self._given_functions = functions or {}
        self.features: dict[str, TableFeature] = {n: plugins[n].FEATURE for n in _ordered(plugins)}
        self.unknown = unknown
        if check:
            _check_requirements(self.features, unknown)
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        # pluggy calls the last registered first
        for name in reversed(self.features):
            self._manager.register(guarded_hooks(plugins[name], name), name)

    def __repr__(self) -> str:
        return f"PluginSet({', '.join(self.features)})"

    @cached_property
    def types(self) -> Mapping[str, TypeDef]:
        """Every primitive type name that the features allow.

        Raises
        ------
        PluginConflictError
            If two features define one type.
        """
        found = dict(BASE_TYPES)
        for t in self.collect("primitive_types", features=frozenset(self.features)):
            for name in (t.name, *t.aliases):
                if found.setdefault(name, t) is not t:
                    raise PluginConflictError(f"Type {name!r} is defined twice.", type=name)
        return found

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions that expressions may call, by name: those of the features, and those of the registry.

        Raises
        ------
        PluginConflictError
            If two define one function.
        """
        twice = sorted(self.stored_functions.keys() & self._given_functions.keys())
        if twice:
            raise PluginConflictError(
                f"Function {twice[0]!r} is defined by {self.stored_functions[twice[0]].feature}, a feature of the "
                "table, and by PluginRegistry(functions=...). Rename the latter."
            )
        return {**self.stored_functions, **self._given_functions}

    @cached_property
    def stored_functions(self) -> Mapping[str, Function]:
        """The functions that the features add to expressions, those that the table stores too, by name.

        Raises
        ------
        PluginConflictError
            If two features define one function.
        """
        found: dict[str, Function] = {}
        for f in self.collect("functions", features=frozenset(self.features)):
            if found.setdefault(f.name, f) is not f:
                raise PluginConflictError(f"Function {f.name!r} is defined by {found[f.name].feature} and {f.feature}.")
        return found

    def canonical(self, names: Iterable[str]) -> frozenset[str]:
        """Return feature names with aliases replaced by the names they represent."""
        alias = {a: f.name for f in self.features.values() for a in f.aliases}
        return frozenset(alias.get(n, n) for n in names)

    def request_values(self, argument: str, table: TableState) -> tuple[str, ...]:
        """Return the list that a table has for an argument of operations; empty if none of its features serves it."""
        served = [f.request_values[argument] for f in self.features.values() if argument in f.request_values]
        return tuple(value for values in served for value in values(table))

    def without(self, name: str | None) -> PluginSet:
        """Return the set without one feature's plugin, for a feature that is being dropped; the same set for None."""
        if name not in self.features:
            return self
        plugins = {n: p for n, p in self._plugins.items() if n != name}
        return PluginSet(plugins, self.unknown, check=False, functions=self._given_functions)

    def collect(self, hook: str, **arguments: Any) -> list[Any]:
        """Call a ``list`` hook and return its answers concatenated, in plugin order."""
        return [rule for answer in self._call(hook, "list", arguments) for rule in answer]

    def single(self, hook: str, default: Any = None, **arguments: Any) -> Any:
        """Call a ``single`` hook and return its one answer, ``default`` if there is none.

        Raises
        ------
        PluginConflictError
            If two plugins return a result.
        """
        answers = self._call(hook, "single", arguments)
        if len(answers) > 1:
            raise PluginConflictError(
                f"Hook {hook} has {len(answers)} answers if one is allowed; it is implemented by "
                f"{', '.join(self._implementers(hook))}.",
                hook=hook,
            )
        return answers[0] if answers else default

    def fold(self, hook: str, argument: str, value: Any, **arguments: Any) -> Any:
        """Call a ``fold`` hook plugin by plugin, each with the former's answer as ``argument``."""
        _expect(hook, "fold")
        for name in self._implementers(hook):
            excluded = [p for n, p in self._manager.list_name_plugin() if n != name and p is not None]
            caller = self._manager.subset_hook_caller(hook, excluded)
            (value,) = caller(**{argument: value}, **arguments)
        return value

    def check(self, hook: str, **arguments: Any) -> None:
        """Call a ``check`` hook; it raises or returns nothing."""
        self._call(hook, "check", arguments)

    def implements(self, hook: str) -> bool:
        """Return whether any plugin has the hook."""
        return bool(self._implementers(hook))

    def monitor(self, before: Callable[[str], None]) -> Callable[[], None]:
        """Call ``before(hook name)`` at each hook call; returns the function that ends it."""
        return self._manager.add_hookcall_monitoring(lambda name, impls, kwargs: before(name), lambda *a: None)

    def _call(self, hook: str, kind: str, arguments: dict[str, Any]) -> list[Any]:
        _expect(hook, kind)
        answers: list[Any] = getattr(self._manager.hook, hook)(**arguments)
        return answers

    def _implementers(self, hook: str) -> list[str]:
        found = {impl.plugin_name for impl in getattr(self._manager.hook, hook).get_hookimpls()}
        return [name for name in self.features if name in found]


def _expect(hook: str, kind: str) -> None:
    if RESULTS.get(hook) != kind:
        raise HookContractError(f"Hook {hook} is a {RESULTS.get(hook)!r} hook, called as {kind!r}.", hook=hook)


def _check_requirements(features: Mapping[str, TableFeature], unknown: frozenset[str]) -> None:
    present = {*features, *unknown}
    for f in features.values():
        for other in f.excludes:
            if other in present:
                raise FeatureRequirementError(f"Features {f.name} and {other} exclude each other.", feature=f.name)


def _ordered(plugins: Mapping[str, Any]) -> list[str]:
    """Sort names so that each follows those of its ``after`` that are present; else by name."""
    done: dict[str, None] = {}

    def visit(name: str, chain: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in chain:
            raise PluginConflictError(f"Features require to run after each other: {' -> '.join((*chain, name))}.")
        for other in sorted(plugins[name].FEATURE.after):
            if other in plugins:
                visit(other, (*chain, name))
        done[name] = None

    for name in sorted(plugins):
        visit(name, ())
    return list(done)


_default: PluginRegistry | None = None


def default_registry() -> PluginRegistry:
    """Return the registry of what is installed in this environment, made on first use."""
    global _default
    if _default is None:
        _default = PluginRegistry()
    return _default
