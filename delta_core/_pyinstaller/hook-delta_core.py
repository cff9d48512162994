"""The modules that this library imports by their names, and the entry points that list its plugins."""

from __future__ import annotations

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

hiddenimports = [
    name
    for package in ("delta_core", "delta_plugins")
    for name in collect_submodules(package, filter=lambda name: "testing" not in name and "_pyinstaller" not in name)
]
datas = copy_metadata("delta-core-lake") + collect_data_files("delta_core") + collect_data_files("delta_plugins")
