"""Rows of a table of any format for other libraries: PyArrow datasets, Polars frames, dictionary codes."""

from __future__ import annotations

from importlib.util import find_spec

from delta_core.errors import MissingDependencyError

__all__ = ["require"]


def require(package: str) -> None:
    """Raise MissingDependencyError for a package that is not installed, which the extra of its name provides.

    Parameters
    ----------
    package : str
        Its name, which is that of the extra too.

    Raises
    ------
    MissingDependencyError
        The package is not installed.
    """
    if find_spec(package) is None:
        raise MissingDependencyError(
            f"This call needs {package}, which is not installed. Run: pip install 'delta-core-lake[{package}]'",
            package=package,
        )
