"""The installed release: importlib.metadata is loaded only if it is requested."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("delta-core-lake")
