"""acme_format: a folder with an Arrow file per version is a table."""

from acme_format.table import FORMAT

__all__ = ["FORMAT"]
