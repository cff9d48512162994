"""Loaded on first use: conversions, and writes of several processes."""

from __future__ import annotations

from delta_core.api import lazy_imports

with lazy_imports(__name__):
    from delta_plugins.lance.exchange import incoming_dataset as incoming_dataset, outgoing_dataset as outgoing_dataset
    from delta_plugins.lance.write.spread import begin_spread_write as begin_spread_write
