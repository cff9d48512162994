"""Rows of a table of any format for other libraries: PyArrow datasets, Polars frames, dictionary codes."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

from delta_core.errors import MissingDependencyError

__all__ = ["OLDEST", "require"]

#: The oldest versions whose rows are right, as in pyproject.toml: with older ones calls fail later, or lose rows.
OLDEST = {"polars": (2, 1)}


def require(package: str) -> None:
    """Raise MissingDependencyError for a package that is missing or too old, which the extra of its name provides.

    Parameters
    ----------
    package : str
        Its name, which is that of the extra too.

    Raises
    ------
    MissingDependencyError
        The package is not installed, or is older than `OLDEST`.
    """
    if find_spec(package) is None:
        raise MissingDependencyError(
            f"This call needs {package}, which is not installed. Run: pip install 'delta-core-lake[{package}]'",
            package=package,
        )
    if package in OLDEST:
        found = _version(package)
        if tuple(int(n) for n in found.split(".")[:2]) < OLDEST[package]:
            expected = ".".join(map(str, OLDEST[package]))
            raise MissingDependencyError(
                f"This call needs {package} {expected} or later, found {found}. Run: pip install -U {package}",
                package=package,
            )


@lru_cache(maxsize=8)
def _version(package: str) -> str:
    """Return the version that is installed; parsing the package's metadata takes a millisecond."""
    # takes longer to import than all else here
    from importlib.metadata import version

    return version(package)
