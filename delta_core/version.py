"""The installed release: importlib.metadata is loaded for those who require only."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("delta-core-lake")
