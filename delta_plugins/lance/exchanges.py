"""Loaded on first use: conversions."""

from __future__ import annotations

from delta_core.api import lazy_imports

with lazy_imports(__name__):
    from delta_plugins.lance.exchange import incoming_dataset as incoming_dataset, outgoing_dataset as outgoing_dataset
