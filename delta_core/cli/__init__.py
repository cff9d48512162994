"""The command line `delta-core`."""

from delta_core.cli.app import main

__all__ = ["main"]
