"""Errors of plugins: each names the feature, the distribution that provides it, and the hook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from delta_core.errors import DeltaError, HookContractError, PluginError
from delta_core.runtime.entry_points import entry_points

__all__ = ["FEATURES_GROUP", "contract_error", "plugin_errors", "plugin_name", "provider"]

FEATURES_GROUP = "delta_core.features"


def provider(feature: str, plugin: Any = None) -> str:
    """Return the distribution that provides a feature, as name and version; empty if none does.

    Parameters
    ----------
    feature : str
        The feature's name.
    plugin : object, optional
        The plugin that serves it: only a distribution whose entry point leads to this one is returned.
    """
    for point in entry_points(FEATURES_GROUP):
        if point.name == feature and point.dist is not None:
            with suppress(Exception):
                if plugin is None or point.load() is plugin:
                    return f"{point.dist.name} {point.dist.version}"
    return ""


def plugin_name(feature: str, plugin: Any = None) -> str:
    """Return how messages name a plugin: ``plugin 'acme.origin' (acme-origin 0.1.0)``.

    Parameters
    ----------
    feature : str
        The feature's name.
    plugin : object, optional
        The plugin that serves it.
    """
    distribution = provider(feature, plugin)
    return f"plugin {feature!r}" + (f" ({distribution})" if distribution else "")


def contract_error(
    feature: str, hook: str, part: str, what: str, plugin: Any = None, **facts: Any
) -> HookContractError:
    """Return the error of a hook, or of a function of a rule, that returned what it must not.

    Parameters
    ----------
    feature, hook : str
        The feature and the hook that are at fault.
    part : str
        The part that is at fault, such as ``RowSelector.locate``; empty: the hook itself.
    what : str
        The predicate of the sentence: the found and the expected value, without a full stop.
    plugin : object, optional
        The plugin that serves the feature.
    **facts
        Further attributes of the error.
    """
    named = f"{part} of hook {hook}" if part else f"Hook {hook}"
    sentence = what if what.endswith(("?", ".")) else f"{what}."
    return HookContractError(
        f"{named} of {plugin_name(feature, plugin)} {sentence} Correct the hook, or report it to the plugin's authors.",
        plugin=feature,
        hook=hook,
        **facts,
    )


@contextmanager
def plugin_errors(feature: str, part: str, hook: str, plugin: Any = None) -> Iterator[None]:
    """Report what fails in a plugin's code with the plugin and the part; errors of this library pass as they are.

    Parameters
    ----------
    feature, part, hook : str
        The feature, the part of its plugin that is called, and the hook that it belongs to.
    plugin : object, optional
        The plugin that serves the feature.

    Raises
    ------
    PluginError
        For any other error, which is its cause.
    """
    try:
        yield
    except DeltaError:
        raise
    except Exception as e:
        raise PluginError(
            f"{part} of {plugin_name(feature, plugin)} failed with {type(e).__name__}: {e}. Report it to the plugin's "
            "authors, or uninstall the plugin.",
            plugin=feature,
            hook=hook,
        ) from e
