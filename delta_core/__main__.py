"""``python -m delta_core``: the command line if its script is not on PATH."""

from __future__ import annotations

from delta_core.cli.app import program

program()
