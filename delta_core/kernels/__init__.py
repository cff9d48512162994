"""Array functions in compiled code: arrays in, arrays out, GIL released, every end checked.

Of the compiled functions, those of `path_texts` alone hold the GIL, because they make Python strings. Arrays must not
be changed while a function reads them. Results are new memory unless the docstring states that they share it.
"""

import platform

from delta_core.errors import MissingDependencyError

try:
    import delta_core.kernels._cyutility  # type: ignore[import-not-found]  # noqa: F401  (all others import it)
except ImportError as e:
    raise MissingDependencyError(
        f"The compiled modules of delta_core are missing from {__path__[0]}, or were not compiled for Python "
        f"{platform.python_version()}: {e}. A clone of the project is imported in place of the installed package if "
        "Python starts in its folder. Start Python in another folder, or compile the clone: pip install -e . (needs a "
        "C++ compiler)."
    ) from e
