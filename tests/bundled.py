"""Features that a test needs: a plugin can be removed with its folder and entry points, and the other tests pass."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from delta_core.kernel.plugins.registry import PluginRegistry

__all__ = ["are_provided", "needs", "skip_without"]


def needs(*features: str) -> pytest.MarkDecorator:
    """Skip a test that makes tables with features whose plugins are not installed."""
    missing = _missing(features)
    return pytest.mark.skipif(bool(missing), reason=f"no plugin is installed for {missing}")


def skip_without(*features: str) -> None:
    """Skip the test that calls it, or whose fixture does, if plugins of these features are not installed."""
    missing = _missing(features)
    if missing:
        pytest.skip(f"no plugin is installed for {missing}")


def are_provided(features: Iterable[str]) -> bool:
    """Whether plugins of these features are installed."""
    return not _missing(features)


def _missing(features: Iterable[str]) -> str:
    registry = PluginRegistry()
    return ", ".join(name for name in features if registry.source(name) is None)
