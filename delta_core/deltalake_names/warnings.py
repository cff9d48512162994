"""Names of ``deltalake.warnings``."""

__all__ = ["ExperimentalWarning"]


class ExperimentalWarning(Warning):
    """Of calls that may change; this library warns of none."""
