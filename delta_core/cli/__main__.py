"""``python -m delta_core.cli``: the program if its script is not on PATH."""

from __future__ import annotations

from delta_core.cli.app import program

program()
