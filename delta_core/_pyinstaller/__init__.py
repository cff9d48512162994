"""Hooks of PyInstaller for programs that import this library; an entry point leads it to this folder."""

from __future__ import annotations

__all__ = ["hook_folders"]


def hook_folders() -> list[str]:
    """Return the folders with hooks for PyInstaller."""
    return list(__path__)
