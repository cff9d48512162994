"""Lance: a table format beside Delta, with its own manifests and data files."""

from __future__ import annotations

from delta_core.api import lazy_imports

with lazy_imports(__name__):
    from delta_plugins.lance.format import open_dataset as open_dataset
    from delta_plugins.lance.write.write_lance import write_lance as write_lance
