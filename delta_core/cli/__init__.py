"""The command line `delta-core`."""

from delta_core.cli.app import main, program

__all__ = ["main", "program"]
